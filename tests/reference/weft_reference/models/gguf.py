"""GGUF files: one of each element type, and one of each architecture that llama.cpp has too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft_reference.gguf_cases import TINY, batch, but, case, every, in_turn
from weft_reference.gguf_files import GgufCase
from weft_reference.gguf_tokenizers import TokenizerCase, tokenizers
from weft_reference.inputs import text_batch
from weft_reference.models import gemma4_assistant as assistants

ROOTS = ("gguf",)
MODELS = ("gguf",)

WIDE = TINY | {"hidden_size": 256, "intermediate_size": 256, "num_attention_heads": 8}
SIMPLE = ("F16", "BF16", "F32", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "IQ4_NL", "MXFP4")
# One tensor of a layer each: 256 elements are a block.
WIDE_KINDS = ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS", "TQ1_0", "TQ2_0")
GEMMA3N: dict[str, Any] = {"head_dim": 16, "sliding_window": 4, "laurel_rank": 32, "config_class": "Gemma3nTextConfig"}
LATENT: dict[str, Any] = {"q_lora_rank": 32, "kv_lora_rank": 32, "qk_nope_head_dim": 32, "qk_rope_head_dim": 8, "v_head_dim": 32}
LATENT |= {"num_key_value_heads": 4, "num_hidden_layers": 3, "n_routed_experts": 4, "num_experts_per_tok": 2}
LATENT |= {"moe_intermediate_size": 32, "n_shared_experts": 2, "first_k_dense_replace": 1, "routed_scaling_factor": 1.5}
YARN: dict[str, Any] = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 16}
YARN |= {"mscale": 0.7, "mscale_all_dim": 0.7}


def next_token_layer(layer: int) -> dict[str, tuple[int, ...]]:
    """A layer of multi-token prediction, as GLM-4.5's checkpoints have it behind the others."""
    norms = ("enorm", "hnorm", "input_layernorm", "post_attention_layernorm", "shared_head.norm")
    shapes: dict[str, tuple[int, ...]] = {f"{name}.weight": (32,) for name in norms}
    shapes |= {"eh_proj.weight": (32, 64), "mlp.gate.weight": (3, 32), "mlp.gate.e_score_correction_bias": (3,)}
    shapes |= {"self_attn.q_proj.weight": (64, 32), "self_attn.o_proj.weight": (32, 64)}
    shapes |= {f"self_attn.{name}_proj.weight": (32, 32) for name in "kv"}
    for prefix, width in (*((f"experts.{expert}", 32) for expert in range(3)), ("shared_experts", 64)):
        shapes |= {f"mlp.{prefix}.{name}_proj.weight": (width, 32) for name in ("gate", "up")}
        shapes[f"mlp.{prefix}.down_proj.weight"] = (32, width)
    return {f"model.layers.{layer}.{name}": shape for name, shape in shapes.items()}


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
    for model, prefix, tokenizer in (("roberta", "Roberta", "gpt2"), ("xlm-roberta", "XLMRoberta", "t5")):
        own: dict[str, Any] = {"head": "Model", "type_vocab_size": 1, "pad_token_id": 1, "without": ("num_key_value_heads",)}
        own["metadata"] = {"tokenizer.ggml.model": tokenizer, "tokenizer.ggml.padding_token_id": 1}
        made = text_batch(61, (11, 7), "right", pad=1)
        own["inputs"] = {name: made[name] for name in ("input_ids", "attention_mask")}
        yield case(model, "q8_0", prefix, every("Q8_0"), **own)
    padded = {"head": "Model", "type_vocab_size": 1, "pad_token_id": 1, "without": ("num_key_value_heads",), "inputs": own["inputs"]}
    yield case("jina_embeddings_v3", "q8_0", "JinaEmbeddingsV3", every("Q8_0"), **padded)
    small = {"dim": 32, "hidden_dim": 64, "n_layers": 2, "n_heads": 4}
    yield case("distilbert", "q8_0", "DistilBert", every("Q8_0"), {"vocab_size": 61, "max_position_embeddings": 64}, head="Model", **small)
    modern = {"num_hidden_layers": 4, "local_attention": 4, "head": "Model", "without": ("num_key_value_heads",)}
    yield case("modernbert", "q8_0", "ModernBert", every("Q8_0"), **modern)
    yield case("qwen2", "q4_0", "Qwen2", every("Q4_0"))
    yield case("qwen3", "q4_0", "Qwen3", every("Q4_0"), head_dim=16)
    moe = {"num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
    yield case("qwen2_moe", "q4_0", "Qwen2Moe", every("Q4_0"), shared_expert_intermediate_size=32, **moe)
    yield case("qwen3_moe", "q4_0", "Qwen3Moe", every("Q4_0"), head_dim=16, norm_topk_prob=True, **moe)
    yield case("bitnet", "q8_0", "BitNet", every("Q8_0"), hidden_act="silu", tie_word_embeddings=True)
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
    both = {"use_bidirectional_attention": True, "num_hidden_layers": 6, "config_class": "Gemma3TextConfig", "head": "TextModel"}
    yield case("gemma3_text", "embedding", "Gemma3", every("Q8_0"), query_pre_attn_scalar=16, **window | both)
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
    behind = {"metadata": {"glm4moe.nextn_predict_layers": 1, "glm4moe.block_count": 3}, "added": next_token_layer(2)}
    yield case("glm4_moe", "nextn", "Glm4Moe", every("Q4_0"), head_dim=16, **routed | {"first_k_dense_replace": 0}, **behind)
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
    yield from latent()
    yield from mixtures()
    yield from windows()
    yield from hybrids()
    yield from gemma3n()
    yield from gemma4()
    yield from gemma4_assistant()
    yield from t5()


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
    latent, yarn = LATENT, YARN
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
    chunked = {"num_hidden_layers": 4, "head_dim": 16, "intermediate_size": 32, "intermediate_size_mlp": 64}
    chunked |= {"num_local_experts": 3, "num_experts_per_tok": 1, "config_class": "Llama4TextConfig"}
    yield case("llama4_text", "q4_0", "Llama4", every("Q4_0"), interleave_moe_layer_step=2, **chunked)
    yield case("llama4_text", "f16", "Llama4", every("F16"), interleave_moe_layer_step=1, **chunked)
    exaone = {"num_hidden_layers": 5, "head_dim": 16, "sliding_window": 4, "num_shared_experts": 1, **moe}
    yield case("exaone_moe", "q4_0", "ExaoneMoe", every("Q4_0"), routed_scaling_factor=1.5, **exaone)
    afmoe = {"num_hidden_layers": 5, "head_dim": 16, "sliding_window": 4, "num_shared_experts": 1, "num_dense_layers": 1, **moe}
    yield case("afmoe", "q4_0", "Afmoe", every("Q4_0"), mup_enabled=True, route_scale=1.5, **afmoe)
    yield case("apertus", "q8_0", "Apertus", every("Q8_0"))
    yield case("glm", "q8_0", "Glm", every("Q8_0"), head_dim=8, attention_bias=True)
    ranks = {"q_lora_rank": 32, "kv_lora_rank": 32, "qk_nope_head_dim": 32, "qk_rope_head_dim": 8, "num_key_value_heads": 4}
    yield case("minicpm3", "q8_0", "MiniCPM3", every("Q8_0"), **ranks)
    nomic = ("num_key_value_heads",)
    yield case("nomic_bert", "q8_0", "NomicBert", every("Q8_0"), head="Model", without=nomic)
    scaled = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 4}
    scaled |= {"beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1}
    yield case("ministral3", "q8_0", "Ministral3", every("Q8_0"), head_dim=16, rope_parameters=scaled)


def latent() -> Iterator[GgufCase]:
    """Models with multi-head latent attention that is beside delta attention, sparse, scaled or without experts."""
    scaled = YARN | {"mscale": 1.0, "mscale_all_dim": 1.0}
    scaled |= {"llama_4_scaling_beta": 0.1, "original_max_position_embeddings": 4}
    whole = LATENT | {"n_group": 1, "topk_group": 1, "norm_topk_prob": True}
    yield case("mistral4", "q4_0", "Mistral4", every("Q4_0"), rope_parameters=scaled, **whole)
    # Heads enough that no two keys have the score 0, of which any may be read.
    whole |= {"index_topk": 4, "index_head_dim": 128, "index_n_heads": 8, "qk_rope_head_dim": 64}
    whole |= {"mlp_layer_types": ["dense", "sparse", "sparse"]}
    yield case("glm_moe_dsa", "q4_0", "GlmMoeDsa", every("Q4_0"), indexer_types=["full", "shared", "full"], **whole)
    yield case("deepseek_v32", "q4_0", "DeepseekV32", every("Q4_0"), **whole)
    names = ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "num_key_value_heads")
    dense = {name: LATENT[name] for name in names}
    # The row of a padding token would be set to zeros where the file is read.
    yield case("youtu", "q8_0", "Youtu", every("Q8_0"), without=("pad_token_id",), **dense)
    delta = {name: LATENT[name] for name in LATENT if name not in ("n_routed_experts", "first_k_dense_replace")}
    delta |= {"linear_num_heads": 4, "linear_head_dim": 32, "linear_conv_kernel_dim": 3, "num_local_experts": 4}
    delta |= {"layer_types": ["linear_attention", "full_attention", "linear_attention"]}
    yield case("kimi_linear", "q4_0", "KimiLinear", every("Q4_0"), **delta | {"q_lora_rank": None})
    bailing = LATENT | {"head_dim": 32, "layer_group_size": 2, "short_conv_kernel_size": 3, "num_local_experts": 4}
    bailing |= {"n_group": 2, "topk_group": 1, "norm_topk_prob": True, "kda_lower_bound": -4.0}
    without = ("q_lora_rank", "n_routed_experts")
    yield case("bailing_hybrid", "q4_0", "BailingHybrid", every("Q4_0"), without=without, **bailing)
    yield case("kimi_linear", "queries", "KimiLinear", every("Q8_0"), **delta | {"linear_head_dim": 16})


