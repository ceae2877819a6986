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

/// A comparison of numbers in single precision, whose truth is 1: a difference above 0 rounds up to it, however small.
pub(in crate::lower) fn compared(g: &mut Graph, op: Binary, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let exceeds = |g: &mut Graph, a: &Tensor, b: &Tensor| -> Result<Tensor> {
        let difference = g.sub(a, b)?;
        let op = Op::Clip { low: 0.0, high: Some(1.0) };
        let clipped = g.node(op, &[&difference], Dtype::F32, difference.shape().to_vec());
        Ok(g.unary(Unary::Ceil, &clipped))
    };
    let fails = match op {
        Binary::Greater => return exceeds(g, a, b),
        Binary::Less => return exceeds(g, b, a),
        Binary::GreaterOrEqual => exceeds(g, b, a)?,
        Binary::LessOrEqual => exceeds(g, a, b)?,
        _ => {
            let [above, below] = [exceeds(g, a, b)?, exceeds(g, b, a)?];
            g.add(&above, &below)?
        }
    };
    let one = g.scalar(1.0);
    g.sub(&one, &fails)
}

/// What is left of a whole number after as many of another as fit; both in single precision, and none below 0.
pub(in crate::lower) fn remainder(g: &mut Graph, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (quotient, least) = (g.div(a, b)?, g.scalar(-1.0));
    let down = g.mul(&quotient, &least)?;
    let times = g.unary(Unary::Ceil, &down);
    let fits = g.mul(&times, b)?;
    g.add(a, &fits)
}

/// A quotient of whole numbers, rounded down; both in single precision, and none below 0.
pub(in crate::lower) fn quotient(g: &mut Graph, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let rest = remainder(g, a, b)?;
    let multiple = g.sub(a, &rest)?;
    g.div(&multiple, b)
}

/// Quotients and remainders of whole numbers, none below 0, by that of floating-point numbers, which is 1 off at most where it is
/// below 2²², and what then is left: WebNN divides no integers of 64 bits.
pub(in crate::lower) fn integer_division(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Binary(op @ (Binary::Div | Binary::Mod)), [a, b]) = (it.op, it.operands) else {
        return Ok(None);
    };
    let whole = a.dtype();
    if whole.is_float() {
        return Ok(None);
    }
    let [above, below] = [a, b].map(|x| g.cast(x, Dtype::F32));
    let near = g.div(&above, &below)?;
    let near = g.unary(Unary::Floor, &near);
    let near = g.cast(&near, whole);
    let rest = rest_of(g, a, b, &near)?;
    // One less where that is below 0, and one more unless it is below the divisor.
    let (zero, one) = (g.integer(0), g.integer(1));
    let less = g.binary(Binary::Less, &rest, &zero)?;
    let fits = g.binary(Binary::Less, &rest, b)?;
    let [less, fits] = [less, fits].map(|x| g.cast(&x, whole));
    let quotient = g.add(&near, &one)?;
    let quotient = g.sub(&quotient, &less)?;
    let quotient = g.sub(&quotient, &fits)?;
    match op {
        Binary::Div => Ok(Some(quotient)),
        _ => rest_of(g, a, b, &quotient).map(Some),
    }
}

/// What `times` of b leave of a.
fn rest_of(g: &mut Graph, a: &Tensor, b: &Tensor, times: &Tensor) -> Result<Tensor> {
    let multiple = g.mul(times, b)?;
    g.sub(a, &multiple)
}

/// Quotients of whole numbers, rounded down, as those of multiples of the divisor, which no rounding changes: a kernel that
/// takes in the arithmetic behind it rounds to the nearest whole number, and that at its end alone, as OpenVINO's sums do.
pub(in crate::lower) fn quotients_of_multiples(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Binary(Binary::Div), [a, b]) = (it.op, it.operands) else { return Ok(None) };
    if a.dtype().is_float() {
        return Ok(None);
    }
    let over = g.binary(Binary::Mod, a, b)?;
    let multiple = g.sub(a, &over)?;
    g.div(&multiple, b).map(Some)
}

