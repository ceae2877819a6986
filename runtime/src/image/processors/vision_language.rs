//! The steps of processors of models that read images with text.

use serde_json::{Value as Json, json};

use super::steps::{glm4v, janus, numbers, qwen2_vl, resize, single};
use super::{Steps, with};
use crate::image::settings::Settings;
use crate::image::{Canvas, Filter, FitTiles, Size, SmallImages, Step};

/// The most pixels that patches are made of (32,768 patches of 16 x 16): what is resized, normalised and cut within two seconds.
const MOST_PIXELS: usize = 1 << 23;

/// The longer edge becomes `max_image_size`, and black is added up to a square.
pub(super) fn aria(settings: &Settings) -> Steps {
    let edge = settings.max_image_size;
    if ![490, 980].contains(&edge) {
        return Err(format!("`max_image_size`: is {edge}, but must be 490 or 980"));
    }
    let mut steps = vec![
        resize(settings, Size::LongestCut { edge, least: settings.min_image_size.min(edge) }),
        Step::PadLevels { size: (edge, edge), multiple_of: None, level: 0 },
    ];
    steps.extend(numbers(settings));
    Ok(steps)
}

/// Edges are multiples of `spatial_factor`, and all images are padded to the largest, whatever `do_pad` says.
pub(super) fn emu3(settings: &Settings) -> Steps {
    let factor = settings.spatial_factor;
    if factor == 0 {
        return Err("`spatial_factor`: must be at least 1".to_owned());
    }
    let mut steps = vec![];
    if let Some(Size::Between { shortest, longest }) = settings.resize {
        let (pixels, small, resample) = ((shortest, longest), SmallImages::AsOthers, settings.resample);
        steps.push(Step::SmartResize { factor, pixels, small, resample });
    }
    steps.extend(numbers(settings));
    steps.push(Step::Pad(None));
    Ok(steps)
}

/// Both edges within limits, each image whole or behind four quarters of it.
pub(super) fn idefics2(settings: &Settings) -> Steps {
    if !settings.do_pad {
        return Err(
            "`do_pad`: false is not supported; set it to true, as published checkpoints do".to_owned()
        );
    }
    let mut steps: Vec<_> = settings.do_image_splitting.then_some(Step::SplitQuarters).into_iter().collect();
    match settings.resize {
        None => {}
        Some(Size::Between { shortest: least, longest: most }) => {
            steps.push(resize(settings, Size::Limits { least, most }));
        }
        Some(size @ Size::Exact(_)) => steps.push(resize(settings, size)),
        Some(size) => return Err(format!("`size`: {size:?} has no `shortest_edge` and `longest_edge`")),
    }
    steps.extend(numbers(settings));
    Ok(steps)
}

/// As Janus's, of an image that has been made a square of the other size before.
pub(super) fn deepseek_vl_hybrid(settings: &Settings) -> Steps {
    if settings.resize.is_none() {
        return Ok(numbers(settings));
    }
    janus(settings)
}

/// What the other model of two takes: the settings whose names begin with `high_res_`, in place of those without.
pub(super) fn high_res(settings: &Json) -> Json {
    let mut own = settings.clone();
    for name in ["size", "resample", "image_mean", "image_std"] {
        own[name] = settings[format!("high_res_{name}")].clone();
    }
    own
}

/// Images that are too large become smaller, and are padded to whole patches within `size`.
pub(super) fn fuyu(settings: &Settings) -> Steps {
    let (Size::Exact(size), patch_size) = (settings.size, settings.patch_size) else {
        return Err("`size`: must have height and width".to_owned());
    };
    if patch_size == 0 || size.0 % patch_size + size.1 % patch_size != 0 {
        return Err(format!("`size`: {size:?} is no multiple of `patch_size` {patch_size}"));
    }
    if !settings.do_pad {
        return Err(
            "`do_pad`: false is not supported; set it to true, as published checkpoints do".to_owned()
        );
    }
    let mut steps = vec![];
    if settings.resize.is_some() {
        steps.push(resize(settings, Size::AtMost(size)));
    }
    let level = settings.padding_value.clamp(0.0, 255.0) as u8;
    steps.push(Step::PadLevels { size, multiple_of: Some(patch_size), level });
    steps.extend(numbers(settings));
    let most = (size.0 / patch_size) * (size.1 / patch_size);
    steps.push(Step::Patchify { patch_size, max_num_patches: most });
    Ok(steps)
}

/// Tiles of a canvas that images fit into undistorted, normalised in bfloat16.
pub(super) fn llama4(settings: &Settings) -> Steps {
    let size = match settings.resize {
        Some(Size::Exact((height, width))) if height == width => (height, width),
        _ => return Err("`size`: must be a square, and `do_resize` true".to_owned()),
    };
    if settings.max_patches > 1024 {
        return Err(format!("`max_patches`: is {}, but must be at most 1024", settings.max_patches));
    }
    let Settings { max_patches: most, resize_to_max_canvas: largest_canvas, resample, .. } = *settings;
    let tiles = FitTiles { size, most: most.max(1), largest_canvas, whole: true, resample };
    let mut steps = vec![Step::FitTiles(tiles)];
    match settings.rescale {
        Some(factor) if settings.do_normalize => {
            let [mean, std] = [settings.image_mean, settings.image_std].map(single);
            steps.push(Step::NormalizeBf16 { factor, mean, std });
        }
        _ => steps.extend(numbers(settings)),
    }
    Ok(steps)
}

