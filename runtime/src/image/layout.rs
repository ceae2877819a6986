//! How the images of a batch are put together when all steps are done.

use ndarray::{Array1, Array2, Array3, Array4, Array5, Axis, s};

use super::item::{Item, Part};
use super::normalize::{largest, padded, stacked};
use super::patches::Patches;
use crate::{Error, Result, Value, Values};

/// What a processor gives for a batch: `pixel_values` f32, and what goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `pixel_values` `[batch, 3, height, width]`.
    Images,
    /// The same, and a `pixel_mask` `[batch, height, width]` where images were padded: 1 for pixels, 0 for padding.
    Masked,
    /// The tiles of each image: `pixel_values` `[batch, tiles, 3, height, width]`, `image_sizes` `[batch, 2]`.
    Tiles,
    /// The tiles of all images one after the other: `pixel_values` `[tiles, 3, height, width]`, `num_patches` `[batch]`.
    FlatTiles,
    /// The same with `grids` `[batch, 2]`, rows and columns of the tiles, in place of their number.
    Grids,
    /// The squares of all images of a text: `pixel_values` `[1, squares, 3, height, width]`, a `pixel_attention_mask`
    /// `[1, squares, height, width]`, and `rows` and `cols` `[1, batch]` of the squares of each image, 0 where it was not split.
    Split,
    /// The tiles of all images of a text: `pixel_values` `[1, tiles, 3, height, width]`, a `pixel_attention_mask` `[1, tiles]` of booleans,
    /// and `rows` and `cols` `[1, batch]` of the tiles of each image (Granite Docling).
    PageTiles,
    /// The images of a text, padded to the largest: `pixel_values` `[1, images, 3, height, width]`, and a `pixel_attention_mask`
    /// `[1, images, height, width]`.
    PaddedList,
    /// The images of a text: `pixel_values` `[1, images, 3, height, width]` (IDEFICS).
    List,
    /// The tiles of the images of a text, as many of each: `pixel_values` `[1, images, tiles, 3, height, width]`, and
    /// `aspect_ratio_ids` `[1, images]` and `aspect_ratio_mask` `[1, images, tiles]`, 1 for tiles and 0 for padding (Llama 3.2
    /// Vision).
    TileList,
    /// Patches of images of their own sizes, padded to as many: `pixel_values` `[batch, patches, values]`, and
    /// `image_position_ids` `[batch, patches, 2]`, column and row, -1 at padding (Gemma 4).
    Positioned,
    /// The patches of each image, which are as many: `pixel_values` `[batch, patches, values]`, and `spatial_shapes` `[batch, 2]`,
    /// rows and columns.
    Patches,
    /// Patches that say where they are, padded: `flattened_patches` `[batch, patches, values]`, an `attention_mask`
    /// `[batch, patches]`.
    FlattenedPatches,
    /// Patches of images of their own sizes: `pixel_values` `[batch, patches, values]`, a `pixel_attention_mask`
    /// `[batch, patches]` and `spatial_shapes` `[batch, 2]`, rows and columns.
    NaFlex,
    /// The patches of all images in one list: `pixel_values` `[patches, values]`, and `image_grid_thw` `[batch, 3]`, frames, rows
    /// and columns.
    Packed,
    /// The same with patches as images: `pixel_values` `[patches, 3, height, width]`.
    PackedImages,
    /// Images of their own sizes, padded to one: `pixel_values` `[batch, 3, height, width]`, `image_sizes` `[batch, 2]` without
    /// padding.
    NativeSizes,
    /// Images are the frames of a video: `pixel_values` `[batch, frames, 3, height, width]`.
    Frames,
}

impl Layout {
    pub(super) fn collate(self, items: Vec<Item<'_>>) -> Result<Values> {
        match self {
            Self::Images | Self::Frames => Ok(values([("pixel_values", images(items)?.into_dyn().into())])),
            Self::Masked => masked(items),
            Self::Tiles => tiles(items),
            Self::FlatTiles => flat_tiles(items),
            Self::Grids => grids(items),
            Self::NaFlex => naflex(items),
            Self::Split => split(items),
            Self::PageTiles => page_tiles(items),
            Self::PaddedList => padded_list(items),
            Self::List => {
                let pixels = images(items)?.insert_axis(Axis(0));
                Ok(values([("pixel_values", pixels.into_dyn().into())]))
            }
            Self::TileList => tile_list(items),
            Self::Positioned => positioned(items),
            Self::Patches => patches(items),
            Self::FlattenedPatches => flattened_patches(items),
            Self::Packed => packed(items),
            Self::PackedImages => packed_images(items),
            Self::NativeSizes => native_sizes(items),
        }
    }
}

