//! 64-bit integers as 32-bit ones, for engines whose kernels have no others.
//!
//! Ids, masks and positions become narrow. What tells lengths and axes stays wide, as ONNX demands it: those
//! operands are literals or computed from shapes, and engines read them on the host. A value that is needed in
//! the other width as well gets a second name.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::graph::Dtype;
use crate::onnx::{self, Attribute, Graph, Model, Node, Tensor};

/// The same model with 32-bit integers at its edges and in its computation.
pub fn narrow_integers(model: &Model) -> Model {
    let mut model = model.clone();
    model.graph = model.graph.map(|graph| Widths::of(&graph).rewrite(graph));
    model
}

/// The operands that ONNX takes in 64 bits only, or that engines read on the host.
fn takes_wide(operator: &str, position: usize) -> bool {
    match operator {
        "Reshape" | "Expand" | "Unsqueeze" | "Squeeze" | "Tile" | "Trilu" | "Split" | "TopK" => position == 1,
        "ReduceSum" | "ReduceMean" | "ReduceMax" | "ReduceMin" | "ReduceProd" => position == 1,
        "Pad" => position == 1 || position == 3,
        "Slice" | "Resize" => position > 0,
        "ConstantOfShape" => true,
        _ => false,
    }
}

/// The operators whose results are in 64 bits whatever they are given.
fn gives_wide(operator: &str) -> bool {
    matches!(operator, "Shape" | "Size" | "ArgMax" | "ArgMin" | "NonZero")
}

/// The operators whose results have no element type in common with their operands.
fn converts(operator: &str) -> bool {
    operator == "Cast" || gives_wide(operator)
}

/// Which values of a graph are integers, and which of those stay wide where they come from.
struct Widths {
    integers: HashSet<String>,
    wide: HashSet<String>,
}

impl Widths {
    fn of(graph: &Graph) -> Self {
        let integers = integers(graph);
        let mut wide = HashSet::new();
        // Backwards: what a wide value is computed from is wide as well.
        for node in graph.node.iter().rev() {
            if gives_wide(&node.op_type) {
                wide.extend(node.output.iter().cloned());
            }
            let inherited =
                !converts(&node.op_type) && node.output.iter().any(|output| wide.contains(output));
            for (position, operand) in node.input.iter().enumerate() {
                if integers.contains(operand) && (inherited || takes_wide(&node.op_type, position)) {
                    wide.insert(operand.clone());
                }
            }
        }
        // Inputs arrive narrow, whoever uses them.
        for input in &graph.input {
            wide.remove(&input.name);
        }
        Self { integers, wide }
    }

    fn rewrite(&self, mut graph: Graph) -> Graph {
        let mut second = BTreeSet::new();
        for node in &mut graph.node {
            let inherited =
                !converts(&node.op_type) && node.output.iter().any(|output| self.wide.contains(output));
            for (position, operand) in node.input.iter_mut().enumerate() {
                // A conversion takes what there is.
                if !self.integers.contains(operand) || converts(&node.op_type) {
                    continue;
                }
                let wanted = inherited || takes_wide(&node.op_type, position);
                if wanted != self.wide.contains(operand) {
                    second.insert(operand.clone());
                    *operand = self.second_name(operand);
                }
            }
            if node.op_type == "Cast" && node.output.iter().all(|output| !self.wide.contains(output)) {
                for to in node
                    .attribute
                    .iter_mut()
                    .filter(|to| to.i == Some(i64::from(onnx::data_type(Dtype::I64))))
                {
                    to.i = Some(i64::from(onnx::data_type(Dtype::I32)));
                }
            }
        }
        self.rewrite_literals(&mut graph, &mut second);
        self.insert_casts(&mut graph, second);
        for value in graph.input.iter_mut().chain(&mut graph.output) {
            let tensor = value.kind.as_mut().and_then(|kind| kind.tensor.as_mut());
            if let Some(tensor) = tensor.filter(|_| self.narrowed(&value.name)) {
                tensor.elem_type = onnx::data_type(Dtype::I32);
            }
        }
        graph
    }

    /// Literals in the width that they are used in, or in both; takes those off the list.
    fn rewrite_literals(&self, graph: &mut Graph, second: &mut BTreeSet<String>) {
        let mut added = vec![];
        for tensor in &mut graph.initializer {
            let narrow = narrowed(tensor);
            if second.remove(&tensor.name) {
                let other =
                    if self.wide.contains(&tensor.name) { narrow.clone() } else { Some(tensor.clone()) };
                added.extend(other.map(|other| Tensor { name: self.second_name(&tensor.name), ..other }));
            }
            if let Some(narrow) = narrow.filter(|_| self.narrowed(&tensor.name)) {
                *tensor = narrow;
            }
        }
        graph.initializer.extend(added);
    }

