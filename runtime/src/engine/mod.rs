//! Engines behind one trait: a lowered graph in, outputs and the proof of where they were computed out.

#[cfg(all(feature = "browser", not(target_family = "wasm")))]
mod browser;
#[cfg(not(any(feature = "browser", target_family = "wasm")))]
#[path = "browser/absent.rs"]
mod browser;
#[cfg(any(feature = "browser", target_family = "wasm"))]
mod external_data;
#[cfg(any(feature = "browser", feature = "openvino"))]
mod folder;
mod kv_state;
pub mod library;
#[cfg(not(target_family = "wasm"))]
mod onnxruntime;
#[cfg(feature = "openvino")]
mod openvino;
#[cfg(not(feature = "openvino"))]
#[path = "openvino/absent.rs"]
mod openvino;
mod platform;
#[cfg(target_family = "wasm")]
mod web;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
#[cfg(target_family = "wasm")]
use web::{self as browser, self as onnxruntime};

pub use kv_state::KvState;
pub(crate) use kv_state::next_input;

use crate::lower::{Lowered, Target};
use crate::{Hardware, Precision, Result, Values};

/// How to run a graph.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Threads within an operation; the physical cores where not given.
    pub threads: Option<usize>,
    /// The engine's device, where one engine has several: OpenVINO's `CPU`, `GPU`, `GPU.1`, `NPU`.
    pub device: Option<String>,
    /// What to compute in, for engines that are told so beside the graph.
    pub precision: Precision,
    /// Operators that may run on the CPU instead of the backend; none where the spec names none.
    pub cpu_fallback: Vec<String>,
    /// Opens at once and leaves weights in their mapped pages, at the cost of some of an encoder's speed; where not given,
    /// those of 16 bits alone, and where off, of these what linear layers and embeddings read.
    pub map_weights: Option<bool>,
}

/// A graph that an engine has made ready.
pub trait Compiled: Send + Sync {
    /// Runs it once.
    ///
    /// # Errors
    /// When the engine fails; inputs were checked before.
    fn run(&self, inputs: &Values) -> Result<Values>;
    /// Runs it once with what `state` holds for it, and leaves there what the next run goes on from.
    ///
    /// # Errors
    /// As [`Compiled::run`].
    fn run_with_state(&self, mut inputs: Values, state: &mut KvState) -> Result<Values> {
        let held: Vec<String> = state.host.keys().cloned().collect();
        inputs.append(&mut state.host);
        let outputs = self.run(&inputs);
        // What the graph gives no new tensors for, such as keys and values of the encoder, stays.
        state.host.extend(held.iter().filter_map(|name| inputs.remove_entry(name)));
        let (present, rest) =
            outputs?.into_iter().partition::<Values, _>(|(name, _)| next_input(name).is_some());
        let past = present.into_iter().filter_map(|(name, value)| Some((next_input(&name)?, value)));
        state.host.extend(past);
        Ok(rest)
    }

    /// The nodes that each device runs.
    fn placement(&self) -> &Placement;
}

/// Which nodes run where, as the engine reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// Operators and their counts, by device.
    pub devices: BTreeMap<String, BTreeMap<String, usize>>,
}

impl Placement {
    /// The number of nodes on each device.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        self.devices.iter().map(|(device, operators)| (device.clone(), operators.values().sum())).collect()
    }
}

/// Makes a graph ready on a backend.
///
/// # Errors
/// When the backend is not available here or refuses the graph.
pub fn compile(hardware: Hardware, lowered: &Lowered, options: &Options) -> Result<Box<dyn Compiled>> {
    match hardware {
        Hardware::Openvino => openvino::compile(lowered, options),
        hardware if in_browser(hardware) => browser::compile(hardware, lowered, options),
        hardware => onnxruntime::compile(hardware, lowered, options),
    }
}

impl Hardware {
    /// Whether it can be used on this machine: its library's name and version, or an error that says precisely what
    /// is missing and how to get it.
    ///
    /// `Auto` is always here if the CPU is. Nothing is compiled or run; looking a second time costs little.
    ///
    /// ```no_run
    /// for hardware in weft::Hardware::ALL {
    ///     match hardware.available() {
    ///         Ok(found) => println!("{hardware}: {found}"),
    ///         Err(missing) => println!("{hardware}: {missing}"),
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// When its library or its device is missing, or this platform has no such backend.
    pub fn available(self) -> Result<String> {
        available(self)
    }
}

