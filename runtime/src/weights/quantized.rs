//! Weights of files that are quantized: which tensors hold them, and what these stand for.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use safetensors::Dtype as Stored;

use super::{Files, Names, Problem, Shapes, WeightData, Weights, names};
use crate::Error;
use crate::graph::Weight;
use crate::weights::published::{self, Module};

impl Files {
    /// Refuses weights of which none is quantized as the configuration says: the reference would quantize them itself.
    pub(super) fn expect_codes(&self) -> crate::Result<()> {
        let Some(published) = &self.published else { return Ok(()) };
        if self.entries.keys().any(|name| self.is_codes(name) && published.format.module(name).is_some()) {
            return Ok(());
        }
        let problem = format!(
            "holds no quantized tensor, but the weights are said to be quantized by `{}`",
            published.format.name
        );
        let help = "fetch config.json and the weights of one checkpoint; or take out `quantization_config` to run these \
                    weights as they are";
        Err(Error::weights(&self.place, problem, help))
    }

    /// Whether some of the weights are quantized.
    pub(crate) fn are_quantized(&self) -> bool {
        self.published.is_some()
    }

    /// The tensor that holds the codes of a weight; none where it is not quantized.
    pub(super) fn codes(&self, weight: &str) -> Option<String> {
        self.published.as_ref()?.format.codes(weight, |name| self.is_codes(name))
    }

    /// What a checkpoint that says nothing of quantization holds in place of a weight.
    pub(super) fn unexplained(&self, weight: &str) -> Option<String> {
        match self.published {
            Some(_) => None,
            None => published::codes_of_any(weight, |name| self.is_codes(name)),
        }
    }

    fn is_codes(&self, name: &str) -> bool {
        const FLOATS: [Stored; 3] = [Stored::F32, Stored::F16, Stored::BF16];
        self.entries.get(name).is_some_and(|entry| !FLOATS.contains(&entry.stored))
    }

    /// The module of a tensor that belongs to a quantized weight.
    pub(super) fn module<'n>(&self, tensor: &'n str) -> Option<&'n str> {
        self.published.as_ref()?.format.module(tensor)
    }

    /// What the codes of a weight under this name, in these tensors, stand for.
    pub(super) fn decode(&self, weight: &Weight, name: &str, codes: String) -> Result<WeightData, String> {
        let Some(published) = &self.published else { return Err(format!("tensor `{codes}` is not read")) };
        self.decoded.get(&codes.clone(), || {
            let (stem, wanted) = (published::stem(name).to_owned(), &weight.shape);
            published::read(&Module {
                files: self,
                published,
                stem,
                codes,
                wanted,
                transposed: weight.transposed,
            })
        })
    }
}

impl Weights {
    /// Each weight; those that must be unpacked, dequantized or updated on all cores.
    pub(super) fn find_all(&self, wanted: &[Weight], names: &Names) -> Vec<Result<WeightData, Problem>> {
        let shapes: Shapes<'_> =
            wanted.iter().map(|weight| (weight.name.as_str(), weight.shape.as_slice())).collect();
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let made = matches!(self, Self::Files(files) if files.are_quantized() || files.are_updated());
        if threads == 1 || !made || cfg!(target_family = "wasm") {
            return wanted.iter().map(|weight| self.find(weight, names, &shapes)).collect();
        }
        let next = AtomicUsize::new(0);
        let found: Vec<_> = wanted.iter().map(|_| OnceLock::new()).collect();
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some((weight, into)) = {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        wanted.get(index).zip(found.get(index))
                    } {
                        let _ = into.set(self.find(weight, names, &shapes));
                    }
                });
            }
        });
        let missed = || Err(Problem::Misfit("a weight was not looked for".to_owned()));
        found.into_iter().map(|found| found.into_inner().unwrap_or_else(missed)).collect()
    }

    /// A quantized weight; none where it is not.
    pub(super) fn quantized(
        &self,
        weight: &Weight,
        names: &Names,
        shapes: &Shapes<'_>,
    ) -> Option<Result<WeightData, Problem>> {
        let Self::Files(files) = self else { return None };
        let found = |name: String| files.codes(&name).map(|codes| (name, codes));
        if let Some((name, codes)) = names::candidates(&weight.name, names).into_iter().find_map(found) {
            let decoded =
                files.decode(weight, &name, codes).and_then(|data| match data.shape == weight.shape {
                    true => Ok(data),
                    false => Err(format!(
                        "tensor `{}` stands for {:?}, but config.json asks for {:?}",
                        data.stored_as, data.shape, weight.shape
                    )),
                });
            return Some(decoded.map_err(Problem::Quantized));
        }
        let fused = names::fused(&weight.name, names).into_iter();
        let &[own, width] = weight.shape.as_slice() else { return None };
        let (name, codes, run) = fused
            .filter_map(|fused| fused.rows(own, shapes).map(|run| (fused.name, run)))
            .find_map(|(name, run)| found(name).map(|(name, codes)| (name, codes, run)))?;
        let rows = own / run.length.max(1) * run.of;
        let whole = Weight { shape: vec![rows, width], ..weight.clone() };
        let narrowed = |data: WeightData| WeightData {
            bytes: data.bytes.part(run),
            shape: weight.shape.clone(),
            ..data
        };
        Some(files.decode(&whole, &name, codes).map(narrowed).map_err(Problem::Quantized))
    }

    /// Why a weight is missing: because codes of a format that the configuration does not name are in its place, it may be.
    pub(super) fn missing(&self, weight: &Weight, names: &Names) -> Problem {
        let candidates = names::candidates(&weight.name, names).into_iter();
        let codes = match self {
            Self::Files(files) => candidates.filter_map(|name| files.unexplained(&name)).next(),
            Self::Gguf(_) | Self::Rule(_) => None,
        };
        let missing = format!("tensor `{}` {:?} is missing", weight.name, weight.shape);
        match codes {
            Some(codes) => {
                Problem::Dtype(format!("{missing}, and in its place is `{codes}`, which is quantized"))
            }
            None => Problem::Misfit(missing),
        }
    }
}
