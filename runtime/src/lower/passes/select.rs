//! What operators that pick, and logic, are made of where a backend lacks them.

use std::collections::{BTreeMap, BTreeSet};

use crate::Result;
use crate::dims;
use crate::graph::{
    Binary, Constant, Dim, Dtype, Graph, Node, Op, Operation, Reduction, Tensor, TopKOp, TopKResult, Unary,
    product,
};
use crate::lower::Target;

/// Slices that are all of an axis, as parts of one `Split`.
pub(in crate::lower) fn slices_by_split(g: &mut Graph, _: &Target) -> Result<()> {
    let part = |node: &Node| match node.op {
        Op::Slice { axis, ref start, ref end, step: 1 } => {
            Some(((node.inputs[0], axis), (start.fixed()?, end.fixed()?)))
        }
        _ => None,
    };
    let mut parts: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for (of, range) in g.nodes.iter().filter_map(part) {
        parts.entry(of).or_default().insert(range);
    }
    parts.retain(|&(x, axis), ranges| {
        let mut reached = 0;
        let joined = ranges.iter().all(|&(start, end)| std::mem::replace(&mut reached, end) == start);
        joined && ranges.len() > 1 && g.tensor(x).shape()[axis] == Dim::Fixed(reached)
    });
    for node in &mut g.nodes {
        let Some((of, range)) = part(node) else { continue };
        let Some(ranges) = parts.get(&of) else { continue };
        let lengths = ranges.iter().map(|(start, end)| end - start).collect();
        let gives = ranges.iter().position(|other| *other == range).unwrap_or_default();
        node.op = Op::Split { axis: of.1, lengths, gives };
    }
    Ok(())
}

/// One position of each item by a product with a row that is 1 there; of integers by a sum of what is chosen.
pub(in crate::lower) fn gather_by_product(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::GatherBatched, [x, index]) = (it.op, it.operands) else { return Ok(None) };
    let [batch, length, rest @ ..] = x.shape() else { return Ok(None) };
    let positions = g.arange(length);
    let positions = g.unsqueeze(&positions, 0)?;
    let found = g.binary(Binary::Equal, &positions, index)?;
    if x.dtype().is_float() {
        let row = g.cast(&found, x.dtype());
        let row = g.unsqueeze(&row, 1)?;
        let rows = g.reshape(x, dims![batch, length, product(rest)])?;
        let picked = g.matmul(&row, &rows)?;
        return Ok(Some(g.reshape(&picked, it.result.shape().to_vec())?));
    }
    let mut column = dims![batch, length];
    column.resize(x.rank(), Dim::Fixed(1));
    let (found, none) = (g.reshape(&found, column)?, g.integer(0));
    let chosen = g.select(&found, x, &none)?;
    Ok(Some(g.reduce(Reduction::Sum, &chosen, &[1], false)?))
}

/// Rows of each item, whose indices are repeated for every column, by a product with ones where they are.
pub(in crate::lower) fn rows_by_product(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::GatherElements { axis: 1 }, [x, index]) = (it.op, it.operands) else { return Ok(None) };
    let [_, length, _] = x.shape() else { return Ok(None) };
    let repeated = g.made_by(index).filter(|node| node.op == Op::Expand).map(|node| node.inputs[0]);
    let Some(index) = repeated.map(|id| g.tensor(id).clone()) else { return Ok(None) };
    if !x.dtype().is_float() || index.rank() != 3 || index.shape()[2] != Dim::Fixed(1) {
        return Ok(None);
    }
    let positions = g.arange(length);
    let here = g.binary(Binary::Equal, &index, &positions)?;
    let here = g.cast(&here, x.dtype());
    Ok(Some(g.matmul(&here, x)?))
}

