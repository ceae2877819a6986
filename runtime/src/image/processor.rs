//! A checkpoint's image processor: its steps, one after the other, and their results put together.

use std::path::Path;

use ndarray::{Array4, ArrayView4, Axis};
use serde_json::Value as Json;

use super::item::Item;
use super::layout::images;
use super::settings::Source;
use super::{Image, Layout, Pixels, Step};
use crate::hub::Checkpoint;
use crate::{Error, Result, Values};

/// Makes of images what a checkpoint's model takes, as its `preprocessor_config.json` says, or the part
/// `image_processor` of its `processor_config.json` (`AutoImageProcessor`).
///
/// The numbers are those of the reference's processors on Pillow, which it uses where `torchvision` is not
/// installed.
#[derive(Clone, Debug)]
pub struct ImageProcessor {
    source: Source,
    steps: Vec<Step>,
    high_res_steps: Option<Vec<Step>>,
    layout: Layout,
}

impl ImageProcessor {
    /// Reads a checkpoint's processor.
    ///
    /// # Errors
    /// When the checkpoint has none, it is of a class that is not known, or a setting is wrong or not supported.
    pub fn from_checkpoint(checkpoint: &Checkpoint) -> Result<Self> {
        Self::of(Source::of(checkpoint)?)
    }

    /// The same with other settings, by their names in the file: `{"size": {"height": 100, "width": 100}}`.
    ///
    /// # Errors
    /// When a setting is wrong or not supported.
    pub fn with(&self, settings: &Json) -> Result<Self> {
        Self::of(self.source.with(settings))
    }

    fn of(source: Source) -> Result<Self> {
        let (steps, layout) = source.steps()?;
        let high_res_steps = source.high_res_steps()?;
        Ok(Self { source, steps, high_res_steps, layout })
    }

    /// What is done to each image, in this order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// How the results are put together.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// `image_grid_pinpoints`, where images are cut into tiles of one of several sizes.
    pub fn image_grid_pinpoints(&self) -> Option<&[Pixels]> {
        self.steps.iter().find_map(|step| match step {
            Step::AnyResTiles { grid, .. } => Some(grid.as_slice()),
            _ => None,
        })
    }

    /// The name of the reference's class, without `ImageProcessor`: `Detr`.
    pub fn class(&self) -> &'static str {
        self.source.class.name
    }

    /// `character_list`: what the indices of a text recogniser's classes stand for, the first of which is CTC's blank.
    ///
    /// # Errors
    /// When the file has none, or it is no list of texts.
    pub fn character_list(&self) -> Result<Vec<String>> {
        let listed = self.source.setting("character_list");
        let characters = listed.as_array().into_iter().flatten().map(|one| one.as_str().map(str::to_owned));
        match characters.collect::<Option<Vec<_>>>() {
            Some(characters) if !characters.is_empty() => Ok(characters),
            _ => {
                let problem = "`character_list` is no list of characters, so that no text can be told";
                let help = "take the file from the checkpoint that it came with";
                Err(Error::config(self.file(), problem, help))
            }
        }
    }

    /// The file it was read from.
    pub fn file(&self) -> &Path {
        &self.source.file
    }

    /// Images to tensors: `pixel_values` f32, and what else goes with the [`Layout`].
    ///
    /// # Errors
    /// When there are no images, or they do not fit together.
    pub fn process(&self, images: &[Image]) -> Result<Values> {
        if images.is_empty() {
            return Err(Error::input("images", "are none", "give at least one image"));
        }
        if self.layout == Layout::Frames {
            return self.process_videos(&[images]);
        }
        let mut values = self.layout.collate(run(&self.steps, images)?)?;
        if let Some(steps) = &self.high_res_steps {
            let pixels = super::layout::images(run(steps, images)?)?;
            values.insert("high_res_pixel_values".to_owned(), pixels.into_dyn().into());
        }
        Ok(values)
    }

    /// Videos, each a list of as many frames, to `pixel_values` `[batch, frames, 3, height, width]`.
    ///
    /// # Errors
    /// When there are no frames, or they do not fit together.
    pub fn process_videos(&self, videos: &[&[Image]]) -> Result<Values> {
        let mut all: Vec<Array4<f32>> = vec![];
        for frames in videos {
            if frames.is_empty() {
                return Err(Error::input("frames", "are none", "give at least one"));
            }
            all.push(images(run(&self.steps, frames)?)?);
        }
        let views: Vec<ArrayView4<'_, f32>> = all.iter().map(|video| video.view()).collect();
        let pixels = ndarray::stack(Axis(0), &views).map_err(|_| {
            let shapes: Vec<String> = all.iter().map(|video| format!("{:?}", video.shape())).collect();
            let problem = format!("have different shapes: {}", shapes.join(", "));
            Error::input("videos", problem, "give at least one, and all of as many frames")
        })?;
        Ok(Values::from([("pixel_values".to_owned(), pixels.into_dyn().into())]))
    }
}

/// A batch after all steps.
pub(super) fn run<'a>(steps: &[Step], images: &'a [Image]) -> Result<Vec<Item<'a>>> {
    let items = images.iter().map(|image| Item::new(image.rgb())).collect();
    steps.iter().try_fold(items, |items, step| step.run(items))
}
