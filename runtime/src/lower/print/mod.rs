//! Prints a lowered graph as an ONNX model, under names that read like the model; nothing is decided here any more.

mod codebooks;
mod experts;
mod node;
mod shapes;
mod weights;

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use super::{Memory, Target};
use crate::Result;
use crate::graph::{
    CachedAttentionOp, CachedAttentionResult, CausalConvOp, Constant, Dim, Dtype, Graph, LinearAttentionOp,
    LstmOp, LstmResult, MASKED_SCORE, Node, Op, Origin, RecurrenceResult, SelectiveScanOp, Tensor, TopKOp,
    TopKResult,
};
use crate::onnx::{self, Attribute};
use crate::weights::WeightData;

/// The ONNX graph under construction.
pub(super) struct Printer<'a> {
    graph: &'a Graph,
    target: &'a Target,
    weights: &'a [WeightData],
    folder: Option<&'a Path>,
    out: onnx::Graph,
    domains: BTreeSet<&'static str>,
    /// The ONNX name of each value written so far.
    names: HashMap<usize, String>,
    /// Literals by content, so that each is written once.
    literals: HashMap<(Dtype, Vec<usize>, Vec<u8>), String>,
    /// The parameters written so far.
    written: BTreeSet<String>,
    /// The values whose shapes are told.
    declared: BTreeSet<usize>,
    /// The name of the node being written; what computes its shapes is named below it.
    place: String,
    parts: usize,
    symbols: HashMap<String, String>,
    /// Weights that stay where they are in memory, by the location that the model names.
    memory: Memory,
}

