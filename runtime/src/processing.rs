//! What pipelines know of a model that neither its graph nor its checkpoints say.

use serde::{Deserialize, Serialize};

/// How pipelines prepare what a model reads, and read what it gives: `processing` of its spec.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Processing {
    /// Whether texts are lowercased before they are tokenized.
    pub do_lower_case: bool,
    /// The length that all texts are padded and truncated to (`padding="max_length"`).
    pub max_length: Option<usize>,
    /// What makes scores of the logits that compare images or sounds with texts; softmax where not given.
    pub function_to_apply: Option<ScoreFunction>,
    /// Whether memory of a video's frames (`maskmem_features`) is rounded to bfloat16 before other frames attend to it.
    pub bf16_memory: bool,
    /// Whether memory of all objects of a video's frame is made in one batch, where a prompt of one says for all that masks have
    /// sharp edges (`is_mask_from_pts`).
    pub batched_memory: bool,
}

/// How logits become scores (`function_to_apply`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScoreFunction {
    /// Each label for itself: `1 / (1 + e⁻ˣ)`.
    Sigmoid,
    /// Labels exclude each other: `eˣ / Σ eˣ`.
    Softmax,
    /// The logits as they are.
    None,
}