/// Elements of an axis by products of its numbers with ones where they are; of integers by sums of what is chosen.
pub(in crate::lower) fn elements_by_product(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::GatherElements { axis }, [x, index]) = (it.op, it.operands) else { return Ok(None) };
    let (last, axis) = (x.rank() - 1, *axis);
    let order: Vec<usize> = (0..=last).filter(|&at| at != axis).chain([axis]).collect();
    let (length, count) = (&x.shape()[axis], &index.shape()[axis]);
    let others: Vec<Dim> = order[..last].iter().map(|&at| x.shape()[at].clone()).collect();
    let rows = &product(&others);
    let moved = |g: &mut Graph, x: &Tensor, order: &[usize]| match order.is_sorted() {
        true => Ok(x.clone()),
        false => g.transpose(x, order),
    };
    let [x, index] = [moved(g, x, &order)?, moved(g, index, &order)?];
    let index = g.reshape(&index, dims![rows, count, 1])?;
    let positions = g.arange(length);
    let here = g.binary(Binary::Equal, &index, &positions)?;
    let found = match it.result.dtype().is_float() {
        true => {
            let x = g.reshape(&x, dims![rows, length, 1])?;
            let here = g.cast(&here, x.dtype());
            g.matmul(&here, &x)?
        }
        false => {
            let (x, none) = (g.reshape(&x, dims![rows, 1, length])?, g.integer(0));
            let chosen = g.select(&here, &x, &none)?;
            g.reduce(Reduction::Sum, &chosen, &[2], true)?
        }
    };
    let found = g.reshape(&found, others.into_iter().chain([count.clone()]).collect())?;
    // Back to where it was: what stands at the end goes to the axis.
    let back: Vec<usize> = (0..axis).chain([last]).chain(axis..last).collect();
    moved(g, &found, &back).map(Some)
}

/// Elements that are put at indices by the greatest of what goes to each place: all places are compared with all indices.
pub(in crate::lower) fn scatter_by_comparison(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::ScatterElements, [x, ids, updates]) = (it.op, it.operands) else { return Ok(None) };
    let Some((length, others)) = x.shape().split_last() else { return Ok(None) };
    let (rows, count) = (&product(others), &ids.shape()[others.len()]);
    let [ids, updates] = [ids, updates].map(|of| g.reshape(of, dims![rows, count, 1]));
    let (ids, updates) = (ids?, updates?);
    let positions = g.arange(length);
    let here = g.binary(Binary::Equal, &ids, &positions)?;
    let least = g.number(x.dtype(), f32::MIN);
    let there = g.select(&here, &updates, &least)?;
    let there = g.reduce(Reduction::Max, &there, &[1], false)?;
    let there = g.reshape(&there, x.shape().to_vec())?;
    let given = g.binary(Binary::Greater, &there, &least)?;
    g.select(&given, &there, x).map(Some)
}

/// The first index of the largest element by comparison with it, for kernels whose indices are of 64 bits, which nothing else reads.
pub(in crate::lower) fn argmax_by_comparison(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::ArgMax { axis }, [x]) = (it.op, it.operands) else { return Ok(None) };
    let most = g.reduce(Reduction::Max, x, &[*axis], true)?;
    let here = g.binary(Binary::Equal, x, &most)?;
    first_index(g, &here, *axis).map(Some)
}

/// The indices of the largest elements by comparison with these. Of equal ones, each is as many places behind the first as there are such
/// before it.
pub(in crate::lower) fn top_k_by_comparison(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::TopK(TopKOp { count, gives: TopKResult::Indices }), [x]) = (it.op, it.operands) else {
        return Ok(None);
    };
    let axis = x.rank();
    let (largest, _) = g.top_k(x, *count)?;
    let each = g.unsqueeze(&largest, axis)?;
    let all = g.unsqueeze(x, axis - 1)?;
    let here = g.binary(Binary::Equal, &all, &each)?;
    let [zero, one] = [0.0, 1.0].map(|number| g.number(Dtype::F32, number));
    let places = g.select(&here, &one, &zero)?;
    let place = g.cumsum(&places, axis)?;
    let others = g.unsqueeze(&largest, axis - 1)?;
    let same = g.binary(Binary::Equal, &others, &each)?;
    let up_to = |row: usize| (0..*count).map(move |column| f32::from(u8::from(column <= row)));
    let up_to = g.constant(&[*count, *count], (0..*count).flat_map(up_to).collect())?;
    let same = g.select(&same, &up_to, &zero)?;
    let wanted = g.reduce(Reduction::Sum, &same, &[axis], true)?;
    let least = g.number(Dtype::F32, -1.0);
    let place = g.select(&here, &place, &least)?;
    let here = g.binary(Binary::Equal, &place, &wanted)?;
    first_index(g, &here, axis).map(Some)
}

/// The first index along an axis where there is true, the last one where there is none; without the axis.
fn first_index(g: &mut Graph, here: &Tensor, axis: usize) -> Result<Tensor> {
    let length = &here.shape()[axis];
    let positions = g.arange(length);
    let last = g.slice_dims(&positions, 0, length.clone() - 1.into(), length.clone())?;
    let mut along = vec![Dim::Fixed(1); here.rank()];
    along[axis] = length.clone();
    let positions = g.reshape(&positions, along)?;
    let found = g.select(here, &positions, &last)?;
    g.reduce(Reduction::Min, &found, &[axis], false)
}

