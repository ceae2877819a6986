//! Keypoint detection: the keypoints of an image, and what they look like.
//!
//! Reference: `SuperPointForKeypointDetection`, and `post_process_keypoint_detection` of its image processor.

use ndarray::{Axis, Ix2, Ix3};
use serde::Serialize;

use super::builder::opened;
use super::images::ImageModel;
use super::outputs::{integers, output};
use super::{Pipeline, Task};
use crate::any_model::AnyModel;
use crate::image::Image;
use crate::{Error, Result};

/// Finds the keypoints of images.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::image::Image;
///
/// let detector = weft::tasks::KeypointDetection::<A>::open("magic-leap-community/superpoint")?.load()?;
/// let image = Image::open("house.jpg")?;
/// let found = detector.run(&image)?;
/// println!("{:?} {}", found.keypoints[0], found.scores[0]);
/// weft::tasks::draw_keypoints(&image, &found).save("keypoints.png")?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct KeypointDetection<A> {
    images: ImageModel<A>,
}

/// The keypoints of an image.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Keypoints {
    /// Where each is, in whole pixels across and down from the upper left corner of the image.
    pub keypoints: Vec<[i64; 2]>,
    /// How sure each is.
    pub scores: Vec<f32>,
    /// What each looks like: vectors of length one.
    pub descriptors: Vec<Vec<f32>>,
}

impl<A: AnyModel> Pipeline<A> for KeypointDetection<A> {
    const TASK: Task = Task::KeypointDetection;

    fn from_model(model: A) -> Result<Self> {
        Ok(Self { images: ImageModel::new(model)? })
    }
}

opened!(KeypointDetection: images.model);

impl<A: AnyModel> KeypointDetection<A> {
    /// The keypoints of an image.
    ///
    /// # Errors
    /// When the model fails.
    pub fn run(&self, image: &Image) -> Result<Keypoints> {
        let values = self.images.processor.process(std::slice::from_ref(image))?;
        let outputs = self.images.model.run(self.images.inputs(values))?;
        let points = output(&outputs, "keypoints")?.view().into_dimensionality::<Ix3>();
        let scores = output(&outputs, "scores")?.view().into_dimensionality::<Ix2>();
        let descriptors = output(&outputs, "descriptors")?.view().into_dimensionality::<Ix3>();
        let mask = integers(&outputs, "mask")?.view().into_dimensionality::<Ix2>();
        let (Ok(points), Ok(scores), Ok(descriptors), Ok(mask)) = (points, scores, descriptors, mask) else {
            let problem = "are not those of keypoints of an image";
            return Err(Error::input("keypoints", problem, "open a model that is made for this task"));
        };
        let size = [image.width() as f32, image.height() as f32];
        let mut found = Keypoints::default();
        for (index, _) in mask.index_axis(Axis(0), 0).iter().enumerate().filter(|(_, real)| **real > 0) {
            found.keypoints.push([0, 1].map(|axis| (points[[0, index, axis]] * size[axis]) as i64));
            found.scores.push(scores[[0, index]]);
            found.descriptors.push(descriptors.index_axis(Axis(0), 0).row(index).to_vec());
        }
        Ok(found)
    }
}

/// A copy of an image with its keypoints as discs.
pub fn draw_keypoints(image: &Image, found: &Keypoints) -> Image {
    let mut image = image.clone();
    for keypoint in &found.keypoints {
        image.draw_disc(keypoint.map(|at| at as f32), 0);
    }
    image
}

#[cfg(test)]
mod tests {
    use ndarray::Array3;

    use super::*;

    #[test]
    fn keypoints_are_discs() {
        let image = Image::from_pixels(&Array3::zeros((9, 9, 3))).unwrap();
        let found = Keypoints { keypoints: vec![[2, 6]], scores: vec![0.5], descriptors: vec![vec![1.0]] };
        let drawn = draw_keypoints(&image, &found);
        let sum = |y: usize, x: usize| {
            drawn.pixels().slice(ndarray::s![y, x, ..]).iter().map(|v| usize::from(*v)).sum::<usize>()
        };
        assert!(sum(6, 2) > 0 && sum(2, 6) == 0);
    }
}
