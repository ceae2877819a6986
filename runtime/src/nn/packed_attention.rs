//! Attention whose projections of queries, keys and values are one tensor (`torch.nn.MultiheadAttention`).

use crate::Result;
use crate::graph::{Attention, Dim, Graph, Scope, Tensor, show};

/// Attention of queries over keys and values with one tensor for their projections (`torch.nn.MultiheadAttention`): `in_proj_weight`
/// `[3 * width, width]` and `in_proj_bias`, then `out_proj`. Each is `[batch, positions, width]`; `mask` says which keys are seen. Where
/// keys or values have another width than queries (`kdim`, `vdim`), the projections are tensors of their own: `q_proj_weight`,
/// `k_proj_weight` and `v_proj_weight` `[width, …]`.
///
/// # Errors
/// When the heads do not divide the width, or it has no fixed length.
pub fn packed_attention(
    g: &mut Graph,
    w: &Scope,
    heads: usize,
    inputs: [&Tensor; 3],
    mask: Option<&Tensor>,
) -> Result<Tensor> {
    g.enter(w);
    let [Some(width), Some(of_keys), Some(of_values)] = inputs.map(|x| x.dim(-1).and_then(Dim::fixed)) else {
        let problem = format!("queries are {}, of no fixed width", show(inputs[0].shape()));
        return Err(g.error("packed_attention", problem));
    };
    let weights = if [of_keys, of_values] == [width; 2] {
        let weight = g.weight(&w.name("in_proj_weight"), &[3 * width, width])?;
        g.split(&weight, 0, &[width; 3])?
    } else {
        vec![
            g.weight(&w.name("q_proj_weight"), &[width, width])?,
            g.weight(&w.name("k_proj_weight"), &[width, of_keys])?,
            g.weight(&w.name("v_proj_weight"), &[width, of_values])?,
        ]
    };
    let bias = g.weight(&w.name("in_proj_bias"), &[3 * width])?;
    let biases = g.split(&bias, 0, &[width; 3])?;
    let mut projected = vec![];
    for ((x, weight), bias) in inputs.into_iter().zip(&weights).zip(&biases) {
        let weight = g.transpose(weight, &[1, 0])?;
        let x = g.matmul(x, &weight)?;
        projected.push(g.add(&x, bias)?);
    }
    let options = Attention { heads, kv_heads: heads, mask, ..Attention::default() };
    let h = g.attention(&projected[0], &projected[1], &projected[2], &options)?;
    g.linear(&w.scope("out_proj"), &h, width)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{expect, refusal};
    use super::*;

    #[test]
    fn rows_of_the_weight_are_queries_keys_and_values() {
        // Queries are 0, so that values have the same share.
        let weights: [(&str, &[f32]); 4] = [
            ("in_proj_weight", &[0.0, 5.0, 3.0]),
            ("in_proj_bias", &[0.0, 1.0, 2.0]),
            ("out_proj.weight", &[10.0]),
            ("out_proj.bias", &[0.5]),
        ];
        let build = |g: &mut Graph| {
            let query = g.constant(&[1, 1, 1], vec![7.0])?;
            let [key, value] =
                [g.constant(&[1, 2, 1], vec![1.0, -1.0])?, g.constant(&[1, 2, 1], vec![4.0, 6.0])?];
            packed_attention(g, &Scope::root(), 1, [&query, &key, &value], None)
        };
        expect(&weights, build, &[1, 1, 1], &[170.5]);
    }

    #[test]
    fn keys_of_another_width_have_a_weight_of_their_own() {
        let weights: [(&str, &[f32]); 6] = [
            ("q_proj_weight", &[0.0]),
            ("k_proj_weight", &[5.0, 7.0]),
            ("v_proj_weight", &[3.0]),
            ("in_proj_bias", &[0.0, 1.0, 2.0]),
            ("out_proj.weight", &[10.0]),
            ("out_proj.bias", &[0.5]),
        ];
        let build = |g: &mut Graph| {
            let query = g.constant(&[1, 1, 1], vec![7.0])?;
            let keys = g.constant(&[1, 2, 2], vec![1.0, -1.0, 2.0, 3.0])?;
            let values = g.constant(&[1, 2, 1], vec![4.0, 6.0])?;
            packed_attention(g, &Scope::root(), 1, [&query, &keys, &values], None)
        };
        expect(&weights, build, &[1, 1, 1], &[170.5]);
    }

    #[test]
    fn queries_without_a_width_are_refused() {
        let text = refusal(|g| {
            let x = g.scalar(1.0);
            packed_attention(g, &Scope::root(), 1, [&x, &x, &x], None)
        });
        assert!(text.contains("of no fixed width"), "{text}");
    }
}
