//! Operations with a state of fixed size: causal convolutions over what came before, and linear attention.

use super::{CausalConvOp, Dim, Dtype, Graph, LinearAttentionOp, Op, RecurrenceResult, Tensor, show};
use crate::Result;

/// What linear attention is given; lengths are those of [`Op::LinearAttention`].
#[derive(Clone, Copy, Debug)]
pub struct LinearAttention<'a> {
    /// Queries `[batch, sequence, query_heads·key]`.
    pub q: &'a Tensor,
    /// Keys `[batch, sequence, heads·key]`.
    pub k: &'a Tensor,
    /// Values `[batch, sequence, heads·value]`.
    pub v: &'a Tensor,
    /// The state before the first position `[batch, heads, key, value]`.
    pub state: &'a Tensor,
    /// Logarithms of what is left of the state at each position, never above 0: `[batch, sequence, heads]`, or
    /// `[batch, sequence, heads·key]` by key; all is left where there are none.
    pub decay: Option<&'a Tensor>,
    /// By how much the delta rule corrects what the state holds for a key, `[batch, sequence, heads]`; none for sums.
    pub beta: Option<&'a Tensor>,
    /// States side by side.
    pub heads: usize,
    /// Queries side by side, of which `heads` is a multiple: neighbouring heads share one.
    pub query_heads: usize,
    /// Multiplies the result.
    pub scale: f64,
}

impl Graph {
    /// Linear attention (`com.microsoft.LinearAttention`): a state that keys and values are added to and queries read, position by position:
    /// `[batch, sequence, heads·value]`, and the state behind the last position `[batch, heads, key, value]`.
    ///
    /// With decay g and delta rule β: `S = exp(g)·S + k ⊗ β(v − exp(g)·Sᵀk)`, of which the result is `scale·Sᵀq`.
    ///
    /// # Errors
    /// When the shapes do not go together.
    pub fn linear_attention(&mut self, x: &LinearAttention<'_>) -> Result<(Tensor, Tensor)> {
        let LinearAttention { q, k, v, state, decay, beta, heads, query_heads, scale } = *x;
        self.float("LinearAttention", q)?;
        let shapes = [Some(q), Some(k), Some(v), Some(state), decay, beta];
        let shown: Vec<_> = shapes.into_iter().flatten().map(|x| show(x.shape())).collect();
        let misfit = |g: &Self, why: &str| {
            g.error(
                "LinearAttention",
                format!("{heads} heads, {query_heads} of queries, {}: {why}", shown.join(", ")),
            )
        };
        if query_heads == 0 || heads == 0 || !heads.is_multiple_of(query_heads) {
            return Err(misfit(self, "heads are a multiple of those of queries"));
        }
        let [batch, states, key, value] = state.shape() else {
            return Err(misfit(self, "the state has four axes"));
        };
        let (Some(key), Some(value)) = (key.fixed(), value.fixed()) else {
            return Err(misfit(self, "the state's last axes have fixed lengths"));
        };
        let sequence = q.shape().get(1).cloned().unwrap_or(Dim::Fixed(0));
        let has =
            |x: &Tensor, width: usize| *x.shape() == [batch.clone(), sequence.clone(), Dim::Fixed(width)];
        if states.fixed() != Some(heads)
            || !has(q, query_heads * key)
            || !has(k, heads * key)
            || !has(v, heads * value)
        {
            return Err(misfit(self, "queries, keys and values do not fit the state"));
        }
        if decay.is_some_and(|decay| !has(decay, heads) && !has(decay, heads * key)) {
            return Err(misfit(self, "decays are one for each head, or for each of its keys"));
        }
        if beta.is_some_and(|beta| !has(beta, heads)) {
            return Err(misfit(self, "the delta rule takes one number for each head"));
        }
        let result = vec![batch.clone(), sequence, (heads * value).into()];
        let operands: Vec<_> = [q, k, v, state].into_iter().chain(decay).chain(beta).collect();
        let (decays, delta) = (decay.is_some(), beta.is_some());
        let op = |gives| {
            Op::LinearAttention(LinearAttentionOp { heads, query_heads, scale, decays, delta, gives })
        };
        let mixed = self.node(op(RecurrenceResult::Output), &operands, q.dtype(), result);
        let state = self.node(op(RecurrenceResult::State), &operands, q.dtype(), state.shape().to_vec());
        Ok((mixed, state))
    }

