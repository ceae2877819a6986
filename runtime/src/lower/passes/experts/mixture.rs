//! What engines have operators for: mixtures of experts that are MLPs, gated or not.

use std::borrow::Cow;

use super::gating::Gating;
use super::{count, stacked};
use crate::Result;
use crate::graph::{
    Binary, Dim, ExpertLinearOp, Graph, Op, Operation, Reduction, Tensor, TopKOp, TopKResult,
};
use crate::lower::Kernels;
use crate::lower::quantized::{Weights, dequantized_experts};
use crate::weights::{Bytes, WeightData};

/// A mixture of experts.
pub(super) struct Mixture {
    /// What all experts are given, `[rows, hidden]`.
    pub x: Tensor,
    /// Routing weights `[rows, experts]`.
    pub routing: Tensor,
    /// Those of the selected experts, `[rows, selected]`; none where x has been multiplied by them.
    pub values: Option<Tensor>,
    /// Which ones these are, `[rows, selected]`.
    pub indices: Tensor,
    /// What stands between the linear layers.
    pub gating: Gating,
    /// What the activation function is of.
    pub gate: Projection,
    /// What gates are factors of; none without gates.
    pub up: Option<Projection>,
    pub down: Projection,
}

/// Rows and columns that are transposed at a time.
const TILE: usize = 32;

/// The weights of a linear layer of each expert.
#[derive(Clone)]
pub(super) struct Projection {
    weights: Vec<Tensor>,
    transposed: bool,
    /// Biases `[experts, out]`, of all results.
    pub bias: Option<Tensor>,
    /// The results that are the layer's, where it has others too.
    pub part: Option<Part>,
}

/// Every `step`th result of a linear layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub start: usize,
    pub end: usize,
    pub step: usize,
}

impl Part {
    fn len(self) -> usize {
        (self.end - self.start).div_ceil(self.step)
    }

    /// The part of an axis.
    pub fn of(self, g: &mut Graph, x: &Tensor, axis: usize) -> Tensor {
        let mut shape = x.shape().to_vec();
        shape[axis] = Dim::Fixed(self.len());
        let op = Op::Slice { axis, start: self.start.into(), end: self.end.into(), step: self.step };
        g.node(op, &[x], x.dtype(), shape)
    }
}

impl Mixture {
    /// The mixture that an operation is the sum of.
    pub fn of(g: &Graph, it: &Operation<'_>) -> Option<Self> {
        let sum = Op::Reduce { by: Reduction::Sum, axes: vec![1], keep: false };
        let [summed] = it.operands else { return None };
        let summed = (*it.op == sum).then_some(summed)?;
        let (down, factors) = match product_of(g, summed) {
            Some((h, factors)) => (Layer::of(g, &h)?, Some(factors)),
            None => (Layer::of(g, summed)?, None),
        };
        let (gating, gate, up) = Gating::of(g, &down.x)?;
        let gate = Layer::of(g, &gate)?;
        let up = match up {
            Some(up) => Some(Layer::of(g, &up)?),
            None => None,
        };
        let alike = up.as_ref().is_none_or(|up| up.x.id == gate.x.id && up.indices.id == gate.indices.id);
        // What each expert is given alone is no mixture of this form, nor are experts whose factors are others.
        let shared = gate.x.dim(1) == Some(&Dim::Fixed(1)) && gate.indices.id == down.indices.id;
        if !alike || !shared {
            return None;
        }
        let selection = g.made_by(&down.indices)?;
        let gives = |node: &Op, wanted| matches!(node, Op::TopK(TopKOp { gives, .. }) if *gives == wanted);
        if !gives(&selection.op, TopKResult::Indices) {
            return None;
        }
        let routing = g.tensor(selection.inputs[0]).clone();
        let (x, values) = match factors {
            Some(factors) => {
                let values = reshaped(g, &factors)?;
                let node = g.made_by(&values)?;
                if !gives(&node.op, TopKResult::Values) || node.inputs != selection.inputs {
                    return None;
                }
                (reshaped(g, &gate.x)?, Some(values))
            }
            // Of several each would have factors of its own.
            None if down.indices.dim(1) == Some(&Dim::Fixed(1)) => (gate.x, None),
            None => return None,
        };
        let (gate, up) = (gate.projection, up.map(|up| up.projection));
        let (indices, down) = (down.indices, down.projection);
        Some(Self { x, routing, values, indices, gating, gate, up, down })
    }

    /// What all experts are given, `[rows, hidden]`.
    pub fn rows(&self, g: &mut Graph) -> Result<Tensor> {
        match self.x.shape() {
            [rows, _, hidden] => g.reshape(&self.x, vec![rows.clone(), hidden.clone()]),
            _ => Ok(self.x.clone()),
        }
    }

    /// Whether a linear layer has biases.
    pub fn biased(&self) -> bool {
        [&self.gate, &self.down].into_iter().chain(&self.up).any(|layer| layer.bias.is_some())
    }

    /// Gate and up projections as one linear layer that has the results of both, and where those of each are in it.
    pub fn gate_and_up(&self) -> Option<(Projection, [Part; 2])> {
        let (gate, up) = (&self.gate, self.up.as_ref()?);
        let same = |a: &[Tensor], b: &[Tensor]| a.iter().map(|a| a.id).eq(b.iter().map(|b| b.id));
        let one = same(&gate.weights, &up.weights)
            && gate.bias.as_ref().map(|it| it.id) == up.bias.as_ref().map(|it| it.id);
        let parts = [gate.part?, up.part?];
        one.then(|| (Projection { part: None, ..gate.clone() }, parts))
    }
}

