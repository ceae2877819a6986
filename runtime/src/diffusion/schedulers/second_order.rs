//! Methods of second order that run the denoiser twice a step (Karras et al., 2022, arXiv:2206.00364): Heun's
//! (`HeunDiscreteScheduler`) and the midpoint's of DPM-Solver-2 (`KDPM2DiscreteScheduler`).

use super::config::{PredictionType, SchedulerConfig};
use super::{Noise, Scheduler, clamp, combine, tables};
use crate::Result;

/// `HeunDiscreteScheduler`, or `KDPM2DiscreteScheduler`. Every second run is at the end of a step, or in its middle.
#[derive(Clone, Debug)]
pub struct SecondOrder {
    config: SchedulerConfig,
    midpoint: bool,
    trained: Vec<f32>,
    timesteps: Vec<f64>,
    /// The noise at the beginning of each step and at its end.
    sigmas: Vec<f32>,
    /// The noise at the second run of each step: of Heun's method that at its end, else the logarithmic mean.
    second: Vec<f32>,
    /// The sample at the beginning of the step, and the slope there.
    begun: Option<(Vec<f32>, Vec<f32>)>,
}

impl SecondOrder {
    /// The scheduler of a configuration: the midpoint's, or Heun's.
    ///
    /// # Errors
    /// When the model predicts samples, which the midpoint's does not take.
    pub fn new(mut config: SchedulerConfig, midpoint: bool) -> Result<Self> {
        if midpoint && config.prediction_type == PredictionType::Sample {
            return Err(
                config.refuse("prediction_type", "`sample` is not supported by KDPM2DiscreteScheduler")
            );
        }
        config.rescale_betas_zero_snr = false;
        let trained = tables::sigmas(&config);
        let (timesteps, sigmas, second) = (vec![], vec![], vec![]);
        Ok(Self { config, midpoint, trained, timesteps, sigmas, second, begun: None })
    }
}

/// The first once, all others twice.
fn twice<T: Copy>(values: &[T]) -> Vec<T> {
    let others = values.iter().skip(1).flat_map(|&value| [value; 2]);
    values.first().copied().into_iter().chain(others).collect()
}

impl Scheduler for SecondOrder {
    fn set_timesteps(&mut self, steps: usize) -> Result<()> {
        let (mut timesteps, sigmas) = tables::single_step(&self.config, &self.trained, steps);
        let mut sigmas: Vec<f32> = sigmas.into_iter().map(|sigma| sigma as f32).collect();
        sigmas.push(0.0);
        self.begun = None;
        if !self.midpoint {
            self.timesteps = twice(&timesteps);
            self.sigmas = twice(&sigmas[..steps]);
            self.sigmas.push(0.0);
            self.second = self.sigmas.clone();
            return Ok(());
        }
        if self.config.use_karras_sigmas == Some(true) {
            timesteps.iter_mut().for_each(|t| *t = t.round_ties_even());
        }
        let middle = |index: usize| match index {
            0 => 0.0,
            _ => {
                let (a, b) = (sigmas[index].ln(), sigmas[index - 1].ln());
                (b - (b - a) * 0.5).exp()
            }
        };
        let middles: Vec<f32> = (0..=steps).map(middle).collect();
        self.timesteps = twice(&timesteps);
        for (step, middle) in middles.iter().enumerate().take(steps).skip(1) {
            let timestep = tables::timestep_of(f64::from(*middle), &self.trained);
            self.timesteps[2 * step - 1] = f64::from(timestep as f32);
        }
        (self.sigmas, self.second) = (twice(&sigmas), twice(&middles));
        self.sigmas.push(0.0);
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

    fn order(&self) -> usize {
        2
    }

    fn scale_model_input(&self, index: usize, sample: &[f32]) -> Vec<f32> {
        let sigma = if index.is_multiple_of(2) { self.sigmas[index] } else { self.second[index] };
        tables::scaled_input(sigma, sample)
    }

    fn step(&mut self, index: usize, output: &[f32], sample: &[f32], _: Noise<'_>) -> Vec<f32> {
        let begun = if index.is_multiple_of(2) { None } else { self.begun.take() };
        let sigma = if begun.is_none() { self.sigmas[index] } else { self.second[index] };
        let mut original = self.config.original_of_sigma(sigma, output, sample);
        if !self.midpoint && self.config.clip_sample.unwrap_or(false) {
            clamp(&mut original, self.config.clip_sample_range);
        }
        let mut slope: Vec<f32> = sample.iter().zip(&original).map(|(x, y)| (x - y) / sigma).collect();
        let Some((start, first)) = begun else {
            let next = combine(&[(1.0, sample), (self.second[index + 1] - sigma, &slope)]);
            self.begun = Some((sample.to_vec(), slope));
            return next;
        };
        if !self.midpoint {
            slope.iter_mut().zip(&first).for_each(|(slope, first)| *slope = (first + *slope) / 2.0);
        }
        combine(&[(1.0, &start), (self.sigmas[index] - self.sigmas[index - 1], &slope)])
    }

    fn noise_scales(&self, index: usize) -> (f32, f32) {
        (1.0, self.sigmas[index])
    }
}
