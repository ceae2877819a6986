//! Large images in tiles: the size that fits best, and the parts of it.
//!
//! Reference: `LlavaNextImageProcessor`, `select_best_resolution`; `GotOcr2ImageProcessor`, `crop_image_to_patches`;
//! `GraniteDoclingImageProcessor`, `get_tile_budget`.

use image::RgbImage;
use image::imageops::crop_imm;

use super::item::pixels;
use super::normalize::centred_on;
use super::resize::resize;
use super::{Filter, Pixels};
use crate::Result;

/// The size in which most of an image's detail is kept and, of equals, the least is wasted.
pub(super) fn best((height, width): Pixels, sizes: &[Pixels]) -> Option<Pixels> {
    let kept = |&(to_height, to_width): &Pixels| {
        let scale = (to_width as f64 / width as f64).min(to_height as f64 / height as f64);
        let scaled = ((width as f64 * scale) as usize).saturating_mul((height as f64 * scale) as usize);
        let kept = scaled.min(width.saturating_mul(height));
        (kept, std::cmp::Reverse(to_height.saturating_mul(to_width).saturating_sub(kept)))
    };
    // The first of equals, where `max_by_key` takes the last.
    sizes.iter().rev().max_by_key(|size| kept(size)).copied()
}

/// An image's size when it has grown or shrunk to fit into another.
fn fitted((height, width): Pixels, (to_height, to_width): Pixels) -> Pixels {
    let (across, down) = (to_width as f64 / width as f64, to_height as f64 / height as f64);
    if across < down {
        (((height as f64 * across).ceil() as usize).min(to_height), to_width)
    } else {
        (to_height, ((width as f64 * down).ceil() as usize).min(to_width))
    }
}

/// The whole image, made small, and then its tiles from left to right, row by row.
pub(super) fn any_res_tiles(
    image: &RgbImage,
    grid: &[Pixels],
    whole: Pixels,
    edge: usize,
    filter: Filter,
) -> Result<Vec<RgbImage>> {
    let target = best(pixels(image), grid).unwrap_or(whole);
    let (height, width) = fitted(pixels(image), target);
    let large = centred_on(&resize(image, height, width, filter)?, target, [0; 3]);
    let mut tiles = vec![resize(image, whole.0, whole.1, filter)?];
    tiles.extend(cut(&large, (edge, edge)));
    Ok(tiles)
}

/// The tiles of an image from left to right, row by row.
pub(super) fn cut(image: &RgbImage, (height, width): Pixels) -> Vec<RgbImage> {
    let tile = |top: usize, left: usize| {
        crop_imm(image, left as u32, top as u32, width as u32, height as u32).to_image()
    };
    let (rows, columns) = pixels(image);
    let tops = (0..rows).step_by(height);
    tops.flat_map(|top| (0..columns).step_by(width).map(move |left| (top, left)))
        .map(|(top, left)| tile(top, left))
        .collect()
}

/// Four quarters of an image, of which the last have what divides into no halves, and the whole.
pub(super) fn quarters(image: &RgbImage) -> Vec<RgbImage> {
    let (width, height) = image.dimensions();
    let (across, down) = (width / 2, height / 2);
    let part = |left, top, wide, high| crop_imm(image, left, top, wide, high).to_image();
    vec![
        part(0, 0, across, down),
        part(across, 0, width - across, down),
        part(0, down, across, height - down),
        part(across, down, width - across, height - down),
        image.clone(),
    ]
}

/// How many tiles an image fills, rows and columns (`get_optimal_tiled_canvas`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Canvas {
    /// Of the shapes from the fewest tiles to the most the one whose shape is nearest to the image's (`GotOcr2ImageProcessor`).
    NearestRatio,
    /// That which the image is enlarged least to fit into, or made smaller least where it fits into none
    /// (`Cohere2VisionImageProcessor`).
    LeastScaling,
    /// The fewest whose parts of the image, made to fit, keep nine tenths of its area (`Ovis2ImageProcessor`); the whole image
    /// stands before several.
    CoveringArea,
    /// As [`Canvas::NearestRatio`], of no more than 16 rows and columns, and of more tiles where a page asks for them
    /// (`GraniteDoclingImageProcessor`).
    Pages(DensePages),
}

