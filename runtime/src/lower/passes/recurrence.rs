//! Convolutions with a state and linear attention out of plain operators, chunk by chunk, at fixed lengths.

use crate::Result;
use crate::dims;
use crate::graph::{
    Binary, CausalConvOp, Constant, Dim, Dtype, Graph, LinearAttention, Op, Operation, RecurrenceResult,
    Reduction, SelectiveScanOp, Tensor, Unary,
};

/// Positions that products go over at once: of sums with one decay for each head.
const CHUNK: usize = 64;
/// Where each key decays by itself, which a product of pairs of positions cannot hold, or the delta rule's inverse is
/// needed, whose powers lose more digits the longer the chunk.
const SHORT_CHUNK: usize = 16;
/// What the logarithm of a decay is where nothing is seen: its exponential is 0 in half precision too.
const UNSEEN: f32 = -1e4;

/// A causal depthwise convolution as one product for each element of the kernel.
pub(in crate::lower) fn causal_conv_by_products(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::CausalConv(CausalConvOp { dilation, silu, gives }), [x, weight, past, bias @ ..]) =
        (it.op, it.operands)
    else {
        return Ok(None);
    };
    let whole = g.concat(&[past, x], 1)?;
    if *gives == RecurrenceResult::State {
        let (before, end) = (past.shape()[1].clone(), whole.shape()[1].clone());
        let last = g.slice_dims(&whole, 1, end.clone() - before, end)?;
        return g.reshape(&last, past.shape().to_vec()).map(Some);
    }
    let kernel = weight.shape()[2].fixed().unwrap_or_default();
    let mut sum: Option<Tensor> = None;
    for index in 0..kernel {
        let start = Dim::Fixed(index * dilation);
        let shifted = g.slice_dims(&whole, 1, start.clone(), start + x.shape()[1].clone())?;
        let factor = g.slice(weight, 2, index..index + 1)?;
        let factor = g.reshape(&factor, dims![&weight.shape()[0]])?;
        let product = g.mul(&shifted, &factor)?;
        sum = Some(match sum {
            Some(sum) => g.add(&sum, &product)?,
            None => product,
        });
    }
    let sum = match (sum, bias) {
        (Some(sum), [bias]) => Some(g.add(&sum, bias)?),
        (sum, _) => sum,
    };
    match sum {
        Some(sum) if *silu => activated(g, &sum).map(Some),
        sum => Ok(sum),
    }
}

/// SiLU by its operators: passes that write activations so have gone by.
fn activated(g: &mut Graph, x: &Tensor) -> Result<Tensor> {
    let gate = g.unary(Unary::Sigmoid, x);
    g.mul(x, &gate)
}

/// A selective scan as linear attention with a head for each channel: keys are ∆·B, values the channel, queries C, which all heads
/// of a group share, and the logarithms of decays ∆·A, one for each of the channel's states.
pub(in crate::lower) fn selective_scan_by_linear_attention(
    g: &mut Graph,
    it: &Operation<'_>,
) -> Result<Option<Tensor>> {
    let (Op::SelectiveScan(SelectiveScanOp { groups, gives }), [u, delta, a, b, c, d, state, gate @ ..]) =
        (it.op, it.operands)
    else {
        return Ok(None);
    };
    let [width, keys] = [0, 1].map(|axis| a.dim(axis).and_then(Dim::fixed).unwrap_or_default());
    let (batch, sequence) = (u.shape()[0].clone(), u.shape()[1].clone());
    g.in_single(|g| {
        let delta = &g.unary(Unary::Softplus, delta);
        let by_channel = g.unsqueeze(delta, 3)?;
        let decay = g.mul(&by_channel, a)?;
        let k = if *groups == 1 {
            let b = g.unsqueeze(b, 2)?;
            g.mul(&by_channel, &b)?
        } else {
            let size = width / groups;
            let delta = g.reshape(delta, dims![&batch, &sequence, *groups, size, 1])?;
            let b = g.reshape(b, dims![&batch, &sequence, *groups, 1, keys])?;
            g.mul(&delta, &b)?
        };
        let [decay, k] = [
            g.reshape(&decay, dims![&batch, &sequence, width * keys])?,
            g.reshape(&k, dims![&batch, &sequence, width * keys])?,
        ];
        let scan = LinearAttention {
            q: c,
            k: &k,
            v: u,
            state,
            decay: Some(&decay),
            beta: None,
            heads: width,
            query_heads: *groups,
            scale: 1.0,
        };
        let (y, state) = g.linear_attention(&scan)?;
        if *gives == RecurrenceResult::State {
            return Ok(Some(state));
        }
        let skipped = g.mul(u, d)?;
        let y = g.add(&y, &skipped)?;
        match gate {
            [z] => {
                let gate = activated(g, z)?;
                g.mul(&y, &gate).map(Some)
            }
            _ => Ok(Some(y)),
        }
    })
}

