//! The architectures that GGUF files and this library share: how each names its configuration and its tensors, and what the
//! converter of `llama.cpp` did to them.
//!
//! Reference: `convert_hf_to_gguf.py` and `gguf-py`'s `tensor_mapping.py` of llama.cpp, `GGUF_CONFIG_MAPPING` and
//! `TENSOR_PROCESSORS` of transformers.

mod bailing;
mod bitnet;
mod dbrx;
mod decoders;
mod encoders;
mod fields;
mod fused_qkv;
mod gemma;
mod hybrids;
mod kimi;
mod latent;
mod lightning;
mod llama4;
mod mixtures;
mod names;
mod sinks;
mod sliding_gates;
mod sliding_mixtures;
mod splits;
mod stacks;
mod states;
mod t5;

pub use names::Names;

/// An architecture, by the name that files have for it.
#[derive(Debug)]
pub struct Architecture {
    /// `general.architecture`.
    pub name: &'static str,
    /// The models that are stored as it; the first that fits where none is asked for.
    pub models: &'static [Model],
    /// The fields of `config.json`.
    pub fields: &'static [&'static [(&'static str, Source)]],
    /// The object of `config.json` that these fields and [`Architecture::rope`] are in, and the fields beside it; none where it
    /// is not nested.
    pub within: Option<(&'static str, &'static [(&'static str, Source)])>,
    /// What the configuration says of rotary position embeddings.
    pub rope: Rope,
    /// The names of its tensors.
    pub tensors: &'static [&'static Names],
    /// What was done to which tensors, by the file's names.
    pub changes: &'static [(&'static str, Change)],
    /// Tensors of the checkpoint that are a number of each layer, and lists of the metadata.
    pub numbers: &'static [Listed],
    /// Tensors of the checkpoint that files hold in several, or that lie another way there.
    pub splits: &'static [Split],
}

/// Tensors of the checkpoint of one element, one of each layer, which files have as a list in their metadata.
#[derive(Debug)]
pub struct Listed {
    /// The whole name in the checkpoint, with `{}` for the number of a layer.
    pub name: &'static str,
    /// The key, whose name does not begin with the architecture's.
    pub key: &'static str,
    /// The shape in the checkpoint.
    pub shape: &'static [usize],
}

/// A tensor of the checkpoint that the converter split, or turned.
#[derive(Debug)]
pub struct Split {
    /// Its whole name in the checkpoint, with `{}` for the number of a layer.
    pub name: &'static str,
    /// The file's tensors: `[items, rows, columns]`, where items are experts or heads; of biases `[items, rows]`.
    pub parts: &'static [Part],
    /// How rows of the parts follow each other.
    pub rows: Arrangement,
    /// How the checkpoint lays it out.
    pub layout: Layout,
}

/// A tensor that the converter made of another's rows.
#[derive(Debug)]
pub struct Part {
    /// Its whole name in files, with `{}` for the number of a layer.
    pub name: &'static str,
    /// Whether each item is `[columns, rows]` in the file.
    pub turned: bool,
}

/// How rows of several tensors follow each other in the checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    /// Those of an item that the first part has, then those of the next.
    Behind,
    /// One of each part in turn.
    InTurn,
    /// Those of each key head of a gated delta rule: its query, its key, and the values and gates that share it. The first part
    /// has all queries, then all keys, then all values, and the second all gates.
    KeyHeads,
}

/// How a checkpoint lays out what the converter split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `[items, rows, columns]`; the other way where it is of blocks, in which form kernels take the experts of a layer.
    Stacked,
    /// `[items, columns, rows]`.
    Turned,
    /// `[items · rows, columns]`.
    Flat,
    /// `[rows, columns]`, of parts `[rows, columns]` without items.
    Rows,
}

impl Part {
    /// A part with its rows as they were.
    pub const fn of(name: &'static str) -> Self {
        Self { name, turned: false }
    }
}

