//! DDPM (Ho et al., 2020, arXiv:2006.11239; `DDPMScheduler`).

use super::config::{SchedulerConfig, TimestepSpacing};
use super::ddim::alpha_at;
use super::{Noise, Scheduler, clamp, combine, tables};
use crate::Result;

/// `DDPMScheduler`.
#[derive(Clone, Debug)]
pub struct Ddpm {
    config: SchedulerConfig,
    alphas_cumprod: Vec<f32>,
    timesteps: Vec<f64>,
}

impl Ddpm {
    /// The scheduler of a configuration.
    ///
    /// # Errors
    /// When its variance is of a kind that the reference has no number for.
    pub fn new(config: SchedulerConfig) -> Result<Self> {
        if !matches!(config.variance_type(), "fixed_small" | "fixed_small_log" | "fixed_large") {
            return Err(
                config.refuse("variance_type", "is neither fixed_small, fixed_small_log nor fixed_large")
            );
        }
        let alphas_cumprod = tables::alphas_cumprod(&config);
        Ok(Self { config, alphas_cumprod, timesteps: vec![] })
    }
}

impl Scheduler for Ddpm {
    fn set_timesteps(&mut self, steps: usize) -> Result<()> {
        let spacing = self.config.timestep_spacing.unwrap_or(TimestepSpacing::Leading);
        let spaced = tables::spaced(&self.config, spacing, steps);
        self.timesteps = spaced.into_iter().map(f64::round_ties_even).collect();
        Ok(())
    }

    fn timesteps(&self) -> &[f64] {
        &self.timesteps
    }

    fn step(&mut self, index: usize, output: &[f32], sample: &[f32], noise: Noise<'_>) -> Vec<f32> {
        let alpha = alpha_at(&self.alphas_cumprod, self.timesteps[index] as i64, true);
        let previous = self.timesteps.get(index + 1).map_or(-1, |&t| t as i64);
        let next = alpha_at(&self.alphas_cumprod, previous, true);
        let (left, left_next) = (1.0 - alpha, 1.0 - next);
        let step_alpha = alpha / next;
        let beta = 1.0 - step_alpha;
        let mut original = self.config.original([alpha.sqrt(), left.sqrt()], output, sample);
        if self.config.clip_sample.unwrap_or(true) {
            clamp(&mut original, self.config.clip_sample_range);
        }
        let original_share = next.sqrt() * beta / left;
        let sample_share = step_alpha.sqrt() * left_next / left;
        let mean = [(original_share, &original[..]), (sample_share, sample)];
        if self.timesteps[index] <= 0.0 {
            return combine(&mean);
        }
        let variance = match self.config.variance_type() {
            "fixed_large" => beta,
            _ => (left_next / left * beta).max(1e-20),
        };
        let noise = noise(sample.len());
        combine(&[mean[0], mean[1], (variance.sqrt(), &noise)])
    }

    fn noise_scales(&self, index: usize) -> (f32, f32) {
        let alpha = alpha_at(&self.alphas_cumprod, self.timesteps[index] as i64, true);
        (alpha.sqrt(), (1.0 - alpha).sqrt())
    }
}
