//! What stands for objects in a frame, and what of it the model takes.

use ndarray::{Array2, Array3, Array4};

use crate::image::{Filter, Mask, Pixels, resampled};
use crate::tasks::MaskPrompt;
use crate::{Error, Result, Values};

/// The label of padding, where another object has more points.
const PADDING: i64 = -10;

/// The labels of a box's corners, the left upper one and the right lower one.
const CORNERS: [i64; 2] = [2, 3];

/// What stands for an object in a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum TrackingPrompt {
    /// Points on it and beside it, a box around it, or both, in pixels of the video.
    Points(MaskPrompt),
    /// Its mask, which is taken as it is.
    Mask(Mask),
}

impl From<MaskPrompt> for TrackingPrompt {
    fn from(prompt: MaskPrompt) -> Self {
        Self::Points(prompt)
    }
}

impl From<Mask> for TrackingPrompt {
    fn from(mask: Mask) -> Self {
        Self::Mask(mask)
    }
}

/// What stands for some objects in a frame, given at once (`add_inputs_to_inference_session`).
///
/// Points of a frame that has been tracked already correct what was found there.
#[derive(Clone, Debug, PartialEq)]
pub struct FramePrompts {
    /// The frame's index, from 0.
    pub frame_idx: usize,
    /// Objects by numbers of the caller's own, each once.
    pub objects: Vec<(i64, TrackingPrompt)>,
    /// Whether earlier prompts of these objects in the frame are forgotten; else points are added to them.
    pub clear_old_inputs: bool,
}

impl FramePrompts {
    /// What stands for one object.
    pub fn new(frame_idx: usize, object_id: i64, prompt: impl Into<TrackingPrompt>) -> Self {
        Self { frame_idx, objects: vec![(object_id, prompt.into())], clear_old_inputs: true }
    }

    /// And for another one.
    #[must_use]
    pub fn with(mut self, object_id: i64, prompt: impl Into<TrackingPrompt>) -> Self {
        self.objects.push((object_id, prompt.into()));
        self
    }

    /// Adds points to those that the objects have in this frame.
    #[must_use]
    pub fn keep_old_inputs(mut self) -> Self {
        self.clear_old_inputs = false;
        self
    }

    /// Refuses prompts that say nothing, or of an object twice.
    pub(super) fn check(&self) -> Result<()> {
        if self.objects.is_empty() {
            return Err(super::no_prompts());
        }
        for (index, (object_id, prompt)) in self.objects.iter().enumerate() {
            if self.objects.iter().take(index).any(|(other, _)| other == object_id) {
                let problem = format!("name the object {object_id} twice in one frame");
                return Err(Error::input("prompts", problem, "put all of its points together"));
            }
            let TrackingPrompt::Points(given) = prompt else { continue };
            if given.points.is_empty() && given.bounds.is_none() {
                let problem = format!("say nothing of the object {object_id}");
                return Err(Error::input("prompts", problem, "give it a point, a box or a mask"));
            }
            let places =
                given.points.iter().flat_map(|(place, _)| place).chain(given.bounds.iter().flatten());
            if let Some(place) = places.into_iter().find(|place| !place.is_finite()) {
                let problem = format!("have the coordinate {place} for the object {object_id}");
                return Err(Error::input("prompts", problem, "give pixels of the video, across and down"));
            }
            if given.bounds.is_some() && !self.clear_old_inputs {
                let problem = format!("have a box for the object {object_id} beside earlier points");
                let help = "a box goes before all points: set `clear_old_inputs`, and give the points again";
                return Err(Error::input("prompts", problem, help));
            }
        }
        Ok(())
    }
}

/// Points of an object in a frame, scaled, with their labels; the corners of a box are the first two.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Points(Vec<([f32; 2], i64)>);

impl Points {
    /// Of a prompt on a video of this size, whose frames become squares with `edge` pixels; padded to as many points as `most`, as the
    /// reference pads what is given at once.
    pub(super) fn new(prompt: &MaskPrompt, (height, width): Pixels, edge: usize, most: usize) -> Self {
        let scale = [width, height].map(|length| (edge as f64 / length as f64) as f32);
        let scaled = |[x, y]: [f64; 2]| [x as f32 * scale[0], y as f32 * scale[1]];
        let corners = prompt.bounds.map(|[left, top, right, bottom]| [[left, top], [right, bottom]]);
        let corners = corners.into_iter().flatten().zip(CORNERS).map(|(place, label)| (scaled(place), label));
        let points = prompt.points.iter().map(|(place, is_on)| (scaled(*place), i64::from(*is_on)));
        let padding = most.saturating_sub(prompt.points.len());
        let padding = std::iter::repeat_n(([PADDING as f32; 2], PADDING), padding);
        Self(corners.chain(points).chain(padding).collect())
    }

