"""Writes the checkpoints and inputs that `cargo xtask bench --speed` measures on.

    python tests/peers/checkpoints.py NAME --out DIR

Real shapes with random weights, float32 where the name does not say otherwise: `config.json`, `model.safetensors`, and
`inputs.safetensors` with an `in.<forward argument>` for each input; of what llama.cpp is measured with also `model.gguf`, the
same weights for it in float32, and `model-bf16.gguf` where they are stored in bfloat16. Widths, depths and vocabularies are those of the
published checkpoint that each function names.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file
from safetensors.torch import load_file
from weft_reference.gguf_files import convert

Inputs = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Checkpoint:
    model_class: str
    config: transformers.PreTrainedConfig | Mapping[str, Any]
    """Of `transformers`, or where it is a mapping, of `diffusers`."""
    inputs: Inputs
    dtype: torch.dtype = torch.float32


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def ids(vocab_size: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(3, vocab_size, shape, np.int64)


def vit(batch: int) -> Checkpoint:
    """google/vit-base-patch16-224"""
    return Checkpoint(
        "ViTForImageClassification",
        transformers.ViTConfig(num_labels=1000),
        {"pixel_values": floats(batch, 3, 224, 224)},
    )


def clip() -> Checkpoint:
    """openai/clip-vit-base-patch32: one image and two texts of 16 tokens, the last of which ends the text."""
    config = transformers.CLIPConfig()
    texts = ids(config.text_config.vocab_size - 2, 2, 16)
    texts[:, -1] = config.text_config.vocab_size - 1
    config.text_config.eos_token_id = config.text_config.vocab_size - 1
    inputs = {"input_ids": texts, "attention_mask": np.ones_like(texts), "pixel_values": floats(1, 3, 224, 224)}
    return Checkpoint("CLIPModel", config, inputs)


def whisper() -> Checkpoint:
    """openai/whisper-tiny: 30 seconds of sound."""
    config = transformers.WhisperConfig(
        d_model=384,
        encoder_layers=4,
        decoder_layers=4,
        encoder_attention_heads=6,
        decoder_attention_heads=6,
        encoder_ffn_dim=1536,
        decoder_ffn_dim=1536,
        num_mel_bins=80,
        vocab_size=51865,
        max_source_positions=1500,
        max_target_positions=448,
    )
    return Checkpoint("WhisperForConditionalGeneration", config, {"input_features": floats(1, 80, 3000)})


def wav2vec2() -> Checkpoint:
    """facebook/wav2vec2-base-960h: 10 seconds at 16 kHz."""
    return Checkpoint("Wav2Vec2ForCTC", transformers.Wav2Vec2Config(), {"input_values": floats(1, 160_000)})


def t5() -> Checkpoint:
    """google-t5/t5-small: a text of 32 tokens."""
    config = transformers.T5Config(decoder_start_token_id=0)
    texts = ids(config.vocab_size, 1, 32)
    return Checkpoint(
        "T5ForConditionalGeneration", config, {"input_ids": texts, "attention_mask": np.ones_like(texts)}
    )


def detr() -> Checkpoint:
    """facebook/detr-resnet-50: the short side of the image at 800."""
    config = transformers.DetrConfig(backbone_config=transformers.ResNetConfig(out_features=["stage4"]), num_labels=91)
    inputs = {"pixel_values": floats(1, 3, 800, 1066), "pixel_mask": np.ones((1, 800, 1066), np.int64)}
    return Checkpoint("DetrForObjectDetection", config, inputs)


def segformer() -> Checkpoint:
    """nvidia/segformer-b0-finetuned-ade-512-512"""
    config = transformers.SegformerConfig(num_labels=150)
    return Checkpoint("SegformerForSemanticSegmentation", config, {"pixel_values": floats(1, 3, 512, 512)})


def rt_detr() -> Checkpoint:
    """PekingU/rtdetr_r18vd"""
    backbone = transformers.RTDetrResNetConfig(
        layer_type="basic",
        hidden_sizes=[64, 128, 256, 512],
        depths=[2, 2, 2, 2],
        out_features=["stage2", "stage3", "stage4"],
    )
    config = transformers.RTDetrConfig(
        backbone_config=backbone,
        encoder_in_channels=[128, 256, 512],
        hidden_expansion=0.5,
        decoder_layers=3,
        num_labels=80,
    )
    return Checkpoint("RTDetrForObjectDetection", config, {"pixel_values": floats(1, 3, 640, 640)})


def sam() -> Checkpoint:
    """facebook/sam-vit-base: one point. Its mask decoder takes a hundredth of the time."""
    points = np.array([[[[512.0, 400.0]]]], np.float32)
    inputs = {"pixel_values": floats(1, 3, 1024, 1024), "input_points": points}
    return Checkpoint("SamModel", transformers.SamConfig(), inputs)


def depth_anything() -> Checkpoint:
    """depth-anything/Depth-Anything-V2-Small-hf"""
    backbone = transformers.Dinov2Config(
        hidden_size=384,
        num_attention_heads=6,
        image_size=518,
        patch_size=14,
        out_features=["stage3", "stage6", "stage9", "stage12"],
        reshape_hidden_states=False,
        apply_layernorm=True,
    )
    config = transformers.DepthAnythingConfig(
        backbone_config=backbone,
        patch_size=14,
        reassemble_hidden_size=384,
        neck_hidden_sizes=[48, 96, 192, 384],
        fusion_hidden_size=64,
    )
    return Checkpoint("DepthAnythingForDepthEstimation", config, {"pixel_values": floats(1, 3, 518, 518)})


def videomae() -> Checkpoint:
    """MCG-NJU/videomae-base-finetuned-kinetics: 16 frames."""
    config = transformers.VideoMAEConfig(num_labels=400)
    return Checkpoint("VideoMAEForVideoClassification", config, {"pixel_values": floats(1, 16, 3, 224, 224)})


def mobilevit() -> Checkpoint:
    """apple/mobilevit-small"""
    config = transformers.MobileViTConfig(num_labels=1000)
    return Checkpoint("MobileViTForImageClassification", config, {"pixel_values": floats(1, 3, 256, 256)})


def convnext() -> Checkpoint:
    """facebook/convnext-tiny-224"""
    config = transformers.ConvNextConfig(num_labels=1000)
    return Checkpoint("ConvNextForImageClassification", config, {"pixel_values": floats(1, 3, 224, 224)})


def swin() -> Checkpoint:
    """microsoft/swin-tiny-patch4-window7-224"""
    config = transformers.SwinConfig(num_labels=1000)
    return Checkpoint("SwinForImageClassification", config, {"pixel_values": floats(1, 3, 224, 224)})


def mamba(length: int) -> Checkpoint:
    """state-spaces/mamba-130m-hf: a prompt of so many tokens."""
    config = transformers.MambaConfig(num_hidden_layers=24, vocab_size=50280)
    return Checkpoint("MambaForCausalLM", config, {"input_ids": ids(config.vocab_size, 1, length)})


def mamba2(length: int) -> Checkpoint:
    """AntonV/mamba2-130m-hf: a prompt of so many tokens."""
    config = transformers.Mamba2Config(
        hidden_size=768, num_heads=24, head_dim=64, n_groups=1, num_hidden_layers=24, vocab_size=50288
    )
    return Checkpoint("Mamba2ForCausalLM", config, {"input_ids": ids(config.vocab_size, 1, length)})


def llama(dtype: torch.dtype) -> Checkpoint:
    """TinyLlama/TinyLlama-1.1B-Chat-v1.0, which is published in bfloat16: a prompt of 128 tokens."""
    config = transformers.LlamaConfig(
        hidden_size=2048,
        num_hidden_layers=22,
        num_attention_heads=32,
        num_key_value_heads=4,
        intermediate_size=5632,
        vocab_size=32000,
        max_position_embeddings=2048,
        rms_norm_eps=1e-5,
        tie_word_embeddings=False,
    )
    texts = ids(config.vocab_size, 1, 128)
    inputs = {"input_ids": texts, "attention_mask": np.ones_like(texts)}
    return Checkpoint("LlamaForCausalLM", config, inputs, dtype)


def bert() -> Checkpoint:
    """google-bert/bert-base-uncased: a text of 128 tokens."""
    config = transformers.BertConfig()
    texts = ids(config.vocab_size, 1, 128)
    return Checkpoint("BertModel", config, {"input_ids": texts, "attention_mask": np.ones_like(texts)})


def perceiver() -> Checkpoint:
    """deepmind/language-perceiver: a text of 2048 bytes."""
    texts = ids(262, 1, 2048)
    inputs = {"input_ids": texts, "attention_mask": np.ones_like(texts)}
    return Checkpoint("PerceiverForMaskedLM", transformers.PerceiverConfig(), inputs)


def patchtst() -> Checkpoint:
    """ibm-granite/granite-timeseries-patchtst: seven series of 512 hours, of which 96 more are predicted."""
    config = transformers.PatchTSTConfig(
        num_input_channels=7,
        context_length=512,
        prediction_length=96,
        patch_length=12,
        patch_stride=12,
        d_model=128,
        num_attention_heads=16,
        num_hidden_layers=3,
        ffn_dim=512,
    )
    return Checkpoint("PatchTSTForPrediction", config, {"past_values": floats(1, 512, 7)})


def unet() -> Checkpoint:
    """stable-diffusion-v1-5/stable-diffusion-v1-5: an image of 512 px, guided, so that two latents go through."""
    sizes = {"sample_size": 64, "cross_attention_dim": 768}
    inputs = {
        "sample": floats(2, 4, 64, 64),
        "timestep": np.full(2, 500, np.float32),
        "encoder_hidden_states": floats(2, 77, 768),
    }
    return Checkpoint("UNet2DConditionModel", sizes, inputs)


def vae() -> Checkpoint:
    """The autoencoder of stable-diffusion-v1-5/stable-diffusion-v1-5: an image of 512 px becomes a latent and is an image again."""
    sizes = {
        "block_out_channels": [128, 256, 512, 512],
        "down_block_types": ["DownEncoderBlock2D"] * 4,
        "up_block_types": ["UpDecoderBlock2D"] * 4,
        "layers_per_block": 2,
        "latent_channels": 4,
        "sample_size": 512,
    }
    return Checkpoint("AutoencoderKL", sizes, {"sample": floats(1, 3, 512, 512)})


def qwen2_vl() -> Checkpoint:
    """Qwen/Qwen2-VL-2B-Instruct: one image of 448 px among 64 tokens of text."""
    text = {
        "hidden_size": 1536,
        "num_hidden_layers": 28,
        "num_attention_heads": 12,
        "num_key_value_heads": 2,
        "intermediate_size": 8960,
        "vocab_size": 151_936,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [16, 24, 24]},
        "tie_word_embeddings": True,
    }
    config = transformers.Qwen2VLConfig(
        text_config=text, vision_config={"hidden_size": 1536}, tie_word_embeddings=True
    )
    texts = ids(150_000, 1, 64 + 256)
    # Patches of 14 px, 32 x 32, of which 2 x 2 are a token.
    texts[:, 8] = config.vision_start_token_id
    texts[:, 9 : 9 + 256] = config.image_token_id
    inputs = {
        "input_ids": texts,
        "attention_mask": np.ones_like(texts),
        "pixel_values": floats(32 * 32, 3 * 2 * 14 * 14),
        "image_grid_thw": np.array([[1, 32, 32]], np.int64),
    }
    return Checkpoint("Qwen2VLForConditionalGeneration", config, inputs, torch.bfloat16)


def llava() -> Checkpoint:
    """llava-hf/llava-1.5-7b-hf: a quarter of its text model's layers; one image of 336 px among 64 tokens of text."""
    text = {"model_type": "llama", "num_hidden_layers": 8, "vocab_size": 32_064, "max_position_embeddings": 4096}
    vision = {
        "model_type": "clip_vision_model",
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
        "image_size": 336,
        "patch_size": 14,
    }
    image = 32_000
    config = transformers.LlavaConfig(text_config=text, vision_config=vision, image_token_id=image)
    texts = ids(image, 1, 64 + 576)
    texts[:, 8 : 8 + 576] = image
    inputs = {"input_ids": texts, "attention_mask": np.ones_like(texts), "pixel_values": floats(1, 3, 336, 336)}
    return Checkpoint("LlavaForConditionalGeneration", config, inputs, torch.bfloat16)


