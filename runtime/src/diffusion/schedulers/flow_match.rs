//! Euler's method of flow matching (Esser et al., 2024, arXiv:2403.03206; `FlowMatchEulerDiscreteScheduler`), and sampling of
//! continuous-time consistency models (Lu & Song, 2024, arXiv:2410.11081; `SCMScheduler`).

use super::config::SchedulerConfig;
use super::{Noise, Scheduler, SigmaSpacing, combine, tables};
use crate::Result;

/// `FlowMatchEulerDiscreteScheduler`: sigmas are the share of noise in the sample, from 1 down to 0.
#[derive(Clone, Debug)]
pub struct FlowMatchEuler {
    config: SchedulerConfig,
    timesteps: Vec<f64>,
    sigmas: Vec<f32>,
    shift: Option<f64>,
    spacing: Option<SigmaSpacing>,
}

impl FlowMatchEuler {
    /// The scheduler of a configuration.
    ///
    /// # Errors
    /// When it shifts by a number of tokens in a way that is not known.
    pub fn new(config: SchedulerConfig) -> Result<Self> {
        if !matches!(config.time_shift_type.as_deref(), None | Some("exponential" | "linear")) {
            return Err(config.refuse("time_shift_type", "is neither exponential nor linear"));
        }
        Ok(Self { config, timesteps: vec![], sigmas: vec![], shift: None, spacing: None })
    }

    /// How far sigmas are shifted for so many tokens (`calculate_shift`).
    fn token_shift(&self, tokens: usize) -> f64 {
        let config = &self.config;
        let (base, max) =
            (config.base_image_seq_len.unwrap_or(256), config.max_image_seq_len.unwrap_or(4096));
        let (low, high) = (config.base_shift.unwrap_or(0.5), config.max_shift.unwrap_or(1.15));
        if self.spacing == Some(SigmaSpacing::Whole) {
            return (tokens as f64 / base as f64).sqrt() * high + low;
        }
        let slope = (high - low) / (max as f64 - base as f64);
        tokens as f64 * slope + (low - slope * base as f64)
    }

    /// A sigma, shifted by what the number of tokens gives (`time_shift`).
    fn dynamically_shifted(&self, sigma: f64, mu: f64) -> f64 {
        let factor = if self.config.time_shift_type.as_deref() == Some("linear") { mu } else { mu.exp() };
        if self.spacing.is_none() {
            return factor / (factor + (1.0 / sigma - 1.0));
        }
        // As the reference, whose sigmas are then of single precision.
        let (factor, sigma) = (factor as f32, sigma as f32);
        f64::from(factor / (factor + (1.0 / sigma - 1.0)))
    }

    fn shifted(&self, sigma: f64) -> f64 {
        let shift = self.config.shift.unwrap_or(1.0);
        if self.spacing.is_none() {
            return shift * sigma / (1.0 + (shift - 1.0) * sigma);
        }
        let (sigma, shift, less) = (sigma as f32, shift as f32, (shift - 1.0) as f32);
        f64::from(shift * sigma / (1.0 + less * sigma))
    }

    /// Sigmas before they are shifted by the number of tokens, or a second time.
    fn spaced(&self, steps: usize, dynamic: bool) -> Vec<f64> {
        let trained = self.config.steps() as f64;
        let even = || tables::linspace_double(1.0, 1.0 / steps as f64, steps);
        let single = |timestep: f64| f64::from(timestep as f32 / trained as f32);
        match self.spacing {
            Some(SigmaSpacing::Even) => return even(),
            Some(SigmaSpacing::Original) if dynamic => return even(),
            Some(SigmaSpacing::Original) => {
                let places = tables::linspace_double(0.0, trained - 1.0, steps);
                return places.into_iter().map(|place| single(trained - place.trunc())).collect();
            }
            Some(SigmaSpacing::Whole) => return self.whole(steps).into_iter().map(single).collect(),
            Some(SigmaSpacing::Remaining) => {
                let sigmas = tables::linspace(1.0, 0.0, steps + 1);
                return sigmas.into_iter().take(steps).map(f64::from).collect();
            }
            None => {}
        }
        // The first and the last of the training's; where sigmas are not shifted by tokens, these are shifted already.
        let end = |timestep: f32| {
            let (shift, sigma) = (self.config.shift.unwrap_or(1.0), timestep / trained as f32);
            let shifted = shift as f32 * sigma / (1.0 + (shift - 1.0) as f32 * sigma);
            f64::from(if dynamic { sigma } else { shifted }) * trained
        };
        let timesteps = tables::linspace_double(end(trained as f32), end(1.0), steps);
        timesteps.into_iter().map(|timestep| timestep / trained).collect()
    }

    /// Whole timesteps, evenly from the last to the first.
    fn whole(&self, steps: usize) -> Vec<f64> {
        let timesteps = tables::linspace_double(self.config.steps() as f64, 1.0, steps);
        timesteps.into_iter().map(f64::trunc).collect()
    }
}

