//! What stays in single precision where the rest of a graph is computed in 16 bits.

use std::collections::{HashMap, HashSet};

use half::f16;

use crate::Result;
use crate::graph::{Constant, Dtype, Graph, Node, Op, Operation, PadMode, Tensor, Unary};
use crate::lower::{Target, UNASKED};

/// The values that stay in single precision.
pub(super) struct Single {
    /// What nothing but cosines and sines is computed of, such as a timestep times 1000: in 16 bits 981 is off by a whole step, and
    /// its cosine by all of it. Inputs are none of these; what is angular reads them as they are.
    angular: HashSet<usize>,
    /// What was built [`in_single`](Graph::in_single), and outputs that are numbers beyond half precision in places, such as logits
    /// that nothing is to choose.
    asked: HashSet<usize>,
}

impl Single {
    pub(super) fn of(g: &Graph, float: Dtype) -> Self {
        let wide = |id: &usize| !matches!(g.tensor(*id).dtype(), Dtype::F16 | Dtype::Bf16);
        let mut asked: HashSet<usize> =
            g.single.iter().copied().filter(|id| wide(id) && !g.is_input(*id)).collect();
        if float == Dtype::F16 {
            asked.extend(g.outputs.iter().filter_map(|(_, id)| beyond_half(g, *id)).flatten());
        }
        Self { angular: angular(g), asked }
    }

    /// Whether a value is one of them.
    pub(super) fn holds(&self, id: usize) -> bool {
        self.angular.contains(&id) || self.asked.contains(&id)
    }

    /// Whether an operation reads inputs as they are.
    pub(super) fn reads_inputs(&self, node: &Node) -> bool {
        is_angular(&node.op, node.output, &self.angular) || self.asked.contains(&node.output)
    }

    /// Converts between what was asked for and the rest.
    pub(super) fn convert(&self, g: &mut Graph, float: Dtype) -> Result<()> {
        let mut wide = self.asked.clone();
        let mut converted: HashMap<usize, Tensor> = HashMap::new();
        g.rewrite(|g, it| {
            let inside = self.asked.contains(&it.result.id);
            let mut operand = |x: &Tensor| {
                let to = match inside {
                    true if x.dtype() == float => Dtype::F32,
                    false if x.dtype() == Dtype::F32 && wide.contains(&x.id) => float,
                    _ => return x.clone(),
                };
                converted.entry(x.id).or_insert_with(|| again_in(g, x, to)).clone()
            };
            let operands: Vec<Tensor> = it.operands.iter().map(&mut operand).collect();
            if operands.iter().zip(it.operands).all(|(x, given)| x.id == given.id) {
                return Ok(None);
            }
            let again = it.again(g, &operands.iter().collect::<Vec<_>>(), it.result.dtype());
            if inside {
                wide.insert(again.id);
            }
            Ok(Some(again))
        })
    }
}

/// A value in another type; a literal as one of it, which a number beyond half precision does not lose.
fn again_in(g: &mut Graph, x: &Tensor, to: Dtype) -> Tensor {
    match g.literal(x).cloned() {
        Some(literal) => g.filled(to, x.shape().to_vec(), literal),
        None => g.cast(x, to),
    }
}

/// What a value is picked and moved from, where it has literal numbers beyond half precision; none where it has not.
fn beyond_half(g: &Graph, id: usize) -> Option<Vec<usize>> {
    let beyond = |x: f32| x.abs() > f32::from(f16::MAX);
    let x = g.tensor(id);
    if let Some(Constant::F32(numbers)) = g.literal(x) {
        return numbers.iter().copied().any(beyond).then(|| vec![id]);
    }
    let node = g.made_by(x).filter(|_| x.dtype() == Dtype::F32)?;
    let (picked, filled) = match &node.op {
        Op::Where => (&node.inputs[1..], false),
        Op::Pad { by: PadMode::Constant(filling), .. } => (&node.inputs[..1], beyond(*filling)),
        Op::Slice { .. } | Op::Reshape | Op::Transpose { .. } => (&node.inputs[..1], false),
        Op::Concat { .. } => (&node.inputs[..], false),
        _ => return None,
    };
    let mut found: Vec<usize> = picked.iter().filter_map(|&id| beyond_half(g, id)).flatten().collect();
    if found.is_empty() && !filled {
        return None;
    }
    found.push(id);
    Some(found)
}

/// Cosines and sines of angles in single precision, converted when they are known.
pub(in crate::lower) fn waves(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    match (it.op, it.operands) {
        (op, [angle]) if is_wave(op) && angle.dtype() != it.result.dtype() => {
            let wide = it.again(g, &[angle], angle.dtype());
            Ok(Some(g.cast(&wide, it.result.dtype())))
        }
        _ => Ok(None),
    }
}

/// Makes outputs of cosines and sines of angles: OpenVINO computes in single precision what an output is computed of, up to the next
/// product of matrices or convolution, and in 16 bits what it is not told to.
pub(in crate::lower) fn waves_as_outputs(g: &mut Graph, _: &Target) -> Result<()> {
    let angular = angular(g);
    let exact = |id: usize| g.is_input(id) || angular.contains(&id);
    let waves = g.nodes.iter().filter(|node| is_wave(&node.op) && node.inputs.iter().all(|&id| exact(id)));
    let outputs: Vec<_> = waves.enumerate().map(|(n, node)| (format!("{UNASKED}{n}"), node.output)).collect();
    g.outputs.extend(outputs);
    Ok(())
}

fn is_wave(op: &Op) -> bool {
    matches!(op, Op::Unary(Unary::Sin | Unary::Cos))
}

/// Values in single precision that waves alone are computed of, and that are computed of nothing but these and inputs.
fn angular(g: &Graph) -> HashSet<usize> {
    let outputs: HashSet<usize> = g.outputs.iter().map(|(_, id)| *id).collect();
    let single = |id: usize| g.tensor(id).dtype() == Dtype::F32;
    let (mut makers, mut readers) = (HashMap::new(), HashMap::<usize, Vec<&Node>>::new());
    for node in &g.nodes {
        makers.insert(node.output, node);
        node.inputs.iter().for_each(|&id| readers.entry(id).or_default().push(node));
    }
    let first =
        |&id: &usize| single(id) && !g.is_input(id) && !outputs.contains(&id) && !g.is_weight(g.tensor(id));
    let mut angular: HashSet<usize> = (0..g.values.len()).filter(first).collect();
    let mut open: Vec<usize> = angular.iter().copied().collect();
    while let Some(id) = open.pop() {
        let readers = readers.get(&id).map(Vec::as_slice).unwrap_or_default();
        let alone = readers.iter().all(|node| is_angular(&node.op, node.output, &angular));
        let made = makers.get(&id).map(|node| node.inputs.as_slice()).unwrap_or_default();
        let known = made.iter().all(|&of| !single(of) || g.is_input(of) || angular.contains(&of));
        if (!alone || !known) && angular.remove(&id) {
            // What it was made of has another reader, and its readers are made of something else.
            open.extend(readers.iter().map(|node| node.output).chain(made.iter().copied()));
        }
    }
    angular
}

fn is_angular(op: &Op, output: usize, angular: &HashSet<usize>) -> bool {
    matches!(op, Op::Angles { .. }) || is_wave(op) || angular.contains(&output)
}
