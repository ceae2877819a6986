//! DDIM (Song et al., 2020, arXiv:2010.02502; `DDIMScheduler`), without noise of its own (`eta` 0).

use super::config::{SchedulerConfig, TimestepSpacing};
use super::{Noise, Scheduler, clamp, combine, tables};
use crate::Result;

/// `DDIMScheduler`.
#[derive(Clone, Debug)]
pub struct Ddim {
    config: SchedulerConfig,
    alphas_cumprod: Vec<f32>,
    timesteps: Vec<f64>,
    stride: i64,
}

impl Ddim {
    /// The scheduler of a configuration.
    pub fn new(config: SchedulerConfig) -> Self {
        let alphas_cumprod = tables::alphas_cumprod(&config);
        Self { config, alphas_cumprod, timesteps: vec![], stride: 1 }
    }
}

/// What is left of the sample at a timestep; before the first one all of it, or what is left there (`set_alpha_to_one`).
pub(super) fn alpha_at(bars: &[f32], timestep: i64, one: bool) -> f32 {
    match usize::try_from(timestep) {
        Ok(index) => bars[index.min(bars.len() - 1)],
        Err(_) => {
            if one {
                1.0
            } else {
                bars[0]
            }
        }
    }
}

impl Scheduler for Ddim {
    fn set_timesteps(&mut self, steps: usize) -> Result<()> {
        let spacing = self.config.timestep_spacing.unwrap_or(TimestepSpacing::Leading);
        let spaced = tables::spaced(&self.config, spacing, steps);
        self.timesteps = spaced.into_iter().map(f64::round_ties_even).collect();
        self.stride = (self.config.steps() / steps) as i64;
        Ok(())
    }

    fn timesteps(&self) -> &[f64] {
        &self.timesteps
    }

    fn step(&mut self, index: usize, output: &[f32], sample: &[f32], _: Noise<'_>) -> Vec<f32> {
        let timestep = self.timesteps[index] as i64;
        let one = self.config.set_alpha_to_one.unwrap_or(true);
        let alpha = alpha_at(&self.alphas_cumprod, timestep, one);
        let next = alpha_at(&self.alphas_cumprod, timestep - self.stride, one);
        let (a, b) = (alpha.sqrt(), (1.0 - alpha).sqrt());
        let mut original = self.config.original([a, b], output, sample);
        let epsilon = self.config.epsilon([a, b], output, sample);
        if self.config.clip_sample.unwrap_or(true) {
            clamp(&mut original, self.config.clip_sample_range);
        }
        combine(&[(next.sqrt(), &original), ((1.0 - next).sqrt(), &epsilon)])
    }

    fn noise_scales(&self, index: usize) -> (f32, f32) {
        let alpha = alpha_at(&self.alphas_cumprod, self.timesteps[index] as i64, true);
        (alpha.sqrt(), (1.0 - alpha).sqrt())
    }
}
