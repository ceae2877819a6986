//! Feature maps as the pixels of patches, those at the same place of each patch beside each other (MobileViT, arXiv:2110.02178).

use crate::graph::{Dim, Graph, Interpolation, PadMode, Tensor, show};
use crate::{Result, dims};

/// A feature map `[batch, channels, rows, columns]` that patches divide (`MobileViTLayer.unfolding`).
#[derive(Clone, Debug)]
pub struct PixelPatches {
    map: Tensor,
    patch: usize,
    /// Rows and columns before they were made to fit.
    size: [Dim; 2],
    /// Whether they were resized, not cut off.
    resized: bool,
}

impl PixelPatches {
    /// A map, resized up to whole patches bilinearly.
    ///
    /// # Errors
    /// When x has not these axes.
    pub fn resized(g: &mut Graph, x: &Tensor, patch: usize) -> Result<Self> {
        let size = size(g, x)?;
        let whole = size.clone().map(|length| length.ceil_div(patch) * patch.into());
        let map = match whole == size {
            true => x.clone(),
            false => g.resize(x, whole, Interpolation::Bilinear, false)?,
        };
        Ok(Self { map, patch, size, resized: true })
    }

    /// A map, cut off to whole patches (`nn.Unfold`).
    ///
    /// # Errors
    /// When x has not these axes.
    pub fn cut(g: &mut Graph, x: &Tensor, patch: usize) -> Result<Self> {
        let size = size(g, x)?;
        let mut map = x.clone();
        for (axis, length) in size.iter().enumerate() {
            let whole = length.floor_div(patch) * patch.into();
            if whole != *length {
                map = g.slice_dims(&map, axis + 2, 0.into(), whole)?;
            }
        }
        Ok(Self { map, patch, size, resized: false })
    }

    /// The pixels at each place of a patch as a sequence of patches: `[batch * patch², patches, channels]`.
    ///
    /// # Errors
    /// As [`PixelPatches::resized`].
    pub fn unfold(&self, g: &mut Graph) -> Result<Tensor> {
        let [batch, channels, down, across] = self.axes();
        let square = self.patch * self.patch;
        let x = g.reshape(&self.map, self.split())?;
        let x = g.transpose(&x, &[0, 3, 5, 2, 4, 1])?;
        g.reshape(&x, dims![batch * Dim::from(square), down * across, channels])
    }

    /// What [`PixelPatches::unfold`] gives, with as many channels, as a map of the size that there was.
    ///
    /// # Errors
    /// When x has another shape.
    pub fn fold(&self, g: &mut Graph, x: &Tensor) -> Result<Tensor> {
        let [batch, channels, down, across] = self.axes();
        let x = g.reshape(x, dims![batch, self.patch, self.patch, down, across, channels])?;
        let x = g.transpose(&x, &[0, 5, 3, 1, 4, 2])?;
        self.joined(g, &x)
    }

    /// The pixels as `[batch, channels, patch², patches]`.
    ///
    /// # Errors
    /// As [`PixelPatches::resized`].
    pub fn unfold_channels_first(&self, g: &mut Graph) -> Result<Tensor> {
        let [batch, channels, down, across] = self.axes();
        let x = g.reshape(&self.map, self.split())?;
        let x = g.transpose(&x, &[0, 1, 3, 5, 2, 4])?;
        g.reshape(&x, dims![batch, channels, self.patch * self.patch, down * across])
    }

    /// What [`PixelPatches::unfold_channels_first`] gives as a map of the size that there was (`nn.Fold`).
    ///
    /// # Errors
    /// When x has another shape.
    pub fn fold_channels_first(&self, g: &mut Graph, x: &Tensor) -> Result<Tensor> {
        let [batch, channels, down, across] = self.axes();
        let x = g.reshape(x, dims![batch, channels, self.patch, self.patch, down, across])?;
        let x = g.transpose(&x, &[0, 1, 4, 2, 5, 3])?;
        self.joined(g, &x)
    }

    /// Batch, channels, and patches down and across.
    fn axes(&self) -> [Dim; 4] {
        let axis = |axis: usize| self.map.shape()[axis].clone();
        [axis(0), axis(1), axis(2).floor_div(self.patch), axis(3).floor_div(self.patch)]
    }

    fn split(&self) -> Vec<Dim> {
        let [batch, channels, down, across] = self.axes();
        dims![batch, channels, down, self.patch, across, self.patch]
    }

    /// `[batch, channels, down, patch, across, patch]` as a map of the size that there was.
    fn joined(&self, g: &mut Graph, x: &Tensor) -> Result<Tensor> {
        let mut x = g.reshape(x, self.map.shape().to_vec())?;
        if self.size == [x.shape()[2].clone(), x.shape()[3].clone()] {
            return Ok(x);
        }
        if self.resized {
            return g.resize(&x, self.size.clone(), Interpolation::Bilinear, false);
        }
        let most = self.patch - 1;
        x = g.pad(&x, &[(2, 0, most), (3, 0, most)], PadMode::Constant(0.0))?;
        for (axis, length) in self.size.iter().enumerate() {
            x = g.slice_dims(&x, axis + 2, 0.into(), length.clone())?;
        }
        Ok(x)
    }
}

fn size(g: &Graph, x: &Tensor) -> Result<[Dim; 2]> {
    match x.shape() {
        [_, _, rows, columns] => Ok([rows.clone(), columns.clone()]),
        shape => {
            Err(g.error("PixelPatches", format!("{} is not [batch, channels, rows, columns]", show(shape))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{expect, refusal};
    use super::*;

    /// Two rows of three, of one channel.
    fn map(g: &mut Graph) -> Result<Tensor> {
        g.constant(&[1, 1, 2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    }

    #[test]
    fn pixels_of_a_place_are_a_sequence() {
        let unfolded = |g: &mut Graph| {
            let x = g.constant(&[1, 1, 2, 4], (1..9_u8).map(f32::from).collect())?;
            PixelPatches::resized(g, &x, 2)?.unfold(g)
        };
        expect(&[], unfolded, &[4, 2, 1], &[1.0, 3.0, 2.0, 4.0, 5.0, 7.0, 6.0, 8.0]);
        let back = |g: &mut Graph| {
            let x = g.constant(&[1, 1, 2, 4], (1..9_u8).map(f32::from).collect())?;
            let patches = PixelPatches::resized(g, &x, 2)?;
            let h = patches.unfold(g)?;
            patches.fold(g, &h)
        };
        expect(&[], back, &[1, 1, 2, 4], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    }

    #[test]
    fn what_does_not_fit_is_resized_or_cut_off() {
        let resized = |g: &mut Graph| {
            let x = map(g)?;
            PixelPatches::resized(g, &x, 2)?.unfold(g)
        };
        expect(&[], resized, &[4, 2, 1], &[1.0, 2.375, 1.625, 3.0, 4.0, 5.375, 4.625, 6.0]);
        let cut = |g: &mut Graph| {
            let x = map(g)?;
            let patches = PixelPatches::cut(g, &x, 2)?;
            let h = patches.unfold_channels_first(g)?;
            patches.fold_channels_first(g, &h)
        };
        expect(&[], cut, &[1, 1, 2, 3], &[1.0, 2.0, 0.0, 4.0, 5.0, 0.0]);
        let flat = |g: &mut Graph| {
            let x = g.constant(&[2], vec![1.0, 2.0])?;
            PixelPatches::cut(g, &x, 2)
        };
        insta::assert_snapshot!(refusal(flat), @"PixelPatches in the root: [2] is not [batch, channels, rows, columns]");
    }
}
