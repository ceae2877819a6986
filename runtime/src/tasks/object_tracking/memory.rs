//! What is remembered of an object, and which of it a frame attends to.

use std::collections::{BTreeMap, BTreeSet};

use half::bf16;
use ndarray::{Array2, Array3, ArrayD, ArrayViewD, ArrayViewMutD, Axis, IxDyn, aview1, s};

use super::limits::Limits;
use super::prompts::Points;
use crate::tasks::outputs::output;
use crate::{Error, Result, Values};

/// The frames with prompts that lie closest, in the order in which the reference takes them (`_select_closest_cond_frames`): of those in
/// `given`, the closest one before a frame, the closest one after it or at it, and others up to `most`, all of them for -1.
pub(super) fn closest(frame: usize, given: &[usize], most: i64) -> Vec<usize> {
    if most == -1 || given.len() as i64 <= most {
        return given.to_vec();
    }
    let before = given.iter().copied().filter(|other| *other < frame).max();
    let after = given.iter().copied().filter(|other| *other >= frame).min();
    let mut chosen: Vec<usize> = before.into_iter().chain(after).collect();
    let mut others: Vec<usize> = given.iter().copied().filter(|other| !chosen.contains(other)).collect();
    others.sort_by_key(|other| other.abs_diff(frame));
    // Where fewer are allowed than these two, a slice of Python counts from the end.
    let remaining = most - chosen.len() as i64;
    let count = if remaining < 0 { others.len() as i64 + remaining } else { remaining };
    chosen.extend(others.into_iter().take(usize::try_from(count).unwrap_or_default()));
    chosen
}

/// The frames whose memory one attends to, each with how many frames before this one it counts as, 0 for one with prompts
/// (`_gather_memory_frame_outputs`). `conditioning` are those with prompts, `tracked` tells of the others which there are.
pub(super) fn memory_frames(
    frame: usize,
    conditioning: &[usize],
    tracked: impl Fn(usize) -> bool,
    reverse: bool,
    limits: &Limits,
) -> Vec<(usize, usize)> {
    let chosen = closest(frame, conditioning, limits.max_cond_frame_num);
    let left = |other: &usize| conditioning.contains(other) && !chosen.contains(other);
    let recent = (1..limits.num_maskmem).rev().filter_map(|offset| {
        let other = passed(frame, offset, reverse)?;
        (tracked(other) || left(&other)).then_some((offset, other))
    });
    let recent: Vec<_> = recent.collect();
    chosen.into_iter().map(|other| (0, other)).chain(recent).collect()
}

/// The frames whose object pointers one attends to, each with how many frames before this one it is (`_get_object_pointers`); of a
/// video of `frames`, or of one whose frames come one by one.
pub(super) fn pointer_frames(
    frame: usize,
    conditioning: &[usize],
    tracked: impl Fn(usize) -> bool,
    reverse: bool,
    frames: Option<usize>,
    limits: &Limits,
) -> Vec<(usize, usize)> {
    let is_past = |other: &usize| if reverse { *other >= frame } else { *other <= frame };
    let prompted = conditioning.iter().copied().filter(is_past);
    let recent = (1..limits.object_pointers(frames))
        .map_while(|offset| Some((offset, passed(frame, offset, reverse)?)))
        .take_while(|(_, other)| frames.is_none_or(|frames| *other < frames))
        .filter(|(_, other)| tracked(*other));
    prompted.map(|other| (frame.abs_diff(other), other)).chain(recent).collect()
}

/// So many frames before one, as tracking passes them.
fn passed(frame: usize, offset: usize, reverse: bool) -> Option<usize> {
    if reverse { frame.checked_add(offset) } else { frame.checked_sub(offset) }
}

/// Memory of a frame, in what the reference keeps it in.
#[derive(Clone, Debug)]
enum Features {
    Bf16(ArrayD<bf16>),
    F32(ArrayD<f32>),
}

impl Features {
    fn of(features: &ArrayViewD<'_, f32>, is_bf16: bool) -> Self {
        match is_bf16 {
            true => Self::Bf16(features.mapv(bf16::from_f32)),
            false => Self::F32(features.to_owned()),
        }
    }

