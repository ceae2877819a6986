//! What each backend's graphs go through: one list of passes a backend, and what the passes are told.

use std::collections::BTreeMap;

use super::passes::{
    Pass, activation, arithmetic, attention, axes, bfloat16, cached_attention, few_axes, floats, glu,
    integers, lengths, linear, norm, precision, resize, rotary, select, share, single, spatial, types, waves,
};
use super::quantized::Kernels;
use crate::graph::{Dtype, Graph};
use crate::{Hardware, Precision};

/// What a graph is lowered to.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// What is done to the graph, in this order, before it is printed.
    pub passes: Vec<Pass>,
    /// What floating-point values are computed in.
    pub float: Dtype,
    /// What ids, masks and positions are counted in.
    pub integers: Dtype,
    /// What they are given and handed out in.
    pub integers_at_edges: Dtype,
    /// Symbols that are numbers in the lowered graph, for backends that need fixed shapes.
    pub dims: BTreeMap<String, usize>,
    /// Whether the backend needs every length to be a number.
    pub fixed_shapes: bool,
    /// ONNX's operator set.
    pub opset: i64,
    /// What runs of quantized weights as they are.
    pub kernels: Kernels,
    /// How mixtures of experts are computed.
    pub experts: Experts,
    /// Whether the backend moves unsigned bytes.
    pub bytes: bool,
    /// Whether rows of tables are looked up in the 16 bits in which these are stored, and converted then: where an engine would convert
    /// the whole table.
    pub rows_as_stored: bool,
}

/// How a backend computes mixtures of experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Experts {
    /// The selected ones alone, by the runtime's own operator.
    Selected,
    /// By products of all at once, of which the engine computes the selected ones alone where these are of a form that it knows.
    Batched,
    /// By ONNX Runtime's kernel, the selected ones alone, where the activation function is SiLU or ReLU.
    Kernel,
    /// Every expert every position, one expert after the other.
    OneByOne,
}

/// Whether a list of passes writes linear attention chunk by chunk.
fn is_chunked(passes: &[Pass]) -> bool {
    passes.contains(&LINEAR_ATTENTION)
}

impl Target {
    /// The form that runs best on a backend.
    pub fn of(hardware: Hardware, precision: Precision) -> Self {
        Self::reached(hardware, precision, hardware == Hardware::Webnn)
    }

    /// The form that runs best on a backend of ONNX Runtime Web.
    pub fn in_browser(hardware: Hardware, precision: Precision) -> Self {
        Self::reached(hardware, precision, true)
    }

    /// The same for one graph: linear attention and LSTMs need every length to be a number where no kernel computes them.
    #[must_use]
    pub fn suited(mut self, graph: &Graph) -> Self {
        self.fixed_shapes |= graph.is_recurrent() && is_chunked(&self.passes);
        self.fixed_shapes |= graph.has_lstm() && self.passes.contains(&LSTM_BY_STEPS);
        self
    }

