//! Each operation as an ONNX operator.

use super::experts::{WEFT, expert_linear};
use super::{Printer, Written, cast};
use crate::Result;
use crate::graph::Activation;
use crate::graph::{
    AttentionOp, BlockOp, Contrib, ConvOp, Dim, Dtype, Interpolation, LinearAttentionOp, Node, Op, PadMode,
    PoolOp, Reduction, ResizeOp,
};
use crate::lower::passes::glu::sharpness;
use crate::lower::passes::resize::CUBIC;
use crate::onnx::Attribute;

const MICROSOFT: &str = "com.microsoft";

impl Printer<'_> {
    /// What is written for an operation.
    pub(super) fn written(&mut self, node: &Node, operands: &[&str]) -> Result<Written> {
        let result = self.tensor(node.output);
        let mut written = Written {
            domain: "",
            operator: node.op.name(),
            operands: operands.iter().map(|&operand| operand.to_owned()).collect(),
            attributes: vec![],
        };
        let more = &mut written.operands;
        written.attributes = match &node.op {
            Op::Binary(_) | Op::Unary(_) | Op::MatMul | Op::Where => vec![],
            Op::Linear => {
                written.operator = "Gemm";
                vec![Attribute::int("transB", 1)]
            }
            Op::Reshape => {
                more.push(self.reshape_operand(self.tensor(node.inputs[0]).shape(), result.shape())?);
                vec![]
            }
            Op::Expand => {
                more.push(self.expand_operand(self.tensor(node.inputs[0]).shape(), result.shape())?);
                vec![]
            }
            Op::Positions => {
                more.extend(self.range_operands(result)?);
                vec![]
            }
            Op::Slice { axis, start, end, step } => {
                more.extend(
                    [start, end]
                        .map(|dim| self.shape_operand(std::slice::from_ref(dim)))
                        .into_iter()
                        .collect::<Result<Vec<_>>>()?,
                );
                more.push(self.integers(&[*axis as i64]));
                if *step != 1 {
                    more.push(self.integers(&[*step as i64]));
                }
                vec![]
            }
            Op::Split { axis, lengths, .. } => {
                more.push(self.integers(&lengths.iter().map(|&n| n as i64).collect::<Vec<_>>()));
                vec![Attribute::int("axis", *axis as i64)]
            }
            Op::Tile { times } => {
                more.push(self.integers(&times.iter().map(|&n| n as i64).collect::<Vec<_>>()));
                vec![]
            }
            Op::Trilu { diagonal } => {
                if *diagonal != Dim::Fixed(0) {
                    more.push(self.scalar_length(diagonal)?);
                }
                vec![Attribute::int("upper", 1)]
            }
            Op::Clip { low, high } => {
                more.push(self.number(result.dtype(), *low));
                more.extend(high.map(|high| self.number(result.dtype(), high)));
                vec![]
            }
            Op::Pad { by, around } => {
                more.extend(self.pad_operands(*by, around, result.dtype()));
                match by {
                    PadMode::Constant(_) => vec![],
                    PadMode::Reflect => vec![Attribute::string("mode", "reflect")],
                    PadMode::Edge => vec![Attribute::string("mode", "edge")],
                }
            }
            Op::Reduce { axes, keep, .. } => {
                more.push(self.integers(&axes.iter().map(|&axis| axis as i64).collect::<Vec<_>>()));
                vec![Attribute::int("keepdims", i64::from(*keep))]
            }
            Op::CumSum { axis } => {
                let integers = self.target.integers;
                more.push(self.literal(integers, &[], super::integers(integers, &[*axis as i64])));
                vec![]
            }
            Op::Resize(op) => {
                let sizes = self.shape_operand(result.shape())?;
                more.extend([String::new(), String::new(), sizes]);
                resize(*op)
            }
            Op::GridSample { align_corners } => {
                // The mode's name is another from version 20 on.
                let mode = if self.target.opset < 20 { "bilinear" } else { "linear" };
                let corners = Attribute::int("align_corners", i64::from(*align_corners));
                vec![Attribute::string("mode", mode), Attribute::string("padding_mode", "zeros"), corners]
            }
            Op::Cast { to } => vec![cast(*to)],
            Op::Transpose { order } => vec![ints("perm", order)],
            Op::Gather { axis }
            | Op::Concat { axis }
            | Op::Softmax { axis }
            | Op::LogSoftmax { axis }
            | Op::GatherElements { axis } => vec![Attribute::int("axis", *axis as i64)],
            Op::ScatterElements => vec![Attribute::int("axis", -1)],
            Op::GatherBatched => vec![Attribute::int("batch_dims", 1)],
            Op::ArgMax { axis } => vec![Attribute::int("axis", *axis as i64), Attribute::int("keepdims", 0)],
            Op::ExpertLinear(op) => {
                written.domain = WEFT;
                written.operator = self.expert_operator(node);
                expert_linear(*op)
            }
            Op::DequantizeLinear { group, .. } => {
                let last = result.rank() - 1;
                vec![Attribute::int("axis", last as i64), Attribute::int("block_size", *group as i64)]
            }
            Op::TopK(op) => {
                more.push(self.integers(&[op.count as i64]));
                vec![Attribute::int("axis", -1)]
            }
            Op::LayerNorm { epsilon } | Op::RmsNorm { epsilon } => {
                vec![Attribute::int("axis", -1), Attribute::float("epsilon", *epsilon as f32)]
            }
            Op::BatchNorm { epsilon } | Op::InstanceNorm { epsilon } => {
                vec![Attribute::float("epsilon", *epsilon as f32)]
            }
            Op::Activate(Activation::GeluNew) => vec![Attribute::string("approximate", "tanh")],
            Op::Activate(_) => vec![],
            Op::Glu(op) => {
                written.domain = WEFT;
                let factors_first = Attribute::int("factors_first", i64::from(op.factors_first));
                let act = match sharpness(op.act) {
                    Some(alpha) => Attribute::float("alpha", alpha),
                    None => Attribute::string("activation", op.act.name()),
                };
                vec![act, factors_first]
            }
            Op::Conv(op) | Op::ConvTranspose(op) => conv(op),
            Op::Pool(op) => pool(op),
            Op::Attention(op) => {
                let by_head = self.tensor(node.inputs[0]).rank() == 4;
                attention(*op, by_head)
            }
            Op::FlashAttention(op) => {
                written.domain = WEFT;
                attention(*op, false)
            }
            Op::CachedAttention(op) => {
                written.domain = WEFT;
                attention(op.attention, false)
            }
            Op::LinearAttention(op) => {
                written.domain = MICROSOFT;
                if !op.decays && op.delta {
                    more.insert(4, String::new());
                }
                linear_attention(*op)
            }
            Op::TopKMask { count } => {
                written.domain = WEFT;
                vec![Attribute::int("count", *count as i64)]
            }
            Op::SelectiveScan(op) => {
                written.domain = WEFT;
                vec![Attribute::int("groups", op.groups as i64)]
            }
            Op::Lstm(op) => {
                // The lengths of sequences stand before the states.
                more.insert(4, String::new());
                let direction = if op.bidirectional { "bidirectional" } else { "forward" };
                vec![
                    Attribute::string("direction", direction),
                    Attribute::int("hidden_size", op.hidden_size as i64),
                ]
            }
            Op::CausalConv(op) => {
                (written.domain, written.operator) = (MICROSOFT, "CausalConvWithState");
                // The bias stands before the state.
                let bias = if more.len() == 4 { more.remove(3) } else { String::new() };
                more.insert(2, bias);
                let activation = if op.silu { "silu" } else { "none" };
                vec![
                    Attribute::int("channels_last", 1),
                    Attribute::int("dilation", op.dilation as i64),
                    Attribute::string("activation", activation),
                ]
            }
            Op::Rotary(op) => vec![
                Attribute::int("num_heads", op.heads as i64),
                Attribute::int("interleaved", i64::from(op.interleaved)),
            ],
            Op::Contrib(op) if op.codebook().is_some() => self.by_codebook(op, node, &mut written),
            Op::Contrib(op) => {
                written.domain = match op {
                    Contrib::RmsNorm { .. } => "",
                    Contrib::ConvolutionQuantized(_) => WEFT,
                    _ => MICROSOFT,
                };
                match op {
                    Contrib::MultiHeadAttention(_) if more.len() == 4 => {
                        more.splice(3..3, [String::new(), String::new()]);
                    }
                    // Zero points come fourth, an order of columns that no kernel takes right fifth, the bias sixth.
                    Contrib::MatMulNBits(op) if op.bias => {
                        let missing = if op.zero_points { 1 } else { 2 };
                        let bias = more.len() - 1;
                        more.splice(bias..bias, vec![String::new(); missing]);
                    }
                    // Biases follow the weights of each layer.
                    Contrib::Moe(op) if !op.biases[0] => more.insert(3, String::new()),
                    _ => {}
                }
                let mut attributes = contrib(op);
                if let Contrib::MatMulNBits(_) = op {
                    let width = |id| self.tensor(id).dim(-1).and_then(Dim::fixed).unwrap_or_default() as i64;
                    attributes.push(Attribute::int("K", width(node.inputs[0])));
                    attributes.push(Attribute::int("N", width(node.output)));
                }
                attributes
            }
            Op::Angles { .. } => {
                let problem = "has no operator, and no pass took its place";
                return Err(self.graph.error(node.op.name(), problem));
            }
        };
        Ok(written)
    }

    /// How many before each axis, then how many after, and a number to put there.
    fn pad_operands(&mut self, by: PadMode, around: &[(usize, usize)], dtype: Dtype) -> Vec<String> {
        let before = around.iter().map(|(before, _)| *before as i64);
        let counts: Vec<i64> = before.chain(around.iter().map(|(_, after)| *after as i64)).collect();
        let counts = self.integers(&counts);
        match by {
            PadMode::Constant(value) => vec![counts, self.number(dtype, value)],
            PadMode::Reflect | PadMode::Edge => vec![counts],
        }
    }
}

