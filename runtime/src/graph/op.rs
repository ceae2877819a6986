//! What a node computes. Every operation has one meaning here; each backend's lowering picks its form.

mod attributes;

pub use self::attributes::*;
use super::{Activation, Dim, Dtype};
use crate::codebook::Codebook;

/// An operation with its attributes.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// `x · wᵀ + b`: x `[…, in]`, w `[out, in]`, optional b `[out]`.
    Linear,
    /// Rows (or slices) of the first operand, by the ids in the second.
    Gather {
        /// The axis that the ids index.
        axis: usize,
    },
    /// Layer normalisation over the last axis: x, scale, optional shift.
    LayerNorm {
        /// Added to the variance.
        epsilon: f64,
    },
    /// Root-mean-square normalisation over the last axis: x, scale.
    RmsNorm {
        /// Added to the mean square.
        epsilon: f64,
    },
    /// Scaled dot-product attention: q `[batch, q, heads·size]`, k and v `[batch, k, kv_heads·size]` or
    /// `[batch, kv_heads, k, size]`, optional mask broadcastable to `[batch, heads, q, k]` (bool: attend; f32: added).
    Attention(AttentionOp),
    /// The same by the runtime's own operator, which is not causal: mask of numbers.
    FlashAttention(AttentionOp),
    /// Scaled dot-product attention that appends keys and values to a cache: q `[batch, q, heads·size]`, new k and v
    /// `[batch, q, kv_heads·size]`, past keys and values `[past, batch, kv_heads, size]`, optional mask (f32: added) broadcastable to
    /// `[batch, heads, q, past + q]`. It gives one of its three results; other nodes on the same operands give the others.
    CachedAttention(CachedAttentionOp),
    /// Linear attention: q `[batch, sequence, query_heads·key]`, k `[batch, sequence, heads·key]`, v
    /// `[batch, sequence, heads·value]`, state `[batch, heads, key, value]`, and by its attributes decays and the delta
    /// rule's numbers. It gives one of its two results; another node on the same operands gives the other.
    LinearAttention(LinearAttentionOp),
    /// Selective scan: u and ∆ before its softplus `[batch, sequence, width]`, A `[width, state]`, B and C `[batch, sequence, groups·state]`, D
    /// `[width]`, state `[batch, width, state, 1]`, optional z `[batch, sequence, width]`. It gives one of its two results; another
    /// node on the same operands gives the other.
    SelectiveScan(SelectiveScanOp),
    /// A layer of long short-term memory, gates in ONNX's order (input, output, forget, cell): x `[sequence, batch, in]`, weights of x
    /// `[directions, 4·hidden, in]` and of the hidden state `[directions, 4·hidden, hidden]`, biases `[directions, 8·hidden]`, hidden and
    /// cell state `[directions, batch, hidden]`. It gives one of its three results; other nodes on the same operands give the others.
    Lstm(LstmOp),
    /// Causal depthwise convolution: x `[batch, sequence, channels]`, weight `[channels, 1, kernel]`, what came before
    /// `[batch, (kernel − 1)·dilation, channels]`, optional bias `[channels]`. It gives one of its two results, of which the other is
    /// what comes before the next positions; another node on the same operands gives the other.
    CausalConv(CausalConvOp),
    /// An activation function, element by element.
    Activate(Activation),
    /// Gated linear unit, `act(gates) · factors`: both of one shape, or halves of one operand `[…, 2·width]`.
    Glu(GluOp),
    /// Element-wise with broadcasting.
    Binary(Binary),
    /// Element-wise.
    Unary(Unary),
    /// Batched matrix product.
    MatMul,
    /// Normalised exponentials along an axis.
    Softmax {
        /// The axis that sums to one.
        axis: usize,
    },
    /// Logarithms of [`Op::Softmax`].
    LogSoftmax {
        /// The axis.
        axis: usize,
    },
    /// The same elements in another shape: the node's output shape.
    Reshape,
    /// Axes in another order.
    Transpose {
        /// Output axis `i` is input axis `order[i]`.
        order: Vec<usize>,
    },
    /// Operands one after the other.
    Concat {
        /// The axis that grows.
        axis: usize,
    },
    /// A range of one axis.
    Slice {
        /// The axis.
        axis: usize,
        /// The first index.
        start: Dim,
        /// The index after the last.
        end: Dim,
        /// From one index to the next.
        step: usize,
    },
    /// An axis in parts, one after the other. It gives one of them; other nodes on the same operand give the others.
    Split {
        /// The axis.
        axis: usize,
        /// Their lengths.
        lengths: Vec<usize>,
        /// Which of them the node gives.
        gives: usize,
    },
    /// Convolution: x `[batch, in, …]`, w `[out, in / groups, …]`, optional b `[out]`.
    Conv(ConvOp),
    /// Transposed convolution: x `[batch, in, …]`, w `[in, out / groups, …]`, optional b `[out]`.
    ConvTranspose(ConvOp),
    /// Batch normalisation by the running statistics: x `[batch, channels, …]`, scale, shift, mean, variance.
    BatchNorm {
        /// Added to the variance.
        epsilon: f64,
    },
    /// Normalises each channel of each item: x `[batch, channels, …]`, scale, shift.
    InstanceNorm {
        /// Added to the variance.
        epsilon: f64,
    },
    /// Folds windows of the axes behind batch and channels.
    Pool(PoolOp),
    /// Another resolution of the last two axes: the node's output shape.
    Resize(ResizeOp),
    /// Bilinear samples: x `[batch, channels, height, width]` at a grid `[batch, rows, columns, 2]` of places across and down, from
    /// -1 to 1; beyond the edge are zeros.
    GridSample {
        /// Whether -1 and 1 are the corners' centres, not the corners.
        align_corners: bool,
    },
    /// Elements around those there are.
    Pad {
        /// What the new ones hold.
        by: PadMode,
        /// How many before and after, by axis.
        around: Vec<(usize, usize)>,
    },
    /// Sums of all elements up to each, along an axis.
    CumSum {
        /// The axis.
        axis: usize,
    },
    /// The first index of the largest element along an axis, which disappears.
    ArgMax {
        /// The axis.
        axis: usize,
    },
    /// Values of codes in blocks along the last axis, `(code − zero) · scale`: codes `[…, in · bits / 8]` and zeros, of which the first
    /// are in the low bits of a byte, with scales `[…, in / group]`.
    DequantizeLinear {
        /// Bits of a code: 4 or 8.
        bits: usize,
        /// How many codes share a scale.
        group: usize,
    },
    /// Linear layers of selected experts: x `[rows, selected, in]`, or `[rows, 1, in]` for all that are selected, the experts'
    /// indices `[rows, selected]`, then the weights of all experts: each `[out, in]`, or all in one tensor
    /// `[experts, out, in]`; to `[rows, selected, out]`.
    ExpertLinear(ExpertLinearOp),
    /// The largest elements along the last axis, in descending order, of equal ones the first. It gives one of its two
    /// results; another node on the same operand gives the other.
    TopK(TopKOp),
    /// Whether an element is one of the largest along the last axis, of equal ones the first; none that is as low as numbers go.
    TopKMask {
        /// How many are selected.
        count: usize,
    },
    /// Elements of the first operand at the indices along an axis that the second holds.
    GatherElements {
        /// The axis that the indices are of.
        axis: usize,
    },
    /// The first operand with the elements of the third at the indices along the last axis that the second holds; where one
    /// is held several times, any of those.
    ScatterElements,
    /// One position of the second axis for each item: x `[batch, length, …]`, index `[batch, 1]`.
    GatherBatched,
    /// `scaling · cos(position · frequency)`, or of the sine: positions `[…]` to `[…, frequencies]`, in single precision
    /// whatever the rest is computed in.
    Angles {
        /// [`Unary::Cos`] or [`Unary::Sin`].
        of: Unary,
        /// Radians from one position to the next.
        frequencies: Vec<f32>,
        /// Multiplies the result.
        scaling: f64,
    },
    /// Rotary position embedding: x `[batch, sequence, heads·size]`, cos and sin
    /// `[batch, sequence, width/2]`.
    Rotary(RotaryOp),
    /// Repeats axes of length 1 up to the node's output shape.
    Expand,
    /// 0, 1, 2 … as 64-bit integers: the node's output shape, one axis.
    Positions,
    /// Another element type.
    Cast {
        /// The new type.
        to: Dtype,
    },
    /// Picks from the second or third operand by the first.
    Where,
    /// Folds axes away.
    Reduce {
        /// How.
        by: Reduction,
        /// Which.
        axes: Vec<usize>,
        /// Whether they stay, with length 1.
        keep: bool,
    },
    /// At least `low`, and at most `high` where there is such a bound.
    Clip {
        /// The least.
        low: f32,
        /// The most.
        high: Option<f32>,
    },
    /// The whole repeated along each axis.
    Tile {
        /// How often, by axis.
        times: Vec<usize>,
    },
    /// A matrix with zeros below a diagonal.
    Trilu {
        /// How far to the right of the first column the diagonal begins.
        diagonal: Dim,
    },
    /// A fused kernel of ONNX Runtime's own.
    Contrib(Contrib),
}

