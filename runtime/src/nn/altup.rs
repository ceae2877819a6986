//! Alternating updates: several streams of hidden states, of which a layer computes one and predicts the others.

use crate::graph::{Binary, Graph, Reduction, Scope, Tensor, Unary, show};
use crate::{Result, dims};

/// What a stream's mean square is at least where it is divided by.
const LEAST_SQUARE: f32 = 1e-5;

/// Alternating updates (AltUp, `Gemma3nTextAltUp`; Baykal et al., 2023, arXiv:2301.13310) of streams
/// `[batch, sequence, streams, hidden]`.
#[derive(Clone, Copy, Debug)]
pub struct AltUp {
    /// The number of streams (`altup_num_inputs`).
    pub streams: usize,
    /// The stream that layers compute (`altup_active_idx`).
    pub active: usize,
    /// The width of a stream.
    pub hidden_size: usize,
    /// The epsilon of the router's norm.
    pub epsilon: f64,
}

impl AltUp {
    /// Streams of embeddings x `[batch, sequence, hidden]`: x, and its projections by `altup_projections` at w, as long as x is.
    ///
    /// # Errors
    /// When x has another width.
    pub fn expand(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
        let w = w.scope("altup_projections");
        let length = root_mean_square(g, x, None)?;
        let mut streams = vec![g.unsqueeze(x, 2)?];
        for index in 1..self.streams {
            let h = g.linear_no_bias(&w.index(index - 1), x, self.hidden_size)?;
            let h = as_long(g, &h, &length)?;
            streams.push(g.unsqueeze(&h, 2)?);
        }
        g.concat(&streams.iter().collect::<Vec<_>>(), 2)
    }

    /// Streams x as one, `[batch, sequence, hidden]`: the mean of the first, and of the projections of the others by
    /// `altup_unembed_projections` at w, as long as the first is.
    ///
    /// # Errors
    /// When x has another shape.
    pub fn collapse(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
        let w = w.scope("altup_unembed_projections");
        let mut sum = g.take(x, 2, 0)?;
        let length = root_mean_square(g, &sum, None)?;
        for index in 1..self.streams {
            let h = g.take(x, 2, index as i64)?;
            let h = g.linear_no_bias(&w.index(index - 1), &h, self.hidden_size)?;
            let h = as_long(g, &h, &length)?;
            sum = g.add(&sum, &h)?;
        }
        g.scale(&sum, 1.0 / self.streams as f64)
    }

    /// The stream that layers compute, `[batch, sequence, hidden]`.
    ///
    /// # Errors
    /// When there is none of that number.
    pub fn active(&self, g: &mut Graph, x: &Tensor) -> Result<Tensor> {
        if self.active >= self.streams {
            let problem =
                format!("altup_active_idx is {}, but there are {} streams", self.active, self.streams);
            return Err(g.error("AltUp", problem));
        }
        g.take(x, 2, self.active as i64)
    }

    /// What streams x are expected to be behind a layer: x, and sums of all of x weighted by what the active one says.
    ///
    /// # Errors
    /// When x has another shape.
    pub fn predict(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
        let active = self.active(g, x)?;
        let weights = self.modalities(g, w, &active)?;
        let weights =
            g.linear_no_bias(&w.scope("prediction_coefs"), &weights, self.streams * self.streams)?;
        let [batch, sequence, ..] = x.shape() else {
            return Err(g.error("AltUp", format!("{} are no streams", show(x.shape()))));
        };
        let weights = g.reshape(&weights, dims![batch, sequence, self.streams, self.streams])?;
        let change = g.matmul(&weights, x)?;
        g.add(x, &change)
    }

    /// Predictions `[batch, sequence, streams, hidden]` with what a layer gave, `[batch, sequence, hidden]`: its difference from
    /// the active one's is added to each, weighted.
    ///
    /// # Errors
    /// When the shapes do not go together.
    pub fn correct(&self, g: &mut Graph, w: &Scope, predictions: &Tensor, given: &Tensor) -> Result<Tensor> {
        let weights = self.modalities(g, w, given)?;
        let weights = g.linear_no_bias(&w.scope("correction_coefs"), &weights, self.streams)?;
        let one = g.scalar(1.0);
        let weights = g.add(&weights, &one)?;
        let weights = g.unsqueeze(&weights, 3)?;
        let expected = self.active(g, predictions)?;
        let innovation = g.sub(given, &expected)?;
        let innovation = g.unsqueeze(&innovation, 2)?;
        let change = g.mul(&innovation, &weights)?;
        g.add(predictions, &change)
    }

    /// Streams x, with h `[batch, sequence, hidden]` added to all but the first.
    ///
    /// # Errors
    /// When the shapes do not go together.
    pub fn add_behind_first(&self, g: &mut Graph, x: &Tensor, h: &Tensor) -> Result<Tensor> {
        let first = g.slice(x, 2, 0..1)?;
        let others = g.slice(x, 2, 1..self.streams)?;
        let h = g.unsqueeze(h, 2)?;
        let others = g.add(&others, &h)?;
        g.concat(&[&first, &others], 2)
    }