def smolvlm() -> Checkpoint:
    """HuggingFaceTB/SmolVLM-500M-Instruct: one image of 512 px among 64 tokens of text."""
    text = {
        "model_type": "llama",
        "hidden_size": 960,
        "num_hidden_layers": 32,
        "num_attention_heads": 15,
        "num_key_value_heads": 5,
        "intermediate_size": 2560,
        "vocab_size": 49280,
        "head_dim": 64,
        "rope_theta": 100_000,
        "pad_token_id": 2,
    }
    vision = {
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "image_size": 512,
        "patch_size": 16,
    }
    image = 49190
    config = transformers.SmolVLMConfig(text_config=text, vision_config=vision, scale_factor=4, image_token_id=image)
    texts = ids(49000, 1, 64 + 64)
    # Patches of 32 x 32, of which 4 x 4 are a token each.
    texts[:, 8 : 8 + 64] = image
    pictures = {"pixel_values": floats(1, 1, 3, 512, 512), "pixel_attention_mask": np.ones((1, 1, 512, 512), np.int64)}
    inputs = {"input_ids": texts, "attention_mask": np.ones_like(texts)} | pictures
    return Checkpoint("SmolVLMForConditionalGeneration", config, inputs, torch.bfloat16)


def granitemoe() -> Checkpoint:
    """ibm-granite/granite-3.1-1b-a400m-instruct: a prompt of 128 tokens; 8 of 32 experts see each."""
    config = transformers.GraniteMoeConfig(
        hidden_size=1024,
        intermediate_size=512,
        num_hidden_layers=24,
        num_attention_heads=16,
        num_key_value_heads=8,
        num_local_experts=32,
        num_experts_per_tok=8,
        vocab_size=49155,
        embedding_multiplier=12.0,
        logits_scaling=6.0,
        residual_multiplier=0.22,
        attention_multiplier=0.015625,
        tie_word_embeddings=True,
    )
    texts = ids(config.vocab_size, 1, 128)
    inputs = {"input_ids": texts, "attention_mask": np.ones_like(texts)}
    return Checkpoint("GraniteMoeForCausalLM", config, inputs, torch.bfloat16)


