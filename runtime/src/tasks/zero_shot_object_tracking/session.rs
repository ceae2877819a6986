//! A video in which texts' objects are found and followed (`Sam3VideoInferenceSession`), one frame after the other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ndarray::{Array1, Array2, Array4, ArrayD, ArrayView3, Axis, Ix3};

use super::association::{Association, Detected, Followed, Frame, Hotstart, recently_occluded};
use super::frames::{ConceptFrames, Found};
use super::masks::{fill_holes, is_nonempty, non_maximum_suppression, suppress_shrunk};
use super::{ConceptFrame, ConceptOptions, ZeroShotObjectTracking};
use crate::any_model::AnyModel;
use crate::image::{Image, Interpolated, Interpolation, Pixels};
use crate::tasks::object_tracking::{Remembered, TrackedObject};
use crate::tasks::outputs::output;
use crate::tasks::{Propagation, TextOptions};
use crate::text::{Padding, Text};
use crate::video::Video;
use crate::{Error, GraphKind, Result, Value, Values};

/// The tokens that texts are padded to (`Sam3VideoProcessor.add_text_prompt`).
const TEXT_LENGTH: usize = 32;

/// What stands for the logits of an object that is hidden.
const HIDDEN: f32 = -10.0;

/// The score of an object that was dropped.
const REMOVED: f32 = -1e4;

/// A text that names objects.
#[derive(Debug)]
pub(super) struct Prompt {
    pub(super) label: String,
    values: Values,
}

/// An object that is followed.
#[derive(Debug)]
struct Object {
    of: TrackedObject,
    /// Which text names it.
    text: usize,
    /// The frame in which it was hidden last.
    last_occluded: Option<i64>,
}

/// A video in which objects that texts name are found and followed.
#[derive(Debug)]
pub struct ConceptSession<'a, A> {
    pub(super) tracker: &'a ZeroShotObjectTracking<A>,
    /// Its frames; none where they come one by one.
    pub(super) video: Option<&'a Video>,
    pub(super) prompts: Vec<Prompt>,
    options: ConceptOptions,
    pub(super) size: Option<Pixels>,
    pushed: usize,
    objects: Vec<Object>,
    /// Which text names an object, of all that ever were.
    pub(super) texts: BTreeMap<i64, usize>,
    scores: BTreeMap<i64, f32>,
    pub(super) hotstart: Hotstart,
    next_id: i64,
}

impl<'a, A: AnyModel> ConceptSession<'a, A> {
    pub(super) fn new(
        tracker: &'a ZeroShotObjectTracking<A>,
        video: Option<&'a Video>,
        candidate_labels: &[&str],
        options: ConceptOptions,
    ) -> Result<Self> {
        if candidate_labels.is_empty() {
            return Err(Error::input("candidate_labels", "are none", "name what is looked for"));
        }
        let text = &tracker.text;
        let length = text.positions().map_or(TEXT_LENGTH, |most| most.min(TEXT_LENGTH));
        let padding = Padding { length: Some(length), ..Padding::default() };
        let mut prompts: Vec<Prompt> = vec![];
        for label in candidate_labels {
            if prompts.iter().any(|known| known.label == *label) {
                continue;
            }
            let rows = text.rows(&[Text::from(*label)], &TextOptions::default())?;
            let values = text.tokenizer.pad(&rows, &padding)?.into_values();
            let values = values
                .into_iter()
                .filter(|(name, _)| matches!(name.as_str(), "input_ids" | "attention_mask"));
            prompts.push(Prompt { label: (*label).to_owned(), values: values.collect() });
        }
        let mut session = Self {
            tracker,
            video,
            prompts,
            options,
            size: None,
            pushed: 0,
            objects: vec![],
            texts: BTreeMap::new(),
            scores: BTreeMap::new(),
            hotstart: Hotstart::default(),
            next_id: 0,
        };
        for frame in video.map(Video::frames).unwrap_or_default() {
            session.sized(frame)?;
        }
        Ok(session)
    }

