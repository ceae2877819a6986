//! Latents and videos of several frames: frames as rows of a batch, convolutions that see earlier frames, norms over channels
//! (`WanCausalConv3d`, `WanRMS_norm`).

use crate::graph::{Conv, Dim, Graph, Reduction, Scope, Tensor, Unary, show};
use crate::{Result, dims};

/// Every frame as a row of the batch: x `[batch, channels, frames, rows, columns]` to `[batch * frames, channels, rows, columns]`.
///
/// # Errors
/// When x has not five axes.
pub fn frames_to_batch(g: &mut Graph, x: &Tensor) -> Result<Tensor> {
    let [batch, channels, frames, rows, columns] = x.shape() else {
        let problem = format!("{} is not [batch, channels, frames, rows, columns]", show(x.shape()));
        return Err(g.error("frames_to_batch", problem));
    };
    let shape = dims![batch.clone() * frames.clone(), channels, rows, columns];
    let x = g.transpose(x, &[0, 2, 1, 3, 4])?;
    g.reshape(&x, shape)
}

/// The other way round: x `[batch * frames, channels, rows, columns]` to `[batch, channels, frames, rows, columns]`, of as many
/// videos and frames as `sides` says.
///
/// # Errors
/// When x has not four axes, or another number of frames.
pub fn batch_to_frames(g: &mut Graph, x: &Tensor, [batch, frames]: [&Dim; 2]) -> Result<Tensor> {
    let [_, channels, rows, columns] = x.shape() else {
        return Err(g.error(
            "batch_to_frames",
            format!("{} is not [frames, channels, rows, columns]", show(x.shape())),
        ));
    };
    let x = g.reshape(x, dims![batch, frames, channels, rows, columns])?;
    g.transpose(&x, &[0, 2, 1, 3, 4])
}

/// Convolution over frames, rows and columns that sees no later frame: zeros stand before the first one, and around rows and columns
/// (`WanCausalConv3d`). x `[batch, in, frames, rows, columns]` to `[batch, channels, …]` of the same sides.
///
/// # Errors
/// As [`Graph::conv`].
pub fn causal_conv_3d(
    g: &mut Graph,
    w: &Scope,
    x: &Tensor,
    channels: usize,
    kernel: [usize; 3],
) -> Result<Tensor> {
    let [frames, rows, columns] = kernel.map(|length| length - 1);
    let around = [(frames, 0), (rows / 2, rows / 2), (columns / 2, columns / 2)];
    g.conv(w, x, &Conv::new(channels, &kernel).padding_around(&around))
}

/// Each position's channels at the length of their square root, times `gamma` (`WanRMS_norm`): x `[batch, channels, …]` to the same
/// shape. Lengths are in single precision: squares do not fit into half.
///
/// # Errors
/// When x has no fixed number of channels.
pub fn channel_unit_norm(g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
    g.enter(w);
    let Some(channels) = x.dim(1).and_then(Dim::fixed) else {
        return Err(g.error("RMS_norm", format!("{} has no fixed number of channels", show(x.shape()))));
    };
    let unit = g.in_single(|g| {
        let squares = g.mul(x, x)?;
        let sum = g.reduce(Reduction::Sum, &squares, &[1], true)?;
        let length = g.unary(Unary::Sqrt, &sum);
        let length = g.clip(&length, 1e-12, f32::MAX)?;
        g.div(x, &length)
    })?;
    let mut shape = vec![1; x.rank() - 1];
    shape[0] = channels;
    let gamma = g.weight(&w.name("gamma"), &shape)?;
    let unit = g.scale(&unit, (channels as f64).sqrt())?;
    g.mul(&unit, &gamma)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{expect, refusal};

    #[test]
    fn frames_become_rows_and_frames_again() {
        let values = |g: &mut Graph| g.constant(&[1, 2, 2, 1, 1], vec![1.0, 2.0, 3.0, 4.0]);
        let build = |g: &mut Graph| {
            let x = values(g)?;
            frames_to_batch(g, &x)
        };
        expect(&[], build, &[2, 2, 1, 1], &[1.0, 3.0, 2.0, 4.0]);
        let build = |g: &mut Graph| {
            let x = values(g)?;
            let rows = frames_to_batch(g, &x)?;
            batch_to_frames(g, &rows, [&Dim::Fixed(1), &Dim::Fixed(2)])
        };
        expect(&[], build, &[1, 2, 2, 1, 1], &[1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn a_frame_sees_itself_and_those_before() {
        let weights: [(&str, &[f32]); 2] = [("c.weight", &[100.0, 10.0, 1.0]), ("c.bias", &[0.5])];
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 1, 4, 1, 1], vec![1.0, 2.0, 3.0, 4.0])?;
            causal_conv_3d(g, &Scope::root().scope("c"), &x, 1, [3, 1, 1])
        };
        expect(&weights, build, &[1, 1, 4, 1, 1], &[1.5, 12.5, 123.5, 234.5]);
    }

    #[test]
    fn channels_get_the_length_of_their_root() {
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 2, 2], vec![3.0, 0.0, 4.0, 0.0])?;
            channel_unit_norm(g, &Scope::root().scope("n"), &x)
        };
        let root = 2.0_f32.sqrt();
        expect(&[("n.gamma", &[1.0, 10.0])], build, &[1, 2, 2], &[0.6 * root, 0.0, 8.0 * root, 0.0]);
    }

    #[test]
    fn axes_are_counted() {
        let problem = refusal(|g| {
            let x = g.constant(&[1, 2, 2], vec![0.0; 4])?;
            frames_to_batch(g, &x)
        });
        insta::assert_snapshot!(problem, @"frames_to_batch in the root: [1, 2, 2] is not [batch, channels, frames, rows, columns]");
    }
}