/// Linear attention in single precision, in which its state and the logarithms of decays add up.
pub(in crate::lower) fn linear_attention_in_single(
    g: &mut Graph,
    it: &Operation<'_>,
) -> Result<Option<Tensor>> {
    if !matches!(it.op, Op::LinearAttention(_)) || it.result.dtype() == Dtype::F32 {
        return Ok(None);
    }
    let wide: Vec<_> = it.operands.iter().map(|x| g.cast(x, Dtype::F32)).collect();
    let wide = it.again(g, &wide.iter().collect::<Vec<_>>(), Dtype::F32);
    Ok(Some(g.cast(&wide, it.result.dtype())))
}

/// Linear attention in chunks: products within each, and the state from one to the next (the chunkwise form of Yang et
/// al., 2024, arXiv:2312.06635 and arXiv:2406.06484). Where the length is no number it stays.
pub(in crate::lower) fn linear_attention_by_chunks(
    g: &mut Graph,
    it: &Operation<'_>,
) -> Result<Option<Tensor>> {
    let (Op::LinearAttention(op), [q, k, v, state, gates @ ..]) = (it.op, it.operands) else {
        return Ok(None);
    };
    let Some(length) = q.shape()[1].fixed() else { return Ok(None) };
    let q = by_head(g, q, op.query_heads)?;
    let q = repeated(g, &q, op.heads)?;
    let q = scaled(g, &q, op.scale)?;
    let [k, v] = [by_head(g, k, op.heads)?, by_head(g, v, op.heads)?];
    let (decay, beta) = match (gates, op.decays) {
        ([decay, rest @ ..], true) => (Some(by_head(g, decay, op.heads)?), rest.first()),
        (rest, _) => (None, rest.first()),
    };
    let beta = beta.map(|beta| by_head(g, beta, op.heads)).transpose()?;
    let by_key =
        decay.as_ref().is_some_and(|decay| *decay.shape().last().unwrap_or(&Dim::Fixed(1)) != Dim::Fixed(1));
    let size = if by_key || op.delta { SHORT_CHUNK } else { CHUNK };
    let (mut state, mut results) = (state.clone(), vec![]);
    for start in (0..length).step_by(size) {
        let range = start..(start + size).min(length);
        let mut cut = |x: &Tensor| g.slice(x, 2, range.clone());
        let chunk = Chunk {
            q: cut(&q)?,
            k: cut(&k)?,
            v: cut(&v)?,
            decay: decay.as_ref().map(&mut cut).transpose()?,
            beta: beta.as_ref().map(&mut cut).transpose()?,
            length: range.len(),
            by_key,
        };
        let (result, next) = chunk.forward(g, &state)?;
        state = next;
        results.push(result);
    }
    if op.gives == RecurrenceResult::State {
        return Ok(Some(state));
    }
    let results: Vec<_> = results.iter().collect();
    let all = g.concat(&results, 2)?;
    let all = g.transpose(&all, &[0, 2, 1, 3])?;
    g.reshape(&all, it.result.shape().to_vec()).map(Some)
}