    /// A conversion right behind each value that is needed in both widths.
    fn insert_casts(&self, graph: &mut Graph, mut second: BTreeSet<String>) {
        let mut nodes = vec![];
        for input in &graph.input {
            nodes.extend(second.take(&input.name).map(|name| self.cast(&name)));
        }
        for node in graph.node.drain(..) {
            let casts: Vec<Node> = node
                .output
                .iter()
                .filter_map(|output| second.take(output))
                .map(|name| self.cast(&name))
                .collect();
            nodes.push(node);
            nodes.extend(casts);
        }
        graph.node = nodes;
    }

    fn cast(&self, name: &str) -> Node {
        let to = if self.wide.contains(name) { Dtype::I32 } else { Dtype::I64 };
        let output = self.second_name(name);
        Node {
            input: vec![name.to_owned()],
            output: vec![output.clone()],
            name: output,
            op_type: "Cast".to_owned(),
            attribute: vec![Attribute::int("to", i64::from(onnx::data_type(to)))],
            domain: String::new(),
        }
    }

    /// The name of a value in its other width.
    fn second_name(&self, name: &str) -> String {
        format!("{name}/{}", if self.wide.contains(name) { Dtype::I32 } else { Dtype::I64 })
    }

    fn narrowed(&self, name: &str) -> bool {
        self.integers.contains(name) && !self.wide.contains(name)
    }
}

/// The 32-bit form of a literal list of integers; ends that mean "all" stay the largest number.
fn narrowed(tensor: &Tensor) -> Option<Tensor> {
    let bytes = tensor.raw_data.as_ref().filter(|_| tensor.data_type == onnx::data_type(Dtype::I64))?;
    let numbers = bytes.as_chunks::<8>().0.iter().map(|word| i64::from_le_bytes(*word));
    let narrow = numbers.flat_map(|n| (n.clamp(i32::MIN.into(), i32::MAX.into()) as i32).to_le_bytes());
    let data_type = onnx::data_type(Dtype::I32);
    Some(Tensor { data_type, raw_data: Some(narrow.collect()), ..tensor.clone() })
}

