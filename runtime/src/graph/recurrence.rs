//! What operations with a state of fixed size are given.

use super::{Graph, Op, Tensor};

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

/// What the selective scan is given, by the letters of `selective_scan_fn`; lengths are those of [`Op::SelectiveScan`].
#[derive(Clone, Copy, Debug)]
pub struct SelectiveScan<'a> {
    /// The channels `[batch, sequence, width]`.
    pub u: &'a Tensor,
    /// ∆ of each channel before its softplus (`delta_softplus`), of the same shape.
    pub delta: &'a Tensor,
    /// A `[width, state]`, below 0.
    pub a: &'a Tensor,
    /// B `[batch, sequence, groups·state]`.
    pub b: &'a Tensor,
    /// C of the same shape.
    pub c: &'a Tensor,
    /// D `[width]`.
    pub d: &'a Tensor,
    /// The state before the first position `[batch, width, state, 1]`.
    pub state: &'a Tensor,
    /// z, whose SiLU multiplies the result, of the shape of u; none without a gate.
    pub z: Option<&'a Tensor>,
    /// Runs of neighbouring channels that share B and C.
    pub groups: usize,
}

impl Graph {
    /// Whether it has linear attention, which is computed chunk by chunk where a backend has no kernel for it, or a selective scan,
    /// which is one of its forms.
    pub(crate) fn is_recurrent(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node.op, Op::LinearAttention(_) | Op::SelectiveScan(_)))
    }
}