/// Some positions, all `[batch, heads, length, …]`.
struct Chunk {
    q: Tensor,
    k: Tensor,
    v: Tensor,
    /// Logarithms `[…, 1]`, or `[…, key]`.
    decay: Option<Tensor>,
    /// `[…, 1]`.
    beta: Option<Tensor>,
    length: usize,
    by_key: bool,
}

impl Chunk {
    /// What is read at each position, and the state behind the last.
    fn forward(mut self, g: &mut Graph, state: &Tensor) -> Result<(Tensor, Tensor)> {
        // Logarithms of what is left at each position of the state before the first.
        let left = match &self.decay {
            Some(decay) if self.length > 1 => Some(g.cumsum(decay, 2)?),
            decay => decay.clone(),
        };
        let pairs = left.as_ref().map(|left| self.pair_decays(g, left)).transpose()?;
        if let Some(beta) = self.beta.take() {
            self.v = self.corrected(g, state, &beta, left.as_ref(), pairs.as_ref())?;
        }
        let scores = self.scores(g, &self.q, pairs.as_ref())?;
        let scores = lower(g, &scores, self.length, 0)?;
        let within = g.matmul(&scores, &self.v)?;
        let q = decayed(g, &self.q, left.as_ref())?;
        let before = g.matmul(&q, state)?;
        let result = g.add(&within, &before)?;
        let Some(left) = &left else {
            return Ok((result, self.added(g, state, &self.k)?));
        };
        let last = g.slice(left, 2, self.length - 1..self.length)?;
        let until = g.sub(&last, left)?;
        let k = decayed(g, &self.k, Some(&until))?;
        let kept = g.transpose(&last, &[0, 1, 3, 2])?;
        let state = decayed(g, state, Some(&kept))?;
        Ok((result, self.added(g, &state, &k)?))
    }

    /// The state with keys and values added.
    fn added(&self, g: &mut Graph, state: &Tensor, k: &Tensor) -> Result<Tensor> {
        let k = g.transpose(k, &[0, 1, 3, 2])?;
        let sum = g.matmul(&k, &self.v)?;
        g.add(state, &sum)
    }

    /// What is left at each position of what each earlier one added: `[…, length, length]`, or `[…, length, length, key]`.
    fn pair_decays(&self, g: &mut Graph, left: &Tensor) -> Result<Tensor> {
        let seen = triangle(g, left, self.length, 0, [0.0, UNSEEN]);
        let difference = match self.by_key {
            true => {
                let (to, from) = (g.unsqueeze(left, 3)?, g.unsqueeze(left, 2)?);
                g.sub(&to, &from)?
            }
            false => {
                let from = g.transpose(left, &[0, 1, 3, 2])?;
                g.sub(left, &from)?
            }
        };
        let seen = if self.by_key { g.unsqueeze(&seen, 2)? } else { seen };
        let difference = g.binary(Binary::Min, &difference, &seen)?;
        Ok(g.unary(Unary::Exp, &difference))
    }

    /// Products of x with all keys, decayed: `[…, length, length]`.
    fn scores(&self, g: &mut Graph, x: &Tensor, pairs: Option<&Tensor>) -> Result<Tensor> {
        if self.by_key
            && let Some(pairs) = pairs
        {
            let (x, k) = (g.unsqueeze(x, 3)?, g.unsqueeze(&self.k, 2)?);
            let product = g.mul(&x, &k)?;
            let product = g.mul(&product, pairs)?;
            return g.reduce(Reduction::Sum, &product, &[4], false);
        }
        let k = g.transpose(&self.k, &[0, 1, 3, 2])?;
        let scores = g.matmul(x, &k)?;
        match pairs {
            Some(pairs) => g.mul(&scores, pairs),
            None => Ok(scores),
        }
    }

