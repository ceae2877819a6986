//! OpenVINO itself: one core per process, one infer request per compiled graph.

mod locate;
mod raw;
mod reading;
mod running;

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use openvino::{Core, DeviceType, PropertyKey};

use super::{Compiled, Options};
use crate::lower::Lowered;
use crate::{Error, Hardware, Result};

/// The device where none is asked for: it is there wherever the library is.
const CPU: &str = "CPU";

/// Makes a graph ready on one of OpenVINO's devices.
pub(super) fn compile(lowered: &Lowered, options: &Options) -> Result<Box<dyn Compiled>> {
    let mut core = core()?;
    let device = device(&core, options.device.as_deref().unwrap_or(CPU))?;
    Ok(Box::new(running::Running::new(&mut core, device, lowered, options)?))
}

/// Whether the library is here; it is not loaded.
pub(super) fn set_up() -> Result<()> {
    locate::library().map(drop)
}

/// The library's version; an error where it or its CPU device is missing.
pub(super) fn version() -> Result<String> {
    device(&*core()?, CPU)?;
    let version = openvino::version().build_number;
    // Begins with "2026.4.1-22982-…".
    Ok(format!("OpenVINO {}", version.split('-').next().unwrap_or(&version)))
}

/// Its devices by name, with what each is.
pub(super) fn devices() -> Result<Vec<String>> {
    let core = core()?;
    let found = core.available_devices().map_err(|e| failed("cannot list its devices", &e))?;
    let shown = |device: &DeviceType<'_>| {
        let name = core.get_property(device, &PropertyKey::DeviceFullName).unwrap_or_default();
        format!("{}: {}", device.as_ref(), name.trim()).trim_end_matches(": ").to_owned()
    };
    Ok(found.iter().map(shown).collect())
}

