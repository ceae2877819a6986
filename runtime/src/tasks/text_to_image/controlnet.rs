//! ControlNet in a pipeline: the control image, and at which steps it counts (Zhang et al., 2023, arXiv:2302.05543).
//!
//! Reference: `StableDiffusionControlNetPipeline` and `StableDiffusionXLControlNetPipeline` of `diffusers`.

use std::borrow::Cow;

use ndarray::{Array4, ArrayD};

use super::{TextToImage, TextToImageOptions};
use crate::any_model::AnyModel;
use crate::image::{Filter, Image};
use crate::{Error, Result, Value};

impl<A: AnyModel> TextToImage<A> {
    /// The options with the control image's height and width where none are given, less what is left of a row of latents.
    pub(super) fn sized_by_control<'a>(
        &self,
        options: &'a TextToImageOptions,
    ) -> Result<Cow<'a, TextToImageOptions>> {
        let image = match (&options.control_image, self.class.controlnet) {
            (None, false) => return Ok(Cow::Borrowed(options)),
            (Some(image), true) => image,
            (None, true) => {
                let help = "give the image that the ControlNet of this pipeline follows";
                return Err(Error::input("control_image", "is missing", help));
            }
            (Some(_), false) => {
                let help = "leave it out, or open a folder that has a `controlnet`";
                return Err(Error::input("control_image", "is not read by this pipeline", help));
            }
        };
        let (start, end) = (options.control_guidance_start, options.control_guidance_end);
        if !(start >= 0.0 && start < end && end <= 1.0) {
            let problem = format!("goes from {start} to {end}");
            let help = "give two shares of the steps, from 0 to 1, of which the first is less";
            return Err(Error::input("control_guidance", problem, help));
        }
        let scale = self.settings.scale;
        let mut sized = options.clone();
        sized.height.get_or_insert(image.height() / scale * scale);
        sized.width.get_or_insert(image.width() / scale * scale);
        Ok(Cow::Owned(sized))
    }

    /// What a ControlNet's residuals are multiplied with in a step of so many; `None` without one.
    pub(super) fn control_scale(
        &self,
        options: &TextToImageOptions,
        step: usize,
        steps: usize,
    ) -> Option<Value> {
        self.class.controlnet.then(|| {
            let scale =
                if counts(options, step, steps) { options.controlnet_conditioning_scale } else { 0.0 };
            ArrayD::from_elem(vec![1], scale).into()
        })
    }
}

/// Whether a ControlNet counts in a step of so many (`controlnet_keep`).
fn counts(options: &TextToImageOptions, step: usize, steps: usize) -> bool {
    let share = |step: usize| step as f64 / steps as f64;
    share(step) >= options.control_guidance_start && share(step + 1) <= options.control_guidance_end
}

/// A control image in this size, between 0 and 1, for all rows: `[rows, 3, height, width]`.
pub(super) fn control(image: &Image, [height, width]: [usize; 2], rows: usize) -> Result<Value> {
    let image = image.resize(height, width, Filter::Lanczos)?;
    let pixels = image.pixels();
    let at = |(_, c, y, x): (usize, usize, usize, usize)| f32::from(pixels[[y, x, c]]) / 255.0;
    Ok(Array4::from_shape_fn((rows, 3, height, width), at).into_dyn().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_steps_is_controlled() {
        let options = TextToImageOptions {
            control_guidance_start: 0.25,
            control_guidance_end: 0.8,
            ..TextToImageOptions::default()
        };
        let counted: Vec<bool> = (0..5).map(|step| counts(&options, step, 5)).collect();
        assert_eq!(counted, [false, false, true, true, false]);
    }

    #[test]
    fn a_control_image_is_between_0_and_1() {
        let image =
            Image::from_pixels(&ndarray::Array3::from_shape_fn((1, 1, 3), |(_, _, c)| [0, 51, 255][c]));
        let Ok(Value::F32(control)) = control(&image.unwrap(), [1, 1], 2) else { panic!("numbers") };
        assert_eq!(control.shape(), [2, 3, 1, 1]);
        assert_eq!(control.into_raw_vec_and_offset().0, [0.0, 0.2, 1.0, 0.0, 0.2, 1.0]);
    }
}
