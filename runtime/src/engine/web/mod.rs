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
pub(super) struct Held(u32);

impl Held {
    fn new(number: u32) -> Self {
        Self(number)
    }

    fn number(&self) -> u32 {
        self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        host::release_tensor(self.0);
    }
}

/// Takes the last positions off a cache where it lies, which the script does not.
pub(super) fn crop(_held: &mut Held, _axis: usize, _count: usize) -> bool {
    false
}

/// The bytes of a tensor, which the script does not tell.
pub(super) fn bytes(_held: &Held) -> usize {
    0
}

/// What a tensor that the script holds has in it.
pub(super) fn value(hardware: Hardware, held: &Held) -> Result<Value> {
    let failed = |problem: String| Error::engine(hardware, format!("a tensor of the cache: {problem}"));
    let read = host::read_tensor(held.0).map_err(|error| failed(host::words(&error)))?;
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