/// The process's core, made once. Its settings are the process's, so whoever compiles keeps it locked.
fn core() -> Result<MutexGuard<'static, Core>> {
    static CORE: OnceLock<Mutex<Core>> = OnceLock::new();
    let core = match CORE.get() {
        Some(core) => core,
        // A missing library is not remembered: it may be set up while the process runs.
        None => {
            let path = locate::library()?;
            let made =
                openvino_sys::library::load_from(&path).and_then(|()| Core::new().map_err(|e| e.to_string()));
            let core = made.map_err(|reason| {
                let problem = format!("{} cannot be loaded: {reason}", path.display());
                Error::unavailable(Hardware::Openvino, problem, super::library::set_up("openvino --force"))
            })?;
            CORE.get_or_init(|| Mutex::new(core))
        }
    };
    // Every compilation sets all that it relies on, so one that panicked leaves nothing behind.
    Ok(core.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A device by its name: `CPU`, `GPU`, `GPU.1`, `NPU`. Names that would let OpenVINO choose are no devices.
fn device(core: &Core, wanted: &str) -> Result<DeviceType<'static>> {
    let found = core.available_devices().map_err(|e| failed("cannot list its devices", &e))?;
    let named = found.iter().find(|device| {
        let name = device.as_ref();
        name.eq_ignore_ascii_case(wanted)
            || name.split('.').next().is_some_and(|n| n.eq_ignore_ascii_case(wanted))
    });
    named.map(DeviceType::to_owned).ok_or_else(|| {
        let names: Vec<&str> = found.iter().map(AsRef::as_ref).collect();
        let problem = format!("OpenVINO finds no device {wanted} here; it finds {}", listed(&names));
        let help = "choose one of those, or install the device's driver";
        Error::unavailable(Hardware::Openvino, problem, help)
    })
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The engine's own words on one line, without the places in its sources.
fn failed(what: &str, error: &openvino::InferenceError) -> Error {
    let message = error.message.clone().unwrap_or_else(|| error.kind.to_string());
    let lines = message.lines().map(str::trim);
    let words: Vec<&str> =
        lines.filter(|line| !line.is_empty() && !line.starts_with("Exception from ")).collect();
    Error::engine(Hardware::Openvino, format!("OpenVINO {what}: {}", words.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::dims::{BATCH, SEQUENCE};
    use crate::graph::{Graph, Input, Reduction};
    use crate::lower::{Target, lower};
    use crate::{Precision, Value, Values, dims};

    #[test]
    fn errors_keep_the_engines_words_on_one_line() {
        let message =
            "Exception from src/core.cpp:84:\nCheck 'false' failed\n\nno conversion for Foo\n".to_owned();
        let error = openvino::InferenceError {
            kind: openvino::InferenceErrorKind::GeneralError,
            message: Some(message),
        };
        let shown = failed("refused the graph", &error).to_string();
        assert_eq!(shown, "openvino: OpenVINO refused the graph: Check 'false' failed no conversion for Foo");
    }

    /// Half of how many ones each row of `mask` has, after the passes of OpenVINO but for one of this name.
    fn halves(mask: &[[i64; 5]; 3], without: &str) -> Vec<i64> {
        let mut g = Graph::new();
        let rows = g.input(Input::i64("mask", dims![BATCH, SEQUENCE]));
        let counts = g.reduce(Reduction::Sum, &rows, &[1], true).unwrap();
        let two = g.integer(2);
        let halves = g.div(&counts, &two).unwrap();
        g.output("halves", &halves).unwrap();
        let mut target = Target::of(Hardware::Openvino, Precision::F32);
        target.passes.retain(|pass| pass.name != without);
        let lowered = lower(&g, &[], &target).unwrap();
        let given = Values::from([("mask".to_owned(), Value::I64(ndarray::arr2(mask).into_dyn()))]);
        let compiled = compile(&lowered, &Options::default()).unwrap();
        compiled.run(&given).unwrap()["halves"].i64("halves").unwrap().iter().copied().collect()
    }

    #[test]
    fn halves_of_counts_are_rounded_down() {
        if let Err(error) = version() {
            eprintln!("skipped: {error}");
            return;
        }
        let mask = [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 0, 0, 0]];
        assert_eq!(halves(&mask, ""), [2, 1, 1]);
        // The sum's kernel takes in the division, and rounds its single-precision result to the nearest whole number.
        #[cfg(target_arch = "x86_64")]
        assert_eq!(halves(&mask, "whole quotients of multiples"), [2, 2, 1]);
    }

    /// A hundred times the sine of a thousand times each number, by a product of matrices in bfloat16, and how many outputs there are;
    /// none where the processor does not compute in it.
    fn waves(x: [f32; 2], without: &str) -> Option<(Vec<f32>, usize)> {
        let mut g = Graph::new();
        let rows = g.input(Input::f32("x", dims![BATCH, 2]));
        let angles = g.scale(&rows, 1000.0).unwrap();
        let waves = g.unary(crate::graph::Unary::Sin, &angles);
        let hundreds = g.constant(&[2, 2], vec![100.0, 0.0, 0.0, 100.0]).unwrap();
        let y = g.matmul(&waves, &hundreds).unwrap();
        g.output("y", &y).unwrap();
        let precision = Precision::Bf16;
        let mut target = Target::of(Hardware::Openvino, precision);
        target.passes.retain(|pass| pass.name != without);
        let lowered = lower(&g, &[], &target).unwrap();
        let given = Values::from([("x".to_owned(), Value::F32(ndarray::arr2(&[x]).into_dyn()))]);
        let compiled = match compile(&lowered, &Options { precision, ..Options::default() }) {
            Err(error @ Error::Unavailable { .. }) => {
                eprintln!("skipped: {error}");
                return None;
            }
            compiled => compiled.unwrap(),
        };
        let outputs = compiled.run(&given).unwrap();
        Some((outputs["y"].f32("y").unwrap().iter().copied().collect(), outputs.len()))
    }

    #[test]
    fn waves_in_bfloat16_are_those_of_angles_in_single_precision() {
        if let Err(error) = version() {
            eprintln!("skipped: {error}");
            return;
        }
        let off = |(y, outputs): (Vec<f32>, usize)| {
            assert_eq!(outputs, 1);
            let want = [981.0_f32.sin(), 20.5_f32.sin()].map(|wave| wave * 100.0);
            y.iter().zip(want).map(|(got, want)| (got - want).abs()).fold(0.0, f32::max)
        };
        let x = [0.981, 0.0205];
        assert!(waves(x, "").is_none_or(|told| off(told) < 0.5));
        assert!(waves(x, "waves as outputs").is_none_or(|untold| off(untold) > 5.0));
    }
}