    /// How many there are, with padding.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Behind others.
    pub(super) fn after(mut self, mut earlier: Self) -> Self {
        earlier.0.append(&mut self.0);
        earlier
    }

    /// `input_points` `[1, 1, points, 2]` and `input_labels` `[1, 1, points]`.
    pub(super) fn put(&self, values: &mut Values) {
        let places =
            Array4::from_shape_fn((1, 1, self.0.len(), 2), |(_, _, point, axis)| self.0[point].0[axis]);
        let labels = Array3::from_shape_fn((1, 1, self.0.len()), |(_, _, point)| self.0[point].1);
        values.insert("input_points".to_owned(), places.into_dyn().into());
        values.insert("input_labels".to_owned(), labels.into_dyn().into());
    }
}

/// The most points that an object of these has, without corners of boxes.
pub(super) fn most_points(objects: &[(i64, TrackingPrompt)]) -> usize {
    let points = objects.iter().map(|(_, prompt)| match prompt {
        TrackingPrompt::Points(prompt) => prompt.points.len(),
        TrackingPrompt::Mask(_) => 0,
    });
    points.max().unwrap_or_default()
}

/// `mask_inputs` `[1, 1, edge, edge]`, 1 and 0: a mask in the size of frames as the model takes them.
pub(super) fn mask_inputs(mask: &Mask, edge: usize) -> Result<Array4<f32>> {
    let pixels: Array2<f32> = mask.pixels().mapv(|inside| if inside { 1.0 } else { 0.0 });
    if pixels.is_empty() {
        return Err(Error::input("input_masks", "have no pixels", "give masks of the video's size"));
    }
    let pixels = pixels.insert_axis(ndarray::Axis(0));
    if pixels.dim() == (1, edge, edge) {
        return Ok(pixels.insert_axis(ndarray::Axis(0)));
    }
    let wide = resampled(&pixels, 2, edge, Filter::Bilinear);
    let shares = resampled(&wide, 1, edge, Filter::Bilinear);
    let inside = shares.mapv(|share| if share >= 0.5 { 1.0 } else { 0.0 });
    Ok(inside.insert_axis(ndarray::Axis(0)))
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn points_are_scaled_and_padded_and_corners_come_first() {
        let prompt = MaskPrompt { points: vec![([10.0, 5.0], false)], bounds: Some([1.0, 2.0, 3.0, 4.0]) };
        let points = Points::new(&prompt, (20, 40), 80, 2);
        let mut values = Values::new();
        points.put(&mut values);
        let places: Vec<f32> = values["input_points"].f32("").unwrap().iter().copied().collect();
        assert_eq!(places, [2.0, 8.0, 6.0, 16.0, 20.0, 20.0, -10.0, -10.0]);
        let labels: Vec<i64> = values["input_labels"].i64("").unwrap().iter().copied().collect();
        assert_eq!((labels.as_slice(), points.len()), ([2, 3, 0, -10].as_slice(), 4));
        let later = Points::new(&MaskPrompt::point([0.0, 0.0]), (20, 40), 80, 1).after(points);
        assert_eq!((later.len(), later.0[4].1), (5, 1));
    }

    #[test]
    fn masks_become_squares() {
        let mask = Mask::new(array![[true, false], [true, false]]);
        let found = mask_inputs(&mask, 4).unwrap();
        let row: Vec<f32> = found.slice(ndarray::s![0, 0, 1, ..]).to_vec();
        assert_eq!((found.dim(), row), ((1, 1, 4, 4), vec![1.0, 1.0, 0.0, 0.0]));
        assert_eq!(mask_inputs(&mask, 2).unwrap().sum(), 2.0);
    }

    #[test]
    fn prompts_that_say_nothing_are_refused() {
        let refused = |prompts: &FramePrompts| prompts.check().unwrap_err().to_string();
        let point = || MaskPrompt::point([1.0, 1.0]);
        assert!(
            refused(&FramePrompts { objects: vec![], ..FramePrompts::new(0, 1, point()) })
                .contains("are none")
        );
        assert!(refused(&FramePrompts::new(0, 7, MaskPrompt::default())).contains("nothing of the object 7"));
        assert!(refused(&FramePrompts::new(0, 7, point()).with(7, point())).contains("object 7 twice"));
        assert!(
            refused(&FramePrompts::new(0, 1, MaskPrompt::point([f64::NAN, 0.0]))).contains("coordinate NaN")
        );
        let bounds = FramePrompts::new(0, 1, MaskPrompt::bounds([0.0; 4])).keep_old_inputs();
        assert!(refused(&bounds).contains("beside earlier points"));
    }
}
