//! Blocks of diffusion models, as `diffusers` has them: residual blocks, resampling, spatial and
//! multimodal transformers, timestep embeddings.

mod adaptive_norm;
mod autoencoder;
mod blocks;
mod joint_attention;
mod patches;
mod resample;
mod resnet;
mod timesteps;
mod transformer;
mod unet;

pub use adaptive_norm::{
    ada_layer_norm_continuous, gated_residual, modulate, modulated_norm, modulation, modulation_parts,
};
pub use autoencoder::{AutoencoderBlocks, spatial_attention};
pub use blocks::{per_block, same_lengths};
pub use joint_attention::{JointAttention, axial_rotary, plain_feed_forward};
pub use patches::{LatentPatches, center_crop, unpatchify};
pub use resample::{Downsample2d, upsample_2d};
pub use resnet::ResnetBlock2d;
pub use timesteps::{Timesteps, timestep_embedding};
pub use transformer::{SpatialTransformer, geglu_feed_forward};
pub use unet::UnetBlock;
