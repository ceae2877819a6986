//! What engines have operators for: mixtures of experts that are MLPs, gated or not, without biases.

use std::borrow::Cow;
use std::ops::Range;

use super::{count, stacked};
use crate::Result;
use crate::graph::{
    Activation, Binary, Dim, ExpertLinearOp, Graph, Op, Operation, Reduction, Tensor, TopKOp, TopKResult,
};
use crate::lower::Kernels;
use crate::lower::quantized::{Weights, dequantized_experts};
use crate::weights::{Bytes, WeightData};

/// A mixture of experts without biases.
pub(super) struct Mixture {
    /// What all experts are given, `[rows, hidden]`.
    pub x: Tensor,
    /// Routing weights `[rows, experts]`.
    pub routing: Tensor,
    /// Those of the selected experts, `[rows, selected]`.
    pub values: Tensor,
    /// Which ones these are, `[rows, selected]`.
    pub indices: Tensor,
    pub act: Activation,
    /// What the activation function is of.
    pub gate: Projection,
    /// What gates are factors of; none without gates.
    pub up: Option<Projection>,
    pub down: Projection,
}

/// Rows and columns that are transposed at a time.
const TILE: usize = 32;

/// The weights of a linear layer of each expert.
pub(super) struct Projection {
    weights: Vec<Tensor>,
    transposed: bool,
    /// The results that are the layer's, where it has others too.
    part: Option<Range<usize>>,
}

impl Mixture {
    /// The mixture that an operation is the sum of.
    pub fn of(g: &Graph, it: &Operation<'_>) -> Option<Self> {
        let sum = Op::Reduce { by: Reduction::Sum, axes: vec![1], keep: false };
        let [weighted] = it.operands else { return None };
        let (h, factors) = product_of(g, (*it.op == sum).then_some(weighted)?)?;
        let down = Layer::of(g, &h)?;
        let (gate, up) = match product_of(g, &down.x) {
            Some((gate, up)) => (gate, Some(Layer::of(g, &up)?)),
            None => (down.x.clone(), None),
        };
        let node = g.made_by(&gate)?;
        let Op::Activate(act) = node.op else { return None };
        let gate = Layer::of(g, g.tensor(node.inputs[0]))?;
        let alike = up.as_ref().is_none_or(|up| up.x.id == gate.x.id && up.indices.id == gate.indices.id);
        // What each expert is given alone is no mixture of this form, nor are experts whose factors are others.
        let shared = gate.x.dim(1) == Some(&Dim::Fixed(1)) && gate.indices.id == down.indices.id;
        let x = reshaped(g, &gate.x).filter(|_| alike && shared)?;
        let values = reshaped(g, &factors)?;
        let (values_of, indices_of) = (g.made_by(&values)?, g.made_by(&down.indices)?);
        let gives = |node: &Op, wanted| matches!(node, Op::TopK(TopKOp { gives, .. }) if *gives == wanted);
        let selected = gives(&values_of.op, TopKResult::Values)
            && gives(&indices_of.op, TopKResult::Indices)
            && values_of.inputs == indices_of.inputs;
        let routing = g.tensor(values_of.inputs[0]).clone();
        let (gate, up) = (gate.projection, up.map(|up| up.projection));
        let (indices, down) = (down.indices, down.projection);
        selected.then_some(Self { x, routing, values, indices, act, gate, up, down })
    }
}

/// The factors of a product.
fn product_of(g: &Graph, x: &Tensor) -> Option<(Tensor, Tensor)> {
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
        if let Op::Slice { axis: 2, start: Dim::Fixed(start), end: Dim::Fixed(end), step: 1 } = node.op {
            part = Some(start..end);
            node = g.made_by(g.tensor(node.inputs[0]))?;
        }
        let Op::ExpertLinear(ExpertLinearOp { transposed, quantized: None }) = node.op else { return None };
        let mut operands = node.inputs.iter().map(|&id| g.tensor(id).clone());
        let (x, indices) = (operands.next()?, operands.next()?);
        Some(Self { x, indices, projection: Projection { weights: operands.collect(), transposed, part } })
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
            return dequantized_experts(g, stored.to_mut(), &indices, experts, self.part.as_ref(), kernels);
        }
        if let ([index], true) = (indices.as_slice(), self.transposed) {
            return transposed(g, stored.to_mut(), *index, self.part.clone()).map(Some);
        }
        let mut weight = stacked(g, &self.weights)?;
        if let Some(part) = &self.part {
            weight = g.slice(&weight, if self.transposed { 2 } else { 1 }, part.clone())?;
        }
        if self.transposed { g.transpose(&weight, &[0, 2, 1]).map(Some) } else { Ok(Some(weight)) }
    }
}

/// A parameter `[experts, in, out]` as `[experts, out, in]`, in memory: engines that look for mixtures do not see through a
/// transposition. `part` are the columns that count.
fn transposed(
    g: &mut Graph,
    stored: &mut Vec<WeightData>,
    index: usize,
    part: Option<Range<usize>>,
) -> Result<Tensor> {
    let WeightData { dtype, shape, stored_as, bytes } = stored[index].clone();
    let &[experts, width, out] = shape.as_slice() else {
        return Err(g.error("ExpertLinear", format!("`{stored_as}` is stored as {shape:?}")));
    };
    let (part, size, values) = (part.unwrap_or(0..out), dtype.size(), bytes.read()?);
    let mut turned = vec![0; experts * part.len() * width * size];
    let expert = (part.len() * width * size).max(1);
    for (from, into) in values.chunks_exact((width * out * size).max(1)).zip(turned.chunks_exact_mut(expert))
    {
        // Both sides of a tile stay in the processor's cache.
        for (row, column) in (0..width)
            .step_by(TILE)
            .flat_map(|row| part.clone().step_by(TILE).map(move |column| (row, column)))
        {
            for column in column..part.end.min(column + TILE) {
                for row in row..width.min(row + TILE) {
                    let place = ((column - part.start) * width + row) * size;
                    let at = (row * out + column) * size;
                    into[place..place + size].copy_from_slice(&from[at..at + size]);
                }
            }
        }
    }
    let name = format!("{stored_as}.transposed.{}", part.start);
    let shape = [experts, part.len(), width];
    Ok(Weights { graph: g, located: stored }.add(&name, dtype, &shape, Bytes::memory(turned)))
}
