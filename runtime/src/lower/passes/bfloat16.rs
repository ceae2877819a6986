//! Rounding to bfloat16 by arithmetic, for backends without the type.

use crate::Result;
use crate::graph::{Constant, Dim, Dtype, Graph, Op, Operation, Reduction, Tensor, Unary};

/// Conversions to bfloat16 and back as rounding to as many digits, of numbers that are not negative and below 2³², as ALiBi's
/// slopes and positions are: by neither logarithms nor comparisons.
pub(in crate::lower) fn by_arithmetic(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    match (it.op, it.operands, it.types) {
        (Op::Cast { to: Dtype::Bf16 }, [x], [Dtype::F32 | Dtype::F16]) => {
            let single = g.cast(x, Dtype::F32);
            rounded(g, &single).map(Some)
        }
        // What is rounded already has a type of its own.
        (Op::Cast { to }, [x], [Dtype::Bf16]) if x.dtype() != Dtype::Bf16 => Ok(Some(g.cast(x, *to))),
        _ => Ok(None),
    }
}

fn rounded(g: &mut Graph, x: &Tensor) -> Result<Tensor> {
    // What the last digit is worth, by how many powers of two are reached: all exact. What is below the least has digits
    // to spare.
    const LEAST: i32 = -8;
    const MOST: i32 = 31;
    let powers: Vec<f32> = (LEAST + 1..=MOST).map(|power| 2_f32.powi(-power)).collect();
    let powers = g.constant(&[powers.len()], powers)?;
    let shares = g.unsqueeze(x, x.rank())?;
    let shares = g.mul(&shares, &powers)?;
    let op = Op::Clip { low: 0.0, high: Some(1.0) };
    let shares = g.node(op, &[&shares], Dtype::F32, shares.shape().to_vec());
    let reached = g.unary(Unary::Floor, &shares);
    let reached = g.reduce(Reduction::Sum, &reached, &[x.rank()], false)?;
    let rows = g.cast(&reached, Dtype::I64);
    let table: Vec<f32> = (LEAST..=MOST).map(|power| 2_f32.powi(power - 7)).collect();
    let shape = vec![Dim::Fixed(table.len())];
    let table = g.filled(Dtype::F32, shape, Constant::F32(table));
    let digit = g.gather(&table, &rows, 0)?;
    let count = g.div(x, &digit)?;
    let count = to_even(g, &count)?;
    g.mul(&count, &digit)
}

/// Numbers that are not negative and have some digits to spare, rounded; halves to even ones.
fn to_even(g: &mut Graph, x: &Tensor) -> Result<Tensor> {
    let (half, one) = (g.scalar(0.5), g.scalar(1.0));
    let raised = g.add(x, &half)?;
    let up = g.unary(Unary::Floor, &raised);
    let halves = g.scale(&up, 0.5)?;
    let pairs = g.unary(Unary::Floor, &halves);
    let pairs = g.scale(&pairs, 2.0)?;
    let odd = g.sub(&up, &pairs)?;
    // One where nothing is left over, else zero.
    let over = g.sub(&raised, &up)?;
    let tie = g.sub(&one, &over)?;
    let tie = g.unary(Unary::Floor, &tie);
    let back = g.mul(&tie, &odd)?;
    g.sub(&up, &back)
}
