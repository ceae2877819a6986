//! What backends publish that they can run: a lowered graph is held against it where the hardware is absent.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::operators::{STANDARD, TABLES};
use crate::Hardware;
use crate::onnx::{Graph, Model, Node};

/// A backend's published operators.
pub(super) struct Table {
    pub hardware: Hardware,
    pub source: &'static str,
    pub operators: &'static [Operator],
}

/// An operator that a backend has.
pub(super) struct Operator {
    domain: &'static str,
    name: &'static str,
    /// The versions at which kernels start, newest first; none where they are not told.
    versions: &'static [i64],
    /// The element types of the main operand; none where they are not told.
    types: &'static str,
    /// The operands that must be constants.
    constant: &'static [usize],
}

impl Operator {
    pub(super) const fn new(
        domain: &'static str,
        name: &'static str,
        versions: &'static [i64],
        types: &'static str,
        constant: &'static [usize],
    ) -> Self {
        Self { domain, name, versions, types, constant }
    }

    /// The newest kernel is for exactly its version of the operator; an older one for those up to the next.
    fn has_version(&self, version: i64) -> bool {
        self.versions.first().is_none_or(|newest| {
            version == *newest || (version < *newest && self.versions.iter().any(|start| *start <= version))
        })
    }
}

/// The document that a backend's operators come from; none for backends that can be tried anywhere.
pub fn source(hardware: Hardware) -> Option<&'static str> {
    table(hardware).map(|table| table.source)
}

/// The operators of a lowered graph that a backend would leave to the CPU: how often, and why; none for backends
/// without a table.
///
/// What depends on constants only is left out: it is computed before the graph is divided.
pub fn unsupported_ops(model: &Model, hardware: Hardware) -> BTreeMap<String, (usize, String)> {
    let mut unsupported_ops = BTreeMap::new();
    let (Some(table), Some(graph)) = (table(hardware), &model.graph) else { return unsupported_ops };
    let opset = model.opset_import.iter().find(|set| set.domain.is_empty()).and_then(|set| set.version);
    let facts = Facts::of(graph);
    for node in graph.node.iter().filter(|node| !facts.is_folded(node)) {
        if let Some(reason) = reason(table, node, opset.unwrap_or_default(), &facts) {
            unsupported_ops.entry(node.op_type.clone()).or_insert((0, reason)).0 += 1;
        }
    }
    unsupported_ops
}

fn table(hardware: Hardware) -> Option<&'static Table> {
    TABLES.iter().find(|table| table.hardware == hardware)
}

/// Why a node would not run on the backend.
fn reason(table: &Table, node: &Node, opset: i64, facts: &Facts<'_>) -> Option<String> {
    let found =
        table.operators.binary_search_by(|op| (op.domain, op.name).cmp(&(&node.domain, &node.op_type)));
    let Ok(place) = found else { return Some("not in its table".to_owned()) };
    let operator = &table.operators[place];
    if node.domain.is_empty() && !operator.versions.is_empty() {
        match version(&node.op_type, opset) {
            Some(version) if operator.has_version(version) => {}
            Some(version) => return Some(format!("no kernel for version {version} of it")),
            None => return Some(format!("operator set {opset} does not have it")),
        }
    }
    if let Some(variable) = operator.constant.iter().find(|position| {
        node.input
            .get(**position)
            .is_some_and(|name| !name.is_empty() && !facts.constants.contains(name.as_str()))
    }) {
        return Some(format!("operand {variable} is not a constant"));
    }
    let types: Vec<&str> = operator.types.split_ascii_whitespace().collect();
    // `Where` is known by what it picks from.
    let main = usize::from(node.op_type == "Where");
    let of = node.input.get(main).and_then(|name| facts.types.get(name.as_str()));
    let refused = |name: &&str| !types.is_empty() && !types.contains(name);
    if let Some(name) = of.map(|code| type_name(*code)).filter(refused) {
        return Some(format!("not for {name}"));
    }
    let to = node.output.first().and_then(|name| facts.types.get(name.as_str()));
    match to.map(|code| type_name(*code)).filter(refused) {
        Some(name) if node.op_type == "Cast" => Some(format!("not to {name}")),
        _ => None,
    }
}

/// The version of an operator that an operator set means.
fn version(name: &str, opset: i64) -> Option<i64> {
    let place = STANDARD.binary_search_by_key(&name, |(name, _)| *name).ok()?;
    STANDARD[place].1.iter().rev().find(|version| **version <= opset).copied()
}

/// What is known about the values of a graph.
struct Facts<'a> {
    types: HashMap<&'a str, i32>,
    constants: HashSet<&'a str>,
}

impl<'a> Facts<'a> {
    fn of(graph: &'a Graph) -> Self {
        let mut facts = Self { types: HashMap::new(), constants: HashSet::new() };
        for input in &graph.input {
            let tensor = input.kind.as_ref().and_then(|kind| kind.tensor.as_ref());
            facts.types.extend(tensor.map(|tensor| (input.name.as_str(), tensor.elem_type)));
        }
        for tensor in &graph.initializer {
            facts.types.insert(&tensor.name, tensor.data_type);
            facts.constants.insert(&tensor.name);
        }
        for node in &graph.node {
            let kind = facts.result(node);
            for (place, output) in node.output.iter().enumerate() {
                // Of the largest elements the second result is where they are.
                let kind = if node.op_type == "TopK" && place == 1 { Some(7) } else { kind };
                facts.types.extend(kind.map(|kind| (output.as_str(), kind)));
                if facts.is_folded(node) {
                    facts.constants.insert(output);
                }
            }
        }
        facts
    }