fn values<const N: usize>(named: [(&str, Value); N]) -> Values {
    named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// `[images, 3, height, width]`, all parts of all images one after the other.
pub(super) fn images(items: Vec<Item<'_>>) -> Result<Array4<f32>> {
    let parts = items.into_iter().flat_map(|item| item.parts);
    stacked(&parts.map(Part::numbers).collect::<Result<Vec<_>>>()?)
}

fn masked(items: Vec<Item<'_>>) -> Result<Values> {
    let sizes: Option<Vec<_>> = items.iter().map(|item| item.unpadded).collect();
    let pixels = images(items)?;
    let (batch, _, height, width) = pixels.dim();
    let mut all = values([("pixel_values", pixels.into_dyn().into())]);
    if let Some(sizes) = sizes {
        let mut mask = Array3::<i64>::zeros((batch, height, width));
        for (index, (height, width)) in sizes.into_iter().enumerate() {
            mask.slice_mut(s![index, ..height, ..width]).fill(1);
        }
        all.extend(values([("pixel_mask", mask.into_dyn().into())]));
    }
    Ok(all)
}

fn tiles(items: Vec<Item<'_>>) -> Result<Values> {
    let size = |(index, axis): (usize, usize)| <[usize; 2]>::from(items[index].size)[axis] as i64;
    let sizes = Array2::from_shape_fn((items.len(), 2), size);
    let mut all = Vec::with_capacity(items.len());
    for item in items {
        all.push(images(vec![item])?);
    }
    let (tiles, channels, height, width) = all.first().map_or((0, 0, 0, 0), Array4::dim);
    if all.iter().any(|image| image.len_of(Axis(0)) != tiles) {
        let help = "set `do_pad`, or process them one by one";
        return Err(Error::input("images", "have different numbers of tiles", help));
    }
    let mut pixels = Array5::zeros((all.len(), tiles, channels, height, width));
    for (mut target, image) in pixels.axis_iter_mut(Axis(0)).zip(&all) {
        if image.shape()[1..] != [channels, height, width] {
            let help = "set `size` and `crop_size` so that tiles are of one size";
            return Err(Error::input("images", "have tiles of different sizes", help));
        }
        target.assign(image);
    }
    Ok(values([("pixel_values", pixels.into_dyn().into()), ("image_sizes", sizes.into_dyn().into())]))
}

fn flat_tiles(items: Vec<Item<'_>>) -> Result<Values> {
    let counts: Vec<i64> = items.iter().map(|item| item.parts.len() as i64).collect();
    let pixels = images(items)?;
    let counts = Array1::from_vec(counts);
    Ok(values([("pixel_values", pixels.into_dyn().into()), ("num_patches", counts.into_dyn().into())]))
}

fn grids(items: Vec<Item<'_>>) -> Result<Values> {
    // An image that no step cut is one tile.
    let side = |(index, axis): (usize, usize)| <[usize; 2]>::from(items[index].split)[axis].max(1) as i64;
    let grids = Array2::from_shape_fn((items.len(), 2), side);
    let pixels = images(items)?;
    Ok(values([("pixel_values", pixels.into_dyn().into()), ("grids", grids.into_dyn().into())]))
}

/// Rows and columns of what each image was split into, at least so many.
fn rows_and_cols(items: &[Item<'_>], least: usize) -> [(&'static str, Value); 2] {
    let side = |name, of: fn(&Item<'_>) -> usize| {
        let sides: Array1<i64> = items.iter().map(|item| of(item).max(least) as i64).collect();
        (name, sides.insert_axis(Axis(0)).into_dyn().into())
    };
    [side("rows", |item| item.split.0), side("cols", |item| item.split.1)]
}

fn split(items: Vec<Item<'_>>) -> Result<Values> {
    let mut all = values(rows_and_cols(&items, 0));
    let pixels = images(items)?;
    let (squares, _, height, width) = pixels.dim();
    let mask = Array4::<i64>::ones((1, squares, height, width));
    all.extend(values([
        ("pixel_values", pixels.insert_axis(Axis(0)).into_dyn().into()),
        ("pixel_attention_mask", mask.into_dyn().into()),
    ]));
    Ok(all)
}

fn page_tiles(items: Vec<Item<'_>>) -> Result<Values> {
    // An image that no step cut is one tile.
    let mut all = values(rows_and_cols(&items, 1));
    let pixels = images(items)?;
    let mask = Array2::from_elem((1, pixels.len_of(Axis(0))), true);
    all.extend(values([
        ("pixel_values", pixels.insert_axis(Axis(0)).into_dyn().into()),
        ("pixel_attention_mask", mask.into_dyn().into()),
    ]));
    Ok(all)
}

fn padded_list(items: Vec<Item<'_>>) -> Result<Values> {
    let parts = items.into_iter().flat_map(|item| item.parts).map(Part::numbers);
    let parts = parts.collect::<Result<Vec<_>>>()?;
    let (height, width) = largest(parts.iter());
    let mut mask = Array4::<i64>::zeros((1, parts.len(), height, width));
    let mut all = vec![];
    for (index, part) in parts.iter().enumerate() {
        mask.slice_mut(s![0, index, ..part.dim().1, ..part.dim().2]).fill(1);
        all.push(padded(part, (height, width))?);
    }
    Ok(values([
        ("pixel_values", stacked(&all)?.insert_axis(Axis(0)).into_dyn().into()),
        ("pixel_attention_mask", mask.into_dyn().into()),
    ]))
}

/// The patches of each image, and their rows and columns.
fn patches(items: Vec<Item<'_>>) -> Result<Values> {
    let all = cut(items)?;
    let shapes = Array2::from_shape_fn((all.len(), 2), |(image, axis)| {
        [all[image].rows, all[image].columns][axis] as i64
    });
    let shown = |image: &Patches| s![..image.rows * image.columns, ..];
    let views: Vec<_> = all.iter().map(|image| image.values.slice(shown(image))).collect();
    let pixels = ndarray::stack(Axis(0), &views).map_err(|_| {
        Error::input("images", "have different numbers of patches", "process them one by one")
    })?;
    Ok(values([("pixel_values", pixels.into_dyn().into()), ("spatial_shapes", shapes.into_dyn().into())]))
}

fn flattened_patches(items: Vec<Item<'_>>) -> Result<Values> {
    let all = cut(items)?;
    let counts: Vec<usize> = all.iter().map(|image| image.rows * image.columns).collect();
    let most = all.first().map_or(0, |image| image.values.nrows());
    let mask = Array2::from_shape_fn((all.len(), most), |(image, patch)| i64::from(patch < counts[image]));
    let views: Vec<_> = all.iter().map(|image| image.values.view()).collect();
    let pixels = ndarray::stack(Axis(0), &views)
        .map_err(|error| Error::input("images", error.to_string(), "give at least one image"))?;
    Ok(values([("flattened_patches", pixels.into_dyn().into()), ("attention_mask", mask.into_dyn().into())]))
}

fn packed_images(items: Vec<Item<'_>>) -> Result<Values> {
    let mut all = packed(items)?;
    if let Some(Value::F32(pixels)) = all.get_mut("pixel_values") {
        let (patches, edge) = (pixels.shape()[0], (pixels.shape()[1] / 3).isqrt());
        let shaped = std::mem::take(pixels).into_shape_with_order(vec![patches, 3, edge, edge]);
        *pixels = shaped
            .map_err(|error| Error::input("images", error.to_string(), "give images of three channels"))?;
    }
    Ok(all)
}

fn native_sizes(items: Vec<Item<'_>>) -> Result<Values> {
    let size = |item: &Item<'_>| item.unpadded.unwrap_or(item.size);
    let sizes: Vec<[usize; 2]> = items.iter().map(|item| size(item).into()).collect();
    let sizes = Array2::from_shape_fn((sizes.len(), 2), |(image, axis)| sizes[image][axis] as i64);
    let pixels = images(items)?;
    Ok(values([("pixel_values", pixels.into_dyn().into()), ("image_sizes", sizes.into_dyn().into())]))
}

/// The patches of each image.
fn cut(items: Vec<Item<'_>>) -> Result<Vec<Patches>> {
    let patches = |part: Part<'_>| match part {
        Part::Patches(patches) => Ok(patches),
        _ => Err(Error::input("image", "was not cut into patches", "give `max_num_patches`")),
    };
    items.into_iter().flat_map(|item| item.parts).map(patches).collect()
}

