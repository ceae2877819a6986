//! Sliding-window attention with global tokens (`LongformerSelfAttention`, `LEDEncoderSelfAttention`; Beltagy et al., 2020,
//! arXiv:2004.05150).

use super::{Attention, bidirectional_mask, padding_mask};
use crate::Result;
use crate::config::PerLayer;
use crate::graph::{Binary, Dim, Graph, Scope, Tensor};

/// What attention of one layer takes besides hidden states.
#[derive(Clone, Debug)]
pub struct SlidingWindow {
    /// What `mask` was made for, `attention_window`.
    window: usize,
    /// The keys of local tokens, those in the window and global ones: bool `[batch, 1, sequence, sequence]`.
    mask: Tensor,
    /// The keys of global tokens, all but padding: bool `[batch, 1, 1, sequence]`.
    padding_mask: Tensor,
    /// Which tokens are global: bool `[batch, sequence, 1]`.
    is_global: Tensor,
    /// Which are tokens and no padding: bool `[batch, sequence, 1]`.
    is_token: Tensor,
}

impl SlidingWindow {
    /// One for each of so many layers: of `attention_mask` and `global_attention_mask`, `[batch, sequence]` each.
    ///
    /// # Errors
    /// When a window is odd or 0, there is not one for each layer, or a mask has not two axes.
    pub fn of_layers(
        g: &mut Graph,
        attention_mask: &Tensor,
        global_attention_mask: &Tensor,
        windows: &PerLayer,
        layers: usize,
    ) -> Result<Vec<Self>> {
        let wrong = |problem: String| g.error("Attention", format!("attention_window: {problem}"));
        let windows = windows.of_layers(layers).map_err(wrong)?;
        let padding_mask = padding_mask(g, attention_mask)?;
        let global_keys = super::padding_mask(g, global_attention_mask)?;
        let global_keys = g.binary(Binary::And, &global_keys, &padding_mask)?;
        let rows = match padding_mask.shape() {
            [batch, _, _, sequence] => crate::dims![batch, sequence, 1],
            _ => vec![],
        };
        let is_global = g.reshape(&global_keys, rows.clone())?;
        let is_token = g.reshape(&padding_mask, rows)?;
        let mut layers: Vec<Self> = vec![];
        for window in windows {
            if window == 0 || window % 2 == 1 {
                let problem = format!("attention_window: is {window}, but must be even and at least 2");
                return Err(g.error("Attention", problem));
            }
            let layer = match layers.iter().find(|known| known.window == window) {
                Some(known) => known.clone(),
                None => {
                    let near = bidirectional_mask(g, attention_mask, &Dim::Fixed(0), Some(window / 2))?;
                    let mask = g.binary(Binary::Or, &near, &global_keys)?;
                    let [padding_mask, is_global, is_token] =
                        [&padding_mask, &is_global, &is_token].map(Tensor::clone);
                    Self { window, mask, padding_mask, is_global, is_token }
                }
            };
            layers.push(layer);
        }
        Ok(layers)
    }

    /// Attention without the projection of its result: local tokens by `query`, `key` and `value` at `w`, global ones by
    /// `query_global`, `key_global` and `value_global`, zero for padding: `[batch, sequence, width]`.
    ///
    /// # Errors
    /// When `heads` do not divide the width of x.
    pub fn attention(&self, g: &mut Graph, w: &Scope, x: &Tensor, heads: usize) -> Result<Tensor> {
        let mut attend = |suffix: &str, mask| {
            let Some(width) = x.dim(-1).and_then(Dim::fixed) else {
                return Err(g.error("Attention", "the width of hidden states must be fixed"));
            };
            let q = g.linear(&w.scope(&format!("query{suffix}")), x, width)?;
            let k = g.linear(&w.scope(&format!("key{suffix}")), x, width)?;
            let v = g.linear(&w.scope(&format!("value{suffix}")), x, width)?;
            let options = Attention { heads, kv_heads: heads, mask: Some(mask), ..Attention::default() };
            g.attention(&q, &k, &v, &options)
        };
        let local = attend("", &self.mask)?;
        let global = attend("_global", &self.padding_mask)?;
        let h = g.select(&self.is_global, &global, &local)?;
        let zero = g.scalar(0.0);
        g.select(&self.is_token, &h, &zero)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{expect, refusal};

    /// Values pass through, doubled for global tokens; all scores are equal.
    const WEIGHTS: [(&str, &[f32]); 12] = [
        ("query.weight", &[0.0]),
        ("query.bias", &[0.0]),
        ("key.weight", &[1.0]),
        ("key.bias", &[0.0]),
        ("value.weight", &[1.0]),
        ("value.bias", &[0.0]),
        ("query_global.weight", &[0.0]),
        ("query_global.bias", &[0.0]),
        ("key_global.weight", &[1.0]),
        ("key_global.bias", &[0.0]),
        ("value_global.weight", &[2.0]),
        ("value_global.bias", &[0.0]),
    ];

    /// Five tokens and padding; the first is global, and padding that is said to be is not.
    fn layers(g: &mut Graph, windows: &[usize]) -> Result<Vec<SlidingWindow>> {
        let mask = g.integers(&[1, 6], vec![1, 1, 1, 1, 1, 0])?;
        let global = g.integers(&[1, 6], vec![1, 0, 0, 0, 0, 1])?;
        SlidingWindow::of_layers(g, &mask, &global, &PerLayer(windows.to_vec()), windows.len())
    }

    #[test]
    fn local_tokens_see_their_window_and_global_ones_all() {
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 6, 1], vec![5.0, 1.0, 2.0, 3.0, 6.0, 9.0])?;
            let layers = layers(g, &[2, 4, 2])?;
            layers[2].attention(g, &g.root(), &x, 1)
        };
        // 2·(5+1+2+3+6)/5; (5+1+2)/3; (5+1+2+3)/4; (5+2+3+6)/4; (5+3+6)/3; padding.
        let want = [6.8, 8.0 / 3.0, 2.75, 4.0, 14.0 / 3.0, 0.0];
        expect(&WEIGHTS, build, &[1, 6, 1], &want);
    }

    #[test]
    fn windows_are_even() {
        let problem = refusal(|g| layers(g, &[2, 3]));
        insta::assert_snapshot!(problem, @"Attention in the root: attention_window: is 3, but must be even and at least 2");
    }
}
