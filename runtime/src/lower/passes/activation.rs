//! The forms of activation functions.

use crate::Result;
use crate::graph::{Activation, Contrib, Dtype, Graph, Op, Operation, Tensor, Unary};

/// Activation functions that ONNX has no operator for, by those that it has.
pub(in crate::lower) fn by_operators(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Activate(act), [x]) = (it.op, it.operands) else { return Ok(None) };
    Ok(Some(match act {
        Activation::QuickGelu => {
            let factor = g.number(x.dtype(), 1.702);
            let scaled = g.mul(x, &factor)?;
            let gate = g.unary(Unary::Sigmoid, &scaled);
            g.mul(x, &gate)?
        }
        Activation::Relu2 => {
            let positive = g.activation(Activation::Relu, x)?;
            g.mul(&positive, &positive)?
        }
        Activation::Relu6 => {
            let op = Op::Clip { low: 0.0, high: Some(6.0) };
            g.node(op, &[x], x.dtype(), x.shape().to_vec())
        }
        Activation::Silu => {
            let gate = g.unary(Unary::Sigmoid, x);
            g.mul(x, &gate)?
        }
        Activation::Mish => {
            let soft = g.unary(Unary::Softplus, x);
            let gate = g.unary(Unary::Tanh, &soft);
            g.mul(x, &gate)?
        }
        Activation::Hardsigmoid => hard_gate(g, x)?,
        Activation::Hardswish => {
            let gate = hard_gate(g, x)?;
            g.mul(x, &gate)?
        }
        Activation::Sigmoid => g.unary(Unary::Sigmoid, x),
        Activation::Tanh => g.unary(Unary::Tanh, x),
        Activation::Linear => x.clone(),
        Activation::Gelu | Activation::GeluNew | Activation::Relu | Activation::Elu => return Ok(None),
    }))
}

/// `min(max(x + 3, 0), 6) / 6`.
fn hard_gate(g: &mut Graph, x: &Tensor) -> Result<Tensor> {
    let three = g.number(x.dtype(), 3.0);
    let shifted = g.add(x, &three)?;
    let op = Op::Clip { low: 0.0, high: Some(6.0) };
    let gate = g.node(op, &[&shifted], x.dtype(), x.shape().to_vec());
    let sixth = g.number(x.dtype(), 1.0 / 6.0);
    g.mul(&gate, &sixth)
}

/// Softplus, `ln(1 + eˣ)`, right to a last digit far below zero too, where `1 + eˣ` has few digits of `eˣ` left: OpenVINO's own is off by
/// 2e-4 of it at -6.
///
/// `max(x, 0) + ln(1 + e)` of `e = exp(-|x|)`, by the series of `2 artanh(z)` for `z = e / (2 + e)`, at most a third.
pub(in crate::lower) fn softplus_by_series(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Unary(Unary::Softplus), [x]) = (it.op, it.operands) else { return Ok(None) };
    if x.dtype() != Dtype::F32 {
        return Ok(None);
    }
    let far = g.unary(Unary::Abs, x);
    let far = g.unary(Unary::Neg, &far);
    let e = g.unary(Unary::Exp, &far);
    let two = g.scalar(2.0);
    let above = g.add(&e, &two)?;
    let z = g.div(&e, &above)?;
    let square = g.mul(&z, &z)?;
    let mut sum = g.scalar(2.0 / 15.0);
    for odd in [13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        let (higher, next) = (g.mul(&square, &sum)?, g.scalar(2.0 / odd));
        sum = g.add(&higher, &next)?;
    }
    let logarithm = g.mul(&z, &sum)?;
    let positive = g.activation(Activation::Relu, x)?;
    g.add(&positive, &logarithm).map(Some)
}

/// GELU by ONNX Runtime's own kernels.
pub(in crate::lower) fn gelu_by_kernel(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let tanh = match it.op {
        Op::Activate(Activation::Gelu) => false,
        Op::Activate(Activation::GeluNew) => true,
        _ => return Ok(None),
    };
    let [x] = it.operands else { return Ok(None) };
    Ok(Some(g.node(Op::Contrib(Contrib::Gelu { tanh }), &[x], x.dtype(), x.shape().to_vec())))
}

/// GELU by the error function or the hyperbolic tangent.
pub(in crate::lower) fn gelu_by_operators(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    match (it.op, it.operands) {
        (Op::Activate(Activation::Gelu), [x]) => gelu_by_erf(g, x).map(Some),
        (Op::Activate(Activation::GeluNew), [x]) => gelu_by_tanh(g, x).map(Some),
        _ => Ok(None),
    }
}

/// `x/2 · (1 + erf(x/√2))`.
fn gelu_by_erf(g: &mut Graph, x: &Tensor) -> Result<Tensor> {
    let [root, one, half] = [std::f32::consts::SQRT_2, 1.0, 0.5].map(|number| g.number(x.dtype(), number));
    let scaled = g.div(x, &root)?;
    let erf = g.unary(Unary::Erf, &scaled);
    let shifted = g.add(&erf, &one)?;
    let product = g.mul(x, &shifted)?;
    g.mul(&product, &half)
}

/// `x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))`.
fn gelu_by_tanh(g: &mut Graph, x: &Tensor) -> Result<Tensor> {
    let numbers = [1.0, 0.5, 0.044_715, (2.0 / std::f32::consts::PI).sqrt()];
    let [one, half, cubic, root] = numbers.map(|number| g.number(x.dtype(), number));
    let square = g.mul(x, x)?;
    let cube = g.mul(&square, x)?;
    let cube = g.mul(&cube, &cubic)?;
    let inner = g.add(x, &cube)?;
    let inner = g.mul(&inner, &root)?;
    let tanh = g.unary(Unary::Tanh, &inner);
    let shifted = g.add(&tanh, &one)?;
    let product = g.mul(x, &shifted)?;
    g.mul(&product, &half)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{evaluate, expect};

    #[test]
    fn softplus_has_all_digits_far_below_zero_too() {
        let points: Vec<f32> = (-400..=400).map(|step| step as f32 * 0.05).collect();
        let Some((_, found)) = evaluate(&[], |g| {
            let x = g.constant(&[points.len()], points.clone())?;
            let result = g.unary(Unary::Softplus, &x);
            let op = Op::Unary(Unary::Softplus);
            let it = Operation { op: &op, operands: &[x], types: &[Dtype::F32], result: &result };
            softplus_by_series(g, &it).map(Option::unwrap)
        }) else {
            return;
        };
        for (x, found) in points.into_iter().zip(found) {
            let exact = f64::from(x).exp().ln_1p();
            assert!((f64::from(found) - exact).abs() < 5e-7 * exact, "{x}: {found} for {exact}");
        }
    }

    #[test]
    fn hard_gates_are_straight_lines() {
        let of = |act: Activation, want: &[f32]| {
            let build = |g: &mut Graph| {
                let x = g.constant(&[4], vec![-4.0, -1.5, 1.5, 4.0])?;
                g.activation(act, &x)
            };
            expect(&[], build, &[4], want);
        };
        of(Activation::Hardsigmoid, &[0.0, 0.25, 0.75, 1.0]);
        of(Activation::Hardswish, &[0.0, -0.375, 1.125, 4.0]);
    }
}
