//! Names of tensors: in files, and in checkpoints; `{}` is the number of a layer, and in the latter's second place that of
//! an expert, of which files hold all in one tensor.

/// (in files, in checkpoints), both without `.weight` and `.bias` where those are the same. `{stack}` is the letter of a stack
/// of layers; behind ` with ` is a tensor that a layer has for the name to be its.
pub type Names = [(&'static str, &'static str)];

/// Of a decoder as Llama's, but for its MLP and norms.
pub const DECODER: &Names = &[
    ("token_embd", "model.embed_tokens"),
    ("output_norm", "model.norm"),
    ("output", "lm_head"),
    ("blk.{}.attn_q", "model.layers.{}.self_attn.q_proj"),
    ("blk.{}.attn_k", "model.layers.{}.self_attn.k_proj"),
    ("blk.{}.attn_v", "model.layers.{}.self_attn.v_proj"),
    ("blk.{}.attn_qkv", "model.layers.{}.self_attn.qkv_proj"),
    ("blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"),
    ("blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_norm"),
    ("blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_norm"),
];

/// Of norms before attention and MLP.
pub const PRE_NORMS: &Names = &[
    ("blk.{}.attn_norm", "model.layers.{}.input_layernorm"),
    ("blk.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"),
];

/// Of norms before attention and MLP where others follow these (Gemma 2); with [`POST_NORMS`].
pub const BEFORE_NORMS: &Names = &[
    ("blk.{}.attn_norm", "model.layers.{}.input_layernorm"),
    ("blk.{}.ffn_norm", "model.layers.{}.pre_feedforward_layernorm"),
];

/// Of norms behind attention and MLP (Gemma 2, OLMo 2).
pub const POST_NORMS: &Names = &[
    ("blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm"),
    ("blk.{}.post_ffw_norm", "model.layers.{}.post_feedforward_layernorm"),
];

/// Of norms before attention and MLP, the latter of which files name for what it follows (Seed-OSS, GLM-4.5).
pub const POST_ATTENTION_NORM: &Names = &[
    ("blk.{}.attn_norm", "model.layers.{}.input_layernorm"),
    ("blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm"),
];

/// Of norms before and after attention and MLP, under other names (GLM-4).
pub const GLM4_NORMS: &Names = &[
    ("blk.{}.attn_norm", "model.layers.{}.input_layernorm"),
    ("blk.{}.post_attention_norm", "model.layers.{}.post_self_attn_layernorm"),
    ("blk.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"),
    ("blk.{}.post_ffw_norm", "model.layers.{}.post_mlp_layernorm"),
];

/// Of norms of queries and keys behind rotary position embeddings (HunYuan).
pub const HUNYUAN_NORMS: &Names = &[
    ("blk.{}.attn_q_norm", "model.layers.{}.self_attn.query_layernorm"),
    ("blk.{}.attn_k_norm", "model.layers.{}.self_attn.key_layernorm"),
];

/// Of a gated MLP.
pub const GATED_MLP: &Names = &[
    ("blk.{}.ffn_gate", "model.layers.{}.mlp.gate_proj"),
    ("blk.{}.ffn_up", "model.layers.{}.mlp.up_proj"),
    ("blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"),
];

/// Of a mixture of gated experts.
pub const EXPERTS: &Names = &[
    ("blk.{}.ffn_gate_inp", "model.layers.{}.mlp.gate"),
    ("blk.{}.ffn_gate_exps", "model.layers.{}.mlp.experts.{}.gate_proj"),
    ("blk.{}.ffn_up_exps", "model.layers.{}.mlp.experts.{}.up_proj"),
    ("blk.{}.ffn_down_exps", "model.layers.{}.mlp.experts.{}.down_proj"),
];