/// Tiles of a canvas that images fit into undistorted, as many for each image.
pub(super) fn mllama(settings: &Settings) -> Steps {
    let size = match settings.resize {
        Some(Size::Exact((height, width))) if height == width => (height, width),
        _ => return Err("`size`: must be a square, and `do_resize` true".to_owned()),
    };
    if !settings.do_pad {
        return Err("`do_pad`: false is not supported; set it to true, as the reference asks".to_owned());
    }
    let most = settings.max_image_tiles;
    if !(1..=64).contains(&most) {
        return Err(format!("`max_image_tiles`: is {most}, but must be from 1 to 64"));
    }
    let tiles = FitTiles { size, most, largest_canvas: false, whole: false, resample: settings.resample };
    let mut steps = vec![Step::FitTiles(tiles)];
    steps.extend(numbers(settings));
    steps.push(Step::PadTilesTo(most));
    Ok(steps)
}

/// `_SUPPORTED_SOFT_TOKENS` of Gemma 4.
const SOFT_TOKENS: [usize; 5] = [70, 140, 280, 560, 1120];

/// As many pixels as there are patches, padded to as many patches.
pub(super) fn gemma4(settings: &Settings) -> Steps {
    let Settings { patch_size, pooling_kernel_size: pool, max_soft_tokens: most, .. } = *settings;
    if !SOFT_TOKENS.contains(&most) {
        return Err(format!("`max_soft_tokens`: is {most}, but must be one of {SOFT_TOKENS:?}"));
    }
    if patch_size == 0 || pool == 0 || patch_size.saturating_mul(pool) > 1024 {
        return Err("`patch_size` and `pooling_kernel_size`: must be at least 1, and together at most 1024"
            .to_owned());
    }
    let size = Size::SoftTokens { square: patch_size * pool, most };
    let mut steps: Vec<_> = settings.resize.map(|_| resize(settings, size)).into_iter().collect();
    steps.extend(numbers(settings));
    steps.push(Step::Patchify { patch_size, max_num_patches: most * pool * pool });
    Ok(steps)
}

/// As GLM-4.1V's, with all channels of a pixel together.
pub(super) fn cosmos3_edge(settings: &Settings) -> Steps {
    if settings.temporal_patch_size != 1 {
        return Err("`temporal_patch_size`: must be 1".to_owned());
    }
    let mut steps = glm4v(settings)?;
    steps.push(Step::ChannelsLast);
    Ok(steps)
}

/// As Qwen2-VL's, but that patches stand row after row, and that images are always resized bicubically.
pub(super) fn hunyuan_vl(settings: &Settings) -> Steps {
    let mut steps = qwen2_vl(settings)?;
    for step in &mut steps {
        match step {
            Step::SmartResize { resample, .. } => *resample = Filter::Bicubic,
            Step::PatchifySquares { merge_size, .. } => *merge_size = 1,
            _ => {}
        }
    }
    Ok(steps)
}

/// Tiles of a grid nearest to the page's form, and the whole page behind several.
pub(super) fn granite_docling(settings: &Settings) -> Steps {
    let Settings { resample, dense_pages, .. } = *settings;
    if settings.fine_route {
        return Err(
            "`fine_route`: true is not supported; set it to false, or give `tile_fine_mask` to the model"
                .to_owned(),
        );
    }
    let Size::Exact(size) = settings.size else {
        return Err("`size`: must have height and width".to_owned());
    };
    let mut steps = vec![match settings.crop_to_patches.filter(|(_, most)| *most > 1) {
        Some(limits) => Step::CropToPatches { size, limits, canvas: Canvas::Pages(dense_pages), resample },
        None => resize(settings, Size::Exact(size)),
    }];
    steps.extend(numbers(settings));
    Ok(steps)
}

/// The grid of squares nearest to the image's form, its patches row after row, and of each as many frames as make one, which are alike.
pub(super) fn muse_glimmer(settings: &Settings) -> Steps {
    let Settings { patch_size, merge_size, temporal_patch_size: frames, max_image_tokens: most, .. } =
        *settings;
    if [patch_size, merge_size, frames, most].contains(&0) {
        return Err(
            "`patch_size`, `merge_size`, `temporal_patch_size` and `max_image_tokens`: must be at least 1"
                .to_owned(),
        );
    }
    if patch_size.saturating_mul(merge_size) > 1024 {
        return Err("`patch_size` and `merge_size`: must be at most 1024 together".to_owned());
    }
    let size = Size::NearestGrid { square: patch_size * merge_size, most };
    let mut steps: Vec<_> = settings.resize.map(|_| resize(settings, size)).into_iter().collect();
    steps.extend(numbers(settings));
    steps.push(Step::PatchifySquares { patch_size, merge_size: 1, frames: 1 });
    steps.push(Step::RepeatFrames(frames));
    Ok(steps)
}

/// Numbers of one mean and deviation, in as many patches as there may be.
pub(super) fn pix2struct(settings: &Settings) -> Steps {
    let Settings { patch_size: patch, max_patches: most, .. } = *settings;
    if patch == 0 || most == 0 {
        return Err("`patch_size` and `max_patches`: must be at least 1".to_owned());
    }
    if most.saturating_mul(patch * patch) > MOST_PIXELS {
        return Err(format!("`max_patches`: {most} of {patch} x {patch} are more than {MOST_PIXELS} pixels"));
    }
    let mut steps = vec![Step::Rescale { factor: 1.0, offset: false }];
    steps.extend(settings.do_normalize.then_some(Step::Standardize));
    steps.push(resize(settings, Size::MostPatches { patch, most }));
    steps.push(Step::PatchifyNumbered { patch_size: patch, most });
    Ok(steps)
}

/// The other model of two takes images of another size, normalised alike where the file does not say.
pub(super) fn with_high_res(settings: Json) -> Json {
    let statistics = json!({
        "high_res_size": {"height": 1024, "width": 1024}, "high_res_resample": 3,
        "high_res_image_mean": settings["image_mean"], "high_res_image_std": settings["image_std"],
    });
    with(settings, statistics)
}
