//! A model that is open in a tab: opened with proof of where its nodes went, run with proof that they ran there.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value as Json, json};

use super::placement::{self, Report};
use super::server::{BINARY, Resource};
use super::shared::{Browser, Tab, lock};
use super::tensors;
use crate::engine::external_data::{self, ExternalFile, Prepared, Widening};
use crate::engine::{Compiled, Options, Placement};
use crate::graph::Dtype;
use crate::lower::Lowered;
use crate::{Error, Hardware, Result, Values, onnx};

/// A model in a tab.
pub(super) struct Running {
    browser: Arc<Browser>,
    tab: Arc<Tab>,
    running: Mutex<()>,
    hardware: Hardware,
    number: u64,
    types: BTreeMap<String, Dtype>,
    placement: Placement,
}

impl Running {
    pub(super) fn open(hardware: Hardware, lowered: &Lowered, options: &Options) -> Result<Self> {
        let browser = Browser::of(hardware)?;
        let number = browser.number();
        let opened = Self::open_in(&browser, number, hardware, lowered, options);
        // The tab has read all of it by now, or never will.
        browser.server.unmount(&format!("{number}/"));
        let (tab, placement) = opened?;
        let types = input_types(&lowered.model);
        Ok(Self { browser, tab, running: Mutex::default(), hardware, number, types, placement })
    }

    fn open_in(
        browser: &Browser,
        number: u64,
        hardware: Hardware,
        lowered: &Lowered,
        options: &Options,
    ) -> Result<(Arc<Tab>, Placement)> {
        let Prepared { model, files, memory } = external_data::prepare(lowered, Widening::Here)?;
        let on_disk = |(location, file): (_, ExternalFile)| {
            (location, Resource::File { path: file.path, kind: BINARY })
        };
        let in_memory = |(location, bytes): (_, Cow<'_, [u8]>)| {
            (location, Resource::Bytes { bytes: bytes.into_owned().into(), kind: BINARY })
        };
        let data = files.into_iter().map(on_disk).chain(memory.into_iter().map(in_memory));
        let bytes: Arc<[u8]> = prost::Message::encode_to_vec(&model).into();
        let mut size = bytes.len() as u64;
        let model =
            browser.server.mount(&format!("{number}/model.onnx"), Resource::Bytes { bytes, kind: BINARY });
        let mut external = vec![];
        for (index, (location, resource)) in data.enumerate() {
            size += resource.size();
            let url = browser.server.mount(&format!("{number}/data/{index}"), resource);
            external.push(json!({ "path": location, "data": url }));
        }
        let session = match options.cpu_fallback.is_empty() {
            true => json!({ "session": { "disable_cpu_ep_fallback": "1" } }),
            false => json!({}),
        };
        let argument = json!({
            "number": number,
            "provider": provider(hardware),
            "model": model,
            "externalData": external,
            "extra": session,
        });
        let tab = browser.tab(size).map_err(|trouble| Error::engine(hardware, trouble.to_string()))?;
        let answer = tab.call("open the model", "open", &argument);
        let checked = answer
            .map_err(|trouble| trouble.to_string())
            .and_then(|answer| check(hardware, &answer, options));
        match checked {
            Ok(placement) => Ok((tab, placement)),
            Err(problem) => {
                browser.retire(&tab);
                Err(Error::engine(hardware, problem))
            }
        }
    }

    fn run_in_tab(&self, inputs: &Values) -> Result<Values> {
        let (described, bytes) = tensors::pack(inputs, &self.types)?;
        let (server, number) = (&self.browser.server, self.number);
        let inbox = Arc::default();
        let from = Resource::Bytes { bytes: bytes.into(), kind: BINARY };
        let from = server.mount(&format!("{number}/inputs"), from);
        let to = server.mount(&format!("{number}/outputs"), Resource::Inbox(Arc::clone(&inbox)));
        let argument = json!({ "number": number, "inputs": described, "from": from, "to": to });
        let answer = self.tab.call("run the model", "run", &argument);
        server.unmount(&format!("{number}/"));
        let failed = |problem: String| Error::engine(self.hardware, problem);
        let answer = answer.map_err(|trouble| failed(trouble.to_string()))?;
        if let Some(error) = answer["error"].as_str() {
            return Err(failed(format!("ONNX Runtime Web failed to run: {error}")));
        }
        let (what, count) = reached(self.hardware, &answer["counts"]);
        if count == 0 {
            return Err(failed(format!("ran without a single {what}: it was not computed by the backend")));
        }
        let body = lock(&inbox).take().unwrap_or_default();
        tensors::unpack(&answer["outputs"], &body).map_err(failed)
    }
}

impl Compiled for Running {
    fn run(&self, inputs: &Values) -> Result<Values> {
        // Inputs and outputs have one place each.
        let _alone = lock(&self.running);
        self.run_in_tab(inputs)
    }

    fn placement(&self) -> &Placement {
        &self.placement
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let released = self.tab.call("release a model", "release", &json!(self.number));
        if released.is_err() {
            self.browser.retire(&self.tab);
        }
    }
}

