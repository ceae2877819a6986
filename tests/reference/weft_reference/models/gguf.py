"""GGUF files: one of each element type, and one of each architecture that llama.cpp has too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import transformers

from weft_reference.gguf_files import GgufCase
from weft_reference.gguf_tokenizers import TokenizerCase, tokenizers
from weft_reference.inputs import text_batch

ROOTS = ("gguf",)
MODELS = ("gguf",)

TINY: dict[str, Any] = {
    "vocab_size": 61,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
WIDE = TINY | {"hidden_size": 256, "intermediate_size": 256, "num_attention_heads": 8}
SIMPLE = ("F16", "BF16", "F32", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "IQ4_NL", "MXFP4")
# One tensor of a layer each: 256 elements are a block.
WIDE_KINDS = ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS", "TQ1_0", "TQ2_0")


def batch() -> dict[str, Any]:
    made = text_batch(61, (11, 7), "right")
    return {name: made[name] for name in ("input_ids", "attention_mask")}


def every(kind: str) -> Callable[[str, tuple[int, ...]], str]:
    """All matrices in one type but those whose rows are no whole blocks, as `llama-quantize --pure`."""

    def of(_name: str, shape: tuple[int, ...]) -> str:
        return kind if shape[-1] % 32 == 0 else "F16"

    return of


def but(kinds: dict[str, str], rest: str) -> Callable[[str, tuple[int, ...]], str]:
    """Tensors of some names in a type of their own."""
    return lambda name, shape: every(next((kind for part, kind in kinds.items() if part in name), rest))(name, shape)


def in_turn(kinds: tuple[str, ...]) -> Callable[[str, tuple[int, ...]], str]:
    """The matrices of the layers in these types, one after the other."""
    given: dict[str, str] = {}

    def of(name: str, shape: tuple[int, ...]) -> str:
        if not name.startswith("blk.") or shape[-1] % 256 != 0:
            return "Q8_0"
        return given.setdefault(name, kinds[len(given) % len(kinds)])

    return of


def case(model: str, name: str, prefix: str, kind: Any, base: dict[str, Any] = TINY, **changes: Any) -> GgufCase:
    config_class = changes.pop("config_class", f"{prefix}Config")
    head = changes.pop("head", "ForCausalLM")
    dropped = changes.pop("without", ())
    fields = {field: value for field, value in (base | changes).items() if field not in dropped}
    config = getattr(transformers, config_class)(**fields)
    return GgufCase(f"gguf/{model}/{name}", f"{prefix}{head}", config, batch(), kind)


def goldens() -> Iterator[GgufCase | TokenizerCase]:
    yield from tokenizers()
    for kind in SIMPLE:
        yield case("llama", kind.lower(), "Llama", every(kind))
    yield case("llama", "k-quants", "Llama", in_turn(WIDE_KINDS), WIDE)
    yield case("llama", "tied", "Llama", every("Q8_0"), tie_word_embeddings=True)
    yield case("llama", "bias", "Llama", every("Q4_0"), attention_bias=True, mlp_bias=True, head_dim=16)
    yield case("mistral", "q4_0", "Mistral", every("Q4_0"), sliding_window=None, head_dim=8)
    yield case("mixtral", "q4_0", "Mixtral", every("Q4_0"), num_local_experts=3, num_experts_per_tok=2)
    yield case("smollm3", "q4_0", "SmolLM3", every("Q4_0"), num_hidden_layers=4)
    yield case("arcee", "q8_0", "Arcee", every("Q8_0"), attention_bias=True)
    yield case("bert", "q8_0", "Bert", every("Q8_0"), head="Model", without=("num_key_value_heads",))
    yield case("qwen2", "q4_0", "Qwen2", every("Q4_0"))
    yield case("qwen3", "q4_0", "Qwen3", every("Q4_0"), head_dim=16)
    moe = {"num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
    yield case("qwen2_moe", "q4_0", "Qwen2Moe", every("Q4_0"), shared_expert_intermediate_size=32, **moe)
    yield case("qwen3_moe", "q4_0", "Qwen3Moe", every("Q4_0"), head_dim=16, norm_topk_prob=True, **moe)
    yield case("gemma", "q8_0", "Gemma", every("Q8_0"), head_dim=16)
    window = {"head_dim": 16, "sliding_window": 4}
    yield case("gemma2", "q8_0", "Gemma2", every("Q8_0"), query_pre_attn_scalar=16, **window)
    yield case(
        "gemma3_text",
        "q8_0",
        "Gemma3",
        every("Q8_0"),
        config_class="Gemma3TextConfig",
        query_pre_attn_scalar=16,
        num_hidden_layers=6,
        **window,
    )
    yield case("phi", "q8_0", "Phi", every("Q8_0"), num_key_value_heads=4)
    yield case("phi3", "q8_0", "Phi3", every("Q8_0"))
    yield case("starcoder2", "q8_0", "Starcoder2", every("Q8_0"))
    yield case("gpt2", "q8_0", "GPT2", every("Q8_0"), head="LMHeadModel", without=("num_key_value_heads", "intermediate_size"))
    yield case("gpt_neox", "q8_0", "GPTNeoX", every("Q8_0"), without=("num_key_value_heads",))
    small = ("num_key_value_heads", "intermediate_size", "max_position_embeddings")
    yield case("bloom", "q8_0", "Bloom", every("Q8_0"), without=small)
    yield case("mpt", "q8_0", "Mpt", every("Q8_0"), without=small, d_model=32, n_layers=2, n_heads=4, max_seq_len=64)
    yield case("stablelm", "q8_0", "StableLm", every("Q8_0"), use_qkv_bias=True)
    yield case("cohere", "q8_0", "Cohere", every("Q8_0"))
    yield case("olmo", "q8_0", "Olmo", every("Q8_0"))
    yield case("olmo2", "q8_0", "Olmo2", every("Q8_0"))
    scales = {"embedding_multiplier": 3.0, "residual_multiplier": 0.5, "attention_multiplier": 0.2, "logits_scaling": 2.0}
    yield case("granite", "q8_0", "Granite", every("Q8_0"), **scales)
    yield case("nemotron", "q8_0", "Nemotron", every("Q8_0"), head_dim=8)
    yield case("cohere2", "q8_0", "Cohere2", every("Q8_0"), num_hidden_layers=4, sliding_window=4)
    yield case("exaone4", "q8_0", "Exaone4", every("Q8_0"), num_hidden_layers=4, sliding_window=4)
    yield case("exaone4", "full", "Exaone4", every("Q8_0"), sliding_window=None, layer_types=["full_attention"] * 2)
    yield case("olmo3", "q8_0", "Olmo3", every("Q8_0"), num_hidden_layers=4, sliding_window=4)
    yield case("glm4", "q8_0", "Glm4", every("Q8_0"), head_dim=16, attention_bias=True)
    yield case("ernie4_5", "q8_0", "Ernie4_5", every("Q8_0"), head_dim=16)
    yield case("hunyuan_v1_dense", "q8_0", "HunYuanDenseV1", every("Q8_0"), head_dim=16)
    yield case("seed_oss", "q8_0", "SeedOss", every("Q8_0"), head_dim=16)
    yield case("jais2", "q8_0", "Jais2", every("Q8_0"))
    yield case("gpt_bigcode", "q8_0", "GPTBigCode", every("Q8_0"), n_inner=64, without=("num_key_value_heads", "intermediate_size"))
    yield case("eurobert", "q8_0", "EuroBert", every("Q8_0"), head="Model")
    yield case("olmoe", "q4_0", "Olmoe", every("Q4_0"), num_key_value_heads=4, num_experts=3, num_experts_per_tok=2)
    yield case("phimoe", "q4_0", "Phimoe", every("Q4_0"), num_local_experts=3, attention_bias=True, lm_head_bias=True)
    ernie = {"moe_num_experts": 3, "moe_k": 2, "moe_intermediate_size": 32, "moe_num_shared_experts": 2}
    yield case("ernie4_5_moe", "q4_0", "Ernie4_5_Moe", every("Q4_0"), num_hidden_layers=3, intermediate_size=128, **ernie)
    yield case("hunyuan_v1_moe", "q4_0", "HunYuanMoEV1", every("Q4_0"), head_dim=8, num_experts=3, moe_topk=2)
    routed = {"n_routed_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "n_shared_experts": 2}
    routed |= {"first_k_dense_replace": 1, "routed_scaling_factor": 1.5, "norm_topk_prob": True}
    yield case("glm4_moe", "q4_0", "Glm4Moe", every("Q4_0"), head_dim=16, use_qk_norm=True, **routed)
    yield case("dots1", "q4_0", "Dots1", every("Q4_0"), head_dim=8, num_key_value_heads=4, **routed)
    yield case("minimax_m2", "q4_0", "MiniMaxM2", every("Q4_0"), head_dim=16, num_local_experts=3, num_experts_per_tok=2)
    states = ("num_key_value_heads", "intermediate_size", "num_attention_heads", "max_position_embeddings")
    yield case("mamba", "q8_0", "Mamba", every("Q8_0"), without=states, state_size=8, time_step_rank=4)
    yield case("falcon_mamba", "q8_0", "FalconMamba", every("Q8_0"), without=states, state_size=8, time_step_rank=4)
    yield case(
        "mamba2",
        "q8_0",
        "Mamba2",
        every("Q8_0"),
        without=states,
        state_size=8,
        num_heads=4,
        head_dim=16,
        n_groups=2,
        chunk_size=4,
    )
    layers = ["conv", "full_attention", "conv"]
    yield case("lfm2", "q8_0", "Lfm2", every("Q8_0"), num_hidden_layers=3, layer_types=layers, conv_L_cache=3)
    yield from split()


def split() -> Iterator[GgufCase]:
    """Models whose weights llama.cpp's converter splits or puts into another order."""
    moe = {"num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
    oss = {"head_dim": 16, "sliding_window": 4, "num_local_experts": 3, "num_experts_per_tok": 2}
    for name, kind in (("mxfp4", "MXFP4"), ("f16", "F16"), ("q4_0", "Q4_0")):
        yield case("gpt_oss", name, "GptOss", but({"_exps.": kind}, "Q8_0"), **oss)
    scales = {"embedding_multiplier": 3.0, "residual_multiplier": 0.5, "attention_multiplier": 0.2, "logits_scaling": 2.0}
    granite = scales | {"num_local_experts": 3, "num_experts_per_tok": 2}
    yield case("granitemoe", "q4_0", "GraniteMoe", every("Q4_0"), **granite)
    yield case("granitemoe", "f16", "GraniteMoe", every("F16"), **granite)
    yield case("granitemoe", "mixed", "GraniteMoe", but({"ffn_gate_exps": "Q8_0"}, "Q4_0"), **granite)
    yield case("granitemoeshared", "q4_1", "GraniteMoeShared", every("Q4_1"), shared_intermediate_size=32, **granite)
    latent = {"q_lora_rank": 32, "kv_lora_rank": 32, "qk_nope_head_dim": 32, "qk_rope_head_dim": 8, "v_head_dim": 32}
    latent |= {"num_key_value_heads": 4, "num_hidden_layers": 3, "n_routed_experts": 4, "num_experts_per_tok": 2}
    latent |= {"moe_intermediate_size": 32, "n_shared_experts": 2, "first_k_dense_replace": 1, "routed_scaling_factor": 1.5}
    yarn = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 16}
    yarn |= {"mscale": 0.7, "mscale_all_dim": 0.7}
    yield case("deepseek_v2", "q4_0", "DeepseekV2", every("Q4_0"), n_group=1, topk_group=1, **latent)
    lite = latent | {"q_lora_rank": None, "rope_parameters": yarn}
    yield case("deepseek_v2", "lite", "DeepseekV2", every("F16"), n_group=1, topk_group=1, **lite)
    grouped = latent | {"n_group": 2, "topk_group": 1, "norm_topk_prob": True}
    yield case("deepseek_v3", "q8_0", "DeepseekV3", every("Q8_0"), rope_parameters=yarn, **grouped)
    flash = {"n_group": 1, "topk_group": 1, "norm_topk_prob": True, "mlp_layer_types": ["dense", "dense", "sparse"]}
    yield case("glm4_moe_lite", "q4_0", "Glm4MoeLite", every("Q4_0"), **latent | flash)
    single = ("num_key_value_heads", "intermediate_size")
    yield case("falcon", "q8_0", "Falcon", every("Q8_0"), without=single, multi_query=True)
    norms = {"new_decoder_architecture": True, "num_kv_heads": 2}
    yield case("falcon", "two-norms", "Falcon", every("Q4_0"), without=single, **norms)
    yield case("falcon", "one-norm", "Falcon", every("Q8_0"), without=single, num_ln_in_parallel_attn=1, **norms)
    layers = ["conv", "full_attention", "conv"]
    lfm = {"num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "num_dense_layers": 1, "conv_L_cache": 3}
    yield case("lfm2_moe", "q4_0", "Lfm2Moe", every("Q4_0"), num_hidden_layers=3, layer_types=layers, **lfm)
    mamba = {"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_n_groups": 2, "mamba_d_state": 8, "mamba_chunk_size": 4}
    mamba |= {"shared_intermediate_size": 32, "layer_types": ["linear_attention", "full_attention"], **granite}
    yield case("granitemoehybrid", "q4_0", "GraniteMoeHybrid", every("Q4_0"), **mamba)
    mamba |= {"num_local_experts": 0, "num_experts_per_tok": 0, "shared_intermediate_size": 64}
    yield case("granitemoehybrid", "dense", "GraniteMoeHybrid", every("Q8_0"), position_embedding_type="rope", **mamba)
    rule = {"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16}
    rule |= {"layer_types": ["linear_attention", "full_attention"], "head_dim": 16, "shared_expert_intermediate_size": 32, **moe}
    yield case("qwen3_next", "q4_0", "Qwen3Next", every("Q4_0"), norm_topk_prob=True, **rule)
    yield case("qwen3_next", "widths", "Qwen3Next", every("Q8_0"), norm_topk_prob=True, **rule | {"linear_key_head_dim": 8})
    nomic = ("num_key_value_heads",)
    yield case("nomic_bert", "q8_0", "NomicBert", every("Q8_0"), head="Model", without=nomic)
    scaled = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 4}
    scaled |= {"beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1}
    yield case("ministral3", "q8_0", "Ministral3", every("Q8_0"), head_dim=16, rope_parameters=scaled)
