//! What a page's script does for the runtime, as `globalThis.weftHost`: it fetches files. Each function gives a promise, for
//! which the calls that lead here wait on a stack of their own (JavaScript Promise Integration).
#![allow(
    unsafe_code,
    deprecated,
    reason = "what the macro makes of the imports, which it calls experimental"
)]

use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
extern "C" {
    /// How many bytes a file has; a negative number where there is none.
    #[wasm_bindgen(js_namespace = weftHost, suspending, catch)]
    pub(crate) fn size(url: &str) -> Result<f64, JsValue>;

    /// So many bytes of a file.
    #[wasm_bindgen(js_namespace = weftHost, suspending, catch)]
    pub(crate) fn read(url: &str, offset: f64, length: f64) -> Result<Vec<u8>, JsValue>;
}

/// The message of an error of the script.
pub(crate) fn words(error: &JsValue) -> String {
    let message = js_sys::Reflect::get(error, &"message".into()).ok().and_then(|text| text.as_string());
    message.or_else(|| error.as_string()).unwrap_or_else(|| format!("{error:?}"))
}
