//! What stands between the linear layers of an expert: an activation function, alone or with what its result is a factor of.

use super::mixture::product_of;
use crate::Result;
use crate::graph::{Activation, Binary, Constant, Graph, Op, Tensor, Unary};

/// `act(gate) · (up + beta)`, or act alone. With a limit gates are at most that, and up projections at most this far from 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Gating {
    /// The activation function; SiLU where `alpha` is another one than 1.
    pub act: Activation,
    /// `gate · σ(alpha · gate)` is what SiLU gives.
    pub alpha: f32,
    pub beta: f32,
    pub limit: Option<f32>,
}

impl Gating {
    /// What makes a value, of which gate, and up projection.
    pub fn of(g: &Graph, x: &Tensor) -> Option<(Self, Tensor, Option<Tensor>)> {
        let Some((a, b)) = product_of(g, x) else {
            let (act, alpha, gate) = activated(g, x)?;
            let (gate, limit) = at_most(g, &gate).map_or((gate, None), |(gate, limit)| (gate, Some(limit)));
            // Kernels of experts without gates have no limits.
            return limit.is_none().then_some((Self { act, alpha, beta: 0.0, limit }, gate, None));
        };
        let ((act, alpha, gate), up) = match activated(g, &a) {
            Some(activated) => (activated, b),
            None => (activated(g, &b)?, a),
        };
        let (beta, up) = match with_constant(g, &up, Binary::Add) {
            Some((up, beta)) => (beta, up),
            None => (0.0, up),
        };
        let (gate, up, limit) = match (at_most(g, &gate), far_at_most(g, &up)) {
            (Some((gate, limit)), Some((up, far))) if far == limit => (gate, up, Some(limit)),
            (None, None) => (gate, up, None),
            _ => return None,
        };
        Some((Self { act, alpha, beta, limit }, gate, Some(up)))
    }

    /// What it makes of clamped gates of SiLU and up projections, in the order of operations that OpenVINO looks for.
    pub fn clamped(&self, g: &mut Graph, gate: &Tensor, up: &Tensor, limit: f32) -> Result<Tensor> {
        let up = g.clip(up, -limit, limit)?;
        let beta = g.scalar(self.beta);
        let up = g.add(&up, &beta)?;
        let most = g.scalar(limit);
        let gate = g.binary(Binary::Min, gate, &most)?;
        let sharp = g.scale(&gate, self.alpha.into())?;
        let sharp = g.unary(Unary::Sigmoid, &sharp);
        let gate = g.mul(&gate, &sharp)?;
        g.mul(&up, &gate)
    }
}

/// An activation function, its alpha, and what it is of.
fn activated(g: &Graph, x: &Tensor) -> Option<(Activation, f32, Tensor)> {
    if let Op::Activate(act) = g.made_by(x)?.op {
        return Some((act, 1.0, g.tensor(g.made_by(x)?.inputs[0]).clone()));
    }
    let (gate, sigmoid) = product_of(g, x)?;
    let node = g.made_by(&sigmoid).filter(|node| node.op == Op::Unary(Unary::Sigmoid))?;
    let (of, alpha) = with_constant(g, g.tensor(node.inputs[0]), Binary::Mul)?;
    (of.id == gate.id).then_some((Activation::Silu, alpha, gate))
}

/// What an operation with a number is of, and the number.
fn with_constant(g: &Graph, x: &Tensor, op: Binary) -> Option<(Tensor, f32)> {
    let node = g.made_by(x).filter(|node| node.op == Op::Binary(op))?;
    match g.literal(g.tensor(node.inputs[1]))? {
        Constant::F32(numbers) if numbers.len() == 1 => Some((g.tensor(node.inputs[0]).clone(), numbers[0])),
        _ => None,
    }
}

fn at_most(g: &Graph, x: &Tensor) -> Option<(Tensor, f32)> {
    with_constant(g, x, Binary::Min)
}

/// What is at most so far from 0, and how far.
fn far_at_most(g: &Graph, x: &Tensor) -> Option<(Tensor, f32)> {
    let (x, most) = at_most(g, x)?;
    let (x, least) = with_constant(g, &x, Binary::Max)?;
    (least == -most).then_some((x, most))
}
