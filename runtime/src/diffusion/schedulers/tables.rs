//! Tables of noise, as PyTorch and NumPy round them: betas, their products, spaced timesteps, interpolated sigmas.

use super::config::{BetaSchedule, SchedulerConfig, TimestepSpacing};

/// `torch.linspace` of f32: from both ends towards the middle, with fused products and sums.
pub(crate) fn linspace(start: f64, end: f64, count: usize) -> Vec<f32> {
    let (start, end) = (start as f32, end as f32);
    if count < 2 {
        return vec![start; count];
    }
    let step = (end - start) / (count - 1) as f32;
    let at = |index: usize| match index < count / 2 {
        true => step.mul_add(index as f32, start),
        false => (-step).mul_add((count - 1 - index) as f32, end),
    };
    (0..count).map(at).collect()
}

/// `numpy.linspace` of doubles.
pub(super) fn linspace_double(start: f64, end: f64, count: usize) -> Vec<f64> {
    let step = (end - start) / count.saturating_sub(1).max(1) as f64;
    let mut values: Vec<f64> = (0..count).map(|index| index as f64 * step + start).collect();
    if let (Some(last), true) = (values.last_mut(), count > 1) {
        *last = end;
    }
    values
}

/// `numpy.arange(start, 0, -step)`.
pub(super) fn arange_down(start: usize, step: f64) -> Vec<f64> {
    let start = start as f64;
    let delta = (start - step) - start;
    let count = (start / step).ceil().max(0.0) as usize;
    (0..count).map(|index| start + index as f64 * delta).collect()
}

/// `numpy.interp` over 0, 1, 2 …
pub(super) fn interpolate(x: f64, values: &[f32]) -> f64 {
    let last = values.len() - 1;
    if x >= last as f64 {
        return values[last].into();
    }
    let low = x.max(0.0) as usize;
    let (a, b) = (f64::from(values[low]), f64::from(values[low + 1]));
    (b - a) * (x - low as f64) + a
}

/// The variance of the noise of each training step (`betas`).
fn betas(config: &SchedulerConfig) -> Vec<f32> {
    let (start, end) = (config.beta_start.unwrap_or(0.0001), config.beta_end.unwrap_or(0.02));
    let steps = config.steps();
    let betas = match (&config.trained_betas, config.beta_schedule) {
        (Some(betas), _) => betas.clone(),
        (None, BetaSchedule::Linear) => linspace(start, end, steps),
        (None, BetaSchedule::ScaledLinear) => {
            linspace(start.sqrt(), end.sqrt(), steps).into_iter().map(|root| root * root).collect()
        }
        (None, BetaSchedule::SquaredcosCapV2) => {
            let bar = |t: f64| ((t + 0.008) / 1.008 * std::f64::consts::PI / 2.0).cos().powi(2);
            let at = |index: usize| index as f64 / steps as f64;
            let beta = |index| (1.0 - bar(at(index + 1)) / bar(at(index))).min(0.999);
            (0..steps).map(|index| beta(index) as f32).collect()
        }
    };
    if config.rescale_betas_zero_snr { zero_terminal_snr(&betas) } else { betas }
}

/// Betas after which nothing is left of the sample (`rescale_zero_terminal_snr`; arXiv:2305.08891, algorithm 1).
fn zero_terminal_snr(betas: &[f32]) -> Vec<f32> {
    let mut roots: Vec<f32> = cumulative(betas).into_iter().map(f32::sqrt).collect();
    let (first, last) = (roots[0], roots[roots.len() - 1]);
    roots.iter_mut().for_each(|root| *root = (*root - last) * (first / (first - last)));
    let bars: Vec<f32> = roots.into_iter().map(|root| root * root).collect();
    let alphas = std::iter::once(bars[0]).chain(bars.windows(2).map(|pair| pair[1] / pair[0]));
    alphas.map(|alpha| 1.0 - alpha).collect()
}

