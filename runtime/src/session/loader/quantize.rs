//! Writing a checkpoint again with its linear layers quantized.

use std::collections::BTreeSet;
use std::path::Path;

use super::{Loader, Loads, subgraph};
use crate::quantization::written::Writing;
use crate::quantization::{Recipe, Written};
use crate::session::Calibration;
use crate::{Architecture, GraphKind, Result};

impl<A: Architecture, T: Loads<A>> Loader<A, T> {
    /// Writes the checkpoint again with its linear layers quantized, as compressed-tensors has them, which the reference
    /// loads: all but heads, routers of experts and layers whose rows no whole groups make up. The tokenizer's, the
    /// processors' and all other files stand beside the weights. Whatever stops it, the folder is whole or not there.
    ///
    /// # Errors
    /// When the configuration is not the architecture's, a weight is missing, does not fit or is quantized already, the recipe
    /// is none, or the folder is there or cannot be written.
    pub fn quantize(&self, recipe: Recipe, out: &Path) -> Result<Written> {
        self.writing(recipe, out)?.finish()
    }

    /// As [`Loader::quantize`], by GPTQ: codes are such that linear layers err least in what they give for the inputs of a model
    /// that `run` loads with the [`Loader::calibration`] that it is given, and runs on texts, images or whatever the model is
    /// for; some hundred are enough. It is called again where there is not the memory to look at all layers at once, and must
    /// run on the same inputs. Layers that see none are rounded to nearest, as those of experts.
    ///
    /// # Errors
    /// As [`Loader::quantize`] and `run`, and when nothing was run.
    pub fn quantize_calibrated(
        &self,
        recipe: Recipe,
        out: &Path,
        run: &mut dyn FnMut(&Calibration) -> Result<()>,
    ) -> Result<Written> {
        let mut writing = self.writing(recipe, out)?;
        let calibration = Calibration::new(writing.quantized().clone());
        loop {
            run(&calibration)?;
            let (grams, again) = calibration.take()?;
            writing.calibrate(&grams)?;
            if !again {
                return writing.finish();
            }
        }
    }

    fn writing(&self, recipe: Recipe, out: &Path) -> Result<Writing> {
        let (_, config, head, weights) = self.read()?;
        let graph = subgraph::built::<A>(&config, head, GraphKind::Forward, Some(&weights), self.choices())?;
        weights.locate(graph.weights(), &A::NAMES)?;
        let stored = |name: &str| weights.stored_as(name, &A::NAMES);
        let linear: BTreeSet<String> =
            graph.linear_weights(A::NAMES.base_model_prefix).into_iter().filter_map(stored).collect();
        Writing::new(&self.checkpoint, &linear, recipe, out)
    }
}
