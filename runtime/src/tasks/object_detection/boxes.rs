//! A detector's outputs to boxes in pixels.

use ndarray::{ArrayViewD, Axis, Ix2};
use serde::Serialize;

use super::super::labels::Labels;
use super::super::scores::{largest, softmax};
use crate::image::{Image, Pixels};
use crate::{Error, Result};

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

/// `logits` `[queries, classes + 1]`, the last class being no object, and `boxes` `[queries, 4]`: middle across
/// and down, width and height, in parts of the image.
pub(super) fn detections(
    logits: ArrayViewD<'_, f32>,
    boxes: ArrayViewD<'_, f32>,
    (height, width): Pixels,
    threshold: f32,
    labels: &Labels,
) -> Result<Vec<Detection>> {
    let logits = two_axes("logits", logits)?;
    let boxes = two_axes("pred_boxes", boxes)?;
    let mut found = Vec::new();
    for (logits, place) in logits.axis_iter(Axis(0)).zip(boxes.axis_iter(Axis(0))) {
        let scores = softmax(&logits.to_vec());
        let Some((_, classes)) = scores.split_last().filter(|(_, classes)| !classes.is_empty()) else {
            continue;
        };
        let class = largest(classes);
        if classes[class] > threshold && place.len() == 4 {
            let edge = |middle: usize, half: f32, pixels: usize| {
                ((place[middle] + half * place[middle + 2]) * pixels as f32) as i64
            };
            let bounds = Bounds {
                xmin: edge(0, -0.5, width),
                ymin: edge(1, -0.5, height),
                xmax: edge(0, 0.5, width),
                ymax: edge(1, 0.5, height),
            };
            found.push(Detection { score: classes[class], label: labels.name(class), bounds, class });
        }
    }
    Ok(found)
}

fn two_axes<'a>(name: &str, values: ArrayViewD<'a, f32>) -> Result<ndarray::ArrayView2<'a, f32>> {
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
        let found = detections(logits.view(), place.view(), (40, 100), 0.5, &labels).unwrap();
        assert_eq!(found.iter().map(|f| f.label.as_str()).collect::<Vec<_>>(), ["dog", "cat"]);
        assert_eq!(found[0].bounds, Bounds { xmin: 25, ymin: 10, xmax: 75, ymax: 30 });
        assert_eq!(found[1].bounds, Bounds { xmin: -14, ymin: 6, xmax: 16, ymax: 10 });
        let json = serde_json::to_value(&found[0]).unwrap();
        assert_eq!(json["box"], json!({"xmin": 25, "ymin": 10, "xmax": 75, "ymax": 30}));
        let drawn = draw(&Image::from_pixels(&Array3::zeros((40, 100, 3))).unwrap(), &found);
        assert!(drawn.pixels()[[30, 50, 2]] > 0 && drawn.pixels()[[20, 50, 2]] == 0);
    }
}
