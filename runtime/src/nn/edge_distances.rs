//! Distributions of where the edges of boxes are (fine-grained distribution refinement, D-FINE, arXiv:2410.13842).

use crate::graph::{Graph, Reduction, Scope, Tensor, Unary, show};
use crate::{Result, dims};

/// How far an edge may be from where it was: the distances that bins stand for, and their unit.
#[derive(Clone, Debug)]
pub struct EdgeDistances {
    /// What boxes' widths and heights are divided by, `[1]`.
    scale: Tensor,
    /// The distance of each bin, `[bins]` (`weighting_function`).
    bins: Tensor,
    count: usize,
}

impl EdgeDistances {
    /// Of `max_num_bins + 1` bins, by the weights `reg_scale` and `up` at `w` (`DFineDecoder`).
    ///
    /// # Errors
    /// When there are fewer than four.
    pub fn new(g: &mut Graph, w: &Scope, max_num_bins: usize) -> Result<Self> {
        let Some(half) = (max_num_bins / 2).checked_sub(1).filter(|half| *half > 0) else {
            return Err(
                g.error("EdgeDistances", format!("max_num_bins is {max_num_bins}, but 4 is the least"))
            );
        };
        let half = half as i64;
        let scale = g.weight(&w.name("reg_scale"), &[1])?;
        let up = g.weight(&w.name("up"), &[1])?;
        let (scale, up) = (g.unary(Unary::Abs, &scale), g.unary(Unary::Abs, &up));
        let bound = g.mul(&up, &scale)?;
        let one = g.scalar(1.0);
        let base = g.add(&bound, &one)?;
        let step = g.unary(Unary::Log, &base);
        let step = g.scale(&step, 2.0 / (max_num_bins as f64 - 2.0))?;
        let (powers, signs) = (-half..=half).map(|bin| (bin.abs() as f32, bin.signum() as f32)).unzip();
        let inner = (2 * half + 1) as usize;
        let (powers, signs) = (g.constant(&[inner], powers)?, g.constant(&[inner], signs)?);
        let distance = g.mul(&powers, &step)?;
        let distance = g.unary(Unary::Exp, &distance);
        let distance = g.sub(&distance, &one)?;
        let distance = g.mul(&distance, &signs)?;
        let (first, last) = (g.scale(&bound, -2.0)?, g.scale(&bound, 2.0)?);
        let bins = g.concat(&[&first, &distance, &last], 0)?;
        Ok(Self { scale, bins, count: inner + 2 })
    }

    /// The probability of each bin for each of four edges, of logits `[batch, boxes, 4 · bins]`: `[batch, boxes, 4, bins]`.
    ///
    /// # Errors
    /// When the logits have not these axes.
    pub fn probabilities(&self, g: &mut Graph, logits: &Tensor) -> Result<Tensor> {
        let [batch, boxes, _] = logits.shape() else {
            return Err(
                g.error("EdgeDistances", format!("{} is not [batch, boxes, bins]", show(logits.shape())))
            );
        };
        let shape = dims![batch, boxes, 4, self.count];
        let logits = g.reshape(logits, shape)?;
        g.softmax(&logits)
    }

    /// Boxes `[batch, boxes, 4]`, centre, width and height, whose edges are moved by the mean distances of these `probabilities`
    /// (`DFineIntegral`, `distance2bbox`).
    ///
    /// # Errors
    /// When the shapes do not fit.
    pub fn moved(&self, g: &mut Graph, boxes: &Tensor, probabilities: &Tensor) -> Result<Tensor> {
        let weighted = g.mul(probabilities, &self.bins)?;
        let distance = g.reduce(Reduction::Sum, &weighted, &[3], false)?;
        let half = g.scale(&self.scale, 0.5)?;
        let distance = g.add(&distance, &half)?;
        let (middle, extent) = (g.slice(boxes, 2, 0..2)?, g.slice(boxes, 2, 2..4)?);
        let unit = g.div(&extent, &self.scale)?;
        let before = g.slice(&distance, 2, 0..2)?;
        let before = g.mul(&before, &unit)?;
        let after = g.slice(&distance, 2, 2..4)?;
        let after = g.mul(&after, &unit)?;
        let (least, most) = (g.sub(&middle, &before)?, g.add(&middle, &after)?);
        let sum = g.add(&least, &most)?;
        let (middle, extent) = (g.scale(&sum, 0.5)?, g.sub(&most, &least)?);
        g.concat(&[&middle, &extent], 2)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{expect, refusal};
    use super::*;

    #[test]
    fn edges_move_by_the_distances_of_their_bins() {
        // Half of 4 bounds the inner bins at 2, of which there is one on each side: -4, -2, 0, 2 and 4.
        let weights: [(&str, &[f32]); 2] = [("reg_scale", &[4.0]), ("up", &[0.5])];
        let moved = |g: &mut Graph| {
            let distances = EdgeDistances::new(g, &Scope::root(), 4)?;
            let mut logits = vec![0.0; 20];
            // Left by 4, top by nothing, right by 2, bottom by -2.
            for (edge, bin) in [4, 2, 3, 1].into_iter().enumerate() {
                logits[5 * edge + bin] = 200.0;
            }
            let logits = g.constant(&[1, 1, 20], logits)?;
            let boxes = g.constant(&[1, 1, 4], vec![0.5, 0.5, 0.2, 0.4])?;
            let probabilities = distances.probabilities(g, &logits)?;
            distances.moved(g, &boxes, &probabilities)
        };
        // From 0.5 - 6 · 0.05 to 0.5 + 4 · 0.05, and from 0.5 - 2 · 0.1 to 0.5.
        expect(&weights, moved, &[1, 1, 4], &[0.45, 0.4, 0.5, 0.2]);
    }

    #[test]
    fn two_bins_have_nothing_between_them() {
        insta::assert_snapshot!(
            refusal(|g| EdgeDistances::new(g, &Scope::root(), 3).map(|distances| distances.bins)),
            @"EdgeDistances in the root: max_num_bins is 3, but 4 is the least"
        );
    }
}
