//! Weights that are quantized by the inputs that their layers were given, before any is written.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{sync, thread};

use super::Recipe;
use super::tensors::{finite, packed};
use crate::quantization::gptq::Inputs;
use crate::quantization::rounding::Rounding;
use crate::weights::Files;
use crate::{Error, Result};

/// The Gram matrices `xᵀ · x` of what some linear layers were given.
#[derive(Debug, Default)]
pub(crate) struct Grams {
    /// Weights by the names they are stored under, each with its matrix in `matrices`.
    pub weights: BTreeMap<String, String>,
    /// Matrices `[in, in]`.
    pub matrices: BTreeMap<String, Vec<f32>>,
}

/// The bytes of the tensors of weights that are quantized.
#[derive(Debug, Default)]
pub(super) struct Solved(BTreeMap<String, Vec<Vec<u8>>>);

impl Solved {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, weight: &str) -> Option<&[Vec<u8>]> {
        self.0.get(weight).map(Vec::as_slice)
    }

    /// Quantizes weights by GPTQ, as many at a time as there are cores; those of which no input was seen are left.
    pub(super) fn add(&mut self, files: &Files, grams: &Grams, recipe: Recipe) -> Result<()> {
        let all: Vec<(&String, &Vec<f32>)> = grams.matrices.iter().collect();
        let (next, made) = (AtomicUsize::new(0), Mutex::new(vec![]));
        let work = || {
            while let Some((name, gram)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                let Some(inputs) = Inputs::new(gram) else { continue };
                let weights = grams.weights.iter().filter(|(_, of)| of == name);
                for (weight, _) in weights {
                    let parts = one(files, weight, &inputs, recipe);
                    made.lock().unwrap_or_else(sync::PoisonError::into_inner).push((weight.clone(), parts));
                }
            }
        };
        let threads = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| (0..threads).for_each(|_| _ = scope.spawn(work)));
        for (weight, parts) in made.into_inner().unwrap_or_else(sync::PoisonError::into_inner) {
            self.0.insert(weight, parts?);
        }
        Ok(())
    }
}

/// The bytes of one weight's tensors.
fn one(files: &Files, name: &str, inputs: &Inputs, recipe: Recipe) -> Result<Vec<Vec<u8>>> {
    let refused =
        |problem: String| Error::weights(files.place(), problem, "look at what made it, or leave it out");
    let data = files.locate(name).map_err(refused)?;
    let values = data.dtype.decoded(&data.bytes.read()?);
    let Recipe { bits, group, symmetric } = recipe;
    let rounding = Rounding { bits, stored: bits, group, symmetric, search: false, scales: data.dtype };
    match inputs.codes(&values, rounding) {
        Some(made) => Ok(packed(&made, &data, recipe)),
        None => Err(refused(finite(name))),
    }
}
