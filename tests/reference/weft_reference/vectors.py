"""Test vectors of the weight rule, for `tests/goldens/weight_rule.json`."""

from __future__ import annotations

import hashlib
from typing import Any

from weft_reference import weights

TENSORS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("bert.embeddings.word_embeddings.weight", (99, 32)),
    ("bert.embeddings.LayerNorm.weight", (32,)),
    ("bert.embeddings.LayerNorm.bias", (32,)),
    ("bert.embeddings.LayerNorm.gamma", (32,)),
    ("bert.embeddings.LayerNorm.beta", (32,)),
    ("bert.encoder.layer.0.attention.self.query.weight", (32, 32)),
    ("bert.encoder.layer.2.output.dense.weight", (32, 48)),
    ("cls.predictions.bias", (99,)),
    ("model.layers.0.self_attn.q_proj.weight", (64, 48)),
    ("model.layers.11.mlp.experts.gate_up_proj", (4, 24, 16)),
    ("model.layers.11.mlp.experts.gate_up_proj_bias", (4, 24)),
    ("model.layers.3.mlp.gate.e_score_correction_bias", (4,)),
    ("model.layers.0.self_attn.sinks", (4,)),
    ("transformer.h.0.attn.c_attn.weight", (32, 96)),
    ("transformer.wte.weight", (50, 16)),
    ("transformer.wpe.weight", (20, 16)),
    ("shared.weight", (40, 16)),
    ("encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", (32, 4)),
    ("backbone.layers.0.mixer.A_log", (16, 8)),
    ("backbone.layers.0.mixer.D", (16,)),
    ("backbone.layers.0.mixer.dt_proj.bias", (16,)),
    ("backbone.layers.0.mixer.dt_bias", (8,)),
    ("backbone.layers.0.mixer.conv1d.weight", (16, 1, 4)),
    ("resnet.embedder.embedder.convolution.weight", (8, 3, 7, 7)),
    ("resnet.embedder.embedder.normalization.running_mean", (8,)),
    ("resnet.embedder.embedder.normalization.running_var", (8,)),
    ("vit.embeddings.cls_token", (1, 1, 32)),
    ("vit.embeddings.position_embeddings", (1, 5, 32)),
    ("vision_model.embeddings.class_embedding", (32,)),
    ("vision_model.embeddings.patch_embedding.weight", (32, 3, 8, 8)),
    ("swin.encoder.layers.0.blocks.0.attention.self.relative_position_bias_table", (9, 2)),
    ("vision_encoder.layers.0.attn.rel_pos_h", (7, 8)),
    ("convnext.encoder.stages.0.layers.0.layer_scale_parameter", (8,)),
    ("wav2vec2.encoder.pos_conv_embed.conv.parametrizations.weight.original0", (1, 1, 16)),
    ("wav2vec2.encoder.pos_conv_embed.conv.parametrizations.weight.original1", (32, 16, 16)),
    ("wav2vec2.masked_spec_embed", (32,)),
    ("conv_post.weight", (1, 16, 7)),
    ("logit_scale", ()),
    ("video.patch_embed.proj.weight", (16, 3, 2, 4, 4)),
    ("encoder.pos_embed", (1, 4, 4, 8)),
    ("model.layers.0.self_attn.lambda_q1", (8,)),
    ("resampler.latents.0", (6, 16)),
    ("decoder.embed_tokens.1.weight", (12, 8)),
    ("naïve.Ünïcode.weight", (3, 5)),
)


def vectors() -> dict[str, Any]:
    """Each tensor's distribution, its first eight values as float32 bit patterns, and a hash of all its bytes."""
    entries: list[dict[str, Any]] = []
    for name, shape in TENSORS:
        chosen = weights.distribution(name, shape)
        data = weights.values(name, shape).astype("<f4")
        first = data.reshape(-1)[:8].view("<u4")
        entries.append(
            {
                "name": name,
                "shape": list(shape),
                "kind": chosen.kind,
                "a": chosen.a,
                "b": chosen.b,
                "first": [f"{value:08x}" for value in first],
                "sha256": hashlib.sha256(data.tobytes()).hexdigest(),
            }
        )
    return {"format": 1, "tensors": entries}
