//! Euler's method over sigmas (Karras et al., 2022, arXiv:2206.00364; `EulerDiscreteScheduler`), and with ancestral sampling
//! (`EulerAncestralDiscreteScheduler`).

use super::config::{FinalSigmas, PredictionType, SchedulerConfig, TimestepSpacing};
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

    fn spacing(&self) -> TimestepSpacing {
        self.config.timestep_spacing.unwrap_or(TimestepSpacing::Linspace)
    }
}

impl Scheduler for Euler {
    fn set_timesteps(&mut self, steps: usize) -> Result<()> {
        let single = |t: f64| f64::from(t as f32);
        let spaced = tables::spaced(&self.config, self.spacing(), steps);
        self.timesteps = spaced.into_iter().map(single).collect();
        let sigmas = self.timesteps.iter().map(|&t| tables::interpolate(t, &self.trained));
        let mut sigmas: Vec<f64> = sigmas.collect();
        // Ancestral sampling knows no other sigmas.
        let (mut last, mut karras) =
            (self.config.final_sigmas_type, self.config.use_karras_sigmas == Some(true));
        if self.ancestral {
            (last, karras) = (FinalSigmas::Zero, false);
        }
        if karras {
            sigmas = tables::karras(&self.config, sigmas[0], sigmas[steps - 1], steps);
            let timesteps = sigmas.iter().map(|&sigma| single(tables::timestep_of(sigma, &self.trained)));
            self.timesteps = timesteps.collect();
        }
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
        let most = self.sigmas.iter().copied().fold(0.0, f32::max);
        if self.spacing() == TimestepSpacing::Leading { (most * most + 1.0).sqrt() } else { most }
    }

    fn scale_model_input(&self, index: usize, sample: &[f32]) -> Vec<f32> {
        let sigma = self.sigmas[index];
        let divisor = (sigma * sigma + 1.0).sqrt();
        sample.iter().map(|x| x / divisor).collect()
    }

    fn step(&mut self, index: usize, output: &[f32], sample: &[f32], noise: Noise<'_>) -> Vec<f32> {
        let (sigma, next) = (self.sigmas[index], self.sigmas[index + 1]);
        let square = sigma * sigma + 1.0;
        let original = match self.config.prediction_type {
            PredictionType::VPrediction => {
                combine(&[(-sigma / square.sqrt(), output), (1.0 / square, sample)])
            }
            _ => combine(&[(1.0, sample), (-sigma, output)]),
        };
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
