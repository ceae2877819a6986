//! Loading a checkpoint: options, then configuration, head, graph, weights and backend.

mod describe;
mod quantize;

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value as Json;

use super::inspection;
use super::quantizing::{Quantizing, weight_cache};
use super::route::{self, Request};
use super::subgraph::{self, Choices, Settings, Subgraphs};
use super::{Calibration, ExpertUsage};
use super::{Lowering, Session, config};
use crate::auto::Workload;
use crate::engine::{self, Options};
use crate::graph::{CacheBits, CacheCodes};
use crate::hub::Checkpoint;
use crate::quantization::Quantization;
use crate::weights::{LoraRequest, Weights};
use crate::{Architecture, GraphKind};
use crate::{Error, Hardware, Precision, Result};

/// What a checkpoint is loaded as: a model of whatever class, or one of the classes.
pub trait Loads<A: Architecture>: Sized {
    /// The class; none where the caller or the checkpoint says which.
    fn head() -> Option<A::Head>;
    /// Wraps the model.
    fn from_model(model: A) -> Self;
}

impl<A: Architecture> Loads<A> for A {
    fn head() -> Option<A::Head> {
        None
    }

    fn from_model(model: A) -> Self {
        model
    }
}

/// A checkpoint that was found, before it is loaded.
#[derive(Clone, Debug)]
pub struct Loader<A: Architecture, T = A> {
    checkpoint: Checkpoint,
    weights: Option<Weights>,
    hardware: Hardware,
    precision: Option<Precision>,
    quantization: Option<Quantization>,
    /// Whether quantized weights are kept for the next time.
    cache: bool,
    /// Modules of a precision of their own.
    modules: Vec<(String, Precision)>,
    /// Whether quantized weights run by their dequantized values.
    dequantized: bool,
    head: Option<A::Head>,
    kind: GraphKind,
    ready: &'static [GraphKind],
    dims: BTreeMap<String, usize>,
    options: Options,
    lowering: Option<Lowering>,
    interpolate: bool,
    kv_cache: Option<Precision>,
    exact_activations: bool,
    usage: Option<ExpertUsage>,
    calibration: Option<Calibration>,
    probes: Vec<String>,
    loras: Vec<LoraRequest>,
    loads: PhantomData<fn() -> T>,
}

impl<A: Architecture, T: Loads<A>> Loader<A, T> {
    /// Finds a checkpoint: a folder, or a hub id such as `google-bert/bert-base-uncased`.
    ///
    /// # Errors
    /// When there is no such checkpoint.
    pub fn open(checkpoint: &str) -> Result<Self> {
        Checkpoint::open(checkpoint).map(Self::of)
    }

    /// A checkpoint that was found already.
    pub fn of(checkpoint: Checkpoint) -> Self {
        Self {
            checkpoint,
            weights: None,
            hardware: Hardware::Auto,
            precision: None,
            quantization: None,
            cache: false,
            modules: vec![],
            dequantized: false,
            head: T::head(),
            kind: GraphKind::Forward,
            ready: &[],
            dims: Default::default(),
            options: Options::default(),
            lowering: None,
            interpolate: false,
            kv_cache: None,
            exact_activations: false,
            usage: None,
            calibration: None,
            probes: vec![],
            loras: vec![],
            loads: PhantomData,
        }
    }

    /// Where to run; [`Hardware::Auto`] takes the first of the model's fallback route that is measured or known to be faster
    /// than the CPU, never an emulator or a software device; anything else never falls back.
    #[must_use]
    pub fn hardware(mut self, hardware: Hardware) -> Self {
        self.hardware = hardware;
        self
    }

