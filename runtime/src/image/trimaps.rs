//! Images that come with something beside them: a trimap, or the boxes of what is in them.

use std::borrow::Cow;

use ndarray::{Axis, s};

use super::item::{Item, Part};
use super::processor::run;
use super::{CenterScale, Image, ImageProcessor, Step};
use crate::{Error, Result, Values};

impl ImageProcessor {
    /// An image with a trimap as its fourth channel (`VitMatteImageProcessor`): `pixel_values` `[1, 4, height, width]`. The trimap is
    /// white where foreground is, black where background is, and grey in between.
    ///
    /// # Errors
    /// When the trimap is of another size.
    pub fn process_trimap(&self, image: &Image, trimap: &Image) -> Result<Values> {
        let sizes = [image, trimap].map(|image| (image.height(), image.width()));
        if sizes[0] != sizes[1] {
            let [(height, width), (rows, columns)] = sizes;
            let problem = format!("is {rows} x {columns} pixels, but its image {height} x {width}");
            return Err(Error::input("trimap", problem, "give one of the image's size"));
        }
        let (pads, steps): (Vec<Step>, Vec<Step>) =
            self.steps().iter().cloned().partition(|step| matches!(step, Step::PadToMultiple(_)));
        let rescale: Vec<Step> =
            steps.iter().filter(|step| matches!(step, Step::Rescale { .. })).cloned().collect();
        let numbers = |steps: &[Step], image: &Image| {
            let parts = run(steps, std::slice::from_ref(image))?.into_iter().flat_map(|item| item.parts);
            parts.map(Part::numbers).next().transpose().map(Option::unwrap_or_default)
        };
        let (image, trimap) = (numbers(&steps, image)?, numbers(&rescale, trimap)?);
        // Grey has the same level in all channels.
        let views = [image.view(), trimap.slice(s![..1, .., ..])];
        let joined = ndarray::concatenate(Axis(0), &views)
            .map_err(|error| Error::input("trimap", error.to_string(), "give one of the image's size"))?;
        let item = Item { size: sizes[0], parts: vec![Part::Numbers(joined)], unpadded: None, split: (0, 0) };
        let items = pads.iter().try_fold(vec![item], |items, step| step.run(items))?;
        self.layout().collate(items)
    }

    /// What boxes of an image show, each an image of its own (`VitPoseImageProcessor`), with the place that each stands for. A box is
    /// its left and upper edge, its width and its height, in pixels.
    ///
    /// # Errors
    /// When there is no box, one is of no size, or the processor does not cut them.
    pub fn process_boxes(&self, image: &Image, boxes: &[[f64; 4]]) -> Result<(Values, Vec<CenterScale>)> {
        let cut = self.steps().iter().find_map(|step| match step {
            Step::CutBoxes { size, normalize_factor } => Some((*size, *normalize_factor)),
            _ => None,
        });
        let Some((size, normalize_factor)) = cut else {
            let problem = format!("are not cut out by {}ImageProcessor", self.class());
            return Err(Error::input("boxes", problem, "open a checkpoint of a model of poses"));
        };
        if boxes.is_empty() {
            return Err(Error::input("boxes", "are none", "give at least one: left, top, width and height"));
        }
        for [left, top, width, height] in boxes {
            let edges = [left, top, width, height];
            if edges.iter().any(|edge| !edge.is_finite()) || *width <= 0.0 || *height <= 0.0 {
                let problem = format!("have one of width {width} and height {height} at ({left}, {top})");
                return Err(Error::input("boxes", problem, "give left, top, width and height in pixels"));
            }
        }
        let places: Vec<_> =
            boxes.iter().map(|edges| CenterScale::of(*edges, size, normalize_factor)).collect();
        let item = |place: &CenterScale| Item {
            size: (image.height(), image.width()),
            parts: vec![Part::Levels(Cow::Owned(place.cut(image.rgb(), size)))],
            unpadded: None,
            split: (0, 0),
        };
        let mut rest = self.steps().iter().filter(|step| !matches!(step, Step::CutBoxes { .. }));
        let items = rest.try_fold(places.iter().map(item).collect(), |items, step| step.run(items))?;
        Ok((self.layout().collate(items)?, places))
    }
}