/// Pages that have more tiles than others (`get_tile_budget` of `GraniteDoclingImageProcessor`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DensePages {
    /// `dense_max_patches`: the most tiles that they have; 0 where there are none.
    pub most: usize,
    /// `dense_max_scale`: in as many tiles as others have, they would shrink below this share of their width; 0 for any.
    pub most_scale: f64,
    /// `dense_min_aspect`: their width is more than this times their height; 0 for any.
    pub least_aspect: f64,
    /// `dense_max_aspect`: and no more than this times it; 0 for any.
    pub most_aspect: f64,
}

impl DensePages {
    /// The most rows and columns of a page: there are no tokens that stand for others.
    const MOST_SIDE: usize = 16;

    /// The most tiles of a page of this size.
    fn budget(self, (height, width): Pixels, tile: Pixels, limits: (usize, usize)) -> usize {
        let aspect = width as f64 / height as f64;
        let asked = self.most > 0 && (self.most_scale > 0.0 || self.least_aspect > 0.0);
        let formed = (self.least_aspect <= 0.0 || aspect > self.least_aspect)
            && (self.most_aspect <= 0.0 || aspect <= self.most_aspect);
        let shrunk = || {
            let (_, columns) = canvas((height, width), tile, limits, Self::MOST_SIDE);
            self.most_scale <= 0.0 || ((columns * tile.1) as f64 / width as f64) < self.most_scale
        };
        if asked && formed && shrunk() { self.most } else { limits.1 }
    }
}

impl Canvas {
    /// Rows and columns of tiles of this size, from the fewest to the most of them.
    pub(super) fn of(self, image: &RgbImage, tile: Pixels, limits: (usize, usize)) -> (usize, usize) {
        match self {
            Self::NearestRatio => canvas(pixels(image), tile, limits, usize::MAX),
            Self::LeastScaling => least_scaled(pixels(image), tile.0, limits.1),
            Self::CoveringArea => covering(pixels(image), tile.0, limits.1),
            Self::Pages(dense) => {
                let most = dense.budget(pixels(image), tile, limits);
                canvas(pixels(image), tile, (limits.0, most), DensePages::MOST_SIDE)
            }
        }
    }

    /// The most tiles of an image.
    pub(super) fn most(self, limits: (usize, usize)) -> usize {
        if let Self::Pages(dense) = self { limits.1.max(dense.most) } else { limits.1 }
    }
}

/// Rows and columns of square tiles, at most `most`, that an image is enlarged least to fit into.
fn least_scaled((height, width): Pixels, edge: usize, most: usize) -> (usize, usize) {
    let shapes = (1..=most).flat_map(|columns| (1..=most / columns).map(move |rows| (rows, columns)));
    let mut shapes: Vec<_> = shapes.collect();
    shapes.sort_by_key(|(rows, columns)| rows * columns);
    let scale = |&(rows, columns): &Pixels| {
        ((columns * edge) as f64 / width as f64).min((rows * edge) as f64 / height as f64)
    };
    let fits = shapes.iter().any(|shape| scale(shape) >= 1.0);
    let off = |shape: &Pixels| match (fits, scale(shape)) {
        (true, scale) if scale < 1.0 => f64::INFINITY,
        (true, scale) => scale,
        (false, scale) => -scale,
    };
    // The first of equals.
    shapes.into_iter().min_by(|one, other| off(one).total_cmp(&off(other))).unwrap_or((1, 1))
}

