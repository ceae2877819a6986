//! Linear multistep method (Karras et al., 2022, arXiv:2206.00364; `LMSDiscreteScheduler`).

use std::collections::VecDeque;

use super::config::SchedulerConfig;
use super::{Noise, Scheduler, combine, tables};
use crate::Result;

/// How many slopes are remembered.
const ORDER: usize = 4;

/// `LMSDiscreteScheduler`.
#[derive(Clone, Debug)]
pub struct Lms {
    config: SchedulerConfig,
    trained: Vec<f32>,
    timesteps: Vec<f64>,
    sigmas: Vec<f32>,
    /// The last slopes, the newest first.
    slopes: VecDeque<Vec<f32>>,
}

impl Lms {
    /// The scheduler of a configuration.
    pub fn new(mut config: SchedulerConfig) -> Self {
        config.rescale_betas_zero_snr = false;
        let trained = tables::sigmas(&config);
        Self { config, trained, timesteps: vec![], sigmas: vec![], slopes: VecDeque::new() }
    }

    /// The share of each of the last slopes: the integrals of their Lagrange polynomials over the step.
    fn coefficients(&self, index: usize, order: usize) -> Vec<f32> {
        let at = |place: usize| f64::from(self.sigmas[place]);
        let (start, end) = (at(index), at(index + 1));
        let polynomial = |tau: f64, own: usize| -> f64 {
            let others = (0..order).filter(|&other| other != own);
            let factor = |other: usize| (tau - at(index - other)) / (at(index - own) - at(index - other));
            others.map(factor).product()
        };
        // Two points integrate a polynomial of third degree exactly.
        let points =
            [-1.0, 1.0].map(|side| (start + end) / 2.0 + side * (end - start) / 2.0 / 3.0_f64.sqrt());
        let integral =
            |own: usize| points.iter().map(|&tau| polynomial(tau, own)).sum::<f64>() * (end - start) / 2.0;
        (0..order).map(|own| integral(own) as f32).collect()
    }
}

impl Scheduler for Lms {
    fn set_timesteps(&mut self, steps: usize) -> Result<()> {
        let (timesteps, sigmas) = tables::single_step(&self.config, &self.trained, steps);
        self.timesteps = timesteps;
        self.sigmas = sigmas.into_iter().map(|sigma| sigma as f32).collect();
        self.sigmas.push(0.0);
        self.slopes.clear();
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

    fn step(&mut self, index: usize, output: &[f32], sample: &[f32], _: Noise<'_>) -> Vec<f32> {
        let sigma = self.sigmas[index];
        let original = self.config.original_of_sigma(sigma, output, sample);
        self.slopes.push_front(sample.iter().zip(&original).map(|(x, y)| (x - y) / sigma).collect());
        self.slopes.truncate(ORDER);
        // As many as there would be from the first step on; those that are not there have no share.
        let shares = self.coefficients(index, (index + 1).min(ORDER));
        let mut parts = vec![(1.0, sample)];
        parts.extend(shares.into_iter().zip(&self.slopes).map(|(share, slope)| (share, &slope[..])));
        combine(&parts)
    }

    fn noise_scales(&self, index: usize) -> (f32, f32) {
        (1.0, self.sigmas[index])
    }
}
