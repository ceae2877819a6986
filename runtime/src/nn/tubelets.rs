//! Videos as sequences of tubelets, patches that reach over frames (ViViT, arXiv:2103.15691).

use crate::graph::{Conv, Dim, Graph, Scope, Tensor, show};
use crate::{Result, dims};

/// Tubelet embedding (`VivitTubeletEmbeddings`, a convolution over frames, rows and columns whose windows do not overlap): videos
/// `[batch, frames, channels, height, width]` of a fixed number of frames to `[batch, positions, out]`, positions by frames, then
/// rows, then columns. `tubelet` is how many of each a window spans; the weight is `[out, channels, frames, rows, columns]`.
///
/// The frames of a window are channels of one image here, so that engines without convolutions over three axes run it.
///
/// # Errors
/// When the videos have not these axes, or no fixed number of frames and channels.
pub fn tubelet_embedding(
    g: &mut Graph,
    w: &Scope,
    videos: &Tensor,
    out: usize,
    [deep, high, wide]: [usize; 3],
) -> Result<Tensor> {
    let fixed = |axis| videos.dim(axis).and_then(Dim::fixed);
    let ([batch, _, _, height, width], Some(frames), Some(channels)) = (videos.shape(), fixed(1), fixed(2))
    else {
        let problem = format!(
            "{} is not [batch, frames, channels, height, width] of fixed frames",
            show(videos.shape())
        );
        return Err(g.error("tubelet_embedding", problem));
    };
    let (batch, height, width, steps) = (batch.clone(), height.clone(), width.clone(), frames / deep.max(1));
    let x = if frames == steps * deep { videos.clone() } else { g.slice(videos, 1, 0..steps * deep)? };
    let x = g.reshape(&x, dims![batch.clone() * Dim::from(steps), deep * channels, height, width])?;
    let weight = g.weight(&w.name("weight"), &[out, channels, deep, high, wide])?;
    let weight = g.transpose(&weight, &[0, 2, 1, 3, 4])?;
    let weight = g.reshape(&weight, dims![out, deep * channels, high, wide])?;
    let bias = g.weight(&w.name("bias"), &[out])?;
    let conv = Conv::new(out, &[high, wide]).stride(&[high, wide]);
    let map = g.conv_with(&x, &weight, Some(&bias), &conv)?;
    let x = super::flatten_feature_map(g, &map)?;
    let positions = x.shape()[1].clone() * Dim::from(steps);
    g.reshape(&x, dims![batch, positions, out])
}

/// Fixed sine and cosine position embeddings in turns (`get_sinusoid_encoding_table` of VideoMAE): `[1, positions, width]`.
///
/// # Errors
/// When the width is odd.
pub fn sinusoidal_in_turns(g: &mut Graph, positions: usize, width: usize) -> Result<Tensor> {
    use crate::graph::Unary;
    if !width.is_multiple_of(2) {
        return Err(g.error("sinusoidal", format!("the width {width} is odd")));
    }
    let frequency = |pair: usize| 10_000_f64.powf(-((2 * pair) as f64) / width as f64) as f32;
    let frequencies: Vec<f32> = (0..width / 2).map(frequency).collect();
    let places = g.arange(&positions.into());
    let (sines, cosines) = (
        g.angles(&places, Unary::Sin, &frequencies, 1.0)?,
        g.angles(&places, Unary::Cos, &frequencies, 1.0)?,
    );
    let (sines, cosines) = (g.unsqueeze(&sines, 2)?, g.unsqueeze(&cosines, 2)?);
    let both = g.concat(&[&sines, &cosines], 2)?;
    g.reshape(&both, dims![1, positions, width])
}

#[cfg(test)]
mod tests {
    use super::super::testing::{expect, refusal};
    use super::*;
    use crate::graph::Input;
    use crate::graph::dims::{BATCH, SEQUENCE};

    #[test]
    fn a_tubelet_weighs_frames_rows_and_columns() {
        // Three frames of one row and two columns; the third frame fills no window.
        let embed = |g: &mut Graph| {
            let x = g.constant(&[1, 3, 1, 1, 2], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
            tubelet_embedding(g, &Scope::root().scope("w"), &x, 1, [2, 1, 1])
        };
        let weights: [(&str, &[f32]); 2] = [("w.weight", &[1.0, 10.0]), ("w.bias", &[100.0])];
        expect(&weights, embed, &[1, 2, 1], &[131.0, 142.0]);
        // Two channels: those of a frame lie beside each other.
        let embed = |g: &mut Graph| {
            let x = g.constant(&[1, 2, 2, 1, 1], vec![1.0, 2.0, 3.0, 4.0])?;
            tubelet_embedding(g, &Scope::root().scope("w"), &x, 1, [2, 1, 1])
        };
        let weights: [(&str, &[f32]); 2] = [("w.weight", &[1.0, 10.0, 100.0, 1000.0]), ("w.bias", &[0.0])];
        expect(&weights, embed, &[1, 1, 1], &[1.0 + 30.0 + 200.0 + 4000.0]);
    }

    #[test]
    fn frames_must_be_counted() {
        let embed = |g: &mut Graph| {
            let x = g.input(Input::f32("x", dims![BATCH, SEQUENCE, 3, 4, 4]));
            tubelet_embedding(g, &Scope::root(), &x, 1, [2, 2, 2])
        };
        insta::assert_snapshot!(refusal(embed), @"tubelet_embedding in the root: [batch, sequence, 3, 4, 4] is not [batch, frames, channels, height, width] of fixed frames");
    }

    #[test]
    fn sines_and_cosines_take_turns() {
        let table = |g: &mut Graph| sinusoidal_in_turns(g, 2, 4);
        let want = [0.0, 1.0, 0.0, 1.0, 1.0_f32.sin(), 1.0_f32.cos(), 0.01_f32.sin(), 0.01_f32.cos()];
        expect(&[], table, &[1, 2, 4], &want);
        insta::assert_snapshot!(refusal(|g| sinusoidal_in_turns(g, 2, 3)), @"sinusoidal in the root: the width 3 is odd");
    }
}