    /// The number of frames; of a video whose frames come one by one, of those that came.
    pub fn num_frames(&self) -> usize {
        self.video.map_or(self.pushed, |video| video.frames().len())
    }

    /// Forgets all objects, not the texts.
    pub fn reset(&mut self) {
        self.objects.clear();
        self.texts.clear();
        self.scores.clear();
        self.hotstart = Hotstart::default();
        self.next_id = 0;
    }

    /// Finds and follows objects from one frame to the next, each as the iterator gets to it, some frames later than it is looked at; to
    /// drop the iterator is to end tracking. By default it starts with the first frame.
    ///
    /// # Errors
    /// When there is no such frame, or the session has only frames that came one by one.
    pub fn propagate(&mut self, propagation: &Propagation) -> Result<ConceptFrames<'_, 'a, A>> {
        let Some(video) = self.video else {
            let problem = "has only the frames that came one by one";
            return Err(Error::input("video", problem, "open a session on a whole video to go through it"));
        };
        let (count, start) = (video.frames().len(), propagation.start_frame_idx.unwrap_or_default());
        if start >= count {
            let problem = format!("is {start}, but the video has {count} frames");
            return Err(Error::input("start_frame_idx", problem, "count frames from 0"));
        }
        let most = propagation.max_frame_num_to_track.unwrap_or(count);
        let frames: Vec<usize> = match propagation.reverse {
            false => (start..=start.saturating_add(most).min(count - 1)).collect(),
            // As in the reference, from the frame before.
            true => (start.saturating_sub(most)..start).rev().collect(),
        };
        let waiting = VecDeque::new();
        Ok(ConceptFrames { session: self, frames: frames.into_iter(), reverse: propagation.reverse, waiting })
    }

    /// Takes the next frame of a video whose frames come one by one, and gives what the texts name in it. No object is dropped later, since
    /// answers do not wait.
    ///
    /// # Errors
    /// When the frame has another size than those before it, the session is on a whole video, or the model fails.
    pub fn push(&mut self, image: &Image) -> Result<ConceptFrame> {
        if self.video.is_some() {
            let help = "open a streaming session, whose frames come one by one";
            return Err(Error::input("frame", "is given to a session on a whole video", help));
        }
        self.pushed += 1;
        let frame = Frame { index: self.pushed - 1, reverse: false, streaming: true };
        let found = self.looked_at(frame, image)?;
        self.answer(found)
    }

    fn sized(&mut self, image: &Image) -> Result<()> {
        let size = (image.height(), image.width());
        match self.size.get_or_insert(size) {
            known if *known == size => Ok(()),
            (height, width) => {
                let problem =
                    format!("has frames of {height} x {width} pixels and of {} x {}", size.0, size.1);
                Err(Error::input("video", problem, "give frames of one size"))
            }
        }
    }

