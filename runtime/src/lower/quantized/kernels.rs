//! What each backend's kernels of block-quantized weights take.

use crate::weights::{BlockQuantized, Zeros};
use crate::{Hardware, Result};

/// A backend's kernels of block-quantized weights; what they do not take is brought into a form that they do, where that is
/// exact, and dequantized otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernels {
    /// Bits of codes that `MatMulNBits` takes, in ascending order; none where all weights are dequantized.
    pub linear_bits: &'static [usize],
    /// Bits of codes that `GatherBlockQuantized` takes.
    pub embedding_bits: &'static [usize],
    /// Whether a row may end within a block.
    pub ragged: bool,
    /// The blocks of 2 bits that have a fast kernel, in descending order; the next wider codes stand for others.
    pub two_bit_groups: &'static [usize],
    /// The accuracy that `MatMulNBits` is asked for: 4 lets it round x to 8 bits by blocks, 0 does not.
    pub accuracy_level: i64,
    /// Whether `MatMulNBits` adds a bias.
    pub bias: bool,
    /// How few rows a weight may have.
    pub least_rows: usize,
    /// How many axes x must have.
    pub rank: Option<usize>,
    /// Whether scales may be stored in another type than x: elsewhere they must be constants, not what a cast of one gives.
    pub casts_scales: bool,
    /// Whether the zero points of an embedding's row may end within a byte.
    pub partial_zeros: bool,
    /// Whether scales and zero points have one axis.
    pub flat_scales: bool,
    /// Whether codes may be places in a codebook, and weights a batch of matrices: operators of the runtime's own take them.
    pub codebooks: bool,
    /// Whether convolutions run in 8 bits, which rounds what they are given: by an operator of the runtime's own.
    pub convolutions: bool,
    /// Whether graphs dequantize codes by casts and products, where no operator of blocks runs.
    pub by_casts: bool,
    /// Whether linear layers run by the values of their codes, on x as `MatMulNBits` would round it: what its kernels are
    /// held to.
    pub emulated: bool,
}

/// The groups of all blocks.
const GROUPS: &[usize] = &[256, 128, 64, 32, 16];

impl Kernels {
    /// Those of a backend.
    pub(crate) const fn of(hardware: Hardware) -> Self {
        let all = Self {
            linear_bits: &[2, 4, 8],
            embedding_bits: &[2, 4, 8],
            ragged: true,
            two_bit_groups: GROUPS,
            accuracy_level: 0,
            bias: false,
            least_rows: 1,
            rank: None,
            casts_scales: false,
            partial_zeros: true,
            flat_scales: false,
            codebooks: false,
            convolutions: false,
            by_casts: false,
            emulated: false,
        };
        match hardware {
            // Below level 4, and for other blocks of 2 bits, ONNX Runtime 1.31 dequantizes the whole weight in each run. In a page it
            // has no GatherBlockQuantized (1.30).
            Hardware::Cpu | Hardware::Auto => Self {
                embedding_bits: if cfg!(target_family = "wasm") { &[] } else { all.embedding_bits },
                two_bit_groups: &[128, 64, 32],
                accuracy_level: 4,
                bias: true,
                casts_scales: true,
                ..all
            },
            Hardware::Cuda | Hardware::Webgpu => all,
            // OpenVINO 2026.4 dequantizes ragged rows, and refuses tables with zero points of half a byte.
            Hardware::Openvino => Self { ragged: false, partial_zeros: false, ..all },
            // QNN 2.7 takes x of three axes and no bias, has no GatherBlockQuantized, and gives wrong numbers for one row.
            Hardware::Qnn => Self { embedding_bits: &[], ragged: false, least_rows: 2, rank: Some(3), ..all },
            // MIGraphX has 4 bits.
            Hardware::Rocm => Self { linear_bits: &[4], embedding_bits: &[], flat_scales: true, ..all },
            // On Chromium's CPU device ONNX Runtime Web 1.30 makes `dequantizeLinear` of these operators: of 8 bits it never finishes
            // compiling, and it leaves 4 to another provider.
            Hardware::Webnn => Self { linear_bits: &[8], embedding_bits: &[], by_casts: true, ..all },
            // Core ML's provider has neither operator.
            Hardware::Metal => Self { linear_bits: &[], embedding_bits: &[], ..all },
        }
    }

    /// Whether embeddings are to be quantized: in a page, whose memory is short, they stay as they are stored where none run so.
    pub(crate) fn quantize_embeddings(&self) -> bool {
        !self.embedding_bits.is_empty() || !cfg!(target_family = "wasm")
    }

    /// Whether convolutions are to be quantized: they stay as they are stored where none run so.
    pub(crate) fn quantize_convolutions(&self) -> bool {
        self.convolutions && self.accuracy_level > 0
    }

    /// None of them: everything runs by the values of its codes, on x as they would round it.
    #[must_use]
    pub(crate) fn by_values(self) -> Self {
        match self.accuracy_level {
            0 => Self { linear_bits: &[], embedding_bits: &[], ..self },
            _ => Self { emulated: true, ..self },
        }
    }

    /// The form in which a linear layer's weight runs; none where it must be dequantized.
    pub(super) fn linear(&self, blocks: &BlockQuantized) -> Result<Option<BlockQuantized>> {
        // The runtime's own operators round x.
        let own = self.codebooks && self.accuracy_level > 0 && !self.emulated;
        match (own, &blocks.zeros, blocks.batch) {
            (true, Zeros::Codebook(_), _) => return Ok(Some(blocks.clone())),
            (false, _, Some(_)) => return Ok(None),
            (false, Zeros::Codebook(_), None) => return self.linear(&blocks.looked_up()?),
            _ => {}
        }
        if blocks.shape[0] < self.least_rows {
            return Ok(None);
        }
        let whole = |group: &usize| self.ragged || blocks.shape[1].is_multiple_of(*group);
        let within = |group: &&usize| **group <= blocks.group && whole(group);
        let Some(&group) = GROUPS.iter().find(within) else { return Ok(None) };
        let two_bits = self.two_bit_groups.iter().find(|fast| **fast <= group && whole(fast));
        let (bits, group) = match two_bits {
            Some(&fast) if blocks.bits == 2 && self.linear_bits.contains(&2) => (2, fast),
            _ => match self.linear_bits.iter().find(|&&bits| bits >= wider(blocks.bits)) {
                Some(&bits) => (bits, group),
                None => return Ok(None),
            },
        };
        blocks.regrouped(group)?.widened(bits).map(Some)
    }

    /// The form in which rows of an embedding are looked up; none where it must be dequantized.
    pub(super) fn embedding(&self, blocks: &BlockQuantized) -> Result<Option<BlockQuantized>> {
        if blocks.order.is_some() || blocks.batch.is_some() {
            return Ok(None);
        }
        if matches!(blocks.zeros, Zeros::Codebook(_)) {
            return match self.codebooks {
                true => Ok(Some(blocks.clone())),
                false => self.embedding(&blocks.looked_up()?),
            };
        }
        let partial = |bits: usize| {
            matches!(blocks.zeros, Zeros::Codes(_)) && !(blocks.blocks() * bits).is_multiple_of(8)
        };
        let taken = |bits: &&usize| **bits >= blocks.bits && (self.partial_zeros || !partial(**bits));
        let bits = self.embedding_bits.iter().find(taken);
        bits.map(|&bits| blocks.widened(bits)).transpose()
    }
}

/// The bits to look for where a weight of `bits` has no kernel of its own.
const fn wider(bits: usize) -> usize {
    if bits == 2 { 4 } else { bits }
}
