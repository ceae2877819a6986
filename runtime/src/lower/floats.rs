//! Integers and truth values as floating-point numbers, for engines that compute with nothing else.
//!
//! Truth is 1, and logic and comparisons of whole numbers are arithmetic, which single precision does exactly up to
//! 2²⁴. What indexes a table or tells a shape stays an integer. What depends on constants alone stays as it is:
//! engines compute it before they divide the graph.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::published::Facts;
use crate::graph::Dtype;
use crate::onnx::{Attribute, Graph, Model, Node, Tensor, data_type};

/// What gives whole numbers for whole numbers.
const COUNTS: [&str; 8] = ["Add", "Sub", "Mul", "Max", "MatMul", "Concat", "ReduceSum", "ReduceMax"];
/// What gives some of its first operand's numbers.
const MOVES: &str = "Reshape Transpose Slice Squeeze Unsqueeze Tile Expand Trilu Identity Gather Clip";

/// The same model with all arithmetic on floating-point numbers.
pub(super) fn compute_in_floats(mut model: Model) -> Model {
    model.graph = model.graph.map(rewrite);
    model
}

fn rewrite(mut graph: Graph) -> Graph {
    let nodes = std::mem::take(&mut graph.node);
    let source = Graph { node: nodes.clone(), ..graph.clone() };
    let mut floats = Floats::of(Facts::of(&source), &source.initializer);
    for input in &mut graph.input {
        let tensor = input.kind.as_mut().and_then(|kind| kind.tensor.as_mut());
        // Truth values arrive as numbers.
        if let Some(tensor) = tensor.filter(|tensor| tensor.elem_type == data_type(Dtype::Bool)) {
            tensor.elem_type = data_type(Dtype::F32);
            floats.numbers.insert(input.name.clone(), input.name.clone());
            floats.whole.insert(input.name.clone());
        }
    }
    for node in nodes {
        floats.node(node);
    }
    for output in &source.output {
        floats.own(&output.name);
    }
    graph.initializer.extend(floats.literals.into_values());
    graph.node = floats.out;
    graph
}

/// The graph as it is rewritten.
struct Floats<'a> {
    facts: Facts<'a>,
    /// Floating-point values that are whole numbers, by their names.
    whole: HashSet<String>,
    /// Literals that hold nothing but zeros.
    zeros: HashSet<String>,
    /// The names of integers and truth values as numbers.
    numbers: HashMap<String, String>,
    /// Those that there are as numbers only.
    replaced: HashSet<String>,
    literals: BTreeMap<&'static str, Tensor>,
    out: Vec<Node>,
}

impl<'a> Floats<'a> {
    fn of(facts: Facts<'a>, initializers: &[Tensor]) -> Self {
        let whole = initializers.iter().filter(|tensor| is_whole(tensor)).map(|tensor| tensor.name.clone());
        let zeros = initializers.iter().filter(|tensor| is_zero(tensor)).map(|tensor| tensor.name.clone());
        Self {
            facts,
            whole: whole.collect(),
            zeros: zeros.collect(),
            numbers: HashMap::new(),
            replaced: HashSet::new(),
            literals: BTreeMap::new(),
            out: vec![],
        }
    }

    fn node(&mut self, node: Node) {
        let of = |name: &String| self.facts.types.get(name.as_str()).copied();
        let Some(kind) = node.input.first().and_then(of).filter(|_| !self.facts.is_folded(&node)) else {
            return self.keep(node);
        };
        let counted = !is_float(kind);
        match node.op_type.as_str() {
            "Cast" => self.cast(node, kind),
            "And" | "Or" | "Not" => self.logic(&node),
            "Equal" | "Less" | "LessOrEqual" | "Greater" | "GreaterOrEqual"
                if counted || node.input.iter().all(|name| self.whole.contains(name)) =>
            {
                self.comparison(&node);
            }
            "Where" => {
                let of = node.input.get(1).and_then(of).unwrap_or_default();
                self.choice(&node, of);
            }
            "Add" | "Sub" | "Mul" | "Max" | "MatMul" | "Concat" if counted => {
                let operands = node.input.iter().map(|name| self.number(name)).collect();
                self.replace(node, operands);
            }
            "ReduceSum" | "ReduceMax" | "Reshape" | "Transpose" | "Slice" | "Squeeze" | "Unsqueeze"
            | "Tile" | "Identity" | "Gather"
                if counted =>
            {
                let first = self.number(&node.input[0]);
                let rest = node.input[1..].iter().map(|name| self.own(name));
                let operands = std::iter::once(first).chain(rest.collect::<Vec<_>>()).collect();
                self.replace(node, operands);
            }
            "ArgMax" if counted => {
                let first = self.number(&node.input[0]);
                self.out.push(Node { input: vec![first], ..node });
            }
            _ => self.keep(node),
        }
    }