    fn shape(&self) -> &[usize] {
        match self {
            Self::Bf16(features) => features.shape(),
            Self::F32(features) => features.shape(),
        }
    }

    /// Writes it to a place of its shape.
    fn write(&self, mut place: ArrayViewMutD<'_, f32>) {
        match self {
            Self::Bf16(features) => place.assign(&features.mapv(f32::from)),
            Self::F32(features) => place.assign(features),
        }
    }
}

/// What the model gave of an object in a frame.
#[derive(Clone, Debug)]
pub(in crate::tasks) struct Remembered {
    /// `maskmem_features` without the batch's axis; left out once no frame attends to them.
    features: Option<Features>,
    /// `object_pointer` `[hidden_size]`.
    pointer: Vec<f32>,
    /// `pred_masks` `[rows, columns]` of a frame with prompts, which is given again when tracking passes it.
    pub(in crate::tasks) masks: Option<Array2<f32>>,
    pub(in crate::tasks) score: f32,
}

impl Remembered {
    /// Of the outputs of a batch of one; `is_first` where the frame is one with prompts, `is_bf16` where memory is rounded.
    pub(in crate::tasks) fn of(
        outputs: &Values,
        is_first: bool,
        is_bf16: bool,
    ) -> Result<(Self, Array2<f32>)> {
        let of_one = |name: &str| {
            let values = output(outputs, name)?;
            match values.shape().first() {
                Some(1) => Ok(values.index_axis(Axis(0), 0)),
                _ => Err(misfit(name, values.shape())),
            }
        };
        let masks = of_one("pred_masks")?;
        let shape = masks.shape().to_vec();
        let &[1, rows, columns] = shape.as_slice() else { return Err(misfit("pred_masks", &shape)) };
        let masks = masks.to_owned().into_shape_with_order((rows, columns));
        let masks = masks.map_err(|_| misfit("pred_masks", &shape))?;
        let score = of_one("object_score_logits")?.first().copied();
        let score = score.ok_or_else(|| misfit("object_score_logits", &[1, 0]))?;
        let remembered = Self {
            features: Some(Features::of(&of_one("maskmem_features")?, is_bf16)),
            pointer: of_one("object_pointer")?.iter().copied().collect(),
            masks: is_first.then(|| masks.clone()),
            score,
        };
        Ok((remembered, masks))
    }
}

fn misfit(name: &str, shape: &[usize]) -> Error {
    Error::input(name, format!("has shape {shape:?}"), "open a model that is made for this task")
}

/// An object that is tracked.
#[derive(Clone, Debug)]
pub(in crate::tasks) struct TrackedObject {
    pub(in crate::tasks) object_id: i64,
    /// Points of frames, as they were given.
    pub(super) points: BTreeMap<usize, Points>,
    /// Frames that were prompted before they were tracked (`cond_frame_outputs`), in the order in which that happened.
    conditioning: Vec<(usize, Remembered)>,
    /// The other frames (`non_cond_frame_outputs`).
    tracked: BTreeMap<usize, Remembered>,
    /// Frames that were tracked at some time (`frames_tracked_per_obj`).
    seen: BTreeSet<usize>,
}

impl TrackedObject {
    pub(in crate::tasks) fn new(object_id: i64) -> Self {
        let (conditioning, tracked) = (vec![], BTreeMap::new());
        Self { object_id, points: BTreeMap::new(), conditioning, tracked, seen: BTreeSet::new() }
    }

    /// What was found in a frame with prompts.
    pub(in crate::tasks) fn conditioned(&self, frame: usize) -> Option<&Remembered> {
        self.conditioning.iter().find(|(other, _)| *other == frame).map(|(_, remembered)| remembered)
    }

    /// The frames with prompts, in the order in which they came.
    pub(super) fn conditioning_frames(&self) -> Vec<usize> {
        self.conditioning.iter().map(|(frame, _)| *frame).collect()
    }

