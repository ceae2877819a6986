//! What the worker of a page calls: loads a checkpoint for a task, and answers calls with inputs, parameters and answers as JSON.
//! Each call waits for the page's script on a stack of its own (JavaScript Promise Integration), so that it is a promise there.
//!
//! On other platforms there is nothing here.
#![cfg(target_family = "wasm")]
#![allow(deprecated, reason = "the macro calls such exports experimental")]

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

use js_sys::Error as JsError;
use serde_json::{Value as Json, json};
use wasm_bindgen::prelude::wasm_bindgen;
use weft::tasks::{JsonPipeline, OfferedTasks, Task, json_pipeline_among};
use weft::{Error, Hardware, ModelRegistry, Precision};

/// The architectures of this package.
static REGISTRY: ModelRegistry = ModelRegistry {
    architectures: &[
        #[cfg(feature = "audio")]
        &weft_audio::ARCHITECTURES,
        #[cfg(feature = "encoder-decoders")]
        &weft_encoder_decoders::ARCHITECTURES,
        #[cfg(feature = "mixture-of-experts")]
        &weft_mixture_of_experts::ARCHITECTURES,
        #[cfg(feature = "multimodal")]
        &weft_multimodal::ARCHITECTURES,
        #[cfg(feature = "speech-text")]
        &weft_speech_text::ARCHITECTURES,
        #[cfg(feature = "state-space")]
        &weft_state_space::ARCHITECTURES,
        #[cfg(feature = "text-decoders")]
        &weft_text_decoders::ARCHITECTURES,
        #[cfg(feature = "text-encoders")]
        &weft_text_encoders::ARCHITECTURES,
        #[cfg(feature = "time-series")]
        &weft_time_series::ARCHITECTURES,
        #[cfg(feature = "video")]
        &weft_video::ARCHITECTURES,
        #[cfg(feature = "vision")]
        &weft_vision::ARCHITECTURES,
        #[cfg(feature = "vision-language")]
        &weft_vision_language::ARCHITECTURES,
    ],
    known: &[],
};

/// The tasks of this package.
struct Offered;

impl OfferedTasks for Offered {
    const TASKS: &'static [Task] = include!(concat!(env!("OUT_DIR"), "/tasks.rs"));
}

thread_local! {
    /// The worker's pipeline, with which it ends.
    static LOADED: RefCell<Option<Rc<dyn JsonPipeline>>> = const { RefCell::new(None) };
}

#[wasm_bindgen]
extern "C" {
    /// Tells the page of a piece of text; whether to go on.
    #[wasm_bindgen(js_namespace = weftHost)]
    fn text(piece: &str) -> bool;

    /// Says why the WebAssembly is about to end.
    #[wasm_bindgen(js_namespace = weftHost)]
    fn panicked(message: &str);
}

/// Loads a checkpoint, whose folder's URL is given, for a task, in the precisions of its weights, of
/// modules' by their names, and of cached keys and values (`{weights, modules, kv_cache}`): what it runs on and why. Both are JSON.
///
/// # Errors
/// With the words of [`weft::Error`].
#[wasm_bindgen(jspi)]
pub fn load(
    task: String,
    checkpoint: String,
    hardware: String,
    precisions: String,
) -> Result<String, JsError> {
    std::panic::set_hook(Box::new(|panic| panicked(&panic.to_string())));
    let task: Task = task.parse().map_err(thrown)?;
    let hardware: Hardware = hardware.parse().map_err(thrown)?;
    let mut loader = REGISTRY.open(&checkpoint).map_err(thrown)?.hardware(hardware);
    let precisions = read(&precisions)?;
    if let Some(precision) = named_precision(&precisions["weights"])? {
        loader = loader.precision(precision);
    }
    for (module, named) in precisions["modules"].as_object().into_iter().flatten() {
        if let Some(precision) = named_precision(named)? {
            loader = loader.precision_of(module, precision);
        }
    }
    if let Some(precision) = named_precision(&precisions["kv_cache"])? {
        loader = loader.kv_cache(precision);
    }
    let model = loader.load_for(task).map_err(thrown)?;
    let timings = model.timings();
    let about = json!({
        "architecture": loader.architecture().name(),
        "device": model.hardware().name(),
        "explanation": model.explanation(),
        "placement": model.placement().counts(),
        "graph_ms": timings.graph_ms,
        "lower_ms": timings.lower_ms,
        "compile_ms": timings.compile_ms,
    });
    let pipeline: Rc<dyn JsonPipeline> = json_pipeline_among::<Offered>(task, model).map_err(thrown)?.into();
    LOADED.with_borrow_mut(|loaded| *loaded = Some(pipeline));
    Ok(json!({ "about": about }).to_string())
}

/// Answers one call; where the task generates text, the page is told of each piece.
///
/// # Errors
/// With the words of [`weft::Error`].
#[wasm_bindgen(jspi)]
pub fn run(inputs: String, parameters: String, streaming: bool) -> Result<String, JsError> {
    let pipeline = LOADED.with_borrow(Clone::clone);
    let pipeline = pipeline.ok_or_else(|| JsError::new("nothing is loaded: load a pipeline first"))?;
    let (inputs, parameters) = (read(&inputs)?, read(&parameters)?);
    let mut on_text =
        |piece: &str| if text(piece) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
    let answer = match streaming {
        true => pipeline.run_streaming(&inputs, &parameters, &mut on_text),
        false => pipeline.run_json(&inputs, &parameters),
    };
    Ok(answer.map_err(thrown)?.to_string())
}

fn read(text: &str) -> Result<Json, JsError> {
    serde_json::from_slice(text.as_bytes()).map_err(|error| JsError::new(&error.to_string()))
}

/// The precision of that name, if there is a name.
fn named_precision(name: &Json) -> Result<Option<Precision>, JsError> {
    name.as_str().map(|name| name.parse().map_err(thrown)).transpose()
}

fn thrown(error: Error) -> JsError {
    JsError::new(&error.to_string())
}
