//! A video whose objects are tracked (`Sam2VideoInferenceSession`), one frame after the other.

use ndarray::{Array1, Array2};

use super::draw::video_logits;
use super::memory::{Remembered, TrackedObject};
use super::prompts::{Points, mask_inputs, most_points};
use super::{
    FramePrompts, ObjectTracking, TrackedFrame, TrackedMask, TrackingOptions, TrackingPrompt, no_prompts,
};
use crate::any_model::AnyModel;
use crate::image::{Image, Mask, Pixels};
use crate::video::Video;
use crate::{Error, GraphKind, Result, Value, Values};

/// Which frames are tracked (`propagate_in_video_iterator`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Propagation {
    /// The first frame; where not given, the first one with prompts.
    pub start_frame_idx: Option<usize>,
    /// How many frames are tracked after it; where not given, all.
    pub max_frame_num_to_track: Option<usize>,
    /// Whether frames are tracked backwards.
    pub reverse: bool,
    /// Whether nothing is tracked afterwards: memory that the frames to come do not attend to is then dropped as tracking goes on. Else
    /// all is kept, since objects may be corrected in any frame.
    pub is_last: bool,
}

/// A video whose objects are tracked: it knows their prompts, and what was found of them.
///
/// ```no_run
/// # fn example<A: weft::AnyModel>(tracker: &weft::tasks::ObjectTracking<A>) -> weft::Result<()> {
/// use weft::tasks::{FramePrompts, MaskPrompt, Propagation, TrackingOptions};
/// use weft::video::Video;
///
/// let video = Video::open("clip.gif")?;
/// let mut session = tracker.session(&video, &TrackingOptions::default())?;
/// session.add_prompts(&FramePrompts::new(0, 1, MaskPrompt::point([210.0, 350.0])))?;
/// for frame in session.propagate(&Propagation::default())? {
///     println!("{}", frame?.frame_idx);
/// }
/// // Where it went wrong, another point says what the object is, and all frames are tracked again.
/// session.add_prompts(&FramePrompts::new(20, 1, MaskPrompt::point([240.0, 340.0])))?;
/// let frames = session.propagate(&Propagation::default())?.collect::<weft::Result<Vec<_>>>()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TrackingSession<'a, A> {
    tracker: &'a ObjectTracking<A>,
    /// Its frames; none where they come one by one.
    video: Option<&'a Video>,
    options: TrackingOptions,
    /// The video's size, once a frame is known.
    size: Option<Pixels>,
    /// How many frames have come, one by one.
    pushed: usize,
    /// The frame looked at last.
    current: Option<Looked>,
    objects: Vec<TrackedObject>,
}

/// A frame that is looked at.
#[derive(Debug)]
struct Looked {
    frame: usize,
    /// The edge of frames as the model takes them.
    edge: usize,
    /// What the model makes of it once for all objects.
    features: Values,
}

/// What is to be done for an object in a frame.
struct Step {
    object: usize,
    is_first: bool,
    reverse: bool,
    prompt: Option<Prompt>,
}

/// What a prompt gives the model.
enum Prompt {
    Points(Points),
    Mask(Value),
}

impl<'a, A: AnyModel> TrackingSession<'a, A> {
    pub(super) fn new(
        tracker: &'a ObjectTracking<A>,
        video: Option<&'a Video>,
        options: TrackingOptions,
    ) -> Result<Self> {
        let mut session =
            Self { tracker, video, options, size: None, pushed: 0, current: None, objects: vec![] };
        for frame in video.map(Video::frames).unwrap_or_default() {
            session.sized(frame)?;
        }
        Ok(session)
    }

    /// The numbers of its objects, in the order in which they were first prompted.
    pub fn object_ids(&self) -> Vec<i64> {
        self.objects.iter().map(|object| object.object_id).collect()
    }

    /// The number of frames; of a video whose frames come one by one, of those that came.
    pub fn num_frames(&self) -> usize {
        self.video.map_or(self.pushed, |video| video.frames().len())
    }

