//! The graphs that a head is run by.

use super::Graph;
use crate::Error;

/// One of the graphs that a head is run by: `forward` in one piece, or the stages of generation with a KV cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GraphKind {
    /// The reference's `forward` in one piece, without a cache.
    #[default]
    Forward,
    /// `forward` of text alone, where the model also takes images.
    TextOnly,
    /// The encoder of an encoder-decoder, run once per generation; its outputs are the keys and values of
    /// cross-attention.
    Encoder,
    /// A decoder's cross-attention weights over given tokens, as word timestamps need them: `alignment_heads` in,
    /// their weights out.
    CrossAttentions,
    /// The first step over a prompt with more than tokens, such as images, which fills the KV cache.
    Prefill,
    /// The next tokens, from the KV cache; the prompt too, where it is tokens alone.
    Decode,
    /// As [`GraphKind::Decode`], with `beam_idx`: the row of the cache that each beam continues (`reorder_cache`).
    BeamDecode,
    /// The text encoder of a diffusion pipeline, whose [`GraphKind::Forward`] is the denoiser: `input_ids` in, out what the
    /// denoiser takes of a text, under its names.
    TextEncoder,
    /// Its second text encoder.
    TextEncoder2,
    /// Its third text encoder.
    TextEncoder3,
    /// The latents of `images`: `mean` and `logvar` of their distribution.
    LatentEncoder,
    /// The images of `latents`: `sample`.
    LatentDecoder,
    /// What follows where keypoints are chosen among those that [`GraphKind::Forward`] scores, as many as there are: it takes
    /// what that gives, and [`Session::run`](crate::Session::run) gives its outputs.
    AtKeypoints,
    /// The features of a video's frame, run once for all objects and texts (`get_image_features`): `pixel_values` in, out what
    /// [`GraphKind::Tracking`] and [`GraphKind::Detection`] take of it, under its names.
    ImageFeatures,
    /// What a text names in a frame (`run_detection`): what [`GraphKind::ImageFeatures`] gave, `input_ids` and `attention_mask` in.
    Detection,
    /// [`GraphKind::Forward`] of each object in a frame (`_run_single_frame_inference`), of what [`GraphKind::ImageFeatures`] gave in
    /// place of `pixel_values`.
    Tracking,
    /// The memory of a frame (`_encode_new_memory`): what [`GraphKind::ImageFeatures`] gave, and masks of objects, in.
    MemoryEncoder,
}

impl GraphKind {
    /// The error of a head that has no such graph.
    pub fn absent(self, g: &Graph) -> Error {
        g.error("GraphKind", format!("the head has no graph {self:?}"))
    }

    /// Whether it is another component of a pipeline than [`GraphKind::Forward`] is, with tensors of its own.
    pub fn is_component(self) -> bool {
        let encodes_text = matches!(self, Self::TextEncoder | Self::TextEncoder2 | Self::TextEncoder3);
        encodes_text || matches!(self, Self::LatentEncoder | Self::LatentDecoder)
    }

    /// Whether it reads and extends a KV cache.
    pub fn is_cached(self) -> bool {
        matches!(self, Self::Prefill | Self::Decode | Self::BeamDecode)
    }
}
