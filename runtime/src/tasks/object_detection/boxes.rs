//! A detector's outputs to boxes in pixels.

use ndarray::{ArrayView1, ArrayViewD, Axis, Ix2};
use serde::Serialize;

use super::super::labels::Labels;
use super::super::scores::{largest, softmax, top};
use crate::image::{Image, Pixels};
use crate::{Error, Result, ScoreFunction};

/// An object in an image.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Detection {
    /// The probability of the label.
    pub score: f32,
    /// The name, from `id2label` in `config.json`.
    pub label: String,
    /// Where it is.
    #[serde(rename = "box")]
    pub bounds: Bounds,
    /// The label's index.
    #[serde(skip)]
    pub class: usize,
}

/// The edges of a box in pixels from the upper left corner of the image, rounded towards 0. They may lie outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bounds {
    /// The left edge.
    pub xmin: i64,
    /// The upper edge.
    pub ymin: i64,
    /// The right edge.
    pub xmax: i64,
    /// The lower edge.
    pub ymax: i64,
}

impl Bounds {
    /// Those of a box `[4]`: middle across and down, width and height, in parts of `height` and `width`.
    pub(in crate::tasks) fn of_centre(place: &ArrayView1<'_, f32>, (height, width): Pixels) -> Self {
        let edge = |middle: usize, half: f32, pixels: usize| {
            ((place[middle] + half * place[middle + 2]) * pixels as f32) as i64
        };
        Self {
            xmin: edge(0, -0.5, width),
            ymin: edge(1, -0.5, height),
            xmax: edge(0, 0.5, width),
            ymax: edge(1, 0.5, height),
        }
    }
}

/// A copy of an image with the boxes of what was found, their labels and scores, a colour for each label.
pub fn draw(image: &Image, found: &[Detection]) -> Image {
    let mut image = image.clone();
    for object in found {
        let Bounds { xmin, ymin, xmax, ymax } = object.bounds;
        let name = format!("{} {:.0}%", object.label, object.score * 100.0);
        image.draw_box([xmin, ymin, xmax, ymax], object.class, &name);
    }
    image
}

/// How an image processor makes scores of logits (`post_process_object_detection`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DetectionScores {
    /// One label a query, by softmax over the classes and one more, which is no object (`DetrImageProcessor`).
    Softmax,
    /// The best pairs of query and label by their sigmoids, so many of them (`DeformableDetrImageProcessor`).
    Sigmoid {
        /// How many; as many as there are queries where not given (`RTDetrImageProcessor`).
        top_k: Option<usize>,
    },
}

impl DetectionScores {
    /// Those of one of the reference's image processors, by its name without `ImageProcessor`.
    pub(super) fn of_processor(class: &str) -> Self {
        match class {
            "ConditionalDetr" | "DeformableDetr" => Self::Sigmoid { top_k: Some(100) },
            "RTDetr" | "PPDocLayoutV2" | "PPDocLayoutV3" => Self::Sigmoid { top_k: None },
            _ => Self::Softmax,
        }
    }

    /// Query, label and score of what is found in logits `[queries, classes]`, best first where pairs compete.
    fn chosen(self, logits: &ndarray::ArrayView2<'_, f32>) -> Vec<(usize, usize, f32)> {
        match self {
            Self::Softmax => {
                let best = |(query, logits): (usize, ArrayView1<'_, f32>)| {
                    let scores = softmax(&logits.to_vec());
                    let (_, classes) = scores.split_last().filter(|(_, classes)| !classes.is_empty())?;
                    let class = largest(classes);
                    Some((query, class, classes[class]))
                };
                logits.axis_iter(Axis(0)).enumerate().filter_map(best).collect()
            }
            Self::Sigmoid { top_k } => {
                let classes = logits.ncols().max(1);
                let scores = ScoreFunction::Sigmoid.apply(&logits.iter().copied().collect::<Vec<_>>());
                let best = top(&scores, top_k.unwrap_or(logits.nrows()));
                best.into_iter().map(|at| (at / classes, at % classes, scores[at])).collect()
            }
        }
    }
}

/// What is found by `logits` `[queries, classes]` and `boxes` `[queries, 4]`: middle across and down, width and height, in
/// parts of the image.
pub(super) fn detections(
    logits: ArrayViewD<'_, f32>,
    boxes: ArrayViewD<'_, f32>,
    size: Pixels,
    threshold: f32,
    scores: DetectionScores,
    labels: &Labels,
    order: Option<&[usize]>,
) -> Result<Vec<Detection>> {
    let logits = two_axes("logits", logits)?;
    let boxes = two_axes("pred_boxes", boxes)?;
    if boxes.ncols() != 4 || boxes.nrows() != logits.nrows() {
        let problem =
            format!("has shape {:?} for each image, instead of a box for each query", boxes.shape());
        return Err(Error::input("pred_boxes", problem, "open a detector for this task"));
    }
    let mut found = Vec::new();
    let mut chosen = scores.chosen(&logits);
    if let Some(order) = order {
        chosen.sort_by_key(|(query, ..)| order.get(*query).copied());
    }
    for (query, class, score) in chosen {
        if score > threshold {
            let bounds = Bounds::of_centre(&boxes.row(query), size);
            found.push(Detection { score, label: labels.name(class), bounds, class });
        }
    }
    Ok(found)
}