fn packed(items: Vec<Item<'_>>) -> Result<Values> {
    let all = cut(items)?;
    let grids = Array2::from_shape_fn((all.len(), 3), |(image, axis)| {
        [1, all[image].rows, all[image].columns][axis] as i64
    });
    let views: Vec<_> = all.iter().map(|image| image.values.view()).collect();
    let pixels = ndarray::concatenate(Axis(0), &views)
        .map_err(|error| Error::input("images", error.to_string(), "give at least one image"))?;
    Ok(values([("pixel_values", pixels.into_dyn().into()), ("image_grid_thw", grids.into_dyn().into())]))
}

fn naflex(items: Vec<Item<'_>>) -> Result<Values> {
    let all = cut(items)?;
    let (patches, width) = all.first().map_or((0, 0), |first| first.values.dim());
    let mut pixels = Array3::<f32>::zeros((all.len(), patches, width));
    let mut mask = Array2::<i64>::zeros((all.len(), patches));
    let mut shapes = Array2::<i64>::zeros((all.len(), 2));
    for (index, image) in all.iter().enumerate() {
        pixels.index_axis_mut(Axis(0), index).assign(&image.values);
        mask.slice_mut(s![index, ..image.rows * image.columns]).fill(1);
        (shapes[(index, 0)], shapes[(index, 1)]) = (image.rows as i64, image.columns as i64);
    }
    Ok(values([
        ("pixel_values", pixels.into_dyn().into()),
        ("pixel_attention_mask", mask.into_dyn().into()),
        ("spatial_shapes", shapes.into_dyn().into()),
    ]))
}