/// The factors of a product.
pub(super) fn product_of(g: &Graph, x: &Tensor) -> Option<(Tensor, Tensor)> {
    let node = g.made_by(x).filter(|node| node.op == Op::Binary(Binary::Mul))?;
    Some((g.tensor(node.inputs[0]).clone(), g.tensor(node.inputs[1]).clone()))
}

/// What a value is in another shape, where that has two axes.
fn reshaped(g: &Graph, x: &Tensor) -> Option<Tensor> {
    let from = g.tensor(g.made_by(x).filter(|node| node.op == Op::Reshape)?.inputs[0]);
    (from.rank() == 2).then(|| from.clone())
}

/// A linear layer of selected experts, or some of its results.
struct Layer {
    x: Tensor,
    indices: Tensor,
    projection: Projection,
}

impl Layer {
    fn of(g: &Graph, y: &Tensor) -> Option<Self> {
        let mut node = g.made_by(y)?;
        let mut part = None;
        if let Op::Slice { axis: 2, start: Dim::Fixed(start), end: Dim::Fixed(end), step } = node.op {
            part = Some(Part { start, end, step });
            node = g.made_by(g.tensor(node.inputs[0]))?;
        }
        let mut biases = None;
        if node.op == Op::Binary(Binary::Add) {
            biases =
                Some(g.made_by(g.tensor(node.inputs[1])).filter(|node| node.op == Op::Gather { axis: 0 })?);
            node = g.made_by(g.tensor(node.inputs[0]))?;
        }
        let Op::ExpertLinear(ExpertLinearOp { transposed, quantized: None }) = node.op else { return None };
        let mut operands = node.inputs.iter().map(|&id| g.tensor(id).clone());
        let (x, indices) = (operands.next()?, operands.next()?);
        let bias = match biases {
            Some(biases) => {
                (biases.inputs[1] == indices.id).then_some(())?;
                Some(g.tensor(biases.inputs[0]).clone())
            }
            None => None,
        };
        Some(Self {
            x,
            indices,
            projection: Projection { weights: operands.collect(), transposed, bias, part },
        })
    }
}

impl Projection {
    /// The weights of all experts, `[experts, out, in]`; none where these are quantized in a form that has no operator for all at once.
    pub fn weight(
        &self,
        g: &mut Graph,
        stored: &mut Cow<'_, [WeightData]>,
        kernels: &Kernels,
    ) -> Result<Option<Tensor>> {
        let indices: Vec<usize> = self.weights.iter().filter_map(|weight| g.weight_index(weight)).collect();
        let quantized = indices.iter().any(|&index| matches!(stored[index].bytes, Bytes::Quantized(_)));
        if quantized && indices.len() == self.weights.len() {
            let turned = |index: &usize| matches!(&stored[*index].bytes, Bytes::Quantized(blocks) if blocks.batch.is_some());
            // Of what lies transposed, and not by its codes alone, blocks are along the wrong axis.
            if self.transposed && !indices.iter().all(turned) {
                return Ok(None);
            }
            let experts = count(&self.weights);
            let part = match self.part {
                Some(Part { start, end, step: 1 }) => Some(start..end),
                Some(_) => return Ok(None),
                None => None,
            };
            return dequantized_experts(g, stored.to_mut(), &indices, experts, part.as_ref(), kernels);
        }
        if let ([index], true) = (indices.as_slice(), self.transposed) {
            return transposed(g, stored.to_mut(), *index, self.part).map(Some);
        }
        let mut weight = stacked(g, &self.weights)?;
        if let Some(part) = self.part {
            weight = part.of(g, &weight, if self.transposed { 2 } else { 1 });
        }
        if self.transposed { g.transpose(&weight, &[0, 2, 1]).map(Some) } else { Ok(Some(weight)) }
    }

    /// Biases of the layer, `[experts, out]`.
    pub fn biases(&self, g: &mut Graph) -> Option<Tensor> {
        let bias = self.bias.as_ref()?;
        Some(self.part.map_or_else(|| bias.clone(), |part| part.of(g, bias, 1)))
    }
}

/// A parameter `[experts, in, out]` as `[experts, out, in]`, in memory: engines that look for mixtures do not see through a
/// transposition. `part` are the columns that count.
fn transposed(
    g: &mut Graph,
    stored: &mut Vec<WeightData>,
    index: usize,
    part: Option<Part>,
) -> Result<Tensor> {
    let WeightData { dtype, shape, stored_as, bytes } = stored[index].clone();
    let &[experts, width, out] = shape.as_slice() else {
        return Err(g.error("ExpertLinear", format!("`{stored_as}` is stored as {shape:?}")));
    };
    let part = part.unwrap_or(Part { start: 0, end: out, step: 1 });
    let (columns, size, values) = (part.len(), dtype.size(), bytes.read()?);
    let mut turned = vec![0; experts * columns * width * size];
    let expert = (columns * width * size).max(1);
    for (from, into) in values.chunks_exact((width * out * size).max(1)).zip(turned.chunks_exact_mut(expert))
    {
        // Both sides of a tile stay in the processor's cache.
        for (row, column) in (0..width)
            .step_by(TILE)
            .flat_map(|row| (0..columns).step_by(TILE).map(move |column| (row, column)))
        {
            for column in column..columns.min(column + TILE) {
                for row in row..width.min(row + TILE) {
                    let place = (column * width + row) * size;
                    let at = (row * out + part.start + column * part.step) * size;
                    into[place..place + size].copy_from_slice(&from[at..at + size]);
                }
            }
        }
    }
    let name = format!("{stored_as}.transposed.{}", part.start);
    let shape = [experts, columns, width];
    Ok(Weights { graph: g, located: stored }.add(&name, dtype, &shape, Bytes::memory(turned)))
}
