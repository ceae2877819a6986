//! `preprocessor_config.json`, typed, with the reference's defaults.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::processors::{Class, with};
use super::{Filter, Layout, MAX_PIXELS, Pixels, Size};
use crate::hub::Checkpoint;
use crate::{Error, Result};

/// What a checkpoint says about its image processor.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// What becomes of several pictures, or parts of one.
    pub layout: Layout,
    /// The size that pictures become; as they are where not given.
    pub resize: Option<Size>,
    /// `size`, whether pictures are resized to it or not.
    pub size: Size,
    /// What their edges are rounded down to a multiple of then.
    pub step: usize,
    /// How they are resized.
    pub resample: Filter,
    /// The size of the middle that is cut out.
    pub crop: Option<Pixels>,
    /// `crop_size`, whether it is cut out or not.
    pub crop_size: Option<Pixels>,
    /// What levels, 0 to 255, are multiplied by.
    pub rescale: Option<f64>,
    /// Whether 1 is taken off what levels become then.
    pub offset: bool,
    /// What each channel is divided by once more.
    pub divide: Option<[f32; 3]>,
    /// Mean and standard deviation of each channel, which are taken off and divided by.
    pub normalize: Option<[[f32; 3]; 2]>,
    /// The mean of each channel, whether it is taken off or not.
    pub image_mean: [f64; 3],
    /// Whether pictures are filled up to one size.
    pub pad: bool,
    /// The size that they are filled up to; the largest of a batch where not given.
    pub pad_size: Option<Pixels>,
    /// The edge of a patch and the most patches of a picture, where pictures become patches that are filled up.
    pub filled: Option<(usize, usize)>,
    /// Sizes that a picture may take before it is cut into tiles.
    pub grid: Vec<Pixels>,
    /// The fewest and the most tiles that fill a version of a picture; pictures are not cut where not given.
    pub patches: Option<(usize, usize)>,
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
    do_rescale: bool,
    rescale_factor: f64,
    do_normalize: bool,
    image_mean: Channels,
    image_std: Channels,
    do_pad: bool,
    pad_size: Option<Json>,
    #[serde(default)]
    image_grid_pinpoints: Vec<Pixels>,
    crop_pct: Option<f64>,
    patch_size: Option<usize>,
    max_num_patches: Option<usize>,
    #[serde(default)]
    rescale_offset: bool,
    #[serde(default)]
    include_top: bool,
    do_pan_and_scan: Option<bool>,
    crop_to_patches: Option<bool>,
    #[serde(default)]
    min_patches: usize,
    #[serde(default)]
    max_patches: usize,
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
    class: &'static Class,
    json: Json,
}

/// The most tiles that a version of a picture is cut into.
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

    /// The same with other settings put over those of the file.
    pub(super) fn with(&self, over: &Json) -> Self {
        Self { json: with(self.json.clone(), over.clone()), ..self.clone() }
    }

    pub(super) fn settings(&self) -> Result<Settings> {
        Settings::read(self.class, &self.json).map_err(|problem| wrong(&self.file, problem))
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
                format!("no {FILE}, and no `image_processor` in {NESTED}: the checkpoint takes no pictures");
            Err(Error::config(checkpoint.dir(), problem, HELP))
        }
    }
}

impl Settings {
    pub(super) fn read(class: &Class, json: &Json) -> std::result::Result<Self, String> {
        // The older name of `do_pad`.
        let old = json!({"do_pad": json["pad_and_return_pixel_mask"]});
        let json = with(class.defaults(), with(old, json.clone()));
        let written: Written =
            serde_path_to_error::deserialize(json).map_err(|e| format!("`{}`: {}", e.path(), e.inner()))?;
        // A limit for the longer edge goes with a number alone, and is never without one.
        let longest = (class.layout == Layout::Masked).then(|| written.max_size.unwrap_or(1333));
        let size = Size::read(&written.size, class.square, longest)
            .map_err(|problem| format!("`size`: {problem}"))?;
        let exact = |name: &str, value: &Option<Json>| match value.as_ref().map(|v| Size::read(v, true, None))
        {
            None => Ok(None),
            Some(Ok(Size::Exact((height, width)))) if (height * width) as u64 > MAX_PIXELS => {
                Err(format!("`{name}`: {height} x {width} is more than {MAX_PIXELS} pixels"))
            }
            Some(Ok(Size::Exact(size))) => Ok(Some(size)),
            Some(Ok(_)) => Err(format!("`{name}`: has no height and width")),
            Some(Err(problem)) => Err(format!("`{name}`: {problem}")),
        };
        if written.do_pan_and_scan == Some(true) {
            return Err(
                "`do_pan_and_scan`: crops besides the whole picture are not supported; set it to false"
                    .to_owned(),
            );
        }
        let crop_size = exact("crop_size", &written.crop_size)?;
        if written.do_center_crop && crop_size.is_none() {
            return Err("`crop_size`: is missing, but `do_center_crop` is true".to_owned());
        }
        let (mean, std) = (written.image_mean.each(), written.image_std.each());
        if written.do_normalize && std.contains(&0.0) {
            return Err(format!("`image_std`: {std:?} divides by 0"));
        }
        if class.layout == Layout::Tiles && (written.image_grid_pinpoints.is_empty() || has_zero(&written)) {
            return Err(
                "`image_grid_pinpoints`: must be a list of [height, width], none of them 0".to_owned()
            );
        }
        let patches = written.crop_to_patches.unwrap_or(false);
        let patches = patches.then_some((written.min_patches, written.max_patches));
        if let Some((fewest, most)) = patches.filter(|(fewest, most)| fewest > most || *most > MOST_PATCHES) {
            return Err(format!("`max_patches`: is {most}, but must be from {fewest} to {MOST_PATCHES}"));
        }
        let filled = match (written.patch_size, written.max_num_patches) {
            _ if class.layout != Layout::OwnSizes => None,
            (Some(edge), Some(most)) if edge > 0 && most > 0 => Some((edge, most)),
            _ => return Err("`patch_size` and `max_num_patches`: must be at least 1".to_owned()),
        };
        let mut resize = written.do_resize.then_some(size);
        let mut crop = crop_size.filter(|_| written.do_center_crop);
        if let (Some(part), true) = (written.crop_pct, written.do_resize) {
            let edge = match size {
                Size::Shortest(edge) if part > 0.0 && part <= 1.0 => edge,
                _ => return Err(format!("`crop_pct`: {part} of {size:?} cannot be cut out")),
            };
            (resize, crop) = if edge < class.whole_from {
                (Some(Size::Shortest((edge as f64 / part) as usize)), crop.or(Some((edge, edge))))
            } else {
                (Some(Size::Exact((edge, edge))), crop)
            };
        }
        let single = |values: [f64; 3]| values.map(|value| value as f32);
        Ok(Self {
            layout: class.layout,
            resize,
            size,
            step: class.step,
            resample: written.resample,
            crop,
            crop_size,
            offset: written.do_rescale && written.rescale_offset,
            divide: written.include_top.then_some(single(std)),
            rescale: written.do_rescale.then_some(written.rescale_factor),
            normalize: written.do_normalize.then_some([single(mean), single(std)]),
            image_mean: mean,
            pad: written.do_pad,
            pad_size: exact("pad_size", &written.pad_size)?,
            filled,
            grid: written.image_grid_pinpoints,
            patches: patches.filter(|(_, most)| *most > 1),
        })
    }
}

fn has_zero(written: &Written) -> bool {
    written.image_grid_pinpoints.iter().any(|(height, width)| *height == 0 || *width == 0)
}
