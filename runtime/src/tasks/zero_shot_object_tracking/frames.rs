//! What a session answers: frames one after the other, some later than they are looked at.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ndarray::{Array2, Axis, s};

use super::association::Frame;
use super::masks::apart;
use super::session::ConceptSession;
use super::{ConceptFrame, ConceptObject};
use crate::Result;
use crate::any_model::AnyModel;
use crate::image::Mask;
use crate::tasks::Bounds;
use crate::tasks::object_tracking::video_logits;

/// What a frame shows, before objects are hidden that later frames drop.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) frame_idx: usize,
    /// Logits of objects' masks, `[rows, columns]`.
    pub(super) masks: BTreeMap<i64, Array2<f32>>,
    /// How sure the detector was of objects, and the tracker is of them in this frame.
    pub(super) scores: BTreeMap<i64, f32>,
    pub(super) tracker_scores: BTreeMap<i64, f32>,
    pub(super) hidden: BTreeSet<i64>,
}

impl<A: AnyModel> ConceptSession<'_, A> {
    /// Objects of a frame in the video's size, without those that were dropped since (`postprocess_outputs`).
    pub(super) fn answer(&self, found: Found) -> Result<ConceptFrame> {
        let Found { frame_idx, masks, scores, tracker_scores, hidden } = found;
        let size = self.size.unwrap_or_default();
        let shown = |object: &i64| !hidden.contains(object) && !self.hotstart.removed.contains(object);
        let masks: Vec<(i64, Array2<f32>)> = masks.into_iter().filter(|(object, _)| shown(object)).collect();
        let mut objects = vec![];
        if masks.is_empty() {
            return Ok(ConceptFrame { frame_idx, objects });
        }
        let logits = video_logits(&masks.iter().map(|(_, mask)| mask).collect::<Vec<_>>(), size, false)?;
        let there: Vec<usize> = (0..masks.len())
            .filter(|index| logits.slice(s![*index, .., ..]).iter().any(|logit| *logit > 0.0))
            .collect();
        let whole = logits.select(Axis(0), &there).mapv(|logit| logit > 0.0);
        let ids: Vec<i64> = there.iter().map(|index| masks[*index].0).collect();
        let texts: Vec<usize> =
            ids.iter().map(|object| self.texts.get(object).copied().unwrap_or_default()).collect();
        let mut own = whole.clone();
        if ids.len() > 1 {
            let of_tracker = |object: &i64| tracker_scores.get(object).copied().unwrap_or_default();
            apart(&mut own, &ids.iter().map(of_tracker).collect::<Vec<_>>(), &texts);
        }
        for (index, (object_id, text)) in ids.into_iter().zip(texts).enumerate() {
            let score = scores.get(&object_id).copied().unwrap_or_default();
            let label = self.prompts.get(text).map(|prompt| prompt.label.clone()).unwrap_or_default();
            let bounds = outermost(&whole.index_axis(Axis(0), index).to_owned());
            let mask = Mask::new(own.index_axis(Axis(0), index).to_owned());
            objects.push(ConceptObject { object_id, label, score, bounds, mask });
        }
        Ok(ConceptFrame { frame_idx, objects })
    }
}

/// The frames of a session, tracked as they are asked for.
#[derive(Debug)]
pub struct ConceptFrames<'s, 'a, A> {
    pub(super) session: &'s mut ConceptSession<'a, A>,
    pub(super) frames: std::vec::IntoIter<usize>,
    pub(super) reverse: bool,
    /// Frames that were looked at, whose answers wait.
    pub(super) waiting: VecDeque<Found>,
}

impl<A: AnyModel> ConceptFrames<'_, '_, A> {
    fn answered(&mut self) -> Result<Option<ConceptFrame>> {
        let delay = self.session.tracker.thresholds.hotstart_delay.max(1);
        while self.waiting.len() < delay {
            let Some(index) = self.frames.next() else { break };
            let Some(image) = self.session.video.and_then(|video| video.frames().get(index)) else { break };
            let frame = Frame { index, reverse: self.reverse, streaming: false };
            let found = self.session.looked_at(frame, image)?;
            self.waiting.push_back(found);
        }
        self.waiting.pop_front().map(|found| self.session.answer(found)).transpose()
    }
}

impl<A: AnyModel> Iterator for ConceptFrames<'_, '_, A> {
    type Item = Result<ConceptFrame>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.answered();
        if found.is_err() {
            self.frames = vec![].into_iter();
            self.waiting.clear();
        }
        found.transpose()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.frames.len() + self.waiting.len();
        (left, Some(left))
    }
}

impl<A: AnyModel> ExactSizeIterator for ConceptFrames<'_, '_, A> {}

/// The outermost pixels of a mask (`masks_to_boxes`).
fn outermost(mask: &Array2<bool>) -> Bounds {
    let (mut bounds, mut first) = (Bounds { xmin: 0, ymin: 0, xmax: 0, ymax: 0 }, true);
    for ((y, x), _) in mask.indexed_iter().filter(|(_, inside)| **inside) {
        let (x, y) = (x as i64, y as i64);
        if std::mem::take(&mut first) {
            bounds = Bounds { xmin: x, ymin: y, xmax: x, ymax: y };
        }
        bounds.xmin = bounds.xmin.min(x);
        bounds.xmax = bounds.xmax.max(x);
        bounds.ymax = y;
    }
    bounds
}
