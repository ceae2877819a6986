//! The fields and changes that many architectures share.

use super::{Architecture, Change, Model, Names, Rope, Source, When};
use Source::{Has, HeadDim, Key, Lacks, Rows};

pub(super) type Fields = [(&'static str, Source)];
pub(super) type Changes = [(&'static str, Change)];

/// What every decoder's configuration has.
pub(super) const SIZES: &Fields = &[
    ("vocab_size", Rows("token_embd.weight")),
    ("hidden_size", Key(&["embedding_length"])),
    ("num_hidden_layers", Source::Layers),
    ("num_attention_heads", Key(&["attention.head_count"])),
    ("max_position_embeddings", Key(&["context_length"])),
    ("tie_word_embeddings", Lacks("output.weight")),
];

pub(super) const INTERMEDIATE: &Fields = &[("intermediate_size", Key(&["feed_forward_length"]))];
pub(super) const KV_HEADS: &Fields =
    &[("num_key_value_heads", Key(&["attention.head_count_kv", "attention.head_count"]))];
pub(super) const HEADS: &Fields = &[("head_dim", HeadDim)];
pub(super) const RMS: &Fields = &[("rms_norm_eps", Key(&["attention.layer_norm_rms_epsilon"]))];
pub(super) const GRANITE: &Fields = &[
    ("embedding_multiplier", Key(&["embedding_scale"])),
    ("residual_multiplier", Key(&["residual_scale"])),
    ("attention_multiplier", Key(&["attention.scale"])),
    ("logits_scaling", Key(&["logit_scale"])),
];
pub(super) const LAYER_NORM: &Fields = &[("layer_norm_eps", Key(&["attention.layer_norm_epsilon"]))];
pub(super) const BIASES: &Fields =
    &[("attention_bias", Has("blk.0.attn_q.bias")), ("mlp_bias", Has("blk.0.ffn_down.bias"))];
pub(super) const WINDOW: &Fields = &[("sliding_window", Source::Window)];
pub(super) const LAYER_TYPES: &Fields = &[("layer_types", Source::LayerTypes)];
pub(super) const ROTARY: &Changes = &[
    ("attn_q.weight", Change::RotaryQueries),
    ("attn_q.bias", Change::RotaryQueries),
    ("attn_k.weight", Change::RotaryKeys),
    ("attn_k.bias", Change::RotaryKeys),
];

pub(super) const fn one(model_type: &'static str, class: &'static str) -> Model {
    Model { model_type, class, when: When::Always }
}

/// A decoder without changes, of one model.
pub(super) const fn plain(
    name: &'static str,
    models: &'static [Model],
    fields: &'static [&'static Fields],
    tensors: &'static [&'static Names],
) -> Architecture {
    Architecture {
        name,
        models,
        fields,
        within: None,
        rope: Rope::Heads,
        tensors,
        changes: &[],
        numbers: &[],
        splits: &[],
    }
}