    /// A node as it was.
    fn keep(&mut self, mut node: Node) {
        for name in &mut node.input {
            *name = self.own(name);
        }
        let operator = node.op_type.as_str();
        let counts = COUNTS.contains(&operator);
        let nearest = || node.attribute.iter().any(|mode| mode.s.as_deref() == Some(b"nearest"));
        let moves = MOVES.split(' ').any(|name| name == operator) || (operator == "Resize" && nearest());
        let data = if counts && !node.op_type.starts_with("Reduce") { node.input.len() } else { 1 };
        if (counts || moves) && node.input.iter().take(data).all(|name| self.whole.contains(name)) {
            self.whole.extend(node.output.iter().cloned());
        }
        self.out.push(node);
    }

    /// A node on numbers, whose result there is as a number only.
    fn replace(&mut self, node: Node, input: Vec<String>) {
        let output: Vec<String> = node.output.iter().map(|name| number_name(name)).collect();
        for (name, number) in node.output.iter().zip(&output) {
            self.becomes(name, number.clone());
        }
        let name = output.first().cloned().unwrap_or_default();
        self.out.push(Node { input, output, name, ..node });
    }

    fn becomes(&mut self, name: &str, number: String) {
        self.whole.insert(number.clone());
        self.numbers.insert(name.to_owned(), number);
        self.replaced.insert(name.to_owned());
    }

    fn cast(&mut self, node: Node, from: i32) {
        let to = node.attribute.iter().find(|attribute| attribute.name == "to").and_then(|to| to.i);
        let to = to.and_then(|to| i32::try_from(to).ok()).unwrap_or_default();
        let (x, y) = (node.input[0].clone(), node.output[0].clone());
        let bool = data_type(Dtype::Bool);
        match (is_float(from), is_float(to)) {
            (true, true) => {
                if self.whole.contains(&x) {
                    self.whole.insert(y);
                }
                self.out.push(node);
            }
            (true, false) if to != bool && self.whole.contains(&x) => {
                let single = self.single(&x);
                self.becomes(&y, single);
            }
            (true, false) if self.whole.contains(&x) => {
                let single = self.single(&x);
                self.truth(&y, &single);
            }
            (true, false) => self.out.push(node),
            // The first conversion of a value serves wherever it is needed as a number.
            (false, true) if to == data_type(Dtype::F32) && !self.numbers.contains_key(&x) => {
                self.whole.insert(y.clone());
                self.numbers.insert(x, y);
                self.out.push(node);
            }
            (false, true) => {
                let number = self.number(&x);
                self.whole.insert(y);
                let op_type = if to == data_type(Dtype::F32) { "Identity" } else { "Cast" };
                let attribute = if op_type == "Cast" { node.attribute.clone() } else { vec![] };
                self.out.push(Node { input: vec![number], op_type: op_type.to_owned(), attribute, ..node });
            }
            (false, false) if to == bool && from != bool => {
                let number = self.number(&x);
                self.truth(&y, &number);
            }
            (false, false) => {
                let number = self.number(&x);
                self.becomes(&y, number);
            }
        }
    }

    fn logic(&mut self, node: &Node) {
        let given: Vec<String> = node.input.iter().map(|name| self.number(name)).collect();
        let operator = match node.op_type.as_str() {
            "And" => "Mul",
            "Or" => "Max",
            _ => "Sub",
        };
        let operands = match operator {
            "Sub" => vec![self.literal("one"), given[0].clone()],
            _ => given,
        };
        self.replace(Node { op_type: operator.to_owned(), ..node.clone() }, operands);
    }

    fn comparison(&mut self, node: &Node) {
        let y = &node.output[0];
        let [a, b] = [0, 1].map(|position| self.number(&node.input[position]));
        let [less, more] = match node.op_type.as_str() {
            "Greater" | "GreaterOrEqual" => [&b, &a],
            _ => [&a, &b],
        };
        let difference = self.part(y, "Sub", &[more, less]);
        let one = self.literal("one");
        match node.op_type.as_str() {
            "Equal" => {
                let square = self.part(y, "Mul", &[&difference, &difference]);
                let differs = self.clip(&format!("{y}/differs"), &square);
                let number = number_name(y);
                self.write("Sub", &[&one, &differs], &number);
                self.becomes(y, number);
            }
            "LessOrEqual" | "GreaterOrEqual" => {
                let reached = self.part(y, "Add", &[&difference, &one]);
                self.clipped(y, &reached);
            }
            _ => self.clipped(y, &difference),
        }
    }

    /// Each of two values times whether it is chosen.
    fn choice(&mut self, node: &Node, kind: i32) {
        let y = &node.output[0];
        let chosen = self.number(&node.input[0]);
        let one = self.literal("one");
        let [a, b] = [1, 2].map(|position| match is_float(kind) {
            true => node.input[position].clone(),
            false => self.number(&node.input[position]),
        });
        let result = if is_float(kind) { y.clone() } else { number_name(y) };
        let zero = [1, 2].map(|position| self.zeros.contains(&node.input[position]));
        let first = if zero == [false, true] { result.clone() } else { format!("{y}/first") };
        let second = if zero[0] { result.clone() } else { format!("{y}/second") };
        if !zero[0] {
            let chosen = self.like(y, "chosen", &chosen, kind);
            self.write("Mul", &[&a, &chosen], &first);
        }
        if zero != [false, true] {
            let other = self.part(y, "Sub", &[&one, &chosen]);
            let other = self.like(y, "other", &other, kind);
            self.write("Mul", &[&b, &other], &second);
        }
        if zero == [false; 2] {
            self.write("Add", &[&first, &second], &result);
        }
        if !is_float(kind) {
            self.becomes(y, result);
        } else if [&a, &b].into_iter().all(|name| self.whole.contains(name)) {
            self.whole.insert(result);
        }
    }

