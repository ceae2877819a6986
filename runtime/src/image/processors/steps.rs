//! The steps of each of the reference's image processors, by its settings.

use super::Steps;
use crate::image::settings::Settings;
use crate::image::{Canvas, Size, SmallImages, Step};

/// `do_resize`, `do_center_crop`, `do_rescale`, `do_normalize` and `do_pad`, as most classes do them.
pub(super) fn standard(settings: &Settings) -> Steps {
    let mut steps = unpadded(settings);
    steps.extend(settings.do_pad.then_some(Step::Pad(settings.pad_size)));
    Ok(steps)
}

/// The same without padding.
pub(super) fn unpadded(settings: &Settings) -> Vec<Step> {
    let mut steps: Vec<_> = settings.resize.map(|size| resize(settings, size)).into_iter().collect();
    steps.extend(settings.center_crop.map(Step::CenterCrop));
    steps.extend(numbers(settings));
    steps
}

pub(super) fn resize(settings: &Settings, size: Size) -> Step {
    Step::Resize { size, multiple_of: 1, resample: settings.resample }
}

/// `do_rescale` and `do_normalize`.
pub(in crate::image) fn numbers(settings: &Settings) -> Vec<Step> {
    let [mean, std] = [settings.image_mean, settings.image_std].map(single);
    let rescale = settings.rescale.map(|factor| Step::Rescale { factor, offset: false });
    let normalize = settings.do_normalize.then_some(Step::Normalize { mean, std });
    rescale.into_iter().chain(normalize).collect()
}

/// `offset`: levels between -1 and 1.
pub(super) fn vivit(settings: &Settings) -> Steps {
    let mut steps = standard(settings)?;
    for step in &mut steps {
        if let Step::Rescale { offset, .. } = step {
            *offset = settings.rescale_offset;
        }
    }
    Ok(steps)
}

/// The shorter edge becomes 256 / 224 of what it says.
pub(super) fn levit(settings: &Settings) -> Steps {
    let mut steps = standard(settings)?;
    if let Some(Step::Resize { size: Size::Shortest(edge), .. }) = steps.first_mut() {
        *edge = (256.0 / 224.0 * *edge as f64) as usize;
    }
    Ok(steps)
}

/// `do_flip_channel_order`: blue before green before red, at last.
pub(super) fn flipped(settings: &Settings) -> Steps {
    let mut steps = standard(settings)?;
    steps.extend(settings.do_flip_channel_order.then_some(Step::FlipChannels));
    Ok(steps)
}

pub(super) fn single(values: [f64; 3]) -> [f32; 3] {
    values.map(|value| value as f32)
}

/// `keep_aspect_ratio` and `ensure_multiple_of`.
pub(super) fn dpt(settings: &Settings) -> Steps {
    if settings.do_pad {
        return Err("`do_pad`: is not supported; set it to false, as published checkpoints do".to_owned());
    }
    let mut steps = unpadded(settings);
    for step in &mut steps {
        if let Step::Resize { size, .. } = step {
            let Size::Exact(edges) = *size else {
                return Err("`size`: must have height and width".to_owned());
            };
            let Settings { ensure_multiple_of: multiple, keep_aspect_ratio, .. } = *settings;
            *size = Size::Multiples { size: edges, multiple: multiple.max(1), keep_aspect_ratio };
        }
    }
    Ok(steps)
}

/// Edges become multiples of `size_divisor`, whatever they are.
pub(super) fn glpn(settings: &Settings) -> Steps {
    let mut steps = unpadded(settings);
    for step in &mut steps {
        if let Step::Resize { size, multiple_of, .. } = step {
            (*size, *multiple_of) = (Size::Own, settings.size_divisor.max(1));
        }
    }
    Ok(steps)
}

/// The shorter edge, and both rounded up to multiples of `size_divisor`.
pub(super) fn textnet(settings: &Settings) -> Steps {
    let mut steps = standard(settings)?;
    if let Some(Step::Resize { size, .. }) = steps.first_mut() {
        let Size::Shortest(edge) = *size else { return Err("`size`: must have shortest_edge".to_owned()) };
        *size = Size::ShortestMultiple { edge, multiple: settings.size_divisor.max(1) };
    }
    Ok(steps)
}