def olmoe() -> Checkpoint:
    """allenai/OLMoE-1B-7B-0924: a quarter of its layers, and a prompt of 128 tokens; 8 of 64 experts see each."""
    config = transformers.OlmoeConfig(num_hidden_layers=4, intermediate_size=1024)
    texts = ids(config.vocab_size, 1, 128)
    inputs = {"input_ids": texts, "attention_mask": np.ones_like(texts)}
    return Checkpoint("OlmoeForCausalLM", config, inputs, torch.bfloat16)


CHECKPOINTS: Mapping[str, Callable[[], Checkpoint]] = {
    "vit": lambda: vit(1),
    "vit-8": lambda: vit(8),
    "clip": clip,
    "whisper": whisper,
    "wav2vec2": wav2vec2,
    "t5": t5,
    "detr": detr,
    "segformer": segformer,
    "rt_detr": rt_detr,
    "sam": sam,
    "depth_anything": depth_anything,
    "videomae": videomae,
    "mobilevit": mobilevit,
    "convnext": convnext,
    "swin": swin,
    "bert": bert,
    "perceiver": perceiver,
    "patchtst": patchtst,
    "unet": unet,
    "vae": vae,
    "smolvlm": smolvlm,
    "qwen2_vl": qwen2_vl,
    "llava": llava,
    "granitemoe": granitemoe,
    "olmoe": olmoe,
    "mamba": lambda: mamba(512),
    "mamba2": lambda: mamba2(512),
    "llama": lambda: llama(torch.float32),
    "llama-bf16": lambda: llama(torch.bfloat16),
}


