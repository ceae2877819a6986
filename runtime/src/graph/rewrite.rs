//! Operations replaced by others: what passes over a finished graph are made of.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::{Constant, Dim, Dtype, Graph, Op, Origin, Scope, Shape, Tensor};
use crate::Result;

/// Says of an operation what stands for it; none where it stays.
pub(crate) type Rule = fn(&mut Graph, &Operation<'_>) -> Result<Option<Tensor>>;

/// An operation that a pass looks at.
#[derive(Debug)]
pub(crate) struct Operation<'a> {
    pub op: &'a Op,
    /// What it is given, after what was replaced before it.
    pub operands: &'a [Tensor],
    /// The types of what it was given before anything was replaced.
    pub types: &'a [Dtype],
    /// The type and the shape of what it gives.
    pub result: &'a Tensor,
}

impl Operation<'_> {
    /// The same operation on other operands, with a result of another type.
    pub(crate) fn again(&self, g: &mut Graph, operands: &[&Tensor], dtype: Dtype) -> Tensor {
        g.node(self.op.clone(), operands, dtype, self.result.shape().to_vec())
    }
}

impl Graph {
    /// Asks of each operation in turn what stands for it, built in its place and named for it; none where it stays.
    pub(crate) fn rewrite(
        &mut self,
        mut rule: impl FnMut(&mut Self, &Operation<'_>) -> Result<Option<Tensor>>,
    ) -> Result<()> {
        let mut instead = HashMap::new();
        for mut node in std::mem::take(&mut self.nodes) {
            let types: Vec<_> = node.inputs.iter().map(|id| self.tensor(*id).dtype()).collect();
            for input in &mut node.inputs {
                *input = *instead.get(input).unwrap_or(input);
            }
            let operands: Vec<_> = node.inputs.iter().map(|id| self.values[*id].tensor.clone()).collect();
            let result = self.values[node.output].tensor.clone();
            let first = self.nodes.len();
            self.enter(&Scope::root().scope(node.name.trim_start_matches('/')));
            let operation = Operation { op: &node.op, operands: &operands, types: &types, result: &result };
            let Some(result) = rule(self, &operation)? else {
                self.nodes.push(node);
                continue;
            };
            if let Some(last) = self.nodes[first..].iter_mut().find(|last| last.output == result.id) {
                self.values[result.id].name.clone_from(&node.name);
                last.name = node.name;
            }
            instead.insert(node.output, result.id);
        }
        self.redirect(&instead);
        Ok(())
    }

    /// Puts a conversion behind an input that anything reads.
    pub(crate) fn convert_input(&mut self, index: usize, to: Dtype, stays: impl Fn(&super::Node) -> bool) {
        let is = |origin: &Origin| matches!(origin, Origin::Input(of) if *of == index);
        let Some(id) = self.values.iter().position(|value| is(&value.origin)) else { return };
        let read = self.nodes.iter().any(|node| node.inputs.contains(&id) && !stays(node));
        if !read && self.outputs.iter().all(|(_, output)| *output != id) {
            return;
        }
        let nodes = std::mem::take(&mut self.nodes);
        self.enter(&Scope::root().scope(&self.inputs[index].name.clone()));
        let input = self.values[id].tensor.clone();
        let converted = self.cast(&input, to);
        let instead = HashMap::from([(id, converted.id)]);
        for mut node in nodes {
            if !stays(&node) {
                for input in &mut node.inputs {
                    *input = *instead.get(input).unwrap_or(input);
                }
            }
            self.nodes.push(node);
        }
        self.redirect(&instead);
    }

    /// Converts what an output is.
    pub(crate) fn convert_output(&mut self, index: usize, to: Dtype) {
        let (name, id) = self.outputs[index].clone();
        self.enter(&Scope::root().scope(&name));
        let converted = self.cast(&self.values[id].tensor.clone(), to);
        self.outputs[index].1 = converted.id;
    }

    fn redirect(&mut self, instead: &HashMap<usize, usize>) {
        for (_, output) in &mut self.outputs {
            *output = *instead.get(output).unwrap_or(output);
        }
    }

    /// The type and the shape of a value.
    pub(crate) fn tensor(&self, id: usize) -> &Tensor {
        &self.values[id].tensor
    }

    /// Gives a value another element type.
    pub(crate) fn retype(&mut self, id: usize, dtype: Dtype) {
        self.values[id].tensor.dtype = dtype;
    }

    /// Gives every length another form.
    pub(crate) fn map_lengths(&mut self, of: impl Fn(&Dim) -> Dim) {
        let map = |shape: &[Dim]| -> Shape { shape.iter().map(&of).collect() };
        for value in &mut self.values {
            value.tensor.shape = Arc::new(map(&value.tensor.shape));
        }
        for input in &mut self.inputs {
            input.shape = map(&input.shape);
        }
        for node in &mut self.nodes {
            match &mut node.op {
                Op::Slice { start, end, .. } => (*start, *end) = (of(start), of(end)),
                Op::Trilu { diagonal } => *diagonal = of(diagonal),
                _ => {}
            }
        }
    }

    /// Leaves out operations that lead to no output.
    pub(crate) fn prune(&mut self) {
        let mut read: BTreeSet<usize> = self.outputs.iter().map(|(_, id)| *id).collect();
        for node in self.nodes.iter().rev() {
            if read.contains(&node.output) {
                read.extend(&node.inputs);
            }
        }
        self.nodes.retain(|node| read.contains(&node.output));
    }

    /// The whole of x repeated along each axis.
    pub(crate) fn tile(&mut self, x: &Tensor, times: Vec<usize>) -> Tensor {
        let grown = x.shape().iter().zip(&times).map(|(dim, &times)| dim.clone() * Dim::Fixed(times));
        let shape = grown.collect();
        self.node(Op::Tile { times }, &[x], x.dtype(), shape)
    }

    /// A matrix with zeros below a diagonal, which begins at this column of the first row.
    pub(crate) fn trilu(&mut self, x: &Tensor, diagonal: Dim) -> Tensor {
        self.node(Op::Trilu { diagonal }, &[x], x.dtype(), x.shape().to_vec())
    }

    /// A literal of any type.
    pub(crate) fn filled(&mut self, dtype: Dtype, shape: Shape, literal: Constant) -> Tensor {
        let name = self.fresh("Constant");
        self.value(name, dtype, shape, Origin::Constant(literal))
    }

    /// An input as of another type.
    pub(crate) fn retyped_input(&mut self, x: &Tensor, dtype: Dtype) -> Tensor {
        let value = self.values[x.id].clone();
        self.value(value.name, dtype, x.shape().to_vec(), value.origin)
    }

    /// The graph operation by operation, as tests read it: `f32 Add(x, 1.0) [batch, 3]`. What an operation gives is known
    /// by its place, `%0`, `%1` …
    #[cfg(test)]
    pub(crate) fn lines(&self) -> Vec<String> {
        let operand =
            |id: &usize| match (&self.values[*id].origin, self.nodes.iter().position(|n| n.output == *id)) {
                (_, Some(place)) => format!("%{place}"),
                (Origin::Constant(Constant::F32(numbers)), _) if numbers.len() == 1 => {
                    format!("{:?}", numbers[0])
                }
                (Origin::Constant(Constant::I64(numbers)), _) if numbers.len() == 1 => {
                    format!("{}", numbers[0])
                }
                (Origin::Constant(_), _) => {
                    format!("literal {}", super::show(self.values[*id].tensor.shape()))
                }
                _ => self.values[*id].name.clone(),
            };
        let line = |node: &super::Node| {
            let (result, operands) = (self.tensor(node.output), node.inputs.iter().map(operand));
            let operands = operands.collect::<Vec<_>>().join(", ");
            format!("{} {}({operands}) {}", result.dtype(), node.op.name(), super::show(result.shape()))
        };
        self.nodes.iter().map(line).collect()
    }

    /// Gives an input other lengths.
    pub(crate) fn reshape_input(&mut self, id: usize, shape: Shape) {
        if let Origin::Input(index) = self.values[id].origin {
            self.inputs[index].shape.clone_from(&shape);
            self.values[id].tensor.shape = Arc::new(shape);
        }
    }

    /// Whether a value is what the model is given.
    pub(crate) fn is_input(&self, id: usize) -> bool {
        matches!(self.values[id].origin, Origin::Input(_))
    }

    /// The operation that gives a value.
    pub(crate) fn made_by(&self, x: &Tensor) -> Option<&super::Node> {
        self.nodes.iter().rfind(|node| node.output == x.id)
    }

    /// Whether a value is a parameter.
    pub(crate) fn is_weight(&self, x: &Tensor) -> bool {
        matches!(self.values[x.id].origin, Origin::Weight(_))
    }

    /// A tensor of a quantized weight, of the type that kernels take; the same for the same name.
    pub(crate) fn stored_weight(&mut self, name: &str, dtype: Dtype, shape: &[usize]) -> Tensor {
        if let Some(&id) = self.weight_ids.get(name) {
            return self.values[id].tensor.clone();
        }
        self.weights.push(super::Weight::new(name, shape));
        let shape = shape.iter().map(|&n| Dim::Fixed(n)).collect();
        let tensor = self.value(name.to_owned(), dtype, shape, Origin::Weight(self.weights.len() - 1));
        self.weight_ids.insert(name.to_owned(), tensor.id);
        tensor
    }

    /// Which of the parameters a value is.
    pub(crate) fn weight_index(&self, x: &Tensor) -> Option<usize> {
        match self.values[x.id].origin {
            Origin::Weight(index) => Some(index),
            _ => None,
        }
    }

    /// The literal that a value is.
    pub(crate) fn literal(&self, x: &Tensor) -> Option<&Constant> {
        match &self.values[x.id].origin {
            Origin::Constant(literal) => Some(literal),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::dims::BATCH;
    use crate::graph::{Binary, Input, Unary};
    use crate::{Result, dims};

    #[test]
    fn what_stands_for_an_operation_has_its_name_and_its_readers() -> Result<()> {
        let mut g = Graph::new();
        let x = g.input(Input::f32("x", dims![BATCH, 3]));
        let sine = g.unary(Unary::Sin, &x);
        let y = g.unary(Unary::Neg, &sine);
        g.output("y", &y)?;
        g.output("sine", &sine)?;
        g.rewrite(|g, it| match it.op {
            Op::Unary(Unary::Sin) => {
                let cosine = g.unary(Unary::Cos, &it.operands[0]);
                Ok(Some(g.binary(Binary::Add, &cosine, &cosine)?))
            }
            _ => Ok(None),
        })?;
        let named: Vec<_> = g.nodes.iter().map(|node| (node.name.as_str(), node.op.name())).collect();
        assert_eq!(named, [("/Sin/Cos", "Cos"), ("/Sin", "Add"), ("/Neg", "Neg")]);
        assert_eq!(g.nodes[2].inputs, [g.nodes[1].output]);
        assert_eq!(g.outputs[1].1, g.nodes[1].output);
        Ok(())
    }

    #[test]
    fn what_nothing_reads_is_left_out() -> Result<()> {
        let mut g = Graph::new();
        let x = g.input(Input::f32("x", dims![BATCH]));
        let y = g.unary(Unary::Sin, &x);
        g.unary(Unary::Cos, &y);
        g.output("y", &y)?;
        g.prune();
        assert_eq!(g.len(), 1);
        Ok(())
    }
}
