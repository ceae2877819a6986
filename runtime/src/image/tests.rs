//! Against what the reference makes of the same images.

mod files;

use std::collections::BTreeMap;
use std::path::PathBuf;

use ndarray::{Array3, ArrayD, IxDyn};
use safetensors::SafeTensors;

use serde_json::{Value as Json, json};

use super::*;
use crate::hub::Checkpoint;
use crate::{Value, Values};

pub(crate) fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/goldens/processors/image"))
}

/// The `u8` tensors of a file.
pub(crate) fn levels(file: &str) -> BTreeMap<String, ArrayD<u8>> {
    let bytes = std::fs::read(folder().join(file)).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let array = |view: &safetensors::tensor::TensorView<'_>| {
        ArrayD::from_shape_vec(IxDyn(view.shape()), view.data().to_vec()).unwrap()
    };
    tensors.iter().map(|(name, view)| (name.to_owned(), array(&view))).collect()
}

/// The largest difference of two images, in levels.
pub(crate) fn most(got: &Image, want: &ArrayD<u8>) -> u8 {
    let got: Array3<u8> = got.pixels().to_owned();
    assert_eq!(got.shape(), want.shape());
    got.iter().zip(want).map(|(g, w)| g.abs_diff(*w)).max().unwrap()
}

/// Picture files by name; `animated.gif#2` is a frame.
fn images(names: &Json) -> Vec<Image> {
    let open = |name: &Json| match name.as_str().unwrap().split_once('#') {
        None => Image::open(folder().join("files").join(name.as_str().unwrap())).unwrap(),
        Some((file, frame)) => {
            let frames = &levels("frames.safetensors")[file];
            let frame = frames.index_axis(ndarray::Axis(0), frame.parse().unwrap()).to_owned();
            Image::from_pixels(&frame.into_dimensionality().unwrap()).unwrap()
        }
    };
    names.as_array().unwrap().iter().map(open).collect()
}

/// The tensors that a case wants.
fn wanted(case: &str) -> Values {
    let bytes = std::fs::read(folder().join(case).join("out.safetensors")).unwrap();
    let value = |view: safetensors::tensor::TensorView<'_>| -> Value {
        let shape = IxDyn(view.shape());
        if view.dtype() == safetensors::Dtype::I64 {
            let values = view.data().as_chunks().0.iter().map(|b| i64::from_le_bytes(*b)).collect();
            return ArrayD::from_shape_vec(shape, values).unwrap().into();
        }
        if view.dtype() == safetensors::Dtype::BOOL {
            let values: Vec<bool> = view.data().iter().map(|byte| *byte != 0).collect();
            return ArrayD::from_shape_vec(shape, values).unwrap().into();
        }
        let values = view.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        ArrayD::from_shape_vec(shape, values).unwrap().into()
    };
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    tensors.iter().map(|(name, view)| (name.to_owned(), value(view))).collect()
}

fn checkpoint(case: &str) -> Checkpoint {
    Checkpoint::open(folder().join(case).to_str().unwrap()).unwrap()
}

#[test]
fn processors_give_what_the_references_give() {
    let cases = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut count = 0;
    for case in cases.filter(|path| path.join("case.json").is_file()) {
        let name = case.file_name().unwrap().to_str().unwrap();
        let described: Json =
            serde_json::from_slice(&std::fs::read(case.join("case.json")).unwrap()).unwrap();
        let processor = ImageProcessor::from_checkpoint(&checkpoint(name)).unwrap();
        let given = &described["images"];
        let got = if given[0].is_array() {
            let videos: Vec<_> = given.as_array().unwrap().iter().map(images).collect();
            let videos: Vec<&[Image]> = videos.iter().map(Vec::as_slice).collect();
            processor.process_videos(&videos).unwrap()
        } else {
            processor.process(&images(given)).unwrap()
        };
        let want = wanted(name);
        assert_eq!(got.keys().collect::<Vec<_>>(), want.keys().collect::<Vec<_>>(), "{name}");
        for (tensor, want) in &want {
            assert!(differ(&got[tensor], want) <= 1e-5, "{name}: {tensor}: {}", differ(&got[tensor], want));
        }
        count += 1;
    }
    assert!(count > 20, "only {count} cases were found");
}

