//! Weights quantized when a checkpoint opens, each once for all graphs that read it.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Instant;
use crate::engine::library;
use crate::graph::{Graph, Weight};
use crate::lower::{Kernels, Readers};
use crate::quantization::cache::WeightCache;
use crate::quantization::{
    BlockQuantized, CacheSize, Quantization, Role, layer_index, quantize, quantize_by_row,
};
use crate::weights::{Bytes, WeightData};
use crate::{Error, Result, files};

/// After so long, progress is shown on a terminal.
const PATIENCE: Duration = Duration::from_secs(2);

/// What was quantized so far of a checkpoint, by the names that graphs have for weights.
pub(super) struct Quantizing {
    settings: Option<Quantization>,
    /// Whether convolutions run quantized at all.
    convolutions: bool,
    /// Whether embeddings do.
    embeddings: bool,
    cache: Option<WeightCache>,
    made: Mutex<HashMap<String, Arc<BlockQuantized>>>,
}

impl Quantizing {
    /// For these kernels. Weights are kept for the next time where there is a cache.
    pub(super) fn new(settings: Option<Quantization>, kernels: &Kernels, cache: Option<WeightCache>) -> Self {
        let (convolutions, embeddings) = (kernels.quantize_convolutions(), kernels.quantize_embeddings());
        Self { settings, convolutions, embeddings, cache, made: Mutex::default() }
    }

    /// The weights with those quantized that linear layers, embeddings and convolutions read, and nothing else.
    pub(super) fn apply(&self, graph: &Graph, mut weights: Vec<WeightData>) -> Result<Vec<WeightData>> {
        let Some(settings) = &self.settings else { return Ok(weights) };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let mut readers = Readers::of(graph);
        for readers in readers.iter_mut().filter(|_| !self.convolutions) {
            readers.others |= readers.convolution.take().is_some();
        }
        for readers in readers.iter_mut().filter(|readers| !self.embeddings && !readers.linear) {
            readers.others |= std::mem::take(&mut readers.embedding);
        }
        let all_bits = bits(settings, graph, &readers);
        files::read_soon(ranges(&weights, &all_bits));
        let mut progress = Progress::of(&weights);
        for ((weight, bits), wanted) in weights.iter_mut().zip(all_bits).zip(graph.weights()) {
            progress.add(weight);
            let Some(bits) = bits else { continue };
            if !weight.dtype.is_float() || matches!(weight.bytes, Bytes::Quantized(_)) {
                continue;
            }
            let blocks = match made.get(&wanted.name) {
                Some(blocks) => Arc::clone(blocks),
                None => {
                    let blocks = Arc::new(self.quantized(weight, bits, settings)?);
                    made.insert(wanted.name.clone(), Arc::clone(&blocks));
                    blocks
                }
            };
            weight.bytes = Bytes::Quantized(blocks);
        }
        Ok(weights)
    }

    /// The codes of a weight: those of the cache, or made.
    fn quantized(&self, weight: &WeightData, bits: usize, settings: &Quantization) -> Result<BlockQuantized> {
        if weight.shape.len() > 2 {
            return quantize_by_row(weight);
        }
        let cache = self.cache.as_ref().filter(|_| cfg!(not(target_family = "wasm")));
        let Some(cache) = cache else { return quantize(weight, bits, settings) };
        if let Some(found) = cache.get(weight, bits, settings) {
            return Ok(found);
        }
        let made = quantize(weight, bits, settings)?;
        cache.put(weight, bits, settings, &made)?;
        // Mapped, as it will be the next time.
        Ok(cache.get(weight, bits, settings).unwrap_or(made))
    }
}

/// Where quantized weights are kept: the folder `quantized` beside the runtime packages.
pub(super) fn weight_cache() -> Result<WeightCache> {
    let folder = library::cache().ok_or_else(|| {
        let problem = "this account has no cache folder";
        Error::input("cache_quantized", problem, "name one in the environment variable WEFT_CACHE")
    })?;
    Ok(WeightCache::new(folder.join("quantized")))
}

/// How many quantized weights are kept by [`crate::Loader::cache_quantized`], and their bytes.
///
/// # Errors
/// When the cache's folder cannot be read, or this account has none.
pub fn cached_weights() -> Result<CacheSize> {
    weight_cache()?.size()
}

/// Removes the quantized weights that are kept by [`crate::Loader::cache_quantized`]; how much that was.
///
/// # Errors
/// As [`cached_weights`], and when a file cannot be removed.
pub fn remove_cached_weights() -> Result<CacheSize> {
    weight_cache()?.remove()
}

/// Where what is to be quantized lies in files, in the order that it is read in.
fn ranges<'a>(weights: &'a [WeightData], bits: &[Option<usize>]) -> Vec<(&'a Path, [u64; 2])> {
    let wanted = weights.iter().zip(bits).filter(|(weight, bits)| bits.is_some() && weight.dtype.is_float());
    let in_file = |(weight, _): (&'a WeightData, _)| match &weight.bytes {
        Bytes::File { path, offset, length } => Some((path.as_path(), [*offset, *length])),
        Bytes::Memory(_) | Bytes::Quantized(_) => None,
    };
    wanted.filter_map(in_file).collect()
}

/// The bits of each weight's codes; none where it stays as it is stored: of all but linear layers, embeddings and
/// convolutions.
pub(super) fn bits(settings: &Quantization, graph: &Graph, readers: &[Readers]) -> Vec<Option<usize>> {
    let layers = layers(graph);
    let of = |(weight, readers): (&Weight, &Readers)| {
        let role = match (readers.linear, readers.embedding, readers.convolution, readers.others) {
            (true, false, None, false) => Role::Linear,
            (false, true, None, false) => Role::Embedding,
            (true, true, None, false) => Role::Tied,
            (false, false, Some(_), false) => Role::Convolution,
            _ => return None,
        };
        let layers = layer_index(&weight.name).and_then(|(list, _)| layers.get(&list).copied());
        let bits = settings.bits_of(&weight.name, role, layers.unwrap_or_default());
        bits.filter(|_| (weight.shape.len() == 2) != (role == Role::Convolution))
    };
    graph.weights().iter().zip(readers).map(of).collect()
}

/// How many layers each list of them has.
fn layers(graph: &Graph) -> HashMap<String, usize> {
    let mut layers = HashMap::new();
    for (list, index) in graph.weights().iter().filter_map(|weight| layer_index(&weight.name)) {
        let count = layers.entry(list).or_insert(0);
        *count = (index + 1).max(*count);
    }
    layers
}

/// A line on a terminal about what takes long.
struct Progress {
    all: u64,
    done: u64,
    next: u64,
    start: Instant,
    shown: bool,
}

impl Progress {
    fn of(weights: &[WeightData]) -> Self {
        let all = weights.iter().map(|weight| weight.bytes.length()).sum();
        Self { all, done: 0, next: 0, start: Instant::now(), shown: false }
    }

    /// The weight before is done.
    fn add(&mut self, weight: &WeightData) {
        self.done += std::mem::replace(&mut self.next, weight.bytes.length());
        if self.start.elapsed() > PATIENCE && std::io::stderr().is_terminal() {
            self.shown = true;
            eprint!("\rquantizing: {} %", self.done * 100 / self.all.max(1));
            // A terminal that is gone is no reason to stop.
            let _ = std::io::stderr().flush();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            eprintln!("\rquantizing: done");
        }
    }
}
