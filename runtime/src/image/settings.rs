//! `preprocessor_config.json`, typed, over the defaults of the reference's class.

mod values;

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value as Json, json};

use self::values::{edge, exact, numbers_of_pixels, pixels_as_size, unsupported};
use super::processors::{Class, with};
use super::{DensePages, Filter, Layout, Pixels, Size, Step};
use crate::hub::Checkpoint;
use crate::{Error, Result};

/// What a checkpoint says of its image processor, by the file's names; steps are made of it.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// `size`, where `do_resize`.
    pub(super) resize: Option<Size>,
    pub(super) size: Size,
    pub(super) resample: Filter,
    /// `crop_size`, where `do_center_crop`.
    pub(super) center_crop: Option<Pixels>,
    pub(super) crop_size: Option<Pixels>,
    pub(super) crop_pct: Option<f64>,
    /// `rescale_factor`, where `do_rescale`.
    pub(super) rescale: Option<f64>,
    pub(super) rescale_offset: bool,
    pub(super) do_normalize: bool,
    pub(super) include_top: bool,
    pub(super) image_mean: [f64; 3],
    pub(super) image_std: [f64; 3],
    pub(super) do_flip_channel_order: bool,
    pub(super) do_grayscale: bool,
    pub(super) do_pad: bool,
    pub(super) pad_size: Option<Pixels>,
    pub(super) image_grid_pinpoints: Vec<Pixels>,
    pub(super) keep_aspect_ratio: bool,
    pub(super) ensure_multiple_of: usize,
    pub(super) size_divisor: usize,
    pub(super) patch_size: usize,
    pub(super) max_num_patches: usize,
    /// `min_patches` and `max_patches`, where `crop_to_patches`.
    pub(super) crop_to_patches: Option<(usize, usize)>,
    /// `use_covering_area_grid`, true where it is not said.
    pub(super) use_covering_area_grid: bool,
    pub(super) do_image_splitting: bool,
    pub(super) do_split_image: bool,
    /// `longest_edge` of `max_image_size`.
    pub(super) max_image_size: usize,
    pub(super) merge_size: usize,
    pub(super) min_size: usize,
    pub(super) min_image_size: usize,
    pub(super) max_patches: usize,
    pub(super) resize_to_max_canvas: bool,
    pub(super) padding_value: f64,
    pub(super) temporal_patch_size: usize,
    pub(super) spatial_factor: usize,
    pub(super) do_affine_transform: bool,
    pub(super) normalize_factor: f64,
    pub(super) limit_side_len: usize,
    /// `max`, `min` or `resize_long`.
    pub(super) limit_type: String,
    pub(super) max_side_limit: usize,
    pub(super) max_image_width: usize,
    pub(super) max_image_tiles: usize,
    pub(super) max_soft_tokens: usize,
    pub(super) max_image_tokens: usize,
    pub(super) pooling_kernel_size: usize,
    pub(super) fine_route: bool,
    /// `dense_max_patches`, `dense_max_scale`, `dense_min_aspect` and `dense_max_aspect`.
    pub(super) dense_pages: DensePages,
}

/// The file as it is written, over the defaults.
#[derive(Deserialize)]
struct Written {
    do_resize: bool,
    size: Json,
    max_size: Option<usize>,
    resample: Filter,
    do_center_crop: bool,
    crop_size: Option<Json>,
    crop_pct: Option<f64>,
    do_rescale: bool,
    rescale_factor: f64,
    // `offset` of ViViT's.
    #[serde(default, alias = "offset")]
    rescale_offset: bool,
    do_normalize: bool,
    #[serde(default)]
    include_top: bool,
    image_mean: Channels,
    image_std: Channels,
    #[serde(default)]
    do_flip_channel_order: bool,
    #[serde(default)]
    do_grayscale: bool,
    do_pad: bool,
    pad_size: Option<Json>,
    #[serde(default)]
    image_grid_pinpoints: Vec<Pixels>,
    #[serde(default)]
    keep_aspect_ratio: bool,
    #[serde(default)]
    ensure_multiple_of: usize,
    size_divisor: Option<usize>,
    #[serde(default)]
    patch_size: Json,
    #[serde(default)]
    max_num_patches: usize,
    crop_to_patches: Option<bool>,
    #[serde(default)]
    min_patches: usize,
    #[serde(default)]
    max_patches: usize,
    use_covering_area_grid: Option<bool>,
    #[serde(default)]
    do_image_splitting: bool,
    #[serde(default)]
    do_split_image: bool,
    #[serde(default)]
    max_image_size: Json,
    #[serde(default)]
    merge_size: usize,
    #[serde(default)]
    min_size: usize,
    #[serde(default)]
    min_image_size: usize,
    #[serde(default)]
    resize_to_max_canvas: bool,
    #[serde(default)]
    padding_value: f64,
    #[serde(default)]
    temporal_patch_size: usize,
    #[serde(default)]
    spatial_factor: usize,
    #[serde(default)]
    do_affine_transform: bool,
    #[serde(default)]
    normalize_factor: f64,
    #[serde(default)]
    limit_side_len: usize,
    #[serde(default)]
    limit_type: String,
    #[serde(default)]
    max_side_limit: usize,
    #[serde(default)]
    max_image_width: usize,
    #[serde(default)]
    max_image_tiles: usize,
    #[serde(default)]
    max_soft_tokens: usize,
    #[serde(default)]
    max_image_tokens: usize,
    #[serde(default)]
    pooling_kernel_size: usize,
    #[serde(default)]
    fine_route: bool,
    #[serde(default)]
    dense_max_patches: usize,
    #[serde(default)]
    dense_max_scale: f64,
    #[serde(default)]
    dense_min_aspect: f64,
    #[serde(default)]
    dense_max_aspect: f64,
}