/// The largest difference; infinite where shapes or types differ.
fn differ(got: &Value, want: &Value) -> f32 {
    match (got, want) {
        (Value::F32(g), Value::F32(w)) if g.shape() == w.shape() => {
            g.iter().zip(w).map(|(g, w)| (g - w).abs()).fold(0.0, f32::max)
        }
        (got, want) if got == want => 0.0,
        _ => f32::INFINITY,
    }
}

#[test]
fn defaults_are_the_references() {
    let defaults: Json =
        serde_json::from_slice(&std::fs::read(folder().join("defaults.json")).unwrap()).unwrap();
    for (name, written) in defaults.as_object().unwrap() {
        let class = processors::Class::named(name).unwrap();
        assert_eq!(class.steps(written).unwrap(), class.steps(&Json::Null).unwrap(), "{name}");
        for key in written.as_object().unwrap().keys() {
            let known = class.defaults().get(key).is_some();
            let passed_over = [
                "image_processor_type",
                "do_convert_rgb",
                "do_convert_annotations",
                "format",
                "do_reduce_labels",
                "return_row_col_info",
                // Of arrays: an image has three.
                "image_num_channels",
                // Another name of `size`, where a file has it.
                "image_size",
                // Of masks, which are not prepared.
                "mask_size",
                "mask_pad_size",
                // Where names of classes are downloaded from, for masks to learn from.
                "repo_path",
                // By the means, whatever is written.
                "background_color",
                "high_res_background_color",
                // Refused where they ask for something.
                "split_image",
                "split_resolutions",
                "padding_mode",
                "is_vqa",
            ]
            .contains(&key.as_str());
            assert!(known || passed_over, "{name}: {key} has no default");
        }
    }
    // The reference has none of these on Pillow.
    let mut others =
        vec!["DINOv3ViT", "Cohere2Vision", "Sam2", "Sam3", "Vivit", "Llama4", "MuseGlimmer", "Emu3"];
    others.extend([
        "PPOCRV5ServerDet",
        "PPOCRV5ServerRec",
        "PPOCRV6SmallRec",
        "PPDocLayoutV2",
        "PPDocLayoutV3",
    ]);
    assert_eq!(defaults.as_object().unwrap().len(), processors::CLASSES.len() - others.len());
}

/// What is said of a checkpoint with these files.
fn refusal(files: &[(&str, Json)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        std::fs::write(folder.path().join(name), content.to_string()).unwrap();
    }
    let checkpoint = Checkpoint::open(folder.path().to_str().unwrap()).unwrap();
    ImageProcessor::from_checkpoint(&checkpoint)
        .map_or_else(|e| e.to_string(), |p| format!("{:?}", p.layout()))
}

#[test]
fn sizes_of_tiles_have_pixels_that_memory_holds() {
    let with = |height: u64, width: u64| {
        let sizes = json!([[12, 24], [height, width]]);
        refusal(&[(
            "preprocessor_config.json",
            json!({"image_processor_type": "LlavaNextImageProcessor", "size": {"shortest_edge": 12}, "image_grid_pinpoints": sizes}),
        )])
    };
    for (height, width) in [(0, 12), (12, u64::MAX), (1 << 20, 1 << 20)] {
        let problem = with(height, width);
        assert!(problem.contains("none of them 0 or of more than 16777216 pixels"), "{problem}");
    }
    assert!(!with(24, 24).contains("error"));
}

#[test]
fn patches_are_of_no_more_frames_than_memory_holds() {
    for class in ["Qwen2VLImageProcessor", "MuseGlimmerImageProcessor"] {
        let with = |frames: u64| {
            let settings = json!({"image_processor_type": class, "temporal_patch_size": frames});
            refusal(&[("preprocessor_config.json", settings)])
        };
        let problem = with(1 << 40);
        assert!(
            problem.contains("`temporal_patch_size`: is 1099511627776, but must be at most 64"),
            "{problem}"
        );
        assert!(!with(2).contains("error"));
    }
}

