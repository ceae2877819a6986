//! Which detections of a frame are of objects that are followed, and which objects are dropped after a few frames.

use std::collections::{BTreeMap, BTreeSet};

use ndarray::Array2;

use super::masks::{is_nonempty, mask_iou};
use super::thresholds::Thresholds;

/// What a text names in a frame.
#[derive(Clone, Debug)]
pub(super) struct Detected {
    pub(super) text: usize,
    pub(super) score: f32,
    /// Logits, `[rows, columns]`.
    pub(super) mask: Array2<f32>,
}

/// An object that is followed, in a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Followed<'a> {
    pub(super) object_id: i64,
    pub(super) text: usize,
    pub(super) mask: &'a Array2<f32>,
}

/// Which detections and objects go together (`_associate_det_trk`).
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Association {
    /// Detections of no object.
    pub(super) new: Vec<usize>,
    /// Objects that are in the frame without a detection.
    pub(super) unmatched: Vec<i64>,
    /// The objects of each detection.
    pub(super) matched: Vec<Vec<i64>>,
    /// The sure detection of an object that overlaps it most.
    pub(super) sure: BTreeMap<i64, usize>,
    /// Objects that are not in the frame.
    pub(super) empty: Vec<i64>,
}

impl Association {
    pub(super) fn of(detected: &[Detected], followed: &[Followed<'_>], thresholds: &Thresholds) -> Self {
        if followed.is_empty() {
            return Self { new: (0..detected.len()).collect(), ..Self::default() };
        }
        let overlap = |found: &Detected, object: &Followed<'_>| match found.text == object.text {
            true => mask_iou(&found.mask, object.mask),
            false => 0.0,
        };
        let overlaps: Vec<Vec<f32>> = detected
            .iter()
            .map(|found| followed.iter().map(|object| overlap(found, object)).collect())
            .collect();
        let mut association = Self::default();
        for (index, object) in followed.iter().enumerate() {
            let is_matched = overlaps.iter().any(|of| of[index] >= thresholds.trk_assoc_iou_thresh);
            match is_nonempty(object.mask) {
                false => association.empty.push(object.object_id),
                true if !is_matched => association.unmatched.push(object.object_id),
                true => {}
            }
        }
        for (index, (found, of)) in detected.iter().zip(&overlaps).enumerate() {
            let objects =
                followed.iter().zip(of).filter(|(_, overlap)| **overlap >= thresholds.assoc_iou_thresh);
            let objects: Vec<i64> = objects.map(|(object, _)| object.object_id).collect();
            let is_new = found.score >= thresholds.new_det_thresh && objects.is_empty();
            let best = (0..of.len()).fold(0, |best, other| if of[other] > of[best] { other } else { best });
            let is_sure =
                found.score >= thresholds.high_conf_thresh && of[best] >= thresholds.high_iou_thresh;
            if is_new {
                association.new.push(index);
            } else if is_sure {
                association.sure.insert(followed[best].object_id, index);
            }
            association.matched.push(objects);
        }
        association
    }

    /// Keeps no more new detections than these, the surest (`max_num_objects`).
    pub(super) fn keep_surest(&mut self, most: usize, detected: &[Detected]) {
        if self.new.len() > most {
            self.new.sort_by(|one, other| detected[*other].score.total_cmp(&detected[*one].score));
            self.new.truncate(most);
        }
    }
}

/// What is known of objects from frames before (`_process_hotstart`).
#[derive(Clone, Debug, Default)]
pub(super) struct Hotstart {
    /// The frame in which an object was found first.
    first_frame: BTreeMap<i64, usize>,
    /// In how many frames it was without a detection.
    unmatched: BTreeMap<i64, usize>,
    /// For how many more it may be.
    keep_alive: BTreeMap<i64, i64>,
    /// In how many frames an object and one that was found later had one detection.
    overlaps: BTreeMap<(i64, i64), usize>,
    /// Objects that were dropped.
    pub(super) removed: BTreeSet<i64>,
}

/// The frame that is looked at, and whether it follows those before it in time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) index: usize,
    pub(super) reverse: bool,
    /// Whether frames come one by one, so that answers cannot wait.
    pub(super) streaming: bool,
}

