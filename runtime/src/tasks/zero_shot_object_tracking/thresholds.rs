//! When a detection is an object, and when it is one that is followed already, as `config.json` says.

use serde::Deserialize;
use serde_json::Value as Json;

use crate::hub::Checkpoint;
use crate::{Error, Result};

/// The fields of `Sam3VideoConfig` that its session reads.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Thresholds {
    pub(super) score_threshold_detection: f32,
    pub(super) det_nms_thresh: f32,
    pub(super) assoc_iou_thresh: f32,
    pub(super) trk_assoc_iou_thresh: f32,
    pub(super) new_det_thresh: f32,
    pub(super) recondition_on_trk_masks: bool,
    pub(super) hotstart_delay: usize,
    pub(super) hotstart_unmatch_thresh: usize,
    pub(super) hotstart_dup_thresh: usize,
    pub(super) suppress_unmatched_only_within_hotstart: bool,
    pub(super) init_trk_keep_alive: i64,
    pub(super) max_trk_keep_alive: i64,
    pub(super) min_trk_keep_alive: i64,
    pub(super) suppress_overlapping_based_on_recent_occlusion_threshold: f32,
    pub(super) decrease_trk_keep_alive_for_empty_masklets: bool,
    pub(super) fill_hole_area: usize,
    pub(super) max_num_objects: usize,
    pub(super) recondition_every_nth_frame: usize,
    pub(super) high_conf_thresh: f32,
    pub(super) high_iou_thresh: f32,
}

impl Thresholds {
    pub(super) fn of(config: &Json, checkpoint: &Checkpoint) -> Result<Self> {
        let refused =
            |problem: String, help: &str| Error::config(checkpoint.dir().join("config.json"), problem, help);
        let read: Self = serde_json::from_value(config.clone()).map_err(|e| {
            refused(e.to_string(), "open a checkpoint of a model that detects and tracks objects")
        })?;
        // As `Sam3VideoConfig.validate_architecture`.
        let of = [
            ("hotstart_unmatch_thresh", read.hotstart_unmatch_thresh),
            ("hotstart_dup_thresh", read.hotstart_dup_thresh),
        ];
        for (name, frames) in of {
            if read.hotstart_delay > 0 && frames > read.hotstart_delay {
                let problem = format!("`{name}` is {frames}, but `hotstart_delay` {}", read.hotstart_delay);
                return Err(refused(problem, "give it at most as many frames as answers wait"));
            }
        }
        Ok(read)
    }
}
