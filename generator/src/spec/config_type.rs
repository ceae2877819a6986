//! The types of fields of `config.json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The type of a field of `config.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConfigType {
    /// A count or a size.
    #[serde(rename = "usize")]
    Usize,
    /// A whole number that may be negative.
    #[serde(rename = "i64")]
    I64,
    /// A number.
    #[serde(rename = "f64")]
    F64,
    /// `true` or `false`.
    #[serde(rename = "bool")]
    Bool,
    /// A text.
    #[serde(rename = "string")]
    String,
    /// Counts or sizes.
    #[serde(rename = "[usize]")]
    Usizes,
    /// Numbers.
    #[serde(rename = "[f64]")]
    Floats,
    /// Texts.
    #[serde(rename = "[string]")]
    Strings,
    /// Truth values.
    #[serde(rename = "[bool]")]
    Bools,
    /// Whole numbers that may be negative.
    #[serde(rename = "[i64]")]
    Ints,
    /// Lists of whole numbers that may be negative.
    #[serde(rename = "[[i64]]")]
    IntLists,
    /// Lists of counts or sizes.
    #[serde(rename = "[[usize]]")]
    UsizeLists,
    /// Heights and widths.
    #[serde(rename = "[pair]")]
    Pairs,
    /// Stages of layers that have each a height and a width.
    #[serde(rename = "[[pair]]")]
    PairLists,
    /// Stages of depthwise separable convolutions: `[kernel_size, in_channels, out_channels, stride, squeeze_excitation]` each.
    #[serde(rename = "[[conv_block]]")]
    ConvBlocks,
    /// Stages of layers that are each a list of numbers; truth values among these are 0 and 1.
    #[serde(rename = "[[numbers]]")]
    NumberLists,
    /// Bins of heads of metric depth, each a map of `name`, `n_bins`, `min_depth` and `max_depth`; there is no default.
    #[serde(rename = "[depth_bins]")]
    DepthBins,
    /// Relative attention biases, each a map of `type` and what differs from its class's defaults; there is no default.
    #[serde(rename = "[relative_bias]")]
    RelativeBiases,
    /// Height and width: one number for both, a list of two, or a map of the two names.
    #[serde(rename = "pair")]
    Pair,
    /// One length for height and width: one number, or a list or a map of two that are equal.
    #[serde(rename = "edge")]
    Edge,
    /// The period of a repeating pattern: a number, or the text that is repeated, one letter a layer.
    #[serde(rename = "period")]
    Period,
    /// Ids of tokens: one number or several.
    #[serde(rename = "tokens")]
    Tokens,
    /// States of a stack of layers: one number or several, from 0, or from -1 downwards.
    #[serde(rename = "layers")]
    Layers,
    /// A ratio of whole numbers, as a text: `3/8`; has no default.
    #[serde(rename = "ratio")]
    Ratio,
    /// A size of each layer: one number for all, or a list of one for each.
    #[serde(rename = "per_layer")]
    PerLayer,
    /// Fields that differ in some layers, by the index of the layer; has no default.
    #[serde(rename = "layer_overrides")]
    LayerOverrides,
    /// Words: `a|b` or a list.
    #[serde(rename = "words")]
    Words,
    /// Rotary position embeddings, as `rope_parameters` or as older files have them; the default is `rope_theta`.
    #[serde(rename = "rope")]
    Rope,
    /// Rotary position embeddings for each kind of layer; the default is `rope_theta`.
    #[serde(rename = "ropes")]
    Ropes,
    /// An activation function, by the reference's name for it.
    #[serde(rename = "activation")]
    Activation,
    /// The kind of a feed-forward layer: an activation function's name, behind `gated-` where it is gated.
    #[serde(rename = "feed_forward")]
    FeedForward,
    /// Counts or sizes by name, or by another number; the default is a list of pairs.
    #[serde(rename = "counts")]
    Counts,
    /// Class names by index, as `id2label` gives them; `num_labels()` counts them.
    #[serde(rename = "labels")]
    Labels,
}
