//! Schedulers: which timesteps a denoiser is run at, and what becomes of its outputs, by `scheduler_config.json`. Each has the
//! name of the class of `diffusers` that it stands for.

mod config;
mod consistency;
mod ddim;
mod ddpm;
mod deis;
mod dpm_solver;
mod euler;
mod flow_match;
mod lms;
mod pndm;
mod second_order;
mod tables;
#[cfg(test)]
mod tests;
mod unipc;

use std::fmt::Debug;
use std::path::Path;

use serde_json::Value as Json;

pub use config::{
    AlgorithmType, BetaSchedule, FinalSigmas, PredictionType, SchedulerConfig, SolverType, TimestepSpacing,
};
pub use consistency::Consistency;
pub use ddim::Ddim;
pub use ddpm::Ddpm;
pub use deis::Deis;
pub use dpm_solver::DpmSolverMultistep;
pub use euler::Euler;
pub use flow_match::{FlowMatchEuler, Scm};
pub use lms::Lms;
pub use pndm::Pndm;
pub use second_order::SecondOrder;
pub(crate) use tables::linspace;
pub use unipc::UniPc;

use crate::{Error, Result};

/// What draws so many standard normal numbers.
pub type Noise<'a> = &'a mut dyn FnMut(usize) -> Vec<f32>;

/// How a pipeline spaces the sigmas that it gives a scheduler of flow matching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SigmaSpacing {
    /// From 1 down to one step's share, as Flux's.
    Even,
    /// The same, as differences of single precision from 1, as ERNIE-Image's.
    Remaining,
    /// Those of whole timesteps, which the denoiser is told whatever they are shifted by; that is the root of how many times the
    /// image's tokens are those of the base, as CogView4's.
    Whole,
    /// Even where they are shifted by the image's tokens, or else those of whole timesteps (`get_original_sigmas`), as BRIA's.
    Original,
}

/// A scheduler (`SchedulerMixin`). Steps are run one after the other, each by its index among the timesteps.
pub trait Scheduler: Debug + Send {
    /// How many tokens the image has, which sigmas are shifted by (`use_dynamic_shifting`); before
    /// [`Scheduler::set_timesteps`].
    fn set_image_tokens(&mut self, tokens: usize) {
        let _ = tokens;
    }
    /// What sigmas are shifted by (`mu`), in place of what the image's tokens give (`use_dynamic_shifting`); before
    /// [`Scheduler::set_timesteps`].
    fn set_shift(&mut self, shift: f64) {
        let _ = shift;
    }
    /// How sigmas are spaced before they are shifted, where a pipeline gives them (`sigmas`); before
    /// [`Scheduler::set_image_tokens`].
    fn set_sigmas(&mut self, spacing: SigmaSpacing) {
        let _ = spacing;
    }
    /// Begins anew, with so many steps.
    ///
    /// # Errors
    /// When the configuration allows no such number.
    fn set_timesteps(&mut self, steps: usize) -> Result<()>;
    /// What the denoiser is told at each of its runs.
    fn timesteps(&self) -> &[f64];
    /// The noise at each run, and after the last; empty for schedulers that know none.
    fn sigmas(&self) -> &[f32] {
        &[]
    }
    /// What the first noise is multiplied with.
    fn init_noise_sigma(&self) -> f32 {
        1.0
    }
    /// The standard deviation of the data, where timesteps are angles between it and the noise (`sigma_data`).
    fn sigma_data(&self) -> Option<f32> {
        None
    }
    /// How many runs a step takes.
    fn order(&self) -> usize {
        1
    }
    /// What the denoiser gets of a sample.
    fn scale_model_input(&self, index: usize, sample: &[f32]) -> Vec<f32> {
        let _ = index;
        sample.to_vec()
    }
    /// The next sample, from what the denoiser gave for this one.
    fn step(&mut self, index: usize, output: &[f32], sample: &[f32], noise: Noise<'_>) -> Vec<f32>;
    /// The shares of sample and noise at a timestep (`add_noise`).
    fn noise_scales(&self, index: usize) -> (f32, f32);
}

/// The scheduler that a `scheduler_config.json` names.
///
/// # Errors
/// When the file is none, names a class that is not here, or a field that is not supported.
pub fn read(json: &Json, path: &Path) -> Result<Box<dyn Scheduler>> {
    let (class, config) = SchedulerConfig::read(json, path)?;
    Ok(match class.as_str() {
        "DDIMScheduler" => Box::new(Ddim::new(config)),
        "PNDMScheduler" => Box::new(Pndm::new(config)?),
        "EulerDiscreteScheduler" => Box::new(Euler::new(config, false)?),
        "EulerAncestralDiscreteScheduler" => Box::new(Euler::new(config, true)?),
        "DPMSolverMultistepScheduler" => Box::new(DpmSolverMultistep::new(config)?),
        "DDPMScheduler" => Box::new(Ddpm::new(config)?),
        "LCMScheduler" => Box::new(Consistency::new(config, false)),
        "TCDScheduler" => Box::new(Consistency::new(config, true)),
        "HeunDiscreteScheduler" => Box::new(SecondOrder::new(config, false)?),
        "KDPM2DiscreteScheduler" => Box::new(SecondOrder::new(config, true)?),
        "LMSDiscreteScheduler" => Box::new(Lms::new(config)),
        "DEISMultistepScheduler" => Box::new(Deis::new(config)?),
        "UniPCMultistepScheduler" => Box::new(UniPc::new(config)?),
        "FlowMatchEulerDiscreteScheduler" => Box::new(FlowMatchEuler::new(config)?),
        "SCMScheduler" => Box::new(Scm::new(config)),
        other => {
            let help = "choose one of the DDIM, DDPM, PNDM, Euler, Euler ancestral, DPM-Solver multistep, UniPC, Heun, KDPM2, LMS, \
                        DEIS, LCM, TCD, flow matching Euler and SCM schedulers";
            return Err(Error::config(path, format!("`_class_name` is `{other}`, which is not here"), help));
        }
    })
}

/// The sum of vectors, each times its factor.
fn combine(parts: &[(f32, &[f32])]) -> Vec<f32> {
    let Some(((factor, first), rest)) = parts.split_first() else { return vec![] };
    let mut sum: Vec<f32> = first.iter().map(|x| factor * x).collect();
    for (factor, part) in rest {
        sum.iter_mut().zip(*part).for_each(|(sum, x)| *sum += factor * x);
    }
    sum
}

/// Clips a predicted sample (`clip_sample_range`).
fn clamp(sample: &mut [f32], range: Option<f64>) {
    let range = range.unwrap_or(1.0).abs() as f32;
    sample.iter_mut().for_each(|x| *x = x.clamp(-range, range));
}