/// Whether a backend can be used here; says what is missing otherwise.
///
/// # Errors
/// When its library or its device is missing.
pub fn available(hardware: Hardware) -> Result<String> {
    platform::check(hardware)?;
    match hardware {
        Hardware::Openvino => openvino::version(),
        hardware if in_browser(hardware) => browser::version(hardware),
        hardware => onnxruntime::version(hardware),
    }
}

/// Whether the library of a backend whose device needs no looking for is here, without loading it.
///
/// # Errors
/// When it is missing.
pub(crate) fn set_up(hardware: Hardware) -> Result<()> {
    match hardware {
        Hardware::Openvino => openvino::set_up(),
        hardware => available(hardware).map(drop),
    }
}

/// The devices that a backend's engine finds, in its own words.
///
/// # Errors
/// As [`available`].
pub fn devices(hardware: Hardware) -> Result<Vec<String>> {
    platform::check(hardware)?;
    match hardware {
        Hardware::Openvino => openvino::devices(),
        // A page is not told what it runs on.
        hardware if in_browser(hardware) => Ok(vec![]),
        hardware => onnxruntime::devices(hardware),
    }
}

/// What graphs are lowered to for a backend as it is reached here.
pub(crate) fn target(hardware: Hardware, precision: Precision) -> Target {
    if in_browser(hardware) {
        Target::in_browser(hardware, precision)
    } else {
        Target::of(hardware, precision)
    }
}

/// Whether a backend is reached through a browser: WebNN always; WebGPU where `WEFT_WEBGPU` is `browser`, or where
/// only a browser has it.
pub(crate) fn in_browser(hardware: Hardware) -> bool {
    let asked = || std::env::var("WEFT_WEBGPU").unwrap_or_default();
    match hardware {
        // Here everything is.
        _ if cfg!(target_family = "wasm") => true,
        Hardware::Webnn => true,
        Hardware::Webgpu => match asked().as_str() {
            "browser" => true,
            "native" => false,
            _ => onnxruntime::version(hardware).is_err() && browser::version(hardware).is_ok(),
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;
    use crate::{Error, Value};

    /// A decoder that gives its cached keys one more, and a logit that is their sum with the encoder's.
    #[derive(Default)]
    struct Decoder(Placement);

    impl Compiled for Decoder {
        fn run(&self, inputs: &Values) -> Result<Values> {
            let sum = |name: &str| inputs.get(name).map_or(Ok(0), |value| value.i64(name).map(|a| a.sum()));
            let new = inputs.get("input_ids").ok_or_else(|| Error::input("input_ids", "is missing", ""))?;
            let past = sum("past_key_values.0.key")?;
            Ok(Values::from([
                ("logits".to_owned(), array![past + sum("past_key_values.0.encoder.key")?].into_dyn().into()),
                ("present.0.key".to_owned(), array![past + new.i64("input_ids")?.sum()].into_dyn().into()),
            ]))
        }

        fn placement(&self) -> &Placement {
            &self.0
        }
    }

    #[test]
    fn state_is_moved_into_a_run_and_out_of_it_again() {
        let value = |number: i64| Value::from(array![number].into_dyn());
        let mut state = KvState::default();
        state.host.insert("past_key_values.0.encoder.key".to_owned(), value(100));
        let mut run = |inputs| Decoder::default().run_with_state(inputs, &mut state);
        let ids = |id| Values::from([("input_ids".to_owned(), value(id))]);
        assert_eq!(run(ids(2)).unwrap(), Values::from([("logits".to_owned(), value(100))]));
        assert!(run(Values::new()).is_err());
        assert_eq!(run(ids(3)).unwrap()["logits"], value(102));
        assert_eq!(state.host["past_key_values.0.key"], value(5));
        assert_eq!(state.host["past_key_values.0.encoder.key"], value(100));
        assert_eq!(state.host.len(), 2);
    }
}
