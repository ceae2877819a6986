//! The reference's image processors by name: the steps of each, its defaults, and what it gives.

use serde_json::{Value as Json, json};

use super::settings::Settings;
use super::{Canvas, Layout, Size, Step};

/// Steps, or what is wrong with the settings.
type Steps = Result<Vec<Step>, String>;

/// One of the reference's classes.
#[derive(Debug)]
pub(super) struct Class {
    /// The name without `ImageProcessor`.
    pub(super) name: &'static str,
    pub(super) layout: Layout,
    /// Whether a single number for `size` is both edges, rather than the shorter one.
    pub(super) default_to_square: bool,
    steps: fn(&Settings) -> Steps,
    defaults: fn() -> Json,
}

const fn class(
    name: &'static str,
    layout: Layout,
    default_to_square: bool,
    steps: fn(&Settings) -> Steps,
    defaults: fn() -> Json,
) -> Class {
    Class { name, layout, default_to_square, steps, defaults }
}

/// Every class that is known.
pub(super) const CLASSES: &[Class] = &[
    class("ViT", Layout::Images, true, standard, || exact(224, 2, HALF)),
    class("Blip", Layout::Images, true, standard, || exact(384, 3, OPENAI)),
    class("Siglip", Layout::Images, false, standard, || exact(224, 3, HALF)),
    class("Siglip2", Layout::NaFlex, false, siglip2, || {
        with(exact(224, 2, HALF), json!({"patch_size": 16, "max_num_patches": 256}))
    }),
    class("DeiT", Layout::Images, true, standard, || {
        with(exact(256, 3, HALF), json!({"do_center_crop": true, "crop_size": 224}))
    }),
    class("DINOv3ViT", Layout::Images, true, dinov3, || exact(224, 2, IMAGENET)),
    class("CLIP", Layout::Images, false, standard, || cropped(3, OPENAI)),
    class("Bit", Layout::Images, false, standard, || cropped(3, OPENAI)),
    class("ChineseCLIP", Layout::Images, false, standard, || cropped(3, OPENAI)),
    class("ConvNext", Layout::Images, false, convnext, || {
        let shortest = base(&json!({"shortest_edge": 384}), 3, HALF);
        with(shortest, json!({"crop_pct": 224.0 / 256.0}))
    }),
    class("EfficientNet", Layout::Images, true, efficientnet, || {
        let cropped = json!({"crop_size": 289, "rescale_offset": false, "include_top": true});
        with(exact(346, 3, HALF), cropped)
    }),
    class("PoolFormer", Layout::Images, false, poolformer, || {
        with(cropped(3, IMAGENET), json!({"crop_pct": 0.9}))
    }),
    class("Gemma3", Layout::Images, true, standard, || exact(224, 2, HALF)),
    class("Beit", Layout::Images, true, standard, || with(exact(224, 3, HALF), json!({"crop_size": 224}))),
    class("Pvt", Layout::Images, true, standard, || exact(224, 3, IMAGENET)),
    class("Segformer", Layout::Images, true, standard, || exact(512, 2, IMAGENET)),
    class("MobileNetV1", Layout::Images, false, standard, || with(cropped(2, HALF), json!({"size": 256}))),
    class("MobileNetV2", Layout::Images, false, standard, || with(cropped(2, HALF), json!({"size": 256}))),
    class("Detr", Layout::Masked, false, standard, padded),
    class("ConditionalDetr", Layout::Masked, false, standard, padded),
    class("DeformableDetr", Layout::Masked, false, standard, padded),
    class("RTDetr", Layout::Images, false, rt_detr, || {
        with(exact(640, 2, IMAGENET), json!({"do_normalize": false}))
    }),
    class("Yolos", Layout::Masked, false, yolos, padded),
    class("Llava", Layout::Images, false, llava, || cropped(3, OPENAI)),
    class("LlavaNext", Layout::Tiles, false, llava_next, || {
        let grid = json!([[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]]);
        with(cropped(3, OPENAI), json!({"do_pad": true, "image_grid_pinpoints": grid}))
    }),
    class("GotOcr2", Layout::FlatTiles, true, got_ocr2, || {
        with(exact(384, 3, OPENAI), json!({"crop_to_patches": false, "min_patches": 1, "max_patches": 12}))
    }),
    class("Levit", Layout::Images, false, levit, || cropped(3, IMAGENET)),
    class("MobileViT", Layout::Images, false, flipped, || {
        let cropped = json!({"do_center_crop": true, "crop_size": 256, "do_normalize": false, "do_flip_channel_order": true});
        with(base(&json!({"shortest_edge": 224}), 3, HALF), cropped)
    }),
    class("Cohere2Vision", Layout::FlatTiles, true, cohere2_vision, || {
        let tiles = json!({"crop_to_patches": true, "min_patches": 1, "max_patches": 12, "patch_size": 16});
        with(exact(512, 3, OPENAI), tiles)
    }),
    class("Idefics3", Layout::Split, true, idefics3, idefics3_defaults),
    class("SmolVLM", Layout::Split, true, idefics3, idefics3_defaults),
    class("DPT", Layout::Images, true, dpt, || {
        let sizes = json!({"keep_aspect_ratio": false, "ensure_multiple_of": 1});
        with(exact(384, 3, HALF), sizes)
    }),
    class("GLPN", Layout::Images, true, glpn, || {
        with(exact(32, 2, HALF), json!({"do_normalize": false, "size_divisor": 32}))
    }),
    class("Vivit", Layout::Frames, false, vivit, || {
        let cropped =
            with(cropped(2, HALF), json!({"size": {"shortest_edge": 256}, "rescale_factor": 1.0 / 127.5}));
        with(cropped, json!({"offset": true}))
    }),
    class("Qwen2VL", Layout::Packed, false, qwen2_vl, || {
        let size = json!({"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 1280});
        with(base(&size, 3, OPENAI), json!({"patch_size": 14, "temporal_patch_size": 2, "merge_size": 2}))
    }),
    class("VideoMAE", Layout::Frames, false, standard, || cropped(2, HALF)),
];

/// `do_resize`, `do_center_crop`, `do_rescale`, `do_normalize` and `do_pad`, as most classes do them.
fn standard(settings: &Settings) -> Steps {
    let mut steps = unpadded(settings);
    steps.extend(settings.do_pad.then_some(Step::Pad(settings.pad_size)));
    Ok(steps)
}

/// The same without padding.
fn unpadded(settings: &Settings) -> Vec<Step> {
    let mut steps: Vec<_> = settings.resize.map(|size| resize(settings, size)).into_iter().collect();
    steps.extend(settings.center_crop.map(Step::CenterCrop));
    steps.extend(numbers(settings));
    steps
}

fn resize(settings: &Settings, size: Size) -> Step {
    Step::Resize { size, multiple_of: 1, resample: settings.resample }
}

/// `do_rescale` and `do_normalize`.
fn numbers(settings: &Settings) -> Vec<Step> {
    let [mean, std] = [settings.image_mean, settings.image_std].map(single);
    let rescale = settings.rescale.map(|factor| Step::Rescale { factor, offset: false });
    let normalize = settings.do_normalize.then_some(Step::Normalize { mean, std });
    rescale.into_iter().chain(normalize).collect()
}

/// `offset`: levels between -1 and 1.
fn vivit(settings: &Settings) -> Steps {
    let mut steps = standard(settings)?;
    for step in &mut steps {
        if let Step::Rescale { offset, .. } = step {
            *offset = settings.rescale_offset;
        }
    }
    Ok(steps)
}

/// The shorter edge becomes 256 / 224 of what it says.
fn levit(settings: &Settings) -> Steps {
    let mut steps = standard(settings)?;
    if let Some(Step::Resize { size: Size::Shortest(edge), .. }) = steps.first_mut() {
        *edge = (256.0 / 224.0 * *edge as f64) as usize;
    }
    Ok(steps)
}

/// `do_flip_channel_order`: blue before green before red, at last.
fn flipped(settings: &Settings) -> Steps {
    let mut steps = standard(settings)?;
    steps.extend(settings.do_flip_channel_order.then_some(Step::FlipChannels));
    Ok(steps)
}

fn single(values: [f64; 3]) -> [f32; 3] {
    values.map(|value| value as f32)
}

/// `keep_aspect_ratio` and `ensure_multiple_of`.
fn dpt(settings: &Settings) -> Steps {
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
fn glpn(settings: &Settings) -> Steps {
    let mut steps = unpadded(settings);
    for step in &mut steps {
        if let Step::Resize { size, multiple_of, .. } = step {
            (*size, *multiple_of) = (Size::Own, settings.size_divisor.max(1));
        }
    }
    Ok(steps)
}

/// Edges are multiples of 16.
fn yolos(settings: &Settings) -> Steps {
    let mut steps = standard(settings)?;
    for step in &mut steps {
        if let Step::Resize { multiple_of, .. } = step {
            *multiple_of = 16;
        }
    }
    Ok(steps)
}

/// What is padded has no mask that models read.
fn rt_detr(settings: &Settings) -> Steps {
    match settings.do_pad {
        true => Err("`do_pad`: is not supported; set it to false, as published checkpoints do".to_owned()),
        false => standard(settings),
    }
}

/// Below 384, the middle of a larger image is taken; from there on the image is squeezed.
fn convnext(settings: &Settings) -> Steps {
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
fn poolformer(settings: &Settings) -> Steps {
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

fn is_part(part: f64) -> bool {
    part > 0.0 && part <= 1.0
}

fn not_cut(size: Size, part: Option<f64>) -> String {
    match part {
        Some(part) => format!("`crop_pct`: {part} of {size:?} cannot be cut out"),
        None => "`crop_pct`: is missing".to_owned(),
    }
}

/// `rescale_offset`, and `include_top`: the deviation divides once more.
fn efficientnet(settings: &Settings) -> Steps {
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
fn dinov3(settings: &Settings) -> Steps {
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
fn llava(settings: &Settings) -> Steps {
    let colour = settings.image_mean.map(|mean| (mean * 255.0) as u8);
    let square = settings.do_pad.then_some(Step::PadToSquare(colour));
    Ok(square.into_iter().chain(unpadded(settings)).collect())
}

fn llava_next(settings: &Settings) -> Steps {
    let grid = settings.image_grid_pinpoints.clone();
    if grid.is_empty() || grid.iter().any(|(height, width)| height * width == 0) {
        return Err("`image_grid_pinpoints`: must be a list of [height, width], none of them 0".to_owned());
    }
    let (whole, edge) = match settings.size {
        Size::Shortest(edge) | Size::Between { shortest: edge, .. } | Size::Longest(edge) => {
            ((edge, edge), edge)
        }
        Size::Exact(size) | Size::Within(size) | Size::Multiples { size, .. } => (size, size.0),
        Size::Own => return Err("`size`: is missing".to_owned()),
    };
    let tile = settings.crop_size.map_or(edge, |(height, _)| height);
    let mut steps = vec![Step::AnyResTiles { grid, whole, tile, resample: settings.resample }];
    steps.extend(unpadded(settings));
    steps.extend(settings.do_pad.then_some(Step::PadTiles));
    Ok(steps)
}

fn got_ocr2(settings: &Settings) -> Steps {
    let limits = settings.crop_to_patches.filter(|(_, most)| *most > 1);
    let (Some(limits), Size::Exact(size)) = (limits, settings.size) else { return Ok(unpadded(settings)) };
    let canvas = Canvas::NearestRatio;
    let mut steps = vec![Step::CropToPatches { size, limits, canvas, resample: settings.resample }];
    steps.extend(numbers(settings));
    Ok(steps)
}

/// The same with another choice of tiles.
fn cohere2_vision(settings: &Settings) -> Steps {
    let mut steps = got_ocr2(settings)?;
    for step in &mut steps {
        if let Step::CropToPatches { canvas, .. } = step {
            *canvas = Canvas::LeastScaling;
        }
    }
    Ok(steps)
}

/// Images become parts of `max_image_size` and are themselves made as large.
fn idefics3(settings: &Settings) -> Steps {
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

fn idefics3_defaults() -> Json {
    let sizes = json!({"do_image_splitting": true, "max_image_size": {"longest_edge": 364}, "do_pad": true});
    with(base(&json!({"longest_edge": 4 * 364}), 1, HALF), sizes)
}

fn siglip2(settings: &Settings) -> Steps {
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

fn qwen2_vl(settings: &Settings) -> Steps {
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
                resample,
            });
        }
        Some(size) => return Err(format!("`size`: {size:?} has no `shortest_edge` and `longest_edge`")),
    }
    steps.extend(numbers(settings));
    steps.push(Step::PatchifySquares { patch_size, merge_size, frames });
    Ok(steps)
}

/// Mean and standard deviation of each channel.
type Statistics = ([f64; 3], [f64; 3]);

const HALF: Statistics = ([0.5; 3], [0.5; 3]);
const IMAGENET: Statistics = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
const OPENAI: Statistics =
    ([0.481_454_66, 0.457_827_5, 0.408_210_73], [0.268_629_54, 0.261_302_58, 0.275_777_11]);

fn base(size: &Json, resample: u8, (mean, std): Statistics) -> Json {
    json!({
        "do_resize": true, "size": size, "resample": resample, "do_center_crop": false, "do_rescale": true,
        "rescale_factor": 1.0 / 255.0, "do_normalize": true, "image_mean": mean, "image_std": std, "do_pad": false,
    })
}

fn exact(edge: usize, resample: u8, statistics: Statistics) -> Json {
    base(&json!({"height": edge, "width": edge}), resample, statistics)
}

/// The middle of an image whose shorter edge has become 224.
fn cropped(resample: u8, statistics: Statistics) -> Json {
    let shortest = base(&json!({"shortest_edge": 224}), resample, statistics);
    with(shortest, json!({"do_center_crop": true, "crop_size": {"height": 224, "width": 224}}))
}

/// As large as two limits allow, and padded to the largest of a batch.
fn padded() -> Json {
    let size = json!({"shortest_edge": 800, "longest_edge": 1333});
    with(base(&size, 2, IMAGENET), json!({"do_pad": true}))
}

/// Settings with others put over them; null leaves a setting as it is.
pub(super) fn with(mut settings: Json, over: Json) -> Json {
    if let (Json::Object(settings), Json::Object(over)) = (&mut settings, over) {
        settings.extend(over.into_iter().filter(|(_, value)| !value.is_null()));
    }
    settings
}

impl Class {
    /// What holds where the file does not say.
    pub(super) fn defaults(&self) -> Json {
        (self.defaults)()
    }

    /// The steps that a file asks for, over the defaults.
    pub(super) fn steps(&self, json: &Json) -> Steps {
        (self.steps)(&Settings::read(self, json)?)
    }

    /// By the reference's name, be it of today's classes, of the ones with `Fast` and `Pil`, or of the feature
    /// extractors that came before them.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        let stem = name.trim_end_matches("Fast").trim_end_matches("Pil");
        let stem = stem.strip_suffix("ImageProcessor").or_else(|| stem.strip_suffix("FeatureExtractor"))?;
        CLASSES.iter().find(|class| class.name == stem)
    }

    /// The one that a model's class is named alike: the longest name that the class begins with.
    pub(super) fn of_model(model: &str) -> Option<&'static Self> {
        let alike = CLASSES.iter().filter(|class| model.starts_with(class.name));
        alike.max_by_key(|class| class.name.len())
    }

    /// Their names, for messages.
    pub(super) fn names() -> String {
        let names: Vec<_> = CLASSES.iter().map(|class| format!("{}ImageProcessor", class.name)).collect();
        names.join(", ")
    }
}