/// Natural logarithms by Halley's steps on `exp`, from the 16th root, which five steps are enough for whatever the number.
/// That of 0 is as low as −160.
pub(in crate::lower) fn logarithm_by_steps(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Unary(Unary::Log), [x]) = (it.op, it.operands) else { return Ok(None) };
    let mut root = g.cast(x, Dtype::F32);
    for _ in 0..4 {
        root = g.unary(Unary::Sqrt, &root);
    }
    let [one, two, sixteen] = [1.0, 2.0, 16.0].map(|number| g.scalar(number));
    // The first of them begins with 0, whose power is 1.
    let (mut power, mut logarithm) = (one, None::<Tensor>);
    for step in 0..5 {
        let (above, sum) = (g.sub(&root, &power)?, g.add(&root, &power)?);
        let ratio = g.div(&above, &sum)?;
        let change = g.mul(&ratio, &two)?;
        let next = match &logarithm {
            Some(logarithm) => g.add(logarithm, &change)?,
            None => change,
        };
        if step < 4 {
            power = g.unary(Unary::Exp, &next);
        }
        logarithm = Some(next);
    }
    let Some(logarithm) = logarithm else { return Ok(None) };
    let logarithm = g.mul(&logarithm, &sixteen)?;
    Ok(Some(g.cast(&logarithm, it.result.dtype())))
}

/// Logarithms of softmax by the logarithm of the sum, of numbers of which the largest is 0.
pub(in crate::lower) fn log_softmax_by_sum(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::LogSoftmax { axis }, [x]) = (it.op, it.operands) else { return Ok(None) };
    let most = g.reduce(Reduction::Max, x, &[*axis], true)?;
    let below = g.sub(x, &most)?;
    let powers = g.unary(Unary::Exp, &below);
    let sum = g.reduce(Reduction::Sum, &powers, &[*axis], true)?;
    let logarithm = g.unary(Unary::Log, &sum);
    g.sub(&below, &logarithm).map(Some)
}

/// Whole numbers by rounding down half a unit further up; from the middle of two it goes on to the even one.
pub(in crate::lower) fn round_by_floor(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Unary(Unary::Round), [x]) = (it.op, it.operands) else { return Ok(None) };
    let (half, two) = (g.number(x.dtype(), 0.5), g.number(x.dtype(), 2.0));
    let up = g.add(x, &half)?;
    let up = g.unary(Unary::Floor, &up);
    // Odd numbers that are half a unit above x are one too many.
    let above = g.sub(&up, x)?;
    let middle = g.binary(Binary::Equal, &above, &half)?;
    let pairs = g.binary(Binary::Div, &up, &two)?;
    let pairs = g.unary(Unary::Floor, &pairs);
    let pairs = g.mul(&pairs, &two)?;
    let odd = g.sub(&up, &pairs)?;
    let middle = g.cast(&middle, x.dtype());
    let over = g.mul(&middle, &odd)?;
    g.sub(&up, &over).map(Some)
}

/// Signs by whether a number is above 0, and whether it is below.
pub(in crate::lower) fn sign_by_comparison(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Unary(Unary::Sign), [x]) = (it.op, it.operands) else { return Ok(None) };
    if !x.dtype().is_float() {
        return Ok(None);
    }
    let (x, zero) = (g.cast(x, Dtype::F32), g.scalar(0.0));
    let [above, below] = [Binary::Greater, Binary::Less].map(|op| compared(g, op, &x, &zero));
    let sign = g.sub(&above?, &below?)?;
    Ok(Some(g.cast(&sign, it.result.dtype())))
}

/// A number, or the edge, put around by joining it on.
pub(in crate::lower) fn pad_by_concat(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Pad { by, around }, [x]) = (it.op, it.operands) else { return Ok(None) };
    let Some(mut shape) = x.shape().iter().map(Dim::fixed).collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let mut padded = x.clone();
    for (axis, &(before, after)) in around.iter().enumerate() {
        let length = shape[axis];
        let mut parts = vec![padded.clone()];
        match by {
            PadMode::Constant(value) => {
                let filled = |g: &mut Graph, count: usize| {
                    let mut dims = shape.clone();
                    dims[axis] = count;
                    (count > 0).then(|| full(g, x.dtype(), &dims, *value))
                };
                let [first, last] = [before, after].map(|count| filled(g, count));
                parts = first.into_iter().chain(parts).chain(last).collect();
            }
            PadMode::Edge if length > 0 => {
                if before > 0 {
                    let first = g.slice(&padded, axis, 0..1)?;
                    parts.splice(0..0, vec![first; before]);
                }
                if after > 0 {
                    let last = g.slice(&padded, axis, length - 1..length)?;
                    parts.extend(vec![last; after]);
                }
            }
            _ => return Ok(None),
        }
        let parts: Vec<&Tensor> = parts.iter().collect();
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
