//! A compiled graph: settings in, runs and placement out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use memmap2::Mmap;
use ndarray::{ArrayD, IxDyn};
use openvino::{
    CompiledModel, Core, DeviceType, ElementType, InferRequest, InferenceError, InferenceErrorKind,
    PropertyKey, RwPropertyKey, Shape, Tensor,
};

use super::{failed, raw, reading};
use crate::engine::{Compiled, Options, Placement};
use crate::graph::Dtype;
use crate::lower::{Lowered, Memory, UNASKED};
use crate::onnx;
use crate::{Error, Hardware, Precision, Result, Value, Values};

/// A request that is ready to run.
pub(super) struct Running {
    request: Mutex<InferRequest>,
    /// What the graph reads; an input that it does not read has no port.
    read: BTreeSet<String>,
    /// The inputs that take unsigned bytes, which values hold as integers.
    bytes: BTreeSet<String>,
    outputs: Vec<String>,
    placement: Placement,
    /// The request may point into these, so they are dropped after it.
    _weights: (Vec<Mmap>, Memory),
}

impl Running {
    pub(super) fn new(
        core: &mut Core,
        device: DeviceType<'static>,
        lowered: &Lowered,
        options: &Options,
    ) -> Result<Self> {
        let refused = |e| failed("refused the graph", &e);
        for (key, value) in settings(device.as_ref(), options) {
            let what = format!("does not take {} = {value} on {}", key.as_ref(), device.as_ref());
            core.set_property(&device, &key, &value).map_err(|e| failed(&what, &e))?;
        }
        let reading::Read { model, weights } = reading::read(core, lowered)?;
        let mut compiled = core.compile_model(&model, device).map_err(refused)?;
        check_precision(&compiled, options.precision)?;
        let request = compiled.create_infer_request().map_err(refused)?;
        let nodes = raw::nodes(&request).map_err(|e| failed("does not tell its nodes", &e))?;
        let placement = placement(&property(&compiled, "EXECUTION_DEVICES")?, nodes);
        let outputs = lowered.model.graph.iter().flat_map(|graph| &graph.output);
        let outputs = outputs.map(|output| output.name.clone());
        let outputs = outputs.filter(|name| !name.starts_with(UNASKED)).collect();
        let inputs = lowered.model.graph.iter().flat_map(|graph| &graph.input);
        let bytes = inputs.filter(|input| {
            let tensor = input.kind.as_ref().and_then(|kind| kind.tensor.as_ref());
            tensor.is_some_and(|tensor| tensor.elem_type == onnx::data_type(Dtype::U8))
        });
        let bytes = bytes.map(|input| input.name.clone()).collect();
        let nodes = lowered.model.graph.iter().flat_map(|graph| &graph.node);
        let read = nodes.flat_map(|node| node.input.clone()).collect();
        Ok(Self {
            request: Mutex::new(request),
            read,
            bytes,
            outputs,
            placement,
            _weights: (weights, lowered.memory.clone()),
        })
    }
}

/// All that a graph is compiled with; the core keeps them, so every compilation sets each one.
fn settings(device: &str, options: &Options) -> Vec<(RwPropertyKey, String)> {
    let mode = if options.precision == Precision::F32 { "ACCURACY" } else { "PERFORMANCE" };
    let mut settings = vec![
        (RwPropertyKey::HintPerformanceMode, "LATENCY".to_owned()),
        (RwPropertyKey::HintExecutionMode, mode.to_owned()),
        (RwPropertyKey::HintInferencePrecision, options.precision.name().to_owned()),
    ];
    if device == super::CPU {
        // 0: as many as the machine has cores.
        settings.push((RwPropertyKey::InferenceNumThreads, options.threads.unwrap_or(0).to_string()));
        // Pinned, the threads of several processes would share the first cores.
        settings.push((RwPropertyKey::HintEnableCpuPinning, "NO".to_owned()));
    }
    settings
}

/// A device that cannot compute in a precision takes another one without a word.
fn check_precision(compiled: &CompiledModel, wanted: Precision) -> Result<()> {
    let used = property(compiled, RwPropertyKey::HintInferencePrecision.as_ref())?;
    if used == wanted.name() {
        return Ok(());
    }
    Err(other_precision(&used, wanted))
}

fn other_precision(used: &str, wanted: Precision) -> Error {
    let problem = format!("its device would compute in {used} where {wanted} is asked for");
    let single = Precision::F32.name();
    let known = if used == single { single.to_owned() } else { format!("{used} or {single}") };
    Error::unavailable(Hardware::Openvino, problem, format!("ask for {known}, or for another device"))
}

fn property(compiled: &CompiledModel, key: &str) -> Result<String> {
    let value = compiled.get_property(&PropertyKey::Other(key.to_owned().into()));
    value.map(std::borrow::Cow::into_owned).map_err(|e| failed(&format!("does not tell its {key}"), &e))
}

/// The operations that are executed: what was fused into another node is no node, and the edges of the graph
/// are no operations.
fn placement(device: &str, nodes: Vec<raw::Node>) -> Placement {
    let mut operators = BTreeMap::new();
    let edges = ["Parameter", "Result", "Constant"];
    for node in nodes {
        if !node.left_out && node.implementation != "undef" && !edges.contains(&node.operation.as_str()) {
            *operators.entry(node.operation).or_default() += 1;
        }
    }
    Placement { devices: BTreeMap::from([(format!("OpenVINO:{}", device.trim()), operators)]) }
}