impl Hotstart {
    /// Objects that are dropped in this frame, and those that are hidden in it; `new` are the objects of new detections.
    pub(super) fn process(
        &mut self,
        frame: Frame,
        association: &Association,
        new: &[i64],
        thresholds: &Thresholds,
    ) -> [BTreeSet<i64>; 2] {
        for object in new {
            self.first_frame.entry(*object).or_insert(frame.index);
            self.keep_alive.insert(*object, thresholds.init_trk_keep_alive);
        }
        let matched: BTreeSet<i64> = association.matched.iter().flatten().copied().collect();
        for object in &matched {
            let left = self.keep_alive.entry(*object).or_default();
            *left = (*left + 1).min(thresholds.max_trk_keep_alive);
        }
        let mut fewer = |object: &i64| {
            let left = self.keep_alive.entry(*object).or_default();
            *left = (*left - 1).max(thresholds.min_trk_keep_alive);
        };
        association.unmatched.iter().for_each(&mut fewer);
        if thresholds.decrease_trk_keep_alive_for_empty_masklets {
            association.empty.iter().for_each(&mut fewer);
        }
        for object in &association.unmatched {
            *self.unmatched.entry(*object).or_default() += 1;
        }
        let (mut removed, mut hidden) = (BTreeSet::new(), BTreeSet::new());
        if !frame.streaming {
            for (object, frames) in &self.unmatched {
                if self.removed.contains(object) {
                    continue;
                }
                if *frames >= thresholds.hotstart_unmatch_thresh && self.is_recent(*object, frame, thresholds)
                {
                    removed.insert(*object);
                } else if self.keep_alive.get(object).is_some_and(|left| *left <= 0)
                    && !thresholds.suppress_unmatched_only_within_hotstart
                {
                    hidden.insert(*object);
                }
            }
        }
        for objects in association.matched.iter().filter(|objects| objects.len() > 1) {
            let frame_of = |object: &&i64| self.first_frame.get(*object).copied().unwrap_or_default();
            // Of equal ones the first, as in the reference.
            let first = match frame.reverse {
                false => objects.iter().min_by_key(frame_of),
                true => objects.iter().rev().max_by_key(frame_of),
            };
            for object in objects.iter().filter(|object| Some(*object) != first) {
                let pair = (first.copied().unwrap_or_default(), *object);
                *self.overlaps.entry(pair).or_default() += 1;
            }
        }
        if !frame.streaming {
            for ((_, object), frames) in &self.overlaps {
                if *frames >= thresholds.hotstart_dup_thresh
                    && !self.removed.contains(object)
                    && self.is_recent(*object, frame, thresholds)
                {
                    removed.insert(*object);
                }
            }
        }
        self.removed.extend(&removed);
        [removed, hidden]
    }

    /// Whether an object was found so lately that answers of its first frame still wait.
    fn is_recent(&self, object: i64, frame: Frame, thresholds: &Thresholds) -> bool {
        let first = self.first_frame.get(&object).copied().unwrap_or_default();
        match frame.reverse {
            false => first + thresholds.hotstart_delay > frame.index,
            true => first < frame.index + thresholds.hotstart_delay,
        }
    }
}

