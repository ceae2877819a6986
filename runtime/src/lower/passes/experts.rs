//! Mixtures of experts for backends that have no kernel for selected experts: every expert computes every position, one after the
//! other, and routing weights of 0 add nothing.

mod batched;
mod gathered;
mod gating;
mod mixture;
mod moe;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::lengths;
use crate::Result;
use crate::graph::{Dim, Graph, Node, Op, Reduction, Scope, Shape, Tensor, TopKOp, TopKResult, show};
use crate::lower::quantized::runs_selected_experts;
use crate::lower::target::{Experts, Target};
use crate::weights::WeightData;
use batched::batched;
use gathered::gathered;
use moe::by_kernel;

/// Mixtures in the form that the target runs.
pub(in crate::lower) fn formed(
    g: &mut Graph,
    weights: &mut Cow<'_, [WeightData]>,
    target: &Target,
) -> Result<()> {
    if runs_selected_experts(g, weights, target)? {
        return Ok(());
    }
    match target.experts {
        // A page has neither.
        Experts::Batched if cfg!(not(target_family = "wasm")) => batched(g, weights, &target.kernels)?,
        Experts::Kernel if cfg!(not(target_family = "wasm")) => by_kernel(g, weights, target)?,
        _ => {}
    }
    lengths::fix(g, target)?;
    gathered(g, weights)?;
    one_by_one(g)
}

/// Takes the place of what is between the selection of experts and the sum of what they give.
pub(in crate::lower) fn one_by_one(g: &mut Graph) -> Result<()> {
    let selections = selections(g);
    if selections.is_empty() {
        return Ok(());
    }
    // By the routing weights what reads a selection, and by each value the routing weights of its selection.
    let mut mixtures: BTreeMap<usize, Vec<Node>> = BTreeMap::new();
    let mut of: HashMap<usize, usize> = HashMap::new();
    let mut instead: HashMap<usize, usize> = HashMap::new();
    for mut node in std::mem::take(&mut g.nodes) {
        for input in &mut node.inputs {
            *input = *instead.get(input).unwrap_or(input);
        }
        if let (Op::TopK(_), [weights]) = (&node.op, node.inputs.as_slice())
            && selections.contains(weights)
        {
            of.insert(node.output, *weights);
            mixtures.entry(*weights).or_default().push(node);
            continue;
        }
        let Some(weights) = node.inputs.iter().find_map(|input| of.get(input)).copied() else {
            g.nodes.push(node);
            continue;
        };
        let sum = Op::Reduce { by: Reduction::Sum, axes: vec![1], keep: false };
        if node.op == sum {
            let steps = mixtures.get(&weights).map(Vec::as_slice).unwrap_or_default();
            let result = summed(g, weights, steps, &node)?;
            instead.insert(node.output, result.id);
        } else {
            of.insert(node.output, weights);
            mixtures.entry(weights).or_default().push(node);
        }
    }
    for (_, output) in &mut g.outputs {
        *output = *instead.get(output).unwrap_or(output);
    }
    Ok(())
}

/// The routing weights by which experts are selected.
fn selections(g: &Graph) -> HashSet<usize> {
    let indices = |node: &&Node| matches!(node.op, Op::TopK(TopKOp { gives: TopKResult::Indices, .. }));
    let selected: HashMap<usize, usize> =
        g.nodes.iter().filter(indices).map(|node| (node.output, node.inputs[0])).collect();
    let layers = g.nodes.iter().filter(|node| matches!(node.op, Op::ExpertLinear(_)));
    layers.filter_map(|node| selected.get(&node.inputs[1]).copied()).collect()
}

/// The sum of all experts, each by its routing weight.
fn summed(g: &mut Graph, weights: usize, steps: &[Node], sum: &Node) -> Result<Tensor> {
    let weights = g.tensor(weights).clone();
    let mut read = HashSet::from([sum.inputs[0]]);
    for node in steps.iter().rev().filter(|node| !matches!(node.op, Op::TopK(_))) {
        if read.contains(&node.output) {
            read.extend(&node.inputs);
        }
    }
    let known = |node: &Node| matches!(node.op, Op::TopK(TopKOp { gives: TopKResult::Indices, .. }));
    let steps: Vec<&Node> = steps.iter().filter(|node| read.contains(&node.output) && !known(node)).collect();
    let mut flat = HashMap::new();
    let mut total: Option<Tensor> = None;
    for index in 0..weights.dim(-1).and_then(Dim::fixed).unwrap_or_default() {
        let mut expert = Expert { index, values: HashMap::new(), flat: &mut flat };
        for node in &steps {
            g.enter(&Scope::root().scope(node.name.trim_start_matches('/')).index(index));
            let value = expert.step(g, node, &weights)?;
            expert.values.insert(node.output, value);
        }
        let Some(h) = expert.values.remove(&sum.inputs[0]) else { continue };
        total = Some(match total {
            Some(total) => g.add(&total, &h)?,
            None => h,
        });
    }
    total.ok_or_else(|| g.error("ExpertLinear", format!("{} has no experts", show(weights.shape()))))
}