/// `torch.cumprod` of `1 - beta`: accumulated in double precision.
fn cumulative(betas: &[f32]) -> Vec<f32> {
    let product = betas.iter().scan(1.0, |product, beta| {
        *product *= f64::from(1.0 - beta);
        Some(*product as f32)
    });
    product.collect()
}

/// How much is left of the sample after each training step (`alphas_cumprod`).
pub(super) fn alphas_cumprod(config: &SchedulerConfig) -> Vec<f32> {
    cumulative(&betas(config))
}

/// How much noise there is for one of the sample after each training step; where nothing is left of it, of a trace.
pub(super) fn sigmas(config: &SchedulerConfig) -> Vec<f32> {
    let mut bars = alphas_cumprod(config);
    if let (Some(last), true) = (bars.last_mut(), config.rescale_betas_zero_snr) {
        *last = 2_f32.powi(-24);
    }
    bars.into_iter().map(|bar| ((1.0 - bar) / bar).sqrt()).collect()
}

/// `count` timesteps, the noisiest first (`timestep_spacing`); not yet whole numbers where they are spaced evenly.
pub(super) fn spaced(config: &SchedulerConfig, spacing: TimestepSpacing, count: usize) -> Vec<f64> {
    let (steps, offset) = (config.steps(), config.steps_offset as f64);
    match spacing {
        TimestepSpacing::Linspace => {
            linspace_double(0.0, (steps - 1) as f64, count).into_iter().rev().collect()
        }
        TimestepSpacing::Leading => {
            let step = steps / count;
            (0..count).rev().map(|index| (index * step) as f64 + offset).collect()
        }
        TimestepSpacing::Trailing => {
            let step = steps as f64 / count as f64;
            arange_down(steps, step).into_iter().map(|t| t.round_ties_even() - 1.0).collect()
        }
    }
}

/// The sigmas of Karras et al. (arXiv:2206.00364, equation 5), between the largest and the smallest of these.
pub(super) fn karras(config: &SchedulerConfig, largest: f64, smallest: f64, count: usize) -> Vec<f64> {
    const RHO: f64 = 7.0;
    let (low, high) = (config.sigma_min.unwrap_or(smallest), config.sigma_max.unwrap_or(largest));
    let (low, high) = (low.powf(1.0 / RHO), high.powf(1.0 / RHO));
    let ramp = linspace_double(0.0, 1.0, count);
    ramp.into_iter().map(|ramp| (high + ramp * (low - high)).powf(RHO)).collect()
}

/// Timesteps of single precision and their sigmas, as methods of one step have them (`EulerDiscreteScheduler`).
pub(super) fn single_step(config: &SchedulerConfig, trained: &[f32], steps: usize) -> (Vec<f64>, Vec<f64>) {
    let single = |t: f64| f64::from(t as f32);
    let spacing = config.timestep_spacing.unwrap_or(TimestepSpacing::Linspace);
    let timesteps: Vec<f64> = spaced(config, spacing, steps).into_iter().map(single).collect();
    let sigmas: Vec<f64> = timesteps.iter().map(|&t| interpolate(t, trained)).collect();
    if config.use_karras_sigmas != Some(true) {
        return (timesteps, sigmas);
    }
    let sigmas = karras(config, sigmas[0], sigmas[steps - 1], steps);
    (sigmas.iter().map(|&sigma| single(timestep_of(sigma, trained))).collect(), sigmas)
}

/// Whole timesteps and their sigmas, as methods of multiple steps have them (`DPMSolverMultistepScheduler`).
pub(super) fn multistep(
    config: &SchedulerConfig,
    trained: &[f32],
    steps: usize,
    whole: fn(f64) -> f64,
) -> (Vec<f64>, Vec<f64>) {
    if config.use_karras_sigmas == Some(true) {
        let sigmas = karras(config, trained[trained.len() - 1].into(), trained[0].into(), steps);
        return (sigmas.iter().map(|&sigma| whole(timestep_of(sigma, trained))).collect(), sigmas);
    }
    let spacing = config.timestep_spacing.unwrap_or(TimestepSpacing::Linspace);
    // One more than are run, of which the last is left out.
    let more = usize::from(spacing != TimestepSpacing::Trailing);
    let spaced = spaced(config, spacing, steps + more).into_iter().take(steps);
    let timesteps: Vec<f64> = spaced.map(f64::round_ties_even).collect();
    let sigmas = timesteps.iter().map(|&t| interpolate(t, trained)).collect();
    (timesteps, sigmas)
}