    fn reached(hardware: Hardware, precision: Precision, in_browser: bool) -> Self {
        let float = match precision.computed_in(hardware) {
            // OpenVINO computes in a precision that it is told beside the graph, and so does the CPU in bfloat16.
            _ if hardware == Hardware::Openvino => Dtype::F32,
            Precision::Bf16 if matches!(hardware, Hardware::Cpu | Hardware::Auto) => Dtype::F32,
            Precision::F16 => Dtype::F16,
            Precision::Bf16 => Dtype::Bf16,
            _ => Dtype::F32,
        };
        // ONNX Runtime moves and copies no others on WebGPU, and in a page it leaves 64-bit integers to the CPU; WebNN has them.
        let narrow = hardware == Hardware::Webgpu;
        let integers = if narrow { Dtype::I32 } else { Dtype::I64 };
        let integers_at_edges = if narrow && in_browser { Dtype::I32 } else { Dtype::I64 };
        let (own, opset, fixed_shapes) = match hardware {
            Hardware::Cpu | Hardware::Auto => (CPU, 23, false),
            // A browser has no 64-bit integers to compute lengths with.
            Hardware::Webgpu => (WEBGPU, 21, in_browser),
            // WebNN, Core ML and the tensor processor have no lengths but numbers.
            Hardware::Webnn => (WEBNN, 21, true),
            // A page has those alone, and is linked without the passes of the rest.
            _ if cfg!(target_family = "wasm") => (CPU, 23, false),
            Hardware::Metal => (METAL, 21, true),
            Hardware::Qnn => (QNN, 21, true),
            // The newest set that every operator here has a kernel for: those of `Pad` and `Equal` end with it.
            Hardware::Cuda => (CUDA, 18, false),
            // MIGraphX documents operator sets up to 19, and compiles a graph anew for other lengths.
            Hardware::Rocm => (ROCM, 19, true),
            Hardware::Openvino => (OPENVINO, 21, false),
        };
        let mut passes = [FIRST, own, LAST].concat();
        if fixed_shapes {
            passes.insert(FIRST.len(), NEAREST_BY_GATHER);
        }
        if hardware == Hardware::Openvino && precision.computed_in(hardware) == Precision::Bf16 {
            passes.push(Pass::whole("waves as outputs", single::waves_as_outputs));
        }
        // Whether operators of the runtime's own are there, which no browser loads.
        let own_operators = cfg!(not(target_family = "wasm"))
            && !in_browser
            && matches!(hardware, Hardware::Cpu | Hardware::Auto)
            && float == Dtype::F32;
        // Other processors have no fast kernels for convolutions of 8 bits here.
        let convolutions = own_operators && cfg!(target_arch = "x86_64");
        let kernels = Kernels { codebooks: own_operators, convolutions, ..Kernels::of(hardware) };
        if own_operators {
            passes.splice(FIRST.len()..FIRST.len(), [CACHED_ATTENTION, FLASH_ATTENTION]);
            // Before activation functions are what ONNX has operators for.
            passes.insert(FIRST.len() - 1, GLU);
        } else {
            passes.splice(0..0, [SELECTIVE_SCAN, TOP_K_MASK]);
        }
        let experts = match hardware {
            _ if own_operators => Experts::Selected,
            Hardware::Openvino => Experts::Batched,
            Hardware::Cuda => Experts::Kernel,
            _ => Experts::OneByOne,
        };
        Self {
            passes,
            float,
            integers,
            integers_at_edges,
            dims: BTreeMap::new(),
            fixed_shapes,
            opset,
            kernels,
            experts,
            bytes: !matches!(hardware, Hardware::Webgpu | Hardware::Metal),
            rows_as_stored: in_browser && hardware == Hardware::Cpu,
        }
    }
}

/// What every graph begins with.
pub(super) const FIRST: &[Pass] = &[
    Pass::whole("fix lengths", lengths::fix),
    Pass::whole("drop what nothing reads", lengths::prune),
    Pass::whole("compute in the target's precision", precision::compute_in),
    Pass::each("softmax of weights in single precision", precision::softmax_of_weights),
    Pass::each("bicubic resizing in single precision", precision::cubic_resize),
    Pass::rare("bilinear samples in single precision", |rare| Some(rare.samples?.in_single)),
    Pass::each("angles by cosine and sine", rotary::angles),
    Pass::each("waves in single precision", single::waves),
    Pass::rare("linear attention in single precision", |rare| {
        Some(rare.recurrence?.linear_attention_in_single)
    }),
    Pass::each("activations by ONNX's operators", activation::by_operators),
];

/// Where the runtime's own operators are.
const CACHED_ATTENTION: Pass =
    Pass::whole("attention over a cache by CachedAttention", cached_attention::by_operator);

const FLASH_ATTENTION: Pass = Pass::each("attention by FlashAttention", attention::flash);

const GLU: Pass = Pass::whole("gated linear units by Glu", glu::by_operator);

/// ONNX Runtime's CPU kernels: what is fused stays.
const CPU: &[Pass] = &[
    LSTM_IN_SINGLE,
    Pass::each("whole heads by RotaryEmbedding", rotary::partly_by_product),
    Pass::each("attention by Attention", attention::standard),
    Pass::each("linear layers by Gemm", linear::flatten),
    Pass::whole("slices of an axis by Split", select::slices_by_split),
];

/// ONNX Runtime's CUDA kernels, of which attention, GELU and the norm have some of its own.
const CUDA: &[Pass] = &[
    CAUSAL_CONV,
    LINEAR_ATTENTION,
    LSTM_IN_SINGLE,
    Pass::each("rotation by products", rotary::by_product),
    Pass::each("attention by MultiHeadAttention", attention::multi_head),
    Pass::each("linear layers by Gemm", linear::flatten),
    Pass::each("GELU by ONNX Runtime's kernel", activation::gelu_by_kernel),
    Pass::each("RMS norm by ONNX Runtime's kernel", norm::rms_by_kernel),
    Pass::each("top-k in single precision", select::top_k_in_single),
];

