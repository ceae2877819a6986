//! Pipelines that the reference made, through their generated crates: the same latents after each step and the same images for the
//! same seed.

#![allow(clippy::unwrap_used, reason = "a test ends where anything is missing")]

mod single_file;

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use weft::image::Image;
use weft::tasks::{
    DenoisingStep, GeneratedImage, ImageToImage, ImageToImageOptions, Inpainting, TextToImage,
    TextToImageOptions,
};
use weft::{AnyModel, Architecture, Hardware, Value, Values};
use weft_stable_diffusion::Model as StableDiffusion;

fn golden(pipeline: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/text-to-image").join(pipeline)
}

fn json(path: &Path) -> Json {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// A copy of the checkpoint, whose files may be changed.
fn copy(pipeline: &str) -> tempfile::TempDir {
    let (folder, golden) = (tempfile::tempdir().unwrap(), golden(pipeline));
    for entry in walkdir::WalkDir::new(&golden).min_depth(1) {
        let entry = entry.unwrap();
        let to = folder.path().join(entry.path().strip_prefix(&golden).unwrap());
        match entry.file_type().is_dir() {
            true => fs::create_dir_all(to).unwrap(),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
    folder
}

/// What is opened: the folder, or the file that holds all components.
fn opened(folder: &Path) -> PathBuf {
    let file = folder.join("model.safetensors");
    if file.is_file() { file } else { folder.to_owned() }
}

fn load<A: AnyModel + Architecture>(folder: &Path) -> weft::Result<TextToImage<A>> {
    TextToImage::open(folder.to_str().unwrap())?.hardware(Hardware::Cpu).threads(1).load()
}

fn options(call: &Json) -> (Vec<&str>, TextToImageOptions) {
    let asked = &call["options"];
    let whole = |name: &str| asked[name].as_u64().map(|number| number as usize);
    let number = |name: &str| asked[name].as_f64().map(|number| number as f32);
    let options = TextToImageOptions {
        negative_prompt: asked["negative_prompt"].as_str().map(str::to_owned),
        prompt_weighting: call["weighted"].as_bool().unwrap_or(false),
        num_inference_steps: whole("num_inference_steps"),
        guidance_scale: number("guidance_scale").or_else(|| number("true_cfg_scale")),
        image_guidance_scale: number("image_guidance_scale").unwrap_or(1.5),
        guidance_rescale: number("guidance_rescale").unwrap_or_default(),
        height: whole("height"),
        width: whole("width"),
        use_resolution_binning: asked["use_resolution_binning"].as_bool().unwrap_or(true),
        num_images_per_prompt: whole("num_images_per_prompt").unwrap_or(1),
        max_sequence_length: whole("max_sequence_length"),
        seed: call["seed"].as_u64(),
        seeds: call["seed"].as_array().into_iter().flatten().filter_map(Json::as_u64).collect(),
        latents: None,
        vae_tiling: call["tiled"].as_bool().unwrap_or(false),
        control_image: None,
        controlnet_conditioning_scale: number("controlnet_conditioning_scale").unwrap_or(1.0),
        control_guidance_start: asked["control_guidance_start"].as_f64().unwrap_or(0.0),
        control_guidance_end: asked["control_guidance_end"].as_f64().unwrap_or(1.0),
    };
    (call["prompts"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect(), options)
}

/// The tensors of a file.
fn tensors(path: &Path) -> Values {
    weft::golden::tensors(path).unwrap()
}

/// Runs the pipeline of a call: from an image, where it has one, and in what a mask covers.
fn run<A: AnyModel + Architecture>(
    folder: &Path,
    call: &Json,
    (prompts, options): (&[&str], TextToImageOptions),
    on_step: &mut dyn FnMut(&DenoisingStep<'_>) -> ControlFlow<()>,
) -> weft::Result<Vec<GeneratedImage>> {
    let checkpoint = opened(folder);
    let Some(image) = call["image"].as_str() else {
        let mut builder =
            TextToImage::<A>::open(checkpoint.to_str().unwrap())?.hardware(Hardware::Cpu).threads(1);
        if let Some(file) = call["lora"]["file"].as_str() {
            builder = builder.lora(folder.join(file), call["lora"]["scale"].as_f64().unwrap() as f32);
        }
        return builder.load()?.run_with(prompts, &options, on_step);
    };
    let image = Image::open(folder.join(image))?;
    let strength = call["options"]["strength"].as_f64();
    let options = ImageToImageOptions { strength, generation: options };
    if let Some(mask) = call["mask"].as_str() {
        let mask = Image::open(folder.join(mask))?;
        let pipeline = Inpainting::<A>::open(folder.to_str().unwrap())?;
        let pipeline = pipeline.hardware(Hardware::Cpu).threads(1).load()?;
        return pipeline.run_with(prompts, (&image, &mask), &options, on_step);
    }
    let pipeline = ImageToImage::<A>::open(folder.to_str().unwrap())?;
    pipeline.hardware(Hardware::Cpu).threads(1).load()?.run_with(prompts, &image, &options, on_step)
}

/// Makes every call of a pipeline's golden: the latents after each step are within 3e-5 of the largest of them, the images within one
/// level.
fn agrees<A: AnyModel + Architecture>(pipeline: &str) {
    let (golden, folder) = (golden(pipeline), copy(pipeline));
    for call in json(&golden.join("calls.json")).as_array().unwrap() {
        let name = call["name"].as_str().unwrap();
        // A file of all components has none beside it, or the one that it was made with.
        if !folder.path().join("model.safetensors").is_file() {
            fs::write(folder.path().join("scheduler/scheduler_config.json"), call["scheduler"].to_string())
                .unwrap();
        }
        let want = tensors(&golden.join(format!("{name}.safetensors")));
        let (prompts, mut options) = options(call);
        options.control_image =
            call["control"].as_str().map(|file| Image::open(folder.path().join(file)).unwrap());
        let mut steps = 0;
        let made = run::<A>(folder.path(), call, (&prompts, options), &mut |step| {
            let Value::F32(want) = &want[&format!("latents.{:02}", step.index)] else { panic!("{name}") };
            let most = want.iter().fold(1.0_f32, |most, x| most.max(x.abs()));
            assert_eq!(step.latents.shape(), want.shape(), "{name}");
            let error = step.latents.iter().zip(want).fold(0.0_f32, |most, (a, b)| most.max((a - b).abs()));
            println!("{pipeline}, {name}, step {}: {:e} of {most}", step.index, error / most);
            assert!(error <= 3e-5 * most, "{name}, step {}: off by {error:e} of {most}", step.index);
            steps += 1;
            ControlFlow::Continue(())
        });
        let made = made.unwrap();
        assert_eq!(steps, want.keys().filter(|key| key.starts_with("latents.")).count(), "{name}");
        let Value::I64(images) = &want["images"] else { panic!("{name}: {:?}", want["images"].dtype()) };
        assert_eq!(made.len(), images.shape()[0], "{name}");
        for (index, image) in made.iter().enumerate() {
            let want = images.index_axis(ndarray::Axis(0), index);
            let pixels = image.image.pixels();
            assert_eq!(pixels.shape(), want.shape(), "{name}");
            let off = pixels.iter().zip(want).map(|(a, b)| (i64::from(*a) - b).abs()).max();
            assert!(off <= Some(1), "{name}, image {index}: off by {off:?} levels");
        }
    }
}

#[test]
fn stable_diffusion_agrees_with_the_reference() {
    agrees::<StableDiffusion>("stable-diffusion");
}

#[test]
fn a_denoiser_that_sees_masks_agrees_with_the_reference() {
    agrees::<StableDiffusion>("stable-diffusion-inpainting");
    let pipeline = load::<StableDiffusion>(&golden("stable-diffusion-inpainting")).unwrap();
    let problem = pipeline.run(&["A loom"], &TextToImageOptions::default()).unwrap_err().to_string();
    assert!(problem.contains("mask") && problem.contains("9 channels"), "{problem}");
}

#[test]
fn stable_diffusion_xl_agrees_with_the_reference() {
    agrees::<weft_stable_diffusion_xl::Model>("stable-diffusion-xl");
}

#[test]
fn controlnets_agree_with_the_reference() {
    agrees::<weft_stable_diffusion_controlnet::Model>("stable-diffusion-controlnet");
    agrees::<weft_stable_diffusion_xl_controlnet::Model>("stable-diffusion-xl-controlnet");
    let pipeline =
        load::<weft_stable_diffusion_controlnet::Model>(&golden("stable-diffusion-controlnet")).unwrap();
    let problem = pipeline.run(&["A loom"], &TextToImageOptions::default()).unwrap_err().to_string();
    assert!(problem.contains("control_image"), "{problem}");
}

#[test]
fn stable_diffusion_3_agrees_with_the_reference() {
    agrees::<weft_stable_diffusion_3::Model>("stable-diffusion-3");
    agrees::<weft_stable_diffusion_3::Model>("stable-diffusion-3-without-t5");
    agrees::<weft_stable_diffusion_3::Model>("stable-diffusion-3-inpainting");
}

#[test]
fn flux_agrees_with_the_reference() {
    agrees::<weft_flux::Model>("flux");
}

#[test]
fn pixart_agrees_with_the_reference() {
    agrees::<weft_pixart::Model>("pixart-alpha");
    agrees::<weft_pixart::Model>("pixart-sigma");
}

#[test]
fn z_image_agrees_with_the_reference() {
    agrees::<weft_z_image::Model>("z-image");
}

#[test]
fn aura_flow_agrees_with_the_reference() {
    agrees::<weft_aura_flow::Model>("aura-flow");
}

#[test]
fn chroma_agrees_with_the_reference() {
    agrees::<weft_chroma::Model>("chroma");
}

#[test]
fn lumina2_agrees_with_the_reference() {
    agrees::<weft_lumina2::Model>("lumina2");
}

#[test]
fn sana_agrees_with_the_reference() {
    agrees::<weft_sana::Model>("sana");
    agrees::<weft_sana::Model>("sana-sprint");
}

#[test]
fn qwen_image_agrees_with_the_reference() {
    agrees::<weft_qwen_image::Model>("qwen-image");
}

#[test]
fn flux2_klein_agrees_with_the_reference() {
    agrees::<weft_flux2_klein::Model>("flux2-klein");
}

#[test]
fn flux2_agrees_with_the_reference() {
    agrees::<weft_flux2::Model>("flux2");
}

#[test]
fn ovis_image_agrees_with_the_reference() {
    agrees::<weft_ovis_image::Model>("ovis-image");
}

#[test]
fn bria_agrees_with_the_reference() {
    agrees::<weft_bria::Model>("bria");
}

#[test]
fn cogview4_agrees_with_the_reference() {
    agrees::<weft_cogview4::Model>("cogview4");
}

#[test]
fn ernie_image_agrees_with_the_reference() {
    agrees::<weft_ernie_image::Model>("ernie-image");
}

#[test]
fn latent_consistency_agrees_with_the_reference() {
    agrees::<weft_latent_consistency_model::Model>("latent-consistency-model");
}

#[test]
fn the_refiner_agrees_with_the_reference() {
    agrees::<weft_stable_diffusion_xl_refiner::Model>("stable-diffusion-xl-refiner");
}

#[test]
fn images_are_edited_as_by_the_reference() {
    type Edits = weft_stable_diffusion_instruct_pix2pix::Model;
    agrees::<Edits>("stable-diffusion-instruct-pix2pix");
    let folder = golden("stable-diffusion-instruct-pix2pix");
    let problem = load::<Edits>(&folder).unwrap_err().to_string();
    assert!(problem.contains("one of image-to-image"), "{problem}");
    let images = ImageToImage::<Edits>::open(folder.to_str().unwrap()).unwrap();
    let images = images.hardware(Hardware::Cpu).load().unwrap();
    let image = Image::open(folder.join("image.png")).unwrap();
    let options = ImageToImageOptions { strength: Some(0.5), ..ImageToImageOptions::default() };
    let problem = images.run(&["Make it red"], &image, &options).unwrap_err().to_string();
    assert!(problem.contains("strength") && problem.contains("image_guidance_scale"), "{problem}");
}

#[test]
fn denoisers_that_are_not_distilled_are_refused_where_guidance_is_embedded() {
    let index = |folder: &Path, class: &str| {
        let path = folder.join("model_index.json");
        let mut index = json(&path);
        index["_class_name"] = class.into();
        fs::write(path, index.to_string()).unwrap();
    };
    let folder = copy("stable-diffusion");
    index(folder.path(), "LatentConsistencyModelPipeline");
    let problem = load::<weft_latent_consistency_model::Model>(folder.path()).unwrap_err().to_string();
    assert!(problem.contains("time_cond_proj_dim") && problem.contains("help"), "{problem}");
    let folder = copy("sana");
    index(folder.path(), "SanaSprintPipeline");
    let problem = load::<weft_sana::Model>(folder.path()).unwrap_err().to_string();
    assert!(problem.contains("guidance_embeds") && problem.contains("help"), "{problem}");
    let folder = copy("sana-sprint");
    let scheduler = r#"{"_class_name": "FlowMatchEulerDiscreteScheduler"}"#;
    fs::write(folder.path().join("scheduler/scheduler_config.json"), scheduler).unwrap();
    let problem = load::<weft_sana::Model>(folder.path()).unwrap_err().to_string();
    assert!(problem.contains("SCMScheduler"), "{problem}");
}

#[test]
fn hunyuan_dit_agrees_with_the_reference() {
    agrees::<weft_hunyuan_dit::Model>("hunyuan-dit");
    agrees::<weft_hunyuan_dit::Model>("hunyuan-dit-1.2");
}

#[test]
fn dit_agrees_with_the_reference() {
    agrees::<weft_dit::Model>("dit");
}

#[test]
fn a_seed_gives_the_same_file_and_a_step_may_be_the_last() {
    let pipeline = load::<StableDiffusion>(&golden("stable-diffusion")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let options = TextToImageOptions { seed: Some(3), num_inference_steps: Some(3), ..Default::default() };
    let bytes = |name: &str| {
        let path = folder.path().join(name);
        pipeline.run(&["A loom"], &options).unwrap()[0].save(&path).unwrap();
        fs::read(path).unwrap()
    };
    assert_eq!(bytes("first.png"), bytes("second.png"));
    let mut steps = 0;
    let cancelled = pipeline.run_with(&["A loom"], &options, &mut |_| {
        steps += 1;
        if steps == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let problem = cancelled.unwrap_err().to_string();
    assert!(steps == 2 && problem.contains("cancelled after step 2 of 4"), "{problem}");
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let pipeline = load::<StableDiffusion>(&golden("stable-diffusion")).unwrap();
    let problem = |options: TextToImageOptions| pipeline.run(&["A loom"], &options).unwrap_err().to_string();
    let defaults = TextToImageOptions::default;
    let control = Image::open(golden("stable-diffusion").join("image.png")).unwrap();
    for (options, named) in [
        (TextToImageOptions { height: Some(15), ..defaults() }, "height"),
        (TextToImageOptions { width: Some(0), ..defaults() }, "width"),
        (TextToImageOptions { num_inference_steps: Some(0), ..defaults() }, "num_inference_steps"),
        (TextToImageOptions { seeds: vec![1, 2], ..defaults() }, "seeds"),
        (TextToImageOptions { latents: Some(ndarray::Array4::zeros((1, 4, 2, 2))), ..defaults() }, "latents"),
        (TextToImageOptions { control_image: Some(control.clone()), ..defaults() }, "control_image"),
    ] {
        let problem = problem(options);
        assert!(problem.contains(named) && problem.contains("help"), "{problem}");
    }
    let folder = copy("stable-diffusion");
    let images = ImageToImage::<StableDiffusion>::open(folder.path().to_str().unwrap()).unwrap();
    let images = images.hardware(Hardware::Cpu).load().unwrap();
    let image = Image::open(folder.path().join("image.png")).unwrap();
    for (strength, steps) in [(0.0, 10), (1.5, 10), (0.05, 10)] {
        let generation = TextToImageOptions { num_inference_steps: Some(steps), ..defaults() };
        let options = ImageToImageOptions { strength: Some(strength), generation };
        let problem = images.run(&["A loom"], &image, &options).unwrap_err().to_string();
        assert!(problem.contains("strength") && problem.contains("help"), "{problem}");
    }
    let refused = |file: &str, change: &dyn Fn(&mut Json)| {
        let path = folder.path().join(file);
        let before = fs::read(&path).unwrap();
        let mut changed = json(&path);
        change(&mut changed);
        fs::write(&path, changed.to_string()).unwrap();
        let problem =
            load::<StableDiffusion>(folder.path()).err().map(|error| error.to_string()).unwrap_or_default();
        fs::write(&path, before).unwrap();
        problem
    };
    let unknown =
        |json: &mut Json| json["image_encoder"] = serde_json::json!(["transformers", "CLIPVisionModel"]);
    assert!(refused("model_index.json", &unknown).contains("`image_encoder`"));
    let lacking = |json: &mut Json| json["vae"] = serde_json::json!([null, null]);
    assert!(refused("model_index.json", &lacking).contains("`vae`"));
    let other = |json: &mut Json| json["_class_name"] = "KandinskyPipeline".into();
    assert!(refused("model_index.json", &other).contains("KandinskyPipeline"));
    let scheduler = |json: &mut Json| json["_class_name"] = "RePaintScheduler".into();
    assert!(refused("scheduler/scheduler_config.json", &scheduler).contains("RePaintScheduler"));
    let unet = |json: &mut Json| json["class_embed_type"] = "timestep".into();
    let problem = refused("unet/config.json", &unet);
    assert!(problem.contains("class_embed_type"), "{problem}");
}
