//! The reference's image processors by name: how each puts pictures together, and its defaults.

use serde_json::{Value as Json, json};

/// What a processor makes of its pictures, beyond resizing, cropping and normalising.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One tensor a picture: `pixel_values` `[batch, 3, height, width]`.
    Single,
    /// Pictures of several sizes, filled up to the largest, with a `pixel_mask` `[batch, height, width]`.
    Masked,
    /// Pictures filled up to squares first, where padding is asked for.
    Square,
    /// The whole picture and tiles of a larger version: `pixel_values` `[batch, tiles, 3, height, width]`, with
    /// `image_sizes` `[batch, 2]`.
    Tiles,
    /// Pictures whose levels become numbers before they are resized, so that nothing is rounded.
    Unrounded,
    /// Patches of pictures of their own sizes, filled up: `pixel_values` `[batch, patches, values]`, with a
    /// `pixel_attention_mask` `[batch, patches]` and `spatial_shapes` `[batch, 2]`.
    OwnSizes,
    /// Tiles of a version of the picture that they fill, and the whole picture where there are several, one after the
    /// other: `pixel_values` `[tiles, 3, height, width]`, and how many each picture has, `num_patches` `[batch]`.
    Patches,
    /// Pictures are the frames of a video: `pixel_values` `[batch, frames, 3, height, width]`.
    Frames,
}

/// One of the reference's classes.
#[derive(Debug)]
pub(super) struct Class {
    /// The name without `ImageProcessor`.
    pub(super) name: &'static str,
    pub(super) layout: Layout,
    /// Whether a single number for `size` is both edges, rather than the shorter one.
    pub(super) square: bool,
    /// The edge from which on `crop_pct` cuts nothing off.
    pub(super) whole_from: usize,
    /// What edges are rounded down to a multiple of when pictures are resized.
    pub(super) step: usize,
    defaults: fn() -> Json,
}

const fn class(name: &'static str, layout: Layout, square: bool, defaults: fn() -> Json) -> Class {
    Class { name, layout, square, whole_from: usize::MAX, step: 1, defaults }
}

/// Every class that is known.
pub(super) const CLASSES: &[Class] = &[
    class("ViT", Layout::Single, true, || exact(224, 2, HALF)),
    class("Blip", Layout::Single, true, || exact(384, 3, OPENAI)),
    class("Siglip", Layout::Single, false, || exact(224, 3, HALF)),
    class("Siglip2", Layout::OwnSizes, false, || {
        with(exact(224, 2, HALF), json!({"patch_size": 16, "max_num_patches": 256}))
    }),
    class("DeiT", Layout::Single, true, || {
        with(exact(256, 3, HALF), json!({"do_center_crop": true, "crop_size": 224}))
    }),
    class("DINOv3ViT", Layout::Unrounded, true, || exact(224, 2, IMAGENET)),
    class("CLIP", Layout::Single, false, || cropped(3, OPENAI)),
    class("Bit", Layout::Single, false, || cropped(3, OPENAI)),
    class("ChineseCLIP", Layout::Single, false, || cropped(3, OPENAI)),
    Class {
        whole_from: 384,
        ..class("ConvNext", Layout::Single, false, || {
            let shortest = base(&json!({"shortest_edge": 384}), 3, HALF);
            with(shortest, json!({"crop_pct": 224.0 / 256.0}))
        })
    },
    class("EfficientNet", Layout::Single, true, || {
        let cropped = json!({"crop_size": 289, "rescale_offset": false, "include_top": true});
        with(exact(346, 3, HALF), cropped)
    }),
    class("PoolFormer", Layout::Single, false, || with(cropped(3, IMAGENET), json!({"crop_pct": 0.9}))),
    class("Gemma3", Layout::Single, true, || exact(224, 2, HALF)),
    class("Beit", Layout::Single, true, || with(exact(224, 3, HALF), json!({"crop_size": 224}))),
    class("Pvt", Layout::Single, true, || exact(224, 3, IMAGENET)),
    class("Segformer", Layout::Single, true, || exact(512, 2, IMAGENET)),
    class("MobileNetV1", Layout::Single, false, || with(cropped(2, HALF), json!({"size": 256}))),
    class("MobileNetV2", Layout::Single, false, || with(cropped(2, HALF), json!({"size": 256}))),
    class("Detr", Layout::Masked, false, filled_up),
    class("ConditionalDetr", Layout::Masked, false, filled_up),
    class("DeformableDetr", Layout::Masked, false, filled_up),
    Class { step: 16, ..class("Yolos", Layout::Masked, false, filled_up) },
    class("Llava", Layout::Square, false, || cropped(3, OPENAI)),
    class("LlavaNext", Layout::Tiles, false, || {
        let grid = json!([[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]]);
        with(cropped(3, OPENAI), json!({"do_pad": true, "image_grid_pinpoints": grid}))
    }),
    class("GotOcr2", Layout::Patches, true, || {
        with(exact(384, 3, OPENAI), json!({"crop_to_patches": false, "min_patches": 1, "max_patches": 12}))
    }),
    class("VideoMAE", Layout::Frames, false, || cropped(2, HALF)),
];

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

/// The middle of a picture whose shorter edge has become 224.
fn cropped(resample: u8, statistics: Statistics) -> Json {
    let shortest = base(&json!({"shortest_edge": 224}), resample, statistics);
    with(shortest, json!({"do_center_crop": true, "crop_size": {"height": 224, "width": 224}}))
}

/// As large as two limits allow, and filled up to the largest of a batch.
fn filled_up() -> Json {
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