/// Edges are multiples of 16.
pub(super) fn yolos(settings: &Settings) -> Steps {
    let mut steps = standard(settings)?;
    for step in &mut steps {
        if let Step::Resize { multiple_of, .. } = step {
            *multiple_of = 16;
        }
    }
    Ok(steps)
}

/// What is padded has no mask that models read.
pub(super) fn rt_detr(settings: &Settings) -> Steps {
    match settings.do_pad {
        true => Err("`do_pad`: is not supported; set it to false, as published checkpoints do".to_owned()),
        false => standard(settings),
    }
}

/// The longer edge becomes `longest_edge`, the other follows.
pub(super) fn sam(settings: &Settings) -> Steps {
    let mut steps = standard(settings)?;
    for step in &mut steps {
        if let Step::Resize { size, .. } = step {
            let Size::Longest(edge) = *size else {
                return Err("`size`: must be `longest_edge`".to_owned());
            };
            *size = Size::LongestRounded(edge);
        }
    }
    Ok(steps)
}

/// Below 384, the middle of a larger image is taken; from there on the image is squeezed.
pub(super) fn convnext(settings: &Settings) -> Steps {
    let mut steps = vec![];
    match (settings.resize, settings.crop_pct) {
        (None, _) => {}
        (Some(Size::Shortest(edge)), Some(part)) if edge < 384 && is_part(part) => {
            let shortest = Size::Shortest((edge as f64 / part) as usize);
            steps.extend([resize(settings, shortest), Step::CenterCrop((edge, edge))]);
        }
        (Some(Size::Shortest(edge)), Some(part)) if is_part(part) => {
            steps.push(resize(settings, Size::Exact((edge, edge))));
        }
        (Some(size), part) => return Err(not_cut(size, part)),
    }
    steps.extend(settings.center_crop.map(Step::CenterCrop));
    steps.extend(numbers(settings));
    Ok(steps)
}

/// What is cut out is `crop_pct` of what images are resized to.
pub(super) fn poolformer(settings: &Settings) -> Steps {
    let mut steps = standard(settings)?;
    let (Some(size), Some(part)) = (settings.resize, settings.crop_pct) else { return Ok(steps) };
    let larger = |edge: usize| (edge as f64 / part) as usize;
    let larger = match size {
        _ if !is_part(part) => return Err(not_cut(size, Some(part))),
        Size::Shortest(edge) => Size::Shortest(larger(edge)),
        Size::Exact((height, width)) if height == width => Size::Shortest(larger(height)),
        Size::Exact((height, width)) => Size::Exact((larger(height), larger(width))),
        size => return Err(not_cut(size, Some(part))),
    };
    if let Some(first) = steps.first_mut() {
        *first = resize(settings, larger);
    }
    Ok(steps)
}

pub(super) fn is_part(part: f64) -> bool {
    part > 0.0 && part <= 1.0
}

pub(super) fn not_cut(size: Size, part: Option<f64>) -> String {
    match part {
        Some(part) => format!("`crop_pct`: {part} of {size:?} cannot be cut out"),
        None => "`crop_pct`: is missing".to_owned(),
    }
}

/// `rescale_offset`, and `include_top`: the deviation divides once more.
pub(super) fn efficientnet(settings: &Settings) -> Steps {
    let mut steps = unpadded(settings);
    for step in &mut steps {
        if let Step::Rescale { offset, .. } = step {
            *offset = settings.rescale_offset;
        }
    }
    let again = Step::Normalize { mean: [0.0; 3], std: single(settings.image_std) };
    steps.extend(settings.include_top.then_some(again));
    Ok(steps)
}

/// Images become numbers before they are resized, so that nothing is rounded: on `torchvision`, the reference's only form.
pub(super) fn dinov3(settings: &Settings) -> Steps {
    if settings.center_crop.is_some() {
        return Err(
            "`do_center_crop`: is not supported; set it to false, as published checkpoints do".to_owned()
        );
    }
    let mut steps = numbers(settings);
    if steps.is_empty() {
        steps.push(Step::Rescale { factor: 1.0, offset: false });
    }
    steps.extend(settings.resize.map(|size| resize(settings, size)));
    Ok(steps)
}

