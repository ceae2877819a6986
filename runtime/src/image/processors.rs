//! The reference's image processors by name: the steps of each, its defaults, and what it gives.

mod boxes;
mod defaults;
mod keypoints;
mod padding;
mod steps;
mod text_lines;
mod vision_language;

use serde_json::{Value as Json, json};

use boxes::vitpose;
pub(super) use defaults::with;
use defaults::{
    HALF, IMAGENET, OPENAI, base, cropped, divided, exact, glm4v_defaults, idefics3_defaults, padded,
};
use keypoints::{grayscale, keypoint_defaults};
use padding::{eomt, maskformer, owlv2, swin2sr, vilt, vitmatte};
#[cfg(feature = "video")]
pub(super) use steps::numbers;
use steps::{
    cohere2_vision, convnext, dinov3, dpt, efficientnet, flipped, glm4v, glpn, got_ocr2, idefics3, janus,
    levit, llava, llava_next, ovis2, paddleocr_vl, pixtral, poolformer, qwen2_vl, rt_detr, sam, siglip2,
    standard, textnet, vivit, yolos,
};
use text_lines::{bgr_line, layout, layout_defaults, line_defaults, page, page_defaults, rgb_line};
use vision_language::{
    aria, cosmos3_edge, deepseek_vl_hybrid, emu3, fuyu, gemma4, granite_docling, high_res, hunyuan_vl,
    idefics2, llama4, mllama, muse_glimmer, pix2struct, with_high_res,
};

use super::settings::Settings;
use super::{Layout, Step};

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
    /// Whether a second vision model takes images of another size (`high_res_size`).
    high_res: bool,
}