/// What the first noise is multiplied with, where samples have all of themselves and `sigma` noise.
pub(super) fn init_noise_sigma(config: &SchedulerConfig, sigmas: &[f32]) -> f32 {
    let most = sigmas.iter().copied().fold(0.0, f32::max);
    let leading = config.timestep_spacing == Some(TimestepSpacing::Leading);
    if leading { (most * most + 1.0).sqrt() } else { most }
}

/// A sample with `sigma` noise, divided by its standard deviation.
pub(super) fn scaled_input(sigma: f32, sample: &[f32]) -> Vec<f32> {
    let divisor = (sigma * sigma + 1.0).sqrt();
    sample.iter().map(|x| x / divisor).collect()
}

/// The timestep of a sigma, between two of the training's (`_sigma_to_t`).
pub(super) fn timestep_of(sigma: f64, sigmas: &[f32]) -> f64 {
    let log = sigma.max(1e-10).ln();
    let logs = |index: usize| f64::from(sigmas[index].ln());
    let above = sigmas.iter().filter(|&&known| log >= f64::from(known.ln())).count();
    let low = above.saturating_sub(1).min(sigmas.len().saturating_sub(2));
    let (a, b) = (logs(low), logs((low + 1).min(sigmas.len() - 1)));
    let weight = ((a - log) / (a - b)).clamp(0.0, 1.0);
    (1.0 - weight) * low as f64 + weight * (low + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_diffusion_ends_with_little_of_the_sample() {
        let config = SchedulerConfig {
            beta_start: Some(0.00085),
            beta_end: Some(0.012),
            beta_schedule: BetaSchedule::ScaledLinear,
            ..SchedulerConfig::default()
        };
        let bars = alphas_cumprod(&config);
        assert_eq!((bars.len(), bars[999]), (1000, 0.004_660_095));
        let zero = alphas_cumprod(&SchedulerConfig { rescale_betas_zero_snr: true, ..config });
        assert_eq!(zero[999], 0.0);
    }

    #[test]
    fn ten_steps_are_spaced_in_three_ways() {
        let config = SchedulerConfig { steps_offset: 1, ..SchedulerConfig::default() };
        let spaced = |spacing| spaced(&config, spacing, 10);
        let ends = |steps: Vec<f64>| (steps[0], steps[1], steps[9]);
        assert_eq!(ends(spaced(TimestepSpacing::Leading)), (901.0, 801.0, 1.0));
        assert_eq!(ends(spaced(TimestepSpacing::Trailing)), (999.0, 899.0, 99.0));
        assert_eq!(ends(spaced(TimestepSpacing::Linspace)), (999.0, 888.0, 0.0));
    }

    #[test]
    fn sigmas_are_interpolated_and_found_again() {
        let sigmas = [0.5, 1.0, 4.0];
        assert_eq!(interpolate(1.5, &sigmas), 2.5);
        assert_eq!((interpolate(0.0, &sigmas), interpolate(7.0, &sigmas)), (0.5, 4.0));
        assert!((timestep_of(2.0, &sigmas) - 1.5).abs() < 1e-6);
        assert_eq!((timestep_of(0.1, &sigmas), timestep_of(9.0, &sigmas)), (0.0, 2.0));
        let karras = karras(&SchedulerConfig::default(), 4.0, 0.5, 3);
        assert!((karras[0] - 4.0).abs() < 1e-12 && (karras[2] - 0.5).abs() < 1e-12 && karras[1] > 1.0);
    }
}