    /// Causal depthwise convolution (`causal_conv1d`): x `[batch, sequence, channels]` behind `past`
    /// `[batch, (kernel − 1)·dilation, channels]`, weight `[channels, 1, kernel]` and optional bias `[channels]`, to the shape of x.
    ///
    /// # Errors
    /// When the shapes do not go together.
    pub fn causal_conv(
        &mut self,
        x: &Tensor,
        past: &Tensor,
        weight: &Tensor,
        bias: Option<&Tensor>,
        dilation: usize,
    ) -> Result<Tensor> {
        self.float("CausalConv", x)?;
        let fits = match (x.shape(), past.shape(), weight.shape()) {
            ([batch, _, channels], [b, before, c], [out, Dim::Fixed(1), kernel]) => {
                let reach =
                    kernel.fixed().and_then(|kernel| kernel.checked_sub(1)).map(|kernel| kernel * dilation);
                let biased = bias.is_none_or(|bias| *bias.shape() == [channels.clone()]);
                batch == b
                    && channels == c
                    && channels == out
                    && reach.is_some()
                    && before.fixed() == reach
                    && biased
            }
            _ => false,
        };
        if !fits || dilation == 0 {
            let [x, past, weight] = [x, past, weight].map(|x| show(x.shape()));
            let problem =
                format!("x {x} behind {past} and a kernel {weight} at dilation {dilation} do not fit");
            return Err(self.error("CausalConv", problem));
        }
        let operands: Vec<_> = [x, weight, past].into_iter().chain(bias).collect();
        Ok(self.node(Op::CausalConv(CausalConvOp { dilation }), &operands, Dtype::F32, x.shape().to_vec()))
    }

    /// Whether it has linear attention, which is computed chunk by chunk where a backend has no kernel for it.
    pub(crate) fn is_recurrent(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node.op, Op::LinearAttention(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims;
    use crate::graph::Input;
    use crate::graph::dims::{BATCH, SEQUENCE};
    use crate::nn::testing::refusal;

    #[test]
    fn what_does_not_fit_is_refused() {
        let attend = |heads: usize, query_heads: usize, width: usize| {
            refusal(|g| {
                let [q, k, v] =
                    ["q", "k", "v"].map(|name| g.input(Input::f32(name, dims![BATCH, SEQUENCE, width])));
                let state = g.input(Input::f32("s", dims![BATCH, 4, 2, 2]));
                let x = LinearAttention {
                    q: &q,
                    k: &k,
                    v: &v,
                    state: &state,
                    decay: None,
                    beta: None,
                    heads,
                    query_heads,
                    scale: 1.0,
                };
                g.linear_attention(&x)
            })
        };
        insta::assert_snapshot!(attend(4, 3, 8), @"LinearAttention in the root: 4 heads, 3 of queries, [batch, sequence, 8], [batch, sequence, 8], [batch, sequence, 8], [batch, 4, 2, 2]: heads are a multiple of those of queries");
        insta::assert_snapshot!(attend(4, 4, 6), @"LinearAttention in the root: 4 heads, 4 of queries, [batch, sequence, 6], [batch, sequence, 6], [batch, sequence, 6], [batch, 4, 2, 2]: queries, keys and values do not fit the state");
        let problem = refusal(|g| {
            let x = g.input(Input::f32("x", dims![BATCH, SEQUENCE, 3]));
            let past = g.input(Input::f32("past", dims![BATCH, 3, 3]));
            let weight = g.constant(&[3, 1, 3], vec![0.0; 9])?;
            g.causal_conv(&x, &past, &weight, None, 1)
        });
        insta::assert_snapshot!(problem, @"CausalConv in the root: x [batch, sequence, 3] behind [batch, 3, 3] and a kernel [3, 1, 3] at dilation 1 do not fit");
    }
}