/// A model that is stored as an architecture.
#[derive(Debug)]
pub struct Model {
    /// `model_type` of its `config.json`.
    pub model_type: &'static str,
    /// Its class with the head that files hold.
    pub class: &'static str,
    /// Which files are of it.
    pub when: When,
}

/// Which files of an architecture are of a model.
#[derive(Debug)]
pub enum When {
    /// All.
    Always,
    /// Those with this key.
    Has(&'static str),
    /// Those without.
    Lacks(&'static str),
    /// Those whose key is true.
    Holds(&'static str),
    /// Those whose key is this number.
    Is(&'static str, u64),
    /// Those with this tensor.
    HasTensor(&'static str),
    /// Those without.
    LacksTensor(&'static str),
    /// Those with a vocabulary of this kind.
    Tokenizer(&'static str),
    /// Those whose texts are split in this way before tokens are merged.
    TextSplit(&'static str),
}

/// Where a field of `config.json` comes from; keys are without the architecture's name.
#[derive(Debug)]
pub enum Source {
    /// The first of these keys that the file has; it must have one.
    Key(&'static [&'static str]),
    /// The first of these keys, or nothing.
    Maybe(&'static [&'static str]),
    /// The first of these keys, or null.
    OrNull(&'static [&'static str]),
    /// A key's value, or this, as JSON, where the file has no such key.
    Or(&'static str, &'static str),
    /// A key's number, so many times; nothing where there is none.
    Times(&'static str, f64),
    /// The first of some keys less that of another.
    Difference(&'static [&'static str], &'static str),
    /// How many layers there are, without those of multi-token prediction behind them.
    Layers,
    /// The window of layers whose attention slides; null where the file has none, or one of zero.
    Window,
    /// Whether the file has this tensor.
    Has(&'static str),
    /// Whether the file lacks this tensor.
    Lacks(&'static str),
    /// The rows of this tensor.
    Rows(&'static str),
    /// The rows of this tensor, or nothing where the file has none.
    MaybeRows(&'static str),
    /// The positions of a model whose first ones are of padding: those, and as many as a text may have.
    Positions,
    /// This, as JSON.
    Fixed(&'static str),
    /// `layer_types`: which layers have a window, as the key says for each; nothing where there is no such list.
    LayerTypes,
    /// `layer_types`: as [`Source::LayerTypes`]; without a list, of so many layers the first has none, where the file has windows.
    WindowPeriod(u64),
    /// `layer_types`: layers without key heads have no attention, but this.
    KeyHeadLayers(&'static str),
    /// `mlp_layer_types`: the first layers are dense, so many as the key `leading_dense_block_count` says, and the rest sparse.
    LeadingDense,
    /// The key heads of layers that have any.
    MostKeyHeads,
    /// Whether any layer has this tensor.
    InLayers(&'static str),
    /// Whether any layer has the first of these tensors and not the second.
    WithoutInLayers(&'static str, &'static str),
    /// The layers with this tensor.
    LayersWith(&'static str),
    /// Of how many layers, one after the other, one has this tensor: more than there are where one or none has.
    PeriodOf(&'static str),
    /// The first layer with this tensor.
    OffsetOf(&'static str),
    /// A word for each layer, which is that of the first of these tensors that it has.
    LayerKinds(&'static [(&'static str, &'static str)]),
    /// The largest number that a key has for a layer.
    Most(&'static str),
    /// The smallest.
    Least(&'static str),
    /// Whether a key's numbers differ by layer.
    Differs(&'static str),
    /// A key's number, or those of all layers.
    Each(&'static str),
    /// A key's numbers, where the file has one for each layer.
    ForLayers(&'static str),
    /// The base of rotary position embeddings of each layer that has them, as the key says for each, else 0; nothing where
    /// there is no such list.
    LayerBases(&'static str),
    /// The shares of a normal distribution below a key's numbers, one for each layer; nothing where there is none.
    NormalShares(&'static str),
    /// A key's number for the layers whose attention slides, or for the others.
    OfSliding(&'static str, bool),
    /// Whether a key is another number than this.
    IsNot(&'static str, u64),
    /// One of two, as JSON, by whether this key is true.
    Choice(&'static str, [&'static str; 2]),
    /// One of two, as JSON, by whether a key is this number.
    ByNumber(&'static str, u64, [&'static str; 2]),
    /// A key's value by that of another.
    Quotient(&'static str, &'static str),
    /// The width of a head: the key's value, or that of the embeddings by the number of heads.
    HeadDim,
    /// What queries are scaled by the root of: the width of a head, but for models of so many layers, whose embeddings are
    /// divided by their heads (Gemma's 27B).
    QueryScalar(u64),
}

/// Which parameters of rotary position embeddings a file has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rope {
    /// None: positions are learned or biases.
    Absent,
    /// Those of heads, or of a part of them.
    Heads,
    /// Those of a part of each head, which is as wide as a field of its own says (multi-head latent attention).
    Part,
    /// Those of layers with full attention, and a base of its own where attention slides.
    ByLayers(f64),
    /// As [`Rope::ByLayers`]; of heads with full attention a part turns, the frequencies of which are those of whole heads.
    Proportional,
}

/// What the converter did to a tensor, to be undone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Rows of each query head are pairs of neighbours where the checkpoint has halves.
    RotaryQueries,
    /// As [`Change::RotaryQueries`], of key heads.
    RotaryKeys,
    /// All queries, then all keys, then all values, where the checkpoint has those that share a key head together.
    SplitHeads,
    /// The rows of padding, which are the first of a table of positions, were left out.
    BehindPadding,
    /// One was added to every value.
    PlusOne,
    /// Rows became columns.
    Transposed,
    /// The only row of a matrix became a vector, in files of older releases.
    Flattened,
    /// The middle axis of a depthwise convolution's kernel, of one channel, was taken out, or one put before the first.
    Squeezed,
    /// A vector became a matrix.
    Shaped,
    /// `A_log` became `-exp(A_log)`.
    NegativeExp,
    /// As [`Change::NegativeExp`], and a vector became columns of one number.
    NegativeExpColumn,
    /// `A_log` became `exp(A_log)`, and a vector became columns of one number.
    ExpColumn,
    /// As [`Change::NegativeExp`], of `[1, 1, heads, 1]`, of which axes of one may be left out.
    NegativeExpHeads,
}

/// The architectures of a name, which differ by what files of it hold: a file is of the first of which it is a model.
pub fn of(name: &str) -> impl Iterator<Item = &'static Architecture> {
    every().filter(move |architecture| architecture.name == name)
}

/// Architectures that files of vision-language models have, which hold the text half alone: the tower is in another file.
pub const TEXT_HALVES: &[&str] = &[
    "qwen2vl",
    "qwen3vl",
    "qwen3vlmoe",
    "qwen35",
    "qwen35moe",
    "paddleocr",
    "hunyuan_vl",
    "cogvlm",
    "deepseek2-ocr",
    "chameleon",
    "muse-glimmer",
];

/// The names of all, for messages.
pub fn all() -> Vec<&'static str> {
    let mut names: Vec<_> = every().map(|architecture| architecture.name).collect();
    // A name may have rows in several tables.
    names.sort_unstable();
    names.dedup();
    names
}

fn every() -> impl Iterator<Item = &'static Architecture> {
    let groups = [
        decoders::ALL,
        bitnet::ALL,
        fused_qkv::ALL,
        encoders::ALL,
        latent::ALL,
        mixtures::ALL,
        dbrx::ALL,
        sliding_mixtures::ALL,
        sliding_gates::ALL,
        sinks::ALL,
        stacks::ALL,
        states::ALL,
        hybrids::ALL,
        kimi::ALL,
        bailing::ALL,
        lightning::ALL,
        gemma::ALL,
        llama4::ALL,
        t5::ALL,
    ];
    groups.into_iter().flatten()
}
