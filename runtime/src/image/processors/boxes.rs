//! The steps of image processors that cut boxes out of images.

use super::Steps;
use super::steps::numbers;
use crate::image::settings::Settings;
use crate::image::{Size, Step};

/// `do_affine_transform`: each box of an image becomes an image as large as `size` (`VitPoseImageProcessor`).
pub(super) fn vitpose(settings: &Settings) -> Steps {
    let Size::Exact(size) = settings.size else {
        return Err("`size`: must have height and width".to_owned());
    };
    let Settings { normalize_factor, do_affine_transform, .. } = *settings;
    if !do_affine_transform {
        let problem = "`do_affine_transform`: images of bodies that are cut out already are not supported; set it to true";
        return Err(problem.to_owned());
    }
    if !normalize_factor.is_normal() {
        return Err(format!(
            "`normalize_factor`: {normalize_factor} divides lengths, so that it cannot be that"
        ));
    }
    let mut steps = vec![Step::CutBoxes { size, normalize_factor }];
    steps.extend(numbers(settings));
    Ok(steps)
}