def mixtures() -> Iterator[GgufCase]:
    """Mixtures of experts whose configuration is nested, whose layers differ, or whose experts are corrected."""
    nested: dict[str, Any] = {"attn_config": {"kv_n_heads": 2, "clip_qkv": 0.5, "rope_theta": 10000.0}}
    nested |= {"ffn_config": {"ffn_hidden_size": 64, "moe_num_experts": 3, "moe_top_k": 2}}
    nested |= {"vocab_size": 61, "d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 64}
    yield case("dbrx", "q4_0", "Dbrx", every("Q4_0"), {}, **nested)
    yield case("dbrx", "f16", "Dbrx", every("F16"), {}, **nested)
    moe = {"num_experts_per_tok": 2, "moe_intermediate_size": 32, "head_dim": 16, "num_hidden_layers": 3}
    shared = moe | {"num_experts": 3, "num_shared_experts": 2, "router_scaling_factor": 1.5}
    yield case("hy_v3", "q4_0", "HYV3", every("Q4_0"), **shared)
    windows = moe | {"sliding_window": 4, "layer_types": ["full_attention", "sliding_attention", "full_attention"]}
    rope = {"rope_type": "default", "rope_theta": 10000.0}
    ropes = {"full_attention": rope, "sliding_attention": rope}
    yield case("mellum", "q4_0", "Mellum", every("Q4_0"), num_experts=3, rope_parameters=ropes, **windows)
    partial = rope | {"partial_rotary_factor": 0.5}
    ropes = {"full_attention": partial | {"rope_theta": 1000.0}, "sliding_attention": partial}
    flash = windows | {"v_head_dim": 8, "n_routed_experts": 4, "num_key_value_heads": 1, "rope_parameters": ropes}
    yield case("mimo_v2_flash", "q4_0", "MiMoV2Flash", every("Q4_0"), **flash)

def windows() -> Iterator[GgufCase]:
    """Models most of whose layers attend within a window, stacks that run in cycles, and several residual streams."""
    moe = {"num_experts": 3, "num_experts_per_tok": 2, "head_dim": 16, "sliding_window": 4}
    sliding = ["full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention"]
    rope = {"rope_type": "default", "rope_theta": 10000.0}
    yarn = {"rope_type": "yarn", "rope_theta": 1000.0, "factor": 4.0, "original_max_position_embeddings": 16}
    ropes = {"full_attention": yarn | {"partial_rotary_factor": 0.5}, "sliding_attention": rope}
    gated = moe | {"num_hidden_layers": 5, "layer_types": sliding, "num_attention_heads_per_layer": [2, 4, 4, 4, 2]}
    gated |= {"moe_intermediate_size": 32, "shared_expert_intermediate_size": 64, "moe_routed_scaling_factor": 1.5}
    yield case("laguna", "q4_0", "Laguna", every("Q4_0"), rope_parameters=ropes, **gated)
    same = {"full_attention": rope, "sliding_attention": rope}
    whole = {"sliding_window": 0, "layer_types": ["full_attention"] * 2, "num_attention_heads_per_layer": None}
    whole |= {"num_hidden_layers": 2, "tie_word_embeddings": True, "rope_parameters": same}
    yield case("laguna", "full", "Laguna", every("Q8_0"), **gated | whole)
    beside = moe | {"num_hidden_layers": 4, "intermediate_size": 32, "prefix_dense_intermediate_size": 64}
    beside |= {"layer_types": ["full_attention", *sliding[1:3], "full_attention"], "first_k_dense_replace": 1}
    beside |= {"num_shared_experts": 2, "logit_scale": 0.25}
    beside |= {"mlp_layer_types": ["dense", "sparse", "sparse", "sparse"], "expert_selection_fn": "sigmoid"}
    yield case("cohere2_moe", "q4_0", "Cohere2Moe", every("Q4_0"), **beside)
    own = {"expert_selection_fn": "softmax", "rms_norm_eps": 1e-6, "num_shared_experts": 0, "tie_word_embeddings": False}
    yield case("cohere2_moe", "rms", "Cohere2Moe", every("Q8_0"), **beside | own)
    scales = {"embedding_multiplier": 3.0, "residual_multiplier": 0.5, "attention_multiplier": 0.2, "logits_scaling": 2.0}
    granite = scales | {"num_hidden_layers": 3, "sliding_window": 4}
    yield case("granite_swa", "q8_0", "GraniteSWA", every("Q8_0"), **granite)
    some = {"layer_rope_theta": [0, 10000.0, 10000.0], "tie_word_embeddings": False}
    some |= {"attention_bias": True, "mlp_bias": True}
    yield case("granite_swa", "some-positions", "GraniteSWA", every("Q4_0"), **granite | some)
    shared = granite | {"num_local_experts": 3, "num_experts_per_tok": 2, "shared_intermediate_size": 32}
    yield case("granitemoe_swa", "q4_0", "GraniteMoeSWA", every("Q4_0"), **shared)
    cycles = {"H_cycles": 2, "L_cycles": 2, "embedding_scale": 3.0, "head_dim": 16, "num_hidden_layers": 2}
    yield case("hrm_text", "q8_0", "HrmText", every("Q8_0"), without=("num_key_value_heads",), **cycles)
    solar = {"n_routed_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
    solar |= {"n_shared_experts": 2, "head_dim": 16}
    solar |= {"routed_scaling_factor": 1.5, "metadata": {"tokenizer.ggml.pre": "solar-open"}}
    yield case("solar_open", "q4_0", "SolarOpen", every("Q4_0"), without=("intermediate_size",), **solar)
    streams = LATENT | {"norm_topk_prob": True, "qk_rope_head_dim": 64}
    streams |= {"index_topk": 4, "index_head_dim": 128, "index_n_heads": 8, "indexer_types": ["full", "shared", "full"]}
    streams |= {"mlp_layer_types": ["dense", "sparse", "sparse"], "swiglu_limit": 0.5, "hc_mult": 2, "hc_magnitude": 1.5}
    yield case("hy_v4", "q4_0", "HYV4", every("Q4_0"), without=("first_k_dense_replace",), **streams)


def hybrids() -> Iterator[GgufCase]:
    """Models whose layers are of several kinds, or have attention and a state space side by side."""
    scan = {"mamba_d_state": 8, "mamba_dt_rank": 4, "num_experts": 3, "num_experts_per_tok": 2, "num_hidden_layers": 4}
    periods = {"attn_layer_period": 3, "attn_layer_offset": 1, "expert_layer_period": 2, "expert_layer_offset": 1}
    yield case("jamba", "q4_0", "Jamba", every("Q4_0"), **scan | periods)
    dense = {"attn_layer_period": 8, "attn_layer_offset": 2, "num_experts": 1, "num_experts_per_tok": 1}
    yield case("jamba", "dense", "Jamba", every("Q8_0"), **scan | periods | dense)
    states = {"mamba_n_heads": 4, "mamba_n_groups": 2, "mamba_d_state": 8, "mamba_chunk_size": 4}
    multipliers: dict[str, Any] = {"embedding_multiplier": 2.0, "lm_head_multiplier": 0.5, "mlp_multipliers": [0.5, 2.0]}
    multipliers |= {"key_multiplier": 0.5, "attention_in_multiplier": 2.0, "attention_out_multiplier": 0.5}
    multipliers |= {"ssm_multipliers": [0.5, 2.0, 4.0, 0.25, 0.5], "ssm_in_multiplier": 2.0, "ssm_out_multiplier": 0.5}
    falcon = states | multipliers | {"mamba_d_ssm": 64, "mamba_d_head": 16, "head_dim": 16}
    yield case("falcon_h1", "q8_0", "FalconH1", every("Q8_0"), **falcon)
    norm = {"mamba_rms_norm": True, "mamba_norm_before_gate": False}
    yield case("falcon_h1", "norm", "FalconH1", every("Q4_0"), **falcon | norm)
    lightning = {"num_hidden_layers": 8, "layer_types": ["linear_attention"] * 7 + ["full_attention"], "head_dim": 16}
    lightning |= {"intermediate_size": 32, "num_local_experts": 3, "num_experts_per_tok": 2, "block_size": 4}
    lightning |= dict.fromkeys(("full_attn_alpha_factor", "linear_attn_alpha_factor", "mlp_alpha_factor"), 3.5)
    yield case("minimax", "q4_0", "MiniMax", every("Q4_0"), **lightning)
    yield case("bamba", "q8_0", "Bamba", every("Q8_0"), attn_layer_indices=[1], mamba_d_head=16, **states)
    mixed = {"mamba_num_heads": 4, "mamba_head_dim": 16, "n_groups": 2, "ssm_state_size": 8, "chunk_size": 4, "head_dim": 16}
    kinds = ["linear_attention", "mlp", "full_attention", "mlp"]
    yield case("nemotron_h", "q8_0", "NemotronH", every("Q8_0"), layers_block_type=kinds, **mixed | {"num_hidden_layers": 4})
    moe = {"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "routed_scaling_factor": 1.5}
    moe |= {"moe_shared_expert_intermediate_size": 64, "num_hidden_layers": 4}
    kinds = ["linear_attention", "moe", "full_attention", "moe"]
    yield case("nemotron_h", "moe", "NemotronH", every("Q4_0"), layers_block_type=kinds, **mixed | moe)
    yield case("nemotron_h", "latent", "NemotronH", every("Q8_0"), layers_block_type=kinds, moe_latent_size=32, **mixed | moe)


def unread(layers: tuple[int, ...], hidden_size: int = 32) -> dict[str, tuple[int, ...]]:
    """What published checkpoints of Gemma 3n have in layers that read the keys and values of others."""
    shapes = {"k_proj": (32, hidden_size), "v_proj": (32, hidden_size), "k_norm": (16,)}
    return {f"model.layers.{i}.self_attn.{name}.weight": shape for i in layers for name, shape in shapes.items()}


def gemma3n() -> Iterator[GgufCase]:
    few = {"num_hidden_layers": 4, "layer_types": ["sliding_attention", "full_attention"] * 2, "num_kv_shared_layers": 2}
    few |= {"intermediate_size": [64, 32, 32, 96], "activation_sparsity_pattern": [0.9, 0.5, 0.0, 0.0]}
    few |= {"hidden_size_per_layer_input": 32, "vocab_size_per_layer_input": 53}
    yield case("gemma3n_text", "q8_0", "Gemma3n", every("Q8_0"), **GEMMA3N | few)
    yield case("gemma3n_text", "q4_0", "Gemma3n", every("Q4_0"), **GEMMA3N | few | {"intermediate_size": 32, "added": unread((2, 3))})


def asked() -> Iterator[GgufCase]:
    """Cases for llama.cpp alone, which has some sizes of a model's published ones in every file: too large for goldens."""
    # One layer of five with full attention, sparse gates in ten layers, keys and values in twenty, embeddings of each layer of
    # 256, and residuals of rank 64. It takes deviations of gates by one element less, which is the same where they are wide.
    own = {"hidden_size_per_layer_input": 256, "vocab_size_per_layer_input": 61, "laurel_rank": 64, "hidden_size": 256}
    own |= {"num_hidden_layers": 22, "num_kv_shared_layers": 2, "intermediate_size": 4096}
    yield case("gemma3n_text", "layers", "Gemma3n", every("Q8_0"), **GEMMA3N | own, added=unread((20, 21), 256))


def gemma4() -> Iterator[GgufCase]:
    """Gemma 4's: small models with embeddings for each layer, large ones without, and one with experts."""
    base: dict[str, Any] = {"num_hidden_layers": 4, "head_dim": 16, "global_head_dim": 32, "sliding_window": 4}
    base |= {"layer_types": ["sliding_attention", "full_attention"] * 2, "config_class": "Gemma4TextConfig"}
    small = {"hidden_size_per_layer_input": 32, "vocab_size_per_layer_input": 61, "num_kv_shared_layers": 2}
    capped = base | {"final_logit_softcapping": 30.0}
    yield case("gemma4_text", "q8_0", "Gemma4", every("Q8_0"), **capped | small | {"use_double_wide_mlp": True})
    plain = capped | {"hidden_size_per_layer_input": 0}
    same = {"attention_k_eq_v": True, "num_global_key_value_heads": 1}
    yield case("gemma4_text", "keys-as-values", "Gemma4", every("Q4_0"), **plain | same)
    moe = {"enable_moe_block": True, "num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 64}
    yield case("gemma4_text", "experts", "Gemma4", every("Q4_0"), **plain | same | moe)
    yield case("gemma4_text", "uncapped", "Gemma4", every("F16"), **plain | moe | {"final_logit_softcapping": None})


def gemma4_assistant() -> Iterator[GgufCase]:
    """Drafters for Gemma 4, of models whose keys are values and of others."""
    sizes = {name: size for name, size in TINY.items() if not name.endswith("_id")}
    base = sizes | {"num_hidden_layers": 4, "head_dim": 16, "global_head_dim": 32, "sliding_window": 4}
    base |= {"layer_types": [*["sliding_attention"] * 3, "full_attention"], "num_kv_shared_layers": 4}
    none = assistants.NO_EMBEDDINGS
    same = {"attention_k_eq_v": True, "num_global_key_value_heads": 1}
    made = (("", "q8_0", none), ("", "keys-as-values", none | same), ("Unified", "q8_0", {}))
    for unified, name, own in made:
        model = "gemma4_unified_assistant" if unified else "gemma4_assistant"
        config = assistants.config(model, base | own, backbone_hidden_size=64)
        inputs = assistants.inputs(config, f"gguf.{name}", 1, 9, None)
        kind = every("Q8_0" if name == "q8_0" else "Q4_0")
        path, head = f"gguf/{model}/{name}", f"Gemma4{unified}AssistantForCausalLM"
        yield GgufCase(path, head, config, inputs, kind, within=assistants.reads_another_model)


def t5() -> Iterator[GgufCase]:
    """T5 as it was first published and as of release 1.1, its relatives, and its encoder alone."""
    base: dict[str, Any] = {"vocab_size": 61, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 3, "num_decoder_layers": 2}
    base |= {"num_heads": 4, "relative_attention_num_buckets": 8, "decoder_start_token_id": 0}
    written = text_batch(61, (6, 4), "right")
    inputs = batch() | {"decoder_input_ids": written["input_ids"], "decoder_attention_mask": written["attention_mask"]}
    gated = {"feed_forward_proj": "gated-gelu"}
    own = {"tie_word_embeddings": False, "added": {"lm_head.weight": (61, 32)}}
    head = {"head": "ForConditionalGeneration", "inputs": inputs}
    yield case("t5", "q8_0", "T5", every("Q8_0"), base, **head)
    yield case("t5", "v1-1", "T5", every("Q4_0"), base, **head, **gated, **own)
    yield case("mt5", "q8_0", "MT5", every("Q8_0"), base, **head, **gated, **own)
    yield case("umt5", "q8_0", "UMT5", every("Q8_0"), base, **head, **gated, **own)
    yield case("t5", "encoder", "T5", every("Q8_0"), base, head="EncoderModel", **gated)