    /// Forgets all objects (`reset_inference_session`).
    pub fn reset(&mut self) {
        self.objects.clear();
    }

    /// Adds prompts, and gives what the frame then shows of all objects, those without new prompts tracked into it
    /// (`add_inputs_to_inference_session` and `forward`).
    ///
    /// Prompts of a frame in which the object has not been tracked yet are what it is tracked by from there on; in others they correct what
    /// was found, beside what is remembered of it.
    ///
    /// # Errors
    /// When there is no such frame, prompts say nothing, or the model fails.
    pub fn add_prompts(&mut self, prompts: &FramePrompts) -> Result<TrackedFrame> {
        let frame = prompts.frame_idx;
        let Some(image) = self.video.and_then(|video| video.frames().get(frame)) else {
            let (problem, help) = match self.video {
                Some(_) => (
                    format!("is {frame}, but the video has {} frames", self.num_frames()),
                    "count frames from 0",
                ),
                None => (
                    "is of a video whose frames come one by one".to_owned(),
                    "give prompts to `push`, with their frame",
                ),
            };
            return Err(Error::input("frame_idx", problem, help));
        };
        prompts.check()?;
        self.look_at(frame, image)?;
        self.prompted(prompts, false)
    }

    /// Tracks objects from one frame to the next, each as the iterator gets to it; to drop it is to end tracking.
    ///
    /// # Errors
    /// When no object has been prompted, or there is no such frame.
    pub fn propagate(&mut self, propagation: &Propagation) -> Result<TrackedFrames<'_, 'a, A>> {
        let Some(video) = self.video else {
            let problem = "has only the frames that came one by one";
            return Err(Error::input("video", problem, "open a session on a whole video to go through it"));
        };
        let first =
            self.objects.iter().flat_map(TrackedObject::conditioning_frames).min().ok_or_else(no_prompts)?;
        let start = propagation.start_frame_idx.unwrap_or(first);
        let count = video.frames().len();
        if start >= count {
            let problem = format!("is {start}, but the video has {count} frames");
            return Err(Error::input("start_frame_idx", problem, "count frames from 0"));
        }
        let most = propagation.max_frame_num_to_track.unwrap_or(count);
        let frames: Vec<usize> = match propagation.reverse {
            false => (start..=start.saturating_add(most).min(count - 1)).collect(),
            // As in the reference, there is nothing before the first frame to go back to.
            true if start == 0 => vec![],
            true => (start.saturating_sub(most)..=start).rev().collect(),
        };
        Ok(TrackedFrames { session: self, frames: frames.into_iter(), propagation: *propagation })
    }

    /// Takes the next frame of a video whose frames come one by one, and gives what it shows of all objects; `objects` may be prompted
    /// in it.
    ///
    /// Of memory no more is kept than the frames that follow attend to.
    ///
    /// # Errors
    /// When there is no object, the frame has another size than those before it, the session is on a whole video, or the model fails.
    pub fn push(&mut self, image: &Image, objects: &[(i64, TrackingPrompt)]) -> Result<TrackedFrame> {
        if self.video.is_some() {
            let help = "open a streaming session, whose frames come one by one";
            return Err(Error::input("frame", "is given to a session on a whole video", help));
        }
        let frame_idx = self.pushed;
        let prompts = FramePrompts { frame_idx, objects: objects.to_vec(), clear_old_inputs: true };
        match objects {
            [] if self.objects.is_empty() => return Err(no_prompts()),
            [] => {}
            _ => prompts.check()?,
        }
        self.look_at(frame_idx, image)?;
        let found = self.prompted(&prompts, true)?;
        self.pushed += 1;
        self.forget(frame_idx, false);
        Ok(found)
    }

