//! A session: options in, runs and placement out.

use std::sync::{Mutex, PoisonError};

use ndarray::ArrayD;
use ort::environment::Environment;
use ort::session::builder::SessionBuilder;
use ort::session::{OutputSelector, RunOptions, Session, SessionInputValue};
use ort::value::{DynValue, Outlet, Tensor, TensorElementType, TensorRef};

use super::cache_positions::{CachePositions, CachedInputs, Held};
use super::in_memory;
use super::mapped::{self, Stay};
use super::operators;
use super::placement;
use super::provider::Provider;
use crate::engine::{Compiled, KvState, Options, Placement, kv_state};
use crate::lower::{Lowered, Memory};
use crate::{Error, Hardware, Precision, Result, Value, Values};

/// A session that is ready to run.
pub(super) struct Running {
    session: Mutex<Session>,
    hardware: Hardware,
    inputs: Vec<String>,
    /// The inputs that take numbers, booleans as 0 and 1 among them.
    numbers: Vec<String>,
    /// The inputs that take unsigned bytes, which values hold as integers.
    bytes: Vec<String>,
    /// The inputs that take keys and values position by position.
    cached: CachedInputs,
    placement: Placement,
    /// The session reads these, so they are dropped after it.
    _weights: Memory,
}

impl Running {
    pub(super) fn new(
        environment: &'static Environment,
        hardware: Hardware,
        lowered: &Lowered,
        options: &Options,
    ) -> Result<Self> {
        let provider = Provider::of(environment, hardware)?;
        provider.check_precision(options.precision)?;
        let refused = |e: ort::Error| Error::engine(hardware, format!("ONNX Runtime refused the graph: {e}"));
        let stored = if provider.is_exclusive() { None } else { stored_weights(lowered, options)? };
        let given = stored.as_ref().unwrap_or(lowered);
        let (session, placement) = create(environment, &provider, given, options).map_err(refused)?;
        if provider.is_exclusive() {
            let allowed = |operator: &str| {
                provider.host_operators().contains(&operator)
                    || options.cpu_fallback.iter().any(|o| o == operator)
            };
            let unsupported_ops = unsupported_ops(&placement, &allowed);
            if !unsupported_ops.is_empty() {
                let problem =
                    format!("would leave {} to the CPU, and falling back is off", unsupported_ops.join(", "));
                return Err(Error::engine(hardware, problem));
            }
        }
        let inputs = session.inputs().iter().map(|input| input.name().to_owned()).collect();
        let of = |element: TensorElementType| {
            let is = move |input: &&Outlet| input.dtype().tensor_type() == Some(element);
            session.inputs().iter().filter(is).map(|input| input.name().to_owned()).collect()
        };
        let (numbers, bytes) = (of(TensorElementType::Float32), of(TensorElementType::Uint8));
        Ok(Self {
            session: Mutex::new(session),
            hardware,
            inputs,
            numbers,
            bytes,
            cached: CachedInputs::of(&lowered.model),
            placement,
            _weights: lowered.memory.clone(),
        })
    }

    /// Runs a session on from what was kept, and keeps what the next run goes on from.
    fn run_in(&self, session: &mut Session, inputs: &Values, state: &mut KvState) -> ort::Result<Values> {
        let mut cached = self.cached.taken(inputs, state)?;
        let result = self.run_cached(session, inputs, state, &mut cached);
        // What was there before a failed run is there still.
        let cached = cached.into_iter().map(|(name, cached)| (name, Held::Positions(cached)));
        state.values.extend(cached);
        result
    }