# What llama.cpp is measured with, and of weights in bfloat16 the types of its files.
GGUF = {
    "LlamaForCausalLM": ["F32", "BF16"],
    "MambaForCausalLM": ["F32"],
    "Mamba2ForCausalLM": ["F32"],
    "OlmoeForCausalLM": ["BF16"],
}


def write_gguf(config: Any, folder: Path, path: Path, kind: str) -> None:
    """The folder's weights as one file, with a vocabulary of made-up pieces: nothing is spelt."""
    count = config.vocab_size
    metadata = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>", *(f"t{index}" for index in range(3, count))],
        "tokenizer.ggml.scores": [0.0] * count,
        "tokenizer.ggml.token_type": [2, 3, 3] + [1] * (count - 3),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
    }
    convert(config, load_file(folder / "model.safetensors"), path, lambda _name, _shape: kind, metadata)


def drawn(made: Checkpoint) -> Any:
    """The model with random weights."""
    if isinstance(made.config, Mapping):
        import diffusers

        return getattr(diffusers, made.model_class)(**made.config).to(made.dtype)
    model = getattr(transformers, made.model_class)._from_config(made.config, dtype=made.dtype)
    if any(isinstance(module, torch.nn.BatchNorm2d) for module in model.modules()):
        # As they are drawn, statistics of batch norms being those of nothing seen, values would fall below all normal numbers.
        for module in model.modules():
            if isinstance(module, torch.nn.Conv2d):
                torch.nn.init.kaiming_normal_(module.weight)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=list(CHECKPOINTS))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_grad_enabled(False)
    torch.manual_seed(0)
    made = CHECKPOINTS[options.name]()
    model = drawn(made).eval()
    options.out.mkdir(parents=True, exist_ok=True)
    # One file: candle is given it by name.
    model.save_pretrained(options.out, max_shard_size="20GB")
    if made.model_class in GGUF:
        del model
        kinds = ["F32"] if made.dtype == torch.float32 else GGUF[made.model_class]
        for kind in kinds:
            name = {"F32": "model.gguf", "BF16": "model-bf16.gguf"}[kind]
            write_gguf(made.config, options.out, options.out / name, kind)
    tensors = {f"in.{name}": np.ascontiguousarray(value) for name, value in made.inputs.items()}
    save_file(tensors, options.out / "inputs.safetensors")


if __name__ == "__main__":
    main()
