//! ONNX Runtime Web in the page that this code runs in; one engine for all backends. The page's script holds the models
//! ([`crate::host`]): they are told apart by number here.

#[path = "../browser/placement.rs"]
mod placement;
mod running;
#[path = "../browser/tensors.rs"]
mod tensors;

use js_sys::Uint8Array;
use serde_json::Value as Json;

use super::{Compiled, Options};
use crate::lower::Lowered;
use crate::{Error, Hardware, Result, Value, host};

/// A tensor that the page's script holds, on the graphics processor where that ran the model; gone with this.
pub(super) struct Held {
    number: u32,
    bytes: usize,
}

impl Held {
    /// What the script says of an output that it holds: its number and its bytes.
    fn of(described: &Json) -> Option<Self> {
        let number = u32::try_from(described["held"].as_u64()?).ok()?;
        Some(Self { number, bytes: described["bytes"].as_u64().unwrap_or_default() as usize })
    }

    fn resize(&mut self, axis: usize, dropped: usize, length: Option<usize>) -> bool {
        let length = length.map(|length| length as f64);
        let resized = host::resize_tensor(self.number, axis as u32, dropped as f64, length);
        if let Some(bytes) = resized {
            self.bytes = bytes as usize;
        }
        resized.is_some()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        host::release_tensor(self.number);
    }
}

/// Takes the last positions off a cache where it lies; whether it could.
pub(super) fn crop(held: &mut Held, axis: usize, count: usize) -> bool {
    held.resize(axis, count, None)
}

/// Truncates a cache to its last positions where it lies, or zero-pads it before them; whether it could.
pub(super) fn resize(held: &mut Held, axis: usize, length: usize) -> bool {
    held.resize(axis, 0, Some(length))
}

/// The bytes of a tensor's elements.
pub(super) fn bytes(held: &Held) -> usize {
    held.bytes
}

/// What a tensor that the script holds has in it.
pub(super) fn value(hardware: Hardware, held: &Held) -> Result<Value> {
    let failed = |problem: String| Error::engine(hardware, format!("a tensor of the cache: {problem}"));
    let read = host::read_tensor(held.number).map_err(|error| failed(host::words(&error)))?;
    let described: Json =
        serde_json::from_slice(read.get(0).as_string().unwrap_or_default().as_bytes()).unwrap_or_default();
    let bytes = Uint8Array::from(read.get(1)).to_vec();
    let value = tensors::unpack(&described, &bytes).map_err(failed)?.into_values().next();
    value.ok_or_else(|| failed("is not there".to_owned()))
}

/// Opens a model.
pub(super) fn compile(hardware: Hardware, lowered: &Lowered, options: &Options) -> Result<Box<dyn Compiled>> {
    Ok(Box::new(running::Running::open(hardware, lowered, options)?))
}

/// `ONNX Runtime Web 1.30.0 (WebGPU)`, or what this browser lacks.
pub(super) fn version(hardware: Hardware) -> Result<String> {
    let found = host::version(hardware.name());
    found.map(|found| found.as_string().unwrap_or_default()).map_err(|missing| {
        let help = "choose another `device`: `wasm` runs in every browser";
        Error::unavailable(hardware, host::words(&missing), help)
    })
}

/// A page is not told what it runs on.
pub(super) fn devices(_hardware: Hardware) -> Result<Vec<String>> {
    Ok(vec![])
}