impl<'a> Printer<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        weights: &'a [WeightData],
        target: &'a Target,
        folder: Option<&'a Path>,
    ) -> Self {
        Self {
            graph,
            target,
            weights,
            folder,
            out: onnx::Graph { name: "weft".to_owned(), ..Default::default() },
            domains: BTreeSet::from([""]),
            names: HashMap::new(),
            literals: HashMap::new(),
            written: BTreeSet::new(),
            declared: BTreeSet::new(),
            place: String::new(),
            parts: 0,
            symbols: HashMap::new(),
            memory: Memory::new(),
        }
    }

    /// The model of all operations, and what it names of memory.
    pub(super) fn print(mut self) -> Result<(onnx::Model, Memory)> {
        for node in &self.graph.nodes {
            self.node(node)?;
        }
        for input in &self.graph.inputs {
            self.out.input.push(onnx::ValueInfo::new(&input.name, input.dtype, &input.shape));
        }
        for (name, id) in &self.graph.outputs {
            let tensor = self.graph.tensor(*id);
            let written = self.operand(*id)?;
            if written != *name {
                self.write("", "Identity", &[&written], vec![], format!("/{name}"), name.clone());
            }
            self.out.output.push(onnx::ValueInfo::new(name, tensor.dtype(), tensor.shape()));
        }
        let opset = self.target.opset;
        let versions = self.domains.iter().map(|domain| onnx::OperatorSet {
            domain: (*domain).to_owned(),
            version: Some(if domain.is_empty() { opset } else { 1 }),
        });
        let model = onnx::Model {
            ir_version: Some(if opset >= 23 { onnx::IR_VERSION } else { 10 }),
            producer_name: "weft".to_owned(),
            producer_version: env!("CARGO_PKG_VERSION").to_owned(),
            opset_import: versions.collect(),
            graph: Some(self.out),
        };
        Ok((model, self.memory))
    }

    fn node(&mut self, node: &Node) -> Result<()> {
        // Written already, as the other result of an operation that has two.
        if self.names.contains_key(&node.output) {
            return Ok(());
        }
        self.place.clone_from(&node.name);
        self.parts = 0;
        let stored = match self.concat_of_stored(node)? {
            None => self.rows_as_stored(node)?,
            found => found,
        };
        if let Some(stored) = stored {
            let name = self.result_name(node.output);
            let to = cast(self.tensor(node.output).dtype());
            self.write("", "Cast", &[&stored], vec![to], format!("{}/Cast", node.name), name.clone());
            self.names.insert(node.output, name);
            return Ok(());
        }
        let operands = match &node.op {
            Op::ExpertLinear(_) => self.expert_operands(node)?,
            Op::DequantizeLinear { bits, .. } => self.operands_in_blocks(node, *bits)?,
            Op::Contrib(op) if op.codebook().is_some() => self.operands_of_codebook(op, node)?,
            _ => node.inputs.iter().map(|&id| self.operand(id)).collect::<Result<Vec<_>>>()?,
        };
        let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
        let written = self.written(node, &operands)?;
        let operands: Vec<&str> = written.operands.iter().map(String::as_str).collect();
        let results = self.results(node);
        let mut unread = (0..).map(|index| match index {
            0 => format!("{}/Unread", node.name),
            _ => format!("{}/Unread.{index}", node.name),
        });
        let names = results.iter().map(|result| match result {
            Some(id) => self.result_name(*id),
            None => unread.next().unwrap_or_default(),
        });
        let outputs: Vec<String> = names.collect();
        let Written { domain, operator, attributes, .. } = &written;
        self.write_all(domain, operator, &operands, attributes.clone(), node.name.clone(), outputs.clone());
        self.names.extend(results.into_iter().zip(outputs).filter_map(|(id, name)| Some((id?, name))));
        if is_fused(&node.op) {
            for &id in node.inputs.iter().chain([&node.output]) {
                self.declare(id);
            }
        }
        Ok(())
    }

    /// The values that a node gives: of an operation with several results all, of which other nodes stand for those that
    /// anything reads.
    fn results(&self, node: &Node) -> Vec<Option<usize>> {
        let all = match node.op.clone() {
            Op::LinearAttention(op) => [RecurrenceResult::Output, RecurrenceResult::State]
                .map(|gives| Op::LinearAttention(LinearAttentionOp { gives, ..op }))
                .to_vec(),
            Op::CachedAttention(op) => {
                use CachedAttentionResult::{Keys, Output, Values};
                let of = |gives| Op::CachedAttention(CachedAttentionOp { gives, ..op });
                [Output, Keys, Values].map(of).to_vec()
            }
            Op::SelectiveScan(op) => [RecurrenceResult::Output, RecurrenceResult::State]
                .map(|gives| Op::SelectiveScan(SelectiveScanOp { gives, ..op }))
                .to_vec(),
            Op::CausalConv(op) => [RecurrenceResult::Output, RecurrenceResult::State]
                .map(|gives| Op::CausalConv(CausalConvOp { gives, ..op }))
                .to_vec(),
            Op::Lstm(op) => [LstmResult::Output, LstmResult::Hidden, LstmResult::Cell]
                .map(|gives| Op::Lstm(LstmOp { gives, ..op }))
                .to_vec(),
            Op::TopK(op) => [TopKResult::Values, TopKResult::Indices]
                .map(|gives| Op::TopK(TopKOp { gives, ..op }))
                .to_vec(),
            Op::Split { axis, lengths, .. } => {
                (0..lengths.len()).map(|gives| Op::Split { axis, lengths: lengths.clone(), gives }).collect()
            }
            _ => return vec![Some(node.output)],
        };
        let given = |wanted| {
            let mut nodes = self.graph.nodes.iter();
            nodes.find(|other| other.inputs == node.inputs && other.op == wanted).map(|found| found.output)
        };
        all.into_iter().map(given).collect()
    }

    /// The ONNX name of what an operation gives.
    fn result_name(&self, id: usize) -> String {
        match self.graph.outputs.iter().find(|(_, output)| *output == id) {
            Some((name, _)) => name.clone(),
            None => self.graph.values[id].name.clone(),
        }
    }

    /// The type and the shape of an operand.
    fn tensor(&self, id: usize) -> &'a Tensor {
        self.graph.tensor(id)
    }

    /// The ONNX name of a value, written when it is first needed.
    fn operand(&mut self, id: usize) -> Result<String> {
        if let Some(name) = self.names.get(&id) {
            return Ok(name.clone());
        }
        let value = &self.graph.values[id];
        let (dtype, shape) = (value.tensor.dtype(), value.tensor.shape());
        let lengths = || -> Vec<usize> { shape.iter().filter_map(Dim::fixed).collect() };
        let name = match &value.origin {
            Origin::Input(index) => self.graph.inputs[*index].name.clone(),
            Origin::Weight(index) => self.weight(*index, dtype)?,
            Origin::Constant(Constant::F32(values)) => self.literal(dtype, &lengths(), floats(dtype, values)),
            Origin::Constant(Constant::I64(values)) => {
                self.literal(dtype, &lengths(), integers(dtype, values))
            }
            Origin::Node => {
                return Err(self.graph.error("lower", format!("`{}` is used too early", value.name)));
            }
        };
        self.names.insert(id, name.clone());
        Ok(name)
    }

    /// Writes a node that helps the one being written.
    fn part(&mut self, op: &str, operands: &[&str], attributes: Vec<Attribute>) -> String {
        let name = format!("{}/{op}.{}", self.place, self.parts);
        self.parts += 1;
        self.write("", op, operands, attributes, name.clone(), name.clone());
        name
    }

    fn write(
        &mut self,
        domain: &'static str,
        op: &str,
        operands: &[&str],
        attribute: Vec<Attribute>,
        name: String,
        output: String,
    ) {
        self.write_all(domain, op, operands, attribute, name, vec![output]);
    }

    fn write_all(
        &mut self,
        domain: &'static str,
        op: &str,
        operands: &[&str],
        attribute: Vec<Attribute>,
        name: String,
        output: Vec<String>,
    ) {
        self.domains.insert(domain);
        self.out.node.push(onnx::Node {
            input: operands.iter().map(|&input| input.to_owned()).collect(),
            output,
            name,
            op_type: op.to_owned(),
            attribute,
            domain: domain.to_owned(),
        });
    }

    /// Says what shape a value has, where an engine would not find out: ONNX infers the width of `Attention` from that of
    /// its values, and takes an unknown one for 0.
    fn declare(&mut self, id: usize) {
        let value = &self.graph.values[id];
        let known = value.tensor.shape().iter().all(|dim| dim.fixed().is_some());
        let output = self.graph.outputs.iter().any(|(_, output)| *output == id);
        let computed = matches!(value.origin, Origin::Node);
        if known || output || !computed || !self.declared.insert(id) {
            return;
        }
        let name = self.names.get(&id).unwrap_or(&value.name);
        self.out.value_info.push(onnx::ValueInfo::new(name, value.tensor.dtype(), value.tensor.shape()));
    }

    /// A literal integer without axes.
    fn integer(&mut self, value: i64) -> String {
        self.literal(Dtype::I64, &[], value.to_le_bytes().to_vec())
    }

    /// A literal list of integers.
    fn integers(&mut self, values: &[i64]) -> String {
        self.literal(Dtype::I64, &[values.len()], integers(Dtype::I64, values))
    }

    /// A literal number.
    fn number(&mut self, dtype: Dtype, value: f32) -> String {
        self.literal(dtype, &[], floats(dtype, &[value]))
    }

    fn literal(&mut self, dtype: Dtype, dims: &[usize], bytes: Vec<u8>) -> String {
        let key = (dtype, dims.to_vec(), bytes);
        if let Some(name) = self.literals.get(&key) {
            return name.clone();
        }
        let name = format!("/literal/{}", self.literals.len());
        self.out.initializer.push(onnx::Tensor::inline(&name, dtype, dims, key.2.clone()));
        self.literals.insert(key, name.clone());
        name
    }
}

