//! How much of what was tracked a frame attends to, as `config.json` says.

use serde::Deserialize;
use serde_json::Value as Json;

use crate::hub::Checkpoint;
use crate::{Error, Result};

/// The fields of a tracker's configuration that its session reads, not its graph.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(in crate::tasks) struct Limits {
    /// Of so many frames at most there is memory, with one for those with prompts.
    pub(super) num_maskmem: usize,
    /// Of so many frames at most there are object pointers.
    pub(super) max_object_pointers_in_encoder: usize,
    /// Of so many frames with prompts at most there is memory, -1 for all.
    pub(super) max_cond_frame_num: i64,
    #[serde(default)]
    enable_temporal_pos_encoding_for_object_pointers: bool,
    multimask_output_in_sam: bool,
    multimask_output_for_tracking: bool,
    multimask_min_pt_num: usize,
    multimask_max_pt_num: usize,
}

impl Limits {
    pub(in crate::tasks) fn of(config: &Json, checkpoint: &Checkpoint) -> Result<Self> {
        let limits: Self = serde_json::from_value(config.clone()).map_err(|e| {
            let help = "open a checkpoint of a model that tracks objects";
            Error::config(checkpoint.dir().join("config.json"), e.to_string(), help)
        })?;
        let least = if limits.enable_temporal_pos_encoding_for_object_pointers { 2 } else { 1 };
        if limits.num_maskmem == 0 || limits.max_object_pointers_in_encoder < least {
            let (frames, pointers) = (limits.num_maskmem, limits.max_object_pointers_in_encoder);
            let problem =
                format!("`num_maskmem` is {frames} and `max_object_pointers_in_encoder` {pointers}");
            let help = format!("give 1 and {least} at least, without which there is nothing to track by");
            return Err(Error::config(checkpoint.dir().join("config.json"), problem, help));
        }
        Ok(limits)
    }

    /// Whether the best of several masks is taken (`_use_multimask`), where so many points are given.
    pub(in crate::tasks) fn multimask_output(&self, is_first: bool, points: usize) -> bool {
        self.multimask_output_in_sam
            && (is_first || self.multimask_output_for_tracking)
            && (self.multimask_min_pt_num..=self.multimask_max_pt_num).contains(&points)
    }

    /// The most object pointers of a video of so many frames, or of one whose frames come one by one.
    pub(super) fn object_pointers(&self, frames: Option<usize>) -> usize {
        frames.map_or(self.max_object_pointers_in_encoder, |frames| {
            frames.min(self.max_object_pointers_in_encoder)
        })
    }

    /// How many frames back memory and object pointers of frames without prompts reach.
    pub(super) fn reach(&self) -> [usize; 2] {
        [self.num_maskmem, self.max_object_pointers_in_encoder].map(|most| most.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn limits(over: &Json) -> Result<Limits> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.json"), "{}").unwrap();
        let checkpoint = Checkpoint::open(folder.path().to_str().unwrap()).unwrap();
        let mut config = json!({
            "num_maskmem": 7, "max_object_pointers_in_encoder": 16, "max_cond_frame_num": -1,
            "enable_temporal_pos_encoding_for_object_pointers": true, "multimask_output_in_sam": true,
            "multimask_output_for_tracking": true, "multimask_min_pt_num": 0, "multimask_max_pt_num": 1,
        });
        for (name, value) in over.as_object().unwrap() {
            config[name] = value.clone();
        }
        Limits::of(&config, &checkpoint)
    }

    #[test]
    fn several_masks_are_of_few_points() {
        let usual = limits(&json!({})).unwrap();
        let asked = [(true, 0), (true, 1), (true, 2), (false, 0), (false, 2)];
        let found = asked.map(|(is_first, points)| usual.multimask_output(is_first, points));
        assert_eq!(found, [true, true, false, true, false]);
        let first =
            limits(&json!({"multimask_output_for_tracking": false, "multimask_min_pt_num": 1})).unwrap();
        assert!(first.multimask_output(true, 1) && !first.multimask_output(false, 1));
        assert!(!first.multimask_output(true, 0));
        assert!(!limits(&json!({"multimask_output_in_sam": false})).unwrap().multimask_output(true, 1));
        assert_eq!((usual.object_pointers(Some(6)), usual.object_pointers(None)), (6, 16));
    }

    #[test]
    fn configurations_that_track_nothing_are_refused() {
        let error = limits(&json!({"max_object_pointers_in_encoder": 1})).unwrap_err().to_string();
        assert!(
            error.contains("`max_object_pointers_in_encoder` 1") && error.contains("config.json"),
            "{error}"
        );
        let error = limits(&json!({"num_maskmem": null})).unwrap_err().to_string();
        assert!(error.contains("config.json"), "{error}");
    }
}
