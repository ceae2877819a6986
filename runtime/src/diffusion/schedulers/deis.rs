//! DEIS of first to third order, by multiple steps in log-rho (Zhang & Chen, 2022, arXiv:2204.13902; `DEISMultistepScheduler`).

use std::collections::VecDeque;

use super::config::SchedulerConfig;
use super::dpm_solver::{FEW, shares};
use super::{Noise, Scheduler, combine, tables};
use crate::Result;

/// `DEISMultistepScheduler`.
#[derive(Clone, Debug)]
pub struct Deis {
    config: SchedulerConfig,
    trained: Vec<f32>,
    timesteps: Vec<f64>,
    sigmas: Vec<f32>,
    /// The noise that was predicted at the last steps, the newest first.
    outputs: VecDeque<Vec<f32>>,
}

impl Deis {
    /// The scheduler of a configuration.
    ///
    /// # Errors
    /// When its order is none of 1, 2 and 3.
    pub fn new(mut config: SchedulerConfig) -> Result<Self> {
        if !matches!(config.solver_order.unwrap_or(2), 1..=3) {
            return Err(config.refuse("solver_order", "is none of 1, 2 and 3"));
        }
        config.rescale_betas_zero_snr = false;
        let trained = tables::sigmas(&config);
        Ok(Self { config, trained, timesteps: vec![], sigmas: vec![], outputs: VecDeque::new() })
    }
}

/// The share of one of two outputs: an integral up to `t`, where `own` is its noise and `other` that of the other.
fn second_order(t: f32, own: f32, other: f32) -> f32 {
    t * (-other.ln() + t.ln() - 1.0) / (own.ln() - other.ln())
}

/// The same of three.
fn third_order(t: f32, own: f32, [c, d]: [f32; 2]) -> f32 {
    let (log, c, d) = (t.ln(), c.ln(), d.ln());
    let numerator = t * (c * (d - log + 1.0) - d * log + d + log * log - 2.0 * log + 2.0);
    numerator / ((own.ln() - c) * (own.ln() - d))
}

impl Scheduler for Deis {
    fn set_timesteps(&mut self, steps: usize) -> Result<()> {
        let (timesteps, sigmas) = tables::multistep(&self.config, &self.trained, steps, f64::round_ties_even);
        self.timesteps = timesteps;
        self.sigmas = sigmas.into_iter().map(|sigma| sigma as f32).collect();
        let karras = self.config.use_karras_sigmas == Some(true);
        self.sigmas.push(if karras { self.sigmas[steps - 1] } else { self.trained[0] });
        self.outputs.clear();
        Ok(())
    }

    fn timesteps(&self) -> &[f64] {
        &self.timesteps
    }

    fn sigmas(&self) -> &[f32] {
        &self.sigmas
    }

    fn step(&mut self, index: usize, output: &[f32], sample: &[f32], _: Noise<'_>) -> Vec<f32> {
        let (alpha, noise, lambda) = shares(self.sigmas[index]);
        let original = self.config.original([alpha, noise], output, sample);
        self.outputs.push_front(combine(&[(1.0 / noise, sample), (-alpha / noise, &original)]));
        self.outputs.truncate(self.config.solver_order.unwrap_or(2));
        let steps = self.timesteps.len();
        let few = self.config.lower_order_final.unwrap_or(true) && steps < FEW;
        let order = if few { self.outputs.len().min(steps - index) } else { self.outputs.len() };
        let (alpha_next, noise_next, lambda_next) = shares(self.sigmas[index + 1]);
        let rho = |back: usize| {
            let (alpha, noise, _) = shares(self.sigmas[index - back]);
            noise / alpha
        };
        let (end, start) = (noise_next / alpha_next, noise / alpha);
        let between = |integral: &dyn Fn(f32) -> f32| integral(end) - integral(start);
        let gains = match order {
            1 => {
                let gain = -(noise_next * ((lambda_next - lambda).exp() - 1.0));
                return combine(&[(alpha_next / alpha, sample), (gain, &self.outputs[0])]);
            }
            2 => vec![
                between(&|t| second_order(t, rho(0), rho(1))),
                between(&|t| second_order(t, rho(1), rho(0))),
            ],
            _ => vec![
                between(&|t| third_order(t, rho(0), [rho(1), rho(2)])),
                between(&|t| third_order(t, rho(1), [rho(2), rho(0)])),
                between(&|t| third_order(t, rho(2), [rho(0), rho(1)])),
            ],
        };
        let mut parts = vec![(alpha_next / alpha, sample)];
        parts.extend(gains.iter().zip(&self.outputs).map(|(gain, output)| (alpha_next * gain, &output[..])));
        combine(&parts)
    }

    fn noise_scales(&self, index: usize) -> (f32, f32) {
        let (alpha, noise, _) = shares(self.sigmas[index]);
        (alpha, noise)
    }
}
