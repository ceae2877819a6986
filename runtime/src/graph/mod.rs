//! A typed graph builder: every value has a dtype and a shape, and an operation that does not fit is an
//! error when the graph is built, naming the operation, the scope and both shapes.

mod activation;
mod attend;
mod build;
mod cache_bits;
mod constant;
mod dim;
mod expert;
mod gram;
mod input;
mod intermediate;
mod kind;
mod length;
mod lstm;
mod op;
mod pool;
pub(crate) mod probe;
mod rare;
mod recurrence;
mod rewrite;
mod scope;
mod select;
mod shape;
mod spatial;
mod stored;
mod weighted;

use std::sync::Arc;

pub use crate::dtype::Dtype;
pub use activation::Activation;
pub use attend::Attention;
pub(crate) use attend::MASKED_SCORE;
pub(crate) use cache_bits::BYTES_OF_A_FLOAT;
pub use cache_bits::{CacheBits, CacheCodes};
pub use dim::{Dim, Factor, dims};
pub(crate) use input::Limit;
pub use input::{Input, InputDefault};
pub use kind::GraphKind;
pub use lstm::{LstmLayer, LstmOutput};
pub use op::{
    AttentionOp, Binary, BlockOp, CachedAttentionOp, CachedAttentionResult, CausalConvOp, Contrib, ConvOp,
    ExpertBlocks, ExpertLinearOp, GluOp, Interpolation, LinearAttentionOp, LstmOp, LstmResult, MatMulNBitsOp,
    MoeOp, Op, PadMode, PoolOp, RecurrenceResult, Reduction, ResizeOp, RotaryOp, SelectiveScanOp, TopKOp,
    TopKResult, Unary,
};
pub(crate) use rare::{LstmPasses, RarePasses, RecurrencePasses, SamplePasses};
pub use recurrence::{LinearAttention, SelectiveScan};
pub(crate) use rewrite::{Operation, Rule};
pub use scope::Scope;
pub use spatial::Conv;
pub(crate) use stored::Stored;

pub(crate) use shape::product;

use crate::{Error, Result};

/// The lengths of all axes.
pub type Shape = Vec<Dim>;

/// A value of the graph: a handle that is cheap to clone.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub(crate) id: usize,
    dtype: Dtype,
    shape: Arc<Shape>,
}

impl Tensor {
    /// The element type.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The lengths of all axes.
    pub fn shape(&self) -> &[Dim] {
        &self.shape
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The length of one axis; negative axes count from the end.
    pub fn dim(&self, axis: isize) -> Option<&Dim> {
        let axis = if axis < 0 { self.rank().checked_add_signed(axis)? } else { axis.unsigned_abs() };
        self.shape.get(axis)
    }
}

/// Where a value comes from.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    Input(usize),
    Weight(usize),
    Constant(Constant),
    Node,
}

/// Literal numbers; the value's shape says how they lie.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Constant {
    F32(Vec<f32>),
    I64(Vec<i64>),
}

/// A value with its type, its name and its origin.
#[derive(Clone, Debug)]
pub(crate) struct ValueInfo {
    pub name: String,
    pub tensor: Tensor,
    pub origin: Origin,
}

/// One operation.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub op: Op,
    pub name: String,
    pub inputs: Vec<usize>,
    pub output: usize,
}

/// A parameter of the model, by its name in the checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weight {
    /// The name, as the reference's `state_dict` has it.
    pub name: String,
    /// The shape that the configuration asks for.
    pub shape: Vec<usize>,
    /// Whether it is a linear layer's as `[in, out]` (`Conv1D` of GPT-2), which quantized formats store as `[out, in]`.
    pub transposed: bool,
    /// Whether it is a table of whole numbers, such as ids, and not of floating-point ones.
    pub integers: bool,
}

impl Weight {
    /// One of floating-point numbers.
    pub(crate) fn new(name: &str, shape: &[usize]) -> Self {
        Self { name: name.to_owned(), shape: shape.to_vec(), transposed: false, integers: false }
    }
}

/// A model graph under construction.
#[derive(Clone, Debug)]
pub struct Graph {
    pub(crate) values: Vec<ValueInfo>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) outputs: Vec<(String, usize)>,
    pub(crate) weights: Vec<Weight>,
    pub(crate) limits: Vec<Limit>,
    /// Lengths that must not become 0, such as the frames that convolutions leave of a waveform.
    pub(crate) lengths: Vec<Dim>,
    pub(crate) unused: Vec<String>,
    /// Values that are outputs where they are asked for.
    intermediates: Vec<(String, usize)>,
    /// The parameters of [`GraphKind::AtKeypoints`], which runs after this one.
    pub(crate) later: Vec<Weight>,
    pub(crate) stored: Option<Stored>,
    /// Whether experts are counted, and how often each was selected, by layer: `[experts]`.
    pub(crate) counts_experts: bool,
    pub(crate) expert_counts: Vec<(String, Tensor)>,
    /// How cached keys and values are stored; none where they are floating point.
    pub(crate) cache_codes: Option<CacheCodes>,
    /// Whether images of any size were asked for, and whether the model has a way to read them.
    pub(crate) interpolate: bool,
    pub(crate) can_interpolate: bool,
    /// The values that are computed in single precision on every backend.
    pub(crate) single: std::collections::BTreeSet<usize>,
    /// The passes over those of its operations that few models have.
    pub(crate) rare: RarePasses,
    weight_ids: std::collections::HashMap<String, usize>,
    names: std::collections::HashMap<String, usize>,
    place: Scope,
    root: Scope,
}