    /// Whether prompts of a frame are the first that is known of the object there.
    pub(in crate::tasks) fn is_first(&self, frame: usize) -> bool {
        !self.seen.contains(&frame)
    }

    /// Keeps what was found in a frame.
    pub(in crate::tasks) fn keep(&mut self, frame: usize, remembered: Remembered, is_first: bool) {
        if !is_first {
            self.seen.insert(frame);
            self.tracked.insert(frame, remembered);
            return;
        }
        match self.conditioning.iter_mut().find(|(other, _)| *other == frame) {
            Some((_, known)) => *known = remembered,
            None => self.conditioning.push((frame, remembered)),
        }
    }

    /// Takes a frame that was tracked for one with prompts from now on, of this mask (`_tracker_update_memories`).
    pub(in crate::tasks) fn recondition(&mut self, frame: usize, mask: &Array2<f32>) {
        if let Some(remembered) = self.tracked.remove(&frame) {
            self.keep(frame, Remembered { masks: Some(mask.clone()), ..remembered }, true);
        }
    }

    /// Keeps other memory of a frame than the model gave with its mask.
    pub(in crate::tasks) fn remember(&mut self, frame: usize, memory: &ArrayViewD<'_, f32>, is_bf16: bool) {
        let conditioning = self.conditioning.iter_mut().filter(|(other, _)| *other == frame);
        let all = conditioning.map(|(_, remembered)| remembered).chain(self.tracked.get_mut(&frame));
        all.for_each(|remembered| remembered.features = Some(Features::of(memory, is_bf16)));
    }

    /// Forgets of frames without prompts what none attends to that follows the one just tracked; all that lies ahead is kept.
    pub(in crate::tasks) fn forget(&mut self, frame: usize, reverse: bool, limits: &Limits) {
        let [memory, pointers] = limits.reach();
        let age = |other: usize| match reverse {
            true => other.checked_sub(frame),
            false => frame.checked_sub(other),
        };
        self.tracked.retain(|other, remembered| {
            // The next frame is one further away.
            let Some(age) = age(*other) else { return true };
            if age >= memory {
                remembered.features = None;
            }
            age < memory.max(pointers)
        });
        self.points.retain(|other, _| age(*other).is_none_or(|age| age == 0));
    }

