//! What only drawing uses: the tokens to draw among.

use super::{IMPOSSIBLE, Processor, Row};
use crate::generation::config::GenerationConfig;
use crate::generation::distribution::{ascending_indices, descending, entropy, log_softmax, softmax, top};

/// The reference's default.
const TOP_K: usize = 50;
/// The most tokens whose entropy `top_h` looks at.
const TOP_H: usize = 100;

/// The warpers of a configuration, in the reference's order.
pub(super) fn warpers(config: &GenerationConfig) -> Vec<Box<dyn Processor>> {
    let mut list: Vec<Box<dyn Processor>> = Vec::new();
    // Beams need one token beside those that end the text.
    let keep = match config.num_beams() {
        1 => 1,
        _ => config.eos_token_ids().len().max(1) + 1,
    };
    if let Some(temperature) = config.temperature.filter(|temperature| *temperature != 1.0) {
        list.push(Box::new(Temperature(temperature as f32)));
    }
    if let Some(share) = config.top_h {
        list.push(Box::new(TopH(share as f32)));
    }
    let top_k = config.top_k.unwrap_or(TOP_K);
    if top_k > 0 {
        list.push(Box::new(TopK(top_k.max(keep))));
    }
    if let Some(share) = config.top_p.filter(|share| *share < 1.0) {
        list.push(Box::new(TopP { share, keep }));
    }
    if let Some(share) = config.min_p {
        list.push(Box::new(MinP { share: share as f32, keep }));
    }
    if let Some(share) = config.typical_p.filter(|share| *share < 1.0) {
        list.push(Box::new(Typical { share: share as f32, keep }));
    }
    let cutoff = |cutoff: Option<f64>| cutoff.filter(|cutoff| *cutoff > 0.0 && *cutoff < 1.0);
    if let Some(epsilon) = cutoff(config.epsilon_cutoff) {
        list.push(Box::new(Cutoff { epsilon: epsilon as f32, follows_entropy: false, keep }));
    }
    if let Some(epsilon) = cutoff(config.eta_cutoff) {
        list.push(Box::new(Cutoff { epsilon: epsilon as f32, follows_entropy: true, keep }));
    }
    list
}

/// Reference: `TemperatureLogitsWarper`.
struct Temperature(f32);

impl Processor for Temperature {
    fn process(&self, _: Row<'_>, scores: &mut [f32]) {
        scores.iter_mut().for_each(|score| *score /= self.0);
    }
}

/// Reference: `TopKLogitsWarper`.
struct TopK(usize);

impl Processor for TopK {
    fn process(&self, _: Row<'_>, scores: &mut [f32]) {
        let least = nth(scores, self.0);
        for score in scores.iter_mut().filter(|score| **score < least) {
            *score = IMPOSSIBLE;
        }
    }
}

/// The `k`th highest score, or the lowest where there are fewer.
fn nth(scores: &[f32], k: usize) -> f32 {
    let mut sorted = scores.to_vec();
    let index = k.clamp(1, sorted.len()) - 1;
    *sorted.select_nth_unstable_by(index, |a, b| descending(*a, *b)).1
}

/// Reference: `TopPLogitsWarper`.
struct TopP {
    share: f64,
    keep: usize,
}

impl Processor for TopP {
    fn process(&self, _: Row<'_>, scores: &mut [f32]) {
        let order = ascending_indices(scores);
        let probabilities = softmax(scores);
        let rest = (1.0 - self.share) as f32;
        let mut sum = 0.0_f64;
        for index in &order[..order.len().saturating_sub(self.keep)] {
            sum += f64::from(probabilities[*index]);
            if sum as f32 > rest {
                break;
            }
            scores[*index] = IMPOSSIBLE;
        }
    }
}

/// Reference: `TopHLogitsWarper`.
struct TopH(f32);

impl Processor for TopH {
    fn process(&self, _: Row<'_>, scores: &mut [f32]) {
        let order = top(scores, TOP_H);
        let highest: Vec<f32> = order.iter().map(|index| scores[*index]).collect();
        let probabilities = softmax(&highest);
        let most = entropy(&probabilities) * self.0;
        let mut sum = 0.0_f64;
        let mut kept = vec![false; scores.len()];
        for (rank, (index, p)) in order.iter().zip(&probabilities).enumerate() {
            sum += if *p > 0.0 { f64::from(-p * p.ln()) } else { f64::NAN };
            kept[*index] = rank == 0 || sum as f32 <= most;
        }
        for (score, _) in scores.iter_mut().zip(kept).filter(|(_, kept)| !kept) {
            *score = IMPOSSIBLE;
        }
    }
}

/// Reference: `MinPLogitsWarper`.
struct MinP {
    share: f32,
    keep: usize,
}

impl Processor for MinP {
    fn process(&self, _: Row<'_>, scores: &mut [f32]) {
        let probabilities = softmax(scores);
        let least = self.share * probabilities.iter().copied().fold(0.0, f32::max);
        let kept = top(&probabilities, self.keep);
        for (index, score) in scores.iter_mut().enumerate() {
            if probabilities[index] < least && !kept.contains(&index) {
                *score = IMPOSSIBLE;
            }
        }
    }
}

/// Reference: `TypicalLogitsWarper`.
struct Typical {
    share: f32,
    keep: usize,
}

impl Processor for Typical {
    fn process(&self, _: Row<'_>, scores: &mut [f32]) {
        let mut logarithms = scores.to_vec();
        log_softmax(&mut logarithms);
        let probabilities: Vec<f32> = logarithms.iter().map(|l| l.exp()).collect();
        let expected = entropy(&probabilities);
        let surprise: Vec<f32> = logarithms.iter().map(|l| (-l - expected).abs()).collect();
        let order = ascending_indices(&surprise);
        let mut sum = 0.0_f64;
        let below = order.iter().take_while(|index| {
            sum += f64::from(probabilities[**index]);
            (sum as f32) < self.share
        });
        let last = order[below.count().min(order.len() - 1)];
        for index in order.into_iter().skip(self.keep) {
            if surprise[index] > surprise[last] {
                scores[index] = IMPOSSIBLE;
            }
        }
    }
}

/// Reference: `EpsilonLogitsWarper`, `EtaLogitsWarper`.
struct Cutoff {
    epsilon: f32,
    follows_entropy: bool,
    keep: usize,
}

impl Processor for Cutoff {
    fn process(&self, _: Row<'_>, scores: &mut [f32]) {
        let probabilities = softmax(scores);
        let least = if self.follows_entropy {
            self.epsilon.min(self.epsilon.sqrt() * (-entropy(&probabilities)).exp())
        } else {
            self.epsilon
        };
        let kept = nth(scores, self.keep);
        for (score, p) in scores.iter_mut().zip(&probabilities) {
            if *p < least && *score < kept {
                *score = IMPOSSIBLE;
            }
        }
    }
}
