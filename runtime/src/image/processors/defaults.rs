//! What holds where a processor's file does not say.

use serde_json::{Value as Json, json};

/// Mean and standard deviation of each channel.
pub(super) type Statistics = ([f64; 3], [f64; 3]);

pub(super) const HALF: Statistics = ([0.5; 3], [0.5; 3]);
pub(super) const IMAGENET: Statistics = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
pub(super) const OPENAI: Statistics =
    ([0.481_454_66, 0.457_827_5, 0.408_210_73], [0.268_629_54, 0.261_302_58, 0.275_777_11]);

pub(super) fn base(size: &Json, resample: u8, (mean, std): Statistics) -> Json {
    json!({
        "do_resize": true, "size": size, "resample": resample, "do_center_crop": false, "do_rescale": true,
        "rescale_factor": 1.0 / 255.0, "do_normalize": true, "image_mean": mean, "image_std": std, "do_pad": false,
    })
}

pub(super) fn exact(edge: usize, resample: u8, statistics: Statistics) -> Json {
    base(&json!({"height": edge, "width": edge}), resample, statistics)
}

/// The middle of an image whose shorter edge has become 224.
pub(super) fn cropped(resample: u8, statistics: Statistics) -> Json {
    let shortest = base(&json!({"shortest_edge": 224}), resample, statistics);
    with(shortest, json!({"do_center_crop": true, "crop_size": {"height": 224, "width": 224}}))
}

/// As large as two limits allow, and padded to the largest of a batch.
pub(super) fn padded() -> Json {
    let size = json!({"shortest_edge": 800, "longest_edge": 1333});
    with(base(&size, 2, IMAGENET), json!({"do_pad": true}))
}

/// Settings with others put over them; null leaves a setting as it is.
pub(in crate::image) fn with(mut settings: Json, over: Json) -> Json {
    if let (Json::Object(settings), Json::Object(over)) = (&mut settings, over) {
        settings.extend(over.into_iter().filter(|(_, value)| !value.is_null()));
    }
    settings
}

/// The same with edges that are multiples of 32 (`MaskFormerImageProcessor`).
pub(super) fn divided() -> Json {
    let size = json!({"shortest_edge": 800, "longest_edge": 1333});
    with(base(&size, 2, IMAGENET), json!({"size_divisor": 32}))
}

pub(super) fn glm4v_defaults() -> Json {
    let size = json!({"shortest_edge": 112 * 112, "longest_edge": 28 * 28 * 15000});
    with(base(&size, 3, OPENAI), json!({"patch_size": 14, "temporal_patch_size": 2, "merge_size": 2}))
}

pub(super) fn idefics3_defaults() -> Json {
    let sizes = json!({"do_image_splitting": true, "max_image_size": {"longest_edge": 364}, "do_pad": true});
    with(base(&json!({"longest_edge": 4 * 364}), 1, HALF), sizes)
}
