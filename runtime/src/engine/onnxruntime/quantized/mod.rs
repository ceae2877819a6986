//! `x · wᵀ` of weights in blocks of 2, 4 or 8 bits, where they lie: x is rounded to 8 bits by blocks, and products are of
//! integers.
//!
//! ONNX Runtime's `MatMulNBits` at its fourth level of accuracy computes the same of a copy in another order.

mod few;
mod many;
mod panel;
mod rounded;
#[cfg(test)]
mod tests;
mod vector;
mod weight;

use std::sync::{Arc, PoisonError};

use super::product::{Slices, slices};
use super::stored::Stored;
use rounded::{Layout, Rounded};
use vector::{Plain, Vector};
pub(super) use weight::{Weight, Zeros};

/// Up to so many rows, reading the weights takes longer than multiplying with them.
const FEW: usize = 8;

/// How many blocks threads take the weights of a product in, where these are not too small or too large.
const BLOCKS: usize = 16;

/// The fewest and the most bytes of codes of a block for few rows.
const FEW_BYTES: [usize; 2] = [32 * 1024, 256 * 1024];

/// Rows of the weight in a block for many rows.
const MANY: usize = 64;

/// A product, cut into blocks of weights that threads take in any order.
pub(super) struct Product<'a, S> {
    x: Arc<Rounded>,
    weight: Weight<'a, S>,
    bias: Option<&'a [f32]>,
    /// Rows of the weight in a block.
    rows: usize,
    blocks: Vec<Slices<'a>>,
    kernel: Kernel<S>,
}

impl<'a, S: Stored> Product<'a, S> {
    /// Of `x` `[rows, width]`, plus `bias` `[out]`, into `result` `[rows, out]`; `each` runs its argument for every number below
    /// its first, on any threads.
    pub(super) fn new<E>(
        x: &[f32],
        weight: Weight<'a, S>,
        bias: Option<&'a [f32]>,
        result: &'a mut [f32],
        each: impl FnOnce(usize, &(dyn Fn(usize) + Sync)) -> Result<(), E>,
    ) -> Result<Self, E> {
        Self::by(fastest(), x, weight, bias, result, each)
    }

    fn by<E>(
        kernels: Kernels<S>,
        x: &[f32],
        weight: Weight<'a, S>,
        bias: Option<&'a [f32]>,
        result: &'a mut [f32],
        each: impl FnOnce(usize, &(dyn Fn(usize) + Sync)) -> Result<(), E>,
    ) -> Result<Self, E> {
        let of_bits = match (weight.codebook(), weight.bits) {
            (Some(_), _) => 3,
            (None, 2) => 0,
            (None, 4) => 1,
            _ => 2,
        };
        let count = x.len().checked_div(weight.width).unwrap_or(0);
        let kernel =
            if count <= FEW { Kernel::Few(kernels.few[of_bits]) } else { Kernel::Many(kernels.many) };
        let x = Rounded::new(x, weight.width, kernel.layout(&weight), weight.middle(), each)?;
        Ok(Self::of(Arc::new(x), kernel, weight, bias, result))
    }

    /// Of the same x, which is rounded once for all; none where this weight's blocks are not as those of the first.
    pub(super) fn beside(
        &self,
        weight: Weight<'a, S>,
        bias: Option<&'a [f32]>,
        result: &'a mut [f32],
    ) -> Option<Self> {
        let of = |weight: &Weight<'a, S>| {
            (weight.width, weight.bits, weight.middle(), weight.codebook(), self.kernel.layout(weight))
        };
        let alike = of(&weight) == of(&self.weight);
        alike.then(|| Self::of(Arc::clone(&self.x), self.kernel, weight, bias, result))
    }

    fn of(
        x: Arc<Rounded>,
        kernel: Kernel<S>,
        weight: Weight<'a, S>,
        bias: Option<&'a [f32]>,
        result: &'a mut [f32],
    ) -> Self {
        let rows = kernel.rows(&weight);
        let blocks = slices(result, weight.out(), rows);
        Self { x, weight, bias, rows, blocks, kernel }
    }

    /// How many blocks there are to compute.
    pub(super) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    pub(super) fn compute(&self, block: usize) {
        let mut slices = self.blocks[block].lock().unwrap_or_else(PoisonError::into_inner);
        let first = block * self.rows;
        match self.kernel {
            Kernel::Few(kernel) => kernel(&self.x, &self.weight, first, &mut slices),
            Kernel::Many(kernels) => many::products(kernels, &self.x, &self.weight, first, &mut slices),
        }
        for slice in slices.iter_mut() {
            let Some(bias) = self.bias else { break };
            slice.iter_mut().zip(&bias[first..]).for_each(|(result, bias)| *result += bias);
        }
    }
}

/// What computes a product.
#[derive(Clone, Copy)]
enum Kernel<S> {
    Few(few::Kernel<S>),
    Many(many::Kernels<S>),
}

