//! CoreML: inside ONNX Runtime's builds for macOS, without devices to choose from.

use ort::session::builder::SessionBuilder;

use crate::Precision;

/// The provider's name.
pub(super) const NAME: &str = "CoreMLExecutionProvider";

/// Whether the library holds it.
#[cfg(target_os = "macos")]
pub(super) fn is_available() -> bool {
    use ort::ep::{CoreML, ExecutionProvider};
    CoreML::is_available().unwrap_or(false)
}

/// Puts a session there: an ML program of fixed shapes, on the GPU in single precision, which the neural engine has not.
#[cfg(target_os = "macos")]
pub(super) fn place(builder: SessionBuilder, precision: Precision) -> ort::Result<SessionBuilder> {
    use ort::ep::CoreML;
    use ort::ep::coreml::{ComputeUnits, ModelFormat};
    let half = precision != Precision::F32;
    let units = if half { ComputeUnits::All } else { ComputeUnits::CPUAndGPU };
    let provider = CoreML::default()
        .with_model_format(ModelFormat::MLProgram)
        .with_static_input_shapes(true)
        .with_compute_units(units)
        .with_low_precision_accumulation_on_gpu(half);
    Ok(builder.with_execution_providers([provider.build().error_on_failure()])?)
}

#[cfg(not(target_os = "macos"))]
pub(super) fn is_available() -> bool {
    false
}

#[cfg(not(target_os = "macos"))]
pub(super) fn place(_: SessionBuilder, _: Precision) -> ort::Result<SessionBuilder> {
    Err(ort::Error::new("CoreML is on Apple's systems only"))
}
