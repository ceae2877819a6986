//! What a page's script does for the runtime, as `globalThis.weftHost`: it fetches files, and opens and runs models with ONNX
//! Runtime Web. Most functions give a promise, for which the calls that lead here wait on a stack of their own (JavaScript Promise
//! Integration).
#![allow(
    unsafe_code,
    deprecated,
    reason = "what the macro makes of the imports, which it calls experimental"
)]

use js_sys::{Array, Uint8Array};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
extern "C" {
    /// How many bytes a file has; a negative number where there is none.
    #[wasm_bindgen(js_namespace = weftHost, suspending, catch)]
    pub(crate) fn size(url: &str) -> Result<f64, JsValue>;

    /// So many bytes of a file.
    #[wasm_bindgen(js_namespace = weftHost, suspending, catch)]
    pub(crate) fn read(url: &str, offset: f64, length: f64) -> Result<Uint8Array, JsValue>;

    /// Says which ranges of a file are used, in whatever pieces they are read, as JSON: `[[offset, length], …]`.
    #[wasm_bindgen(js_namespace = weftHost)]
    pub(crate) fn plan(url: &str, ranges: &str);

    /// Says which ranges of a file are read next, as JSON: `[[offset, length], …]`.
    #[wasm_bindgen(js_namespace = weftHost)]
    pub(crate) fn expect(url: &str, ranges: &str);

    /// What runs a backend here, in words: `ONNX Runtime Web 1.30.0 (WebGPU)`; an error that says what is missing.
    #[wasm_bindgen(js_namespace = weftHost, suspending, catch)]
    pub(crate) fn version(hardware: &str) -> Result<JsValue, JsValue>;

    /// Opens a model; `argument` and the answer are JSON. It says where the files that are not fetched lie in the memory of this
    /// WebAssembly, which reads them until it answers.
    #[wasm_bindgen(js_namespace = weftHost, js_name = open, suspending, catch)]
    pub(crate) fn open_model(argument: &str, model: Uint8Array) -> Result<JsValue, JsValue>;

    /// Runs a model on tensors that `described` says the places of in `bytes`, or the numbers of where the script holds them;
    /// gives the same of its outputs.
    #[wasm_bindgen(js_namespace = weftHost, js_name = run, suspending, catch)]
    pub(crate) fn run_model(number: u32, described: &str, bytes: Uint8Array) -> Result<Array, JsValue>;

    /// A tensor that the script holds: its description, as those of outputs, and its bytes.
    #[wasm_bindgen(js_namespace = weftHost, js_name = readTensor, suspending, catch)]
    pub(crate) fn read_tensor(number: u32) -> Result<Array, JsValue>;

    /// Takes positions along an axis off the end of a tensor that the script holds, and of the rest keeps the last ones, or has zeros
    /// before them: `length` of them, or all. Gives its bytes then, and nothing where it cannot where the tensor lies.
    #[wasm_bindgen(js_namespace = weftHost, js_name = resizeTensor)]
    pub(crate) fn resize_tensor(number: u32, axis: u32, dropped: f64, length: Option<f64>) -> Option<f64>;

    /// Drops a tensor that the script holds.
    #[wasm_bindgen(js_namespace = weftHost, js_name = releaseTensor)]
    pub(crate) fn release_tensor(number: u32);

    /// Drops a model when its turn comes.
    #[wasm_bindgen(js_namespace = weftHost, js_name = release)]
    pub(crate) fn release_model(number: u32);
}

/// The message of an error of the script.
pub(crate) fn words(error: &JsValue) -> String {
    let message = js_sys::Reflect::get(error, &"message".into()).ok().and_then(|text| text.as_string());
    message.or_else(|| error.as_string()).unwrap_or_else(|| format!("{error:?}"))
}
