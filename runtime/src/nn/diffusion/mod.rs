//! Blocks of diffusion models, as `diffusers` has them: residual blocks, resampling, spatial and
//! multimodal transformers, timestep embeddings.

mod adaptive_norm;
mod autoencoder;
mod blocks;
mod joint_attention;
mod linear_attention;
mod patches;
mod resample;
mod resnet;
mod streams;
mod timesteps;
mod transformer;
mod unet;
mod video_frames;
mod video_patches;

pub use adaptive_norm::{
    ada_layer_norm_continuous, gated_residual, modulate, modulated_norm, modulation, modulation_parts,
};
pub use autoencoder::{AutoencoderBlocks, spatial_attention};
pub use blocks::{per_block, same_lengths};
pub use joint_attention::{
    JointAttention, QkNorm, axial_rotary, joint_mask, joint_rotary, plain_feed_forward,
};
pub use linear_attention::{channel_rms_norm, glu_mb_conv, linear_attention_of_heads, relu_linear_attention};
pub use patches::{LatentPatches, center_crop, grid_positions, patchify, sincos_positions, unpatchify};
pub use resample::{Downsample2d, upsample_2d};
pub use resnet::ResnetBlock2d;
pub use streams::{DoubleStream, modulated_feed_forward, single_stream};
pub use timesteps::{Timesteps, embed_timesteps, text_time_embedding, timestep_embedding};
pub use transformer::{SpatialTransformer, glu_feed_forward};
pub use unet::UnetBlock;
pub use video_frames::{batch_to_frames, causal_conv_3d, channel_unit_norm, frames_to_batch};
pub use video_patches::{grid_positions_3d, patchify_3d, unpatchify_3d};
