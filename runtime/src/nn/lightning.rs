//! Lightning attention: linear attention whose heads forget at fixed rates.

use super::RecurrentLayer;
use crate::Result;
use crate::dims;
use crate::graph::{Dim, Graph, LinearAttention, Tensor};

/// How fast each head of a layer forgets (`MiniMaxLightningAttention.get_slope_rate`): ALiBi's slopes, which fall to 0 from the first
/// layer to the last.
pub fn lightning_slopes(heads: usize, layer: usize, layers: usize) -> Vec<f32> {
    let base = 2.0_f64.powf(-8.0 / heads as f64);
    let factor = 1.0 - layer as f64 / (layers as f64 - 1.0 + 1e-5) + 1e-5;
    (1..=heads).map(|head| (base.powf(head as f64) * factor) as f32).collect()
}

/// Linear attention of queries, keys and values `[batch, sequence, heads·size]`, whose heads keep `exp(-slope)` of their states at each
/// position (`MiniMaxLightningAttention`; Qin et al., 2024, arXiv:2405.17381). The layer's state is `recurrent`.
///
/// # Errors
/// When the widths are no multiples of the heads.
pub fn lightning_attention(
    g: &mut Graph,
    [q, k, v]: [&Tensor; 3],
    slopes: &[f32],
    layer: &RecurrentLayer<'_>,
) -> Result<Tensor> {
    let heads = slopes.len();
    let width = q.dim(-1).and_then(Dim::fixed).unwrap_or_default();
    if heads == 0 || !width.is_multiple_of(heads) {
        let problem = format!("{width} channels are not those of {heads} heads");
        return Err(g.error("LinearAttention", problem));
    }
    let size = width / heads;
    let decay = g.constant(&[heads], slopes.iter().map(|slope| -slope).collect())?;
    let decay = g.expand(&decay, dims![&q.shape()[0], &q.shape()[1], heads])?;
    let state = layer.state(g, "recurrent", &[heads, size, size])?;
    let x = LinearAttention {
        q,
        k,
        v,
        state: &state,
        decay: Some(&decay),
        beta: None,
        heads,
        query_heads: heads,
        scale: 1.0,
    };
    layer.attend(g, "recurrent", &x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_fall_from_layer_to_layer() {
        // With two heads, 1/16 and 1/256, which the last of three layers all but forgets to do.
        let near = |got: Vec<f32>, want: [f32; 2]| {
            assert!(
                got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-6),
                "{got:?} is not {want:?}"
            );
        };
        near(lightning_slopes(2, 0, 3), [0.0625 * 1.00001, 1.00001 / 256.0]);
        near(lightning_slopes(2, 1, 3), [0.0625 * 0.500_012_5, 0.500_012_5 / 256.0]);
        near(lightning_slopes(2, 2, 3), [0.0625 * 1.5e-5, 1.5e-5 / 256.0]);
    }
}
