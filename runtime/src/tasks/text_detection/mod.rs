//! Text detection: where lines of text are on a page, as quadrilaterals.
//!
//! Reference: `post_process_object_detection` of `PPOCRV5ServerDetImageProcessor`: contours of a map of probabilities, and around each
//! the smallest rectangle, made larger (DB; Liao et al., 2019, arXiv:1911.08947).

mod contours;
mod polygon;
mod rectangle;

use ndarray::{ArrayView2, Axis, Ix3};
use serde::Serialize;

use self::contours::contours;
use self::polygon::mean_within;
use self::rectangle::{Rectangle, unclipped};
use super::builder::opened;
use super::images::ImageModel;
use super::{Pipeline, Task};
use crate::any_model::AnyModel;
use crate::image::{Image, Pixels};
use crate::{Error, Result};

/// Finds lines of text on pages.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::image::Image;
///
/// let detector = weft::tasks::TextDetection::<A>::open("PaddlePaddle/PP-OCRv5_mobile_det_safetensors")?.load()?;
/// let page = Image::open("page.png")?;
/// let found = detector.run(&page)?;
/// for text in &found {
///     println!("{:.3} {:?}", text.score, text.corners);
/// }
/// weft::tasks::draw_texts(&page, &found).save("found.png")?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TextDetection<A> {
    images: ImageModel<A>,
}

/// A line of text on a page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DetectedText {
    /// The mean probability of text within it.
    pub score: f32,
    /// Its upper left, upper right, lower right and lower left corner, in pixels across and down.
    #[serde(rename = "box")]
    pub corners: [[i64; 2]; 4],
}

/// What counts as text.
#[derive(Clone, Copy, Debug)]
pub struct TextDetectionOptions {
    /// Pixels count whose probability is larger.
    pub threshold: f32,
    /// Lines count whose mean probability is not smaller.
    pub box_threshold: f32,
    /// The most contours that are looked at.
    pub max_candidates: usize,
    /// The fewest pixels of a line's shorter edge; 2 more when it has been made larger.
    pub min_size: f32,
    /// By how much lines are made larger, in their area over their perimeter.
    pub unclip_ratio: f32,
}

impl Default for TextDetectionOptions {
    fn default() -> Self {
        Self { threshold: 0.3, box_threshold: 0.6, max_candidates: 1000, min_size: 3.0, unclip_ratio: 1.5 }
    }
}

impl<A: AnyModel> Pipeline<A> for TextDetection<A> {
    const TASK: Task = Task::TextDetection;

    fn from_model(model: A) -> Result<Self> {
        Ok(Self { images: ImageModel::new(model)? })
    }
}

opened!(TextDetection: images.model);

impl<A: AnyModel> TextDetection<A> {
    /// The lines of text on a page.
    ///
    /// # Errors
    /// When the image does not become what the model takes, or the model fails.
    pub fn run(&self, page: &Image) -> Result<Vec<DetectedText>> {
        Ok(self
            .run_with(std::slice::from_ref(page), TextDetectionOptions::default())?
            .pop()
            .unwrap_or_default())
    }

    /// The lines of text on each page, with other than the default options.
    ///
    /// # Errors
    /// As [`TextDetection::run`].
    pub fn run_with(&self, pages: &[Image], options: TextDetectionOptions) -> Result<Vec<Vec<DetectedText>>> {
        let outputs = self.images.run(pages, 1, &["last_hidden_state"])?;
        let found = pages.iter().zip(&outputs[0]).map(|(page, map)| {
            let map = map.view().into_dimensionality::<Ix3>().map_err(|_| {
                let problem =
                    format!("has shape {:?} for each image, instead of [1, rows, columns]", map.shape());
                Error::input("last_hidden_state", problem, "open a model that is made for this task")
            })?;
            Ok(texts(&map.index_axis(Axis(0), 0), (page.height(), page.width()), options))
        });
        found.collect()
    }
}

/// The lines of a map of probabilities, in the pixels of a page of `size` (`_boxes_from_bitmap`).
fn texts(map: &ArrayView2<'_, f32>, size: Pixels, options: TextDetectionOptions) -> Vec<DetectedText> {
    let (rows, columns) = map.dim();
    let scales = [size.1 as f32 / columns as f32, size.0 as f32 / rows as f32];
    let most = [size.1 as f32, size.0 as f32];
    let inside = map.mapv(|probability| probability > options.threshold);
    let mut found = vec![];
    for contour in contours(&inside.view()).into_iter().take(options.max_candidates) {
        let points: Vec<[f32; 2]> = contour.iter().map(|(y, x)| [*x as f32, *y as f32]).collect();
        let own = Rectangle::around(&points);
        if own.shorter() < options.min_size {
            continue;
        }
        let corners = own.corners();
        let score = mean_within(map, &corners);
        if options.box_threshold > score {
            continue;
        }
        let larger = Rectangle::around(&unclipped(&corners, options.unclip_ratio));
        if larger.shorter() < options.min_size + 2.0 {
            continue;
        }
        let corners = larger.corners().map(|corner| {
            [0, 1].map(|axis| (corner[axis] * scales[axis]).round_ties_even().min(most[axis]).max(0.0) as i64)
        });
        found.push(DetectedText { score, corners });
    }
    found
}