    /// Finds what the texts name in a frame, and follows objects into it (`_det_track_one_frame`).
    pub(super) fn looked_at(&mut self, frame: Frame, image: &Image) -> Result<Found> {
        self.sized(image)?;
        let tracker = self.tracker;
        let thresholds = &tracker.thresholds;
        let (pixels, edge) = tracker.frames.process(image, frame.streaming)?;
        let features = tracker.run_graph(GraphKind::ImageFeatures, pixels)?;
        let detected = self.detected(&features)?;
        let mut masks = vec![];
        let mut tracker_scores = vec![];
        for index in 0..self.objects.len() {
            let (mask, score) = self.followed(frame, index, &features, None)?;
            masks.push(self.filled(&mask));
            tracker_scores.push(score);
        }
        let known: Vec<i64> = self.objects.iter().map(|object| object.of.object_id).collect();

        let mut association = Association::of(&detected, &self.pairs(&masks), thresholds);
        association.keep_surest(thresholds.max_num_objects.saturating_sub(known.len()), &detected);
        let new: Vec<(i64, usize)> = (self.next_id..).zip(association.new.iter().copied()).collect();
        let new_ids: Vec<i64> = new.iter().map(|(object, _)| *object).collect();
        let [removed, hidden] = self.hotstart.process(frame, &association, &new_ids, thresholds);
        let every = thresholds.recondition_every_nth_frame;
        let mut sure = BTreeMap::new();
        if every > 0 && frame.index.is_multiple_of(every) {
            sure.extend(association.sure.iter().filter_map(|(object, found)| {
                let index = known.iter().position(|known| known == object)?;
                (tracker_scores[index] > thresholds.high_conf_thresh).then_some((index, *found))
            }));
        }
        if !self.objects.is_empty() {
            self.hide(frame, &mut masks, &removed);
            self.remember(frame, &mut masks, &sure, &detected, &features)?;
        }
        for (object, found) in &new {
            self.scores.insert(*object, detected[*found].score);
            self.texts.insert(*object, detected[*found].text);
        }
        self.next_id += new.len() as i64;
        self.scores.extend(removed.iter().map(|object| (*object, REMOVED)));
        let added: Vec<(i64, &Detected)> =
            new.iter().map(|(object, found)| (*object, &detected[*found])).collect();
        self.add(frame, &added, edge, &features)?;
        self.objects.retain(|object| !removed.contains(&object.of.object_id));

        // As in the reference, objects that are left take the places of those that were dropped in this frame.
        let places = || self.objects.iter().map(|object| object.of.object_id);
        let mut shown: BTreeMap<i64, Array2<f32>> = places().zip(masks).collect();
        shown.extend(added.iter().map(|(object, found)| (*object, self.filled(&found.mask))));
        shown.extend(sure.iter().map(|(index, found)| (known[*index], detected[*found].mask.clone())));
        let mut of_tracker: BTreeMap<i64, f32> =
            added.iter().map(|(object, found)| (*object, found.score)).collect();
        of_tracker.extend(removed.iter().map(|object| (*object, REMOVED)));
        of_tracker.extend(places().zip(tracker_scores.into_iter().map(sigmoid)));
        let scores = self.scores.clone();
        for object in &mut self.objects {
            object.of.forget(frame.index, frame.reverse, &tracker.limits);
        }
        Ok(Found { frame_idx: frame.index, masks: shown, scores, tracker_scores: of_tracker, hidden })
    }

