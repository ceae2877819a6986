//! Values of few axes, for backends whose kernels take no more of them.

use std::collections::HashMap;

use crate::Result;
use crate::dims;
use crate::graph::{Binary, Dim, Graph, Op, Operation, Shape, Tensor, Unary, product};
use crate::lower::Target;

/// So many axes every kernel takes.
const MOST: usize = 4;

/// Axes that stay beside each other are moved as one.
pub(in crate::lower) fn transpose_runs(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Transpose { order }, [x]) = (it.op, it.operands) else { return Ok(None) };
    if order.len() <= MOST {
        return Ok(None);
    }
    let mut runs: Vec<std::ops::Range<usize>> = vec![];
    for &axis in order {
        match runs.last_mut() {
            Some(run) if run.end == axis => run.end += 1,
            _ => runs.push(axis..axis + 1),
        }
    }
    if runs.len() == order.len() {
        return Ok(None);
    }
    let mut given = runs.clone();
    given.sort_by_key(|run| run.start);
    let shape: Shape = given.iter().map(|run| product(&x.shape()[run.clone()])).collect();
    let order: Vec<_> = runs.iter().filter_map(|run| given.iter().position(|other| other == run)).collect();
    let x = g.reshape(x, shape)?;
    let x = g.transpose(&x, &order)?;
    Ok(Some(g.reshape(&x, it.result.shape().to_vec())?))
}

/// Sines and cosines of more axes are taken with those in the middle as one.
pub(in crate::lower) fn flat_waves(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Unary(of @ (Unary::Sin | Unary::Cos)), [x]) = (it.op, it.operands) else { return Ok(None) };
    let [first, second, middle @ .., last] = x.shape() else { return Ok(None) };
    if x.rank() <= MOST {
        return Ok(None);
    }
    let shape: Vec<Dim> = vec![first.clone(), second.clone(), product(middle), last.clone()];
    let flat = g.reshape(x, shape)?;
    let waves = g.unary(*of, &flat);
    Ok(Some(g.reshape(&waves, x.shape().to_vec())?))
}

/// Sums and products with a matrix that all of a batch share, such as position embeddings, with an axis of 1 between the
/// batch and the rows.
///
/// QNN 2.7 gives wrong numbers where such a sum is followed by a layer norm, whatever stands between them, and where such a
/// product is, compiling ends in a crash: `[2, 16, 20] + [16, 20]`, and all others of 16 rows or more that are a multiple
/// of 8, in columns that are neither 8 nor 16.
pub(in crate::lower) fn batch_apart(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Binary(op @ (Binary::Add | Binary::Mul)), [a, b]) = (it.op, it.operands) else {
        return Ok(None);
    };
    if !it.result.dtype().is_float() {
        return Ok(None);
    }
    let shared = |x: &Tensor| matches!(matrices(x), Some((Dim::Fixed(1), rows)) if rows != Dim::Fixed(1));
    let many = |x: &Tensor| matches!(matrices(x), Some((batch, _)) if batch != Dim::Fixed(1));
    let (a, b) = if shared(a) && many(b) {
        (a.clone(), rows_apart(g, b)?)
    } else if many(a) && shared(b) {
        (rows_apart(g, a)?, b.clone())
    } else {
        return Ok(None);
    };
    let y = g.binary(*op, &a, &b)?;
    Ok(Some(g.reshape(&y, it.result.shape().to_vec())?))
}

/// How many matrices a value holds, and of how many rows.
fn matrices(x: &Tensor) -> Option<(Dim, Dim)> {
    let [batch @ .., rows, _] = x.shape() else { return None };
    Some((product(batch), rows.clone()))
}

/// `[.., rows, columns]` as `[product(..), 1, rows, columns]`.
fn rows_apart(g: &mut Graph, x: &Tensor) -> Result<Tensor> {
    let [batch @ .., rows, columns] = x.shape() else { return Ok(x.clone()) };
    g.reshape(x, dims![product(batch), 1, rows, columns])
}

/// Of reshapes one after the other, each begins with what the first was given.
pub(in crate::lower) fn join_reshapes(g: &mut Graph, _: &Target) -> Result<()> {
    let mut sources: HashMap<usize, Tensor> = HashMap::new();
    g.rewrite(|g, it| {
        let (Op::Reshape, [x]) = (it.op, it.operands) else { return Ok(None) };
        let Some(source) = sources.get(&x.id).cloned() else {
            sources.insert(it.result.id, x.clone());
            return Ok(None);
        };
        if source.shape() == it.result.shape() {
            return Ok(Some(source));
        }
        let joined = g.reshape(&source, it.result.shape().to_vec())?;
        sources.insert(joined.id, source);
        Ok(Some(joined))
    })
}