    /// What the delta rule adds in place of values: `(I + L)⁻¹ β(v − k·S)`, where L is what earlier positions of the chunk
    /// add to what is held for a key.
    fn corrected(
        &self,
        g: &mut Graph,
        state: &Tensor,
        beta: &Tensor,
        left: Option<&Tensor>,
        pairs: Option<&Tensor>,
    ) -> Result<Tensor> {
        let k = decayed(g, &self.k, left)?;
        let held = g.matmul(&k, state)?;
        let missing = g.sub(&self.v, &held)?;
        let missing = g.mul(&missing, beta)?;
        if self.length < 2 {
            return Ok(missing);
        }
        let scores = self.scores(g, &self.k, pairs)?;
        let scores = g.mul(&scores, beta)?;
        let mut power = lower(g, &scores, self.length, 1)?;
        // (I + L)⁻¹ = (I − L)(I + L²)(I + L⁴)…, as no power from the chunk's length on is left.
        let once = g.matmul(&power, &missing)?;
        let mut solved = g.sub(&missing, &once)?;
        let mut reach = 2;
        while reach < self.length {
            power = g.matmul(&power, &power)?;
            let more = g.matmul(&power, &solved)?;
            solved = g.add(&solved, &more)?;
            reach *= 2;
        }
        Ok(solved)
    }
}

/// `[batch, length, heads·size]` as `[batch, heads, length, size]`.
fn by_head(g: &mut Graph, x: &Tensor, heads: usize) -> Result<Tensor> {
    let size = x.dim(-1).and_then(Dim::fixed).unwrap_or_default() / heads.max(1);
    let x = g.reshape(x, dims![&x.shape()[0], &x.shape()[1], heads, size])?;
    g.transpose(&x, &[0, 2, 1, 3])
}

/// Each head of queries once for every state that it reads.
fn repeated(g: &mut Graph, x: &Tensor, heads: usize) -> Result<Tensor> {
    let [batch, queries, length, size] = x.shape() else { return Ok(x.clone()) };
    let shape = dims![batch, heads, length, size];
    let times = heads / queries.fixed().unwrap_or(1).max(1);
    if times == 1 {
        return Ok(x.clone());
    }
    let x = g.unsqueeze(x, 2)?;
    let x = g.tile(&x, vec![1, 1, times, 1, 1]);
    g.reshape(&x, shape)
}

fn scaled(g: &mut Graph, x: &Tensor, scale: f64) -> Result<Tensor> {
    if scale == 1.0 {
        return Ok(x.clone());
    }
    let scale = g.number(x.dtype(), scale as f32);
    g.mul(x, &scale)
}

/// x times the exponentials of logarithms.
fn decayed(g: &mut Graph, x: &Tensor, logarithms: Option<&Tensor>) -> Result<Tensor> {
    let Some(logarithms) = logarithms else { return Ok(x.clone()) };
    let factor = g.unary(Unary::Exp, logarithms);
    g.mul(x, &factor)
}

/// The part of square matrices that lies so far below the diagonal or farther.
fn lower(g: &mut Graph, x: &Tensor, length: usize, offset: usize) -> Result<Tensor> {
    if length == 1 && offset == 0 {
        return Ok(x.clone());
    }
    let ones = triangle(g, x, length, offset, [1.0, 0.0]);
    g.mul(x, &ones)
}

/// A matrix `[length, length]` with one number so far below the diagonal or farther, and another elsewhere.
fn triangle(
    g: &mut Graph,
    like: &Tensor,
    length: usize,
    offset: usize,
    [below, elsewhere]: [f32; 2],
) -> Tensor {
    let numbers =
        (0..length * length).map(|i| if i % length + offset <= i / length { below } else { elsewhere });
    g.filled(like.dtype(), dims![length, length], Constant::F32(numbers.collect()))
}

#[cfg(test)]
mod tests;