fn attention(op: AttentionOp, by_head: bool) -> Vec<Attribute> {
    let mut attributes = vec![Attribute::float("scale", op.scale as f32)];
    if !by_head {
        attributes.push(Attribute::int("q_num_heads", op.heads as i64));
        attributes.push(Attribute::int("kv_num_heads", op.kv_heads as i64));
    }
    if op.causal {
        attributes.push(Attribute::int("is_causal", 1));
    }
    if op.softcap != 0.0 {
        attributes.push(Attribute::float("softcap", op.softcap as f32));
    }
    attributes
}

fn linear_attention(op: LinearAttentionOp) -> Vec<Attribute> {
    let rule = match (op.decays, op.delta) {
        (false, false) => "linear",
        (true, false) => "gated",
        (false, true) => "delta",
        (true, true) => "gated_delta",
    };
    vec![
        Attribute::string("update_rule", rule),
        Attribute::int("q_num_heads", op.query_heads as i64),
        Attribute::int("kv_num_heads", op.heads as i64),
        Attribute::float("scale", op.scale as f32),
    ]
}

fn contrib(op: &Contrib) -> Vec<Attribute> {
    match op {
        Contrib::MultiHeadAttention(op) => {
            let mut attributes = vec![
                Attribute::int("num_heads", op.heads as i64),
                Attribute::float("scale", op.scale as f32),
            ];
            if op.causal {
                attributes.push(Attribute::int("unidirectional", 1));
            }
            attributes
        }
        Contrib::Gelu { .. } => vec![],
        Contrib::MatMulNBits(op) => {
            let mut attributes = blocks(op.blocks);
            attributes.push(Attribute::int("accuracy_level", op.accuracy_level));
            attributes
        }
        Contrib::GatherBlockQuantized(op) => {
            let axes = [Attribute::int("gather_axis", 0), Attribute::int("quantize_axis", 1)];
            blocks(*op).into_iter().chain(axes).collect()
        }
        Contrib::ConvolutionQuantized(op) => conv(op),
        Contrib::Moe(op) => {
            let act = match (op.act, op.gated) {
                (_, true) => "swiglu",
                (Activation::Silu, false) => "silu",
                _ => "relu",
            };
            let mut attributes = vec![
                Attribute::int("k", op.selected as i64),
                Attribute::string("activation_type", act),
                Attribute::int("normalize_routing_weights", 1),
            ];
            if op.gated {
                // gate · σ(alpha · gate) · (up + beta), of neighbours.
                attributes.extend([
                    Attribute::float("activation_alpha", op.alpha),
                    Attribute::float("activation_beta", op.beta),
                    Attribute::int("swiglu_fusion", 1),
                ]);
                attributes.extend(op.limit.map(|limit| Attribute::float("swiglu_limit", limit)));
            }
            attributes
        }
        Contrib::RmsNorm { epsilon } => {
            vec![Attribute::int("axis", -1), Attribute::float("epsilon", *epsilon as f32)]
        }
    }
}