    /// Puts the memory and the object pointers that a frame attends to among what the model takes; `pad` fills both up to their usual
    /// numbers with what does not count.
    pub(in crate::tasks) fn put(
        &self,
        frame: usize,
        reverse: bool,
        frames: Option<usize>,
        (limits, pad): (&Limits, bool),
        values: &mut Values,
    ) -> Result<()> {
        let conditioning = self.conditioning_frames();
        let tracked = |other: usize| self.tracked.contains_key(&other);
        let of = |other: usize| self.tracked.get(&other).or_else(|| self.conditioned(other));
        let memory = memory_frames(frame, &conditioning, tracked, reverse, limits);
        let memory = memory.into_iter();
        let memory =
            memory.filter_map(|(offset, other)| Some((offset as i64, of(other)?.features.as_ref()?)));
        let memory: Vec<_> = memory.collect();
        let Some((_, first)) = memory.first() else {
            let problem = format!("say nothing yet of the object {}", self.object_id);
            return Err(Error::input(
                "prompts",
                problem,
                "add its prompts before its other frames are tracked",
            ));
        };
        let length = if pad { memory.len().max(limits.num_maskmem) } else { memory.len() };
        let mut features = ArrayD::<f32>::zeros(IxDyn(&[&[1, length], first.shape()].concat()));
        let mut offsets = Array2::from_elem((1, length), -1_i64);
        for (index, (offset, kept)) in memory.iter().enumerate() {
            if kept.shape() != first.shape() {
                return Err(misfit("maskmem_features", kept.shape()));
            }
            let mut of_one = features.index_axis_mut(Axis(0), 0);
            kept.write(of_one.index_axis_mut(Axis(0), index));
            offsets[(0, index)] = *offset;
        }
        values.insert("maskmem_features".to_owned(), features.into());
        values.insert("memory_offsets".to_owned(), offsets.into_dyn().into());

        let most = limits.object_pointers(frames);
        let chosen = pointer_frames(frame, &conditioning, tracked, reverse, frames, limits);
        let span = most.saturating_sub(1).max(1) as f32;
        let chosen = chosen.into_iter();
        let chosen = chosen.filter_map(|(offset, other)| Some((offset as f32 / span, &of(other)?.pointer)));
        let chosen: Vec<_> = chosen.collect();
        let length = if pad { chosen.len().max(limits.max_object_pointers_in_encoder) } else { chosen.len() };
        let width = chosen.first().map_or(0, |(_, pointer)| pointer.len());
        if width == 0 {
            return Ok(());
        }
        let mut pointers = Array3::<f32>::zeros((1, length, width));
        let mut places = Array2::from_elem((1, length), -1.0_f32);
        for (index, (place, pointer)) in chosen.iter().enumerate() {
            pointers.slice_mut(s![0, index, ..]).assign(&aview1(pointer));
            places[(0, index)] = *place;
        }
        values.insert("object_pointers".to_owned(), pointers.into_dyn().into());
        values.insert("pointer_offsets".to_owned(), places.into_dyn().into());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ndarray::array;
    use serde::Deserialize;
    use serde_json::{Value as Json, json};

    use super::*;

    #[derive(Deserialize)]
    struct Case {
        frame: usize,
        frames: Option<usize>,
        conditioning: Vec<usize>,
        tracked: Vec<usize>,
        reverse: bool,
        limits: Json,
        memory: Vec<(usize, usize)>,
        pointers: Vec<(usize, usize)>,
        most: usize,
    }

    fn limits(given: &Json) -> Limits {
        let mut all = json!({
            "num_maskmem": 3, "max_object_pointers_in_encoder": 4, "max_cond_frame_num": -1,
            "multimask_output_in_sam": true, "multimask_output_for_tracking": true,
            "multimask_min_pt_num": 0, "multimask_max_pt_num": 1,
        });
        for (name, value) in given.as_object().into_iter().flatten() {
            all[name] = value.clone();
        }
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn memory_and_pointers_are_those_that_the_reference_picks() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens/object-tracking/memory.json");
        let cases: Vec<Case> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        assert!(cases.len() > 100);
        for (index, case) in cases.iter().enumerate() {
            let (limits, tracked) = (limits(&case.limits), |other: usize| case.tracked.contains(&other));
            let found = memory_frames(case.frame, &case.conditioning, tracked, case.reverse, &limits);
            assert_eq!(found, case.memory, "case {index}");
            let (frame, reverse) = (case.frame, case.reverse);
            let found = pointer_frames(frame, &case.conditioning, tracked, reverse, case.frames, &limits);
            assert_eq!(
                (found, limits.object_pointers(case.frames)),
                (case.pointers.clone(), case.most),
                "case {index}"
            );
        }
    }

    /// What a model gives of a frame, memory of `[channels, rows, columns]` or of `[tokens, channels]`.
    fn outputs(level: f32, shape: &[usize]) -> Values {
        let whole = |shape: &[usize]| ArrayD::from_elem(IxDyn(shape), level).into();
        Values::from([
            ("pred_masks".to_owned(), whole(&[1, 1, 2, 2])),
            ("object_score_logits".to_owned(), whole(&[1, 1, 1])),
            ("object_pointer".to_owned(), whole(&[1, 4])),
            ("maskmem_features".to_owned(), whole(&[&[1], shape].concat())),
        ])
    }

    fn tracked(shape: &[usize]) -> TrackedObject {
        let mut object = TrackedObject::new(1);
        for frame in 0..6 {
            let (remembered, _) =
                Remembered::of(&outputs(1.001 + frame as f32, shape), frame == 0, true).unwrap();
            object.keep(frame, remembered, frame == 0);
        }
        object
    }

    #[test]
    fn memory_has_the_shape_that_the_model_gave_it_and_is_rounded() {
        for shape in [&[3, 2, 2][..], &[5, 3]] {
            let (object, limits, mut values) = (tracked(shape), limits(&json!({})), Values::new());
            object.put(6, false, Some(9), (&limits, false), &mut values).unwrap();
            let features = values["maskmem_features"].f32("").unwrap();
            assert_eq!(features.shape(), [&[1, 3], shape].concat());
            let levels: Vec<f32> =
                features.index_axis(Axis(0), 0).outer_iter().map(|of| *of.first().unwrap()).collect();
            assert_eq!(levels, [1.0, 5.0, 6.0]);
            assert_eq!(values["memory_offsets"].i64("").unwrap(), &array![[0, 2, 1]].into_dyn());
            let places: Vec<f32> = values["pointer_offsets"].f32("").unwrap().iter().copied().collect();
            assert_eq!(places, [2.0, 1.0 / 3.0, 2.0 / 3.0, 1.0]);
            let pointers = values["object_pointers"].f32("").unwrap();
            assert_eq!((pointers.shape(), pointers[[0, 1, 0]]), (&[1, 4, 4][..], 6.001));
        }
    }

    #[test]
    fn memory_may_be_kept_as_it_is() {
        let (limits, mut object, mut values) = (limits(&json!({})), TrackedObject::new(1), Values::new());
        let (remembered, _) = Remembered::of(&outputs(1.001, &[5, 3]), true, false).unwrap();
        object.keep(0, remembered, true);
        object.put(1, false, None, (&limits, false), &mut values).unwrap();
        assert_eq!(values["maskmem_features"].f32("").unwrap()[[0, 0, 4, 2]], 1.001);
    }

    #[test]
    fn shapes_may_be_kept_by_memory_that_does_not_count() {
        let (object, mut values) = (tracked(&[5, 3]), Values::new());
        object.put(1, false, Some(9), (&limits(&json!({})), true), &mut values).unwrap();
        assert_eq!(values["memory_offsets"].i64("").unwrap(), &array![[0, -1, -1]].into_dyn());
        assert_eq!(values["maskmem_features"].shape(), [1, 3, 5, 3]);
        assert_eq!(
            values["pointer_offsets"].f32("").unwrap(),
            &array![[1.0 / 3.0, -1.0, -1.0, -1.0]].into_dyn()
        );
    }

    #[test]
    fn what_no_frame_attends_to_is_forgotten() {
        for (reverse, frame, next) in [(false, 4, 5), (true, 1, 0)] {
            let (mut object, limits, mut all) = (tracked(&[5, 3]), limits(&json!({})), Values::new());
            object.put(next, reverse, Some(6), (&limits, false), &mut all).unwrap();
            object.forget(frame, reverse, &limits);
            let mut left = Values::new();
            object.put(next, reverse, Some(6), (&limits, false), &mut left).unwrap();
            assert_eq!(left, all);
        }
        let (mut object, limits) = (tracked(&[5, 3]), limits(&json!({})));
        object.forget(5, false, &limits);
        // Object pointers of three frames, and memory of two of these.
        assert_eq!(object.tracked.keys().copied().collect::<Vec<_>>(), [3, 4, 5]);
        let remembered = |frame: usize| object.tracked[&frame].features.is_some();
        assert_eq!([remembered(3), remembered(4), remembered(5)], [false, true, true]);
        assert!(object.conditioned(0).unwrap().features.is_some());
    }

    #[test]
    fn prompts_of_frames_that_were_tracked_are_corrections() {
        let object = tracked(&[5, 3]);
        assert!(object.is_first(0) && !object.is_first(3) && object.is_first(7));
        let error =
            TrackedObject::new(9).put(1, false, None, (&limits(&json!({})), false), &mut Values::new());
        assert!(error.unwrap_err().to_string().contains("the object 9"));
        let mut wrong = outputs(1.0, &[5, 3]);
        wrong.insert("pred_masks".to_owned(), ArrayD::<f32>::zeros(IxDyn(&[1, 2])).into());
        assert!(Remembered::of(&wrong, true, true).unwrap_err().to_string().contains("pred_masks"));
    }
}