const fn class(
    name: &'static str,
    layout: Layout,
    default_to_square: bool,
    steps: fn(&Settings) -> Steps,
    defaults: fn() -> Json,
) -> Class {
    Class { name, layout, default_to_square, steps, defaults, high_res: false }
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
    class("OwlViT", Layout::Images, true, standard, || {
        with(exact(768, 3, OPENAI), json!({"crop_size": {"height": 768, "width": 768}}))
    }),
    class("Owlv2", Layout::Images, true, owlv2, || with(exact(960, 2, OPENAI), json!({"do_pad": true}))),
    class("Gemma3", Layout::Images, true, standard, || exact(224, 2, HALF)),
    class("Beit", Layout::Images, true, standard, || with(exact(224, 3, HALF), json!({"crop_size": 224}))),
    class("Pvt", Layout::Images, true, standard, || exact(224, 3, IMAGENET)),
    class("Segformer", Layout::Images, true, standard, || exact(512, 2, IMAGENET)),
    class("MobileNetV1", Layout::Images, false, standard, || with(cropped(2, HALF), json!({"size": 256}))),
    class("MobileNetV2", Layout::Images, false, standard, || with(cropped(2, HALF), json!({"size": 256}))),
    class("Detr", Layout::Masked, false, standard, padded),
    class("ConditionalDetr", Layout::Masked, false, standard, padded),
    class("DeformableDetr", Layout::Masked, false, standard, padded),
    class("GroundingDino", Layout::Masked, false, standard, padded),
    class("OneFormer", Layout::Masked, false, standard, padded),
    class("RTDetr", Layout::Images, false, rt_detr, || {
        with(exact(640, 2, IMAGENET), json!({"do_normalize": false}))
    }),
    class("MaskFormer", Layout::Masked, false, maskformer, divided),
    class("Mask2Former", Layout::Masked, false, maskformer, divided),
    class("Eomt", Layout::Images, false, eomt, || {
        let size = json!({"shortest_edge": 640, "longest_edge": 640});
        with(base(&size, 2, IMAGENET), json!({"do_split_image": false}))
    }),
    class("Yolos", Layout::Masked, false, yolos, padded),
    class("Vilt", Layout::Masked, false, vilt, || {
        with(base(&json!({"shortest_edge": 384}), 3, HALF), json!({"size_divisor": 32, "do_pad": true}))
    }),
    class("BridgeTower", Layout::Masked, false, vilt, || {
        let sizes = json!({"size_divisor": 32, "do_center_crop": true, "crop_size": {"shortest_edge": 288}});
        with(with(base(&json!({"shortest_edge": 288}), 3, OPENAI), sizes), json!({"do_pad": true}))
    }),
    class("Llava", Layout::Images, false, llava, || cropped(3, OPENAI)),
    class("LlavaNext", Layout::Tiles, false, llava_next, || {
        let grid = json!([[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]]);
        with(cropped(3, OPENAI), json!({"do_pad": true, "image_grid_pinpoints": grid}))
    }),
    class("GotOcr2", Layout::FlatTiles, true, got_ocr2, || {
        with(exact(384, 3, OPENAI), json!({"crop_to_patches": false, "min_patches": 1, "max_patches": 12}))
    }),
    class("Ovis2", Layout::Grids, true, ovis2, || {
        with(
            exact(384, 3, OPENAI),
            json!({"crop_to_patches": false, "min_patches": 1, "max_patches": 12, "use_covering_area_grid": true}),
        )
    }),
    class("Levit", Layout::Images, false, levit, || cropped(3, IMAGENET)),
    class("TextNet", Layout::Images, false, textnet, || {
        let shortest = base(&json!({"shortest_edge": 640}), 2, IMAGENET);
        with(
            shortest,
            json!({"do_center_crop": false, "crop_size": 224, "size_divisor": 32, "do_convert_rgb": true}),
        )
    }),
    class("MobileViT", Layout::Images, false, flipped, || {
        let cropped = json!({"do_center_crop": true, "crop_size": 256, "do_normalize": false, "do_flip_channel_order": true});
        with(base(&json!({"shortest_edge": 224}), 3, HALF), cropped)
    }),
    class("Sam", Layout::Images, true, sam, || {
        let padded = json!({"do_pad": true, "pad_size": {"height": 1024, "width": 1024}});
        with(base(&json!({"longest_edge": 1024}), 2, IMAGENET), padded)
    }),
    class("Sam2", Layout::Images, true, standard, || exact(1024, 2, IMAGENET)),
    class("Sam3", Layout::Images, true, standard, || exact(1008, 2, HALF)),
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
    class("LlavaOnevision", Layout::Tiles, false, llava_next, || {
        let edges: Vec<usize> = (1..=6).map(|tiles| 384 * tiles).collect();
        let grid: Vec<[usize; 2]> =
            edges.iter().flat_map(|height| edges.iter().map(|width| [*height, *width])).collect();
        with(exact(384, 3, OPENAI), json!({"do_pad": true, "image_grid_pinpoints": grid}))
    }),
    class("Ernie4_5_VLMoe", Layout::Packed, false, qwen2_vl, || {
        let size = json!({"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 6177});
        with(base(&size, 3, OPENAI), json!({"patch_size": 14, "temporal_patch_size": 1, "merge_size": 2}))
    }),
    class("Glm4v", Layout::Packed, false, glm4v, glm4v_defaults),
    class("Glm46V", Layout::Packed, false, glm4v, glm4v_defaults),
    class("Cosmos3Edge", Layout::Packed, false, cosmos3_edge, || {
        let size = json!({"shortest_edge": 256 * 256, "longest_edge": 4096 * 4096});
        with(base(&size, 3, HALF), json!({"patch_size": 16, "temporal_patch_size": 1, "merge_size": 2}))
    }),
    class("PaddleOCRVL", Layout::PackedImages, false, paddleocr_vl, || {
        let size = json!({"shortest_edge": 384 * 384, "longest_edge": 1536 * 1536});
        with(base(&size, 3, OPENAI), json!({"patch_size": 14, "temporal_patch_size": 1, "merge_size": 2}))
    }),
    class("Pixtral", Layout::NativeSizes, true, pixtral, || {
        with(base(&json!({"longest_edge": 1024}), 3, OPENAI), json!({"patch_size": 16, "do_pad": true}))
    }),
    class("Emu3", Layout::NativeSizes, false, emu3, || {
        let size = json!({"shortest_edge": 512 * 512, "longest_edge": 1024 * 1024});
        with(base(&size, 3, OPENAI), json!({"do_pad": true, "spatial_factor": 8}))
    }),
    class("Janus", Layout::Images, true, janus, || {
        with(exact(384, 3, OPENAI), json!({"min_size": 14, "do_pad": true}))
    }),
    class("DeepseekVL", Layout::Images, true, janus, || {
        with(exact(384, 3, OPENAI), json!({"min_size": 14, "do_pad": true}))
    }),
    Class {
        high_res: true,
        ..class("DeepseekVLHybrid", Layout::Images, true, deepseek_vl_hybrid, || {
            with_high_res(with(exact(384, 3, OPENAI), json!({"min_size": 14, "do_pad": true})))
        })
    },
    class("Aria", Layout::Masked, true, aria, || {
        with(exact(980, 3, HALF), json!({"max_image_size": 980, "min_image_size": 336}))
    }),
    class("Idefics2", Layout::PaddedList, false, idefics2, || {
        let size = json!({"shortest_edge": 378, "longest_edge": 980});
        with(base(&size, 2, HALF), json!({"do_image_splitting": false, "do_pad": true}))
    }),
    class("Chameleon", Layout::Images, false, standard, || {
        let cropped = json!({"do_center_crop": true, "crop_size": {"height": 512, "width": 512}});
        let shortest = base(&json!({"shortest_edge": 512}), 1, ([1.0; 3], [1.0; 3]));
        with(with(shortest, cropped), json!({"rescale_factor": 0.0078}))
    }),
    class("Llama4", Layout::Grids, true, llama4, || {
        with(exact(336, 2, HALF), json!({"max_patches": 16, "resize_to_max_canvas": false}))
    }),
    class("Mllama", Layout::TileList, true, mllama, || {
        with(exact(224, 2, HALF), json!({"max_image_tiles": 4, "do_pad": true}))
    }),
    class("Idefics", Layout::List, true, standard, || exact(224, 3, OPENAI)),
    class("Gemma4", Layout::Positioned, true, gemma4, || {
        let base = with(exact(224, 3, ([0.0; 3], [1.0; 3])), json!({"do_normalize": false}));
        with(base, json!({"patch_size": 16, "max_soft_tokens": 280, "pooling_kernel_size": 3}))
    }),
    class("HunYuanVL", Layout::Packed, false, hunyuan_vl, || {
        let size = json!({"shortest_edge": 512 * 512, "longest_edge": 2048 * 2048});
        with(base(&size, 3, OPENAI), json!({"patch_size": 16, "temporal_patch_size": 1, "merge_size": 2}))
    }),
    class("GraniteDocling", Layout::PageTiles, true, granite_docling, || {
        let tiles =
            json!({"crop_to_patches": true, "min_patches": 1, "max_patches": 32, "fine_route": false});
        let dense = json!({"dense_max_patches": 0, "dense_max_scale": 0.0, "dense_min_aspect": 0.0, "dense_max_aspect": 0.0});
        with(with(exact(512, 3, OPENAI), tiles), dense)
    }),
    class("MuseGlimmer", Layout::Packed, false, muse_glimmer, || {
        let patches =
            json!({"patch_size": 14, "temporal_patch_size": 2, "merge_size": 2, "max_image_tokens": 4096});
        with(base(&json!({"shortest_edge": 1, "longest_edge": 1 << 20}), 1, HALF), patches)
    }),
    class("Fuyu", Layout::Patches, true, fuyu, || {
        let size = base(&json!({"height": 1080, "width": 1920}), 2, HALF);
        with(size, json!({"patch_size": 30, "do_pad": true, "padding_value": 1.0}))
    }),
    class("Pix2Struct", Layout::FlattenedPatches, true, pix2struct, || {
        with(exact(16, 2, HALF), json!({"patch_size": 16, "max_patches": 2048}))
    }),
    class("Swin2SR", Layout::Images, false, swin2sr, || {
        let kept = json!({"do_resize": false, "do_normalize": false, "do_pad": true});
        let mut all = with(exact(224, 2, HALF), kept);
        // 8, where an older file does not say `pad_size`.
        all["size_divisor"] = Json::Null;
        all
    }),
    class("VitMatte", Layout::Images, false, vitmatte, || {
        with(exact(224, 2, HALF), json!({"do_resize": false, "do_pad": true, "size_divisor": 32}))
    }),
    class("VitPose", Layout::Images, true, vitpose, || {
        let size = base(&json!({"height": 256, "width": 192}), 2, IMAGENET);
        with(size, json!({"do_affine_transform": true, "normalize_factor": 200.0}))
    }),
    class("SuperPoint", Layout::Images, false, grayscale, || keypoint_defaults(false)),
    class("SuperGlue", Layout::Images, false, grayscale, || keypoint_defaults(true)),
    class("LightGlue", Layout::Images, false, grayscale, || keypoint_defaults(true)),
    class("EfficientLoFTR", Layout::Images, false, grayscale, || keypoint_defaults(true)),
    class("PPDocLayoutV2", Layout::Images, true, layout, layout_defaults),
    class("PPDocLayoutV3", Layout::Images, true, layout, layout_defaults),
    class("PPOCRV5ServerDet", Layout::Images, true, page, page_defaults),
    class("PPOCRV5ServerRec", Layout::Images, true, rgb_line, line_defaults),
    class("PPOCRV6SmallRec", Layout::Images, true, bgr_line, line_defaults),
    class("VideoMAE", Layout::Frames, false, standard, || cropped(2, HALF)),
];

impl Class {
    /// What holds where the file does not say.
    pub(super) fn defaults(&self) -> Json {
        (self.defaults)()
    }

    /// Whether `size` may say no more than `longest_edge`.
    pub(super) fn takes_longest_edge(&self) -> bool {
        matches!(self.layout, Layout::Split | Layout::NativeSizes) || self.name == "Sam"
    }

    /// Whether `size` says the fewest and the most pixels of an image.
    pub(super) fn counts_pixels(&self) -> bool {
        matches!(self.layout, Layout::Packed | Layout::PackedImages) || self.name == "Emu3"
    }

    /// The steps that a file asks for, over the defaults.
    pub(super) fn steps(&self, json: &Json) -> Steps {
        let own = (self.steps)(&Settings::read(self, json)?)?;
        let Some(settings) = self.high_res(json)? else { return Ok(own) };
        // The smaller image is made of the larger one before that becomes numbers.
        let first = (self.steps)(&settings)?;
        let levels =
            first.into_iter().filter(|step| !matches!(step, Step::Rescale { .. } | Step::Normalize { .. }));
        Ok(levels.chain(own).collect())
    }

    /// The steps of images of the second model, where there is one.
    pub(super) fn high_res_steps(&self, json: &Json) -> Result<Option<Vec<Step>>, String> {
        self.high_res(json)?.map(|settings| (self.steps)(&settings)).transpose()
    }

    fn high_res(&self, json: &Json) -> Result<Option<Settings>, String> {
        let all = self.high_res.then(|| high_res(&with(self.defaults(), json.clone())));
        all.map(|settings| Settings::read(self, &settings)).transpose()
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