impl<S: Stored> Kernel<S> {
    /// How x is rounded for it.
    fn layout(&self, weight: &Weight<'_, S>) -> Layout {
        match self {
            Self::Few(_) => few::layout(weight),
            Self::Many(_) => many::layout(weight),
        }
    }

    /// Rows of a weight in a block.
    fn rows(&self, weight: &Weight<'_, S>) -> usize {
        match self {
            Self::Few(_) => {
                let bytes = (weight.codes.len() / BLOCKS).clamp(FEW_BYTES[0], FEW_BYTES[1]);
                bytes.checked_div(weight.row_bytes()).unwrap_or(1).max(1).next_multiple_of(4)
            }
            Self::Many(_) => MANY,
        }
    }
}

/// The kernels of a processor.
#[derive(Clone, Copy)]
struct Kernels<S> {
    /// For codes of 2, 4 and 8 bits, and for those that are places in a codebook.
    few: [few::Kernel<S>; 4],
    many: many::Kernels<S>,
}

/// The fastest kernels that this processor has.
fn fastest<S: Stored>() -> Kernels<S> {
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        return avx512();
    } else if has_avx2() && std::arch::is_x86_feature_detected!("avxvnni") {
        return avx_vnni();
    } else if has_avx2() {
        return avx2();
    }
    plain()
}

/// Whether this processor has kernels beside the plain ones, which ONNX Runtime's are faster than.
pub(super) fn is_fast() -> bool {
    #[cfg(target_arch = "x86_64")]
    return has_avx2();
    #[cfg(not(target_arch = "x86_64"))]
    false
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has_avx2()
        && has!("avx512f")
        && has!("avx512bw")
        && has!("avx512dq")
        && has!("avx512vl")
        && has!("avx512vnni")
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2") && has!("fma") && has!("f16c")
}

/// Whether codes have scales of this type: kernels for others are not compiled.
struct Scales<S, const BOOK: bool>(std::marker::PhantomData<S>);

impl<S: Stored, const BOOK: bool> Scales<S, BOOK> {
    const FIT: bool = if BOOK { S::OF_PLACES } else { S::OF_NUMBERS };
}

/// Kernels compiled for processors that have these instructions.
macro_rules! kernels {
    ($name:ident, $vector:ty $(, $features:literal)?) => {
        #[allow(unsafe_code)]
        fn $name<S: Stored>() -> Kernels<S> {
            $(#[target_feature(enable = $features)])?
            fn few<S: Stored, const BITS: usize, const BOOK: bool>(
                x: &Rounded,
                weight: &Weight<'_, S>,
                first: usize,
                result: &mut [&mut [f32]],
            ) {
                if Scales::<S, BOOK>::FIT {
                    // SAFETY: it is compiled with the instructions.
                    unsafe { few::products::<$vector, S, BITS, BOOK>(x, weight, first, result) }
                }
            }
            $(#[target_feature(enable = $features)])?
            fn many(x: &Rounded, panel: &panel::Panel, result: &mut [&mut [f32]]) {
                // SAFETY: it is compiled with the instructions.
                unsafe { many::tiles::<$vector>(x, panel, result) }
            }
            $(#[target_feature(enable = $features)])?
            fn unpack<S: Stored>(
                panel: &mut panel::Panel,
                weight: &Weight<'_, S>,
                first: usize,
                there: usize,
            ) {
                // SAFETY: it is compiled with the instructions.
                unsafe { panel::unpack::<$vector, S>(panel, weight, first, there) }
            }
            // SAFETY: only handed out where the processor has the instructions.
            #[allow(unused_unsafe)]
            Kernels {
                few: [
                    |x, weight, first, result| unsafe { few::<S, 2, false>(x, weight, first, result) },
                    |x, weight, first, result| unsafe { few::<S, 4, false>(x, weight, first, result) },
                    |x, weight, first, result| unsafe { few::<S, 8, false>(x, weight, first, result) },
                    |x, weight, first, result| unsafe { few::<S, 4, true>(x, weight, first, result) },
                ],
                many: many::Kernels {
                    tiles: |x, panel, result| unsafe { many(x, panel, result) },
                    unpack: |panel, weight, first, there| unsafe { unpack::<S>(panel, weight, first, there) },
                    lanes: <$vector>::LANES,
                },
            }
        }
    };
}

kernels!(plain, Plain);
#[cfg(target_arch = "x86_64")]
kernels!(avx512, vector::x86::Avx512, "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c");
#[cfg(target_arch = "x86_64")]
kernels!(avx_vnni, vector::x86::AvxVnni, "avxvnni,avx2,fma,f16c");
#[cfg(target_arch = "x86_64")]
kernels!(avx2, vector::x86::Avx2, "avx2,fma,f16c");
