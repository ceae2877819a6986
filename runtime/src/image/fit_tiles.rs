//! Tiles of a canvas that an image fits into without distortion.
//!
//! Reference: `Llama4ImageProcessor`, `get_best_fit`, `get_max_res_without_distortion`; `MllamaImageProcessor`,
//! `get_optimal_tiled_canvas`, `get_image_size_fit_to_canvas`.

use image::RgbImage;

use super::item::pixels;
use super::normalize::padded_below;
use super::resize::resize;
use super::tiles::cut;
use super::{Filter, Pixels};
use crate::Result;

/// The tiles of a canvas of at most so many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitTiles {
    /// `size`: that of a tile, a square.
    pub size: Pixels,
    /// `max_patches`.
    pub most: usize,
    /// `resize_to_max_canvas`: images grow as far as a canvas allows.
    pub largest_canvas: bool,
    /// Whether the whole image follows several tiles (Llama 4).
    pub whole: bool,
    /// `resample`.
    pub resample: Filter,
}

impl FitTiles {
    /// The tiles of an image, and their rows and columns.
    pub(super) fn of(&self, image: &RgbImage) -> Result<(Vec<RgbImage>, (usize, usize))> {
        let (size, edge) = (pixels(image), self.size.0);
        let (rows, columns) = self.canvas(size);
        let canvas = (rows * edge, columns * edge);
        let grown = |length: usize, most: usize| {
            if self.largest_canvas { most } else { length.max(edge).min(most) }
        };
        let (height, width) = undistorted(size, (grown(size.0, canvas.0), grown(size.1, canvas.1)));
        let fitted = resize(image, height.max(1), width.max(1), self.resample)?;
        let mut tiles = cut(&padded_below(&fitted, canvas, 0)?, self.size);
        if self.whole && tiles.len() > 1 {
            tiles.push(resize(image, edge, edge, self.resample)?);
        }
        Ok((tiles, (rows, columns)))
    }

    /// Rows and columns of the canvas that the image grows least to fit into (or most, as `resize_to_max_canvas` says), or
    /// becomes smaller least where it fits into none; of equals the one with the fewest tiles.
    fn canvas(&self, (height, width): Pixels) -> (usize, usize) {
        let edge = self.size.0;
        // As Llama 4, in single precision: scales are compared for equality.
        let grows = |tiles: usize, length: usize| match self.whole {
            true => f64::from((tiles * edge) as f32 / length as f32),
            false => (tiles * edge) as f64 / length as f64,
        };
        let scale = |(rows, columns): (usize, usize)| {
            let (down, across) = (grows(rows, height), grows(columns, width));
            if down > across { across } else { down }
        };
        let shapes = self.shapes();
        let fitting = shapes.iter().map(|shape| scale(*shape)).filter(|scale| *scale >= 1.0);
        let chosen = match (self.largest_canvas, fitting.clone().next()) {
            (true, Some(_)) => fitting.fold(0.0, f64::max),
            (false, Some(_)) => fitting.fold(f64::INFINITY, f64::min),
            (_, None) => shapes.iter().map(|shape| scale(*shape)).fold(0.0, f64::max),
        };
        let same = shapes.into_iter().filter(|shape| scale(*shape) == chosen);
        // The first of equals.
        same.min_by_key(|(rows, columns)| rows * columns).unwrap_or((1, 1))
    }

    /// All rows and columns of up to so many tiles, those of one form together, in the order in which forms appear from the most
    /// tiles to the fewest (`find_supported_resolutions`).
    fn shapes(&self) -> Vec<(usize, usize)> {
        let mut forms: Vec<(f64, Vec<(usize, usize)>)> = vec![];
        for count in (1..=self.most).rev() {
            for rows in (1..=count).filter(|rows| count % rows == 0) {
                let (form, shape) = (rows as f64 / (count / rows) as f64, (rows, count / rows));
                match forms.iter_mut().find(|(other, _)| *other == form) {
                    Some((_, shapes)) => shapes.push(shape),
                    None => forms.push((form, vec![shape])),
                }
            }
        }
        forms.into_iter().flat_map(|(_, shapes)| shapes).collect()
    }
}

/// The largest size of an image's form within another, cut to whole pixels.
fn undistorted((height, width): Pixels, (to_height, to_width): Pixels) -> Pixels {
    let (across, down) = (to_width as f64 / width as f64, to_height as f64 / height as f64);
    if across < down {
        (((height as f64 * across).floor() as usize).min(to_height), to_width)
    } else {
        (to_height, ((width as f64 * down).floor() as usize).min(to_width))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiles(most: usize, largest_canvas: bool) -> FitTiles {
        FitTiles { size: (10, 10), most, largest_canvas, whole: true, resample: Filter::Bilinear }
    }

    #[test]
    fn a_canvas_is_the_smallest_that_fits() {
        assert_eq!(tiles(4, false).canvas((10, 10)), (1, 1));
        assert_eq!(tiles(4, false).canvas((12, 20)), (2, 2));
        assert_eq!(tiles(4, false).canvas((10, 28)), (1, 3));
        // None fits: two by two scale by 0.5, one by four by 0.25.
        assert_eq!(tiles(4, false).canvas((40, 40)), (2, 2));
        assert_eq!(tiles(4, true).canvas((5, 5)), (2, 2));
    }

    #[test]
    fn small_images_grow_to_a_tile_and_no_further() {
        let (parts, shape) = tiles(4, false).of(&RgbImage::from_pixel(4, 2, image::Rgb([9; 3]))).unwrap();
        assert_eq!((parts.len(), shape), (1, (1, 1)));
        // 4 x 2 became 10 x 5, and black stands below.
        assert_eq!((parts[0].get_pixel(9, 4).0, parts[0].get_pixel(0, 5).0), ([9; 3], [0; 3]));
        let (parts, shape) = tiles(4, false).of(&RgbImage::new(20, 12)).unwrap();
        assert_eq!((parts.len(), shape), (5, (2, 2)));
        let alone = FitTiles { whole: false, ..tiles(4, false) };
        assert_eq!(alone.of(&RgbImage::new(20, 12)).unwrap().0.len(), 4);
    }
}
