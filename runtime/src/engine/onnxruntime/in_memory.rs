//! Weights that a session reads where they lie in memory.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use ort::AsPointer;
use ort::memory::{Allocator, MemoryInfo};
use ort::session::builder::SessionBuilder;
use ort::value::DynValue;

use super::operators::DOMAIN;
use super::placement::check;
use crate::lower::{Lowered, Memory};
use crate::onnx::{Model, Node, Tensor};

/// Hands a session the weights that its model refers to in memory, and gives the model to make it of. They must live as long as
/// the session.
///
/// What ONNX Runtime takes as an external initializer (`AddExternalInitializers`) it copies into the graph, for its optimizers
/// to read; what it takes as an initializer to share (`AddInitializer`) it reads in place. The latter is of weights whose values no
/// optimizer looks at, and where `in_place` says so.
pub(super) fn give<'a>(
    mut builder: SessionBuilder,
    lowered: &'a Lowered,
    in_place: bool,
) -> ort::Result<(SessionBuilder, Cow<'a, Model>)> {
    let mut model = Cow::Borrowed(&lowered.model);
    let file = if in_place { any_file(&lowered.model, &lowered.memory) } else { None };
    let read_by_others = read_by_others(&lowered.model);
    for (index, weight) in lowered.model.graph.iter().flat_map(|graph| &graph.initializer).enumerate() {
        let Some(bytes) = location(weight).and_then(|location| lowered.memory.get(location)) else {
            continue;
        };
        let value = Arc::new(value(weight, bytes)?);
        match file.filter(|_| !read_by_others.contains(weight.name.as_str())) {
            Some(file) => {
                builder = builder.with_initializer(&weight.name, value)?;
                // ONNX Runtime refuses a model that names a file which is not there, and reads nothing from it.
                let graph = model.to_mut().graph.as_mut();
                let entries = graph.map(|graph| &mut graph.initializer[index].external_data);
                let place = entries.into_iter().flatten().find(|entry| entry.key == LOCATION);
                place.into_iter().for_each(|place| file.clone_into(&mut place.value));
            }
            None => builder = builder.with_external_initializer(&weight.name, value)?,
        }
    }
    Ok((builder, model))
}

const LOCATION: &str = "location";

/// Where a weight lies, if not in the model.
fn location(weight: &Tensor) -> Option<&str> {
    let location = weight.external_data.iter().find(|entry| entry.key == LOCATION);
    location.map(|location| location.value.as_str())
}

/// A file that a model's weights lie in.
fn any_file<'a>(model: &'a Model, memory: &Memory) -> Option<&'a str> {
    let weights = model.graph.iter().flat_map(|graph| &graph.initializer);
    weights.filter_map(location).find(|location| !memory.contains_key(*location))
}

/// The names of what operators read that ONNX Runtime's optimizers change, fold or fuse.
fn read_by_others(model: &Model) -> HashSet<&str> {
    let kept = |node: &&Node| {
        node.domain == DOMAIN || matches!(node.op_type.as_str(), "MatMulNBits" | "GatherBlockQuantized")
    };
    let graph = model.graph.iter();
    let nodes = graph.clone().flat_map(|graph| &graph.node).filter(|node| !kept(node));
    let outputs = graph.flat_map(|graph| &graph.output).map(|output| output.name.as_str());
    nodes.flat_map(|node| node.input.iter().map(String::as_str)).chain(outputs).collect()
}

/// A tensor over bytes, which are only read.
#[allow(unsafe_code)]
fn value(weight: &Tensor, bytes: &[u8]) -> ort::Result<DynValue> {
    let info = MemoryInfo::default();
    let mut made = ptr::null_mut();
    // ONNX numbers its element types as the C interface does.
    let element = ort::value::TensorElementType::from(match weight.data_type {
        1 => ort::sys::ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
        2 => ort::sys::ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
        7 => ort::sys::ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
        10 => ort::sys::ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16,
        16 => ort::sys::ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16,
        other => return Err(ort::Error::new(format!("weights in memory are of no type {other}"))),
    });
    // SAFETY: the shape and the place of the result are valid for the call; the bytes are as many as are said, and the model
    // that is made ready keeps them; engines do not write to initializers. The value is owned by what is returned.
    unsafe {
        check((ort::api().CreateTensorWithDataAsOrtValue)(
            info.ptr(),
            bytes.as_ptr().cast_mut().cast::<c_void>(),
            bytes.len(),
            weight.dims.as_ptr(),
            weight.dims.len(),
            element.into(),
            &raw mut made,
        ))?;
        let made = NonNull::new(made).ok_or_else(|| ort::Error::new("a weight became no tensor"))?;
        Ok(DynValue::from_ptr(made, Some(&Allocator::default())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Dtype;
    use crate::onnx::Graph;

    #[test]
    fn weights_that_no_optimizer_reads_lie_beside_a_file() {
        let node = |op: &str, inputs: [&str; 2], output: &str| Node {
            op_type: op.to_owned(),
            input: inputs.map(str::to_owned).to_vec(),
            output: vec![output.to_owned()],
            ..Node::default()
        };
        let weight = |name: &str, place: &str| Tensor::external(name, Dtype::U8, &[4], place, 0, 4);
        let graph = Graph {
            node: vec![node("MatMulNBits", ["x", "codes"], "y"), node("Cast", ["scales", ""], "z")],
            initializer: vec![weight("codes", "*/memory/0"), weight("norm", "model.gguf")],
            ..Graph::default()
        };
        let model = Model { graph: Some(graph), ..Model::default() };
        let memory = Memory::from([("*/memory/0".to_owned(), Arc::new(vec![0; 4].into()))]);
        assert_eq!(any_file(&model, &memory), Some("model.gguf"));
        let others = read_by_others(&model);
        assert!(others.contains("scales") && !others.contains("codes"));
    }
}
