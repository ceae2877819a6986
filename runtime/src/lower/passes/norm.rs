//! The forms of normalisation.

use crate::Result;
use crate::graph::{Binary, Contrib, Dim, Dtype, Graph, Op, Operation, Reduction, Tensor, Unary};

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

/// Unit vectors where numbers are those of half precision, whatever type they have: of what is divided by its largest number first,
/// for squares of small numbers round to nothing.
pub(in crate::lower) fn l2_by_largest(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Binary(Binary::Div), [x, length]) = (it.op, it.operands) else { return Ok(None) };
    let Some(axes) = length_of(g, x, length) else { return Ok(None) };
    let sizes = g.unary(Unary::Abs, x);
    let largest = g.reduce(Reduction::Max, &sizes, &axes, true)?;
    let x = g.div(x, &largest)?;
    let squares = g.mul(&x, &x)?;
    let sum = g.reduce(Reduction::Sum, &squares, &axes, true)?;
    let length = g.unary(Unary::Sqrt, &sum);
    Ok(Some(g.div(&x, &length)?))
}

/// The axes that a value is the length of a vector along: the root of the sum of its squares.
fn length_of(g: &Graph, x: &Tensor, length: &Tensor) -> Option<Vec<usize>> {
    let root = g.made_by(length).filter(|node| node.op == Op::Unary(Unary::Sqrt))?;
    let sum = g.made_by(g.tensor(root.inputs[0]))?;
    let Op::Reduce { by: Reduction::Sum, axes, keep: true } = &sum.op else { return None };
    let squares = g.made_by(g.tensor(sum.inputs[0]))?;
    let is_square = squares.op == Op::Binary(Binary::Mul) && squares.inputs == [x.id; 2];
    is_square.then(|| axes.clone())
}