    /// Objects that are followed, with their masks in a frame.
    fn pairs<'m>(&self, masks: &'m [Array2<f32>]) -> Vec<Followed<'m>> {
        let all = self.objects.iter().zip(masks);
        all.map(|(object, mask)| Followed { object_id: object.of.object_id, text: object.text, mask })
            .collect()
    }

    fn filled(&self, mask: &Array2<f32>) -> Array2<f32> {
        match self.options.fill_holes {
            true => fill_holes(mask, self.tracker.thresholds.fill_hole_area),
            false => mask.clone(),
        }
    }

    /// What the texts name in a frame, of its features (`run_detection`).
    fn detected(&self, features: &Values) -> Result<Vec<Detected>> {
        let (thresholds, mut all) = (&self.tracker.thresholds, vec![]);
        for (text, prompt) in self.prompts.iter().enumerate() {
            let mut values = prompt.values.clone();
            values.insert("last_hidden_state".to_owned(), given(features, "last_hidden_state")?);
            let outputs = self.tracker.run_graph(GraphKind::Detection, values)?;
            let (logits, presence) = (output(&outputs, "pred_logits")?, output(&outputs, "presence_logits")?);
            let masks = output(&outputs, "pred_masks")?;
            let masks = masks.index_axis(Axis(0), 0).into_dimensionality::<Ix3>();
            let masks: ArrayView3<'_, f32> =
                masks.map_err(|_| misfit("pred_masks", output(&outputs, "pred_masks")))?;
            let presence = sigmoid(presence.iter().copied().next().unwrap_or_default());
            let scored = logits.iter().map(|logit| sigmoid(*logit) * presence).zip(masks.outer_iter());
            let found = scored.filter(|(score, _)| *score > thresholds.score_threshold_detection);
            let found: Vec<Detected> =
                found.map(|(score, mask)| Detected { text, score, mask: mask.to_owned() }).collect();
            if !self.options.suppress_overlapping || thresholds.det_nms_thresh <= 0.0 {
                all.extend(found);
                continue;
            }
            let scores: Vec<f32> = found.iter().map(|found| found.score).collect();
            let masks: Vec<&Array2<f32>> = found.iter().map(|found| &found.mask).collect();
            let kept = non_maximum_suppression(&masks, &scores, thresholds.det_nms_thresh);
            all.extend(found.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(found, _)| found));
        }
        Ok(all)
    }

    /// Follows one object into a frame, or begins with a mask of it: its mask and the logit of its being there. `sharp` is whether memory of
    /// the frame is of masks' pixels.
    fn followed(
        &mut self,
        frame: Frame,
        index: usize,
        features: &Values,
        begin: Option<(Option<Value>, bool)>,
    ) -> Result<(Array2<f32>, f32)> {
        let (tracker, frames) = (self.tracker, self.num_frames());
        let Some(object) = self.objects.get_mut(index) else { return Err(missing("objects")) };
        let (mask, sharp) = begin.unwrap_or_default();
        let (is_mask, mut values) = (mask.is_some(), Values::new());
        if let (None, Some(known)) = (&mask, object.of.conditioned(frame.index)) {
            return known
                .masks
                .clone()
                .map(|masks| (masks, known.score))
                .ok_or_else(|| missing("pred_masks"));
        }
        for map in ["fpn_hidden_states.0", "fpn_hidden_states.1", "fpn_hidden_states.2"] {
            values.insert(map.to_owned(), given(features, map)?);
        }
        let is_first = is_mask && object.of.is_first(frame.index);
        match mask {
            Some(mask) => _ = values.insert("mask_inputs".to_owned(), mask),
            None => {
                let pad = tracker.text.model.needs_fixed_shapes();
                object.of.put(
                    frame.index,
                    frame.reverse,
                    Some(frames),
                    (&tracker.limits, pad),
                    &mut values,
                )?;
            }
        }
        let several = is_mask || tracker.limits.multimask_output(is_first, 0);
        for (name, flag) in [("multimask_output", several), ("is_mask_from_pts", sharp)] {
            values.insert(name.to_owned(), Array1::from_elem(1, i64::from(flag)).into_dyn().into());
        }
        let outputs = tracker.run_graph(GraphKind::Tracking, values)?;
        let (remembered, masks) =
            Remembered::of(&outputs, is_first, tracker.text.model.processing().bf16_memory)?;
        let score = remembered.score;
        object.of.keep(frame.index, remembered, is_first);
        Ok((masks, score))
    }

    /// Hides objects that overlap another one which was not hidden as lately (`_suppress_overlapping_based_on_recent_occlusion`).
    fn hide(&mut self, frame: Frame, masks: &mut [Array2<f32>], removed: &BTreeSet<i64>) {
        let most = self.tracker.thresholds.suppress_overlapping_based_on_recent_occlusion_threshold;
        if most <= 0.0 {
            for object in &mut self.objects {
                object.last_occluded = None;
            }
            return;
        }
        // More than any frame, for objects that were dropped.
        const ALWAYS: i64 = 100_000;
        let before: Vec<i64> = self
            .objects
            .iter()
            .map(|object| {
                let never = if removed.contains(&object.of.object_id) { ALWAYS } else { -1 };
                object.last_occluded.unwrap_or(never)
            })
            .collect();
        let hidden = recently_occluded(&self.pairs(masks), &before, frame.reverse, most);
        for (index, object) in self.objects.iter_mut().enumerate() {
            let is_hidden = hidden[index] || !is_nonempty(&masks[index]);
            object.last_occluded = Some(if is_hidden { frame.index as i64 } else { before[index] });
            if hidden[index] {
                masks[index].fill(HIDDEN);
            }
        }
    }

    /// Makes memory of a frame of objects' masks, of which pixels belong to one each (`_tracker_update_memories`); `sure` are the objects
    /// whose detection confirms them, which memory is then of as of prompts.
    fn remember(
        &mut self,
        frame: Frame,
        masks: &mut [Array2<f32>],
        sure: &BTreeMap<usize, usize>,
        detected: &[Detected],
        features: &Values,
    ) -> Result<()> {
        for (index, found) in sure {
            if !self.tracker.thresholds.recondition_on_trk_masks {
                masks[*index] = detected[*found].mask.mapv(|logit| f32::from(logit >= 0.5));
            }
            if let Some(object) = self.objects.get_mut(*index) {
                object.of.recondition(frame.index, &masks[*index]);
            }
        }
        let mut apart = masks.to_vec();
        let texts: BTreeSet<usize> = self.objects.iter().map(|object| object.text).collect();
        for text in texts {
            let of_text = apart.iter_mut().zip(&self.objects).filter(|(_, object)| object.text == text);
            suppress_shrunk(&mut of_text.map(|(mask, _)| mask).collect::<Vec<_>>());
        }
        for (object, mask) in self.objects.iter_mut().zip(&apart) {
            let is_there = if is_nonempty(mask) { 10.0 } else { -10.0 };
            let (rows, columns) = mask.dim();
            let mut values = Values::new();
            values.insert("fpn_hidden_states.2".to_owned(), given(features, "fpn_hidden_states.2")?);
            let shaped = mask.to_owned().into_shape_with_order((1, 1, rows, columns));
            let shaped = shaped.map_err(|_| missing("pred_masks"))?;
            values.insert("high_res_masks".to_owned(), shaped.into_dyn().into());
            values.insert(
                "object_score_logits".to_owned(),
                Array4::from_elem((1, 1, 1, 1), is_there).into_dyn().into(),
            );
            let outputs = self.tracker.run_graph(GraphKind::MemoryEncoder, values)?;
            let memory = output(&outputs, "maskmem_features")?.index_axis(Axis(0), 0);
            object.of.remember(frame.index, &memory, self.tracker.text.model.processing().bf16_memory);
        }
        Ok(())
    }

    /// Begins to follow objects by masks of them (`_tracker_add_new_objects`).
    fn add(
        &mut self,
        frame: Frame,
        added: &[(i64, &Detected)],
        edge: usize,
        features: &Values,
    ) -> Result<()> {
        if added.is_empty() {
            return Ok(());
        }
        // As in the reference, which tracks all objects again, and makes memory of all of them as of the new ones.
        for index in 0..self.objects.len() {
            self.followed(frame, index, features, Some((None, true)))?;
        }
        for (object_id, found) in added {
            self.objects.push(Object {
                of: TrackedObject::new(*object_id),
                text: found.text,
                last_occluded: None,
            });
            let mask = found.mask.mapv(|logit| f32::from(logit >= 0.5)).insert_axis(Axis(0));
            let mask = Interpolated::new(&mask.view(), (edge, edge), Interpolation::Bilinear).maps();
            let mask: ArrayD<f32> = mask.insert_axis(Axis(0)).into_dyn();
            self.followed(frame, self.objects.len() - 1, features, Some((Some(mask.into()), true)))?;
        }
        Ok(())
    }
}

fn sigmoid(logit: f32) -> f32 {
    1.0 / (1.0 + (-logit).exp())
}

/// A value that one graph gave, as another takes it.
fn given(values: &Values, name: &str) -> Result<Value> {
    values.get(name).cloned().ok_or_else(|| missing(name))
}

fn missing(name: &str) -> Error {
    Error::input(name, "is not given", "open a model that is made for this task")
}

fn misfit(name: &str, found: Result<&ArrayD<f32>>) -> Error {
    let shape = found.map(|values| values.shape().to_vec()).unwrap_or_default();
    Error::input(name, format!("has shape {shape:?}"), "open a model that is made for this task")
}
