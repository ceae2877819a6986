//! The forms of rotary position embeddings.

use crate::Result;
use crate::dims;
use crate::graph::{Dim, Dtype, Graph, Op, Operation, RotaryOp, Tensor};

/// Cosines or sines of positions times frequencies, in single precision up to the last step.
pub(in crate::lower) fn angles(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Angles { of, frequencies, scaling }, [positions]) = (it.op, it.operands) else {
        return Ok(None);
    };
    let positions = g.cast(positions, Dtype::F32);
    let positions = g.unsqueeze(&positions, positions.rank())?;
    let frequencies = g.constant(&[frequencies.len()], frequencies.clone())?;
    let angles = g.mul(&positions, &frequencies)?;
    let waves = g.unary(*of, &angles);
    let waves = g.scale(&waves, *scaling)?;
    Ok(Some(g.cast(&waves, it.result.dtype())))
}

/// Rotations of whole heads stay; those of a part of each are products and sums.
pub(in crate::lower) fn partly_by_product(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    match it.op {
        Op::Rotary(op) if it.result.dim(-1) == Some(&Dim::Fixed(op.heads * op.width)) => Ok(None),
        _ => by_product(g, it),
    }
}

/// Rotations as products and sums: x `[batch, sequence, heads·size]`.
pub(in crate::lower) fn by_product(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Rotary(op), [x, cos, sin], [batch, sequence, width]) = (it.op, it.operands, it.result.shape())
    else {
        return Ok(None);
    };
    let (size, half) = (width.fixed().unwrap_or_default() / op.heads.max(1), op.width / 2);
    let x = g.reshape(x, dims![batch, sequence, op.heads, size])?;
    let cos = g.reshape(cos, dims![batch, sequence, 1, half])?;
    let sin = g.reshape(sin, dims![batch, sequence, 1, half])?;
    let rotated = match op.interleaved {
        true => neighbours(g, &x, *op, [&cos, &sin])?,
        false => {
            let [a, b] = [g.slice(&x, 3, 0..half)?, g.slice(&x, 3, half..op.width)?];
            let (a, b) = rotated(g, [&a, &b], [&cos, &sin])?;
            g.concat(&[&a, &b], 3)?
        }
    };
    let whole = match size - op.width {
        0 => rotated,
        _ => {
            let rest = g.slice(&x, 3, op.width..size)?;
            g.concat(&[&rotated, &rest], 3)?
        }
    };
    Ok(Some(g.reshape(&whole, it.result.shape().to_vec())?))
}

/// Pairs of neighbours, rotated.
fn neighbours(g: &mut Graph, x: &Tensor, op: RotaryOp, angles: [&Tensor; 2]) -> Result<Tensor> {
    let [batch, sequence, ..] = x.shape() else { return Ok(x.clone()) };
    let half = op.width / 2;
    let flat = dims![batch, sequence, op.heads, half];
    let single = dims![batch, sequence, op.heads, half, 1];
    let head = g.slice(x, 3, 0..op.width)?;
    let pairs = g.reshape(&head, dims![batch, sequence, op.heads, half, 2])?;
    let [a, b] = [g.slice(&pairs, 4, 0..1)?, g.slice(&pairs, 4, 1..2)?];
    let [a, b] = [g.reshape(&a, flat.clone())?, g.reshape(&b, flat)?];
    let (a, b) = rotated(g, [&a, &b], angles)?;
    let [a, b] = [g.reshape(&a, single.clone())?, g.reshape(&b, single)?];
    let both = g.concat(&[&a, &b], 4)?;
    g.reshape(&both, head.shape().to_vec())
}

/// `(a cos - b sin, b cos + a sin)`.
fn rotated(g: &mut Graph, [a, b]: [&Tensor; 2], [cos, sin]: [&Tensor; 2]) -> Result<(Tensor, Tensor)> {
    let (ac, bs) = (g.mul(a, cos)?, g.mul(b, sin)?);
    let (bc, as_) = (g.mul(b, cos)?, g.mul(a, sin)?);
    Ok((g.sub(&ac, &bs)?, g.add(&bc, &as_)?))
}