/// The provider as ONNX Runtime Web takes it; `$WEFT_WEBNN_DEVICE` is `cpu`, `gpu` or `npu`.
fn provider(hardware: Hardware) -> Json {
    if hardware == Hardware::Webgpu {
        return json!("webgpu");
    }
    let device = std::env::var("WEFT_WEBNN_DEVICE").ok().filter(|device| !device.is_empty());
    json!({ "name": "webnn", "deviceType": device.as_deref().unwrap_or("cpu") })
}

/// Where the nodes went, or what is wrong with it.
fn check(hardware: Hardware, answer: &Json, options: &Options) -> std::result::Result<Placement, String> {
    let log: Vec<&str> = answer["log"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    let report = Report::read(&log, answer["device"].as_str().unwrap_or_default());
    if let Some(error) = answer["error"].as_str() {
        let refused = match report.refused.len() {
            0 => String::new(),
            _ => format!("; the backend has no form for {}", shortened(&report.refused)),
        };
        return Err(format!("ONNX Runtime Web refused the graph: {error}{refused}"));
    }
    let unsupported_ops = report.placement.devices.get(placement::CPU).into_iter().flatten();
    let unsupported_ops: Vec<_> =
        unsupported_ops.filter(|(operator, _)| !options.cpu_fallback.contains(operator)).collect();
    if !unsupported_ops.is_empty() {
        let unsupported_ops: Vec<_> =
            unsupported_ops.into_iter().map(|(operator, count)| format!("{operator} ({count})")).collect();
        return Err(format!("would leave {} to the CPU, which is not allowed", shortened(&unsupported_ops)));
    }
    if report.placement.devices.is_empty() {
        return Err("ONNX Runtime Web did not say where the nodes went".to_owned());
    }
    if hardware == Hardware::Webnn && answer["counts"]["build"].as_u64().unwrap_or(0) == 0 {
        return Err(
            "the model was opened without a single MLGraphBuilder.build: WebNN does not have it".to_owned()
        );
    }
    Ok(report.placement)
}

/// What the page counted on its way to the device.
fn reached(hardware: Hardware, counts: &Json) -> (&'static str, u64) {
    let (what, key) = match hardware {
        Hardware::Webgpu => ("GPUComputePassEncoder.dispatchWorkgroups", "workgroups"),
        _ => ("MLContext.dispatch", "dispatch"),
    };
    (what, counts[key].as_u64().unwrap_or(0))
}

fn shortened(all: &[String]) -> String {
    let more = all.len().saturating_sub(8);
    let shown = all[..all.len() - more].join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
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

#[cfg(test)]
mod tests {
    use super::*;

    const ON_WEBNN: &str = "VerifyEachNodeIsAssignedToAnEp]  All nodes placed on [WebNNExecutionProvider]. \
                            Number of nodes: 1";

    #[test]
    fn a_model_that_webnn_never_built_is_refused() {
        let options = Options::default();
        let built = json!({ "log": [ON_WEBNN], "counts": {"build": 1}, "device": "cpu" });
        let placement = check(Hardware::Webnn, &built, &options).unwrap();
        assert!(placement.devices.contains_key("WebNNExecutionProvider (cpu)"));
        let unbuilt = json!({ "log": [ON_WEBNN], "counts": {"build": 0} });
        let problem = check(Hardware::Webnn, &unbuilt, &options).unwrap_err();
        assert!(problem.contains("MLGraphBuilder.build"), "{problem}");
        let silent = json!({ "log": [], "counts": {"build": 1} });
        assert!(check(Hardware::Webnn, &silent, &options).is_err());
    }

    #[test]
    fn only_named_operators_may_fall_back() {
        let log = [
            "VerifyEachNodeIsAssignedToAnEp]  Node(s) placed on [CPUExecutionProvider]. Number of nodes: 1",
            "VerifyEachNodeIsAssignedToAnEp]   Equal (equal)",
            "VerifyEachNodeIsAssignedToAnEp]  Node(s) placed on [WebGpuExecutionProvider]. Number of nodes: 1",
            "VerifyEachNodeIsAssignedToAnEp]   Gather (gather)",
        ];
        let answer = json!({ "log": log, "counts": {} });
        let problem = check(Hardware::Webgpu, &answer, &Options::default()).unwrap_err();
        assert!(problem.contains("Equal (1)"), "{problem}");
        let allowed = Options { cpu_fallback: vec!["Equal".to_owned()], ..Options::default() };
        assert_eq!(
            check(Hardware::Webgpu, &answer, &allowed).unwrap().counts()["WebGpuExecutionProvider"],
            1
        );
    }

    #[test]
    fn a_refusal_names_the_operators() {
        let log = [
            "GetCapability] webgpu kernel not found in registries for Op type: Equal node name: /mask/Equal",
        ];
        let answer = json!({ "error": "fallback to CPU EP has been disabled", "log": log });
        let problem = check(Hardware::Webgpu, &answer, &Options::default()).unwrap_err();
        assert!(problem.ends_with("the backend has no form for Equal (/mask/Equal)"), "{problem}");
    }
}