    /// Makes features of a frame, unless that was done before.
    fn look_at(&mut self, frame: usize, image: &Image) -> Result<()> {
        if self.current.as_ref().is_some_and(|current| current.frame == frame) {
            return Ok(());
        }
        self.sized(image)?;
        let (values, edge) = self.tracker.frames.process(image, self.video.is_none())?;
        let features = self.tracker.model.run_graph(GraphKind::ImageFeatures, values)?;
        self.current = Some(Looked { frame, edge, features });
        Ok(())
    }

    /// Refuses a frame of another size than the video's.
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

    /// Adds prompts of the frame looked at, and tracks all objects into it.
    fn prompted(&mut self, prompts: &FramePrompts, streaming: bool) -> Result<TrackedFrame> {
        let edge = self.current.as_ref().map(|current| current.edge).unwrap_or_default();
        let (frame, size) = (prompts.frame_idx, self.size.unwrap_or_default());
        let (most, mut given) = (most_points(&prompts.objects), vec![]);
        for (object_id, prompt) in &prompts.objects {
            let prompt = match prompt {
                TrackingPrompt::Mask(mask) => Prompt::Mask(mask_inputs(mask, edge)?.into_dyn().into()),
                TrackingPrompt::Points(points) => Prompt::Points(Points::new(points, size, edge, most)),
            };
            given.push((*object_id, prompt));
        }
        let mut new: Vec<(usize, Prompt)> = vec![];
        for (object_id, prompt) in given {
            let known = self.objects.iter().position(|object| object.object_id == object_id);
            let object = known.unwrap_or(self.objects.len());
            if known.is_none() {
                self.objects.push(TrackedObject::new(object_id));
            }
            let Some(of) = self.objects.get_mut(object) else { continue };
            let earlier = of.points.remove(&frame).filter(|_| !prompts.clear_old_inputs);
            let prompt = match (prompt, earlier) {
                (Prompt::Points(points), earlier) => {
                    let points = earlier.map_or(points.clone(), |earlier| points.after(earlier));
                    of.points.insert(frame, points.clone());
                    Prompt::Points(points)
                }
                (mask, _) => mask,
            };
            new.push((object, prompt));
        }
        self.track(frame, new, false, streaming)
    }

    /// Tracks all objects into the frame looked at (`forward`); `new` are those with prompts that were just given.
    fn track(
        &mut self,
        frame: usize,
        mut new: Vec<(usize, Prompt)>,
        mut reverse: bool,
        streaming: bool,
    ) -> Result<TrackedFrame> {
        let mut steps = vec![];
        for (object, of) in self.objects.iter().enumerate() {
            let prompt = new.iter().position(|(other, _)| *other == object).map(|at| new.swap_remove(at).1);
            if prompt.is_none() && of.conditioned(frame).is_some() {
                continue;
            }
            let is_first = prompt.is_some() && of.is_first(frame);
            // As in the reference, for the objects that follow, too.
            reverse &= !is_first;
            steps.push(Step { object, is_first, reverse, prompt });
        }
        // Where memory of all objects is made at once, one prompt decides for all.
        let is_batched = self.tracker.model.processing().batched_memory;
        let is_prompted = is_batched && steps.iter().any(|step| step.prompt.is_some());
        let mut found: Vec<(Array2<f32>, f32)> = vec![];
        let mut steps = steps.into_iter().peekable();
        for object in 0..self.objects.len() {
            match steps.next_if(|step| step.object == object) {
                Some(step) => found.push(self.step(frame, step, is_prompted, streaming)?),
                None => {
                    let known = self.objects.get(object).and_then(|of| of.conditioned(frame));
                    let known = known.and_then(|known| Some((known.masks.clone()?, known.score)));
                    found.push(known.ok_or_else(no_prompts)?);
                }
            }
        }
        self.answer(frame, found)
    }

