//! The pipelines that make images of images, and find bodies in them: super-resolution, matting and poses.

use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::JsonPipeline;
use super::images::{drawn, images, nested};
use super::parameters::Parameters;
use super::shapes::{shaped, start_of};
use crate::any_model::DynModel;
use crate::image::Image;
use crate::tasks::{ImageMatting, ImageSuperResolution, PoseEstimation, PoseOptions, draw_poses};
use crate::{Error, Result};

impl JsonPipeline for ImageSuperResolution<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let out: Option<String> = parameters.get("out")?;
        parameters.finish()?;
        let images = images(inputs)?;
        let made = self.run_batch(&images)?;
        drawn(out, &images, &made, |_, made| made.to_image())?;
        let made =
            made.iter().map(|made| json!({"reconstruction": nested(&made.reconstruction.view().into_dyn())}));
        shaped(inputs, made.collect())
    }
}

impl JsonPipeline for ImageMatting<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let out: Option<String> = parameters.get("out")?;
        parameters.finish()?;
        let given: Vec<&Json> = inputs.as_array().map_or_else(|| vec![inputs], |all| all.iter().collect());
        let given = given.into_iter().map(with_trimap).collect::<Result<Vec<_>>>()?;
        let mattes =
            given.iter().map(|(image, trimap)| self.run(image, trimap)).collect::<Result<Vec<_>>>()?;
        let images: Vec<Image> = given.into_iter().map(|(image, _)| image).collect();
        drawn(out, &images, &mattes, |_, matte| matte.to_image())?;
        let mattes = mattes.iter().map(|matte| json!({"alphas": nested(&matte.alphas.view().into_dyn())}));
        shaped(inputs, mattes.collect())
    }
}

/// The image and the trimap of one input.
fn with_trimap(input: &Json) -> Result<(Image, Image)> {
    match (input["image"].as_str(), input["trimap"].as_str()) {
        (Some(image), Some(trimap)) => Ok((Image::open(image)?, Image::open(trimap)?)),
        _ => Err(Error::input(
            "inputs",
            format!("{} is no image with a trimap", start_of(input)),
            "give {\"image\": \"path\", \"trimap\": \"path\"}, or a list of those",
        )),
    }
}

/// `boxes`: those of the only image, or of each.
#[derive(Deserialize)]
#[serde(untagged)]
enum Boxes {
    OfOne(Vec<[f64; 4]>),
    OfEach(Vec<Vec<[f64; 4]>>),
}

impl JsonPipeline for PoseEstimation<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let defaults = PoseOptions::default();
        let options = PoseOptions {
            threshold: parameters.get("threshold")?,
            kernel_size: parameters.get("kernel_size")?.unwrap_or(defaults.kernel_size),
        };
        let boxes: Option<Boxes> = parameters.get("boxes")?;
        let out: Option<String> = parameters.get("out")?;
        parameters.finish()?;
        let images = images(inputs)?;
        let boxes = boxes_of(boxes, &images)?;
        let both = images.iter().zip(&boxes);
        let poses =
            both.map(|(image, boxes)| self.run_with(image, boxes, options)).collect::<Result<Vec<_>>>()?;
        drawn(out, &images, &poses, |image, poses| Ok(draw_poses(image, poses, self.edges())))?;
        shaped(inputs, poses)
    }
}

/// The boxes of each image: the whole image where none are given.
fn boxes_of(boxes: Option<Boxes>, images: &[Image]) -> Result<Vec<Vec<[f64; 4]>>> {
    let boxes = match boxes {
        None => {
            let whole = |image: &Image| vec![[0.0, 0.0, image.width() as f64, image.height() as f64]];
            images.iter().map(whole).collect()
        }
        Some(Boxes::OfOne(boxes)) if images.len() == 1 => vec![boxes],
        Some(Boxes::OfEach(boxes)) => boxes,
        Some(Boxes::OfOne(boxes)) => vec![boxes; 1],
    };
    if boxes.len() == images.len() {
        return Ok(boxes);
    }
    let problem = format!("are lists for {} images, of {} given", boxes.len(), images.len());
    Err(Error::input("boxes", problem, "give a list of boxes for each image: left, top, width and height"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_of_one_image_or_of_each() {
        let image = Image::from_pixels(&ndarray::Array3::zeros((4, 6, 3))).unwrap();
        let boxes = |given: &Json| serde_json::from_value::<Option<Boxes>>(given.clone()).unwrap();
        let one = std::slice::from_ref(&image);
        assert_eq!(boxes_of(None, one).unwrap(), [[[0.0, 0.0, 6.0, 4.0]]]);
        assert_eq!(boxes_of(boxes(&json!([[1, 2, 3, 4]])), one).unwrap(), [[[1.0, 2.0, 3.0, 4.0]]]);
        assert_eq!(boxes_of(boxes(&json!([[[1, 2, 3, 4]]])), one).unwrap(), [[[1.0, 2.0, 3.0, 4.0]]]);
        let two = [image.clone(), image];
        let said = boxes_of(boxes(&json!([[1, 2, 3, 4]])), &two).unwrap_err().to_string();
        assert!(said.contains("lists for 1 images, of 2 given"), "{said}");
    }

    #[test]
    fn an_image_has_a_trimap() {
        let said = with_trimap(&json!("a.png")).unwrap_err().to_string();
        assert!(said.contains("no image with a trimap") && said.contains("\"trimap\": \"path\""), "{said}");
    }
}
