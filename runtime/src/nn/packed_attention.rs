//! Attention whose projections of queries, keys and values are one tensor (`torch.nn.MultiheadAttention`).

use crate::Result;
use crate::graph::{Attention, Dim, Graph, Scope, Tensor, show};

/// Attention of queries over keys and values with one tensor for their projections (`torch.nn.MultiheadAttention`): `in_proj_weight`
/// `[3 * width, width]` and `in_proj_bias`, then `out_proj`. Each is `[batch, positions, width]`; `mask` says which keys are seen.
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
    let Some(width) = inputs[0].dim(-1).and_then(Dim::fixed) else {
        let problem = format!("queries are {}, of no fixed width", show(inputs[0].shape()));
        return Err(g.error("packed_attention", problem));
    };
    let weight = g.weight(&w.name("in_proj_weight"), &[3 * width, width])?;
    let bias = g.weight(&w.name("in_proj_bias"), &[3 * width])?;
    let mut projected = vec![];
    for (index, x) in inputs.into_iter().enumerate() {
        let rows = index * width..(index + 1) * width;
        let weight = g.slice(&weight, 0, rows.clone())?;
        let weight = g.transpose(&weight, &[1, 0])?;
        let x = g.matmul(x, &weight)?;
        let bias = g.slice(&bias, 0, rows)?;
        projected.push(g.add(&x, &bias)?);
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
    fn queries_without_a_width_are_refused() {
        let text = refusal(|g| {
            let x = g.scalar(1.0);
            packed_attention(g, &Scope::root(), 1, [&x, &x, &x], None)
        });
        assert!(text.contains("of no fixed width"), "{text}");
    }
}
