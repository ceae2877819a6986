//! A model that the page's script holds: opened with proof of where its nodes went, run one call at a time.

use std::collections::BTreeMap;

use js_sys::{Array, Uint8Array};
use serde_json::{Value as Json, json};

use super::placement::{self, Report};
use super::tensors;
use crate::engine::external_data::{self, Prepared};
use crate::engine::{Compiled, Options, Placement};
use crate::graph::Dtype;
use crate::lower::Lowered;
use crate::{Error, Hardware, Result, Values, host, onnx};

/// A model of the page's script.
pub(super) struct Running {
    hardware: Hardware,
    number: u32,
    types: BTreeMap<String, Dtype>,
    placement: Placement,
}

impl Running {
    pub(super) fn open(hardware: Hardware, lowered: &Lowered, options: &Options) -> Result<Self> {
        let Prepared { model, files, memory } = external_data::prepare(lowered)?;
        let types = input_types(&model);
        let files: Vec<Json> = files
            .into_iter()
            .map(|(location, (path, ranges))| json!({ "path": location, "url": path.to_string_lossy(), "ranges": ranges }))
            .collect();
        let argument = json!({
            "hardware": hardware.name(),
            "files": files,
            "memory": memory.keys().collect::<Vec<_>>(),
            "exclusive": options.cpu_fallback.is_empty(),
            "threads": options.threads,
        });
        let bytes = Uint8Array::from(&prost::Message::encode_to_vec(&model)[..]);
        let memory: Array = memory.values().map(|bytes| Uint8Array::from(&bytes[..])).collect();
        let failed = |problem: String| Error::engine(hardware, problem);
        let answer = host::open_model(&argument.to_string(), bytes, memory);
        let answer = answer.map_err(|error| failed(host::words(&error)))?;
        let answer: Json =
            answer.as_string().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let placement = placed(hardware, &answer, options).map_err(failed)?;
        let number = answer["number"].as_u64().and_then(|number| u32::try_from(number).ok());
        let number =
            number.ok_or_else(|| failed("the page's script gave no number to the model".to_owned()))?;
        Ok(Self { hardware, number, types, placement })
    }
}

impl Compiled for Running {
    fn run(&self, inputs: &Values) -> Result<Values> {
        let failed = |problem: String| Error::engine(self.hardware, problem);
        let (described, bytes) = tensors::pack(inputs, &self.types)?;
        let described = Json::Array(described).to_string();
        let outputs = host::run_model(self.number, &described, Uint8Array::from(&bytes[..]));
        let outputs = outputs
            .map_err(|error| failed(format!("ONNX Runtime Web failed to run: {}", host::words(&error))))?;
        let described: Json =
            outputs.get(0).as_string().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        tensors::unpack(&described, &Uint8Array::from(outputs.get(1)).to_vec()).map_err(failed)
    }

    fn placement(&self) -> &Placement {
        &self.placement
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        host::release_model(self.number);
    }
}

/// Where the nodes went, or what is wrong with it.
fn placed(hardware: Hardware, answer: &Json, options: &Options) -> std::result::Result<Placement, String> {
    let log: Vec<&str> = answer["log"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    let report = Report::read(&log, answer["device"].as_str().unwrap_or_default());
    if let Some(error) = answer["error"].as_str() {
        let refused = match report.refused.len() {
            0 => String::new(),
            _ => format!("; the backend has no form for {}", report.refused.join(", ")),
        };
        return Err(format!("ONNX Runtime Web refused the graph: {error}{refused}"));
    }
    if hardware != Hardware::Cpu {
        let on_cpu = report.placement.devices.get(placement::CPU).into_iter().flatten();
        let unsupported_ops: Vec<_> = on_cpu
            .filter(|(operator, _)| !options.cpu_fallback.contains(operator))
            .map(|(operator, count)| format!("{operator} ({count})"))
            .collect();
        if !unsupported_ops.is_empty() {
            return Err(format!(
                "would leave {} to the CPU, which is not allowed",
                unsupported_ops.join(", ")
            ));
        }
        if report.placement.devices.is_empty() {
            return Err("ONNX Runtime Web did not say where the nodes went".to_owned());
        }
    }
    Ok(report.placement)
}

/// The element types of the inputs that are 32-bit integers: values have none of their own for those.
fn input_types(model: &onnx::Model) -> BTreeMap<String, Dtype> {
    let inputs = model.graph.iter().flat_map(|graph| &graph.input);
    let narrow = inputs.filter(|input| {
        let tensor = input.kind.as_ref().and_then(|kind| kind.tensor.as_ref());
        tensor.is_some_and(|tensor| tensor.elem_type == onnx::data_type(Dtype::I32))
    });
    narrow.map(|input| (input.name.clone(), Dtype::I32)).collect()
}