/// The number of an aspect ratio among those of up to `most` tiles, counted from 1 (`get_all_supported_aspect_ratios`).
fn aspect_ratio_id((rows, columns): (usize, usize), most: usize) -> i64 {
    let before = (1..rows).map(|rows| most / rows).sum::<usize>();
    (before + columns) as i64
}

fn tile_list(items: Vec<Item<'_>>) -> Result<Values> {
    let most = items.first().map_or(0, |item| item.parts.len());
    let splits: Vec<_> = items.iter().map(|item| item.split).collect();
    let ids = Array2::from_shape_fn((1, splits.len()), |(_, image)| aspect_ratio_id(splits[image], most));
    let mask = Array3::from_shape_fn((1, splits.len(), most), |(_, image, tile)| {
        i64::from(tile < splits[image].0 * splits[image].1)
    });
    let pixels = images(items)?;
    let (_, channels, height, width) = pixels.dim();
    let pixels = pixels.into_shape_with_order(vec![1, splits.len(), most, channels, height, width]);
    let pixels = pixels.map_err(|error| Error::input("images", error.to_string(), "report it"))?;
    Ok(values([
        ("pixel_values", pixels.into()),
        ("aspect_ratio_ids", ids.into_dyn().into()),
        ("aspect_ratio_mask", mask.into_dyn().into()),
    ]))
}

fn positioned(items: Vec<Item<'_>>) -> Result<Values> {
    let all = cut(items)?;
    let most = all.first().map_or(0, |image| image.values.nrows());
    let places = Array3::from_shape_fn((all.len(), most, 2), |(image, patch, axis)| {
        let image = &all[image];
        match patch < image.rows * image.columns {
            true => [patch % image.columns, patch / image.columns][axis] as i64,
            false => -1,
        }
    });
    let views: Vec<_> = all.iter().map(|image| image.values.view()).collect();
    let pixels = ndarray::stack(Axis(0), &views)
        .map_err(|error| Error::input("images", error.to_string(), "give at least one image"))?;
    Ok(values([("pixel_values", pixels.into_dyn().into()), ("image_position_ids", places.into_dyn().into())]))
}