fn blocks(op: BlockOp) -> Vec<Attribute> {
    vec![Attribute::int("bits", op.bits as i64), Attribute::int("block_size", op.group as i64)]
}

fn conv(op: &ConvOp) -> Vec<Attribute> {
    vec![
        ints("kernel_shape", &op.kernel),
        ints("strides", &op.stride),
        pads(&op.padding),
        ints("dilations", &op.dilation),
        Attribute::int("group", op.groups as i64),
    ]
}

fn pool(op: &PoolOp) -> Vec<Attribute> {
    let mut attributes =
        vec![ints("kernel_shape", &op.kernel), ints("strides", &op.stride), pads(&op.padding)];
    if op.by == Reduction::Mean {
        attributes.push(Attribute::int("count_include_pad", 1));
    }
    attributes
}

fn resize(op: ResizeOp) -> Vec<Attribute> {
    let (mode, centre) = match op.by {
        Interpolation::Nearest => ("nearest", "asymmetric"),
        Interpolation::Bilinear => ("linear", "half_pixel"),
        Interpolation::Bicubic => ("cubic", "half_pixel"),
    };
    let centre = if op.align_corners { "align_corners" } else { centre };
    let mut attributes =
        vec![Attribute::string("mode", mode), Attribute::string("coordinate_transformation_mode", centre)];
    match op.by {
        Interpolation::Nearest => attributes.push(Attribute::string("nearest_mode", "floor")),
        Interpolation::Bilinear => {}
        Interpolation::Bicubic => attributes.push(Attribute::float("cubic_coeff_a", CUBIC)),
    }
    attributes
}

fn ints(name: &str, values: &[usize]) -> Attribute {
    Attribute::ints(name, values.iter().map(|&n| n as i64).collect())
}

/// All beginnings, then all ends.
fn pads(padding: &[(usize, usize)]) -> Attribute {
    let before = padding.iter().map(|(before, _)| *before as i64);
    Attribute::ints("pads", before.chain(padding.iter().map(|(_, after)| *after as i64)).collect())
}
