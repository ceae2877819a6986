//! Points and boxes of an image to what a model takes.

use ndarray::{Array3, Array4};

use crate::{Error, Result, Values};

/// The label of padding, where another prompt has more points.
const PADDING: i64 = -10;

/// What stands for one object: points on it and beside it, a box, or both. Pixels of the image, across before down.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MaskPrompt {
    /// Points, and whether each lies on the object.
    pub points: Vec<([f64; 2], bool)>,
    /// The left, upper, right and lower edge.
    pub bounds: Option<[f64; 4]>,
}

impl MaskPrompt {
    /// A point on the object.
    pub fn point(point: [f64; 2]) -> Self {
        Self { points: vec![(point, true)], bounds: None }
    }

    /// A box around the object: left, top, right, bottom.
    pub fn bounds(bounds: [f64; 4]) -> Self {
        Self { points: vec![], bounds: Some(bounds) }
    }

    /// Prompts of lists as the reference's processor takes them: of each prompt points `[x, y]`, their labels, 1 on the object and 0
    /// beside it, and a box; points are on the object where labels are not given.
    ///
    /// # Errors
    /// When the lists are not as long, or a label is another number.
    pub fn from_lists(
        points: Option<&[Vec<[f64; 2]>]>,
        labels: Option<&[Vec<i64>]>,
        boxes: Option<&[[f64; 4]]>,
    ) -> Result<Vec<Self>> {
        let count = points.map(<[_]>::len).or(boxes.map(<[_]>::len)).unwrap_or_default();
        let misfit = |name: &str, problem: String| Error::input(name, problem, "give one for each");
        if boxes.is_some_and(|boxes| boxes.len() != count) {
            return Err(misfit("input_boxes", format!("are not {count}, as there are prompts of points")));
        }
        let mut prompts = vec![Self::default(); count];
        for (index, prompt) in prompts.iter_mut().enumerate() {
            prompt.bounds = boxes.map(|boxes| boxes[index]);
            let Some(points) = points else { continue };
            let labels = match labels {
                Some(labels) => labels.get(index).cloned().unwrap_or_default(),
                None => vec![1; points[index].len()],
            };
            if labels.len() != points[index].len() {
                let problem = format!("{labels:?} do not label {} points", points[index].len());
                return Err(misfit("input_labels", problem));
            }
            if let Some(label) = labels.iter().find(|label| !(0..=1).contains(*label)) {
                let help = "give 1 for a point on the object, 0 for one beside it";
                return Err(Error::input("input_labels", format!("holds {label}"), help));
            }
            let labelled = points[index].iter().zip(&labels);
            prompt.points = labelled.map(|(point, label)| (*point, *label == 1)).collect();
        }
        Ok(prompts)
    }
}

/// The inputs of prompts, coordinates multiplied by `scale`, across and down: `input_points`, `input_labels` and `input_boxes`, of
/// which those are left out that no prompt has.
pub(super) fn put(prompts: &[MaskPrompt], scale: [f64; 2], values: &mut Values) -> Result<()> {
    let boxes: Vec<[f64; 4]> = prompts.iter().filter_map(|prompt| prompt.bounds).collect();
    let most = prompts.iter().map(|prompt| prompt.points.len()).max().unwrap_or_default();
    let help = "give each prompt a point or a box; where one has a box, all have";
    let empty = |prompt: &MaskPrompt| prompt.points.is_empty() && prompt.bounds.is_none();
    if prompts.is_empty() || prompts.iter().any(empty) {
        return Err(Error::input("input_points", "are none, and there is no box", help));
    }
    if !boxes.is_empty() && boxes.len() != prompts.len() {
        let problem = format!("are {} for {} prompts", boxes.len(), prompts.len());
        return Err(Error::input("input_boxes", problem, help));
    }
    let scaled = |value: f64, axis: usize| (value * scale[axis]) as f32;
    if !boxes.is_empty() {
        let edges = Array3::from_shape_fn((1, boxes.len(), 4), |(_, index, edge)| {
            scaled(boxes[index][edge], edge % 2)
        });
        values.insert("input_boxes".to_owned(), edges.into_dyn().into());
    }
    if most > 0 {
        let at = |index: usize, point: usize| prompts[index].points.get(point);
        let points = Array4::from_shape_fn((1, prompts.len(), most, 2), |(_, index, point, axis)| {
            at(index, point).map_or(0.0, |(place, _)| scaled(place[axis], axis))
        });
        let labels = Array3::from_shape_fn((1, prompts.len(), most), |(_, index, point)| {
            at(index, point).map_or(PADDING, |(_, on)| i64::from(*on))
        });
        values.insert("input_points".to_owned(), points.into_dyn().into());
        values.insert("input_labels".to_owned(), labels.into_dyn().into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shorter_prompts_are_padded_and_coordinates_scaled() {
        let (points, labels) = ([vec![[1.0, 2.0], [3.0, 4.0]], vec![[5.0, 6.0]]], [vec![1, 0], vec![0]]);
        let prompts = MaskPrompt::from_lists(Some(&points), Some(&labels), None).unwrap();
        let mut values = Values::new();
        put(&prompts, [10.0, 0.5], &mut values).unwrap();
        let points = values["input_points"].f32("input_points").unwrap();
        assert_eq!(points.iter().copied().collect::<Vec<_>>(), [10.0, 1.0, 30.0, 2.0, 50.0, 3.0, 0.0, 0.0]);
        let labels = values["input_labels"].i64("input_labels").unwrap();
        assert_eq!(labels.iter().copied().collect::<Vec<_>>(), [1, 0, 0, -10]);
        assert!(!values.contains_key("input_boxes"));
    }

    #[test]
    fn boxes_are_scaled_across_and_down() {
        let mut values = Values::new();
        put(&[MaskPrompt::bounds([1.0, 2.0, 3.0, 4.0])], [2.0, 3.0], &mut values).unwrap();
        let boxes = values["input_boxes"].f32("input_boxes").unwrap();
        assert_eq!(boxes.iter().copied().collect::<Vec<_>>(), [2.0, 6.0, 6.0, 12.0]);
        assert!(!values.contains_key("input_points"));
    }

    #[test]
    fn prompts_that_say_nothing_are_refused() {
        let refused =
            |prompts: &[MaskPrompt]| put(prompts, [1.0; 2], &mut Values::new()).unwrap_err().to_string();
        assert!(refused(&[]).contains("are none"));
        assert!(refused(&[MaskPrompt::default()]).contains("are none"));
        let mixed = [MaskPrompt::point([1.0, 1.0]), MaskPrompt::bounds([0.0; 4])];
        assert!(refused(&mixed).contains("are 1 for 2 prompts"));
        let labels = MaskPrompt::from_lists(Some(&[vec![[0.0; 2]]]), Some(&[vec![7]]), None);
        assert!(labels.unwrap_err().to_string().contains("holds 7"));
        let labels = MaskPrompt::from_lists(Some(&[vec![[0.0; 2]]]), Some(&[]), None);
        assert!(labels.unwrap_err().to_string().contains("do not label 1 points"));
        let boxes = MaskPrompt::from_lists(Some(&[vec![[0.0; 2]]]), None, Some(&[]));
        assert!(boxes.unwrap_err().to_string().contains("are not 1"));
    }
}
