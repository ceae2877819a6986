//! Operations with a state of fixed size: causal convolutions over what came before, and linear attention.

use crate::Result;
use crate::graph::{
    CausalConvOp, Dim, Dtype, Graph, LinearAttention, LinearAttentionOp, Op, RecurrenceResult, SelectiveScan,
    SelectiveScanOp, Tensor, show,
};
use crate::lower::rare;

impl Graph {
    /// Selective scan (`selective_scan_fn`; Gu and Dao, 2023, arXiv:2312.00752): `[batch, sequence, width]`, and the state behind
    /// the last position `[batch, width, state, 1]`, in single precision.
    ///
    /// Of each channel `S = exp(∆·A)·S + ∆·u·B` with the softplus of what is given as ∆, of which the result is `Sᵀ·C + D·u`, times
    /// `SiLU(z)` where there is a gate.
    ///
    /// # Errors
    /// When the shapes do not go together.
    pub fn selective_scan(&mut self, x: &SelectiveScan<'_>) -> Result<(Tensor, Tensor)> {
        self.rare.recurrence = Some(&rare::RECURRENCE);
        let SelectiveScan { u, delta, a, b, c, d, state, z, groups } = *x;
        self.float("SelectiveScan", u)?;
        let operands: Vec<_> = [u, delta, a, b, c, d, state].into_iter().chain(z).collect();
        let fits = match (u.shape(), a.shape()) {
            ([batch, sequence, width], [channels, states]) => {
                let (wide, keys) = (width.fixed().unwrap_or_default(), states.fixed().unwrap_or_default());
                let by_group = [batch.clone(), sequence.clone(), Dim::Fixed(groups * keys)];
                wide > 0
                    && keys > 0
                    && groups > 0
                    && wide.is_multiple_of(groups)
                    && width == channels
                    && delta.shape() == u.shape()
                    && z.is_none_or(|z| z.shape() == u.shape())
                    && *b.shape() == by_group
                    && *c.shape() == by_group
                    && *d.shape() == [width.clone()]
                    && *state.shape() == [batch.clone(), width.clone(), states.clone(), Dim::Fixed(1)]
            }
            _ => false,
        };
        if !fits {
            let shapes: Vec<_> = operands.iter().map(|x| show(x.shape())).collect();
            let problem = format!("{groups} groups, {}: the shapes do not fit", shapes.join(", "));
            return Err(self.error("SelectiveScan", problem));
        }
        let op = |gives| Op::SelectiveScan(SelectiveScanOp { groups, gives });
        self.in_single(|g| {
            let y = g.node(op(RecurrenceResult::Output), &operands, u.dtype(), u.shape().to_vec());
            let state = g.node(op(RecurrenceResult::State), &operands, u.dtype(), state.shape().to_vec());
            Ok((y, state))
        })
    }

    /// Linear attention (`com.microsoft.LinearAttention`): a state that keys and values are added to and queries read, position by position:
    /// `[batch, sequence, heads·value]`, and the state behind the last position `[batch, heads, key, value]`.
    ///
    /// With decay g and delta rule β: `S = exp(g)·S + k ⊗ β(v − exp(g)·Sᵀk)`, of which the result is `scale·Sᵀq`.
    ///
    /// # Errors
    /// When the shapes do not go together.
    pub fn linear_attention(&mut self, x: &LinearAttention<'_>) -> Result<(Tensor, Tensor)> {
        self.rare.recurrence = Some(&rare::RECURRENCE);
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
    /// `[batch, (kernel − 1)·dilation, channels]`, weight `[channels, 1, kernel]` and optional bias `[channels]`, to the shape of x, with
    /// SiLU applied where that is asked for; and what comes before the next positions, of the shape of `past`.
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
        silu: bool,
    ) -> Result<(Tensor, Tensor)> {
        self.rare.recurrence = Some(&rare::RECURRENCE);
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
        let op = |gives| Op::CausalConv(CausalConvOp { dilation, silu, gives });
        let y = self.node(op(RecurrenceResult::Output), &operands, Dtype::F32, x.shape().to_vec());
        let state = self.node(op(RecurrenceResult::State), &operands, Dtype::F32, past.shape().to_vec());
        Ok((y, state))
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
        let scan = |width: usize, groups: usize| {
            refusal(|g| {
                let u = g.input(Input::f32("u", dims![BATCH, SEQUENCE, 6]));
                let b = g.input(Input::f32("b", dims![BATCH, SEQUENCE, 4]));
                let state = g.input(Input::f32("s", dims![BATCH, width, 2, 1]));
                let a = g.constant(&[width, 2], vec![-1.0; 2 * width])?;
                let d = g.constant(&[6], vec![0.0; 6])?;
                let x = SelectiveScan {
                    u: &u,
                    delta: &u,
                    a: &a,
                    b: &b,
                    c: &b,
                    d: &d,
                    state: &state,
                    z: None,
                    groups,
                };
                g.selective_scan(&x)
            })
        };
        insta::assert_snapshot!(scan(5, 2), @"SelectiveScan in the root: 2 groups, [batch, sequence, 6], [batch, sequence, 6], [5, 2], [batch, sequence, 4], [batch, sequence, 4], [6], [batch, 5, 2, 1]: the shapes do not fit");
        insta::assert_snapshot!(scan(6, 4), @"SelectiveScan in the root: 4 groups, [batch, sequence, 6], [batch, sequence, 6], [6, 2], [batch, sequence, 4], [batch, sequence, 4], [6], [batch, 6, 2, 1]: the shapes do not fit");
        let problem = refusal(|g| {
            let x = g.input(Input::f32("x", dims![BATCH, SEQUENCE, 3]));
            let past = g.input(Input::f32("past", dims![BATCH, 3, 3]));
            let weight = g.constant(&[3, 1, 3], vec![0.0; 9])?;
            g.causal_conv(&x, &past, &weight, None, 1, false)
        });
        insta::assert_snapshot!(problem, @"CausalConv in the root: x [batch, sequence, 3] behind [batch, 3, 3] and a kernel [3, 1, 3] at dilation 1 do not fit");
    }
}
