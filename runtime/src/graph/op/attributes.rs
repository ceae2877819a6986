//! The attributes of operations: sizes, strides, modes, and which element-wise function.

use super::Activation;
#[cfg(doc)]
use super::Op;
use crate::codebook::Codebook;

/// The attributes of [`Op::Attention`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionOp {
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; `heads` is a multiple of it.
    pub kv_heads: usize,
    /// Multiplies the scores.
    pub scale: f64,
    /// Whether a position sees none after it.
    pub causal: bool,
    /// `c · tanh(score / c)` before the mask, where not zero.
    pub softcap: f64,
}

/// The attributes of [`Op::CachedAttention`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CachedAttentionOp {
    /// Those of the attention, which is not causal: its mask says what is seen.
    pub attention: AttentionOp,
    /// Which of the three results the node gives.
    pub gives: CachedAttentionResult,
}

/// The results of [`Op::CachedAttention`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachedAttentionResult {
    /// What the queries read, `[batch, q, heads·size]`.
    Output,
    /// All keys, `[past + q, batch, kv_heads, size]`.
    Keys,
    /// All values, of the same lengths.
    Values,
}

/// The attributes of [`Op::LinearAttention`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearAttentionOp {
    /// States side by side, each with keys and values of its own.
    pub heads: usize,
    /// Queries side by side; `heads` is a multiple of it.
    pub query_heads: usize,
    /// Multiplies the result.
    pub scale: f64,
    /// Whether the operand behind the state is decays.
    pub decays: bool,
    /// Whether the last operand is the delta rule's numbers.
    pub delta: bool,
    /// Which of the two results the node gives.
    pub gives: RecurrenceResult,
}

/// The attributes of [`Op::SelectiveScan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectiveScanOp {
    /// Runs of neighbouring channels that share B and C.
    pub groups: usize,
    /// Which of the two results the node gives.
    pub gives: RecurrenceResult,
}

/// The results of an operation with a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecurrenceResult {
    /// What is read at each position.
    Output,
    /// The state behind the last position.
    State,
}

/// The attributes of [`Op::Lstm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LstmOp {
    /// The width of the hidden state of one direction.
    pub hidden_size: usize,
    /// Whether a second direction goes from the last position to the first.
    pub bidirectional: bool,
    /// Which of the three results the node gives.
    pub gives: LstmResult,
}

/// The results of [`Op::Lstm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LstmResult {
    /// The hidden state at each position, `[sequence, directions, batch, hidden]`.
    Output,
    /// The hidden state behind the last position, `[directions, batch, hidden]`.
    Hidden,
    /// The cell state behind the last position, `[directions, batch, hidden]`.
    Cell,
}

/// The attributes of [`Op::Glu`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GluOp {
    /// [`Activation::Silu`], [`Activation::QuickGelu`] or [`Activation::Gelu`].
    pub act: Activation,
    /// Whether factors stand before gates, where one operand holds both.
    pub factors_first: bool,
}

/// The attributes of [`Op::TopK`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopKOp {
    /// How many are selected.
    pub count: usize,
    /// Which of the two results the node gives.
    pub gives: TopKResult,
}

/// The results of [`Op::TopK`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopKResult {
    /// The largest elements.
    Values,
    /// Where along the last axis they are, in 64-bit integers.
    Indices,
}

/// The attributes of [`Op::ExpertLinear`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpertLinearOp {
    /// Whether the weights lie the other way, `[in, out]`.
    pub transposed: bool,
    /// Where weights are in blocks of a few bits, each is codes and scales, and what else this says, as
    /// [`Contrib::MatMulNBits`](super::Contrib::MatMulNBits) takes them.
    pub quantized: Option<ExpertBlocks>,
}

/// How the weights of experts are quantized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpertBlocks {
    /// Bits and groups.
    pub blocks: BlockOp,
    /// Whether zero points come behind the scales.
    pub zero_points: bool,
    /// Whether what is added to each weight of a block comes behind the scales.
    pub offsets: bool,
    /// How many experts one weight holds, row after row, where it is of all of them.
    pub batch: Option<usize>,
}

/// The attributes of [`Op::CausalConv`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CausalConvOp {
    /// From one element of a window to the next.
    pub dilation: usize,
    /// Whether SiLU is applied to the result.
    pub silu: bool,
    /// Which of the two results the node gives.
    pub gives: RecurrenceResult,
}

/// The attributes of [`Op::Conv`] and [`Op::ConvTranspose`], by spatial axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvOp {
    /// The lengths of the kernel.
    pub kernel: Vec<usize>,
    /// From one window to the next.
    pub stride: Vec<usize>,
    /// Zeros before and after.
    pub padding: Vec<(usize, usize)>,
    /// From one element of a window to the next.
    pub dilation: Vec<usize>,
    /// Independent groups of channels.
    pub groups: usize,
}

