//! Feature maps of half and of twice the resolution (`Downsample2D`, `Upsample2D`).

use crate::Result;
use crate::graph::{Conv, Dim, Graph, Interpolation, Scope, Tensor};

/// Where a 3 × 3 convolution of stride 2 has its zeros (`Downsample2D`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Downsample2d {
    /// On all sides (`padding=1`): denoisers.
    Symmetric,
    /// Below and to the right (`padding=0`): autoencoders.
    BottomRight,
}

impl Downsample2d {
    /// The convolution `conv` of the layer at `w`: x `[batch, in, rows, columns]` to `[batch, channels, ⌈rows / 2⌉, ⌈columns / 2⌉]`,
    /// rounded down where the zeros are on two sides.
    ///
    /// # Errors
    /// When x has not four axes, or no fixed number of channels.
    pub fn forward(self, g: &mut Graph, w: &Scope, x: &Tensor, channels: usize) -> Result<Tensor> {
        let conv = Conv::new(channels, &[3, 3]).stride(&[2, 2]);
        let conv = match self {
            Self::Symmetric => conv.padding(&[1, 1]),
            Self::BottomRight => conv.padding_around(&[(0, 1), (0, 1)]),
        };
        g.conv(&w.scope("conv"), x, &conv)
    }
}

/// Nearest-neighbour interpolation to a size, and the 3 × 3 convolution `conv` of the layer at `w` (`Upsample2D`):
/// x `[batch, in, rows, columns]` to `[batch, channels, size…]`.
///
/// # Errors
/// When x has not four axes, or no fixed number of channels.
pub fn upsample_2d(g: &mut Graph, w: &Scope, x: &Tensor, size: [Dim; 2], channels: usize) -> Result<Tensor> {
    g.enter(w);
    let x = g.resize(x, size, Interpolation::Nearest, false)?;
    g.conv(&w.scope("conv"), &x, &Conv::new(channels, &[3, 3]).half_padding())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::expect;

    /// 1, 2 … 12, in three rows of four.
    fn map(g: &mut Graph) -> Result<Tensor> {
        g.constant(&[1, 1, 3, 4], (1..13_u8).map(f32::from).collect())
    }

    #[test]
    fn zeros_lie_on_all_sides_or_on_two() {
        // The element in the middle of each window.
        let middle = [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0];
        let weights: [(&str, &[f32]); 2] = [("down.conv.weight", &middle), ("down.conv.bias", &[0.5])];
        let down = |by: Downsample2d| {
            move |g: &mut Graph| {
                let x = map(g)?;
                by.forward(g, &Scope::root().scope("down"), &x, 1)
            }
        };
        expect(&weights, down(Downsample2d::Symmetric), &[1, 1, 2, 2], &[1.5, 3.5, 9.5, 11.5]);
        expect(&weights, down(Downsample2d::BottomRight), &[1, 1, 1, 2], &[6.5, 8.5]);
    }

    #[test]
    fn nearest_neighbours_are_taken_to_an_odd_size_too() {
        let middle = [0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0];
        let weights: [(&str, &[f32]); 2] = [("up.conv.weight", &middle), ("up.conv.bias", &[1.0])];
        let up = |g: &mut Graph| {
            let x = g.constant(&[1, 1, 2, 2], vec![1.0, 2.0, 3.0, 4.0])?;
            upsample_2d(g, &Scope::root().scope("up"), &x, [3.into(), 4.into()], 1)
        };
        let want = [3.0, 3.0, 5.0, 5.0, 3.0, 3.0, 5.0, 5.0, 7.0, 7.0, 9.0, 9.0];
        expect(&weights, up, &[1, 1, 3, 4], &want);
    }
}