/// The largest elements one after the other, each of which is then as low as numbers go. They must be above that themselves.
pub(in crate::lower) fn top_k_by_argmax(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::TopK(op), [x]) = (it.op, it.operands) else { return Ok(None) };
    let Some((length, _)) = x.shape().split_last() else { return Ok(None) };
    let (axis, positions) = (x.rank() - 1, g.arange(length));
    let least = g.number(x.dtype(), f32::MIN);
    let (mut rest, mut found) = (x.clone(), vec![]);
    for selected in 1..=op.count {
        let index = g.argmax(&rest, axis)?;
        let index = g.unsqueeze(&index, axis)?;
        found.push(match op.gives {
            TopKResult::Values => g.reduce(Reduction::Max, &rest, &[axis], true)?,
            TopKResult::Indices => index.clone(),
        });
        if selected < op.count {
            let here = g.binary(Binary::Equal, &index, &positions)?;
            rest = g.select(&here, &least, &rest)?;
        }
    }
    let found: Vec<&Tensor> = found.iter().collect();
    g.concat(&found, axis).map(Some)
}

/// Whether an element is among the largest, of which one after the other is made as low as numbers go.
pub(in crate::lower) fn top_k_mask_by_argmax(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::TopKMask { count }, [x]) = (it.op, it.operands) else { return Ok(None) };
    let Some((length, _)) = x.shape().split_last() else { return Ok(None) };
    let (axis, positions) = (x.rank() - 1, g.arange(length));
    let least = g.scalar(f32::MIN);
    let mut rest = x.clone();
    for _ in 0..*count {
        let best = g.argmax(&rest, axis)?;
        let best = g.unsqueeze(&best, axis)?;
        let here = g.binary(Binary::Equal, &best, &positions)?;
        rest = g.select(&here, &least, &rest)?;
    }
    g.binary(Binary::Less, &rest, x).map(Some)
}

/// Selects by numbers in single precision what is in bfloat16.
pub(in crate::lower) fn top_k_in_single(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::TopK(op), [x]) = (it.op, it.operands) else { return Ok(None) };
    if x.dtype() != Dtype::Bf16 {
        return Ok(None);
    }
    let wide = g.cast(x, Dtype::F32);
    let indices = op.gives == TopKResult::Indices;
    let found = it.again(g, &[&wide], if indices { Dtype::I64 } else { Dtype::F32 });
    Ok(Some(g.cast(&found, it.result.dtype())))
}

/// A disjunction as what is not the case where neither is.
pub(in crate::lower) fn or_by_and(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Binary(Binary::Or), [a, b]) = (it.op, it.operands) else { return Ok(None) };
    let [a, b] = [a, b].map(|x| g.unary(Unary::Not, x));
    let neither = g.binary(Binary::And, &a, &b)?;
    Ok(Some(g.unary(Unary::Not, &neither)))
}

/// Logarithms of 1, 2, 3 … looked up, the last of them for more: those of what is rounded down and one added.
pub(in crate::lower) fn logarithm_by_table(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    const MOST: usize = 4096;
    let (Op::Unary(Unary::Log), [x]) = (it.op, it.operands) else { return Ok(None) };
    if !is_count(g, x) {
        return Ok(None);
    }
    let logarithms = (0..=MOST).map(|number| (number.max(1) as f64).ln() as f32).collect();
    let table = g.filled(x.dtype(), dims![MOST + 1], Constant::F32(logarithms));
    let op = Op::Clip { low: 1.0, high: Some(MOST as f32) };
    let number = g.node(op, &[x], x.dtype(), x.shape().to_vec());
    let number = g.cast(&number, Dtype::I64);
    Ok(Some(g.gather(&table, &number, 0)?))
}

/// Whether a value is what is rounded down, and one added.
fn is_count(g: &Graph, x: &Tensor) -> bool {
    let made = |x: &Tensor| g.made_by(x).map(|node| (&node.op, node.inputs.as_slice()));
    let Some((Op::Binary(Binary::Add), [a, b])) = made(x) else { return false };
    let rounded = matches!(made(g.tensor(*a)), Some((Op::Unary(Unary::Floor), _)));
    rounded && matches!(g.literal(g.tensor(*b)), Some(Constant::F32(one)) if *one == [1.0])
}