/// The place of each query in the order of reading, by logits `[queries, queries]` of which comes first (`_get_order_seqs`).
pub(super) fn reading_order(logits: ArrayViewD<'_, f32>) -> Result<Vec<usize>> {
    let logits = two_axes("order_logits", logits)?;
    let count = logits.nrows().min(logits.ncols());
    let sigmoid = |first: usize, second: usize| 1.0 / (1.0 + (-logits[(first, second)]).exp());
    let votes = |query: usize| -> f32 {
        let before: f32 = (0..query).map(|other| sigmoid(other, query)).sum();
        let behind: f32 = (query + 1..count).map(|other| 1.0 - sigmoid(query, other)).sum();
        before + behind
    };
    let votes: Vec<f32> = (0..count).map(votes).collect();
    let mut queries: Vec<usize> = (0..count).collect();
    queries.sort_by(|a, b| votes[*a].total_cmp(&votes[*b]));
    let mut order = vec![0; count];
    for (place, query) in queries.into_iter().enumerate() {
        order[query] = place;
    }
    Ok(order)
}

pub(in crate::tasks) fn two_axes<'a>(
    name: &str,
    values: ArrayViewD<'a, f32>,
) -> Result<ndarray::ArrayView2<'a, f32>> {
    let shape = values.shape().to_vec();
    values.into_dimensionality::<Ix2>().map_err(|_| {
        let problem = format!("has shape {shape:?} for each image, instead of [queries, …]");
        Error::input(name, problem, "open a detector for this task")
    })
}

#[cfg(test)]
mod tests {
    use ndarray::{Array3, array};
    use serde_json::json;

    use super::*;

    #[test]
    fn boxes_come_in_pixels_and_what_is_no_object_is_left_out() {
        let labels = Labels::read(&json!({"id2label": {"0": "cat", "1": "dog"}}));
        let logits = array![[0.0, 4.0, 0.0], [5.0, 0.0, 0.0], [0.0, 0.0, 5.0], [0.6, 0.5, 0.0]].into_dyn();
        let place = array![[0.5, 0.5, 0.5, 0.5], [0.01, 0.2, 0.3, 0.1], [0.5; 4], [0.5; 4]].into_dyn();
        let found =
            detections(logits.view(), place.view(), (40, 100), 0.5, DetectionScores::Softmax, &labels, None)
                .unwrap();
        assert_eq!(found.iter().map(|f| f.label.as_str()).collect::<Vec<_>>(), ["dog", "cat"]);
        assert_eq!(found[0].bounds, Bounds { xmin: 25, ymin: 10, xmax: 75, ymax: 30 });
        assert_eq!(found[1].bounds, Bounds { xmin: -14, ymin: 6, xmax: 16, ymax: 10 });
        let json = serde_json::to_value(&found[0]).unwrap();
        assert_eq!(json["box"], json!({"xmin": 25, "ymin": 10, "xmax": 75, "ymax": 30}));
        let drawn = draw(&Image::from_pixels(&Array3::zeros((40, 100, 3))).unwrap(), &found);
        assert!(drawn.pixels()[[30, 50, 2]] > 0 && drawn.pixels()[[20, 50, 2]] == 0);
    }

    #[test]
    fn pairs_of_query_and_label_compete_where_scores_are_sigmoids() {
        let labels = Labels::read(&json!({"id2label": {"0": "cat", "1": "dog"}}));
        let logits = array![[-1.0, 2.0], [3.0, 1.0], [-4.0, -5.0]].into_dyn();
        let place = array![[0.5; 4], [0.25, 0.5, 0.5, 1.0], [0.5; 4]].into_dyn();
        let found = |top_k, threshold| {
            let scores = DetectionScores::Sigmoid { top_k };
            let found =
                detections(logits.view(), place.view(), (10, 20), threshold, scores, &labels, None).unwrap();
            found.into_iter().map(|found| (found.label, found.bounds.xmin)).collect::<Vec<_>>()
        };
        let all = [("cat", 0), ("dog", 5), ("dog", 0)].map(|(label, xmin)| (label.to_owned(), xmin));
        assert_eq!(found(None, 0.0), all);
        assert_eq!(found(Some(2), 0.5), all[..2]);
        assert_eq!(found(Some(100), 0.9), all[..1]);
        assert_eq!(found(Some(100), 0.0).len(), 6);
    }

    #[test]
    fn what_is_read_first_comes_first() {
        // The last query is before the first, and that before the second.
        let order = array![[0.0, 5.0, -5.0], [0.0, 0.0, -5.0], [0.0, 0.0, 0.0]].into_dyn();
        let order = reading_order(order.view()).unwrap();
        assert_eq!(order, [1, 2, 0]);
        let labels = Labels::read(&json!({"id2label": {"0": "title", "1": "text"}}));
        let logits = array![[-9.0, 2.0], [-9.0, 3.0], [1.0, -9.0]].into_dyn();
        let place = array![[0.5; 4], [0.5; 4], [0.5; 4]].into_dyn();
        let scores = DetectionScores::of_processor("PPDocLayoutV3");
        let found =
            detections(logits.view(), place.view(), (9, 9), 0.5, scores, &labels, Some(&order)).unwrap();
        let found: Vec<_> = found.iter().map(|found| (found.label.as_str(), found.score)).collect();
        assert_eq!(found.iter().map(|(label, _)| *label).collect::<Vec<_>>(), ["title", "text", "text"]);
        assert!(found[1].1 < found[2].1);
    }

    #[test]
    fn a_box_is_needed_for_each_query() {
        let labels = Labels::read(&json!({}));
        let (logits, place) = (array![[1.0, 2.0]].into_dyn(), array![[0.5, 0.5]].into_dyn());
        let error =
            detections(logits.view(), place.view(), (1, 1), 0.0, DetectionScores::Softmax, &labels, None);
        assert!(error.unwrap_err().to_string().contains("pred_boxes"));
    }
}
