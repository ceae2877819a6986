//! The steps of PP-OCR's image processors: pages that text is detected on, and lines that it is read from.

use serde_json::{Value as Json, json};

use super::Steps;
use super::defaults::{HALF, base, with};
use super::steps::single;
use crate::image::settings::Settings;
use crate::image::{Filter, LimitedSide, Size, Step, TextSize};

/// Means and standard deviations of blue, green and red, as PaddleOCR has them.
const IMAGENET_BGR: ([f64; 3], [f64; 3]) = ([0.406, 0.456, 0.485], [0.225, 0.224, 0.229]);

pub(super) fn page_defaults() -> Json {
    let size = base(&json!({"height": 960, "width": 960}), 2, IMAGENET_BGR);
    with(size, json!({"limit_side_len": 960, "limit_type": "max", "max_side_limit": 4000}))
}

pub(super) fn line_defaults() -> Json {
    let size = json!({"height": 48, "width": 320});
    let padded = json!({"do_pad": true, "pad_size": size, "max_image_width": 3200, "character_list": []});
    with(base(&size, 2, HALF), padded)
}

/// Edges within limits, rounded to multiples of 32; blue before green before red, at last (`PPOCRV5ServerDetImageProcessor`).
pub(super) fn page(settings: &Settings) -> Steps {
    let side = match settings.limit_type.as_str() {
        "max" => LimitedSide::Longer,
        "min" => LimitedSide::Shorter,
        "resize_long" => LimitedSide::ExactlyLonger,
        other => return Err(format!("`limit_type`: is `{other}`, but must be max, min or resize_long")),
    };
    let size = TextSize::Page { side, limit: settings.limit_side_len, most: settings.max_side_limit };
    let mut steps = resized(settings, size, true)?;
    steps.extend(normalized(settings));
    steps.push(Step::FlipChannels);
    Ok(steps)
}

pub(super) fn layout_defaults() -> Json {
    base(&json!({"height": 800, "width": 800}), 3, ([0.0; 3], [1.0; 3]))
}

/// One size, to levels that are rounded (`PPDocLayoutV3ImageProcessor`).
pub(super) fn layout(settings: &Settings) -> Steps {
    let Size::Exact(size) = settings.size else {
        return Err("`size`: must have height and width".to_owned());
    };
    if settings.do_pad {
        return Err("`do_pad`: is not supported; set it to false, as published checkpoints do".to_owned());
    }
    let mut steps = resized(settings, TextSize::Exact(size), false)?;
    steps.extend(normalized(settings));
    Ok(steps)
}

/// One height, and zeros to the right of lines that are short (`PPOCRV5ServerRecImageProcessor`).
pub(super) fn rgb_line(settings: &Settings) -> Steps {
    line(settings, true)
}

/// The same with levels that are rounded, blue before green before red (`PPOCRV6SmallRecImageProcessor`).
pub(super) fn bgr_line(settings: &Settings) -> Steps {
    line(settings, false)
}

fn line(settings: &Settings, rgb: bool) -> Steps {
    let Size::Exact(size) = settings.size else {
        return Err("`size`: must have height and width".to_owned());
    };
    let size = TextSize::Line { size, most: settings.max_image_width };
    let mut steps = resized(settings, size, rgb)?;
    steps.extend((!rgb).then_some(Step::FlipChannels));
    steps.extend(normalized(settings));
    match (settings.do_pad, settings.pad_size) {
        (true, Some(size)) => steps.push(Step::PadLine(size)),
        (true, None) => return Err("`pad_size`: is missing, but `do_pad` is true".to_owned()),
        (false, _) => {}
    }
    Ok(steps)
}

fn resized(settings: &Settings, size: TextSize, antialias: bool) -> Steps {
    let Settings { resample, .. } = *settings;
    if !matches!(resample, Filter::Bilinear | Filter::Bicubic) {
        return Err(format!("`resample`: {resample:?} is not supported; set it to 2 or 3"));
    }
    Ok(settings.resize.map(|_| Step::ResizeText { size, resample, antialias }).into_iter().collect())
}

/// `do_rescale` and `do_normalize` of numbers from 0 to 255, at once (`_fuse_mean_std_and_rescale_factor`).
fn normalized(settings: &Settings) -> [Step; 1] {
    let unit = settings.rescale.map_or(1.0, f64::recip);
    let scaled = |values: [f64; 3]| single(values).map(|value| value * unit as f32);
    let (mean, std) = match settings.do_normalize {
        true => (scaled(settings.image_mean), scaled(settings.image_std)),
        false => ([0.0; 3], [unit as f32; 3]),
    };
    [Step::Normalize { mean, std }]
}