    /// What to compute in; the backend's [`Hardware::default_precision`] where not given.
    ///
    /// The quantized ones, such as [`Precision::Int4`], quantize weights when the checkpoint opens, by [`Quantization::of`].
    ///
    /// On CPU, [`Precision::Bf16`] rounds weights and inputs of linear layers and of large convolutions to bfloat16 before it multiplies
    /// them, where the processor does so (AVX512-BF16), at twice the speed of single precision; sums and all else are in that. Products
    /// of up to 8 rows, as a decoder's steps have, round nothing: reading weights is what takes their time. Checkpoints in bfloat16 are
    /// computed in single precision where it is not asked for.
    #[must_use]
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = Some(precision);
        self
    }

    /// How weights are quantized, in full; by the preset of [`Loader::precision`] where not given.
    #[must_use]
    pub fn quantization(mut self, quantization: Quantization) -> Self {
        self.quantization = Some(quantization);
        self
    }

    /// What a decoder's cached keys and values are kept in (`QuantizedCache`): [`Precision::Int8`] takes 9 bits an element,
    /// [`Precision::Int4`] 5, where floating point takes 32. Groups of 32 elements of a position share a scale, made when the
    /// position is cached; attention computes with what the codes stand for. [`Quantization::kv_cache`] where not given; floating
    /// point stays. States of fixed size and keys of cross-attention stay as they are.
    #[must_use]
    pub fn kv_cache(mut self, precision: Precision) -> Self {
        self.kv_cache = Some(precision);
        self
    }

    /// The bits of cached keys and values; none where they are floating point.
    fn cache_bits(&self) -> Result<Option<CacheBits>> {
        let bits = match self.kv_cache {
            Some(Precision::Int8) => Some(8),
            Some(Precision::Int4) => Some(4),
            Some(Precision::F32) => None,
            Some(other) => {
                let problem = format!("a cache is not kept in {other}");
                return Err(Error::input("kv_cache", problem, "ask for int8, int4 or f32"));
            }
            None => self.quantized().and_then(|settings| settings.kv_cache),
        };
        let Some(bits) = bits else { return Ok(None) };
        let none =
            || Error::input("kv_cache", format!("there are no codes of {bits} bits"), "ask for 8 or 4");
        CacheBits::of(bits).map(Some).ok_or_else(none)
    }

    /// What a graph that only its weights or its inputs are wanted of is built with.
    fn choices(&self) -> Choices {
        Choices { interpolate: self.interpolate, ..Choices::default() }
    }

    /// Keeps quantized weights in files, of which the next time they are mapped: opening takes no longer than of a checkpoint that
    /// is quantized. They are in the folder `quantized` of the runtime's cache (`$WEFT_CACHE`), each by the place, the size and the
    /// age of the file it was made of and by its settings; [`crate::remove_cached_weights`] and `weft cache
    /// --remove` remove them.
    #[must_use]
    pub fn cache_quantized(mut self, cache: bool) -> Self {
        self.cache = cache;
        self
    }

    /// The precision of a module's weights: those whose name holds `module` (`vision_tower`), or is of a pattern with `*`. Of
    /// floating point, they stay as they are stored.
    #[must_use]
    pub fn precision_of(mut self, module: &str, precision: Precision) -> Self {
        self.modules.push((module.to_owned(), precision));
        self
    }

    /// Runs quantized weights by their dequantized values: the reference of what they say.
    #[must_use]
    #[cfg(feature = "conformance")]
    pub(crate) fn dequantized(mut self) -> Self {
        self.dequantized = true;
        self
    }

    /// How weights are quantized; none where they stay as they are stored.
    fn quantized(&self) -> Option<Quantization> {
        let preset = self.precision.and_then(Quantization::of);
        let own = self.quantization.clone().or(preset);
        let some = self.modules.iter().find_map(|(_, precision)| Quantization::of(*precision));
        let all = own.or_else(|| Some(Quantization { exceptions: vec![("*".to_owned(), None)], ..some? }))?;
        let modules = self.modules.iter();
        Some(modules.fold(all, |all, (module, precision)| all.with_module(module, *precision)))
    }

    /// Threads within an operation; the physical cores where not given.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.options.threads = Some(threads);
        self
    }

    /// The engine's device, where one engine has several: OpenVINO's `CPU` (where not given), `GPU`, `NPU`.
    #[must_use]
    pub fn device(mut self, device: &str) -> Self {
        self.options.device = Some(device.to_owned());
        self
    }

    /// Leaves all weights in their mapped pages: large models open at once, while encoders and prompts are slower on CPU.
    ///
    /// Where not given, a decoder with a cache leaves weights mapped from a quarter of a gigabyte on, and all else is opened for speed. On
    /// CPU, weights stored in 16 bits that linear layers and embeddings read stay so in any case, and those of large
    /// convolutions unless this is `false`: they are widened as they are used, which is exact, in optimized builds; others
    /// convert them. A convolutional network opens in a third of the time then and in a tenth of the memory, and runs up to
    /// 1.6 times as long; `false` has its weights converted.
    #[must_use]
    pub fn map_weights(mut self, map: bool) -> Self {
        self.options.map_weights = Some(map);
        self
    }

    /// Leaves activations as they are where weights are quantized. Otherwise, on CPU, linear layers round them to 8 bits by
    /// blocks, which is up to ten times as fast and changes outputs by about a hundredth.
    #[must_use]
    pub fn exact_activations(mut self, exact: bool) -> Self {
        self.exact_activations = exact;
        self
    }

    /// Counts how often each expert of a mixture of experts is selected.
    #[must_use]
    pub fn expert_usage(mut self, usage: &ExpertUsage) -> Self {
        self.usage = Some(usage.clone());
        self
    }

    /// Gathers what calibrated quantization is made by, while the model runs; see [`Loader::quantize_calibrated`].
    #[must_use]
    pub fn calibration(mut self, calibration: &Calibration) -> Self {
        self.calibration = Some(calibration.clone());
        self
    }

    /// Takes images of other sizes than the configuration's, as the reference's argument of this name: what positions add
    /// is resized to the image.
    #[must_use]
    pub fn interpolate_pos_encoding(mut self, interpolate: bool) -> Self {
        self.interpolate = interpolate;
        self
    }

    /// Which graph to compile at once; [`GraphKind::Forward`] where not given. Others are compiled when they are first run.
    #[must_use]
    pub fn graph_kind(mut self, kind: GraphKind) -> Self {
        self.kind = kind;
        self
    }

    /// Which graphs to compile at once instead, of those that the class has.
    #[must_use]
    pub(crate) fn ready(mut self, kinds: &'static [GraphKind]) -> Self {
        self.ready = kinds;
        self
    }

    /// Weights from elsewhere than the checkpoint's files.
    #[must_use]
    pub fn weights(mut self, weights: Weights) -> Self {
        self.weights = Some(weights);
        self
    }

    /// Adds low-rank updates (LoRA) to the weights, `scale` times; several one after the other. `path` is a file of `diffusers` or
    /// kohya-ss, or a folder that PEFT (`adapter_model.safetensors` beside `adapter_config.json`) or `diffusers` saved.
    #[must_use]
    pub fn lora(mut self, path: impl AsRef<Path>, scale: f32) -> Self {
        self.loras.push(LoraRequest::new(path.as_ref(), scale));
        self
    }

    /// As [`Loader::lora`], of what was asked of a loader without a type.
    #[must_use]
    pub(crate) fn with_loras(mut self, loras: &[LoraRequest]) -> Self {
        self.loras.extend_from_slice(loras);
        self
    }

    /// Fixes the length of a symbolic axis, which backends without dynamic shapes need.
    #[must_use]
    pub fn dim(mut self, symbol: &str, length: usize) -> Self {
        self.dims.insert(symbol.to_owned(), length);
        self
    }

    /// Operators that may run on the CPU instead of the backend; none where not given.
    #[must_use]
    pub fn cpu_fallback(mut self, operators: &[&str]) -> Self {
        self.options.cpu_fallback = operators.iter().map(|&operator| operator.to_owned()).collect();
        self
    }

    /// Gives the graph the form of another backend than the one that runs it, and holds it against what that backend
    /// publishes.
    #[must_use]
    pub(crate) fn lowering(mut self, lowering: Lowering) -> Self {
        self.lowering = Some(lowering);
        self
    }

    /// Makes the values of each of these modules (`encoder.layer.0`) outputs as well.
    #[must_use]
    pub(crate) fn probes(mut self, parts: &[String]) -> Self {
        self.probes = parts.to_vec();
        self
    }

    /// The checkpoint that was found.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// Builds the graph, finds its weights and makes it ready on the backend.
    ///
    /// # Errors
    /// When the configuration is not the architecture's, a weight is missing or does not fit, or the backend
    /// is not available or refuses the graph.
    pub fn load(mut self) -> Result<T> {
        let cache_bits = self.cache_bits()?;
        let (raw, config, head, weights) = self.read()?;
        let chosen = route::choose::<A>(&Request {
            asked: self.hardware,
            device: self.options.device.as_deref(),
            precision: self.precision.unwrap_or(Precision::F32),
            workload: Workload::of(A::graph_kinds(head)),
            elements: weights.counts().1 as u64,
        })?;
        self.options.device = chosen.device.or(self.options.device);
        let form = self.lowering.as_ref().map_or(chosen.hardware, |lowering| lowering.hardware);
        let precision = self.precision.unwrap_or_else(|| form.default_precision());
        let mut target = engine::target(form, precision);
        if self.exact_activations {
            target.kernels.accuracy_level = 0;
        }
        if self.dequantized {
            target.kernels = target.kernels.by_values();
        }
        let cache = self.cache.then(weight_cache).transpose()?;
        let quantizing = Quantizing::new(self.quantized(), &target.kernels, cache);
        let cache_codes = cache_bits.map(|bits| CacheCodes { bits, as_floats: !target.bytes });
        target.dims = self.dims;
        let subgraphs = Subgraphs::<A>::new(
            head,
            weights,
            Settings {
                target,
                hardware: chosen.hardware,
                options: Options { precision: precision.computed_in(form), ..self.options },
                lowering: self.lowering,
                interpolate: self.interpolate,
                cache_codes,
                usage: self.usage,
                calibration: self.calibration,
                probes: self.probes,
            },
            quantizing,
        );
        let mut kinds = self.ready.to_vec();
        kinds.retain(|kind| A::graph_kinds(head).contains(kind));
        let last = kinds.pop().unwrap_or(self.kind);
        let described = (last != self.kind).then(|| subgraphs.signature(&config, self.kind)).transpose()?;
        let first: Vec<_> =
            kinds.into_iter().map(|kind| subgraphs.get(&config, kind)).collect::<Result<_>>()?;
        let main = subgraphs.get(&config, last)?;
        let signature = match described {
            Some((signature, _)) => Arc::new(signature),
            None => Arc::clone(&main.signature),
        };
        let notes = first.iter().chain([&main]).flat_map(|subgraph| &subgraph.note);
        let explanation = notes.fold(chosen.explanation, |said, note| format!("{said}\n  {note}"));
        let session = Session {
            config,
            raw,
            head,
            checkpoint: self.checkpoint,
            main,
            signature,
            subgraphs,
            hardware: chosen.hardware,
            explanation,
            precision,
            kind: self.kind,
        };
        Ok(T::from_model(A::from_session(session)))
    }

    /// The configuration as it is and typed, and the class to load.
    fn configuration(&self) -> Result<(Json, A::Config, A::Head)> {
        let raw = config::read::<A>(&self.checkpoint)?;
        let config = config::typed::<A>(&self.checkpoint, &raw)?;
        let head = match self.head {
            Some(head) => head,
            None => config::head::<A>(&self.checkpoint, &raw)?,
        };
        Ok((raw, config, head))
    }

    /// The configuration as it is and typed, the class to load, and the weights.
    fn read(&self) -> Result<(Json, A::Config, A::Head, Weights)> {
        let (raw, config, head) = self.configuration()?;
        let weights = match &self.weights {
            Some(weights) => weights.clone(),
            None => Weights::open(&self.checkpoint)?,
        };
        let add = |weights, lora: &LoraRequest| lora.add_to(weights, &A::NAMES);
        let weights = self.loras.iter().try_fold(weights, add)?;
        Ok((raw, config, head, weights))
    }
}

impl<A: Architecture> Loader<A> {
    /// Which class to load; the one that `architectures` in `config.json` names where not given.
    #[must_use]
    pub fn head(mut self, head: A::Head) -> Self {
        self.head = Some(head);
        self
    }

    /// The class that [`Loader::head`] asked for.
    pub fn requested_head(&self) -> Option<A::Head> {
        self.head
    }
}
