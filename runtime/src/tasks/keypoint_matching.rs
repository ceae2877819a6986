//! Keypoint matching: the keypoints of two images that show the same.
//!
//! Reference: `KeypointMatchingPipeline`, and `post_process_keypoint_matching` of the image processors. The pipeline itself takes widths
//! for heights, so that keypoints of images that are not square lie elsewhere; here they lie where they are.

use ndarray::{Array3, Axis, Ix3, Ix4, IxDyn};
use serde::Serialize;

use super::builder::opened;
use super::images::ImageModel;
use super::outputs::{integers, output};
use super::{Pipeline, Task};
use crate::any_model::AnyModel;
use crate::image::Image;
use crate::{Error, Result, Value};

/// Finds the keypoints of two images that show the same.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::image::Image;
///
/// let matcher = weft::tasks::KeypointMatching::<A>::open("ETH-CVG/lightglue_superpoint")?.load()?;
/// let images = [Image::open("left.jpg")?, Image::open("right.jpg")?];
/// let matches = matcher.run(&images, 0.0)?;
/// println!("{:?} {:?} {}", matches[0].keypoint_image_0, matches[0].keypoint_image_1, matches[0].score);
/// weft::tasks::draw_matches(&images, &matches)?.save("matches.png")?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct KeypointMatching<A> {
    images: ImageModel<A>,
}

/// A place in an image, in whole pixels from its upper left corner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Keypoint {
    /// Across.
    pub x: i64,
    /// Down.
    pub y: i64,
}

/// Keypoints of two images that match.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct KeypointMatch {
    /// The keypoint in the first image.
    pub keypoint_image_0: Keypoint,
    /// The keypoint in the second image.
    pub keypoint_image_1: Keypoint,
    /// How sure it is that these show the same.
    pub score: f32,
}

impl<A: AnyModel> Pipeline<A> for KeypointMatching<A> {
    const TASK: Task = Task::KeypointMatching;

    fn from_model(model: A) -> Result<Self> {
        Ok(Self { images: ImageModel::new(model)? })
    }
}

opened!(KeypointMatching: images.model);

impl<A: AnyModel> KeypointMatching<A> {
    /// The keypoints of two images that match with a score above `threshold`, the surest first.
    ///
    /// # Errors
    /// When images become of different sizes, or the model fails.
    pub fn run(&self, images: &[Image; 2], threshold: f32) -> Result<Vec<KeypointMatch>> {
        let mut values = self.images.processor.process(images)?;
        let pixels = values.remove("pixel_values");
        let Some(Value::F32(pixels)) = pixels.filter(|pixels| pixels.shape().first() == Some(&2)) else {
            let problem = "are no two images of one size once they are processed";
            return Err(Error::input("images", problem, "give images of one size, or set `do_resize`"));
        };
        let pair = pixels.insert_axis(Axis(0)).as_standard_layout().into_owned();
        values.insert("pixel_values".to_owned(), pair.into());
        let outputs = self.images.model.run(self.images.inputs(values))?;
        let points = output(&outputs, "keypoints")?.view().into_dimensionality::<Ix4>();
        let scores = output(&outputs, "matching_scores")?.view().into_dimensionality::<Ix3>();
        let matches = integers(&outputs, "matches")?.view().into_dimensionality::<Ix3>();
        let (Ok(points), Ok(scores), Ok(matches)) = (points, scores, matches) else {
            let problem = "are not those of keypoints of two images";
            return Err(Error::input("matches", problem, "open a model that is made for this task"));
        };
        let keypoint = |image: usize, index: usize| {
            let size = [images[image].width() as f32, images[image].height() as f32];
            let [x, y] = [0, 1].map(|axis| (points[[0, image, index, axis]] * size[axis]) as i64);
            Keypoint { x, y }
        };
        let found = |image: usize| {
            let valid = move |index: &usize| {
                scores[[0, image, *index]] > threshold && matches[[0, image, *index]] > -1
            };
            (0..matches.dim().2).filter(valid)
        };
        let pair = |first: usize, second: usize| KeypointMatch {
            keypoint_image_0: keypoint(0, first),
            keypoint_image_1: keypoint(1, second),
            score: scores[[0, 0, first]],
        };
        let mut pairs: Vec<KeypointMatch> = match outputs.contains_key("mask") {
            true => {
                let mask = integers(&outputs, "mask")?;
                let real = |image: usize, index: usize| mask.get(IxDyn(&[0, image, index])) == Some(&1);
                let both = found(0).map(|first| (first, matches[[0, 0, first]] as usize));
                let both = both.filter(|(first, second)| real(0, *first) && real(1, *second));
                both.map(|(first, second)| pair(first, second)).collect()
            }
            // Keypoints of both images that match stand in one order.
            false => found(0).zip(found(1)).map(|(first, second)| pair(first, second)).collect(),
        };
        pairs.sort_by(|a, b| b.score.total_cmp(&a.score));
        Ok(pairs)
    }
}

/// Two images side by side, with lines between the keypoints that match.
///
/// # Errors
/// When they are too large for one image.
pub fn draw_matches([first, second]: &[Image; 2], matches: &[KeypointMatch]) -> Result<Image> {
    let (height, left) = (first.height().max(second.height()), first.width());
    let mut pixels = Array3::<u8>::zeros((height, left + second.width(), 3));
    for (image, start) in [(first, 0), (second, left)] {
        let end = start + image.width();
        pixels.slice_mut(ndarray::s![..image.height(), start..end, ..]).assign(&image.pixels());
    }
    let mut drawn = Image::from_pixels(&pixels)?;
    for (class, found) in matches.iter().enumerate() {
        let (from, to) = (found.keypoint_image_0, found.keypoint_image_1);
        let [from, to] = [[from.x as f32, from.y as f32], [(to.x + left as i64) as f32, to.y as f32]];
        drawn.draw_line(from, to, class);
        drawn.draw_disc(from, class);
        drawn.draw_disc(to, class);
    }
    Ok(drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_stand_side_by_side_with_lines_between() {
        let [first, second] = [(6, 8), (9, 5)]
            .map(|(height, width)| Image::from_pixels(&Array3::zeros((height, width, 3))).unwrap());
        let at = |x: i64, y: i64| Keypoint { x, y };
        let found = KeypointMatch { keypoint_image_0: at(1, 3), keypoint_image_1: at(3, 3), score: 0.5 };
        let drawn = draw_matches(&[first, second], &[found]).unwrap();
        assert_eq!((drawn.height(), drawn.width()), (9, 13));
        let pixels = drawn.pixels();
        let sum =
            |y: usize, x: usize| (0..3).map(|channel| usize::from(pixels[[y, x, channel]])).sum::<usize>();
        assert!(sum(3, 6) > 0 && sum(3, 11) > 0 && sum(7, 6) == 0);
    }
}
