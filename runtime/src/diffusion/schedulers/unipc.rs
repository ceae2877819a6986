//! UniPC: a predictor and a corrector by multiple steps (Zhao et al., 2023, arXiv:2302.04867; `UniPCMultistepScheduler`).

use std::collections::VecDeque;

use super::config::{FinalSigmas, SchedulerConfig, SolverType};
use super::dpm_solver::shares;
use super::{Noise, Scheduler, combine, tables};
use crate::Result;

/// `UniPCMultistepScheduler`.
#[derive(Clone, Debug)]
pub struct UniPc {
    config: SchedulerConfig,
    trained: Vec<f32>,
    timesteps: Vec<f64>,
    sigmas: Vec<f32>,
    /// What was predicted at the last steps, the newest first.
    outputs: VecDeque<Vec<f32>>,
    /// The sample at the beginning of the step before, and the order of that step.
    before: Option<(Vec<f32>, usize)>,
}

impl UniPc {
    /// The scheduler of a configuration.
    ///
    /// # Errors
    /// When its order is none of 1, 2 and 3.
    pub fn new(config: SchedulerConfig) -> Result<Self> {
        if !matches!(config.solver_order.unwrap_or(2), 1..=3) {
            return Err(config.refuse("solver_order", "is none of 1, 2 and 3"));
        }
        if config.solver_p.is_some() {
            return Err(config.refuse("solver_p", "is not supported"));
        }
        let trained = tables::sigmas(&config);
        let (timesteps, sigmas) = (vec![], vec![]);
        Ok(Self { config, trained, timesteps, sigmas, outputs: VecDeque::new(), before: None })
    }

    /// Whether samples are predicted, and not noise.
    fn predicts_samples(&self) -> bool {
        self.config.predict_x0.unwrap_or(true)
    }

    /// The sample after the step from one of the sigmas to the next (`multistep_uni_p_bh_update`, and with what is predicted
    /// there `multistep_uni_c_bh_update`).
    fn update(&self, from: usize, sample: &[f32], order: usize, corrected: Option<&[f32]>) -> Vec<f32> {
        let (alpha, sigma, lambda) = shares(self.sigmas[from + 1]);
        let (alpha_from, sigma_from, lambda_from) = shares(self.sigmas[from]);
        let h = lambda - lambda_from;
        let hh = if self.predicts_samples() { -h } else { h };
        let gain = hh.exp_m1();
        let scale = if self.config.solver_type == SolverType::Bh1 { hh } else { gain };
        let ratio = |back: usize| (shares(self.sigmas[from - back]).2 - lambda_from) / h;
        let mut ratios: Vec<f32> = (1..order).map(ratio).collect();
        let (mut phi, mut factorial, mut targets) = (gain / hh - 1.0, 1.0, vec![]);
        for power in 1..=order {
            targets.push(phi * factorial / scale);
            factorial *= power as f32 + 1.0;
            phi = phi / hh - 1.0 / factorial;
        }
        ratios.push(1.0);
        let weights = match (order, corrected) {
            (1, None) => vec![],
            (2, None) | (1, Some(_)) => vec![0.5],
            (_, None) => solve(&ratios[..order - 1], &targets[..order - 1]),
            (_, Some(_)) => solve(&ratios, &targets),
        };
        let (kept, share) = match self.predicts_samples() {
            true => (sigma / sigma_from, alpha),
            false => (alpha / alpha_from, sigma),
        };
        let newest = &self.outputs[0];
        let mut parts = vec![(kept, sample), (-share * gain, &newest[..])];
        for (index, ratio) in ratios[..order - 1].iter().enumerate() {
            let weight = -share * scale * weights[index] / ratio;
            parts.extend([(weight, &self.outputs[index + 1][..]), (-weight, &newest[..])]);
        }
        if let (Some(corrected), Some(weight)) = (corrected, weights.last()) {
            let weight = -share * scale * weight;
            parts.extend([(weight, corrected), (-weight, &newest[..])]);
        }
        combine(&parts)
    }
}

/// x of the equations `sum(x[k] * ratios[k] ** row) = targets[row]`.
fn solve(ratios: &[f32], targets: &[f32]) -> Vec<f32> {
    let count = targets.len();
    let row = |power: usize| -> Vec<f64> {
        let powers = ratios.iter().map(|ratio| f64::from(*ratio).powi(power as i32));
        powers.chain([f64::from(targets[power])]).collect()
    };
    let mut rows: Vec<Vec<f64>> = (0..count).map(row).collect();
    for column in 0..count {
        let size = |row: &usize| rows[*row][column].abs();
        let pivot = (column..count).max_by(|a, b| size(a).total_cmp(&size(b))).unwrap_or(column);
        rows.swap(column, pivot);
        let pivot = rows[column].clone();
        for (index, row) in rows.iter_mut().enumerate() {
            if index != column {
                let factor = row[column] / pivot[column];
                row.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= factor * p);
            }
        }
    }
    rows.iter().enumerate().map(|(index, row)| (row[count] / row[index]) as f32).collect()
}

impl Scheduler for UniPc {
    fn set_timesteps(&mut self, steps: usize) -> Result<()> {
        let (timesteps, sigmas) = tables::multistep(&self.config, &self.trained, steps, f64::round_ties_even);
        self.timesteps = timesteps;
        self.sigmas = sigmas.into_iter().map(|sigma| sigma as f32).collect();
        self.sigmas.push(match (self.config.final_sigmas_type, self.config.use_karras_sigmas) {
            (FinalSigmas::Zero, _) => 0.0,
            (FinalSigmas::SigmaMin, Some(true)) => self.sigmas[steps - 1],
            (FinalSigmas::SigmaMin, _) => self.trained[0],
        });
        self.outputs.clear();
        self.before = None;
        Ok(())
    }

    fn timesteps(&self) -> &[f64] {
        &self.timesteps
    }

    fn sigmas(&self) -> &[f32] {
        &self.sigmas
    }

    fn step(&mut self, index: usize, output: &[f32], sample: &[f32], _: Noise<'_>) -> Vec<f32> {
        let (alpha, sigma, _) = shares(self.sigmas[index]);
        let output = match self.predicts_samples() {
            true => self.config.original([alpha, sigma], output, sample),
            false => self.config.epsilon([alpha, sigma], output, sample),
        };
        let disabled = |index| self.config.disable_corrector.contains(&index);
        let sample = match self.before.take() {
            Some((before, order)) if !disabled(index - 1) => {
                self.update(index - 1, &before, order, Some(&output))
            }
            _ => sample.to_vec(),
        };
        let order = self.config.solver_order.unwrap_or(2);
        self.outputs.push_front(output);
        self.outputs.truncate(order);
        let lower = self.config.lower_order_final.unwrap_or(true);
        let left = if lower { self.timesteps.len() - index } else { order };
        let order = left.min(self.outputs.len());
        let next = self.update(index, &sample, order, None);
        self.before = Some((sample, order));
        next
    }

    fn noise_scales(&self, index: usize) -> (f32, f32) {
        let (alpha, noise, _) = shares(self.sigmas[index]);
        (alpha, noise)
    }
}

#[cfg(test)]
mod tests {
    use super::solve;

    #[test]
    fn equations_of_powers_are_solved() {
        // x + y = 3 and 2x - y = 0.
        assert_eq!(solve(&[2.0, -1.0], &[3.0, 0.0]), [1.0, 2.0]);
        assert_eq!(solve(&[7.0], &[0.5]), [0.5]);
    }
}