/// Which objects are hidden since another of their text, which was not hidden as lately, overlaps them
/// (`_get_objects_to_suppress_based_on_most_recently_occluded`); `occluded` is the frame in which each was hidden last, -1 for none.
pub(super) fn recently_occluded(
    followed: &[Followed<'_>],
    occluded: &[i64],
    reverse: bool,
    most: f32,
) -> Vec<bool> {
    let mut hidden = vec![false; followed.len()];
    for (one, first) in followed.iter().enumerate() {
        for (other, second) in followed.iter().enumerate().skip(one + 1) {
            if first.text != second.text || mask_iou(first.mask, second.mask) < most {
                continue;
            }
            let later = |a: i64, b: i64| if reverse { a < b } else { a > b };
            hidden[one] |= later(occluded[one], occluded[other]) && occluded[other] > -1;
            hidden[other] |= later(occluded[other], occluded[one]) && occluded[one] > -1;
        }
    }
    hidden
}

#[cfg(test)]
mod tests {
    use ndarray::array;
    use serde_json::json;

    use super::*;

    fn thresholds() -> Thresholds {
        serde_json::from_value(json!({
            "score_threshold_detection": 0.5, "det_nms_thresh": 0.1, "assoc_iou_thresh": 0.4, "trk_assoc_iou_thresh": 0.6,
            "new_det_thresh": 0.7, "recondition_on_trk_masks": true, "hotstart_delay": 3, "hotstart_unmatch_thresh": 2,
            "hotstart_dup_thresh": 2, "suppress_unmatched_only_within_hotstart": false, "init_trk_keep_alive": 1,
            "max_trk_keep_alive": 2, "min_trk_keep_alive": -1, "fill_hole_area": 16, "max_num_objects": 10,
            "suppress_overlapping_based_on_recent_occlusion_threshold": 0.7, "high_conf_thresh": 0.8, "high_iou_thresh": 0.8,
            "decrease_trk_keep_alive_for_empty_masklets": false, "recondition_every_nth_frame": 16,
        }))
        .unwrap()
    }

    fn found(text: usize, score: f32, mask: Array2<f32>) -> Detected {
        Detected { text, score, mask }
    }

    #[test]
    fn detections_go_to_objects_of_their_text_that_they_overlap() {
        let (left, right, empty) =
            (array![[1.0, 1.0, -1.0]], array![[-1.0, 1.0, 1.0]], array![[-1.0, -1.0, -1.0]]);
        let of = |object_id, text, mask| Followed { object_id, text, mask };
        let followed = [of(4, 0, &left), of(5, 0, &right), of(6, 1, &left), of(7, 1, &empty)];
        let detected = [
            found(0, 0.9, array![[1.0, 1.0, -1.0]]),
            found(1, 0.95, array![[-1.0, -1.0, 1.0]]),
            found(1, 0.6, array![[-1.0, -1.0, 1.0]]),
        ];
        let association = Association::of(&detected, &followed, &thresholds());
        let matched = vec![vec![4], vec![], vec![]];
        let (new, unmatched, sure, empty) = (vec![1], vec![5, 6], BTreeMap::from([(4, 0)]), vec![7]);
        assert_eq!(association, Association { new, unmatched, matched, sure, empty });
        let mut first = Association::of(&detected, &[], &thresholds());
        assert_eq!(first.new, [0, 1, 2]);
        first.keep_surest(2, &detected);
        assert_eq!(first.new, [1, 0]);
    }

    #[test]
    fn objects_that_are_not_detected_are_dropped_early_and_hidden_late() {
        let thresholds = thresholds();
        let frame = |index| Frame { index, reverse: false, streaming: false };
        let alone = Association { unmatched: vec![1], ..Association::default() };
        let mut early = Hotstart::default();
        assert_eq!(
            early.process(frame(0), &Association::default(), &[1], &thresholds),
            [const { BTreeSet::new() }; 2]
        );
        assert_eq!(early.process(frame(1), &alone, &[], &thresholds)[0], BTreeSet::new());
        assert_eq!(early.process(frame(2), &alone, &[], &thresholds)[0], BTreeSet::from([1]));
        assert_eq!(early.removed, BTreeSet::from([1]));
        let mut late = Hotstart::default();
        late.process(frame(0), &Association::default(), &[1], &thresholds);
        let [removed, hidden] = late.process(frame(9), &alone, &[], &thresholds);
        assert_eq!((removed, hidden), (BTreeSet::new(), BTreeSet::from([1])));
        let streaming = Frame { streaming: true, ..frame(9) };
        assert_eq!(late.process(streaming, &alone, &[], &thresholds), [const { BTreeSet::new() }; 2]);
    }

    #[test]
    fn the_later_of_two_objects_with_one_detection_is_dropped() {
        let thresholds = thresholds();
        let frame = |index, reverse| Frame { index, reverse, streaming: false };
        let both = Association { matched: vec![vec![2, 1]], ..Association::default() };
        for (reverse, places, dropped) in [(false, [4, 5, 6, 7], 2), (true, [7, 6, 5, 4], 2)] {
            let mut known = Hotstart::default();
            known.process(frame(places[0], reverse), &Association::default(), &[1], &thresholds);
            known.process(frame(places[1], reverse), &Association::default(), &[2], &thresholds);
            assert_eq!(known.process(frame(places[2], reverse), &both, &[], &thresholds)[0], BTreeSet::new());
            let [removed, _] = known.process(frame(places[3], reverse), &both, &[], &thresholds);
            assert_eq!(removed, BTreeSet::from([dropped]), "{reverse}");
        }
    }

    #[test]
    fn objects_that_were_hidden_later_are_hidden_by_others() {
        let mask = array![[1.0, 1.0]];
        let of = |object_id, text| Followed { object_id, text, mask: &mask };
        let followed = [of(1, 0), of(2, 0), of(3, 1)];
        assert_eq!(recently_occluded(&followed, &[7, 3, 5], false, 0.7), [true, false, false]);
        assert_eq!(recently_occluded(&followed, &[7, 3, 5], true, 0.7), [false, true, false]);
        assert_eq!(recently_occluded(&followed, &[7, -1, 5], false, 0.7), [false; 3]);
    }
}