/// Of an expert that all tokens share, with a gate of its own (Qwen2-MoE).
pub const SHARED_EXPERT: &Names = &[
    ("blk.{}.ffn_gate_inp_shexp", "model.layers.{}.mlp.shared_expert_gate"),
    ("blk.{}.ffn_gate_shexp", "model.layers.{}.mlp.shared_expert.gate_proj"),
    ("blk.{}.ffn_up_shexp", "model.layers.{}.mlp.shared_expert.up_proj"),
    ("blk.{}.ffn_down_shexp", "model.layers.{}.mlp.shared_expert.down_proj"),
];

/// Of experts that all tokens share (DeepSeek).
pub const SHARED_EXPERTS: &Names = &[
    ("blk.{}.ffn_gate_shexp", "model.layers.{}.mlp.shared_experts.gate_proj"),
    ("blk.{}.ffn_up_shexp", "model.layers.{}.mlp.shared_experts.up_proj"),
    ("blk.{}.ffn_down_shexp", "model.layers.{}.mlp.shared_experts.down_proj"),
];

/// Of an MLP that all tokens share (HunYuan).
pub const SHARED_MLP: &Names = &[
    ("blk.{}.ffn_gate_shexp", "model.layers.{}.mlp.shared_mlp.gate_proj"),
    ("blk.{}.ffn_up_shexp", "model.layers.{}.mlp.shared_mlp.up_proj"),
    ("blk.{}.ffn_down_shexp", "model.layers.{}.mlp.shared_mlp.down_proj"),
];

/// Of HunYuan's router.
pub const HUNYUAN_GATE: &Names = &[("blk.{}.ffn_gate_inp", "model.layers.{}.mlp.gate.wg")];

/// Of what corrects a router's scores (DeepSeek).
pub const ROUTER_BIAS: &Names =
    &[("blk.{}.exp_probs_b.bias", "model.layers.{}.mlp.gate.e_score_correction_bias")];

/// The same of ERNIE 4.5.
pub const ERNIE_BIAS: &Names =
    &[("blk.{}.exp_probs_b.bias", "model.layers.{}.mlp.moe_statics.e_score_correction_bias")];

/// Of Mixtral's experts.
pub const MIXTRAL: &Names = &[
    ("blk.{}.ffn_gate_inp", "model.layers.{}.block_sparse_moe.gate"),
    ("blk.{}.ffn_gate_exps", "model.layers.{}.block_sparse_moe.experts.{}.w1"),
    ("blk.{}.ffn_up_exps", "model.layers.{}.block_sparse_moe.experts.{}.w3"),
    ("blk.{}.ffn_down_exps", "model.layers.{}.block_sparse_moe.experts.{}.w2"),
];

/// Of Phi-2.
pub const PHI: &Names = &[
    ("output_norm", "model.final_layernorm"),
    ("blk.{}.attn_output", "model.layers.{}.self_attn.dense"),
    ("blk.{}.ffn_up", "model.layers.{}.mlp.fc1"),
    ("blk.{}.ffn_down", "model.layers.{}.mlp.fc2"),
];

/// Of Phi-3's MLP, whose gate and first projection are one tensor.
pub const FUSED_MLP: &Names = &[
    ("blk.{}.ffn_up", "model.layers.{}.mlp.gate_up_proj"),
    ("blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"),
];

/// Of an MLP without a gate.
pub const UNGATED_MLP: &Names =
    &[("blk.{}.ffn_up", "model.layers.{}.mlp.up_proj"), ("blk.{}.ffn_down", "model.layers.{}.mlp.down_proj")];

/// Of StarCoder2's MLP.
pub const STARCODER2: &Names =
    &[("blk.{}.ffn_up", "model.layers.{}.mlp.c_fc"), ("blk.{}.ffn_down", "model.layers.{}.mlp.c_proj")];

/// Of GPT-2.
pub const GPT2: &Names = &[
    ("token_embd", "transformer.wte"),
    ("position_embd", "transformer.wpe"),
    ("output_norm", "transformer.ln_f"),
    ("output", "lm_head"),
    ("blk.{}.attn_norm", "transformer.h.{}.ln_1"),
    ("blk.{}.attn_qkv", "transformer.h.{}.attn.c_attn"),
    ("blk.{}.attn_output", "transformer.h.{}.attn.c_proj"),
    ("blk.{}.ffn_norm", "transformer.h.{}.ln_2"),
    ("blk.{}.ffn_up", "transformer.h.{}.mlp.c_fc"),
    ("blk.{}.ffn_down", "transformer.h.{}.mlp.c_proj"),
];