/// Rows and columns of square tiles, at most `most` (`get_min_tile_covering_grid`). As by the reference, which takes one for the
/// other, parts are measured with as many rows as tiles have columns.
fn covering((height, width): Pixels, edge: usize, most: usize) -> (usize, usize) {
    let shapes = (1..=most).flat_map(|columns| (1..=most / columns).map(move |rows| (rows, columns)));
    let mut shapes: Vec<_> = shapes.collect();
    shapes.sort_by_key(|(rows, columns)| rows * columns);
    let kept = |high: usize, wide: usize| {
        let (long, short) = (high.max(wide) as f64, high.min(wide) as f64);
        let edge = edge as f64;
        if long > edge { short / long * edge * edge } else { long * short }
    };
    // Of the parts, the last of a line has what divides into no equal parts.
    let last = |length: usize, parts: usize| length - (parts - 1) * (length / parts);
    let share = |&(columns, rows): &Pixels| {
        let (high, wide) = (height / rows, width / columns);
        let row = |high: usize| (columns - 1) as f64 * kept(high, wide) + kept(high, last(width, columns));
        ((rows - 1) as f64 * row(high) + row(last(height, rows))) / (height * width) as f64
    };
    let shares: Vec<_> = shapes.iter().map(|shape| (*shape, share(shape))).collect();
    let better = |shapes: Vec<(Pixels, f64)>, fewest: bool| {
        let tiles = |(rows, columns): Pixels| if fewest { rows * columns } else { 0 };
        let order = |(one, first): &(Pixels, f64), (other, second): &(Pixels, f64)| {
            tiles(*one).cmp(&tiles(*other)).then(second.total_cmp(first))
        };
        shapes.into_iter().min_by(order).map(|(shape, _)| shape)
    };
    let enough: Vec<_> = shares.iter().copied().filter(|(_, share)| *share > COVERED).collect();
    better(enough, true).or_else(|| better(shares, false)).unwrap_or((1, 1))
}

/// How much of an image's area its parts must keep.
const COVERED: f64 = 0.9;

/// The size of an image whose edges are multiples of a square's, as `resize_for_vision_encoder` has it.
pub(super) fn whole_squares((height, width): Pixels, edge: usize) -> Pixels {
    let whole = |length: usize| length.div_ceil(edge) * edge;
    let ratio = width as f64 / height as f64;
    if width >= height {
        let width = whole(width);
        (whole((width as f64 / ratio) as usize), width)
    } else {
        let height = whole(height);
        (height, whole((height as f64 * ratio) as usize))
    }
}

/// The squares of a version of the image that they fill, row by row, and then the whole image if they are several; and their
/// rows and columns, 0 if the image is one itself (`Idefics3ImageProcessor.split_images`).
pub(super) fn squares(
    image: &RgbImage,
    edge: usize,
    filter: Filter,
) -> Result<(Vec<RgbImage>, (usize, usize))> {
    let (height, width) = whole_squares(pixels(image), edge);
    let large = resize(image, height, width, filter)?;
    if height.max(width) <= edge {
        return Ok((vec![large], (0, 0)));
    }
    let mut tiles = cut(&large, (edge, edge));
    tiles.push(resize(&large, edge, edge, filter)?);
    Ok((tiles, (height / edge, width / edge)))
}

/// Rows and columns of the tiles, from the fewest to the most and no more of either than `side`, whose shape is nearest to an image's
/// and, of equals, the larger ones as long as these are not twice as large as the image.
fn canvas(
    (height, width): Pixels,
    tile: Pixels,
    (fewest, most): (usize, usize),
    side: usize,
) -> (usize, usize) {
    let shapes = (1..=most.min(side))
        .flat_map(|columns| (1..=(most / columns).min(side)).map(move |rows| (rows, columns)));
    let mut shapes: Vec<_> = shapes.filter(|(rows, columns)| rows * columns >= fewest).collect();
    shapes.sort_by_key(|(rows, columns)| rows * columns);
    let ratio = width as f64 / height as f64;
    let (mut nearest, mut best) = (f64::INFINITY, (1, 1));
    for (rows, columns) in shapes {
        let off = (ratio - columns as f64 / rows as f64).abs();
        let half = 0.5 * (tile.0 * tile.1 * rows * columns) as f64;
        if off < nearest || (off == nearest && (height * width) as f64 > half) {
            (nearest, best) = (off, (rows, columns));
        }
    }
    best
}

