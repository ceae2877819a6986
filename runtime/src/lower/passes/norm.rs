//! The forms of normalisation.

use crate::Result;
use crate::graph::{Contrib, Dim, Dtype, Graph, Op, Operation, Reduction, Tensor, Unary};

/// Root-mean-square normalisation by ONNX Runtime's own kernel.
pub(in crate::lower) fn rms_by_kernel(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::RmsNorm { epsilon }, [x, scale]) = (it.op, it.operands) else { return Ok(None) };
    let op = Op::Contrib(Contrib::RmsNorm { epsilon: *epsilon });
    Ok(Some(g.node(op, &[x, scale], x.dtype(), x.shape().to_vec())))
}

/// Root-mean-square normalisation by the mean of the squares: `x / √(mean(x²) + ε) · scale`.
pub(in crate::lower) fn rms_by_operators(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::RmsNorm { epsilon }, [x, scale]) = (it.op, it.operands) else { return Ok(None) };
    // Squares of ordinary hidden states do not fit into half precision.
    let wide = if x.dtype() == Dtype::F16 { g.cast(x, Dtype::F32) } else { x.clone() };
    let squares = g.mul(&wide, &wide)?;
    let mean = g.reduce(Reduction::Mean, &squares, &[x.rank().saturating_sub(1)], true)?;
    let epsilon = g.number(wide.dtype(), *epsilon as f32);
    let sum = g.add(&mean, &epsilon)?;
    let root = g.unary(Unary::Sqrt, &sum);
    let normed = g.div(&wide, &root)?;
    let normed = g.cast(&normed, x.dtype());
    Ok(Some(g.mul(&normed, scale)?))
}

/// Batch normalisation by a product and a sum; what they are with is computed from the weights alone.
pub(in crate::lower) fn batch_by_product(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::BatchNorm { epsilon }, [x, scale, shift, mean, variance]) = (it.op, it.operands) else {
        return Ok(None);
    };
    let epsilon = g.number(x.dtype(), *epsilon as f32);
    let variance = g.add(variance, &epsilon)?;
    let deviation = g.unary(Unary::Sqrt, &variance);
    let factor = g.div(scale, &deviation)?;
    let mean = g.mul(mean, &factor)?;
    let shift = g.sub(shift, &mean)?;
    let mut by_channel = vec![Dim::Fixed(1); x.rank()];
    by_channel[1] = scale.shape()[0].clone();
    let factor = g.reshape(&factor, by_channel.clone())?;
    let shift = g.reshape(&shift, by_channel)?;
    let scaled = g.mul(x, &factor)?;
    Ok(Some(g.add(&scaled, &shift)?))
}