/// MIGraphX, which finds attention and GELU in the plain forms itself.
const ROCM: &[Pass] =
    &[CAUSAL_CONV, LINEAR_ATTENTION, LSTM_IN_SINGLE, BFLOAT16, ROTARY, ATTENTION, LINEAR, GELU, RMS_NORM];

/// OpenVINO, which fuses the plain forms itself.
const OPENVINO: &[Pass] = &[
    Pass::each("softplus by a series", activation::softplus_by_series),
    CAUSAL_CONV,
    LINEAR_ATTENTION,
    BFLOAT16,
    Pass::each("whole quotients of multiples", arithmetic::quotients_of_multiples),
    ROTARY,
    ATTENTION,
    Pass::each("rows of linear layers on three axes", linear::rows_on_three_axes),
    LINEAR,
    GELU,
    RMS_NORM,
];

/// ONNX Runtime's WebGPU kernels.
const WEBGPU: &[Pass] = &[
    CAUSAL_CONV,
    LINEAR_ATTENTION,
    LSTM_BY_STEPS,
    Pass::each("indices of the largest by comparison", select::top_k_by_comparison),
    Pass::each("index of the largest by comparison", select::argmax_by_comparison),
    GATHER_BY_PRODUCT,
    ELEMENTS_BY_PRODUCT,
    GRID_SAMPLE,
    BFLOAT16,
    Pass::each("Or by And", select::or_by_and),
    SIGN,
    Pass::each("whole numbers by Floor", arithmetic::round_by_floor),
    LOG_SOFTMAX,
    INTEGER_DIVISION,
    TRANSPOSE_RUNS,
    FLAT_WAVES,
    Pass::each("sines and cosines by products", waves::by_products),
    Pass::each("ranges and sums of integers as numbers", types::read_as_numbers),
    Pass::each("integers moved in 32 bits", types::move_in_32_bits),
    Pass::whole("choices by products beside convolutions", types::choose_by_product),
    Pass::each("channels in fours", spatial::pad_channels),
    ROTARY,
    ATTENTION,
    LINEAR,
    GELU,
    RMS_NORM,
    JOIN_RESHAPES,
];

/// Core ML, which has floating-point arithmetic alone, and little more than the basic operators of it; it has GELU.
const METAL: &[Pass] = &[
    CAUSAL_CONV,
    LINEAR_ATTENTION,
    LSTM_BY_STEPS,
    TOP_K,
    GATHER_BY_PRODUCT,
    Pass::each("rows of each item by a product", select::rows_by_product),
    ELEMENTS_BY_PRODUCT,
    SCATTER_BY_COMPARISON,
    SIGN,
    LOG_SOFTMAX,
    BFLOAT16,
    Pass::each("logarithms of whole numbers by a table", select::logarithm_by_table),
    Pass::each("logarithms by exp", arithmetic::logarithm_by_steps),
    TRANSPOSE_RUNS,
    FLAT_WAVES,
    CUBIC_BY_PRODUCTS,
    POOL_ON_TWO_AXES,
    ROTARY,
    ATTENTION,
    LINEAR,
    RMS_NORM,
    Pass::each("batch norm by a product", norm::batch_by_product),
    Pass::each("running sums by a product", arithmetic::cumsum_by_product),
    Pass::each("padding by Concat", arithmetic::pad_by_concat),
    Pass::each("Expand by Tile", arithmetic::expand_by_tile),
    Pass::each("the least by the greatest", arithmetic::min_by_max),
    Pass::each("powers in single precision", arithmetic::powers_in_single),
    Pass::each("signs by products", arithmetic::signs_by_product),
    JOIN_RESHAPES,
    Pass::whole("integers and booleans as numbers", floats::compute_in_floats),
];

/// The tensor processor of Qualcomm's chips.
const QNN: &[Pass] = &[
    CAUSAL_CONV,
    LINEAR_ATTENTION,
    LSTM_BY_STEPS,
    GATHER_BY_PRODUCT,
    GRID_SAMPLE,
    BFLOAT16,
    TRANSPOSE_RUNS,
    FLAT_WAVES,
    Pass::each("truth by comparison with zero", precision::truth_by_comparison),
    Pass::each("unit vectors by their largest number", norm::l2_by_largest),
    ROTARY,
    ATTENTION,
    Pass::each("long linear layers by batched MatMul", linear::long_by_batched_product),
    LINEAR,
    GELU,
    RMS_NORM,
    Pass::each("few axes to Transpose, block by block", few_axes::transpose_by_blocks),
    Pass::each("few axes to element-wise operations", few_axes::elementwise),
    Pass::each("few axes around the one of an operation", few_axes::along_an_axis),
    Pass::each("few axes to batch norm", few_axes::batch_norm),
    Pass::whole("outputs of 64-bit integers by 32 bits", few_axes::whole_outputs),
    Pass::each("what a batch shares beside an axis of 1", axes::batch_apart),
    JOIN_RESHAPES,
];