/// Of GPT-NeoX.
pub const GPT_NEOX: &Names = &[
    ("token_embd", "gpt_neox.embed_in"),
    ("output_norm", "gpt_neox.final_layer_norm"),
    ("output", "lm_head"),
    ("blk.{}.attn_norm", "gpt_neox.layers.{}.input_layernorm"),
    ("blk.{}.ffn_norm", "gpt_neox.layers.{}.post_attention_layernorm"),
    ("blk.{}.attn_qkv", "gpt_neox.layers.{}.attention.query_key_value"),
    ("blk.{}.attn_output", "gpt_neox.layers.{}.attention.dense"),
    ("blk.{}.ffn_up", "gpt_neox.layers.{}.mlp.dense_h_to_4h"),
    ("blk.{}.ffn_down", "gpt_neox.layers.{}.mlp.dense_4h_to_h"),
];

/// Of BLOOM.
pub const BLOOM: &Names = &[
    ("token_embd", "transformer.word_embeddings"),
    ("token_embd_norm", "transformer.word_embeddings_layernorm"),
    ("output_norm", "transformer.ln_f"),
    ("output", "lm_head"),
    ("blk.{}.attn_norm", "transformer.h.{}.input_layernorm"),
    ("blk.{}.ffn_norm", "transformer.h.{}.post_attention_layernorm"),
    ("blk.{}.attn_qkv", "transformer.h.{}.self_attention.query_key_value"),
    ("blk.{}.attn_output", "transformer.h.{}.self_attention.dense"),
    ("blk.{}.ffn_up", "transformer.h.{}.mlp.dense_h_to_4h"),
    ("blk.{}.ffn_down", "transformer.h.{}.mlp.dense_4h_to_h"),
];

/// Of MPT.
pub const MPT: &Names = &[
    ("token_embd", "transformer.wte"),
    ("output_norm", "transformer.norm_f"),
    ("output", "lm_head"),
    ("blk.{}.attn_norm", "transformer.blocks.{}.norm_1"),
    ("blk.{}.attn_qkv", "transformer.blocks.{}.attn.Wqkv"),
    ("blk.{}.attn_output", "transformer.blocks.{}.attn.out_proj"),
    ("blk.{}.ffn_norm", "transformer.blocks.{}.norm_2"),
    ("blk.{}.ffn_up", "transformer.blocks.{}.ffn.up_proj"),
    ("blk.{}.ffn_down", "transformer.blocks.{}.ffn.down_proj"),
];

/// Of BERT, as its base model has them.
pub const BERT: &Names = &[
    ("token_embd", "embeddings.word_embeddings"),
    ("position_embd", "embeddings.position_embeddings"),
    ("token_types", "embeddings.token_type_embeddings"),
    ("token_embd_norm", "embeddings.LayerNorm"),
    ("blk.{}.attn_q", "encoder.layer.{}.attention.self.query"),
    ("blk.{}.attn_k", "encoder.layer.{}.attention.self.key"),
    ("blk.{}.attn_v", "encoder.layer.{}.attention.self.value"),
    ("blk.{}.attn_output", "encoder.layer.{}.attention.output.dense"),
    ("blk.{}.attn_output_norm", "encoder.layer.{}.attention.output.LayerNorm"),
    ("blk.{}.ffn_up", "encoder.layer.{}.intermediate.dense"),
    ("blk.{}.ffn_down", "encoder.layer.{}.output.dense"),
    ("blk.{}.layer_output_norm", "encoder.layer.{}.output.LayerNorm"),
];