    /// The same with keys and values that are appended to where they lie.
    fn run_cached(
        &self,
        session: &mut Session,
        inputs: &Values,
        state: &mut KvState,
        cached: &mut [(String, CachePositions)],
    ) -> ort::Result<Values> {
        let mut given = self.given_of(inputs)?;
        let state_here = self.given_of(&state.host)?;
        given.extend(state_here.into_iter().filter(|(name, _)| self.takes(name)));
        for (name, held) in state.values.iter().filter(|(name, _)| self.takes(name)) {
            let value: SessionInputValue<'_> = match held {
                Held::Value(value) => value.into(),
                Held::Positions(cached) => Tensor::from_array(cached.heads_first())?.into(),
            };
            given.push((name, value));
        }
        let (mut selected, mut present) = (OutputSelector::default(), vec![]);
        let appended = self.cached.appended(inputs);
        for (name, cached) in cached.iter_mut() {
            let past = cached.tensor(cached.shape())?;
            let shape = cached.appended(appended);
            let mut larger = cached.larger(shape);
            let room = larger.as_mut().unwrap_or(cached);
            selected = selected.preallocate(kv_state::output_of(name), room.tensor(shape)?);
            present.push((shape, larger));
            given.push((name, past.into()));
        }
        let options = RunOptions::new()?.with_outputs(selected);
        let mut outputs = session.run_with_options(given, &options)?;
        let names: Vec<String> = outputs.keys().map(str::to_owned).collect();
        let mut rest = Values::new();
        for name in names {
            let Some(value) = outputs.remove(&name) else { continue };
            match kv_state::next_input(&name) {
                Some(past) if self.cached.takes(&past) => {}
                Some(past) => {
                    state.host.remove(&past);
                    state.values.insert(past, Held::Value(value));
                }
                None => drop(rest.insert(name, read(&value)?)),
            }
        }
        drop(outputs);
        drop(options);
        for ((_, cached), (shape, larger)) in cached.iter_mut().zip(present) {
            if let Some(larger) = larger {
                *cached = larger;
            }
            cached.has_become(shape);
        }
        Ok(rest)
    }

    fn takes(&self, name: &str) -> bool {
        self.inputs.iter().any(|input| input == name)
    }

    /// Values in the element types that the session takes.
    fn given_of<'a>(&self, inputs: &'a Values) -> ort::Result<Vec<(&'a str, SessionInputValue<'a>)>> {
        let views = inputs.iter().filter(|(name, _)| !self.cached.takes(name)).map(|(name, value)| {
            let value: SessionInputValue<'_> = match value {
                Value::F32(a) => TensorRef::from_array_view(a)?.into(),
                Value::I64(a) if self.bytes.contains(name) => Tensor::from_array(a.mapv(|n| n as u8))?.into(),
                Value::I64(a) => TensorRef::from_array_view(a)?.into(),
                Value::Bool(a) if self.numbers.contains(name) => {
                    Tensor::from_array(a.mapv(|truth| f32::from(u8::from(truth))))?.into()
                }
                Value::Bool(a) => TensorRef::from_array_view(a)?.into(),
            };
            Ok((name.as_str(), value))
        });
        views.collect()
    }
}

/// The graph with weights as they are stored: ONNX Runtime would convert those of 16 bits into memory when the session is
/// made. None where that changes nothing.
fn stored_weights(lowered: &Lowered, options: &Options) -> Result<Option<Lowered>> {
    let in_bf16 = options.precision == Precision::Bf16;
    if in_bf16 && !operators::computes_in_bf16() {
        let problem = "this processor does not compute in bfloat16 (AVX512-BF16)";
        return Err(Error::unavailable(Hardware::Cpu, problem, "ask for f32"));
    }
    let stay = match options.map_weights {
        Some(true) => Stay::All,
        // Not optimized, the runtime's own kernels take a hundred times as long as ONNX Runtime's with copies.
        _ if cfg!(debug_assertions) && !in_bf16 => return Ok(None),
        Some(false) => Stay::Linear,
        None => Stay::Narrow,
    };
    let model = mapped::stored_weights(&lowered.model, stay, in_bf16);
    Ok(model.map(|model| Lowered { model, ..lowered.clone() }))
}

/// From so many bytes of weights on there are no memory patterns. With them, ONNX Runtime reserves one piece of memory for all
/// weights, though mapped ones take none of it, which is refused above what a machine has (`std::bad_alloc`); and a run takes more:
/// with Stable Diffusion 1.5's UNet the process has at most 5.8 GB with them and 4.7 GB without, in the same time, and with its
/// autoencoder 2,130 MB and 1,457 MB, in 1.01 of the time.
const WITHOUT_PATTERNS: u64 = 1 << 28;

/// The bytes of a graph's weights that stay in files.
fn stored_bytes(lowered: &Lowered) -> u64 {
    let weights = lowered.model.graph.iter().flat_map(|graph| &graph.initializer);
    let entries =
        weights.flat_map(|weight| weight.external_data.iter().filter(|entry| entry.key == "length"));
    entries.filter_map(|entry| entry.value.parse::<u64>().ok()).sum()
}

/// Whether the process has a session with the runtime's own operators. ONNX Runtime keeps one table of domains, and looks whether it
/// has one before it adds it: of two sessions that are made at once the first ones, the second would be refused.
static KNOWN: Mutex<bool> = Mutex::new(false);

