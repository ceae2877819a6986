//! Depthwise separable convolutions, as configurations list them.

use serde::{Deserialize, Deserializer, Serialize};

use super::ImageSize;

/// A depthwise separable convolution, `[kernel_size, in_channels, out_channels, stride, squeeze_excitation]`; the stride is one
/// number or two, of rows and columns (`block_configs` of `PPLCNetConfig`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "(usize, usize, usize, [usize; 2], bool)")]
pub struct ConvBlock {
    /// The kernel size of the depthwise convolution.
    pub kernel: usize,
    /// Input and output channels.
    pub channels: [usize; 2],
    /// The stride of the depthwise convolution, by rows and columns.
    pub stride: [usize; 2],
    /// Whether squeeze-and-excitation stands between both convolutions.
    pub squeeze_excitation: bool,
}

impl ConvBlock {
    /// One of these.
    pub fn new(kernel: usize, channels: [usize; 2], stride: ImageSize, squeeze_excitation: bool) -> Self {
        Self { kernel, channels, stride: [stride.height, stride.width], squeeze_excitation }
    }
}

impl From<ConvBlock> for (usize, usize, usize, [usize; 2], bool) {
    fn from(block: ConvBlock) -> Self {
        let ConvBlock { kernel, channels: [from, out], stride, squeeze_excitation } = block;
        (kernel, from, out, stride, squeeze_excitation)
    }
}

impl<'de> Deserialize<'de> for ConvBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (kernel, from, out, stride, squeeze_excitation) =
            <(usize, usize, usize, ImageSize, bool)>::deserialize(deserializer)?;
        Ok(Self::new(kernel, [from, out], stride, squeeze_excitation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_are_one_number_or_two() {
        let read = |text: &str| serde_json::from_str::<ConvBlock>(text).map_err(|error| error.to_string());
        let block = read("[3, 16, 32, [2, 1], true]").unwrap();
        assert_eq!(
            (block.kernel, block.channels, block.stride, block.squeeze_excitation),
            (3, [16, 32], [2, 1], true)
        );
        assert_eq!(read("[5, 8, 8, 2, false]").unwrap().stride, [2, 2]);
        assert_eq!(serde_json::to_string(&block).unwrap(), "[3,16,32,[2,1],true]");
        assert!(read("[3, 16, 32, 2]").unwrap_err().contains("invalid length 4"));
    }
}