/// Fused kernels of ONNX Runtime's own, beyond ONNX's operators.
#[derive(Clone, Debug, PartialEq)]
pub enum Contrib {
    /// `com.microsoft.MultiHeadAttention`: q, k, v and an additive mask of four axes; as many key as query heads.
    MultiHeadAttention(AttentionOp),
    /// `com.microsoft.Gelu`, and `com.microsoft.FastGelu` by the hyperbolic tangent.
    Gelu {
        /// Whether by the hyperbolic tangent.
        tanh: bool,
    },
    /// `com.microsoft.MatMulNBits`: x `[…, in]`, codes `[out, blocks, group · bits / 8]`, scales `[out, blocks]`, then zero points
    /// `[out, ⌈blocks · bits / 8⌉]` and a bias `[out]` where it says so.
    MatMulNBits(MatMulNBitsOp),
    /// `com.microsoft.GatherBlockQuantized`: codes `[rows, width · bits / 8]`, ids `[…]`, scales `[rows, blocks]`, then zero points
    /// `[rows, ⌈blocks · bits / 8⌉]` where there are any.
    GatherBlockQuantized(BlockOp),
    /// [`Op::Conv`] of a weight in 8 bits, by an operator of the runtime's own: x, codes, scales `[out]`, sums of codes `[out]`, and
    /// perhaps a bias `[out]`.
    ConvolutionQuantized(ConvOp),
    /// `com.microsoft.MoE`: x `[rows, in]`, logits `[rows, experts]`, by whose softmax over the selected experts outputs are summed, and
    /// weights `[experts, width, in]` (with gates `[experts, 2 · width, in]`, in turns) and `[experts, in, width]`, each perhaps with
    /// biases `[experts, width]` (or `2 · width`, in turns) and `[experts, in]` behind it.
    Moe(MoeOp),
    /// `SimplifiedLayerNormalization`, as [`Op::RmsNorm`].
    RmsNorm {
        /// Added to the mean square.
        epsilon: f64,
    },
}

