//! Attention and the cache that it appends its keys and values to, as one operation.

use std::collections::HashMap;

use super::attention_mask::{additive, for_each_query};
use crate::Result;
use crate::graph::dims::{PAST, SEQUENCE};
use crate::graph::{
    AttentionOp, CachedAttentionOp, CachedAttentionResult, Dim, Dtype, Graph, Node, Op, Tensor,
};
use crate::lower::Target;

/// What is appended to what, of an attention's keys or its values.
#[derive(Clone, Debug)]
struct Appended {
    /// The input `[batch, kv_heads, past, size]`.
    past: Tensor,
    /// `[batch, sequence, kv_heads·size]`.
    new: Tensor,
    /// Both, `[batch, kv_heads, past + sequence, size]`, which is an output.
    all: usize,
}

/// Has one operator append to a cache and attend over it, position by position: the cache is then `[past, batch, kv_heads, size]`, to which
/// an engine appends where it lies. Keys and values that anything else reads stay as they are.
pub(in crate::lower) fn by_operator(g: &mut Graph, _: &Target) -> Result<()> {
    let found: HashMap<usize, [Appended; 2]> = g
        .nodes
        .iter()
        .filter_map(|node| match (&node.op, node.inputs.as_slice()) {
            (Op::Attention(op), [_, k, v, ..]) if !op.causal && k != v => {
                Some((node.output, [appended(g, *k, *op)?, appended(g, *v, *op)?]))
            }
            _ => None,
        })
        .collect();
    for Appended { past, .. } in found.values().flatten() {
        g.reshape_input(past.id, by_position(past.shape()));
    }
    let mut present = HashMap::new();
    g.rewrite(|g, it| {
        let (Op::Attention(op), Some(cached)) = (it.op, found.get(&it.result.id)) else { return Ok(None) };
        let [q, k, _, mask @ ..] = it.operands else { return Ok(None) };
        let mut operands = vec![q.clone()];
        operands.extend(cached.iter().map(|of| of.new.clone()));
        operands.extend(cached.iter().map(|of| g.tensor(of.past.id).clone()));
        for mask in mask {
            let additive = additive(g, mask, Dtype::F32)?;
            operands.push(for_each_query(g, &additive, [q, k])?);
        }
        let operands: Vec<&Tensor> = operands.iter().collect();
        let of = |gives| Op::CachedAttention(CachedAttentionOp { attention: *op, gives });
        let output =
            g.node(of(CachedAttentionResult::Output), &operands, Dtype::F32, it.result.shape().to_vec());
        let gives = [CachedAttentionResult::Keys, CachedAttentionResult::Values];
        for (Appended { all, .. }, gives) in cached.iter().zip(gives) {
            let shape = by_position(g.tensor(*all).shape());
            present.insert(*all, g.node(of(gives), &operands, Dtype::F32, shape).id);
        }
        Ok(Some(output))
    })?;
    for (_, output) in &mut g.outputs {
        *output = *present.get(output).unwrap_or(output);
    }
    g.prune();
    Ok(())
}

/// `[length, batch, kv_heads, size]` of `[batch, kv_heads, length, size]`.
fn by_position(shape: &[Dim]) -> Vec<Dim> {
    [2, 0, 1, 3].map(|axis| shape[axis].clone()).to_vec()
}

/// What keys or values are, if they are a cache and what this step appends to it, and nothing but the attention and an output read them.
fn appended(g: &Graph, all: usize, op: AttentionOp) -> Option<Appended> {
    let node = g.made_by(g.tensor(all))?;
    let (Op::Concat { axis: 2 }, &[past, new]) = (&node.op, node.inputs.as_slice()) else { return None };
    let past = g.tensor(past);
    let [batch, heads, length, _] = past.shape() else { return None };
    let read_once =
        |id: usize| g.nodes.iter().flat_map(|node| &node.inputs).filter(|&&input| input == id).count() == 1;
    let given_once = g.outputs.iter().filter(|(_, output)| *output == all).count() == 1;
    let new = from_heads_first(g, g.made_by(g.tensor(new))?)?;
    let fits = g.is_input(past.id)
        && past.dtype() == Dtype::F32
        && *length == PAST
        && heads.fixed() == Some(op.kv_heads)
        && new.shape()[..2] == [batch.clone(), SEQUENCE]
        && [all, past.id].into_iter().all(read_once)
        && given_once;
    fits.then(|| Appended { past: past.clone(), new: new.clone(), all })
}

/// `[batch, sequence, heads·size]` of which a node makes `[batch, heads, sequence, size]`.
fn from_heads_first<'g>(g: &'g Graph, node: &Node) -> Option<&'g Tensor> {
    let Op::Transpose { order } = &node.op else { return None };
    let apart = g.made_by(g.tensor(*node.inputs.first()?))?;
    let x = g.tensor(*apart.inputs.first()?);
    (*order == [0, 2, 1, 3] && matches!(apart.op, Op::Reshape) && x.rank() == 3).then_some(x)
}
