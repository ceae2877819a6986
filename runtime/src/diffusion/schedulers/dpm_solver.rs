//! DPM-Solver++ of first and second order, by multiple steps (Lu et al., 2022, arXiv:2211.01095; `DPMSolverMultistepScheduler`).

use super::config::{AlgorithmType, BetaSchedule, FinalSigmas, PredictionType};
use super::config::{SchedulerConfig, SolverType, TimestepSpacing};
use super::{Noise, Scheduler, combine, tables};
use crate::Result;

/// From fewer steps than this the last ones are of lower order.
const FEW: usize = 15;

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
        let alpha = 1.0 / (sigma * sigma + 1.0).sqrt();
        let noise = sigma * alpha;
        (alpha, noise, alpha.ln() - noise.ln())
    }

    /// The sample without noise that the output stands for.
    fn original(&self, index: usize, output: &[f32], sample: &[f32]) -> Vec<f32> {
        let (alpha, noise, _) = self.at(index);
        match self.config.prediction_type {
            PredictionType::Epsilon => combine(&[(1.0 / alpha, sample), (-noise / alpha, output)]),
            PredictionType::Sample => output.to_vec(),
            PredictionType::VPrediction => combine(&[(alpha, sample), (-noise, output)]),
        }
    }
}

impl Scheduler for DpmSolverMultistep {
    fn set_timesteps(&mut self, steps: usize) -> Result<()> {
        let spacing = self.config.timestep_spacing.unwrap_or(TimestepSpacing::Linspace);
        // One more than are run, of which the last is left out.
        let spaced = match spacing {
            TimestepSpacing::Trailing => tables::spaced(&self.config, spacing, steps),
            _ => tables::spaced(&self.config, spacing, steps + 1),
        };
        let whole = spaced.into_iter().take(steps).map(f64::round_ties_even);
        self.timesteps = whole.collect();
        let largest = f64::from(self.trained[self.trained.len() - 1]);
        let sigmas: Vec<f64> = match self.config.use_karras_sigmas {
            Some(true) => {
                let sigmas = tables::karras(&self.config, largest, self.trained[0].into(), steps);
                let timesteps = sigmas.iter().map(|&sigma| tables::timestep_of(sigma, &self.trained));
                let cosine = self.config.beta_schedule == BetaSchedule::SquaredcosCapV2;
                let whole = |t: f64| if cosine { t.trunc() } else { t.round_ties_even() };
                self.timesteps = timesteps.map(whole).collect();
                sigmas
            }
            _ => self.timesteps.iter().map(|&t| tables::interpolate(t, &self.trained)).collect(),
        };
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
        let original = self.original(index, output, sample);
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
                (SolverType::Midpoint, _) => 0.5 * alpha * gained,
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
