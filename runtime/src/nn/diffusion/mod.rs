//! Blocks of diffusion models, as `diffusers` has them: residual blocks, resampling, spatial transformers, timestep embeddings.

mod autoencoder;
mod blocks;
mod resample;
mod resnet;
mod timesteps;
mod transformer;
mod unet;

pub use autoencoder::{AutoencoderBlocks, spatial_attention};
pub use blocks::{per_block, same_lengths};
pub use resample::{Downsample2d, upsample_2d};
pub use resnet::ResnetBlock2d;
pub use timesteps::{Timesteps, timestep_embedding};
pub use transformer::{SpatialTransformer, geglu_feed_forward};
pub use unet::UnetBlock;
