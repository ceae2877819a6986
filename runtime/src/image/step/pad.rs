//! `do_pad` of a batch, whose images become as large, or as many tiles, as one of them.

use ndarray::Array3;

use super::bounded;
use crate::Result;
use crate::image::Pixels;
use crate::image::item::{Item, Part};
use crate::image::normalize::{largest, padded};

/// All images as large as the largest, or as `size` says.
pub(super) fn pad<'a>(items: Vec<Item<'a>>, size: Option<Pixels>) -> Result<Vec<Item<'a>>> {
    let mut numbers = vec![];
    for item in items {
        let parts = item.parts.into_iter().map(Part::numbers).collect::<Result<Vec<_>>>()?;
        numbers.push((item.size, parts));
    }
    let size = size.unwrap_or_else(|| largest(numbers.iter().flat_map(|(_, parts)| parts)));
    let first = numbers.iter().map(|(before, _)| *before).max_by_key(|before| before.0 * before.1);
    let most = numbers.iter().map(|(_, parts)| parts.len()).max().unwrap_or_default();
    bounded(first.unwrap_or_default(), size.0.saturating_mul(size.1).saturating_mul(most))?;
    let pad = |(before, parts): (Pixels, Vec<Array3<f32>>)| {
        let unpadded = parts.first().map(|part| (part.dim().1, part.dim().2));
        let parts = parts.iter().map(|part| padded(part, size).map(Part::Numbers)).collect::<Result<_>>()?;
        Ok(Item { size: before, parts, unpadded, split: (0, 0) })
    };
    numbers.into_iter().map(pad).collect()
}

/// All images in as many tiles as the one with most, or in so many.
pub(super) fn pad_tiles(mut items: Vec<Item<'_>>, most: Option<usize>) -> Vec<Item<'_>> {
    let most = most.or_else(|| items.iter().map(|item| item.parts.len()).max()).unwrap_or_default();
    for item in &mut items {
        let shape = match item.parts.first() {
            Some(Part::Numbers(first)) => first.dim(),
            Some(Part::Levels(first)) => (3, first.height() as usize, first.width() as usize),
            _ => continue,
        };
        item.parts.resize_with(most, || Part::Numbers(Array3::zeros(shape)));
    }
    items
}
