//! Convolutions of quantized weights: by the runtime's own operator, or by what codes stand for on x rounded as that rounds it.

use super::parts::Weights;
use super::{Kernels, dequantized};
use crate::Result;
use crate::graph::{Binary, Contrib, ConvOp, Dtype, Graph, Op, Operation, Reduction, Tensor, Unary};
use crate::quantization::panels::Panels;
use crate::weights::{Bytes, WeightData};

/// How a convolution's weight runs.
pub(super) enum Convolution {
    /// Codes in panels, scales and sums of codes.
    Codes([Tensor; 3]),
    /// The values of its codes.
    Values,
}

impl Convolution {
    /// Of a weight that is quantized by rows, in so many groups.
    pub(super) fn of(
        graph: &mut Graph,
        located: &mut Vec<WeightData>,
        index: usize,
        groups: usize,
        kernels: &Kernels,
    ) -> Result<Self> {
        let weight = located[index].clone();
        let Bytes::Quantized(blocks) = &weight.bytes else { return Ok(Self::Values) };
        if kernels.emulated {
            located[index] = dequantized(&weight, blocks, Dtype::F32)?;
            return Ok(Self::Values);
        }
        let [out, channels] = [weight.shape[0], weight.shape[1]];
        let made = Panels::of(blocks, [out, channels, weight.shape[2..].iter().product()], groups)?;
        let name = graph.weights[index].name.clone();
        let numbers = |values: &[f32]| Bytes::memory(Dtype::F32.encoded(values));
        let (length, sums, scales) = (made.codes.len(), numbers(&made.sums), numbers(&made.scales));
        let mut weights = Weights { graph, located };
        Ok(Self::Codes([
            weights.add(&format!("{name}.panels"), Dtype::U8, &[length], Bytes::memory(made.codes)),
            weights.add(&format!("{name}.scales"), Dtype::F32, &[out], scales),
            weights.add(&format!("{name}.sums"), Dtype::F32, &[out], sums),
        ]))
    }

    /// The convolution of x by it.
    pub(super) fn written(
        &self,
        g: &mut Graph,
        it: &Operation<'_>,
        op: &ConvOp,
        x: &Tensor,
        bias: &[Tensor],
    ) -> Result<Tensor> {
        let (shape, dtype) = (it.result.shape().to_vec(), it.result.dtype());
        match self {
            Self::Codes(parts) => {
                let operands: Vec<&Tensor> = std::iter::once(x).chain(parts).chain(bias).collect();
                let op = Op::Contrib(Contrib::ConvolutionQuantized(op.clone()));
                Ok(g.node(op, &operands, dtype, shape))
            }
            Self::Values => {
                let x = rounded(g, x)?;
                let operands: Vec<&Tensor> = [&x, &it.operands[1]].into_iter().chain(bias).collect();
                Ok(g.node(Op::Conv(op.clone()), &operands, dtype, shape))
            }
        }
    }
}

/// x as the operator rounds it: image by image to steps of the 255th part of its range and zero, of which zero is one.
fn rounded(g: &mut Graph, x: &Tensor) -> Result<Tensor> {
    let axes: Vec<usize> = (1..x.rank()).collect();
    let none = g.scalar(0.0);
    let least = g.reduce(Reduction::Min, x, &axes, true)?;
    let least = g.binary(Binary::Min, &least, &none)?;
    let greatest = g.reduce(Reduction::Max, x, &axes, true)?;
    let greatest = g.binary(Binary::Max, &greatest, &none)?;
    let range = g.sub(&greatest, &least)?;
    let step = g.scale(&range, 1.0 / 255.0)?;
    let smallest = g.scalar(f32::MIN_POSITIVE);
    let step = g.binary(Binary::Max, &step, &smallest)?;
    let below = g.div(&least, &step)?;
    let below = g.unary(Unary::Round, &below);
    let codes = g.div(x, &step)?;
    let codes = g.sub(&codes, &below)?;
    let codes = g.unary(Unary::Round, &codes);
    let codes = g.clip(&codes, 0.0, 255.0)?;
    let codes = g.add(&codes, &below)?;
    g.mul(&codes, &step)
}

#[cfg(test)]
mod tests;