#[test]
fn no_more_pixels_are_asked_for_than_are_made_in_time() {
    let many = |patches: usize| {
        let settings = json!({"image_processor_type": "Pix2StructImageProcessor", "max_patches": patches});
        refusal(&[("preprocessor_config.json", settings)])
    };
    assert!(
        many(32_769).contains("`max_patches`: 32769 of 16 x 16 are more than 8388608 pixels"),
        "{}",
        many(32_769)
    );
    assert!(!many(32_768).contains("pixels"));
}

/// The steps of a class with these settings over its defaults.
fn steps(class: &str, settings: &Json) -> Vec<Step> {
    processors::Class::named(&format!("{class}ImageProcessor")).unwrap().steps(settings).unwrap()
}

#[test]
fn each_class_has_the_references_steps() {
    let resize = |size, resample| Step::Resize { size, multiple_of: 1, resample };
    let square = |edge| Size::Exact((edge, edge));
    let rescale = Step::Rescale { factor: 1.0 / 255.0, offset: false };
    let half = Step::Normalize { mean: [0.5; 3], std: [0.5; 3] };
    let imagenet = Step::Normalize { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] };
    let vit = [resize(square(224), Filter::Bilinear), rescale.clone(), half.clone()];
    assert_eq!(steps("ViT", &Json::Null), vit);
    assert_eq!(steps("ViT", &json!({"do_resize": false, "do_rescale": false, "do_normalize": false})), []);
    // Numbers before they are resized.
    let dinov3 = [rescale.clone(), imagenet, resize(square(224), Filter::Bilinear)];
    assert_eq!(steps("DINOv3ViT", &Json::Null), dinov3);
    // Large images are not cut.
    let convnext = |size: usize| steps("ConvNext", &json!({"size": size}));
    let cut = [resize(Size::Shortest(256), Filter::Bicubic), Step::CenterCrop((224, 224))];
    assert_eq!(convnext(224), [&cut[..], &[rescale.clone(), half.clone()]].concat());
    assert_eq!(convnext(384), [resize(square(384), Filter::Bicubic), rescale.clone(), half.clone()]);
    let poolformer = steps("PoolFormer", &json!({"size": 90, "do_center_crop": false}));
    assert_eq!(poolformer[0], resize(Size::Shortest(100), Filter::Bicubic));
    assert_eq!(poolformer.len(), 3);
    // The deviation divides twice.
    let efficientnet = steps("EfficientNet", &json!({"rescale_offset": true}));
    let again = Step::Normalize { mean: [0.0; 3], std: [0.5; 3] };
    assert_eq!(efficientnet[1..], [Step::Rescale { factor: 1.0 / 255.0, offset: true }, half.clone(), again]);
    let yolos = steps("Yolos", &Json::Null);
    assert!(matches!(yolos[0], Step::Resize { multiple_of: 16, .. }), "{yolos:?}");
    assert_eq!(yolos.last(), Some(&Step::Pad(None)));
    let textnet = steps("TextNet", &json!({"size": {"shortest_edge": 40}}));
    let Some(Step::Resize { size, .. }) = textnet.first() else { panic!("{textnet:?}") };
    // 40 and 60 of 50 by 75, rounded up to 64; nothing is rounded where nothing is to be.
    assert_eq!([size.of((50, 75)), size.of((75, 50)), size.of((32, 32))], [(64, 64), (64, 64), (64, 64)]);
    assert_eq!(steps("Llava", &json!({"do_pad": true}))[0], Step::PadToSquare([122, 116, 104]));
    let next = steps("LlavaNext", &Json::Null);
    assert!(matches!(next[0], Step::AnyResTiles { whole: (224, 224), tile: 224, .. }), "{next:?}");
    assert_eq!(next.last(), Some(&Step::PadTiles));
    let tiles = json!({"crop_to_patches": true, "size": 30});
    let (size, limits, resample) = ((30, 30), (1, 12), Filter::Bicubic);
    assert_eq!(
        steps("GotOcr2", &tiles)[0],
        Step::CropToPatches { size, limits, canvas: Canvas::NearestRatio, resample }
    );
    let siglip2 = steps("Siglip2", &json!({"do_resize": false}));
    assert_eq!(siglip2, [rescale, half, Step::Patchify { patch_size: 16, max_num_patches: 256 }]);
}

