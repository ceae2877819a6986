//! Values of `preprocessor_config.json`, and what is refused of them.

use serde_json::Value as Json;

use crate::image::processors::Class;
use crate::image::{MAX_PIXELS, Pixels, Size};

/// Switches that are read, or make no difference to what a model takes.
const SWITCHES: [&str; 9] = [
    "do_resize",
    "do_center_crop",
    "do_rescale",
    "do_normalize",
    "do_pad",
    // Images are RGB as they are read.
    "do_convert_rgb",
    // Of labels and boxes, which only training gives.
    "do_reduce_labels",
    "do_convert_annotations",
    "do_convert_grayscale_to_rgb",
];

/// `min_pixels` and `max_pixels` of older files as `size`.
pub(super) fn pixels_as_size(mut json: Json) -> Json {
    for (old, today) in [("min_pixels", "shortest_edge"), ("max_pixels", "longest_edge")] {
        let pixels = json[old].take();
        if pixels.is_number() {
            json["size"][today] = pixels;
        }
    }
    json
}

/// The fewest and the most pixels of an image, which the file calls its edges.
pub(super) fn numbers_of_pixels(size: &Json) -> Result<Size, String> {
    let pixels = |name: &str| size[name].as_u64().filter(|pixels| (1..=MAX_PIXELS).contains(pixels));
    match pixels("shortest_edge").zip(pixels("longest_edge")) {
        Some((fewest, most)) if fewest <= most => {
            Ok(Size::Between { shortest: fewest as usize, longest: most as usize })
        }
        _ => Err(format!(
            "{size} has no `shortest_edge` up to `longest_edge`, numbers of pixels up to {MAX_PIXELS}"
        )),
    }
}

/// The edge of a square, as a number or as height and width; 0 where there is none.
pub(super) fn edge(value: &Json) -> Result<usize, String> {
    if value.is_null() {
        return Ok(0);
    }
    match Size::read(value, true, None) {
        Ok(Size::Exact((height, width))) if height == width => Ok(height),
        Ok(size) => Err(format!("`patch_size`: {size:?} is no square")),
        Err(problem) => Err(format!("`patch_size`: {problem}")),
    }
}

/// A height and a width.
pub(super) fn exact(name: &str, value: Option<&Json>) -> Result<Option<Pixels>, String> {
    match value.map(|value| Size::read(value, true, None)) {
        None => Ok(None),
        Some(Ok(Size::Exact((height, width)))) if (height * width) as u64 > MAX_PIXELS => {
            Err(format!("`{name}`: {height} x {width} is more than {MAX_PIXELS} pixels"))
        }
        Some(Ok(Size::Exact(size))) => Ok(Some(size)),
        Some(Ok(_)) => Err(format!("`{name}`: has no height and width")),
        Some(Err(problem)) => Err(format!("`{name}`: {problem}")),
    }
}

/// A step that the file asks for and nobody here takes.
pub(super) fn unsupported(class: &Class, json: &Json) -> Option<String> {
    if json["do_pan_and_scan"] == true {
        let problem = "`do_pan_and_scan`: crops besides the whole image are not supported; set it to false";
        return Some(problem.to_owned());
    }
    if json["split_image"] == true {
        return Some(
            "`split_image`: several crops of an image are not supported; set it to false".to_owned(),
        );
    }
    if json["is_vqa"] == true {
        let problem = "`is_vqa`: a question drawn above the image needs a font, which is not supported";
        return Some(problem.to_owned());
    }
    if json["padding_mode"].as_str().is_some_and(|mode| mode != "constant") {
        return Some(format!(
            "`padding_mode`: {} is not supported; set it to \"constant\"",
            json["padding_mode"]
        ));
    }
    let switches = json.as_object().into_iter().flatten();
    let mut asked = switches
        .filter(|(key, value)| **value == true && key.starts_with("do_"))
        .map(|(key, _)| key.as_str());
    // Others are steps of the classes that have a default for them.
    let defaults = class.defaults();
    let name = asked.find(|key| !SWITCHES.contains(key) && defaults.get(*key).is_none())?;
    Some(format!(
        "`{name}`: is no step of {}ImageProcessor that is supported; set it to false where images come as it would leave them",
        class.name
    ))
}