    /// Tracks one object: its mask and the logit of its being there.
    fn step(
        &mut self,
        frame: usize,
        step: Step,
        is_prompted: bool,
        streaming: bool,
    ) -> Result<(Array2<f32>, f32)> {
        let (tracker, frames) = (self.tracker, (!streaming).then(|| self.num_frames()));
        let Some(current) = &self.current else { return Err(no_prompts()) };
        let Some(object) = self.objects.get_mut(step.object) else { return Err(no_prompts()) };
        let (limits, mut values) = (&tracker.limits, current.features.clone());
        let processing = tracker.model.processing();
        let is_prompted = is_prompted || step.prompt.is_some();
        let is_mask = matches!(step.prompt, Some(Prompt::Mask(_)));
        if !is_mask && !step.is_first {
            let pad = tracker.model.needs_fixed_shapes();
            object.put(frame, step.reverse, frames, (limits, pad), &mut values)?;
        }
        let mut points = 0;
        match step.prompt {
            Some(Prompt::Points(given)) => {
                points = given.len();
                given.put(&mut values);
            }
            Some(Prompt::Mask(mask)) => _ = values.insert("mask_inputs".to_owned(), mask),
            None => {}
        }
        // A mask stands for itself; the object pointer is that of the best of several.
        let several = is_mask || limits.multimask_output(step.is_first, points);
        for (name, flag) in [("multimask_output", several), ("is_mask_from_pts", is_prompted)] {
            values.insert(name.to_owned(), Array1::from_elem(1, i64::from(flag)).into_dyn().into());
        }
        let outputs = tracker.model.run_graph(GraphKind::Tracking, values)?;
        let (remembered, masks) = Remembered::of(&outputs, step.is_first, processing.bf16_memory)?;
        let score = remembered.score;
        object.keep(frame, remembered, step.is_first);
        Ok((masks, score))
    }

    /// What a frame shows, of mask logits and scores of all objects.
    fn answer(&self, frame_idx: usize, found: Vec<(Array2<f32>, f32)>) -> Result<TrackedFrame> {
        let size = self.size.unwrap_or_default();
        let masks: Vec<&Array2<f32>> = found.iter().map(|(masks, _)| masks).collect();
        let logits = video_logits(&masks, size, self.options.apply_non_overlapping_constraints)?;
        let masks: Vec<Mask> = logits
            .outer_iter()
            .map(|logits| Mask::new(logits.mapv(|logit| logit > self.options.mask_threshold)))
            .collect();
        let all = self.objects.iter().zip(found).zip(masks);
        let objects = all.map(|((object, (pred_masks, object_score_logits)), mask)| TrackedMask {
            object_id: object.object_id,
            object_score_logits,
            mask,
            pred_masks,
        });
        Ok(TrackedFrame { frame_idx, objects: objects.collect() })
    }

    fn forget(&mut self, frame: usize, reverse: bool) {
        for object in &mut self.objects {
            object.forget(frame, reverse, &self.tracker.limits);
        }
    }
}

/// The frames of a session, tracked one after the other as they are asked for.
#[derive(Debug)]
pub struct TrackedFrames<'s, 'a, A> {
    session: &'s mut TrackingSession<'a, A>,
    frames: std::vec::IntoIter<usize>,
    propagation: Propagation,
}

impl<A: AnyModel> TrackedFrames<'_, '_, A> {
    fn tracked(&mut self, frame: usize) -> Result<TrackedFrame> {
        let session = &mut *self.session;
        if let Some(image) = session.video.and_then(|video| video.frames().get(frame)) {
            session.look_at(frame, image)?;
        }
        let found = session.track(frame, vec![], self.propagation.reverse, false)?;
        if self.propagation.is_last {
            session.forget(frame, self.propagation.reverse);
        }
        Ok(found)
    }
}

impl<A: AnyModel> Iterator for TrackedFrames<'_, '_, A> {
    type Item = Result<TrackedFrame>;

    fn next(&mut self) -> Option<Self::Item> {
        let frame = self.frames.next()?;
        let found = self.tracked(frame);
        if found.is_err() {
            self.frames = vec![].into_iter();
        }
        Some(found)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.frames.size_hint()
    }
}

impl<A: AnyModel> ExactSizeIterator for TrackedFrames<'_, '_, A> {}