/// WebNN, of which browsers do not resize by cubic curves.
const WEBNN: &[Pass] = &[
    CAUSAL_CONV,
    LINEAR_ATTENTION,
    LSTM_BY_STEPS,
    TOP_K,
    GATHER_BY_PRODUCT,
    SCATTER_BY_COMPARISON,
    GRID_SAMPLE,
    LOG_SOFTMAX,
    INTEGER_DIVISION,
    BFLOAT16,
    TRANSPOSE_RUNS,
    FLAT_WAVES,
    CUBIC_BY_PRODUCTS,
    POOL_ON_TWO_AXES,
    ROTARY,
    ATTENTION,
    LINEAR,
    GELU,
    RMS_NORM,
    JOIN_RESHAPES,
];

/// What every graph ends with.
pub(super) const LAST: &[Pass] = &[
    Pass::whole("count in the target's integers", integers::compute_in),
    Pass::whole("share equal operations", share::equal),
    Pass::whole("drop what nothing reads", lengths::prune),
];

const TOP_K: Pass = Pass::each("top-k by ArgMax", select::top_k_by_argmax);
const GATHER_BY_PRODUCT: Pass = Pass::each("one of each item by a product", select::gather_by_product);
const ELEMENTS_BY_PRODUCT: Pass = Pass::each("elements by a product", select::elements_by_product);
const SCATTER_BY_COMPARISON: Pass =
    Pass::each("scattered elements by comparison", select::scatter_by_comparison);
const BFLOAT16: Pass = Pass::each("bfloat16 by arithmetic", bfloat16::by_arithmetic);
const TRANSPOSE_RUNS: Pass = Pass::each("few axes to Transpose", axes::transpose_runs);
const FLAT_WAVES: Pass = Pass::each("few axes to Sin and Cos", axes::flat_waves);
const JOIN_RESHAPES: Pass = Pass::whole("one Reshape of several", axes::join_reshapes);
const NEAREST_BY_GATHER: Pass = Pass::each("nearest pixels by their indices", resize::nearest_by_gather);
const GRID_SAMPLE: Pass = Pass::rare("bilinear samples by indices", |rare| Some(rare.samples?.by_gather));
const CUBIC_BY_PRODUCTS: Pass = Pass::each("bicubic resizing by products", resize::cubic_by_products);
const LOG_SOFTMAX: Pass = Pass::each("logarithms of softmax by the sum", arithmetic::log_softmax_by_sum);
const SIGN: Pass = Pass::each("sign by comparison", arithmetic::sign_by_comparison);
const INTEGER_DIVISION: Pass = Pass::each("integer division by floating point", arithmetic::integer_division);
const POOL_ON_TWO_AXES: Pass = Pass::each("pools of one axis on two", spatial::pool_on_two_axes);
const ROTARY: Pass = Pass::each("rotation by products", rotary::by_product);
const ATTENTION: Pass = Pass::each("attention by products and softmax", attention::by_products);
const LINEAR: Pass = Pass::each("linear layers by MatMul", linear::by_product);
const SELECTIVE_SCAN: Pass = Pass::rare("selective scans by linear attention", |rare| {
    Some(rare.recurrence?.selective_scan_by_linear_attention)
});
const TOP_K_MASK: Pass = Pass::rare("top-k masks by ArgMax", |rare| rare.top_k_mask_by_argmax);
const CAUSAL_CONV: Pass = Pass::rare("causal convolutions by shifted products", |rare| {
    Some(rare.recurrence?.causal_conv_by_products)
});
const LINEAR_ATTENTION: Pass =
    Pass::rare("linear attention by chunks", |rare| Some(rare.recurrence?.linear_attention_by_chunks));
const LSTM_BY_STEPS: Pass = Pass::rare("LSTM step by step", |rare| Some(rare.lstm?.by_steps));
const LSTM_IN_SINGLE: Pass = Pass::rare("LSTM in single precision", |rare| Some(rare.lstm?.in_single));
const GELU: Pass = Pass::each("GELU by erf and tanh", activation::gelu_by_operators);
const RMS_NORM: Pass = Pass::each("RMS norm by the mean of squares", norm::rms_by_operators);
