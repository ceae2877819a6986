//! Images that keypoints are found in (`SuperPointImageProcessor`, `LightGlueImageProcessor`).

use serde_json::{Value as Json, json};

use super::defaults::{HALF, base, with};
use super::steps::standard;
use super::{Settings, Step, Steps};

/// Of images whose keypoints are found or matched.
pub(super) fn keypoint_defaults(do_grayscale: bool) -> Json {
    let size = base(&json!({"height": 480, "width": 640}), 2, HALF);
    with(size, json!({"do_normalize": false, "do_grayscale": do_grayscale}))
}

/// `do_grayscale`, at last.
pub(super) fn grayscale(settings: &Settings) -> Steps {
    let mut steps = standard(settings)?;
    steps.extend(settings.do_grayscale.then_some(Step::Grayscale));
    Ok(steps)
}