    /// What the router makes of a stream, from -1 to 1: `[batch, sequence, streams]`.
    fn modalities(&self, g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
        let x = g.rms_norm(&w.scope("router_norm"), x, self.epsilon)?;
        let x = g.scale(&x, 1.0 / self.hidden_size as f64)?;
        let routed = g.linear_no_bias(&w.scope("modality_router"), &x, self.streams)?;
        Ok(g.unary(Unary::Tanh, &routed))
    }
}

/// The root of the mean square of the last axis, which stays; of what is at least so much.
fn root_mean_square(g: &mut Graph, x: &Tensor, least: Option<f32>) -> Result<Tensor> {
    let squares = g.mul(x, x)?;
    let axis = x.shape().len() - 1;
    let mut mean = g.reduce(Reduction::Mean, &squares, &[axis], true)?;
    if let Some(least) = least {
        let least = g.scalar(least);
        mean = g.binary(Binary::Max, &mean, &least)?;
    }
    Ok(g.unary(Unary::Sqrt, &mean))
}

/// x, as long as a root of a mean square says.
fn as_long(g: &mut Graph, x: &Tensor, length: &Tensor) -> Result<Tensor> {
    let own = root_mean_square(g, x, Some(LEAST_SQUARE))?;
    let x = g.mul(x, length)?;
    g.div(&x, &own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{expect, refusal};

    const ALTUP: AltUp = AltUp { streams: 2, active: 1, hidden_size: 2, epsilon: 0.0 };

    /// The hyperbolic tangent of this is a half.
    const HALF: f32 = 0.549_306_14;

    /// The router says a half and zero of states `[1, -1]`.
    const WEIGHTS: [(&str, &[f32]); 4] = [
        ("altup.router_norm.weight", &[2.0, 2.0]),
        ("altup.modality_router.weight", &[HALF, 0.0, 0.0, 0.0]),
        ("altup.prediction_coefs.weight", &[2.0, 0.0, 4.0, 0.0, 0.0, 0.0, 6.0, 0.0]),
        ("altup.correction_coefs.weight", &[2.0, 0.0, 0.0, 0.0]),
    ];

    #[test]
    fn streams_are_predicted_by_sums_of_all() {
        // The first is itself, once more, and twice the second; the second itself and three times that.
        let predict = |g: &mut Graph| {
            let x = g.constant(&[1, 1, 2, 2], vec![3.0, 5.0, 1.0, -1.0])?;
            ALTUP.predict(g, &g.scope("altup"), &x)
        };
        expect(&WEIGHTS[..3], predict, &[1, 1, 2, 2], &[8.0, 8.0, 4.0, -4.0]);
    }

    #[test]
    fn predictions_are_corrected_by_what_the_active_one_missed() {
        // The active one missed [-3, 3], which is added to the first twice.
        let correct = |g: &mut Graph| {
            let predictions = g.constant(&[1, 1, 2, 2], vec![8.0, 8.0, 4.0, -4.0])?;
            let given = g.constant(&[1, 1, 2], vec![1.0, -1.0])?;
            ALTUP.correct(g, &g.scope("altup"), &predictions, &given)
        };
        let weights = [WEIGHTS[0], WEIGHTS[1], WEIGHTS[3]];
        expect(&weights, correct, &[1, 1, 2, 2], &[2.0, 14.0, 1.0, -1.0]);
    }

    #[test]
    fn projections_are_as_long_as_what_they_are_of() {
        // [14, 2], whose mean square is four times that of [1, 7].
        let swapped: [(&str, &[f32]); 1] = [("altup_projections.0.weight", &[0.0, 2.0, 2.0, 0.0])];
        let expand = |g: &mut Graph| {
            let x = g.constant(&[1, 1, 2], vec![1.0, 7.0])?;
            ALTUP.expand(g, &g.root(), &x)
        };
        expect(&swapped, expand, &[1, 1, 2, 2], &[1.0, 7.0, 7.0, 1.0]);
        let swapped: [(&str, &[f32]); 1] = [("altup_unembed_projections.0.weight", &[0.0, 2.0, 2.0, 0.0])];
        let collapse = |g: &mut Graph| {
            let x = g.constant(&[1, 1, 2, 2], vec![1.0, 7.0, 1.0, 7.0])?;
            ALTUP.collapse(g, &g.root(), &x)
        };
        expect(&swapped, collapse, &[1, 1, 2], &[4.0, 4.0]);
    }

    #[test]
    fn all_but_the_first_are_added_to() {
        let add = |g: &mut Graph| {
            let x = g.constant(&[1, 1, 2, 2], vec![1.0, 2.0, 3.0, 4.0])?;
            let h = g.constant(&[1, 1, 2], vec![10.0, 20.0])?;
            ALTUP.add_behind_first(g, &x, &h)
        };
        expect(&[], add, &[1, 1, 2, 2], &[1.0, 2.0, 13.0, 24.0]);
    }

    #[test]
    fn a_stream_that_is_not_there_is_refused() {
        let text = refusal(|g| {
            let x = g.constant(&[1, 1, 2, 2], vec![0.0; 4])?;
            AltUp { active: 2, ..ALTUP }.active(g, &x)
        });
        insta::assert_snapshot!(text, @"AltUp in the root: altup_active_idx is 2, but there are 2 streams");
    }
}
