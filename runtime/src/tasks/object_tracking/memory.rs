//! What is remembered of an object, and which of it a frame attends to.

use std::collections::{BTreeMap, BTreeSet};

use half::bf16;
use ndarray::{Array2, Array3, ArrayD, Axis, IxDyn, Slice, aview1, s};

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

/// What the model gave of an object in a frame.
#[derive(Clone, Debug)]
pub(super) struct Remembered {
    /// `maskmem_features` without the batch's axis, in bfloat16 as the reference keeps them; left out once no frame attends to them.
    features: Option<ArrayD<bf16>>,
    /// `object_pointer` `[hidden_size]`.
    pointer: Vec<f32>,
    /// `pred_masks` `[rows, columns]` of a frame with prompts, which is given again when tracking passes it.
    pub(super) masks: Option<Array2<f32>>,
    pub(super) score: f32,
}

impl Remembered {
    /// Of the outputs of a batch of one; `is_first` where the frame is one with prompts.
    pub(super) fn of(outputs: &Values, is_first: bool) -> Result<(Self, Array2<f32>)> {
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
            features: Some(of_one("maskmem_features")?.mapv(bf16::from_f32)),
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
pub(super) struct TrackedObject {
    pub(super) object_id: i64,
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
    pub(super) fn new(object_id: i64) -> Self {
        let (conditioning, tracked) = (vec![], BTreeMap::new());
        Self { object_id, points: BTreeMap::new(), conditioning, tracked, seen: BTreeSet::new() }
    }

    /// What was found in a frame with prompts.
    pub(super) fn conditioned(&self, frame: usize) -> Option<&Remembered> {
        self.conditioning.iter().find(|(other, _)| *other == frame).map(|(_, remembered)| remembered)
    }

    /// The frames with prompts, in the order in which they came.
    pub(super) fn conditioning_frames(&self) -> Vec<usize> {
        self.conditioning.iter().map(|(frame, _)| *frame).collect()
    }

    /// Whether prompts of a frame are the first that is known of the object there.
    pub(super) fn is_first(&self, frame: usize) -> bool {
        !self.seen.contains(&frame)
    }

    /// Keeps what was found in a frame.
    pub(super) fn keep(&mut self, frame: usize, remembered: Remembered, is_first: bool) {
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

    /// Forgets of frames without prompts what none attends to that follows the one just tracked; all that lies ahead is kept.
    pub(super) fn forget(&mut self, frame: usize, reverse: bool, limits: &Limits) {
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
    pub(super) fn put(
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
            let mut place = features.slice_axis_mut(Axis(1), Slice::from(index..=index));
            place.assign(&kept.mapv(f32::from));
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
