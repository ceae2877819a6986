//! Inverse frequencies, computed in single precision as the reference does.

use std::f64::consts::PI;

use super::{RopeParameters, RopeScaling};

/// How fast each pair of a head turns, and what cosines and sines are multiplied by.
#[derive(Clone, Debug, PartialEq)]
pub struct Frequencies {
    /// Radians per position, one for each pair.
    pub inverse: Vec<f32>,
    /// Multiplies cosines and sines.
    pub attention_factor: f64,
}

impl RopeParameters {
    /// The frequencies of texts of a length, for heads of this size; of short texts where no length is given.
    ///
    /// `max_position_embeddings` is the configuration's: it stands for the original length where that is not given.
    pub fn frequencies(
        &self,
        head_size: usize,
        max_position_embeddings: usize,
        length: Option<usize>,
    ) -> Frequencies {
        let width = self.width(head_size);
        let theta = self.rope_theta;
        let original = |given: &Option<usize>| given.unwrap_or(max_position_embeddings);
        let ratio = |given: &Option<usize>| max_position_embeddings as f64 / original(given) as f64;
        let mut attention_factor = 1.0;
        let inverse = match &self.scaling {
            RopeScaling::Default => plain(theta, width),
            RopeScaling::None => vec![0.0; width / 2],
            RopeScaling::Linear { factor } => over(plain(theta, width), *factor),
            RopeScaling::Dynamic { alpha: Some(alpha), .. } => {
                plain(theta * alpha.powf(width as f64 / (width as f64 - 2.0)), width)
            }
            RopeScaling::Dynamic { factor, alpha: None } => {
                let most = max_position_embeddings as f64;
                let length = length.unwrap_or_default().max(max_position_embeddings) as f64;
                let stretch = factor * length / most - (factor - 1.0);
                let exponent = width as f64 / (width as f64 - 2.0);
                plain(theta * stretch.powf(exponent), width)
            }
            RopeScaling::Yarn {
                factor,
                original_max_position_embeddings: given,
                attention_factor: attention,
                beta_fast,
                beta_slow,
                mscale,
                mscale_all_dim,
                truncate,
            } => {
                let factor = factor.unwrap_or_else(|| ratio(given));
                attention_factor = attention.unwrap_or_else(|| match (mscale, mscale_all_dim) {
                    (Some(one), Some(all)) if *one != 0.0 && *all != 0.0 => {
                        magnitude(factor, *one) / magnitude(factor, *all)
                    }
                    _ => magnitude(factor, 1.0),
                });
                let beta =
                    |beta: &Option<f64>, standard: f64| beta.filter(|beta| *beta != 0.0).unwrap_or(standard);
                let [low, high] = [beta(beta_fast, 32.0), beta(beta_slow, 1.0)].map(|rotations| {
                    let original = original(given) as f64;
                    width as f64 * (original / (rotations * 2.0 * PI)).ln() / (2.0 * theta.ln())
                });
                let (low, high) =
                    if truncate.unwrap_or(true) { (low.floor(), high.ceil()) } else { (low, high) };
                ramp(theta, width, factor, low.max(0.0), high.min(width as f64 - 1.0))
            }
            RopeScaling::Longrope {
                short_factor,
                long_factor,
                factor,
                original_max_position_embeddings: given,
                attention_factor: attention,
                short_mscale,
                long_mscale,
            } => {
                let factor = factor.unwrap_or_else(|| ratio(given));
                let long = length.is_some_and(|length| length > original(given));
                let mscale = if long { long_mscale } else { short_mscale };
                attention_factor = mscale.or(*attention).unwrap_or_else(|| match factor <= 1.0 {
                    true => 1.0,
                    false => (1.0 + factor.ln() / (original(given) as f64).ln()).sqrt(),
                });
                let factors = if long { long_factor } else { short_factor };
                powers(theta, width)
                    .zip(factors)
                    .map(|(power, factor)| 1.0 / (*factor as f32 * power))
                    .collect()
            }
            RopeScaling::Llama3 {
                factor,
                low_freq_factor,
                high_freq_factor,
                original_max_position_embeddings: given,
            } => {
                let original = original(given) as f32;
                let (low, high) = (*low_freq_factor as f32, *high_freq_factor as f32);
                let stretched = |inverse: f32| {
                    let wavelength = (2.0 * PI) as f32 / inverse;
                    if wavelength > original / low {
                        return inverse / *factor as f32;
                    }
                    if wavelength < original / high {
                        return inverse;
                    }
                    let smooth = (original / wavelength - low) / (high - low);
                    (1.0 - smooth) * inverse / *factor as f32 + smooth * inverse
                };
                plain(theta, width).into_iter().map(stretched).collect()
            }
            RopeScaling::Proportional { factor } => {
                let turning = (self.partial_rotary_factor * head_size as f64 / 2.0).floor() as usize;
                let inverse = plain(theta, head_size).into_iter().enumerate();
                let inverse = inverse.map(|(pair, inverse)| if pair < turning { inverse } else { 0.0 });
                over(inverse.collect(), factor.unwrap_or(1.0))
            }
        };
        Frequencies { inverse, attention_factor }
    }
}

/// `theta^(2·pair / width)` for each pair.
fn powers(theta: f64, width: usize) -> impl Iterator<Item = f32> {
    (0..width).step_by(2).map(move |index| (theta as f32).powf(index as f32 / width as f32))
}

fn plain(theta: f64, width: usize) -> Vec<f32> {
    powers(theta, width).map(|power| 1.0 / power).collect()
}

fn over(inverse: Vec<f32>, factor: f64) -> Vec<f32> {
    inverse.into_iter().map(|inverse| inverse / factor as f32).collect()
}

/// Pairs up to `low` keep their frequency, those from `high` on have it divided by the factor.
fn ramp(theta: f64, width: usize, factor: f64, low: f64, high: f64) -> Vec<f32> {
    let high = if low == high { high + 0.001 } else { high };
    let blend = |(pair, power): (usize, f32)| {
        let stretched = ((pair as f32 - low as f32) / (high - low) as f32).clamp(0.0, 1.0);
        let kept = 1.0 - stretched;
        1.0 / (factor as f32 * power) * (1.0 - kept) + 1.0 / power * kept
    };
    powers(theta, width).enumerate().map(blend).collect()
}

/// What attention is sharpened by where texts are `factor` times as long.
fn magnitude(factor: f64, scale: f64) -> f64 {
    if factor <= 1.0 { 1.0 } else { 0.1 * scale * factor.ln() + 1.0 }
}