/// Of both Mambas.
pub const MAMBAS: &Names = &[
    ("token_embd", "backbone.embeddings"),
    ("output_norm", "backbone.norm_f"),
    ("output", "lm_head"),
    ("blk.{}.attn_norm", "backbone.layers.{}.norm"),
    ("blk.{}.ssm_in", "backbone.layers.{}.mixer.in_proj"),
    ("blk.{}.ssm_conv1d", "backbone.layers.{}.mixer.conv1d"),
    ("blk.{}.ssm_a", "backbone.layers.{}.mixer.A_log"),
    ("blk.{}.ssm_d", "backbone.layers.{}.mixer.D"),
    ("blk.{}.ssm_out", "backbone.layers.{}.mixer.out_proj"),
];

/// Of Mamba and FalconMamba, whose norms of ∆, B and C have no weights.
pub const MAMBA: &Names = &[
    ("blk.{}.ssm_x", "backbone.layers.{}.mixer.x_proj"),
    ("blk.{}.ssm_dt", "backbone.layers.{}.mixer.dt_proj"),
];

/// Of Mamba 2.
pub const MAMBA2: &Names = &[
    ("blk.{}.ssm_dt.bias", "backbone.layers.{}.mixer.dt_bias"),
    ("blk.{}.ssm_norm", "backbone.layers.{}.mixer.norm"),
];

/// Of LFM2, over a decoder's; older files name the last norm otherwise.
pub const LFM2: &Names = &[
    ("token_embd_norm", "model.embedding_norm"),
    ("output_norm", "model.embedding_norm"),
    ("blk.{}.attn_norm", "model.layers.{}.operator_norm"),
    ("blk.{}.ffn_norm", "model.layers.{}.ffn_norm"),
    ("blk.{}.attn_output", "model.layers.{}.self_attn.out_proj"),
    ("blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_layernorm"),
    ("blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_layernorm"),
    ("blk.{}.shortconv.conv", "model.layers.{}.conv.conv"),
    ("blk.{}.shortconv.in_proj", "model.layers.{}.conv.in_proj"),
    ("blk.{}.shortconv.out_proj", "model.layers.{}.conv.out_proj"),
    ("blk.{}.ffn_gate", "model.layers.{}.feed_forward.w1"),
    ("blk.{}.ffn_up", "model.layers.{}.feed_forward.w3"),
    ("blk.{}.ffn_down", "model.layers.{}.feed_forward.w2"),
];

/// Of gpt-oss, over a decoder's.
pub const GPT_OSS: &Names = &[
    ("blk.{}.attn_sinks.weight", "model.layers.{}.self_attn.sinks"),
    ("blk.{}.ffn_gate_inp", "model.layers.{}.mlp.router"),
    ("blk.{}.ffn_down_exps.bias", "model.layers.{}.mlp.experts.down_proj_bias"),
];

/// Of Granite's router, and what all tokens share.
pub const GRANITE_MOE: &Names = &[
    ("blk.{}.ffn_gate_inp", "model.layers.{}.block_sparse_moe.router.layer"),
    ("blk.{}.ffn_down_shexp", "model.layers.{}.shared_mlp.output_linear"),
];

/// Of multi-head latent attention, over a decoder's.
pub const LATENT: &Names = &[
    ("blk.{}.attn_q_a", "model.layers.{}.self_attn.q_a_proj"),
    ("blk.{}.attn_q_a_norm", "model.layers.{}.self_attn.q_a_layernorm"),
    ("blk.{}.attn_q_b", "model.layers.{}.self_attn.q_b_proj"),
    ("blk.{}.attn_kv_a_mqa", "model.layers.{}.self_attn.kv_a_proj_with_mqa"),
    ("blk.{}.attn_kv_a_norm", "model.layers.{}.self_attn.kv_a_layernorm"),
    ("blk.{}.attn_kv_b", "model.layers.{}.self_attn.kv_b_proj"),
];

/// Of Falcon.
pub const FALCON: &Names = &[
    ("token_embd", "transformer.word_embeddings"),
    ("output_norm", "transformer.ln_f"),
    ("output", "lm_head"),
    ("blk.{}.attn_qkv", "transformer.h.{}.self_attention.query_key_value"),
    ("blk.{}.attn_output", "transformer.h.{}.self_attention.dense"),
    ("blk.{}.ffn_up", "transformer.h.{}.mlp.dense_h_to_4h"),
    ("blk.{}.ffn_down", "transformer.h.{}.mlp.dense_4h_to_h"),
];

