//! Operations by basic ones, for backends that have little more than arithmetic; lengths are numbers there.

use crate::Result;
use crate::graph::{Binary, Constant, Dim, Dtype, Graph, Op, Operation, PadMode, Reduction, Tensor, Unary};

/// Sums up to each element as products with a triangle of ones; integers are summed in single precision, exact below
/// 2²⁴.
pub(in crate::lower) fn cumsum_by_product(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::CumSum { axis }, [x]) = (it.op, it.operands) else { return Ok(None) };
    let (axis, last) = (*axis, x.rank() - 1);
    let numbers = if x.dtype().is_float() { x.clone() } else { g.cast(x, Dtype::F32) };
    // The axis is the one that a product sums over.
    let mut order: Vec<usize> = (0..x.rank()).collect();
    order.swap(axis, last);
    let swapped = |g: &mut Graph, x: &Tensor| match axis == last {
        true => Ok(x.clone()),
        false => g.transpose(x, &order),
    };
    let numbers = swapped(g, &numbers)?;
    let one = g.number(numbers.dtype(), 1.0);
    let count = x.shape()[axis].clone();
    let ones = g.expand(&one, vec![count.clone(), count])?;
    let triangle = g.trilu(&ones, Dim::Fixed(0));
    let sums = match numbers.rank() {
        1 => {
            let shape = numbers.shape().to_vec();
            g.node(Op::MatMul, &[&numbers, &triangle], numbers.dtype(), shape)
        }
        _ => g.matmul(&numbers, &triangle)?,
    };
    let sums = swapped(g, &sums)?;
    Ok(Some(g.cast(&sums, x.dtype())))
}

/// A number put around by joining it on.
pub(in crate::lower) fn pad_by_concat(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Pad { by: PadMode::Constant(value), around }, [x]) = (it.op, it.operands) else {
        return Ok(None);
    };
    let Some(mut shape) = x.shape().iter().map(Dim::fixed).collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let mut padded = x.clone();
    for (axis, &(before, after)) in around.iter().enumerate() {
        let filled = |g: &mut Graph, count: usize| {
            let mut dims = shape.clone();
            dims[axis] = count;
            (count > 0).then(|| full(g, x.dtype(), &dims, *value))
        };
        let [first, last] = [before, after].map(|count| filled(g, count));
        let parts: Vec<&Tensor> =
            [first.as_ref(), Some(&padded), last.as_ref()].into_iter().flatten().collect();
        padded = g.concat(&parts, axis)?;
        shape[axis] += before + after;
    }
    Ok(Some(padded))
}

/// One number everywhere, as a literal.
fn full(g: &mut Graph, dtype: Dtype, dims: &[usize], value: f32) -> Tensor {
    let count = dims.iter().product();
    let literal = match dtype.is_float() {
        true => Constant::F32(vec![value; count]),
        false => Constant::I64(vec![value as i64; count]),
    };
    g.filled(dtype, dims.iter().map(|&n| Dim::Fixed(n)).collect(), literal)
}

/// Axes of length 1 repeated as a whole.
pub(in crate::lower) fn expand_by_tile(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Expand, [x]) = (it.op, it.operands) else { return Ok(None) };
    let to = it.result.shape();
    if to.iter().any(|dim| dim.fixed().is_none()) {
        return Ok(None);
    }
    let mut apart = vec![Dim::Fixed(1); to.len() - x.rank()];
    apart.extend_from_slice(x.shape());
    let whole = if to.len() == x.rank() { x.clone() } else { g.reshape(x, apart.clone())? };
    let grown = apart.iter().zip(to).map(|(one, dim)| match one == dim {
        true => 1,
        false => dim.fixed().unwrap_or(1),
    });
    let times = grown.collect();
    Ok(Some(g.tile(&whole, times)))
}

/// The least by the greatest of what is negated.
pub(in crate::lower) fn min_by_max(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    match (it.op, it.operands) {
        (Op::Binary(Binary::Min), [a, b]) => {
            let (a, b) = (negated(g, a)?, negated(g, b)?);
            let most = g.binary(Binary::Max, &a, &b)?;
            negated(g, &most).map(Some)
        }
        (Op::Reduce { by: Reduction::Min, axes, keep }, [x]) => {
            let x = negated(g, x)?;
            let most = g.reduce(Reduction::Max, &x, axes, *keep)?;
            negated(g, &most).map(Some)
        }
        _ => Ok(None),
    }
}

/// Powers in single precision.
pub(in crate::lower) fn powers_in_single(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    match (it.op, it.operands) {
        (Op::Binary(Binary::Pow), [a, b]) if matches!(a.dtype(), Dtype::F16 | Dtype::Bf16) => {
            let [a, b] = [a, b].map(|x| g.cast(x, Dtype::F32));
            let power = g.binary(Binary::Pow, &a, &b)?;
            Ok(Some(g.cast(&power, it.result.dtype())))
        }
        _ => Ok(None),
    }
}

/// Signs by products, and rounding down by rounding up.
pub(in crate::lower) fn signs_by_product(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Unary(op @ (Unary::Neg | Unary::Abs | Unary::Floor)), [x]) = (it.op, it.operands) else {
        return Ok(None);
    };
    let minus = negated(g, x)?;
    Ok(Some(match op {
        Unary::Abs => g.binary(Binary::Max, x, &minus)?,
        Unary::Floor => {
            let up = g.unary(Unary::Ceil, &minus);
            negated(g, &up)?
        }
        _ => minus,
    }))
}

fn negated(g: &mut Graph, x: &Tensor) -> Result<Tensor> {
    let minus = match x.dtype() {
        dtype if dtype.is_float() => g.number(dtype, -1.0),
        _ => g.integer(-1),
    };
    g.mul(x, &minus)
}