impl Op {
    /// The name used in errors and in the names of nodes.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Linear => "Linear",
            Self::Gather { .. } => "Gather",
            Self::LayerNorm { .. } => "LayerNormalization",
            Self::RmsNorm { .. } => "RMSNormalization",
            Self::Attention(_) => "Attention",
            Self::FlashAttention(_) => "FlashAttention",
            Self::CachedAttention(_) => "CachedAttention",
            Self::LinearAttention(_) => "LinearAttention",
            Self::SelectiveScan(_) => "SelectiveScan",
            Self::Lstm(_) => "LSTM",
            Self::CausalConv(_) => "CausalConv",
            Self::Activate(act) => act.name(),
            Self::Glu(_) => "Glu",
            Self::Binary(op) => op.onnx(),
            Self::Unary(op) => op.onnx(),
            Self::MatMul => "MatMul",
            Self::Softmax { .. } => "Softmax",
            Self::LogSoftmax { .. } => "LogSoftmax",
            Self::Conv(_) => "Conv",
            Self::ConvTranspose(_) => "ConvTranspose",
            Self::BatchNorm { .. } => "BatchNormalization",
            Self::InstanceNorm { .. } => "InstanceNormalization",
            Self::Pool(op) => op.name(),
            Self::Resize(_) => "Resize",
            Self::GridSample { .. } => "GridSample",
            Self::Pad { .. } => "Pad",
            Self::CumSum { .. } => "CumSum",
            Self::ArgMax { .. } => "ArgMax",
            Self::TopK(_) => "TopK",
            Self::TopKMask { .. } => "TopKMask",
            Self::ExpertLinear(_) => "ExpertLinear",
            Self::GatherElements { .. } => "GatherElements",
            Self::ScatterElements => "ScatterElements",
            Self::GatherBatched => "GatherND",
            Self::Angles { of, .. } => of.onnx(),
            Self::Rotary(_) => "RotaryEmbedding",
            Self::Reshape => "Reshape",
            Self::Transpose { .. } => "Transpose",
            Self::Concat { .. } => "Concat",
            Self::Slice { .. } => "Slice",
            Self::Split { .. } => "Split",
            Self::Expand => "Expand",
            Self::Positions => "Range",
            Self::Cast { .. } => "Cast",
            Self::Where => "Where",
            Self::Reduce { by, .. } => match by {
                Reduction::Sum => "ReduceSum",
                Reduction::Mean => "ReduceMean",
                Reduction::Max => "ReduceMax",
                Reduction::Min => "ReduceMin",
            },
            Self::Clip { .. } => "Clip",
            Self::Tile { .. } => "Tile",
            Self::DequantizeLinear { .. } => "DequantizeLinear",
            Self::Trilu { .. } => "Trilu",
            Self::Contrib(Contrib::MultiHeadAttention(_)) => "MultiHeadAttention",
            Self::Contrib(Contrib::Gelu { tanh: false }) => "Gelu",
            Self::Contrib(Contrib::Gelu { tanh: true }) => "FastGelu",
            Self::Contrib(Contrib::MatMulNBits(_)) => "MatMulNBits",
            Self::Contrib(Contrib::GatherBlockQuantized(_)) => "GatherBlockQuantized",
            Self::Contrib(Contrib::ConvolutionQuantized(_)) => "ConvolutionQuantized",
            Self::Contrib(Contrib::Moe(_)) => "MoE",
            Self::Contrib(Contrib::RmsNorm { .. }) => "SimplifiedLayerNormalization",
        }
    }
}

impl Contrib {
    /// The blocks of the weight that it reads, where that is quantized.
    pub(crate) fn blocks(&self) -> Option<BlockOp> {
        match self {
            Self::MatMulNBits(op) => Some(op.blocks),
            Self::GatherBlockQuantized(blocks) => Some(*blocks),
            Self::MultiHeadAttention(_)
            | Self::Gelu { .. }
            | Self::ConvolutionQuantized(_)
            | Self::Moe(_)
            | Self::RmsNorm { .. } => None,
        }
    }

    /// What codes of that weight are places in: the runtime's own operators take these.
    pub(crate) fn codebook(&self) -> Option<Codebook> {
        self.blocks()?.codebook
    }
}