/// The names of all 64-bit integers.
fn integers(graph: &Graph) -> HashSet<String> {
    let mut types: HashMap<&str, i32> = HashMap::new();
    for input in &graph.input {
        let tensor = input.kind.as_ref().and_then(|kind| kind.tensor.as_ref());
        types.extend(tensor.map(|tensor| (input.name.as_str(), tensor.elem_type)));
    }
    types.extend(graph.initializer.iter().map(|tensor| (tensor.name.as_str(), tensor.data_type)));
    for node in &graph.node {
        let of =
            |position: usize| node.input.get(position).and_then(|name| types.get(name.as_str())).copied();
        let kind = match node.op_type.as_str() {
            "Cast" => {
                let to = node.attribute.iter().find(|attribute| attribute.name == "to");
                to.and_then(|to| i32::try_from(to.i?).ok())
            }
            operator if gives_wide(operator) => Some(onnx::data_type(Dtype::I64)),
            "Equal" | "Less" | "LessOrEqual" | "Greater" | "GreaterOrEqual" | "And" | "Or" | "Not" => {
                Some(onnx::data_type(Dtype::Bool))
            }
            "Where" => of(1),
            _ => of(0),
        };
        types.extend(node.output.iter().filter_map(|output| Some((output.as_str(), kind?))));
    }
    let wide = onnx::data_type(Dtype::I64);
    types.into_iter().filter(|(_, kind)| *kind == wide).map(|(name, _)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Dim;

    fn node(op: &str, inputs: &[&str], output: &str) -> Node {
        Node {
            input: inputs.iter().map(|&name| name.to_owned()).collect(),
            output: vec![output.to_owned()],
            name: output.to_owned(),
            op_type: op.to_owned(),
            ..Node::default()
        }
    }

    fn literal(name: &str, numbers: &[i64]) -> Tensor {
        let bytes = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        Tensor::inline(name, Dtype::I64, &[numbers.len()], bytes)
    }

    fn narrow(nodes: Vec<Node>, literals: Vec<Tensor>, output: (&str, Dtype)) -> Graph {
        let shape = [Dim::symbol("batch"), Dim::symbol("sequence")];
        let graph = Graph {
            node: nodes,
            initializer: literals,
            input: vec![onnx::ValueInfo::new("ids", Dtype::I64, &shape)],
            output: vec![onnx::ValueInfo::new(output.0, output.1, &shape)],
            ..Graph::default()
        };
        narrow_integers(&Model { graph: Some(graph), ..Model::default() }).graph.unwrap()
    }

    fn written(graph: &Graph) -> Vec<String> {
        graph
            .node
            .iter()
            .map(|n| format!("{} = {}({})", n.output[0], n.op_type, n.input.join(", ")))
            .collect()
    }

    fn element(value: &onnx::ValueInfo) -> i32 {
        value.kind.as_ref().unwrap().tensor.as_ref().unwrap().elem_type
    }

    #[test]
    fn edges_and_computation_become_narrow() {
        let nodes = vec![node("Equal", &["ids", "pad"], "padded"), node("Add", &["ids", "pad"], "sum")];
        let graph = narrow(nodes, vec![literal("pad", &[-7])], ("sum", Dtype::I64));
        assert_eq!(written(&graph), ["padded = Equal(ids, pad)", "sum = Add(ids, pad)"]);
        assert_eq!((element(&graph.input[0]), element(&graph.output[0])), (6, 6));
        assert_eq!(graph.initializer[0].data_type, 6);
        assert_eq!(graph.initializer[0].raw_data.as_deref(), Some((-7_i32).to_le_bytes().as_slice()));
    }

    #[test]
    fn lengths_stay_wide() {
        let nodes =
            vec![node("Reshape", &["ids", "flat"], "row"), node("Slice", &["row", "flat", "end"], "cut")];
        let graph =
            narrow(nodes, vec![literal("flat", &[-1]), literal("end", &[i64::MAX])], ("cut", Dtype::I64));
        assert!(graph.initializer.iter().all(|tensor| tensor.data_type == 7));
        assert_eq!(element(&graph.output[0]), 6);
        assert_eq!(graph.node.len(), 2);
    }

    #[test]
    fn a_literal_of_both_uses_is_written_twice() {
        let nodes = vec![node("Add", &["ids", "two"], "sum"), node("Unsqueeze", &["sum", "two"], "out")];
        let graph = narrow(nodes, vec![literal("two", &[2])], ("out", Dtype::I64));
        assert_eq!(written(&graph), ["sum = Add(ids, two/i32)", "out = Unsqueeze(sum, two)"]);
        let types: Vec<_> = graph.initializer.iter().map(|t| (t.name.as_str(), t.data_type)).collect();
        assert_eq!(types, [("two", 7), ("two/i32", 6)]);
    }

    #[test]
    fn computed_lengths_are_converted_where_they_become_values() {
        let nodes = vec![
            node("Shape", &["ids"], "length"),
            node("Reshape", &["ids", "length"], "same"),
            node("Add", &["same", "length"], "out"),
        ];
        let graph = narrow(nodes, vec![], ("out", Dtype::I64));
        let wanted = [
            "length = Shape(ids)",
            "length/i32 = Cast(length)",
            "same = Reshape(ids, length)",
            "out = Add(same, length/i32)",
        ];
        assert_eq!(written(&graph), wanted);
        assert_eq!(graph.node[1].attribute[0].i, Some(6));
    }

    #[test]
    fn an_input_that_tells_lengths_is_widened() {
        let nodes = vec![node("Mul", &["ids", "ids"], "lengths"), node("Expand", &["ids", "lengths"], "out")];
        let graph = narrow(nodes, vec![], ("out", Dtype::I64));
        let wanted = ["ids/i64 = Cast(ids)", "lengths = Mul(ids/i64, ids/i64)", "out = Expand(ids, lengths)"];
        assert_eq!(written(&graph), wanted);
    }

    #[test]
    fn conversions_to_integers_are_narrowed() {
        let mut cast = node("Cast", &["mask"], "out");
        cast.attribute.push(Attribute::int("to", 7));
        let graph = narrow(vec![node("Not", &["ids"], "mask"), cast], vec![], ("out", Dtype::I64));
        assert_eq!(graph.node[1].attribute[0].i, Some(6));
        assert_eq!(element(&graph.output[0]), 6);
    }
}
