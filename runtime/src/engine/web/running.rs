//! A model that the page's script holds: opened with proof of where its nodes went, run one call at a time.

use std::collections::BTreeMap;

use js_sys::Uint8Array;
use serde_json::{Value as Json, json};

use super::placement::{self, Report};
use super::{Held, tensors};
use crate::engine::external_data::{self, Prepared, Widening};
use crate::engine::{Compiled, KvState, Options, Placement, kv_state};
use crate::graph::Dtype;
use crate::lower::Lowered;
use crate::{Error, Hardware, Result, Values, host, onnx};

/// A model of the page's script.
pub(super) struct Running {
    hardware: Hardware,
    number: u32,
    inputs: Vec<String>,
    types: BTreeMap<String, Dtype>,
    placement: Placement,
}

impl Running {
    pub(super) fn open(hardware: Hardware, lowered: &Lowered, options: &Options) -> Result<Self> {
        let Prepared { model, files, memory } = external_data::prepare(lowered, Widening::Reader)?;
        let types = input_types(&model);
        let named = |values: &[onnx::ValueInfo]| -> Vec<String> {
            values.iter().map(|value| value.name.clone()).collect()
        };
        let inputs = model.graph.as_ref().map(|graph| named(&graph.input)).unwrap_or_default();
        let mut cached = model.graph.as_ref().map(|graph| named(&graph.output)).unwrap_or_default();
        cached.retain(|name| kv_state::next_input(name).is_some());
        let files: Vec<Json> = files
            .into_iter()
            .map(|(location, file)| {
                let url = file.path.to_string_lossy();
                json!({ "path": location, "url": url, "ranges": file.ranges, "wide": file.widened })
            })
            .collect();
        let places: Vec<Json> = memory
            .iter()
            .map(|(location, bytes)| json!({ "path": location, "at": bytes.as_ptr() as usize, "length": bytes.len() }))
            .collect();
        let argument = json!({
            "hardware": hardware.name(),
            "files": files,
            "memory": places,
            "exclusive": options.cpu_fallback.is_empty(),
            "threads": options.threads,
            "cached": cached,
        });
        let bytes = Uint8Array::from(&prost::Message::encode_to_vec(&model)[..]);
        let failed = |problem: String| Error::engine(hardware, problem);
        let answer = host::open_model(&argument.to_string(), bytes);
        // It was read until here.
        drop(memory);
        let answer = answer.map_err(|error| failed(host::words(&error)))?;
        let answer: Json = answer
            .as_string()
            .and_then(|text| serde_json::from_slice(text.as_bytes()).ok())
            .unwrap_or_default();
        let placement = placed(hardware, &answer, options).map_err(failed)?;
        let number = answer["number"].as_u64().and_then(|number| u32::try_from(number).ok());
        let number =
            number.ok_or_else(|| failed("the page's script gave no number to the model".to_owned()))?;
        Ok(Self { hardware, number, inputs, types, placement })
    }

    /// Runs it on values and on tensors that the script holds; where `keep` says so, it holds on to those of the cache.
    fn run_on(&self, inputs: &Values, held: &BTreeMap<String, Held>, keep: bool) -> Result<Ran> {
        let failed = |problem: String| Error::engine(self.hardware, problem);
        let (mut described, bytes) = tensors::pack(inputs, &self.types)?;
        let held = held.iter().filter(|(name, _)| self.inputs.contains(name));
        described.extend(held.map(|(name, held)| json!({ "name": name, "held": held.number })));
        let described = json!({ "inputs": described, "keep": keep }).to_string();
        let outputs = host::run_model(self.number, &described, Uint8Array::from(&bytes[..]));
        let outputs = outputs
            .map_err(|error| failed(format!("ONNX Runtime Web failed to run: {}", host::words(&error))))?;
        let described = outputs.get(0).as_string().unwrap_or_default();
        let described: Vec<Json> = serde_json::from_slice(described.as_bytes()).unwrap_or_default();
        let (kept, described): (Vec<Json>, Vec<Json>) =
            described.into_iter().partition(|output| output["held"].is_u64());
        let kept = kept.iter().filter_map(|output| {
            let past = kv_state::next_input(output["name"].as_str()?)?;
            Some((past, Held::of(output)?))
        });
        let bytes = Uint8Array::from(outputs.get(1)).to_vec();
        let values = tensors::unpack(&Json::Array(described), &bytes).map_err(failed)?;
        Ok(Ran { values, kept: kept.collect() })
    }
}

/// What a run gives: values, and tensors that the script holds for inputs of the next run.
struct Ran {
    values: Values,
    kept: BTreeMap<String, Held>,
}

impl Compiled for Running {
    fn run(&self, inputs: &Values) -> Result<Values> {
        Ok(self.run_on(inputs, &BTreeMap::new(), false)?.values)
    }

    fn run_with_state(&self, mut inputs: Values, state: &mut KvState) -> Result<Values> {
        let here = state.host.iter().filter(|(name, _)| self.inputs.contains(name));
        inputs.extend(here.map(|(name, value)| (name.clone(), value.clone())));
        let Ran { values, kept } = self.run_on(&inputs, &state.values, true)?;
        // What the graph gives no new tensors for, such as keys and values of the encoder, stays.
        state.host.retain(|name, _| !kept.contains_key(name));
        state.values.extend(kept);
        Ok(values)
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

/// The element types of the inputs that are integers of fewer bits than 64: values have none of their own for those.
fn input_types(model: &onnx::Model) -> BTreeMap<String, Dtype> {
    let inputs = model.graph.iter().flat_map(|graph| &graph.input);
    let narrow = inputs.filter_map(|input| {
        let tensor = input.kind.as_ref().and_then(|kind| kind.tensor.as_ref())?;
        let types = [Dtype::I32, Dtype::U8];
        let found = types.into_iter().find(|dtype| tensor.elem_type == onnx::data_type(*dtype))?;
        Some((input.name.clone(), found))
    });
    narrow.collect()
}