/// One number for all channels, or one for each.
#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Channels {
    One(f64),
    Each([f64; 3]),
}

impl Channels {
    fn each(self) -> [f64; 3] {
        match self {
            Self::One(value) => [value; 3],
            Self::Each(values) => values,
        }
    }
}

/// A processor's file, and what it says.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) file: PathBuf,
    pub(super) class: &'static Class,
    json: Json,
}

/// The most frames of a patch; published processors have two.
const MOST_FRAMES: usize = 64;

/// The most tiles that a version of an image is cut into.
const MOST_PATCHES: usize = 1024;

const FILE: &str = "preprocessor_config.json";
const NESTED: &str = "processor_config.json";
const HELP: &str =
    "write it with the reference: `AutoImageProcessor.from_pretrained(ID).save_pretrained(DIR)`";

impl Source {
    pub(super) fn of(checkpoint: &Checkpoint) -> Result<Self> {
        let (file, json) = written(checkpoint)?;
        let file = checkpoint.dir().join(file);
        let config = checkpoint.json("config.json")?.unwrap_or_default();
        let name =
            ["image_processor_type", "feature_extractor_type"].iter().find_map(|key| json[key].as_str());
        let name = name.or(config["image_processor_type"].as_str());
        let class = match (name, config["architectures"][0].as_str()) {
            (Some(name), _) => Class::named(name).ok_or_else(|| format!("`{name}` is not known")),
            (None, Some(model)) => Class::of_model(model).ok_or_else(|| {
                format!("does not say `image_processor_type`, and none is named as {model} is")
            }),
            (None, None) => Err("does not say `image_processor_type`".to_owned()),
        };
        let class = class.map_err(|problem| {
            Error::config(&file, problem, format!("set `image_processor_type` to one of {}", Class::names()))
        })?;
        Ok(Self { file, class, json })
    }

    /// A setting of the file as it is written; null where there is none.
    pub(super) fn setting(&self, name: &str) -> &Json {
        &self.json[name]
    }

    /// The same with other settings put over those of the file.
    pub(super) fn with(&self, over: &Json) -> Self {
        Self { json: with(self.json.clone(), over.clone()), ..self.clone() }
    }

    /// The steps of the processor, and how their results are put together.
    pub(super) fn steps(&self) -> Result<(Vec<Step>, Layout)> {
        let steps = self.class.steps(&self.json).map_err(|problem| wrong(&self.file, problem))?;
        Ok((steps, self.class.layout))
    }

    /// The steps of images of a second vision model, where there is one.
    pub(super) fn high_res_steps(&self) -> Result<Option<Vec<Step>>> {
        self.class.high_res_steps(&self.json).map_err(|problem| wrong(&self.file, problem))
    }
}

fn wrong(file: &Path, problem: String) -> Error {
    Error::config(file, problem, "correct the file, or take it from the checkpoint that it came with")
}

/// The file's name, and the processor's part of it.
fn written(checkpoint: &Checkpoint) -> Result<(&'static str, Json)> {
    let nested = checkpoint.json(NESTED)?.unwrap_or_default();
    if nested["image_processor"].is_object() {
        return Ok((NESTED, nested["image_processor"].clone()));
    }
    match checkpoint.json(FILE)? {
        Some(json) if json.is_object() => Ok((FILE, json)),
        Some(_) => Err(wrong(&checkpoint.dir().join(FILE), "is not an object".to_owned())),
        None => {
            let problem =
                format!("no {FILE}, and no `image_processor` in {NESTED}: the checkpoint takes no images");
            Err(Error::config(checkpoint.dir(), problem, HELP))
        }
    }
}