impl Scheduler for FlowMatchEuler {
    fn set_image_tokens(&mut self, tokens: usize) {
        self.shift = Some(self.token_shift(tokens));
    }

    fn set_shift(&mut self, shift: f64) {
        self.shift = Some(shift);
    }

    fn set_sigmas(&mut self, spacing: SigmaSpacing) {
        self.spacing = Some(spacing);
    }

    fn set_timesteps(&mut self, steps: usize) -> Result<()> {
        let trained = self.config.steps() as f64;
        let dynamic = self.config.use_dynamic_shifting == Some(true);
        let spaced = self.spaced(steps, dynamic).into_iter();
        let mut sigmas: Vec<f64> = match (dynamic, self.shift) {
            (true, None) => {
                return Err(self
                    .config
                    .refuse("use_dynamic_shifting", "needs the number of the image's tokens"));
            }
            (true, Some(shift)) => spaced.map(|sigma| self.dynamically_shifted(sigma, shift)).collect(),
            (false, _) => spaced.map(|sigma| self.shifted(sigma)).collect(),
        };
        if let (Some(terminal), Some(&last)) =
            (self.config.shift_terminal.filter(|&end| end != 0.0), sigmas.last())
        {
            // Sigmas that the pipeline spaces are of single precision from here on, too.
            let rounded = |x: f64| if self.spacing.is_some() { f64::from(x as f32) } else { x };
            let scale = rounded(rounded(1.0 - last) / rounded(1.0 - terminal));
            sigmas
                .iter_mut()
                .for_each(|sigma| *sigma = rounded(1.0 - rounded(rounded(1.0 - *sigma) / scale)));
        }
        if self.config.use_karras_sigmas == Some(true) {
            sigmas = tables::karras(&self.config, sigmas[0], sigmas[steps - 1], steps);
        }
        let inverted = self.config.invert_sigmas;
        self.sigmas =
            sigmas.iter().map(|&sigma| if inverted { 1.0 - sigma as f32 } else { sigma as f32 }).collect();
        self.timesteps = match self.spacing {
            Some(SigmaSpacing::Whole) if !inverted => self.whole(steps),
            _ => self.sigmas.iter().map(|sigma| f64::from(sigma * trained as f32)).collect(),
        };
        self.sigmas.push(if inverted { 1.0 } else { 0.0 });
        Ok(())
    }

    fn timesteps(&self) -> &[f64] {
        &self.timesteps
    }

    fn sigmas(&self) -> &[f32] {
        &self.sigmas
    }

    fn step(&mut self, index: usize, output: &[f32], sample: &[f32], noise: Noise<'_>) -> Vec<f32> {
        let (sigma, next) = (self.sigmas[index], self.sigmas[index + 1]);
        if !self.config.stochastic_sampling {
            return combine(&[(1.0, sample), (next - sigma, output)]);
        }
        let original = combine(&[(1.0, sample), (-sigma, output)]);
        combine(&[(1.0 - next, &original), (next, &noise(sample.len()))])
    }

    fn noise_scales(&self, index: usize) -> (f32, f32) {
        (1.0 - self.sigmas[index], self.sigmas[index])
    }
}

/// `SCMScheduler`: timesteps are angles between sample and noise.
#[derive(Clone, Debug)]
pub struct Scm {
    config: SchedulerConfig,
    timesteps: Vec<f64>,
}

impl Scm {
    /// The scheduler of a configuration.
    pub fn new(config: SchedulerConfig) -> Self {
        Self { config, timesteps: vec![] }
    }

    fn deviation(&self) -> f32 {
        self.config.sigma_data.unwrap_or(0.5) as f32
    }
}

impl Scheduler for Scm {
    fn set_timesteps(&mut self, steps: usize) -> Result<()> {
        #[allow(clippy::approx_constant, reason = "the reference rounds it so")]
        const MOST: f64 = 1.57080;
        let angles = match steps {
            2 => vec![MOST as f32, 1.3],
            _ => tables::linspace(MOST, 0.0, steps + 1),
        };
        self.timesteps = angles.into_iter().take(steps).map(f64::from).collect();
        Ok(())
    }

    fn timesteps(&self) -> &[f64] {
        &self.timesteps
    }

    fn step(&mut self, index: usize, output: &[f32], sample: &[f32], noise: Noise<'_>) -> Vec<f32> {
        let angle = self.timesteps[index] as f32;
        let next = self.timesteps.get(index + 1).copied().unwrap_or(0.0) as f32;
        let original = combine(&[(angle.cos(), sample), (-angle.sin(), output)]);
        let noise = noise(sample.len());
        let scale = self.deviation();
        combine(&[(next.cos(), &original), (next.sin() * scale, &noise)])
    }

    fn sigma_data(&self) -> Option<f32> {
        Some(self.deviation())
    }

    fn noise_scales(&self, index: usize) -> (f32, f32) {
        let angle = self.timesteps[index] as f32;
        (angle.cos(), angle.sin())
    }
}