/// One expert, over all positions: values `[rows, selected, …]` are those `[rows, …]` of this one.
struct Expert<'a> {
    index: usize,
    values: HashMap<usize, Tensor>,
    /// What is the same for all experts, `[rows, 1, …]` as `[rows, …]`.
    flat: &'a mut HashMap<usize, Tensor>,
}

impl Expert<'_> {
    fn step(&mut self, g: &mut Graph, node: &Node, weights: &Tensor) -> Result<Tensor> {
        let shape = without_selected(g.tensor(node.output).shape());
        let dtype = g.tensor(node.output).dtype();
        let refused = |g: &Graph| {
            let problem = "is not computed for one expert after the other: between linear layers of experts, operations are \
                           element by element";
            g.error(node.op.name(), problem)
        };
        match &node.op {
            // The expert's column of the routing weights.
            Op::TopK(_) => g.slice(weights, weights.rank() - 1, self.index..self.index + 1),
            Op::ExpertLinear(op) => {
                let x = self.operand(g, node.inputs[0])?;
                let all: Vec<Tensor> = node.inputs[2..].iter().map(|id| g.tensor(*id).clone()).collect();
                linear(g, &x, &all, self.index, op.transposed, shape)
            }
            Op::Gather { axis: 0 } => {
                let table = g.tensor(node.inputs[0]).clone();
                g.slice(&table, 0, self.index..self.index + 1)
            }
            Op::Reshape => {
                let x = self.operand(g, node.inputs[0])?;
                if x.shape() == shape { Ok(x) } else { g.reshape(&x, shape) }
            }
            Op::Slice { axis, start, end, step } if *axis > 1 => {
                let x = self.operand(g, node.inputs[0])?;
                let op = Op::Slice { axis: axis - 1, start: start.clone(), end: end.clone(), step: *step };
                Ok(g.node(op, &[&x], dtype, shape))
            }
            Op::Binary(_)
            | Op::Unary(_)
            | Op::Activate(_)
            | Op::Clip { .. }
            | Op::Where
            | Op::Cast { .. } => {
                let operands =
                    node.inputs.iter().map(|id| self.operand(g, *id)).collect::<Result<Vec<_>>>()?;
                Ok(g.node(node.op.clone(), &operands.iter().collect::<Vec<_>>(), dtype, shape))
            }
            _ => Err(refused(g)),
        }
    }

    /// A value of this expert, or one that all share.
    fn operand(&mut self, g: &mut Graph, id: usize) -> Result<Tensor> {
        if let Some(value) = self.values.get(&id).or_else(|| self.flat.get(&id)) {
            return Ok(value.clone());
        }
        let x = g.tensor(id).clone();
        let flat = match x.shape() {
            [_, Dim::Fixed(1), ..] => {
                let shape = without_selected(x.shape());
                let made = g.made_by(&x).filter(|node| node.op == Op::Reshape).map(|node| node.inputs[0]);
                match made.filter(|from| g.tensor(*from).shape() == shape) {
                    Some(from) => g.tensor(from).clone(),
                    None => g.reshape(&x, shape)?,
                }
            }
            _ => x,
        };
        self.flat.insert(id, flat.clone());
        Ok(flat)
    }
}

/// A shape without its axis of selected experts; that of routing weights has one instead.
fn without_selected(shape: &[Dim]) -> Shape {
    match shape {
        [rows, _] => vec![rows.clone(), Dim::Fixed(1)],
        [rows, _, rest @ ..] => [std::slice::from_ref(rows), rest].concat(),
        shape => shape.to_vec(),
    }
}

/// How many experts weights are of.
fn count(weights: &[Tensor]) -> usize {
    match weights {
        [all] if all.rank() == 3 => all.dim(0).and_then(Dim::fixed).unwrap_or_default(),
        each => each.len(),
    }
}

/// The weights of all experts in one tensor of three axes.
fn stacked(g: &mut Graph, weights: &[Tensor]) -> Result<Tensor> {
    match weights {
        [all] if all.rank() == 3 => Ok(all.clone()),
        each => {
            let rows = g.concat(&each.iter().collect::<Vec<_>>(), 0)?;
            let mut shape = vec![Dim::Fixed(each.len())];
            shape.extend(each.first().into_iter().flat_map(|weight| weight.shape().to_vec()));
            g.reshape(&rows, shape)
        }
    }
}

/// The linear layer of one expert.
fn linear(
    g: &mut Graph,
    x: &Tensor,
    weights: &[Tensor],
    index: usize,
    transposed: bool,
    shape: Shape,
) -> Result<Tensor> {
    let weight = match weights {
        [all] if all.rank() == 3 => {
            let weight = g.slice(all, 0, index..index + 1)?;
            g.reshape(&weight, all.shape()[1..].to_vec())?
        }
        _ => {
            let missing = || g.error("ExpertLinear", format!("there is no expert {index}"));
            let weight = weights.get(index).ok_or_else(missing)?.clone();
            if !transposed {
                return Ok(g.node(Op::Linear, &[x, &weight], x.dtype(), shape));
            }
            weight
        }
    };
    let weight = if transposed { weight } else { g.transpose(&weight, &[1, 0])? };
    g.matmul(x, &weight)
}

#[cfg(test)]
mod tests;
