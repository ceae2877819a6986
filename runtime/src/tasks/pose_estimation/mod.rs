//! Pose estimation: the keypoints of the bodies in boxes of an image.
//!
//! Reference: `VitPoseForPoseEstimation`, and `post_process_pose_estimation` of its image processor.

mod heatmaps;

use ndarray::Ix4;
use serde::Serialize;
use serde_json::Value as Json;

use super::builder::opened;
use super::images::ImageModel;
use super::labels::Labels;
use super::outputs::output;
use super::{Pipeline, Task};
use crate::any_model::AnyModel;
use crate::image::Image;
use crate::{Error, Result};

/// Finds the keypoints of bodies, each in a box of an image.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::image::Image;
///
/// let estimator = weft::tasks::PoseEstimation::<A>::open("usyd-community/vitpose-base-simple")?.load()?;
/// let image = Image::open("street.jpg")?;
/// let poses = estimator.run(&image, &[[412.8, 157.6, 53.2, 138.1]])?;
/// println!("{} {:?}", estimator.name(0), poses[0].keypoints[0]);
/// weft::tasks::draw_poses(&image, &poses, estimator.edges()).save("poses.png")?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PoseEstimation<A> {
    images: ImageModel<A>,
    labels: Labels,
    edges: Vec<[usize; 2]>,
}

/// The keypoints of a body.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pose {
    /// Where each is, in pixels across and down from the upper left corner of the image.
    pub keypoints: Vec<[f32; 2]>,
    /// How sure each is: the largest value of its heatmap.
    pub scores: Vec<f32>,
    /// Which each is, by its index in `id2label`.
    pub labels: Vec<usize>,
    /// `bbox` of the reference, as it computes it: the centre of the box, and the padded width and height in units of 200 pixels
    /// with the centre added, less 1.
    pub bbox: [f32; 4],
}

/// Which keypoints are given.
#[derive(Clone, Copy, Debug)]
pub struct PoseOptions {
    /// Keypoints count whose score is larger; all where not given.
    pub threshold: Option<f32>,
    /// The width of the Gaussian kernel that heatmaps are smoothed by, which is odd.
    pub kernel_size: usize,
}

impl Default for PoseOptions {
    fn default() -> Self {
        Self { threshold: None, kernel_size: 11 }
    }
}

impl<A: AnyModel> Pipeline<A> for PoseEstimation<A> {
    const TASK: Task = Task::PoseEstimation;

    fn from_model(model: A) -> Result<Self> {
        let labels = Labels::read(model.raw_config());
        let edges = edges(model.raw_config());
        Ok(Self { images: ImageModel::new(model)?, labels, edges })
    }
}

opened!(PoseEstimation: images.model);

/// The pairs of keypoints that are joined, as `config.json` lists them.
fn edges(config: &Json) -> Vec<[usize; 2]> {
    let pairs = config["edges"].as_array().into_iter().flatten();
    pairs.filter_map(|pair| Some([pair[0].as_u64()? as usize, pair[1].as_u64()? as usize])).collect()
}

impl<A: AnyModel> PoseEstimation<A> {
    /// The keypoints of what is in each box of an image: left, top, width and height in pixels, as COCO has them.
    ///
    /// # Errors
    /// When there is no box, one is of no size, or the model fails.
    pub fn run(&self, image: &Image, boxes: &[[f64; 4]]) -> Result<Vec<Pose>> {
        self.run_with(image, boxes, PoseOptions::default())
    }

    /// The same with other than the default options.
    ///
    /// # Errors
    /// As [`PoseEstimation::run`].
    pub fn run_with(&self, image: &Image, boxes: &[[f64; 4]], options: PoseOptions) -> Result<Vec<Pose>> {
        if options.kernel_size.is_multiple_of(2) {
            let problem = format!("is {}, which has no middle", options.kernel_size);
            return Err(Error::input("kernel_size", problem, "give an odd number, such as 11"));
        }
        let (values, places) = self.images.processor.process_boxes(image, boxes)?;
        let outputs = self.images.model.run(self.images.inputs(values))?;
        let maps = output(&outputs, "heatmaps")?;
        let fits = maps.view().into_dimensionality::<Ix4>().ok().filter(|maps| maps.dim().0 == places.len());
        let Some(maps) = fits else {
            let problem =
                format!("has shape {:?}, instead of [boxes, keypoints, rows, columns]", maps.shape());
            return Err(Error::input("heatmaps", problem, "open a model that is made for this task"));
        };
        let found = heatmaps::keypoints(&maps, options.kernel_size);
        let size = (maps.dim().2, maps.dim().3);
        let poses = places.iter().zip(found).map(|(place, found)| {
            let kept = found.into_iter().enumerate();
            let kept = kept.filter(|(_, (_, score))| options.threshold.is_none_or(|least| *score > least));
            let mut pose = Pose { keypoints: vec![], scores: vec![], labels: vec![], bbox: bbox(place) };
            for (label, (at, score)) in kept {
                pose.keypoints.push(place.placed(at, size));
                pose.scores.push(score);
                pose.labels.push(label);
            }
            pose
        });
        Ok(poses.collect())
    }

    /// The name of a keypoint, from `id2label` in `config.json`.
    pub fn name(&self, label: usize) -> String {
        self.labels.name(label)
    }

    /// The pairs of keypoints that are joined, `edges` in `config.json`; none where it has none.
    pub fn edges(&self) -> &[[usize; 2]] {
        &self.edges
    }
}

/// `coco_to_pascal_voc` of a centre and a scale.
fn bbox(place: &crate::image::CenterScale) -> [f32; 4] {
    let ([x, y], [width, height]) = (place.center, place.scale);
    [x, y, width + x - 1.0, height + y - 1.0]
}

/// A copy of an image with the keypoints of poses as discs, joined by `edges`, a colour for each pose.
pub fn draw_poses(image: &Image, poses: &[Pose], edges: &[[usize; 2]]) -> Image {
    let mut image = image.clone();
    for (class, pose) in poses.iter().enumerate() {
        let at = |label: usize| Some(pose.keypoints[pose.labels.iter().position(|other| *other == label)?]);
        for [from, to] in edges {
            if let (Some(from), Some(to)) = (at(*from), at(*to)) {
                image.draw_line(from, to, class);
            }
        }
        for keypoint in &pose.keypoints {
            image.draw_disc(*keypoint, class);
        }
    }
    image
}

#[cfg(test)]
mod tests {
    use ndarray::Array3;
    use serde_json::json;

    use super::*;

    #[test]
    fn keypoints_are_discs_joined_by_edges() {
        let image = Image::from_pixels(&Array3::zeros((9, 9, 3))).unwrap();
        let keypoints = vec![[1.0, 1.0], [7.0, 7.0], [1.0, 7.0]];
        let pose = Pose { keypoints, scores: vec![0.5; 3], labels: vec![0, 4, 2], bbox: [0.0; 4] };
        let pairs = edges(&json!({"edges": [[0, 4], [0, 3]]}));
        assert_eq!(pairs, [[0, 4], [0, 3]]);
        let drawn = draw_poses(&image, &[pose], &pairs);
        let drawn = |y: usize, x: usize| drawn.pixels()[[y, x, 0]] > 0;
        assert!(drawn(1, 1) && drawn(4, 4) && drawn(7, 1) && !drawn(4, 1) && !drawn(1, 7));
    }
}