/// The tiles of a version of the image that they fill, row by row, and after or before several the whole image.
pub(super) fn crops(
    image: &RgbImage,
    tile: Pixels,
    (rows, columns): (usize, usize),
    canvas: Canvas,
    filter: Filter,
) -> Result<Vec<RgbImage>> {
    let (height, width) = tile;
    let mut tiles = cut(&resize(image, height * rows, width * columns, filter)?, tile);
    if tiles.len() > 1 {
        tiles.push(resize(image, height, width, filter)?);
        if canvas == Canvas::CoveringArea {
            tiles.rotate_right(1);
        }
    }
    Ok(tiles)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_size_keeps_most_and_wastes_least() {
        let sizes = [(336, 672), (672, 336), (672, 672), (1008, 336), (336, 1008)];
        assert_eq!(best((480, 640), &sizes), Some((672, 672)));
        assert_eq!(best((200, 900), &sizes), Some((336, 1008)));
        assert_eq!(best((100, 100), &sizes), Some((336, 672)));
        assert_eq!(best((100, 100), &[]), None);
    }

    #[test]
    fn tiles_are_as_many_as_need_the_least_scaling() {
        assert_eq!(least_scaled((100, 300), 64, 6), (1, 3));
        assert_eq!(least_scaled((100, 180), 64, 6), (2, 3));
        assert_eq!(least_scaled((60, 100), 64, 6), (1, 2));
        assert_eq!(least_scaled((60, 60), 64, 1), (1, 1));
        assert_eq!(least_scaled((2000, 500), 64, 4), (4, 1));
    }

    #[test]
    fn images_are_split_into_whole_squares() {
        assert_eq!(whole_squares((30, 77), 16), (32, 80));
        assert_eq!(whole_squares((77, 30), 16), (80, 32));
        let (tiles, split) = squares(&RgbImage::new(40, 20), 16, Filter::Lanczos).unwrap();
        assert_eq!((tiles.len(), split), (7, (2, 3)));
        assert!(tiles.iter().all(|tile| pixels(tile) == (16, 16)));
        let (tiles, split) = squares(&RgbImage::new(9, 5), 16, Filter::Lanczos).unwrap();
        assert_eq!((tiles.len(), split), (1, (0, 0)));
    }

    #[test]
    fn tiles_are_shaped_as_the_image_is() {
        let canvas = |size, limits| canvas(size, (448, 448), limits, usize::MAX);
        assert_eq!(canvas((480, 640), (1, 12)), (3, 4));
        assert_eq!(canvas((100, 100), (1, 12)), (1, 1));
        assert_eq!(canvas((2000, 2000), (1, 12)), (3, 3));
        assert_eq!(canvas((100, 900), (1, 4)), (1, 4));
        assert_eq!(canvas((900, 300), (2, 6)), (3, 1));
    }

    #[test]
    fn wide_pages_have_more_tiles() {
        let of =
            |height, width, dense| Canvas::Pages(dense).of(&RgbImage::new(width, height), (10, 10), (1, 4));
        let none = DensePages { most: 0, most_scale: 0.9, least_aspect: 1.0, most_aspect: 0.0 };
        assert_eq!(of(40, 60, none), (2, 2));
        // Two columns of 10 pixels for 60; the form of six tiles is the page's own.
        let dense = DensePages { most: 6, ..none };
        assert_eq!(of(40, 60, dense), (2, 3));
        assert_eq!(of(40, 60, DensePages { most_scale: 0.3, ..dense }), (2, 2));
        assert_eq!(of(40, 60, DensePages { least_aspect: 1.5, ..dense }), (2, 2));
        assert_eq!(of(40, 60, DensePages { most_aspect: 1.4, ..dense }), (2, 2));
        assert_eq!(Canvas::Pages(dense).most((1, 4)), 6);
        // No more than 16 in a row.
        assert_eq!(of(1, 40, DensePages { most: 32, most_scale: 0.0, ..dense }), (1, 16));
    }

    #[test]
    fn what_is_fitted_touches_an_edge() {
        assert_eq!(fitted((480, 640), (672, 672)), (504, 672));
        assert_eq!(fitted((100, 333), (50, 100)), (31, 100));
    }
}