#[test]
fn wrong_files_are_told_apart() {
    const FILE: &str = "preprocessor_config.json";
    let text = refusal(&[("config.json", json!({}))]);
    assert!(text.contains("no preprocessor_config.json") && text.contains("save_pretrained"), "{text}");
    let text = refusal(&[(FILE, json!({"image_processor_type": "FooImageProcessor"}))]);
    assert!(
        text.contains("`FooImageProcessor` is not known") && text.contains("ViTImageProcessor"),
        "{text}"
    );
    let of = |settings: Json| {
        let json = processors::with(json!({"image_processor_type": "CLIPImageProcessor"}), settings);
        refusal(&[(FILE, json)])
    };
    assert!(
        of(json!({"size": {"longest_edge": 3}}))
            .contains("`size`: `longest_edge` 3 says nothing of the other edge")
    );
    assert!(of(json!({"resample": 9})).contains("`resample`: 9 is no filter"));
    assert!(of(json!({"image_std": [1, 0, 1]})).contains("`image_std`"));
    assert!(of(json!({"image_mean": [1, 2]})).contains("`image_mean`"));
    assert!(of(json!({"crop_size": {"shortest_edge": 3}})).contains("`crop_size`: has no height and width"));
    assert!(of(json!({"do_resize": "yes"})).contains("`do_resize`"));
    let text = of(json!({"do_flip_channel_order": true, "do_convert_rgb": true}));
    assert!(text.contains("`do_flip_channel_order`: is no step of CLIPImageProcessor"), "{text}");
    assert_eq!(of(json!({"do_flip_channel_order": false})), "Images");
    assert!(of(json!({"do_pan_and_scan": true})).contains("`do_pan_and_scan`"));
}

#[test]
fn a_file_without_a_class_is_of_the_models() {
    const FILE: &str = "preprocessor_config.json";
    let of = |model: &str| {
        refusal(&[(FILE, json!({"size": 30})), ("config.json", json!({"architectures": [model]}))])
    };
    assert_eq!(of("ViTForImageClassification"), "Images");
    assert_eq!(of("LlavaNextForConditionalGeneration"), "Tiles");
    assert!(of("BertModel").contains("none is named as BertModel"));
}

#[test]
fn pictures_that_do_not_fit_together_are_refused() {
    let clip = ImageProcessor::from_checkpoint(&checkpoint("clip")).unwrap();
    assert!(clip.process(&[]).unwrap_err().to_string().contains("at least one"));
    let uncut = clip.with(&json!({"do_center_crop": false})).unwrap();
    let images = images(&json!(["rgb.png", "tall.png"]));
    let text = uncut.process(&images).unwrap_err().to_string();
    assert!(text.contains("different sizes") && text.contains("[16, 21]"), "{text}");
    assert_eq!(uncut.process(&images[..1]).unwrap()["pixel_values"].shape(), [1, 3, 16, 21]);
}

proptest::proptest! {
    /// Whatever is done to a file, it is read or refused.
    #[test]
    fn damaged_files_are_no_danger(
        file in proptest::sample::select(vec!["palette.png", "grey.jpg", "progressive.jpg", "lossy.webp", "still.gif"]),
        places in proptest::collection::vec((0.0f64..1.0, 0u8..=255), 1..20),
        kept in 0.5f64..1.0,
    ) {
        let mut bytes = std::fs::read(folder().join("files").join(file)).unwrap();
        for (place, value) in places {
            let place = (place * bytes.len() as f64) as usize;
            bytes[place] = value;
        }
        bytes.truncate((bytes.len() as f64 * kept.sqrt()).ceil() as usize);
        if let Ok(image) = Image::decode(&bytes) {
            proptest::prop_assert!(image.height() > 0 && image.width() > 0);
        }
    }

    #[test]
    fn every_size_is_reached(height in 1usize..40, width in 1usize..40, to in (1usize..50, 1usize..50), filter in 0usize..6) {
        let image = Image::from_pixels(&Array3::from_elem((height, width, 3), 200)).unwrap();
        let got = image.resize(to.0, to.1, Filter::ALL[filter]).unwrap();
        proptest::prop_assert_eq!((got.height(), got.width()), to);
        proptest::prop_assert!(got.pixels().iter().all(|level| *level == 200));
    }
}