    /// The element type of a node's results.
    fn result(&self, node: &Node) -> Option<i32> {
        let of = |position: usize| {
            node.input.get(position).and_then(|name| self.types.get(name.as_str())).copied()
        };
        match node.op_type.as_str() {
            "Cast" => {
                let to = node.attribute.iter().find(|attribute| attribute.name == "to");
                to.and_then(|to| i32::try_from(to.i?).ok())
            }
            "Shape" | "Size" | "ArgMax" | "ArgMin" | "NonZero" => Some(7),
            "Equal" | "Less" | "LessOrEqual" | "Greater" | "GreaterOrEqual" | "And" | "Or" | "Not"
            | "IsNaN" => Some(9),
            "Where" => of(1),
            _ => of(0),
        }
    }

    fn is_folded(&self, node: &Node) -> bool {
        let mut given = node.input.iter().filter(|name| !name.is_empty());
        given.all(|name| self.constants.contains(name.as_str()))
    }
}

/// ONNX's element types by the names that the tables use.
fn type_name(code: i32) -> &'static str {
    match code {
        1 => "f32",
        2 => "u8",
        3 => "i8",
        4 => "u16",
        5 => "i16",
        6 => "i32",
        7 => "i64",
        9 => "bool",
        10 => "f16",
        11 => "f64",
        12 => "u32",
        13 => "u64",
        16 => "bf16",
        _ => "another type",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Dim, Dtype};
    use crate::onnx::{Attribute, OperatorSet, Tensor, ValueInfo};

    fn node(op: &str, input: &[&str]) -> Node {
        Node {
            input: input.iter().map(|name| (*name).to_owned()).collect(),
            output: vec![format!("{op}.out")],
            op_type: op.to_owned(),
            ..Node::default()
        }
    }

    fn model(opset: i64, inputs: &[(&str, Dtype)], node: Vec<Node>) -> Model {
        let input =
            inputs.iter().map(|(name, dtype)| ValueInfo::new(name, *dtype, &[Dim::Fixed(2)])).collect();
        let initializer = vec![Tensor::inline("c", Dtype::I64, &[1], vec![0; 8])];
        Model {
            opset_import: vec![OperatorSet { domain: String::new(), version: Some(opset) }],
            graph: Some(Graph { node, input, initializer, ..Graph::default() }),
            ..Model::default()
        }
    }

    fn reasons(model: &Model, hardware: Hardware) -> Vec<(String, usize, String)> {
        unsupported_ops(model, hardware).into_iter().map(|(name, (count, why))| (name, count, why)).collect()
    }

    #[test]
    fn tables_are_sorted_for_the_search() {
        for table in TABLES {
            assert!(table.operators.is_sorted_by_key(|op| (op.domain, op.name)), "{}", table.hardware);
        }
        assert!(STANDARD.is_sorted_by_key(|(name, _)| *name));
    }

    #[test]
    fn an_operator_revised_after_the_newest_kernel_falls_back() {
        let graph = |opset| {
            model(opset, &[("x", Dtype::F32)], vec![node("Identity", &["x"]), node("Add", &["x", "x"])])
        };
        assert_eq!(
            reasons(&graph(23), Hardware::Cuda),
            [("Identity".to_owned(), 1, "no kernel for version 23 of it".to_owned())]
        );
        assert_eq!(reasons(&graph(20), Hardware::Cuda), []);
        assert_eq!(reasons(&graph(23), Hardware::Cpu), [], "there is no table to hold it against");
    }

    #[test]
    fn element_types_follow_casts_and_choices() {
        let mut cast = node("Cast", &["x"]);
        cast.attribute = vec![Attribute::int("to", 7)];
        let graph = model(
            21,
            &[("x", Dtype::F32), ("m", Dtype::Bool)],
            vec![cast, node("Where", &["m", "Cast.out", "c"]), node("Tanh", &["Where.out"])],
        );
        assert_eq!(
            reasons(&graph, Hardware::Metal),
            [
                ("Tanh".to_owned(), 1, "not for i64".to_owned()),
                ("Where".to_owned(), 1, "not for i64".to_owned())
            ]
        );
        assert_eq!(reasons(&graph, Hardware::Rocm), [("Tanh".to_owned(), 1, "not for i64".to_owned())]);
    }

    #[test]
    fn unknown_operators_and_variable_operands_fall_back_unless_folded() {
        let graph = model(
            21,
            &[("x", Dtype::F32), ("i", Dtype::I64)],
            vec![
                node("GatherND", &["x", "i"]),
                node("LessOrEqual", &["i", "c"]),
                node("Greater", &["c", "c"]),
            ],
        );
        assert_eq!(
            reasons(&graph, Hardware::Metal),
            [
                ("GatherND".to_owned(), 1, "operand 1 is not a constant".to_owned()),
                ("LessOrEqual".to_owned(), 1, "not in its table".to_owned()),
            ]
        );
    }
}