/// Of the one norm before Falcon's attention and MLP.
pub const FALCON_NORM: &Names = &[("blk.{}.attn_norm", "transformer.h.{}.input_layernorm")];

/// Of the two norms of Falcon 40B.
pub const FALCON_NORMS: &Names =
    &[("blk.{}.attn_norm", "transformer.h.{}.ln_mlp"), ("blk.{}.attn_norm_2", "transformer.h.{}.ln_attn")];

/// Of LFM2's experts.
pub const LFM2_EXPERTS: &Names = &[
    ("blk.{}.ffn_gate_inp", "model.layers.{}.feed_forward.gate"),
    ("blk.{}.exp_probs_b.bias", "model.layers.{}.feed_forward.expert_bias"),
    ("blk.{}.ffn_gate_exps", "model.layers.{}.feed_forward.experts.{}.w1"),
    ("blk.{}.ffn_up_exps", "model.layers.{}.feed_forward.experts.{}.w3"),
    ("blk.{}.ffn_down_exps", "model.layers.{}.feed_forward.experts.{}.w2"),
];

/// Of Mamba 2 within a decoder.
pub const MAMBA2_MIXER: &Names = &[
    ("blk.{}.ssm_in", "model.layers.{}.mamba.in_proj"),
    ("blk.{}.ssm_conv1d", "model.layers.{}.mamba.conv1d"),
    ("blk.{}.ssm_dt.bias", "model.layers.{}.mamba.dt_bias"),
    ("blk.{}.ssm_a", "model.layers.{}.mamba.A_log"),
    ("blk.{}.ssm_d", "model.layers.{}.mamba.D"),
    ("blk.{}.ssm_norm", "model.layers.{}.mamba.norm"),
    ("blk.{}.ssm_out", "model.layers.{}.mamba.out_proj"),
];

/// Of the MLP of Granite's hybrids that have no experts.
pub const GRANITE_DENSE: &Names = &[("blk.{}.ffn_down", "model.layers.{}.shared_mlp.output_linear")];

/// Of a gated delta rule (Qwen3-Next); `ssm_in` in files of older converters.
pub const DELTA_RULE: &Names = &[
    ("blk.{}.ssm_in", "model.layers.{}.linear_attn.in_proj_qkvz"),
    ("blk.{}.ssm_ba", "model.layers.{}.linear_attn.in_proj_ba"),
    ("blk.{}.ssm_conv1d", "model.layers.{}.linear_attn.conv1d"),
    ("blk.{}.ssm_dt.bias", "model.layers.{}.linear_attn.dt_bias"),
    ("blk.{}.ssm_a", "model.layers.{}.linear_attn.A_log"),
    ("blk.{}.ssm_norm", "model.layers.{}.linear_attn.norm"),
    ("blk.{}.ssm_out", "model.layers.{}.linear_attn.out_proj"),
];

/// Of NomicBERT, whose queries, keys and values are one tensor as published.
pub const NOMIC: &Names = &[
    ("token_embd", "embeddings.word_embeddings"),
    ("token_types", "embeddings.token_type_embeddings"),
    ("token_embd_norm", "embeddings.LayerNorm"),
    ("blk.{}.attn_qkv", "layers.{}.attn.Wqkv"),
    ("blk.{}.attn_output", "layers.{}.self_attn.o_proj"),
    ("blk.{}.attn_output_norm", "layers.{}.post_attention_layernorm"),
    ("blk.{}.ffn_up", "layers.{}.mlp.up_proj"),
    ("blk.{}.ffn_gate", "layers.{}.mlp.gate_proj"),
    ("blk.{}.ffn_down", "layers.{}.mlp.down_proj"),
    ("blk.{}.layer_output_norm", "layers.{}.post_mlp_layernorm"),
];