/// `do_pad` makes images square, in the colour of the means.
pub(super) fn llava(settings: &Settings) -> Steps {
    let colour = settings.image_mean.map(|mean| (mean * 255.0) as u8);
    let square = settings.do_pad.then_some(Step::PadToSquare(colour));
    Ok(square.into_iter().chain(unpadded(settings)).collect())
}

/// The most pixels of a size that tiles are cut from: three times what LLaVA-OneVision's largest has.
const MOST_GRID_PIXELS: usize = 1 << 24;

pub(super) fn llava_next(settings: &Settings) -> Steps {
    let grid = settings.image_grid_pinpoints.clone();
    let wrong = |(height, width): &(usize, usize)| {
        height.checked_mul(*width).is_none_or(|pixels| pixels == 0 || pixels > MOST_GRID_PIXELS)
    };
    if grid.is_empty() || grid.iter().any(wrong) {
        return Err(format!(
            "`image_grid_pinpoints`: must be a list of [height, width], none of them 0 or of more than {MOST_GRID_PIXELS} pixels"
        ));
    }
    let (whole, edge) = match settings.size {
        Size::Shortest(edge)
        | Size::Between { shortest: edge, .. }
        | Size::Longest(edge)
        | Size::ShortestMultiple { edge, .. } => ((edge, edge), edge),
        Size::Exact(size) | Size::Within(size) | Size::Multiples { size, .. } => (size, size.0),
        Size::BetweenMultiple { .. }
        | Size::ShortestRounded { .. }
        | Size::Own
        | Size::LongestRounded(_)
        | Size::WithinPatches { .. }
        | Size::LongestAtLeast { .. }
        | Size::LongestCut { .. }
        | Size::Limits { .. }
        | Size::AtMost(_)
        | Size::SoftTokens { .. }
        | Size::NearestGrid { .. }
        | Size::MostPatches { .. } => {
            return Err("`size`: is missing".to_owned());
        }
    };
    let tile = settings.crop_size.map_or(edge, |(height, _)| height);
    let mut steps = vec![Step::AnyResTiles { grid, whole, tile, resample: settings.resample }];
    steps.extend(unpadded(settings));
    steps.extend(settings.do_pad.then_some(Step::PadTiles));
    Ok(steps)
}

pub(super) fn got_ocr2(settings: &Settings) -> Steps {
    let limits = settings.crop_to_patches.filter(|(_, most)| *most > 1);
    let (Some(limits), Size::Exact(size)) = (limits, settings.size) else { return Ok(unpadded(settings)) };
    let canvas = Canvas::NearestRatio;
    let mut steps = vec![Step::CropToPatches { size, limits, canvas, resample: settings.resample }];
    steps.extend(numbers(settings));
    Ok(steps)
}

/// The same with another choice of tiles.
pub(super) fn cohere2_vision(settings: &Settings) -> Steps {
    let mut steps = got_ocr2(settings)?;
    for step in &mut steps {
        if let Step::CropToPatches { canvas, .. } = step {
            *canvas = Canvas::LeastScaling;
        }
    }
    Ok(steps)
}

/// The same with the tiles that keep most of an image (`use_covering_area_grid`).
pub(super) fn ovis2(settings: &Settings) -> Steps {
    if !settings.use_covering_area_grid {
        let problem =
            "`use_covering_area_grid`: false is not supported; set it to true, as published checkpoints do";
        return Err(problem.to_owned());
    }
    let mut steps = got_ocr2(settings)?;
    for step in &mut steps {
        if let Step::CropToPatches { canvas, .. } = step {
            *canvas = Canvas::CoveringArea;
        }
    }
    Ok(steps)
}

/// Images become parts of `max_image_size` and are themselves made as large.
pub(super) fn idefics3(settings: &Settings) -> Steps {
    let (edge, resample) = (settings.max_image_size, settings.resample);
    if edge == 0 {
        return Err("`max_image_size`: must be `{\"longest_edge\": N}`, at least 1".to_owned());
    }
    let mut steps: Vec<_> = settings.resize.map(|size| resize(settings, size)).into_iter().collect();
    steps.push(match settings.do_image_splitting {
        true => Step::SplitImage { edge, resample },
        false => resize(settings, Size::Exact((edge, edge))),
    });
    steps.extend(numbers(settings));
    Ok(steps)
}

