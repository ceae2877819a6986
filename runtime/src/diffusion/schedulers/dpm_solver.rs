//! DPM-Solver++ of first and second order, by multiple steps (Lu et al., 2022, arXiv:2211.01095; `DPMSolverMultistepScheduler`).

use super::config::{AlgorithmType, BetaSchedule, FinalSigmas, SchedulerConfig, SolverType};
use super::{Noise, Scheduler, combine, tables};
use crate::Result;

/// From fewer steps than this the last ones are of lower order.
pub(super) const FEW: usize = 15;

/// `DPMSolverMultistepScheduler`.
#[derive(Clone, Debug)]
pub struct DpmSolverMultistep {
    config: SchedulerConfig,
    trained: Vec<f32>,
    timesteps: Vec<f64>,
    sigmas: Vec<f32>,
    /// The sample that the step before predicted.
    before: Option<Vec<f32>>,
}

impl DpmSolverMultistep {
    /// The scheduler of a configuration.
    ///
    /// # Errors
    /// When its order is neither 1 nor 2.
    pub fn new(config: SchedulerConfig) -> Result<Self> {
        if !matches!(config.solver_order.unwrap_or(2), 1 | 2) {
            return Err(config.refuse("solver_order", "is neither 1 nor 2"));
        }
        let trained = tables::sigmas(&config);
        Ok(Self { config, trained, timesteps: vec![], sigmas: vec![], before: None })
    }

    /// The shares of sample and noise, and the logarithm of their ratio, at one of the sigmas.
    fn at(&self, index: usize) -> (f32, f32, f32) {
        let sigma = self.sigmas[index];
        if self.config.use_flow_sigmas != Some(true) {
            return shares(sigma);
        }
        let alpha = 1.0 - sigma;
        (alpha, sigma, alpha.ln() - sigma.ln())
    }

    /// Timesteps and sigmas of flow matching (`use_flow_sigmas`), the share of noise in the sample.
    fn flow(&self, steps: usize) -> (Vec<f64>, Vec<f64>) {
        let (trained, shift) = (self.config.steps() as f64, self.config.flow_shift.unwrap_or(1.0));
        let spaced = tables::linspace_double(1.0, 1.0 / trained, steps + 1);
        let shifted = |alpha: &f64| shift * (1.0 - alpha) / (1.0 + (shift - 1.0) * (1.0 - alpha));
        let sigmas: Vec<f64> = spaced.iter().rev().take(steps).map(shifted).collect();
        (sigmas.iter().map(|sigma| (sigma * trained).trunc()).collect(), sigmas)
    }
}

/// The shares of sample and noise, and the logarithm of their ratio.
pub(super) fn shares(sigma: f32) -> (f32, f32, f32) {
    let alpha = 1.0 / (sigma * sigma + 1.0).sqrt();
    let noise = sigma * alpha;
    (alpha, noise, alpha.ln() - noise.ln())
}

impl Scheduler for DpmSolverMultistep {
    fn set_timesteps(&mut self, steps: usize) -> Result<()> {
        let cosine = self.config.beta_schedule == BetaSchedule::SquaredcosCapV2;
        let whole = if cosine { f64::trunc } else { f64::round_ties_even };
        let (timesteps, sigmas) = match self.config.use_flow_sigmas {
            Some(true) => self.flow(steps),
            _ => tables::multistep(&self.config, &self.trained, steps, whole),
        };
        self.timesteps = timesteps;
        self.sigmas = sigmas.into_iter().map(|sigma| sigma as f32).collect();
        let zero = self.config.final_sigmas_type == FinalSigmas::Zero;
        self.sigmas.push(if zero { 0.0 } else { self.trained[0] });
        self.before = None;
        Ok(())
    }

    fn timesteps(&self) -> &[f64] {
        &self.timesteps
    }

    fn sigmas(&self) -> &[f32] {
        &self.sigmas
    }

    fn step(&mut self, index: usize, output: &[f32], sample: &[f32], noise: Noise<'_>) -> Vec<f32> {
        let last = self.timesteps.len() - 1;
        let few = self.config.lower_order_final.unwrap_or(true) && last + 1 < FEW;
        let zero = self.config.final_sigmas_type == FinalSigmas::Zero;
        let lower = index == last && (self.config.euler_at_final || few || zero);
        let (alpha, noise_share, _) = self.at(index);
        let original = self.config.original([alpha, noise_share], output, sample);
        let before = self.before.replace(original.clone());
        let (alpha, sigma, lambda) = self.at(index + 1);
        let (_, sigma_before, lambda_before) = self.at(index);
        let h = lambda - lambda_before;
        let stochastic = self.config.algorithm_type == AlgorithmType::SdeDpmSolverPlusPlus;
        let noise = if stochastic { noise(sample.len()) } else { vec![] };
        let kept = (-h).exp();
        // 1 - e^-h, of the stochastic equation 1 - e^-2h.
        let gained = if stochastic { 1.0 - (-2.0 * h).exp() } else { 1.0 - kept };
        let shrunk = sigma / sigma_before * if stochastic { kept } else { 1.0 };
        let mut parts = vec![(shrunk, sample), (alpha * gained, &original[..])];
        let slope;
        if let (Some(before), 2, false) = (&before, self.config.solver_order.unwrap_or(2), lower) {
            let (.., lambda_first) = self.at(index - 1);
            let ratio = (lambda_before - lambda_first) / h;
            slope = combine(&[(1.0 / ratio, &original), (-1.0 / ratio, before)]);
            let weight = match (self.config.solver_type, stochastic) {
                (SolverType::Midpoint | SolverType::Bh1, _) => 0.5 * alpha * gained,
                (SolverType::Heun, false) => alpha * (-gained / h + 1.0),
                (SolverType::Heun, true) => alpha * (gained / (-2.0 * h) + 1.0),
            };
            parts.push((weight, &slope));
        }
        if stochastic {
            parts.push((sigma * gained.sqrt(), &noise));
        }
        combine(&parts)
    }

    fn noise_scales(&self, index: usize) -> (f32, f32) {
        let (alpha, noise, _) = self.at(index);
        (alpha, noise)
    }
}
