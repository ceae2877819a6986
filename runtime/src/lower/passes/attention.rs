//! The forms of scaled dot-product attention.

use super::attention_mask::{
    additive, causal_bias, for_each_query, four_axes, key_count, masked_scores, see, seeing,
};
use crate::Result;
use crate::dims;
use crate::graph::{AttentionOp, Contrib, Dim, Dtype, Graph, Op, Operation, Tensor, Unary};

/// ONNX's `Attention`: a mask of numbers for every query, and heads as an axis of their own where keys and values have it.
/// A mask of booleans would leave a position that sees nothing without a value.
pub(in crate::lower) fn standard(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Attention(op), [q, k, v, mask @ ..]) = (it.op, it.operands) else { return Ok(None) };
    let mut bias = vec![];
    for mask in mask {
        let additive = additive(g, mask, q.dtype())?;
        bias.push(for_each_query(g, &additive, [q, k])?);
    }
    if [q, k, v].iter().all(|x| x.rank() == 3) {
        let operands: Vec<_> = [q, k, v].into_iter().chain(&bias).collect();
        return Ok(Some(it.again(g, &operands, it.result.dtype())));
    }
    let size = head_size(v, op.kv_heads);
    let shape = dims![&q.shape()[0], op.heads, &q.shape()[1], size];
    let [q, k, v] = [heads(g, q, op.heads)?, heads(g, k, op.kv_heads)?, heads(g, v, op.kv_heads)?];
    let operands: Vec<_> = [&q, &k, &v].into_iter().chain(&bias).collect();
    let mixed = g.node(it.op.clone(), &operands, it.result.dtype(), shape);
    merged(g, &mixed, it).map(Some)
}

/// The runtime's own operator, which has no scores of all queries and keys in memory.
pub(in crate::lower) fn flash(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Attention(op), [q, k, v, mask @ ..]) = (it.op, it.operands) else { return Ok(None) };
    let single = [q, k, v].into_iter().all(|x| x.dtype() == Dtype::F32);
    if op.causal || !single {
        return Ok(None);
    }
    let bias = mask.iter().map(|mask| additive(g, mask, Dtype::F32)).collect::<Result<Vec<_>>>()?;
    let operands: Vec<_> = [q, k, v].into_iter().chain(&bias).collect();
    let op = Op::FlashAttention(*op);
    Ok(Some(g.node(op, &operands, Dtype::F32, it.result.shape().to_vec())))
}

/// ONNX Runtime's own fused operator, for what it knows; products elsewhere. Heads that are shared are written out.
///
/// It knows no soft cap, takes keys and values by head only where these are of one width, and its kernels differ in which
/// of fewer queries than keys come last.
pub(in crate::lower) fn multi_head(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Attention(op), [q, k, v, mask @ ..]) = (it.op, it.operands) else { return Ok(None) };
    let apart = k.rank() == 4 || v.rank() == 4 || op.heads != op.kv_heads;
    let fits = !apart || head_size(k, op.kv_heads) == head_size(v, op.kv_heads);
    if op.softcap != 0.0 || !fits || op.causal && q.shape()[1] != *key_count(k) {
        return by_products(g, it);
    }
    let [mut queries, mut keys, mut values] = [q, k, v].map(Clone::clone);
    if apart {
        [keys, values] = [heads(g, k, op.kv_heads)?, heads(g, v, op.kv_heads)?];
    }
    if op.heads != op.kv_heads {
        [keys, values] = [repeated(g, &keys, *op)?, repeated(g, &values, *op)?];
    }
    let mut bias = vec![];
    for mask in mask {
        let additive = additive(g, mask, q.dtype())?;
        let each = for_each_query(g, &additive, [q, k])?;
        bias.push(four_axes(g, &each, [q, k])?);
        queries = seeing(g, *op, q, &additive)?;
    }
    let operands: Vec<_> = [&queries, &keys, &values].into_iter().chain(&bias).collect();
    Ok(Some(g.node(
        Op::Contrib(Contrib::MultiHeadAttention(*op)),
        &operands,
        it.result.dtype(),
        it.result.shape().to_vec(),
    )))
}