    /// A number in single precision as another floating-point type.
    fn like(&mut self, of: &str, what: &str, number: &str, kind: i32) -> String {
        let half = [Dtype::F16, Dtype::Bf16].into_iter().find(|dtype| data_type(*dtype) == kind);
        match half {
            Some(dtype) => self.convert(number, dtype, &format!("{of}/{what}")),
            None => number.to_owned(),
        }
    }

    /// Truth of what is not zero.
    fn truth(&mut self, name: &str, number: &str) {
        let square = self.part(name, "Mul", &[number, number]);
        self.clipped(name, &square);
    }

    /// Truth of what is above zero.
    fn clipped(&mut self, name: &str, number: &str) {
        let clipped = self.clip(&number_name(name), number);
        self.becomes(name, clipped);
    }

    fn clip(&mut self, output: &str, x: &str) -> String {
        let (zero, one) = (self.literal("zero"), self.literal("one"));
        self.write("Clip", &[x, &zero, &one], output)
    }

    /// A value as a number in single precision.
    fn number(&mut self, name: &str) -> String {
        match self.facts.types.get(name) {
            Some(kind) if is_float(*kind) => return self.single(name),
            _ => {}
        }
        if let Some(number) = self.numbers.get(name) {
            return number.clone();
        }
        let number = self.convert(name, Dtype::F32, &number_name(name));
        self.whole.insert(number.clone());
        self.numbers.insert(name.to_owned(), number.clone());
        number
    }

    /// A floating-point value in single precision.
    fn single(&mut self, name: &str) -> String {
        let single = data_type(Dtype::F32);
        if self.facts.types.get(name).is_none_or(|kind| *kind == single) {
            return name.to_owned();
        }
        if let Some(number) = self.numbers.get(name) {
            return number.clone();
        }
        let number = self.convert(name, Dtype::F32, &number_name(name));
        self.numbers.insert(name.to_owned(), number.clone());
        number
    }

    /// A value in its own type.
    fn own(&mut self, name: &str) -> String {
        if self.replaced.remove(name) {
            let number = self.numbers[name].clone();
            let kind = self.facts.types.get(name).copied();
            let dtype = if kind == Some(data_type(Dtype::Bool)) { Dtype::Bool } else { Dtype::I64 };
            self.convert(&number, dtype, name);
        }
        name.to_owned()
    }

    fn convert(&mut self, x: &str, to: Dtype, output: &str) -> String {
        let attribute = vec![Attribute::int("to", i64::from(data_type(to)))];
        self.out.push(Node { attribute, ..written("Cast", &[x], output) });
        output.to_owned()
    }

    fn part(&mut self, of: &str, operator: &str, operands: &[&str]) -> String {
        self.write(operator, operands, &format!("{of}/{operator}"))
    }

    fn write(&mut self, operator: &str, operands: &[&str], output: &str) -> String {
        self.out.push(written(operator, operands, output));
        output.to_owned()
    }

    fn literal(&mut self, name: &'static str) -> String {
        let value: f32 = if name == "one" { 1.0 } else { 0.0 };
        let full = format!("/number/{name}");
        let bytes = value.to_le_bytes().to_vec();
        self.literals.entry(name).or_insert_with(|| Tensor::inline(&full, Dtype::F32, &[], bytes));
        full
    }
}

fn written(operator: &str, operands: &[&str], output: &str) -> Node {
    Node {
        input: operands.iter().map(|&name| name.to_owned()).collect(),
        output: vec![output.to_owned()],
        name: output.to_owned(),
        op_type: operator.to_owned(),
        ..Node::default()
    }
}

fn number_name(name: &str) -> String {
    format!("{name}/number")
}

fn is_float(kind: i32) -> bool {
    [Dtype::F32, Dtype::F16, Dtype::Bf16].iter().any(|dtype| data_type(*dtype) == kind)
}

/// Whether a literal holds zeros only.
fn is_zero(tensor: &Tensor) -> bool {
    tensor.raw_data.as_ref().is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0))
}

/// Whether a literal holds whole numbers only.
fn is_whole(tensor: &Tensor) -> bool {
    let Some(bytes) = &tensor.raw_data else { return false };
    let single = tensor.data_type == data_type(Dtype::F32);
    let half = tensor.data_type == data_type(Dtype::F16);
    if single {
        bytes.as_chunks::<4>().0.iter().all(|word| f32::from_le_bytes(*word).fract() == 0.0)
    } else {
        half && bytes
            .as_chunks::<2>()
            .0
            .iter()
            .all(|word| half::f16::from_le_bytes(*word).to_f32().fract() == 0.0)
    }
}