#[cfg(test)]
mod tests {
    use image::RgbImage;

    use super::*;
    use crate::image::step::Step;

    fn given(layout: Layout, steps: &[Step], images: &[RgbImage]) -> Result<Values> {
        let items = images.iter().map(Item::new).collect();
        layout.collate(steps.iter().try_fold(items, |items, step| step.run(items))?)
    }

    #[test]
    fn padding_is_masked() {
        let images = [RgbImage::new(1, 2), RgbImage::new(2, 1)];
        let values = given(Layout::Masked, &[Step::Pad(None)], &images).unwrap();
        let mask = ndarray::array![[[1_i64, 0], [1, 0]], [[1, 1], [0, 0]]].into_dyn();
        assert_eq!(values["pixel_mask"], Value::from(mask));
        let whole = given(Layout::Masked, &[], &images[..1]).unwrap();
        assert_eq!(whole.keys().collect::<Vec<_>>(), ["pixel_values"]);
    }

    #[test]
    fn lists_are_padded_and_masked() {
        let images = [RgbImage::new(1, 2), RgbImage::new(2, 1)];
        let values = given(Layout::PaddedList, &[], &images).unwrap();
        assert_eq!(values["pixel_values"].shape(), [1, 2, 3, 2, 2]);
        let mask = ndarray::array![[[[1_i64, 0], [1, 0]], [[1, 1], [0, 0]]]].into_dyn();
        assert_eq!(values["pixel_attention_mask"], Value::from(mask));
    }

    #[test]
    fn aspect_ratios_are_counted_by_rows() {
        let shapes = [(1, 1), (1, 4), (2, 1), (2, 2), (3, 1), (4, 1)];
        assert_eq!(shapes.map(|shape| aspect_ratio_id(shape, 4)), [1, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn patches_say_their_column_and_row() {
        let steps = [Step::Patchify { patch_size: 1, max_num_patches: 3 }];
        let values = given(Layout::Positioned, &steps, &[RgbImage::new(2, 1)]).unwrap();
        let places = ndarray::array![[[0_i64, 0], [1, 0], [-1, -1]]].into_dyn();
        assert_eq!(values["image_position_ids"], Value::from(places));
        assert_eq!(values["pixel_values"].shape(), [1, 3, 3]);
    }

    #[test]
    fn flattened_patches_say_where_they_are() {
        let steps = [Step::PatchifyNumbered { patch_size: 1, most: 3 }];
        let values = given(Layout::FlattenedPatches, &steps, &[RgbImage::new(1, 2)]).unwrap();
        let patches = values["flattened_patches"].f32("flattened_patches").unwrap();
        assert_eq!(patches.shape(), [1, 3, 5]);
        assert_eq!((patches[[0, 1, 0]], patches[[0, 1, 1]], patches[[0, 2, 0]]), (2.0, 1.0, 0.0));
        assert_eq!(values["attention_mask"], Value::from(ndarray::array![[1_i64, 1, 0]].into_dyn()));
    }

    #[test]
    fn native_sizes_are_those_without_padding() {
        let images = [RgbImage::new(1, 2), RgbImage::new(3, 1)];
        let values = given(Layout::NativeSizes, &[Step::Pad(None)], &images).unwrap();
        assert_eq!(values["pixel_values"].shape(), [2, 3, 2, 3]);
        assert_eq!(values["image_sizes"], Value::from(ndarray::array![[2_i64, 1], [1, 3]].into_dyn()));
    }

    #[test]
    fn images_of_two_sizes_are_no_batch() {
        let images = [RgbImage::new(1, 2), RgbImage::new(2, 1)];
        let error = given(Layout::Images, &[], &images).unwrap_err().to_string();
        assert!(error.contains("different sizes after resizing: [2, 1], [1, 2]"), "{error}");
        let flat = given(Layout::FlatTiles, &[], &images[..1]).unwrap();
        assert_eq!(flat["num_patches"], Value::from(ndarray::array![1_i64].into_dyn()));
    }
}