/// Two products with a softmax between.
pub(in crate::lower) fn by_products(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Attention(op), [q, k, v, mask @ ..]) = (it.op, it.operands) else { return Ok(None) };
    let (queries, keys) = (&q.shape()[1], key_count(k));
    let q = heads(g, q, op.heads)?;
    let mut k = transposed_heads(g, k, op.kv_heads)?;
    let mut v = heads(g, v, op.kv_heads)?;
    if op.heads != op.kv_heads {
        [k, v] = [repeated(g, &k, *op)?, repeated(g, &v, *op)?];
    }
    // Scaling the queries, not the scores, keeps half precision in range.
    let scale = g.number(q.dtype(), op.scale as f32);
    let mut q = g.mul(&q, &scale)?;
    for mask in mask {
        q = see(g, &q, mask)?;
    }
    let mut scores = g.matmul(&q, &k)?;
    if op.softcap != 0.0 {
        let cap = g.number(scores.dtype(), op.softcap as f32);
        scores = g.div(&scores, &cap)?;
        scores = g.unary(Unary::Tanh, &scores);
        scores = g.mul(&scores, &cap)?;
    }
    for mask in mask {
        scores = masked_scores(g, &scores, mask)?;
    }
    if op.causal {
        let bias = causal_bias(g, queries, keys, scores.dtype())?;
        scores = g.add(&scores, &bias)?;
    }
    let weights = g.softmax(&scores)?;
    let mixed = g.matmul(&weights, &v)?;
    merged(g, &mixed, it).map(Some)
}

/// `[batch, length, heads·size]` as `[batch, heads, length, size]`; what has its heads already stays.
fn heads(g: &mut Graph, x: &Tensor, heads: usize) -> Result<Tensor> {
    if x.rank() == 4 {
        return Ok(x.clone());
    }
    let apart = apart(g, x, heads)?;
    g.transpose(&apart, &[0, 2, 1, 3])
}

/// Keys as [`heads`], with the last two axes exchanged: `[batch, heads, size, length]`.
fn transposed_heads(g: &mut Graph, x: &Tensor, heads: usize) -> Result<Tensor> {
    if x.rank() == 4 {
        return g.transpose(x, &[0, 1, 3, 2]);
    }
    let apart = apart(g, x, heads)?;
    g.transpose(&apart, &[0, 2, 3, 1])
}

fn apart(g: &mut Graph, x: &Tensor, heads: usize) -> Result<Tensor> {
    let size = head_size(x, heads);
    g.reshape(x, dims![&x.shape()[0], &x.shape()[1], heads, size])
}

/// `[batch, heads, length, size]` as the operation's result, `[batch, length, heads·size]`.
fn merged(g: &mut Graph, x: &Tensor, it: &Operation<'_>) -> Result<Tensor> {
    let x = g.transpose(x, &[0, 2, 1, 3])?;
    g.reshape(&x, it.result.shape().to_vec())
}

/// Each key/value head `[batch, kv_heads, …]` once for every query head that shares it.
fn repeated(g: &mut Graph, x: &Tensor, op: AttentionOp) -> Result<Tensor> {
    let groups = op.heads / op.kv_heads.max(1);
    let mut shape = x.shape().to_vec();
    let x = g.unsqueeze(x, 2)?;
    let x = g.tile(&x, vec![1, 1, groups, 1, 1]);
    shape[1] = op.heads.into();
    g.reshape(&x, shape)
}

/// The width of one head.
fn head_size(x: &Tensor, heads: usize) -> usize {
    let width = x.dim(-1).and_then(Dim::fixed).unwrap_or_default();
    if x.rank() == 4 { width } else { width / heads.max(1) }
}
