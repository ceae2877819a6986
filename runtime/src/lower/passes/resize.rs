//! The forms of images in other sizes.

use crate::Result;
use crate::graph::{Dim, Graph, Interpolation, Op, Operation, Tensor};

/// The curves' coefficient, as the reference has it.
pub(in crate::lower) const CUBIC: f32 = -0.75;

/// The nearest places, where all lengths are numbers, by their indices: backends that round otherwise, as browsers do,
/// are not asked.
pub(in crate::lower) fn nearest_by_gather(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Resize(op), [x]) = (it.op, it.operands) else { return Ok(None) };
    if op.by != Interpolation::Nearest || op.align_corners {
        return Ok(None);
    }
    let Some(lengths) = fixed(x.shape(), it.result.shape()) else { return Ok(None) };
    let mut picked = x.clone();
    for (axis, (from, to)) in lengths.into_iter().enumerate().filter(|(_, (from, to))| from != to) {
        let scale = to as f32 / from as f32;
        let nearest = |place: usize| ((place as f32 / scale) as usize).min(from - 1) as i64;
        let places = g.integers(&[to], (0..to).map(nearest).collect())?;
        picked = g.gather(&picked, &places, axis)?;
    }
    Ok(Some(picked))
}

/// Bicubic resizing, where all lengths are numbers, as two products with the weights of the curves.
pub(in crate::lower) fn cubic_by_products(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Resize(op), [x]) = (it.op, it.operands) else { return Ok(None) };
    if op.by != Interpolation::Bicubic {
        return Ok(None);
    }
    let Some(lengths) = fixed(x.shape(), it.result.shape()) else { return Ok(None) };
    let [.., (rows, tall), (columns, wide)] = *lengths else { return Ok(None) };
    let across = cubic(columns, wide, op.align_corners);
    let mut turned = vec![0.0; across.len()];
    for (place, weight) in across.iter().enumerate() {
        turned[place % columns * wide + place / columns] = *weight;
    }
    let across = g.constant(&[columns, wide], turned)?;
    let down = g.constant(&[tall, rows], cubic(rows, tall, op.align_corners))?;
    let x = g.matmul(x, &across)?;
    Ok(Some(g.matmul(&down, &x)?))
}

/// The lengths before and after, where all are numbers.
fn fixed(from: &[Dim], to: &[Dim]) -> Option<Vec<(usize, usize)>> {
    from.iter().zip(to).map(|(from, to)| Some((from.fixed()?, to.fixed()?))).collect()
}

/// `[to, from]`: what each place takes of those before, by cubic curves through four of them; beyond the edge stands what
/// is at the edge.
fn cubic(from: usize, to: usize, align_corners: bool) -> Vec<f32> {
    let mut weights = vec![0.0; to * from];
    for (place, row) in weights.chunks_exact_mut(from.max(1)).enumerate() {
        let at = match align_corners {
            true if to > 1 => place as f32 * (from - 1) as f32 / (to - 1) as f32,
            true => 0.0,
            false => (place as f32 + 0.5) * from as f32 / to as f32 - 0.5,
        };
        let first = at.floor();
        for tap in -1..=2 {
            let distance = (at - first - tap as f32).abs();
            let weight = if distance <= 1.0 {
                ((CUBIC + 2.0) * distance - (CUBIC + 3.0)) * distance * distance + 1.0
            } else {
                ((CUBIC * distance - 5.0 * CUBIC) * distance + 8.0 * CUBIC) * distance - 4.0 * CUBIC
            };
            let taken = (first as i64 + tap).clamp(0, from as i64 - 1) as usize;
            row[taken] += weight;
        }
    }
    weights
}
