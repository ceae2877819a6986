//! Pseudo numerical methods (Liu et al., 2022, arXiv:2202.09778; `PNDMScheduler`): Runge-Kutta steps, unless they are skipped, and
//! linear multistep ones.

use super::config::{PredictionType, SchedulerConfig, TimestepSpacing};
use super::ddim::alpha_at;
use super::{Noise, Scheduler, combine, tables};
use crate::Result;

/// `PNDMScheduler`.
#[derive(Clone, Debug)]
pub struct Pndm {
    config: SchedulerConfig,
    alphas_cumprod: Vec<f32>,
    timesteps: Vec<f64>,
    /// How many of the timesteps are of Runge-Kutta steps.
    runge_kutta: usize,
    stride: i64,
    counter: usize,
    /// The sum of a Runge-Kutta step's outputs so far.
    sum: Vec<f32>,
    kept: Vec<f32>,
    outputs: Vec<Vec<f32>>,
}

impl Pndm {
    /// The scheduler of a configuration.
    ///
    /// # Errors
    /// When the model predicts samples.
    pub fn new(config: SchedulerConfig) -> Result<Self> {
        if config.prediction_type == PredictionType::Sample {
            return Err(config.refuse("prediction_type", "`sample` is not supported by PNDMScheduler"));
        }
        let alphas_cumprod = tables::alphas_cumprod(&config);
        Ok(Self {
            config,
            alphas_cumprod,
            timesteps: vec![],
            runge_kutta: 0,
            stride: 1,
            counter: 0,
            sum: vec![],
            kept: vec![],
            outputs: vec![],
        })
    }

    /// A fourth-order Runge-Kutta step, of four outputs.
    fn runge_kutta(&mut self, output: &[f32], sample: &[f32]) -> Vec<f32> {
        let half = if self.counter.is_multiple_of(2) { self.stride / 2 } else { 0 };
        let previous = self.timesteps[self.counter] as i64 - half;
        let timestep = self.timesteps[self.counter / 4 * 4] as i64;
        let whole;
        let output = match self.counter % 4 {
            0 => {
                self.sum = combine(&[(1.0 / 6.0, output)]);
                self.outputs.push(output.to_vec());
                self.kept = sample.to_vec();
                output
            }
            3 => {
                whole = combine(&[(1.0, &self.sum), (1.0 / 6.0, output)]);
                &whole
            }
            _ => {
                self.sum = combine(&[(1.0, &self.sum), (1.0 / 3.0, output)]);
                output
            }
        };
        self.previous(&self.kept, timestep, previous, output)
    }

    /// A linear multistep step of up to fourth order.
    fn multistep(&mut self, index: usize, output: &[f32], sample: &[f32]) -> Vec<f32> {
        let mut timestep = self.timesteps[index] as i64;
        let mut previous = timestep - self.stride;
        if self.counter == 1 {
            (previous, timestep) = (timestep, timestep + self.stride);
        } else {
            self.outputs.drain(..self.outputs.len().saturating_sub(3));
            self.outputs.push(output.to_vec());
        }
        let kept = std::mem::take(&mut self.kept);
        let (output, sample) = match (self.outputs.as_slice(), self.counter) {
            ([_], 0) => {
                self.kept = sample.to_vec();
                (output.to_vec(), sample)
            }
            ([a], _) => (combine(&[(0.5, output), (0.5, a)]), &kept[..]),
            ([b, a], _) => (combine(&[(1.5, a), (-0.5, b)]), sample),
            ([c, b, a], _) => (combine(&[(23.0 / 12.0, a), (-16.0 / 12.0, b), (5.0 / 12.0, c)]), sample),
            ([.., d, c, b, a], _) => {
                let parts = [(55.0 / 24.0, a), (-59.0 / 24.0, b), (37.0 / 24.0, c), (-9.0 / 24.0, d)];
                (combine(&parts.map(|(factor, part)| (factor, &part[..]))), sample)
            }
            ([], _) => (output.to_vec(), sample),
        };
        self.previous(sample, timestep, previous, &output)
    }

    /// Equation 9 of the paper.
    fn previous(&self, sample: &[f32], timestep: i64, previous: i64, output: &[f32]) -> Vec<f32> {
        let one = self.config.set_alpha_to_one.unwrap_or(false);
        let alpha = alpha_at(&self.alphas_cumprod, timestep, one);
        let next = alpha_at(&self.alphas_cumprod, previous, one);
        let (beta, beta_next) = (1.0 - alpha, 1.0 - next);
        let velocity;
        let output = if self.config.prediction_type == PredictionType::VPrediction {
            velocity = combine(&[(alpha.sqrt(), output), (beta.sqrt(), sample)]);
            &velocity
        } else {
            output
        };
        let denominator = alpha * beta_next.sqrt() + (alpha * beta * next).sqrt();
        combine(&[((next / alpha).sqrt(), sample), (-(next - alpha) / denominator, output)])
    }
}

impl Scheduler for Pndm {
    fn set_timesteps(&mut self, steps: usize) -> Result<()> {
        let spacing = self.config.timestep_spacing.unwrap_or(TimestepSpacing::Leading);
        let spaced = tables::spaced(&self.config, spacing, steps).into_iter().map(f64::round_ties_even);
        let spaced: Vec<f64> = spaced.collect();
        self.stride = (self.config.steps() / steps) as i64;
        let half = (self.stride / 2) as f64;
        let mut timesteps = vec![];
        if self.config.skip_prk_steps {
            // The second is run twice.
            timesteps.extend(spaced.first());
            timesteps.extend(spaced.get(1));
            timesteps.extend(spaced.iter().skip(1));
        } else {
            // Four timesteps, each with one half a step later: the first and last alone, those between them twice.
            let four: Vec<f64> = spaced.iter().take(4).rev().flat_map(|&t| [t, t + half]).collect();
            let doubled: Vec<f64> =
                four[..four.len().saturating_sub(1)].iter().flat_map(|&t| [t, t]).collect();
            timesteps.extend(doubled[1..doubled.len().saturating_sub(1).max(1)].iter().rev());
            self.runge_kutta = timesteps.len();
            timesteps.extend(spaced.iter().skip(3));
        }
        self.timesteps = timesteps;
        (self.counter, self.outputs, self.kept, self.sum) = (0, vec![], vec![], vec![]);
        Ok(())
    }

    fn timesteps(&self) -> &[f64] {
        &self.timesteps
    }

    fn step(&mut self, index: usize, output: &[f32], sample: &[f32], _: Noise<'_>) -> Vec<f32> {
        let next = match self.counter < self.runge_kutta {
            true => self.runge_kutta(output, sample),
            false => self.multistep(index, output, sample),
        };
        self.counter += 1;
        next
    }

    fn noise_scales(&self, index: usize) -> (f32, f32) {
        let alpha = alpha_at(&self.alphas_cumprod, self.timesteps[index] as i64, true);
        (alpha.sqrt(), (1.0 - alpha).sqrt())
    }
}