/// The attributes of [`Op::Pool`], by spatial axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolOp {
    /// [`Reduction::Max`] or [`Reduction::Mean`].
    pub by: Reduction,
    /// The lengths of a window.
    pub kernel: Vec<usize>,
    /// From one window to the next.
    pub stride: Vec<usize>,
    /// Elements before and after, which count in means.
    pub padding: Vec<(usize, usize)>,
}

/// The attributes of [`Op::Resize`]; the reference is `torch.nn.functional.interpolate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResizeOp {
    /// How to fill in between.
    pub by: Interpolation,
    /// Whether the corners' centres stay where they are, not the corners.
    pub align_corners: bool,
}

/// How [`Op::Resize`] fills in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum Interpolation {
    Nearest,
    Bilinear,
    Bicubic,
}

/// What [`Op::Pad`] puts around.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PadMode {
    /// A number.
    Constant(f32),
    /// What is there, mirrored without the edge.
    Reflect,
    /// The edge.
    Edge,
}

/// The blocks of quantized weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockOp {
    /// Bits of a code.
    pub bits: usize,
    /// How many elements share a scale.
    pub group: usize,
    /// What codes are places in, where they are no numbers: operators of the runtime's own take these.
    pub codebook: Option<Codebook>,
    /// Whether what scales of 256 such codes are multiplied with follows the scales.
    pub outer: bool,
}

/// The attributes of `com.microsoft.MatMulNBits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatMulNBitsOp {
    /// The weight's blocks.
    pub blocks: BlockOp,
    /// 0 for x as it is; 4 where kernels may round it to 8 bits, by blocks.
    pub accuracy_level: i64,
    /// Whether zero points follow the scales; `2^(bits − 1)` is zero otherwise.
    pub zero_points: bool,
    /// Whether a bias comes last.
    pub bias: bool,
}

/// The attributes of `com.microsoft.MoE`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoeOp {
    /// How many experts are selected for a row.
    pub selected: usize,
    /// The activation function.
    pub act: Activation,
    /// Whether every second result of the first layer is a factor of what the activation function gives of the one before.
    pub gated: bool,
    /// What gates are multiplied by before their sigmoid.
    pub alpha: f32,
    /// What is added to what they are factors of.
    pub beta: f32,
    /// The most that gates are, and that these are away from 0.
    pub limit: Option<f32>,
    /// Whether a layer's biases follow its weights.
    pub biases: [bool; 2],
}

/// The attributes of [`Op::Rotary`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RotaryOp {
    /// Heads.
    pub heads: usize,
    /// How much of each head is rotated, from its beginning.
    pub width: usize,
    /// Whether pairs are neighbours, not half a width apart.
    pub interleaved: bool,
}

/// Element-wise operations on two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Pow,
    Mod,
    Min,
    Max,
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    And,
    Or,
}

impl Binary {
    /// Whether the result is a truth value.
    pub fn compares(self) -> bool {
        matches!(self, Self::Equal | Self::Less | Self::LessOrEqual | Self::Greater | Self::GreaterOrEqual)
    }

    /// The ONNX operator.
    pub fn onnx(self) -> &'static str {
        match self {
            Self::Add => "Add",
            Self::Sub => "Sub",
            Self::Mul => "Mul",
            Self::Div => "Div",
            Self::Pow => "Pow",
            Self::Mod => "Mod",
            Self::Min => "Min",
            Self::Max => "Max",
            Self::Equal => "Equal",
            Self::Less => "Less",
            Self::LessOrEqual => "LessOrEqual",
            Self::Greater => "Greater",
            Self::GreaterOrEqual => "GreaterOrEqual",
            Self::And => "And",
            Self::Or => "Or",
        }
    }
}

/// Element-wise operations on one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum Unary {
    Abs,
    Ceil,
    Cos,
    Erf,
    Exp,
    Floor,
    Log,
    Neg,
    Not,
    Reciprocal,
    Round,
    Sigmoid,
    Sign,
    Sin,
    Softplus,
    Sqrt,
    Tanh,
}

impl Unary {
    /// The ONNX operator.
    pub fn onnx(self) -> &'static str {
        match self {
            Self::Abs => "Abs",
            Self::Ceil => "Ceil",
            Self::Cos => "Cos",
            Self::Erf => "Erf",
            Self::Exp => "Exp",
            Self::Floor => "Floor",
            Self::Log => "Log",
            Self::Neg => "Neg",
            Self::Not => "Not",
            Self::Reciprocal => "Reciprocal",
            Self::Round => "Round",
            Self::Sigmoid => "Sigmoid",
            Self::Sign => "Sign",
            Self::Sin => "Sin",
            Self::Softplus => "Softplus",
            Self::Sqrt => "Sqrt",
            Self::Tanh => "Tanh",
        }
    }
}

/// How [`Op::Reduce`] folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum Reduction {
    Sum,
    Mean,
    Max,
    Min,
}

impl PoolOp {
    /// The ONNX operator.
    pub fn name(&self) -> &'static str {
        if self.by == Reduction::Max { "MaxPool" } else { "AveragePool" }
    }
}
