//! ONNX Runtime: one environment per process, one session per compiled graph.

mod cache_positions;
mod cached_attention;
mod causal_conv;
mod convolution;
mod coreml;
mod embedding_quantized;
mod experts;
mod flash_attention;
mod glu;
mod in_memory;
mod jobs;
mod lanes;
mod linear;
mod linear_attention;
mod linear_quantized;
mod mapped;
mod matmul;
mod operators;
mod panel;
mod placement;
mod product;
mod provider;
mod quantized;
mod selective_scan;
mod session;
mod state_blocks;
mod stored;
mod tile;
mod top_k_mask;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use ort::environment::Environment;

pub(super) use self::cache_positions::Held;
use super::{Compiled, Options, library};
use crate::lower::Lowered;
use crate::{Error, Hardware, Result, Value};

/// Makes a session.
pub(super) fn compile(hardware: Hardware, lowered: &Lowered, options: &Options) -> Result<Box<dyn Compiled>> {
    let (environment, _) = environment(hardware)?;
    Ok(Box::new(session::Running::new(environment, hardware, lowered, options)?))
}

/// What a tensor that is held has, keys and values as `[batch, kv_heads, positions, size]`.
pub(super) fn value(hardware: Hardware, held: &Held) -> Result<Value> {
    let failed = |e| Error::engine(hardware, format!("ONNX Runtime gave a tensor back: {e}"));
    match held {
        Held::Value(value) => session::read(value).map_err(failed),
        Held::Positions(cached) => Ok(Value::F32(cached.heads_first())),
    }
}

/// Takes the last positions off a cache where it lies; whether it could.
pub(super) fn crop(held: &mut Held, axis: usize, count: usize) -> bool {
    match held {
        Held::Positions(cached) if axis == 2 => {
            cached.crop(count);
            true
        }
        _ => false,
    }
}

/// Truncates a cache to its last positions where it lies, or zero-pads it before them; whether it could, which no provider can.
pub(super) fn resize(_held: &mut Held, _axis: usize, _length: usize) -> bool {
    false
}

/// The bytes of a tensor's elements.
pub(super) fn bytes(held: &Held) -> usize {
    let value = match held {
        Held::Value(value) => value,
        Held::Positions(cached) => return cached.len() * size_of::<f32>(),
    };
    match value.dtype() {
        ort::value::ValueType::Tensor { ty, shape, .. } => ty.byte_size(shape.num_elements()).unwrap_or(0),
        _ => 0,
    }
}

/// The library's version; an error where the backend's provider or device is missing.
pub(super) fn version(hardware: Hardware) -> Result<String> {
    let (environment, path) = environment(hardware)?;
    provider::Provider::of(environment, hardware)?;
    Ok(format!("ONNX Runtime {}", version_in(path).unwrap_or_else(|| path.display().to_string())))
}

/// The devices that the provider offers.
pub(super) fn devices(hardware: Hardware) -> Result<Vec<String>> {
    let (environment, _) = environment(hardware)?;
    Ok(provider::Provider::of(environment, hardware)?.described(environment))
}

/// The version that a library's path carries: `libonnxruntime.so.1.31.1`, or its package's folder.
fn version_in(path: &Path) -> Option<String> {
    let numbered =
        |text: &str| text.split('.').all(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    let names = path.iter().rev().filter_map(|name| name.to_str());
    let versions = names.filter_map(|name| {
        let file = name.split_once(".so.").map(|(_, version)| version);
        file.or_else(|| name.rsplit_once('-').map(|(_, version)| version))
    });
    versions.filter(|version| numbered(version)).map(str::to_owned).next()
}

/// The process's environment, made once, and the library it came from.
///
/// A process holds one ONNX Runtime. Builds for a GPU run everything that the plain one does, so the backend
/// that is asked for first decides.
fn environment(hardware: Hardware) -> Result<&'static (Environment, PathBuf)> {
    static ENVIRONMENT: OnceLock<(Environment, PathBuf)> = OnceLock::new();
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(made) = ENVIRONMENT.get() {
        return Ok(made);
    }
    // A library that is missing or does not load is not remembered: another backend's may do.
    let path = library::onnxruntime(hardware)?;
    let failed = |reason: String| {
        let help = match hardware {
            Hardware::Rocm => {
                format!(
                    "set ORT_DYLIB_PATH to a build of ONNX Runtime with MIGraphX that is new enough, or once there is a \
                     newer package {}",
                    library::set_up("rocm --force")
                )
            }
            _ => library::set_up(&format!("{hardware} --force")),
        };
        Error::unavailable(hardware, format!("{} cannot be loaded: {reason}", path.display()), help)
    };
    let builder = ort::init_from(&path).map_err(|e| failed(e.to_string()))?;
    let built = builder.with_name("weft").with_telemetry(false).build().map_err(|e| failed(e.to_string()))?;
    Ok(ENVIRONMENT.get_or_init(|| (built, path.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_off_the_path() {
        let of = |path: &str| version_in(Path::new(path));
        assert_eq!(of("/p/onnxruntime-1.31.1/onnxruntime/capi/onnxruntime.dll").as_deref(), Some("1.31.1"));
        assert_eq!(of("/usr/lib/libonnxruntime.so.1.31.1").as_deref(), Some("1.31.1"));
        assert_eq!(of("/usr/lib/libonnxruntime.so"), None);
    }
}