impl Settings {
    pub(super) fn read(class: &Class, json: &Json) -> std::result::Result<Self, String> {
        if let Some(problem) = unsupported(class, json) {
            return Err(problem);
        }
        // Older names.
        let old =
            json!({"do_pad": json["pad_and_return_pixel_mask"], "size_divisor": json["size_divisibility"]});
        // Of IDEFICS, the edge of images.
        let image_size = json!({"size": json["image_size"]});
        let json = &if class.name == "Idefics" { with(json.clone(), image_size) } else { json.clone() };
        let json = with(class.defaults(), with(old, json.clone()));
        let json = if class.counts_pixels() { pixels_as_size(json) } else { json };
        let written: Written =
            serde_path_to_error::deserialize(json).map_err(|e| format!("`{}`: {}", e.path(), e.inner()))?;
        // A limit for the longer edge goes with a number alone, and is never without one.
        let longest = (class.layout == Layout::Masked).then(|| written.max_size.unwrap_or(1333));
        let size = match class.counts_pixels() {
            true => numbers_of_pixels(&written.size),
            false => Size::read(&written.size, class.default_to_square, longest),
        };
        let size = size.map_err(|problem| format!("`size`: {problem}"))?;
        if let (Size::Longest(edge), false) = (size, class.takes_longest_edge()) {
            return Err(format!("`size`: `longest_edge` {edge} says nothing of the other edge"));
        }
        // Of the class whose crops are squares (BridgeTower).
        let square = class.defaults()["crop_size"]["shortest_edge"].is_number();
        let shortest = written.crop_size.as_ref().map(|size| &size["shortest_edge"]);
        let shortest = shortest.filter(|length| square && length.is_number());
        let crop_size = shortest.or(written.crop_size.as_ref());
        let crop_size = exact("crop_size", crop_size)?;
        if written.do_center_crop && crop_size.is_none() {
            return Err("`crop_size`: is missing, but `do_center_crop` is true".to_owned());
        }
        let (mean, std) = (written.image_mean.each(), written.image_std.each());
        if (written.do_normalize || written.include_top) && std.contains(&0.0) {
            return Err(format!("`image_std`: {std:?} divides by 0"));
        }
        let patches = (written.min_patches, written.max_patches);
        let crop_to_patches = written.crop_to_patches.unwrap_or(false).then_some(patches);
        if let Some((fewest, most)) =
            crop_to_patches.filter(|(fewest, most)| fewest > most || *most > MOST_PATCHES)
        {
            return Err(format!("`max_patches`: is {most}, but must be from {fewest} to {MOST_PATCHES}"));
        }
        if written.temporal_patch_size > MOST_FRAMES {
            let frames = written.temporal_patch_size;
            return Err(format!("`temporal_patch_size`: is {frames}, but must be at most {MOST_FRAMES}"));
        }
        if written.dense_max_patches > MOST_PATCHES {
            let most = written.dense_max_patches;
            return Err(format!("`dense_max_patches`: is {most}, but must be at most {MOST_PATCHES}"));
        }
        Ok(Self {
            resize: written.do_resize.then_some(size),
            size,
            resample: written.resample,
            center_crop: crop_size.filter(|_| written.do_center_crop),
            crop_size,
            crop_pct: written.crop_pct,
            rescale: written.do_rescale.then_some(written.rescale_factor),
            rescale_offset: written.rescale_offset,
            do_normalize: written.do_normalize,
            include_top: written.include_top,
            image_mean: mean,
            image_std: std,
            do_flip_channel_order: written.do_flip_channel_order,
            do_grayscale: written.do_grayscale,
            do_pad: written.do_pad,
            pad_size: exact("pad_size", written.pad_size.as_ref())?,
            image_grid_pinpoints: written.image_grid_pinpoints,
            keep_aspect_ratio: written.keep_aspect_ratio,
            ensure_multiple_of: written.ensure_multiple_of,
            size_divisor: written.size_divisor.unwrap_or_default(),
            patch_size: edge(&written.patch_size)?,
            max_num_patches: written.max_num_patches,
            crop_to_patches,
            use_covering_area_grid: written.use_covering_area_grid.unwrap_or(true),
            do_image_splitting: written.do_image_splitting,
            do_split_image: written.do_split_image,
            max_image_size: match Size::read(&written.max_image_size, true, None) {
                Ok(Size::Longest(edge)) => edge,
                // A number (Aria).
                Ok(Size::Exact((edge, _))) if written.max_image_size.is_number() => edge,
                _ => 0,
            },
            merge_size: written.merge_size,
            min_size: written.min_size,
            min_image_size: written.min_image_size,
            max_patches: written.max_patches,
            resize_to_max_canvas: written.resize_to_max_canvas,
            padding_value: written.padding_value,
            temporal_patch_size: written.temporal_patch_size,
            spatial_factor: written.spatial_factor,
            do_affine_transform: written.do_affine_transform,
            normalize_factor: written.normalize_factor,
            limit_side_len: written.limit_side_len,
            limit_type: written.limit_type,
            max_side_limit: written.max_side_limit,
            max_image_width: written.max_image_width,
            max_image_tiles: written.max_image_tiles,
            max_soft_tokens: written.max_soft_tokens,
            max_image_tokens: written.max_image_tokens,
            pooling_kernel_size: written.pooling_kernel_size,
            fine_route: written.fine_route,
            dense_pages: DensePages {
                most: written.dense_max_patches,
                most_scale: written.dense_max_scale,
                least_aspect: written.dense_min_aspect,
                most_aspect: written.dense_max_aspect,
            },
        })
    }
}