/// A session; with the runtime's own operators, where the graph has some.
pub(super) fn create(
    environment: &Environment,
    provider: &Provider,
    lowered: &Lowered,
    options: &Options,
) -> ort::Result<(Session, Placement)> {
    let mut builder: SessionBuilder = Session::builder(environment)?;
    if let Some(threads) = options.threads {
        builder = builder.with_intra_threads(threads)?;
    }
    if let Some(folder) = lowered.folder.as_deref().and_then(std::path::Path::to_str) {
        builder =
            builder.with_config_entry("session.model_external_initializers_file_folder_path", folder)?;
    }
    if options.map_weights == Some(true) {
        builder = builder.with_prepacking(false)?;
    }
    let own = lowered.model.opset_import.iter().any(|set| set.domain == operators::DOMAIN);
    if own {
        builder = builder.with_operators(operators::domain()?)?;
    }
    if options.precision == Precision::F16 {
        // The blocked layout of the CPU's convolutions is for single precision: in half, making a session crashes.
        builder =
            builder.with_config_entry("optimization.disable_specified_optimizers", "NchwcTransformer")?;
    }
    if stored_bytes(lowered) >= WITHOUT_PATTERNS {
        builder = builder.with_memory_pattern(false)?;
    }
    let (mut builder, model) = in_memory::give(builder, lowered, !provider.is_exclusive())?;
    builder = builder.with_config_entry("session.record_ep_graph_assignment_info", "1")?;
    builder = provider.place(environment, builder, options.precision)?;
    let mut known = own.then(|| KNOWN.lock().unwrap_or_else(PoisonError::into_inner));
    if known.as_deref() == Some(&true) {
        known = None;
    }
    let session = builder.commit_from_memory(&prost::Message::encode_to_vec(model.as_ref()))?;
    if let Some(known) = known.as_deref_mut() {
        *known = true;
    }
    drop(known);
    let placement = placement::of(&session)?;
    Ok((session, placement))
}

/// The operators that a provider left to the CPU and that may not run there, with their counts.
fn unsupported_ops(placement: &Placement, allowed: &dyn Fn(&str) -> bool) -> Vec<String> {
    let operators = placement.devices.get(placement::CPU).into_iter().flatten();
    let unsupported_ops = operators.filter(|(operator, _)| !allowed(operator));
    unsupported_ops.map(|(operator, count)| format!("{operator} ({count})")).collect()
}

impl Compiled for Running {
    fn run(&self, inputs: &Values) -> Result<Values> {
        let failed = |e: ort::Error| refused_type(self.hardware, &e.to_string());
        // A panic in another thread cannot leave a session half-changed: it is changed by the engine alone.
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.cached.is_empty() {
            let mut state = KvState::default();
            let mut outputs = self.run_in(&mut session, inputs, &mut state).map_err(failed)?;
            for (past, held) in &state.values {
                outputs.insert(kv_state::output_of(past), super::value(self.hardware, held)?);
            }
            return Ok(outputs);
        }
        let given = self.given_of(inputs).map_err(failed)?;
        let outputs = session.run(given).map_err(failed)?;
        outputs.iter().map(|(name, value)| Ok((name.to_owned(), read(&value).map_err(failed)?))).collect()
    }

    fn run_with_state(&self, inputs: Values, state: &mut KvState) -> Result<Values> {
        let failed = |e: ort::Error| refused_type(self.hardware, &e.to_string());
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        self.run_in(&mut session, &inputs, state).map_err(failed)
    }

    fn placement(&self) -> &Placement {
        &self.placement
    }
}

/// A failed run; on a device that lacks a number format, that is what is missing.
fn refused_type(hardware: Hardware, message: &str) -> Error {
    if message.contains("requires f16 but the device does not support it") {
        let help = "compute in f32, or use a device with the feature shader-f16";
        return Error::unavailable(hardware, "its device does not compute in half precision", help);
    }
    Error::engine(hardware, format!("ONNX Runtime failed to run: {message}"))
}

pub(super) fn read(value: &DynValue) -> ort::Result<Value> {
    let element = value.dtype().tensor_type();
    Ok(match element {
        Some(TensorElementType::Int64) => Value::I64(value.try_extract_array::<i64>()?.to_owned()),
        Some(TensorElementType::Uint8) => Value::I64(value.try_extract_array::<u8>()?.mapv(i64::from)),
        Some(TensorElementType::Bool) => Value::Bool(value.try_extract_array::<bool>()?.to_owned()),
        _ => {
            let array: ArrayD<f32> = value.try_extract_array::<f32>()?.to_owned();
            Value::F32(array)
        }
    })
}