pub(super) fn siglip2(settings: &Settings) -> Steps {
    let Settings { patch_size, max_num_patches, resample, .. } = *settings;
    if patch_size == 0 || max_num_patches == 0 {
        return Err("`patch_size` and `max_num_patches`: must be at least 1".to_owned());
    }
    let resize = Step::ResizeToPatches { patch_size, max_num_patches, resample };
    let mut steps: Vec<_> = settings.resize.map(|_| resize).into_iter().collect();
    steps.extend(numbers(settings));
    steps.push(Step::Patchify { patch_size, max_num_patches });
    Ok(steps)
}

/// As Qwen2-VL's, but for how the frames of an image count.
pub(super) fn glm4v(settings: &Settings) -> Steps {
    let mut steps = qwen2_vl(settings)?;
    if let Some(Step::SmartResize { small, .. }) = steps.first_mut() {
        *small = SmallImages::Grow { frames: settings.temporal_patch_size };
    }
    Ok(steps)
}

/// As Qwen2-VL's, but that patches stand row after row.
pub(super) fn paddleocr_vl(settings: &Settings) -> Steps {
    if settings.temporal_patch_size != 1 {
        return Err("`temporal_patch_size`: must be 1".to_owned());
    }
    let mut steps = qwen2_vl(settings)?;
    for step in &mut steps {
        match step {
            Step::SmartResize { small, .. } => *small = SmallImages::GrowEdges,
            Step::PatchifySquares { merge_size, .. } => *merge_size = 1,
            _ => {}
        }
    }
    Ok(steps)
}

/// Images that are too large are made smaller, edges multiples of a patch's, and all are padded to the largest.
pub(super) fn pixtral(settings: &Settings) -> Steps {
    let patch = settings.patch_size;
    if patch == 0 {
        return Err("`patch_size`: must be at least 1".to_owned());
    }
    let most = match settings.size {
        Size::Longest(edge) => (edge, edge),
        Size::Exact(size) => size,
        size => return Err(format!("`size`: {size:?} has neither `longest_edge` nor height and width")),
    };
    let mut steps = vec![];
    if settings.resize.is_some() {
        steps.push(resize(settings, Size::WithinPatches { most, patch }));
    }
    steps.extend(settings.center_crop.map(Step::CenterCrop));
    steps.extend(numbers(settings));
    steps.push(Step::Pad(None));
    Ok(steps)
}

/// The longer edge becomes `size`, and `do_pad` makes images square, in the colour of the means.
pub(super) fn janus(settings: &Settings) -> Steps {
    let mut steps = vec![];
    match settings.resize {
        None => {}
        Some(Size::Exact((height, width))) if height == width => {
            steps.push(resize(
                settings,
                Size::LongestAtLeast { edge: height, least: settings.min_size.max(1) },
            ));
        }
        Some(size) => return Err(format!("`size`: {size:?} is no square")),
    }
    let colour = settings.image_mean.map(|mean| (mean * 255.0) as u8);
    steps.extend(settings.do_pad.then_some(Step::PadToSquare(colour)));
    steps.extend(numbers(settings));
    Ok(steps)
}

pub(super) fn qwen2_vl(settings: &Settings) -> Steps {
    let Settings { patch_size, merge_size, temporal_patch_size: frames, resample, .. } = *settings;
    if [patch_size, merge_size, frames].contains(&0) {
        return Err("`patch_size`, `merge_size` and `temporal_patch_size`: must be at least 1".to_owned());
    }
    let mut steps = vec![];
    match settings.resize {
        None => {}
        Some(Size::Between { shortest, longest }) => {
            steps.push(Step::SmartResize {
                factor: patch_size * merge_size,
                pixels: (shortest, longest),
                small: SmallImages::AsOthers,
                resample,
            });
        }
        Some(size) => return Err(format!("`size`: {size:?} has no `shortest_edge` and `longest_edge`")),
    }
    steps.extend(numbers(settings));
    steps.push(Step::PatchifySquares { patch_size, merge_size, frames });
    Ok(steps)
}