impl Compiled for Running {
    fn run(&self, inputs: &Values) -> Result<Values> {
        let broken = |e| failed("failed to run", &e);
        // A panic in another thread cannot leave a request half-changed: it is changed by the engine alone.
        let mut request = self.request.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, value) in inputs.iter().filter(|(name, _)| self.read.contains(*name)) {
            let tensor = written(value, self.bytes.contains(name)).map_err(broken)?;
            request.set_tensor(name, &tensor).map_err(broken)?;
        }
        request.infer().map_err(broken)?;
        let read = |name: &String| {
            let tensor = request.get_tensor(name).map_err(broken)?;
            Ok((name.clone(), value(name, &tensor)?))
        };
        self.outputs.iter().map(read).collect()
    }

    fn placement(&self) -> &Placement {
        &self.placement
    }
}

fn written(value: &Value, bytes: bool) -> Result<Tensor, InferenceError> {
    let lengths: Vec<i64> = value.shape().iter().map(|&length| length as i64).collect();
    let shape = Shape::new(&lengths)?;
    let tensor = match value {
        Value::F32(a) => filled(ElementType::F32, &shape, a.iter().copied())?,
        Value::I64(a) if bytes => filled(ElementType::U8, &shape, a.iter().map(|&n| n as u8))?,
        Value::I64(a) => filled(ElementType::I64, &shape, a.iter().copied())?,
        Value::Bool(a) => filled(ElementType::Boolean, &shape, a.iter().map(|&truth| u8::from(truth)))?,
    };
    Ok(tensor)
}

fn filled<T>(
    element: ElementType,
    shape: &Shape,
    values: impl Iterator<Item = T>,
) -> Result<Tensor, InferenceError> {
    let mut tensor = Tensor::new(element, shape)?;
    for (place, value) in tensor.get_data_mut::<T>()?.iter_mut().zip(values) {
        *place = value;
    }
    Ok(tensor)
}

fn value(name: &str, tensor: &Tensor) -> Result<Value> {
    let broken = |e| failed(&format!("gave no {name}"), &e);
    let shape: Vec<usize> = match tensor.get_shape() {
        Ok(shape) => shape.get_dimensions().iter().map(|&length| length as usize).collect(),
        // The C interface takes a shape without axes for a mistake.
        Err(e) if e.kind == InferenceErrorKind::InvalidCParam && tensor.get_size() == Ok(1) => vec![],
        Err(e) => return Err(broken(e)),
    };
    let wrong = |what: String| Error::engine(Hardware::Openvino, format!("OpenVINO gave {name} {what}"));
    let misfit = |e: ndarray::ShapeError| wrong(format!("of shape {shape:?}: {e}"));
    Ok(match tensor.get_element_type().map_err(broken)? {
        ElementType::F32 => {
            let data = tensor.get_data::<f32>().map_err(broken)?.to_vec();
            Value::F32(ArrayD::from_shape_vec(IxDyn(&shape), data).map_err(misfit)?)
        }
        ElementType::I64 => {
            let data = tensor.get_data::<i64>().map_err(broken)?.to_vec();
            Value::I64(ArrayD::from_shape_vec(IxDyn(&shape), data).map_err(misfit)?)
        }
        ElementType::U8 => {
            let data = tensor.get_raw_data().map_err(broken)?.iter().map(|&byte| i64::from(byte)).collect();
            Value::I64(ArrayD::from_shape_vec(IxDyn(&shape), data).map_err(misfit)?)
        }
        ElementType::Boolean => {
            let data = tensor.get_raw_data().map_err(broken)?.iter().map(|&byte| byte != 0).collect();
            Value::Bool(ArrayD::from_shape_vec(IxDyn(&shape), data).map_err(misfit)?)
        }
        other => return Err(wrong(format!("as {other:?}"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(operation: &str, implementation: &str, left_out: bool) -> raw::Node {
        raw::Node { operation: operation.to_owned(), implementation: implementation.to_owned(), left_out }
    }

    #[test]
    fn placement_counts_what_is_executed() {
        let nodes = vec![
            node("Parameter", "unknown_i64", false),
            node("FullyConnected", "undef_f32", false),
            node("FullyConnected", "jit_gemm_f32", false),
            node("Gelu", "undef", false),
            node("Reshape", "unknown_f32", true),
            node("Result", "unknown_f32", false),
        ];
        let placement = placement("CPU", nodes);
        assert_eq!(placement.counts(), BTreeMap::from([("OpenVINO:CPU".to_owned(), 2)]));
        assert_eq!(placement.devices["OpenVINO:CPU"]["FullyConnected"], 2);
    }

    #[test]
    fn another_precision_names_those_at_hand_once() {
        let shown = |used, wanted| other_precision(used, wanted).to_string();
        let text = shown("f32", Precision::F16);
        assert!(text.contains("in f32 where f16 is asked for") && text.contains("ask for f32, or"), "{text}");
        let text = shown("f16", Precision::Bf16);
        assert!(text.contains("ask for f16 or f32, or for another device"), "{text}");
    }

    #[test]
    fn threads_and_pinning_are_the_cpus() {
        let options = Options { threads: Some(2), ..Options::default() };
        let keys = |device| settings(device, &options).into_iter().map(|(key, _)| key).collect::<Vec<_>>();
        assert!(keys("CPU").contains(&RwPropertyKey::InferenceNumThreads));
        assert!(!keys("GPU.0").contains(&RwPropertyKey::InferenceNumThreads));
        assert!(
            settings("CPU", &options).contains(&(RwPropertyKey::HintInferencePrecision, "f32".to_owned()))
        );
    }
}
