//! Euler's method over sigmas (Karras et al., 2022, arXiv:2206.00364; `EulerDiscreteScheduler`), and with ancestral sampling
//! (`EulerAncestralDiscreteScheduler`).

use super::config::{FinalSigmas, PredictionType, SchedulerConfig};
use super::{Noise, Scheduler, combine, tables};
use crate::Result;

/// `EulerDiscreteScheduler`, or `EulerAncestralDiscreteScheduler`.
#[derive(Clone, Debug)]
pub struct Euler {
    config: SchedulerConfig,
    ancestral: bool,
    trained: Vec<f32>,
    timesteps: Vec<f64>,
    sigmas: Vec<f32>,
}

impl Euler {
    /// The scheduler of a configuration.
    ///
    /// # Errors
    /// When the model predicts samples, or betas are rescaled to a terminal signal-to-noise ratio of zero.
    pub fn new(config: SchedulerConfig, ancestral: bool) -> Result<Self> {
        if config.prediction_type == PredictionType::Sample {
            return Err(config.refuse("prediction_type", "`sample` is not supported by Euler's method"));
        }
        if config.rescale_betas_zero_snr {
            // One unit in the last place of a sigma of 4096 is 2e-5 of the first step.
            return Err(config.refuse("rescale_betas_zero_snr", "is not supported by Euler's method yet"));
        }
        let trained = tables::sigmas(&config);
        Ok(Self { config, ancestral, trained, timesteps: vec![], sigmas: vec![] })
    }
}

impl Scheduler for Euler {
    fn set_timesteps(&mut self, steps: usize) -> Result<()> {
        let mut config = self.config.clone();
        if self.ancestral {
            // Ancestral sampling knows no other sigmas.
            (config.final_sigmas_type, config.use_karras_sigmas) = (FinalSigmas::Zero, None);
        }
        let last = config.final_sigmas_type;
        let (timesteps, sigmas) = tables::single_step(&config, &self.trained, steps);
        self.timesteps = timesteps;
        self.sigmas = sigmas.into_iter().map(|sigma| sigma as f32).collect();
        self.sigmas.push(if last == FinalSigmas::Zero { 0.0 } else { self.trained[0] });
        Ok(())
    }

    fn timesteps(&self) -> &[f64] {
        &self.timesteps
    }

    fn sigmas(&self) -> &[f32] {
        &self.sigmas
    }

    fn init_noise_sigma(&self) -> f32 {
        tables::init_noise_sigma(&self.config, &self.sigmas)
    }

    fn scale_model_input(&self, index: usize, sample: &[f32]) -> Vec<f32> {
        tables::scaled_input(self.sigmas[index], sample)
    }

    fn step(&mut self, index: usize, output: &[f32], sample: &[f32], noise: Noise<'_>) -> Vec<f32> {
        let (sigma, next) = (self.sigmas[index], self.sigmas[index + 1]);
        let original = self.config.original_of_sigma(sigma, output, sample);
        let slope: Vec<f32> = sample.iter().zip(&original).map(|(x, y)| (x - y) / sigma).collect();
        if !self.ancestral {
            return combine(&[(1.0, sample), (next - sigma, &slope)]);
        }
        let up = (next * next * (sigma * sigma - next * next) / (sigma * sigma)).sqrt();
        let down = (next * next - up * up).sqrt();
        let noise = noise(sample.len());
        combine(&[(1.0, sample), (down - sigma, &slope), (up, &noise)])
    }

    fn noise_scales(&self, index: usize) -> (f32, f32) {
        (1.0, self.sigmas[index])
    }
}
