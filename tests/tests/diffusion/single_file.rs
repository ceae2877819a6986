//! Checkpoints in one file under the names of the original code, with nothing beside them but tokenizers and what they do not hold.

use std::fs;

use weft::tasks::TextToImage;

use super::{StableDiffusion, agrees, copy};

#[test]
fn files_of_stable_diffusion_agree_with_the_reference() {
    agrees::<StableDiffusion>("stable-diffusion-single-file");
    agrees::<StableDiffusion>("stable-diffusion-2-single-file");
    // Its configurations lie beside it, and say what no file does: that noise is predicted.
    agrees::<StableDiffusion>("stable-diffusion-2-base-single-file");
}

#[test]
fn files_of_larger_models_agree_with_the_reference() {
    agrees::<weft_stable_diffusion_xl::Model>("stable-diffusion-xl-single-file");
    agrees::<weft_stable_diffusion_3::Model>("stable-diffusion-3-single-file");
    agrees::<weft_flux::Model>("flux-single-file");
    agrees::<weft_z_image::Model>("z-image-single-file");
    agrees::<weft_qwen_image::Model>("qwen-image-single-file");
}

#[test]
fn what_a_file_lacks_is_named() {
    let folder = copy("z-image-single-file");
    let problem = || {
        let file = folder.path().join("model.safetensors");
        let opened = TextToImage::<weft_z_image::Model>::open(file.to_str().unwrap());
        opened.and_then(weft::tasks::PipelineBuilder::load).unwrap_err().to_string()
    };
    fs::remove_file(folder.path().join("text_encoder/model.safetensors")).unwrap();
    let text = problem();
    assert!(text.contains("`text_encoder`") && text.contains("Tongyi-MAI/Z-Image-Turbo"), "{text}");
    // A file that is cut off.
    let file = folder.path().join("model.safetensors");
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let text = problem();
    assert!(text.contains("model.safetensors") && text.contains("help"), "{text}");
}
