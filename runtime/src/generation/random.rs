//! Draws that a seed reproduces.

use std::hash::{BuildHasher, RandomState};

use super::distribution::top;

/// A counter-based generator: a draw is a function of the seed, the row, the step and a counter, so a row's draws
/// hang neither on the rows beside it nor on the hardware.
///
/// Draws are not those of the reference: `torch.multinomial` has its own generator for each device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws {
    seed: u64,
    first_row: usize,
}

impl Draws {
    /// A generator with this seed, or one of the machine's own choice.
    pub(crate) fn new(seed: Option<u64>, first_row: usize) -> Self {
        Self { seed: seed.unwrap_or_else(|| RandomState::new().hash_one(0)), first_row }
    }

    /// Evenly in `[0, 1)`.
    fn unit(&self, row: usize, step: usize, counter: usize) -> f64 {
        let z = [self.first_row + row, step, counter]
            .iter()
            .fold(mix(self.seed), |z, part| mix(z ^ mix(*part as u64)));
        (z >> 11) as f64 * 2.0_f64.powi(-53)
    }

    /// One index by its probability.
    pub(crate) fn one(&self, probabilities: &[f32], row: usize, step: usize) -> usize {
        let total: f64 = probabilities.iter().map(|p| f64::from(*p)).sum();
        let aim = self.unit(row, step, 0) * total;
        let mut sum = 0.0;
        let mut last = 0;
        for (index, p) in probabilities.iter().enumerate().filter(|(_, p)| **p > 0.0) {
            sum += f64::from(*p);
            last = index;
            if aim < sum {
                break;
            }
        }
        last
    }

    /// `count` different indices by their probabilities, in the order in which they were drawn.
    pub(crate) fn several(&self, probabilities: &[f32], count: usize, row: usize, step: usize) -> Vec<usize> {
        // The first arrivals of exponential clocks with the probabilities as their rates.
        let clock = |(index, p): (usize, &f32)| {
            let wait = -(1.0 - self.unit(row, step, index)).ln();
            (f64::from(*p) / wait.max(f64::MIN_POSITIVE)) as f32
        };
        let keys: Vec<f32> = probabilities.iter().enumerate().map(clock).collect();
        top(&keys, count)
    }
}

/// The finaliser of SplitMix64.
fn mix(z: u64) -> u64 {
    let z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_the_probabilities_and_repeat_with_the_seed() {
        let p = [0.1, 0.0, 0.6, 0.3];
        let draws = Draws::new(Some(7), 0);
        let mut counts = [0.0; 4];
        for step in 0..20_000 {
            counts[draws.one(&p, 0, step)] += 1.0 / 20_000.0;
            assert_eq!(draws.one(&p, 3, step), Draws::new(Some(7), 0).one(&p, 3, step));
        }
        assert_eq!(counts[1], 0.0);
        assert!(counts.iter().zip(p).all(|(got, want)| (got - f64::from(want)).abs() < 0.015), "{counts:?}");
    }

    #[test]
    fn several_draws_differ_and_favour_the_likely() {
        let p = [0.05, 0.05, 0.8, 0.1];
        let draws = Draws::new(Some(1), 0);
        let mut first = 0;
        for step in 0..2000 {
            let drawn = draws.several(&p, 3, 0, step);
            assert!(drawn.len() == 3 && drawn[0] != drawn[1] && drawn[1] != drawn[2] && drawn[0] != drawn[2]);
            first += usize::from(drawn[0] == 2);
        }
        assert!((1540..1660).contains(&first), "{first}");
    }
}