/// An operator with what it is given.
struct Written {
    domain: &'static str,
    operator: &'static str,
    operands: Vec<String>,
    attributes: Vec<Attribute>,
}

/// Whether engines have a kernel for the whole, which is told the shapes of what it is given.
fn is_fused(op: &Op) -> bool {
    matches!(
        op,
        Op::Attention(_)
            | Op::FlashAttention(_)
            | Op::CachedAttention(_)
            | Op::Rotary(_)
            | Op::Contrib(_)
            | Op::LinearAttention(_)
            | Op::SelectiveScan(_)
            | Op::CausalConv(_)
            | Op::ExpertLinear(_)
            | Op::Glu(_)
    )
}

/// Numbers as bytes of a floating-point type. Beyond its range lies infinity, which no number survives a product or a
/// difference with. Scores that hide keep their order in half precision: what is hidden twice is lower than what is once. A number too
/// small for half precision is its smallest: one that keeps a divisor from 0 would be 0 itself.
fn floats(dtype: Dtype, values: &[f32]) -> Vec<u8> {
    let least = f32::from(half::f16::MIN);
    let in_half = |x: f32| if x <= MASKED_SCORE / 2.0 { x / MASKED_SCORE * least } else { x };
    let values = values.iter().map(|x| x.clamp(f32::MIN, f32::MAX));
    match dtype {
        Dtype::F16 => {
            let halves = values.map(|x| {
                let narrow = half::f16::from_f32(in_half(x).clamp(least, -least));
                let lost = x != 0.0 && narrow == half::f16::ZERO;
                if lost { half::f16::MIN_POSITIVE_SUBNORMAL.copysign(narrow) } else { narrow }
            });
            halves.flat_map(half::f16::to_le_bytes).collect()
        }
        Dtype::Bf16 => values.flat_map(|x| half::bf16::from_f32(x).to_le_bytes()).collect(),
        _ => values.flat_map(f32::to_le_bytes).collect(),
    }
}

/// Integers as bytes; those of 32 bits end at the largest there is.
fn integers(dtype: Dtype, values: &[i64]) -> Vec<u8> {
    match dtype {
        Dtype::I32 => {
            let narrow = values.iter().map(|n| (*n).clamp(i32::MIN.into(), i32::MAX.into()) as i32);
            narrow.flat_map(i32::to_le_bytes).collect()
        }
        _ => values.iter().flat_map(|n| n.to_le_bytes()).collect(),
    }
}

/// The attribute of `Cast`.
fn cast(to: Dtype) -> Attribute {
    Attribute::int("to", i64::from(onnx::data_type(to)))
}
