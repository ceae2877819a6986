//! Writes nodes, literals and weights of an ONNX graph, under names that read like the model.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use super::Rules;
use crate::graph::{Constant, Dim, Dtype, Graph, Node, Op, Origin, Shape};
use crate::onnx::{self, Attribute};
use crate::weights::{Bytes, Located};
use crate::{Error, Result};

/// The ONNX graph under construction.
pub(super) struct Emitter<'a> {
    pub(super) graph: &'a Graph,
    pub(super) rules: &'a Rules,
    weights: &'a [Located],
    folder: Option<&'a Path>,
    out: onnx::Graph,
    domains: BTreeSet<&'static str>,
    /// The ONNX name of each value written so far.
    names: HashMap<usize, String>,
    /// Literals by content, so that each is written once.
    literals: HashMap<(Dtype, Vec<usize>, Vec<u8>), String>,
    /// The weights already written in another form.
    pub(super) derived: HashMap<(usize, &'static str), String>,
    /// The name of the node being lowered; parts of it are named below it.
    pub(super) place: String,
    /// The name its result must get.
    pub(super) result: Option<String>,
    parts: usize,
    pub(super) symbols: HashMap<String, String>,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        weights: &'a [Located],
        rules: &'a Rules,
        folder: Option<&'a Path>,
    ) -> Self {
        Self {
            graph,
            rules,
            weights,
            folder,
            out: onnx::Graph { name: "weft".to_owned(), ..Default::default() },
            domains: BTreeSet::from([""]),
            names: HashMap::new(),
            literals: HashMap::new(),
            derived: HashMap::new(),
            place: String::new(),
            result: None,
            parts: 0,
            symbols: HashMap::new(),
        }
    }

    /// Lowers one operation.
    pub(super) fn node(&mut self, node: &Node) -> Result<()> {
        self.place.clone_from(&node.name);
        self.parts = 0;
        let output = self.output_name(node.output);
        self.result = Some(output);
        let shape = self.shape(node.output);
        let mut inputs = node.inputs.iter().map(|&id| self.operand(id)).collect::<Result<Vec<_>>>()?;
        let widened = self.narrowed(node, &mut inputs);
        let refs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let name = match &node.op {
            Op::Linear => self.linear(node, &refs)?,
            Op::Attention(op) => self.attention(node, *op, &refs)?,
            Op::Activate(act) => self.activation(*act, refs[0]),
            Op::Reshape => self.reshape(refs[0], &self.shape(node.inputs[0]), &shape)?,
            Op::Positions => self.positions(&shape)?,
            Op::Expand => self.expand(refs[0], &self.shape(node.inputs[0]), &shape)?,
            Op::Gather { axis } => self.last("Gather", &refs, vec![Attribute::int("axis", *axis as i64)]),
            Op::LayerNorm { epsilon } => self.layer_norm(&refs, *epsilon),
            Op::RmsNorm { epsilon } => self.rms_norm(&refs, *epsilon),
            Op::Binary(op) if self.rules.basic => self.basic_binary(node, *op, [refs[0], refs[1]]),
            Op::Binary(op) => self.last(op.onnx(), &refs, vec![]),
            Op::Unary(op) if self.rules.basic => self.basic_unary(node, *op, refs[0]),
            Op::Unary(op) => self.last(op.onnx(), &refs, vec![]),
            Op::MatMul => self.last("MatMul", &refs, vec![]),
            Op::Softmax { axis } => self.softmax(node, *axis, refs[0]),
            Op::Transpose { order } => {
                let order = order.iter().map(|&axis| axis as i64).collect();
                self.last("Transpose", &refs, vec![Attribute::ints("perm", order)])
            }
            Op::Concat { axis } => self.last("Concat", &refs, vec![Attribute::int("axis", *axis as i64)]),
            Op::Slice { axis, start, end, step } => self.slice(refs[0], *axis, [start, end], *step)?,
            Op::Conv(op) => {
                let channels = self.shape(node.inputs[0])[1].fixed().unwrap_or_default();
                self.conv("Conv", op, &refs, channels)
            }
            Op::ConvTranspose(op) => self.conv("ConvTranspose", op, &refs, 0),
            Op::BatchNorm { epsilon } if self.rules.basic => self.basic_batch_norm(node, &refs, *epsilon)?,
            Op::BatchNorm { epsilon } => {
                self.last("BatchNormalization", &refs, vec![Attribute::float("epsilon", *epsilon as f32)])
            }
            Op::InstanceNorm { epsilon } => {
                self.last("InstanceNormalization", &refs, vec![Attribute::float("epsilon", *epsilon as f32)])
            }
            Op::Pool(op) => self.pool(op, refs[0]),
            Op::Resize(op) => self.resize(*op, refs[0], &self.shape(node.inputs[0]), &shape)?,
            Op::Pad { by, around } => self.pad(node, *by, around, refs[0]),
            Op::CumSum { axis } if self.rules.basic => self.basic_cumsum(node, *axis, refs[0])?,
            Op::CumSum { axis } => {
                let axis = self.integer(*axis as i64);
                self.last("CumSum", &[refs[0], &axis], vec![])
            }
            Op::ArgMax { axis } => {
                let attributes = vec![Attribute::int("axis", *axis as i64), Attribute::int("keepdims", 0)];
                self.last("ArgMax", &refs, attributes)
            }
            Op::GatherElements { axis } => {
                self.last("GatherElements", &refs, vec![Attribute::int("axis", *axis as i64)])
            }
            Op::Angles { of, frequencies, scaling } => {
                self.angles(node, *of, frequencies, *scaling as f32, refs[0])?
            }
            Op::Rotary(op) => self.rotary(node, *op, [refs[0], refs[1], refs[2]])?,
            Op::LogSoftmax { axis } => {
                self.last("LogSoftmax", &refs, vec![Attribute::int("axis", *axis as i64)])
            }
            Op::Cast { to } => self.cast(node, *to, refs[0]),
            Op::Where => self.choose(node, &refs),
            Op::Reduce { by, axes, keep } => {
                let axes: Vec<i64> = axes.iter().map(|&axis| axis as i64).collect();
                let axes = self.integers(&axes);
                self.reduce(node, *by, [refs[0], &axes], *keep)
            }
        };
        let name = match widened {
            Some(wide) => self.widened(&name, wide),
            None => name,
        };
        self.names.insert(node.output, name);
        Ok(())
    }

    /// The finished model.
    pub(super) fn finish(mut self) -> Result<onnx::Model> {
        for input in &self.graph.inputs {
            let shape = self.substituted(&input.shape);
            self.out.input.push(onnx::ValueInfo::new(&input.name, input.dtype, &shape));
        }
        for (name, id) in &self.graph.outputs {
            let tensor = &self.graph.values[*id].tensor;
            let written = self.operand(*id)?;
            let float = tensor.dtype() == Dtype::F32 && self.rules.float != Dtype::F32;
            self.place = format!("/{name}");
            self.result = Some(name.clone());
            if float {
                let to = data_type(Dtype::F32);
                self.last("Cast", &[&written], vec![Attribute::int("to", to)]);
            } else if written != *name {
                self.last("Identity", &[&written], vec![]);
            }
            let shape = self.substituted(tensor.shape());
            self.out.output.push(onnx::ValueInfo::new(name, tensor.dtype(), &shape));
        }
        let versions = self.domains.iter().map(|domain| onnx::OperatorSet {
            domain: (*domain).to_owned(),
            version: Some(if domain.is_empty() { self.rules.opset } else { 1 }),
        });
        Ok(onnx::Model {
            ir_version: Some(if self.rules.opset >= 23 { onnx::IR_VERSION } else { 10 }),
            producer_name: "weft".to_owned(),
            producer_version: env!("CARGO_PKG_VERSION").to_owned(),
            opset_import: versions.collect(),
            graph: Some(self.out),
        })
    }

    /// A value's shape, with the numbers that the rules fix.
    pub(super) fn shape(&self, id: usize) -> Shape {
        self.substituted(self.graph.values[id].tensor.shape())
    }

    pub(super) fn substituted(&self, shape: &[Dim]) -> Shape {
        shape.iter().map(|dim| dim.substitute(&|name| self.rules.dims.get(name).copied())).collect()
    }

    /// The ONNX name of a value, written when it is first needed.
    pub(super) fn operand(&mut self, id: usize) -> Result<String> {
        if let Some(name) = self.names.get(&id) {
            return Ok(name.clone());
        }
        let value = &self.graph.values[id];
        let name = match &value.origin {
            Origin::Input(index) => {
                let input = &self.graph.inputs[*index];
                self.converted(input.name.clone(), input.dtype)
            }
            Origin::Weight(index) => self.weight(*index)?,
            Origin::Constant(Constant::F32(values)) => {
                let dims = self.lengths(id);
                self.numbers(&dims, values)
            }
            Origin::Constant(Constant::I64(values)) => {
                let bytes = values.iter().flat_map(|n| n.to_le_bytes()).collect();
                let dims = self.lengths(id);
                self.literal(Dtype::I64, &dims, bytes)
            }
            Origin::Node => {
                return Err(self.graph.misfit("lower", format!("`{}` is used too early", value.name)));
            }
        };
        self.names.insert(id, name.clone());
        Ok(name)
    }

    /// A floating-point value in the type that the rules compute in.
    fn converted(&mut self, name: String, dtype: Dtype) -> String {
        if !dtype.is_float() || dtype == self.rules.float {
            return name;
        }
        let to = data_type(self.rules.float);
        self.named("Cast", &[&name], vec![Attribute::int("to", to)], &format!("{name}/Cast"))
    }

    fn weight(&mut self, index: usize) -> Result<String> {
        let (weight, located) = (&self.graph.weights[index], &self.weights[index]);
        let tensor = match &located.bytes {
            Bytes::Memory(bytes) => {
                onnx::Tensor::inline(&weight.name, located.dtype, &located.shape, bytes.clone())
            }
            Bytes::File { path, offset, length } => {
                let folder = self.folder.unwrap_or(Path::new(""));
                let relative = path.strip_prefix(folder).unwrap_or(path);
                let location = relative.to_str().map(|path| path.replace('\\', "/")).ok_or_else(|| {
                    let help = "move the checkpoint to a folder whose path is valid UTF-8";
                    Error::weights(path, "has a path that is not UTF-8", help)
                })?;
                onnx::Tensor::external(
                    &weight.name,
                    located.dtype,
                    &located.shape,
                    &location,
                    *offset,
                    *length,
                )
            }
        };
        self.out.initializer.push(tensor);
        Ok(self.converted(weight.name.clone(), located.dtype))
    }

    fn output_name(&self, id: usize) -> String {
        match self.graph.outputs.iter().find(|(_, output)| *output == id) {
            Some((name, _)) if self.rules.float == Dtype::F32 => name.clone(),
            _ => self.graph.values[id].name.clone(),
        }
    }

    /// Writes the node that gives the operation's result.
    pub(super) fn last(&mut self, op: &str, inputs: &[&str], attributes: Vec<Attribute>) -> String {
        self.last_in("", op, inputs, attributes)
    }

    /// As [`Self::last`], for an operator of another domain.
    pub(super) fn last_in(
        &mut self,
        domain: &'static str,
        op: &str,
        inputs: &[&str],
        attributes: Vec<Attribute>,
    ) -> String {
        let output = self.result.take().unwrap_or_else(|| format!("{}/{op}", self.place));
        let name = self.place.clone();
        self.write(domain, op, inputs, attributes, name, output)
    }

    /// Writes a node that gives an intermediate result.
    pub(super) fn part(&mut self, op: &str, inputs: &[&str], attributes: Vec<Attribute>) -> String {
        self.part_in("", op, inputs, attributes)
    }

    /// As [`Self::part`], for an operator of another domain.
    pub(super) fn part_in(
        &mut self,
        domain: &'static str,
        op: &str,
        inputs: &[&str],
        attributes: Vec<Attribute>,
    ) -> String {
        let name = format!("{}/{op}.{}", self.place, self.parts);
        self.parts += 1;
        self.write(domain, op, inputs, attributes, name.clone(), name)
    }

    /// Writes a node under a name of its own.
    pub(super) fn named(
        &mut self,
        op: &str,
        inputs: &[&str],
        attributes: Vec<Attribute>,
        name: &str,
    ) -> String {
        self.write("", op, inputs, attributes, name.to_owned(), name.to_owned())
    }

    fn write(
        &mut self,
        domain: &'static str,
        op: &str,
        inputs: &[&str],
        attribute: Vec<Attribute>,
        name: String,
        output: String,
    ) -> String {
        self.domains.insert(domain);
        self.out.node.push(onnx::Node {
            input: inputs.iter().map(|&input| input.to_owned()).collect(),
            output: vec![output.clone()],
            name,
            op_type: op.to_owned(),
            attribute,
            domain: domain.to_owned(),
        });
        output
    }

    /// Says what shape a floating-point value has, where an engine would not find out.
    pub(super) fn declare(&mut self, name: &str, shape: &[Dim]) {
        let known = shape.iter().all(|dim| dim.fixed().is_some());
        if !known && self.graph.outputs.iter().all(|(output, _)| output != name) {
            self.out.value_info.push(onnx::ValueInfo::new(name, self.rules.float, shape));
        }
    }

    /// A literal integer without axes.
    pub(super) fn integer(&mut self, value: i64) -> String {
        self.literal(Dtype::I64, &[], value.to_le_bytes().to_vec())
    }

    /// A literal list of integers.
    pub(super) fn integers(&mut self, values: &[i64]) -> String {
        let bytes = values.iter().flat_map(|n| n.to_le_bytes()).collect();
        self.literal(Dtype::I64, &[values.len()], bytes)
    }

    /// A literal number in the type that the rules compute in.
    pub(super) fn number(&mut self, value: f32) -> String {
        self.numbers(&[], &[value])
    }

    /// Literal numbers in the type that the rules compute in.
    pub(super) fn numbers(&mut self, dims: &[usize], values: &[f32]) -> String {
        // Beyond the range lies infinity, which no number survives a product or a difference with.
        let most = if self.rules.float == Dtype::F16 { 65504.0 } else { f32::MAX };
        let values: Vec<f32> = values.iter().map(|x| x.clamp(-most, most)).collect();
        let bytes = match self.rules.float {
            Dtype::F16 => values.iter().flat_map(|x| half::f16::from_f32(*x).to_le_bytes()).collect(),
            Dtype::Bf16 => values.iter().flat_map(|x| half::bf16::from_f32(*x).to_le_bytes()).collect(),
            _ => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
        };
        self.literal(self.rules.float, dims, bytes)
    }

    /// The shape of a literal.
    fn lengths(&self, id: usize) -> Vec<usize> {
        self.graph.values[id].tensor.shape().iter().filter_map(Dim::fixed).collect()
    }

    pub(super) fn literal(&mut self, dtype: Dtype, dims: &[usize], bytes: Vec<u8>) -> String {
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

pub(super) fn data_type(dtype: Dtype) -> i64 {
    i64::from(onnx::data_type(dtype))
}
