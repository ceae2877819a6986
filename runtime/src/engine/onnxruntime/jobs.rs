//! Products of several weights in one go: threads take blocks of all of them in any order, and meet once.

use std::ops::Range;

use half::bf16;
use ort::operator::ComputeContext;

use super::experts::Transposed;
use super::matmul::{self, Matmul};
use super::operators::FEW;
use super::product::{Product, ResultRows};
use super::quantized;
use super::stored::Stored;

/// A product that is cut into blocks, which threads take in any order.
pub(super) trait Blocks: Sync {
    fn blocks(&self) -> usize;
    fn compute(&self, block: usize);
}

/// Rows of x, which products share.
pub(super) struct Shared<'a> {
    pub x: &'a [f32],
    /// The same in bfloat16, where many rows are multiplied in it; else nothing.
    pub narrow: &'a [bf16],
    pub width: usize,
}

impl<'a> Shared<'a> {
    /// Some of the rows by a weight `[out, width]`, plus `bias` `[out]`, into `result` `[rows, out]`, or rows of it wherever they lie.
    pub fn by<W: Stored>(
        &self,
        rows: Range<usize>,
        weight: &'a [W],
        bias: Option<&'a [f32]>,
        result: impl ResultRows<'a>,
    ) -> ort::Result<Job<'a, W>> {
        let (count, width) = (rows.len(), self.width);
        let elements = rows.start * width..rows.end * width;
        let x = &self.x[elements.clone()];
        if count <= FEW {
            return Ok(Job::Few(Product::new(x, weight, bias, width, result)));
        }
        if let Some(kernel) = matmul::kernel::<W, bf16>(count).filter(|_| !self.narrow.is_empty()) {
            return Ok(Job::Narrow(Matmul::new(kernel, &self.narrow[elements], weight, bias, result, width)));
        }
        let none = || ort::Error::new("there is no kernel for single precision");
        let kernel = matmul::kernel::<W, f32>(count).ok_or_else(none)?;
        Ok(Job::Many(Matmul::new(kernel, x, weight, bias, result, width)))
    }
}

/// A product of rows with a weight.
pub(super) enum Job<'a, W> {
    Few(Product<'a, W>),
    Many(Matmul<'a, W, f32>),
    Narrow(Matmul<'a, W, bf16>),
    Transposed(Transposed<'a, W>),
}

impl<W: Stored> Blocks for Job<'_, W> {
    fn blocks(&self) -> usize {
        match self {
            Self::Few(product) => product.blocks(),
            Self::Many(product) => product.blocks(),
            Self::Narrow(product) => product.blocks(),
            Self::Transposed(product) => product.blocks(),
        }
    }

    fn compute(&self, block: usize) {
        match self {
            Self::Few(product) => product.compute(block),
            Self::Many(product) => product.compute(block),
            Self::Narrow(product) => product.compute(block),
            Self::Transposed(product) => product.compute(block),
        }
    }
}

/// Computes all blocks of all products, on all threads.
pub(super) fn run(context: &ComputeContext, products: &[impl Blocks]) -> ort::Result<()> {
    let blocks: Vec<(usize, usize)> = products
        .iter()
        .enumerate()
        .flat_map(|(place, product)| (0..product.blocks()).map(move |block| (place, block)))
        .collect();
    context.par_for(blocks.len(), blocks.len(), |index| {
        let (place, block) = blocks[index];
        products[place].compute(block);
    })
}

impl<S: Stored> Blocks for quantized::Product<'_, S> {
    fn blocks(&self) -> usize {
        self.blocks()
    }

    fn compute(&self, block: usize) {
        self.compute(block);
    }
}