impl Default for Graph {
    fn default() -> Self {
        Self::new()
    }
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Self {
            values: vec![],
            nodes: vec![],
            inputs: vec![],
            outputs: vec![],
            weights: vec![],
            limits: vec![],
            lengths: vec![],
            unused: vec![],
            intermediates: vec![],
            later: vec![],
            stored: None,
            counts_experts: false,
            expert_counts: vec![],
            cache_codes: None,
            interpolate: false,
            can_interpolate: false,
            single: Default::default(),
            rare: RarePasses::default(),
            weight_ids: Default::default(),
            names: Default::default(),
            place: Scope::root(),
            root: Scope::root(),
        }
    }

    /// The scope of weights that carry no prefix, or that of the model that is built [`within`](Self::within) it.
    pub fn root(&self) -> Scope {
        self.root.clone()
    }

    /// A scope just below the root.
    pub fn scope(&self, name: &str) -> Scope {
        self.root.scope(name)
    }

    /// Builds what is a model of its own in another place: its root is this scope.
    pub fn within<T>(&mut self, scope: &Scope, build: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.root, scope.clone());
        let built = build(self);
        self.root = outer;
        built
    }

    /// Declares an input of the model; see [`Input`]. Modules that take the same one, of one name, type and shape, share it.
    pub fn input(&mut self, input: Input) -> Tensor {
        let same = |known: &Input| {
            known.name == input.name && known.dtype == input.dtype && known.shape == input.shape
        };
        if let Some(index) = self.inputs.iter().position(same)
            && let Some(value) =
                self.values.iter().find(|value| matches!(value.origin, Origin::Input(at) if at == index))
        {
            return value.tensor.clone();
        }
        let (name, dtype, shape) = (input.name.clone(), input.dtype, input.shape.clone());
        self.inputs.push(input);
        self.value(name, dtype, shape, Origin::Input(self.inputs.len() - 1))
    }

    /// Says how long an axis may get, and which field of the configuration sets the limit.
    pub fn limit(&mut self, symbol: &Dim, most: usize, field: &'static str) {
        if let Dim::Symbol(name) = symbol {
            self.limits.push(Limit { symbol: name.to_string(), most, field });
        }
    }

    /// Requires these lengths to be above 0 for any input.
    pub(crate) fn needs_some(&mut self, lengths: &[Dim]) {
        for length in lengths.iter().filter(|length| matches!(length, Dim::Sum(_))) {
            if !self.lengths.contains(length) {
                self.lengths.push(length.clone());
            }
        }
    }

    /// Forbids a token id in an input: that of a placeholder which `stands` for something that this graph does not take.
    pub fn forbid_token(&mut self, input: &str, id: usize, stands: &'static str) {
        if let Some(input) = self.inputs.iter_mut().find(|known| known.name == input) {
            input.forbidden_token = Some((id, stands));
        }
    }

    /// Requires the rows of an input to be a multiple: the frames of whole videos, by the configuration's field.
    pub fn row_multiple(&mut self, input: &str, rows: usize, field: &'static str) {
        if let Some(input) = self.inputs.iter_mut().find(|known| known.name == input) {
            input.row_multiple = Some((rows, field));
        }
    }

    /// Lets whole numbers be given for an input of floating-point numbers, as the reference computes with both.
    pub fn allow_integers(&mut self, input: &str) {
        if let Some(input) = self.inputs.iter_mut().find(|known| known.name == input) {
            input.allows_integers = true;
        }
    }

    /// Names a weight that checkpoints hold and the reference does not use either.
    pub fn unused_weight(&mut self, name: &str) {
        self.unused.push(name.to_owned());
    }

    /// Whether the checkpoint holds a weight that some leave out; true where there is no checkpoint.
    pub fn has_weight(&self, name: &str) -> bool {
        self.stored.as_ref().is_none_or(|stored| (stored.has)(name))
    }

    /// Whether the checkpoint stores a weight in this shape; false where there is no checkpoint.
    pub(crate) fn stores(&self, name: &str, shape: &[usize]) -> bool {
        self.stored.as_ref().is_some_and(|stored| (stored.shape)(name).is_some_and(|stored| stored == shape))
    }

    /// Whether position embeddings are to be interpolated to images of other sizes than the configuration's.
    pub fn interpolate_pos_encoding(&mut self) -> bool {
        self.can_interpolate = true;
        self.interpolate
    }

    /// Names a scope whose parameters checkpoints hold and this class of the reference does not use either.
    pub fn unused_scope(&mut self, scope: &Scope) {
        self.unused.push(scope.name("*"));
    }

    /// Names a value as an output of the model. Where an input has the name, as the `sample` of denoisers, it is `out_sample` in what
    /// engines run, where names are one's own, and what they give gets the name back.
    ///
    /// # Errors
    /// When the name is taken.
    pub fn output(&mut self, name: &str, tensor: &Tensor) -> Result<()> {
        let shared = self.inputs.iter().any(|input| input.name == name);
        let name = &if shared { format!("{SHARED_NAME}{name}") } else { name.to_owned() };
        if self.outputs.iter().any(|(taken, _)| taken == name) {
            return Err(self.error("Output", format!("`{name}` is named twice")));
        }
        self.outputs.push((name.to_owned(), tensor.id));
        Ok(())
    }

    /// The inputs, in the order they were declared.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// The outputs' names, types and shapes.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.outputs.iter().map(|(name, id)| (name.as_str(), &self.values[*id].tensor))
    }

    /// The parameters that the graph uses.
    pub fn weights(&self) -> &[Weight] {
        &self.weights
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no operations.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The parameter of this name, with the shape that the configuration asks for.
    ///
    /// # Errors
    /// When the graph already uses it with another shape, or the checkpoint can hold nothing like it.
    pub fn weight(&mut self, name: &str, shape: &[usize]) -> Result<Tensor> {
        self.parameter(name, shape, Dtype::F32)
    }

    /// The table of whole numbers of this name (an integer buffer of the reference), i64, with the shape that the configuration asks for.
    ///
    /// # Errors
    /// As [`Graph::weight`].
    pub fn integer_weight(&mut self, name: &str, shape: &[usize]) -> Result<Tensor> {
        self.parameter(name, shape, Dtype::I64)
    }

    fn parameter(&mut self, name: &str, shape: &[usize], dtype: Dtype) -> Result<Tensor> {
        if let Some(stored) = &self.stored {
            stored.suffices(name, shape, self.weights.len(), self.nodes.len())?;
        }
        if let Some(&id) = self.weight_ids.get(name) {
            let known = self.values[id].tensor.clone();
            let wanted: Shape = shape.iter().map(|&n| Dim::Fixed(n)).collect();
            if *known.shape != wanted {
                let problem = format!("{} and {}", show(known.shape()), show(&wanted));
                return Err(self.error("Weight", format!("`{name}` is used with two shapes: {problem}")));
            }
            if known.dtype.is_float() != dtype.is_float() {
                let problem = format!("`{name}` is used as {} and as {dtype}", known.dtype);
                return Err(self.error("Weight", problem));
            }
            return Ok(known);
        }
        self.weights.push(Weight { integers: dtype == Dtype::I64, ..Weight::new(name, shape) });
        let shape = shape.iter().map(|&n| Dim::Fixed(n)).collect();
        let tensor = self.value(name.to_owned(), dtype, shape, Origin::Weight(self.weights.len() - 1));
        self.weight_ids.insert(name.to_owned(), tensor.id);
        Ok(tensor)
    }

    /// Appends an operation; the builder methods check the operands before.
    pub(crate) fn node(&mut self, op: Op, inputs: &[&Tensor], dtype: Dtype, shape: Shape) -> Tensor {
        let name = self.fresh(op.name());
        let output = self.value(name.clone(), dtype, shape, Origin::Node);
        let inputs = inputs.iter().map(|tensor| tensor.id).collect();
        self.nodes.push(Node { op, name, inputs, output: output.id });
        output
    }

    /// Nodes are named for the part of the model they belong to.
    pub(crate) fn enter(&mut self, scope: &Scope) {
        self.place = scope.clone();
    }

    pub(crate) fn error(&self, op: &str, problem: impl Into<String>) -> Error {
        Error::Graph { op: op.to_owned(), scope: self.place.to_string(), problem: problem.into() }
    }

    pub(super) fn value(&mut self, name: String, dtype: Dtype, shape: Shape, origin: Origin) -> Tensor {
        let tensor = Tensor { id: self.values.len(), dtype, shape: Arc::new(shape) };
        self.values.push(ValueInfo { name, tensor: tensor.clone(), origin });
        tensor
    }

    /// `/bert/encoder/layer/0/attention/self/query/Linear`, numbered where it occurs more than once.
    pub(super) fn fresh(&mut self, op: &str) -> String {
        let place = self.place.path().replace('.', "/");
        let name = if place.is_empty() { format!("/{op}") } else { format!("/{place}/{op}") };
        let count = self.names.entry(name.clone()).or_default();
        *count += 1;
        if *count == 1 { name } else { format!("{name}_{}", *count - 1) }
    }
}

/// What stands before the name of an output that an input has too.
pub(crate) const SHARED_NAME: &str = "out_";

/// A shape as errors print it: `[batch, sequence, 768]`.
pub(crate) fn show(shape: &[Dim]) -> String {
    let dims: Vec<_> = shape.iter().map(ToString::to_string).collect();
    format!("[{}]", dims.join(", "))
}

#[cfg(test)]
mod tests;