/// A copy of a page with the edges of what was found, each in a colour of its own.
pub fn draw_texts(page: &Image, found: &[DetectedText]) -> Image {
    let mut page = page.clone();
    for (class, text) in found.iter().enumerate() {
        let corners = text.corners.map(|corner| corner.map(|at| at as f32));
        for (index, from) in corners.iter().enumerate() {
            page.draw_line(*from, corners[(index + 1) % corners.len()], class);
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, Array3};

    use super::*;

    /// Lines that lie askew, one with a hole in it, and one that is too small.
    fn page() -> Array2<f32> {
        let within = |(y, x): (usize, usize), [across, down, width, height, degrees]: [f64; 5]| {
            let (sine, cosine) = degrees.to_radians().sin_cos();
            let (x, y) = (x as f64 - across, y as f64 - down);
            (x * cosine + y * sine).abs() < width / 2.0 && (y * cosine - x * sine).abs() < height / 2.0
        };
        let lines = [
            ([30.3, 20.7, 40.0, 11.0, 17.0], 0.8),
            ([64.2, 44.6, 37.0, 9.0, -23.0], 0.7),
            ([20.4, 50.1, 25.0, 13.0, 5.0], 0.9),
            ([80.7, 12.2, 3.0, 2.0, 0.0], 0.9),
            ([20.4, 50.1, 11.0, 6.0, 8.0], 0.1),
        ];
        Array2::from_shape_fn((64, 96), |place| {
            let line = lines.iter().rev().find(|(line, _)| within(place, *line));
            let grain = ((7 * place.1 + 13 * place.0) % 10) as f64 / 100.0;
            (line.map_or(0.05, |(_, level)| *level) + grain) as f32
        })
    }

    #[test]
    fn lines_are_those_of_the_reference() {
        let few = TextDetectionOptions { unclip_ratio: 0.5, box_threshold: 0.4, ..Default::default() };
        for (options, want) in [
            (
                TextDetectionOptions::default(),
                vec![
                    (0.705_491_8, [[5, 56], [71, 61], [67, 100], [1, 96]]),
                    (0.657_222_2, [[68, 70], [146, 41], [159, 69], [82, 99]]),
                    (0.770_186_7, [[15, 2], [105, 27], [92, 62], [3, 38]]),
                ],
            ),
            (
                few,
                vec![
                    (0.515_537_2, [[24, 69], [51, 72], [48, 88], [22, 85]]),
                    (0.705_491_8, [[12, 63], [63, 67], [60, 94], [9, 90]]),
                    (0.657_222_2, [[76, 73], [142, 48], [151, 66], [85, 91]]),
                    (0.770_186_7, [[20, 11], [95, 31], [87, 54], [12, 34]]),
                ],
            ),
        ] {
            // post_process_object_detection with target_sizes=[[100, 170]]
            let found = texts(&page().view(), (100, 170), options);
            assert_eq!(found.len(), want.len(), "{found:?}");
            for (found, (score, corners)) in found.iter().zip(want) {
                assert_eq!(found.corners, corners);
                assert!((found.score - score).abs() < 1e-5, "{} {score}", found.score);
            }
        }
    }

    #[test]
    fn a_line_of_text_is_a_larger_rectangle_in_the_pages_pixels() {
        let inside = |y: usize, x: usize| (10..20).contains(&y) && (5..45).contains(&x);
        let map = Array2::from_shape_fn((32, 64), |(y, x)| if inside(y, x) { 0.9 } else { 0.1 });
        let found = texts(&map.view(), (64, 128), TextDetectionOptions::default());
        assert_eq!(found.len(), 1);
        // 39 x 9 pixels, larger by 351 * 1.5 / 96 on each side, twice as many on the page.
        assert_eq!(found[0].corners, [[0, 9], [99, 9], [99, 49], [0, 49]]);
        assert!((found[0].score - 0.9).abs() < 1e-6);
        let few = TextDetectionOptions { box_threshold: 0.95, ..TextDetectionOptions::default() };
        assert!(texts(&map.view(), (64, 128), few).is_empty());
        let page = Image::from_pixels(&Array3::zeros((64, 128, 3))).unwrap();
        let drawn = draw_texts(&page, &found);
        assert!(drawn.pixels()[[9, 50, 0]] > 0 && drawn.pixels()[[20, 50, 0]] == 0);
    }
}
