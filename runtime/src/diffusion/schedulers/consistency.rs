//! Sampling of consistency models: latent consistency (Luo et al., 2023, arXiv:2310.04378; `LCMScheduler`) and trajectory
//! consistency (Zheng et al., 2024, arXiv:2402.19159; `TCDScheduler`).

use super::config::SchedulerConfig;
use super::ddim::alpha_at;
use super::{Noise, Scheduler, clamp, combine, tables};
use crate::Result;

/// How much of each step of `TCDScheduler` is noise (`eta`), as pipelines have it.
const ETA: f32 = 0.3;
/// The standard deviation of the data that boundary conditions assume.
const SIGMA_DATA: f32 = 0.5;

/// `LCMScheduler`, or `TCDScheduler`.
#[derive(Clone, Debug)]
pub struct Consistency {
    config: SchedulerConfig,
    trajectory: bool,
    alphas_cumprod: Vec<f32>,
    timesteps: Vec<f64>,
}

impl Consistency {
    /// The scheduler of a configuration: of trajectories, or of consistency alone.
    pub fn new(config: SchedulerConfig, trajectory: bool) -> Self {
        let alphas_cumprod = tables::alphas_cumprod(&config);
        Self { config, trajectory, alphas_cumprod, timesteps: vec![] }
    }

    /// What is left of the sample at a timestep.
    fn alpha(&self, timestep: f64) -> f32 {
        alpha_at(&self.alphas_cumprod, timestep as i64, true)
    }
}

impl Scheduler for Consistency {
    fn set_timesteps(&mut self, steps: usize) -> Result<()> {
        let original = self.config.original_inference_steps.unwrap_or(50);
        if original == 0 || original > self.config.steps() {
            return Err(self.config.refuse("original_inference_steps", "is not among the training's steps"));
        }
        if steps > original {
            let problem = format!("is {original}, but {steps} steps are asked for");
            return Err(self.config.refuse("original_inference_steps", &problem));
        }
        let stride = self.config.steps() / original;
        let places =
            (0..steps).map(|index| (index as f64 * (original as f64 / steps as f64)).floor() as usize);
        self.timesteps = places.map(|place| ((original - place) * stride - 1) as f64).collect();
        Ok(())
    }

    fn timesteps(&self) -> &[f64] {
        &self.timesteps
    }

    fn step(&mut self, index: usize, output: &[f32], sample: &[f32], noise: Noise<'_>) -> Vec<f32> {
        let (timestep, last) = (self.timesteps[index], index + 1 == self.timesteps.len());
        let alpha = self.alpha(timestep);
        let shares = [alpha.sqrt(), (1.0 - alpha).sqrt()];
        let mut original = self.config.original(shares, output, sample);
        if self.trajectory {
            let next = self.timesteps.get(index + 1).copied().unwrap_or(0.0);
            let (next_alpha, middle) =
                (self.alpha(next), self.alpha(f64::from((1.0 - ETA) * next as f32).floor()));
            let epsilon = self.config.epsilon(shares, output, sample);
            let noised = combine(&[(middle.sqrt(), &original), ((1.0 - middle).sqrt(), &epsilon)]);
            if last {
                return noised;
            }
            let kept = next_alpha / middle;
            return combine(&[(kept.sqrt(), &noised), ((1.0 - kept).sqrt(), &noise(sample.len()))]);
        }
        if self.config.clip_sample.unwrap_or(false) {
            clamp(&mut original, self.config.clip_sample_range);
        }
        let scaled = timestep as f32 * self.config.timestep_scaling.unwrap_or(10.0) as f32;
        let square = scaled * scaled + SIGMA_DATA * SIGMA_DATA;
        let (skip, out) = (SIGMA_DATA * SIGMA_DATA / square, scaled / square.sqrt());
        let denoised = combine(&[(out, &original), (skip, sample)]);
        if last {
            return denoised;
        }
        let next = self.alpha(self.timesteps[index + 1]);
        combine(&[(next.sqrt(), &denoised), ((1.0 - next).sqrt(), &noise(sample.len()))])
    }

    fn noise_scales(&self, index: usize) -> (f32, f32) {
        let alpha = self.alpha(self.timesteps[index]);
        (alpha.sqrt(), (1.0 - alpha).sqrt())
    }
}
