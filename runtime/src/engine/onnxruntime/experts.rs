//! Linear layers of selected experts: rows are gathered by expert, and only the weights of experts that some row selected are read,
//! where they lie.

mod rows;
#[cfg(test)]
mod tests;
mod transposed;

use std::marker::PhantomData;

use half::{bf16, f16};
use ort::operator::{ComputeContext, Kernel, KernelContext, Operator, OperatorInput, OperatorOutput};
use ort::value::{TensorElementType, ValueRef};

use super::linear_quantized::Blocks as CodeBlocks;
use super::matmul::{self, Matmul};
use super::operators::{FEW, IN_BF16, computes_in_bf16};
use super::product::Product;
use super::quantized::{self, Weight, Zeros};
use super::stored::Stored;
use crate::graph::Dtype;
use rows::Rows;
use transposed::Transposed;

/// The weights' place among the operands.
const WEIGHTS: usize = 2;

/// The attribute of experts that are found by their places: of each its stretch, and the first of its elements there.
pub(super) const PLACES: &str = "places";
/// The attribute of the two lengths of each expert's weight, where they are found by their places.
pub(super) const LENGTHS: &str = "lengths";

/// Where the weights of experts are in stretches of files, which are the operands behind the first two.
struct Places {
    experts: Vec<[usize; 2]>,
    lengths: [usize; 2],
}

impl Places {
    fn of(context: &KernelContext<'_>) -> ort::Result<Option<Self>> {
        let given = |name| {
            let numbers = context.get::<Vec<i64>>(name)?;
            numbers.into_iter().map(|n| usize::try_from(n).ok()).collect::<Option<Vec<_>>>()
        };
        let Some(experts) = given(PLACES) else { return Ok(None) };
        let Some(&[first, second]) = given(LENGTHS).as_deref() else {
            return Err(ort::Error::new("places of experts come with the lengths of a weight"));
        };
        Ok(Some(Self { experts: experts.as_chunks().0.to_vec(), lengths: [first, second] }))
    }

    /// The operand that holds an expert; none there is where it is beyond the last.
    fn operand(&self, expert: usize) -> usize {
        self.experts.get(expert).map_or(usize::MAX, |[stretch, _]| WEIGHTS + stretch)
    }
}

/// Rows of x by the weights of the experts that they select: x `[rows, selected, in]` or `[rows, 1, in]`, indices
/// `[rows, selected]`, then for each expert `[out, in]`, or for all `[experts, out, in]`, or stretches of files that hold them;
/// `[rows, selected, out]`.
#[derive(Default)]
pub(super) struct ExpertLinear<W> {
    places: Option<Places>,
    transposed: bool,
    in_bf16: bool,
    stored: PhantomData<W>,
}

impl<W: Stored> Operator for ExpertLinear<W> {
    type Kernel<'attr> = Self;

    fn name(&self) -> &str {
        match W::DTYPE {
            Dtype::Bf16 => "ExpertLinearBf16",
            Dtype::F16 => "ExpertLinearF16",
            _ => "ExpertLinearF32",
        }
    }

    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        [
            OperatorInput::required(TensorElementType::Float32),
            OperatorInput::required(TensorElementType::Int64),
            OperatorInput::variadic(1).homogenous(W::into_tensor_element_type()),
        ]
    }

    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        [OperatorOutput::required(TensorElementType::Float32)]
    }

    fn create_kernel<'attr>(&self, context: &KernelContext<'attr>) -> ort::Result<Self> {
        let is = |name| context.get::<i64>(name) == Some(1);
        let places = Places::of(context)?;
        Ok(Self { places, transposed: is("transposed"), in_bf16: is(IN_BF16), stored: PhantomData })
    }
}

impl<W: Stored> Kernel for ExpertLinear<W> {
    fn compute(&mut self, context: &ComputeContext) -> ort::Result<()> {
        let rows = Rows::of(context)?;
        let count = context.num_inputs()? - WEIGHTS;
        let values = used(context, &rows, |expert| match &self.places {
            Some(places) => places.operand(expert),
            None if count == 1 => WEIGHTS,
            None => WEIGHTS + expert,
        })?;
        let mut weights = vec![];
        for (value, group) in values.iter().zip(&rows.groups) {
            let (shape, all) = value.try_extract_tensor::<W>()?;
            let (start, [first, second]) = match &self.places {
                Some(places) => (places.experts[group.expert][1], places.lengths),
                None => {
                    let [experts @ .., first, second] = &shape[..] else { return Err(misfit()) };
                    let lengths = [first, second].map(|length| length.unsigned_abs() as usize);
                    let index = if experts.is_empty() { 0 } else { group.expert };
                    (index * lengths[0] * lengths[1], lengths)
                }
            };
            let (out, width) = if self.transposed { (second, first) } else { (first, second) };
            let weight = all.get(start..).and_then(|rest| rest.get(..out * width));
            weights.push((out, weight.filter(|_| width == rows.width).ok_or_else(misfit)?));
        }
        let out = match (weights.first(), &self.places) {
            (Some((out, _)), _) => *out,
            (None, Some(places)) => places.lengths[usize::from(self.transposed)],
            (None, None) => out_of(context, self.transposed)?,
        };
        let (x, mut result) = (rows.gathered(), vec![0.0; rows.count() * out]);
        let in_bf16 = self.in_bf16 && computes_in_bf16();
        let mut narrow = vec![bf16::ZERO; if in_bf16 { x.len() } else { 0 }];
        f32::narrow(&x[..narrow.len()], &mut narrow);
        let none = || ort::Error::new("there is no kernel for the products of experts");
        let mut rest = result.as_mut_slice();
        let mut products = vec![];
        for ((_, weight), group) in weights.into_iter().zip(&rows.groups) {
            let (mine, others) = rest.split_at_mut(group.rows.len() * out);
            rest = others;
            let range = group.first * rows.width..(group.first + group.rows.len()) * rows.width;
            let x = &x[range.clone()];
            products.push(match group.rows.len() {
                _ if self.transposed => Job::Transposed(Transposed::new(x, weight, rows.width, mine)),
                0..=FEW => Job::Few(Product::new(x, weight, None, rows.width, mine)),
                count if in_bf16 => {
                    let kernel = matmul::kernel(count).ok_or_else(none)?;
                    Job::Narrow(Matmul::new(kernel, &narrow[range], weight, None, mine, rows.width))
                }
                count => {
                    let kernel = matmul::kernel(count).ok_or_else(none)?;
                    Job::Many(Matmul::new(kernel, x, weight, None, mine, rows.width))
                }
            });
        }
        run(context, &products)?;
        drop(products);
        rows.scatter(context, &result, out)
    }
}

/// The same with quantized weights, which are for each expert, or for all one after the other, codes, scales, and zero points,
/// offsets or outer scales where there are any.
#[derive(Default)]
pub(super) struct ExpertLinearQuantized<S> {
    blocks: CodeBlocks,
    zero_points: bool,
    offsets: bool,
    outer: bool,
    /// How many experts one weight holds.
    batch: Option<usize>,
    scales: PhantomData<S>,
}

impl<S: Stored> Operator for ExpertLinearQuantized<S> {
    type Kernel<'attr> = Self;

    fn name(&self) -> &str {
        match S::DTYPE {
            Dtype::Bf16 => "ExpertLinearQuantizedBf16",
            Dtype::F16 => "ExpertLinearQuantizedF16",
            Dtype::U8 => "ExpertLinearQuantizedE8m0",
            _ => "ExpertLinearQuantizedF32",
        }
    }

    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        [
            OperatorInput::required(TensorElementType::Float32),
            OperatorInput::required(TensorElementType::Int64),
            OperatorInput::variadic(1),
        ]
    }

    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        [OperatorOutput::required(TensorElementType::Float32)]
    }

    fn create_kernel<'attr>(&self, context: &KernelContext<'attr>) -> ort::Result<Self> {
        let of = |name| context.get::<i64>(name).and_then(|value| usize::try_from(value).ok());
        let (zero_points, offsets) = (of("zero_points") == Some(1), of("offsets") == Some(1));
        let batch = of("batch").filter(|experts| *experts > 0);
        let outer = of("outer") == Some(1);
        Ok(Self { blocks: CodeBlocks::of(context)?, zero_points, offsets, outer, batch, scales: PhantomData })
    }
}

impl<S: Stored> Kernel for ExpertLinearQuantized<S> {
    fn compute(&mut self, context: &ComputeContext) -> ort::Result<()> {
        let rows = Rows::of(context)?;
        let parts = 2 + usize::from(self.zero_points) + usize::from(self.offsets) + usize::from(self.outer);
        let experts = self.batch.unwrap_or(1);
        let part = |place: usize| {
            used(context, &rows, |expert| match self.batch {
                Some(experts) if expert < experts => WEIGHTS + place,
                Some(_) => usize::MAX,
                None => WEIGHTS + expert * parts + place,
            })
        };
        let (codes, scales) = (part(0)?, part(1)?);
        let zeros = if parts > 2 { part(2)? } else { vec![] };
        let shape = codes.first().map(|codes| codes.try_extract_tensor::<u8>()).transpose()?;
        let out = match shape {
            Some((shape, _)) => shape.first().map_or(0, |out| out.unsigned_abs() as usize),
            // Codes have an axis of blocks.
            None => {
                let codes = context.input(WEIGHTS)?.ok_or_else(misfit)?;
                codes.shape().first().map_or(0, |out| out.unsigned_abs() as usize)
            }
        };
        let out = out / experts;
        let (x, mut result) = (rows.gathered(), vec![0.0; rows.count() * out]);
        let mut rest = result.as_mut_slice();
        let mut products = vec![];
        for (place, group) in rows.groups.iter().enumerate() {
            let expert = if self.batch.is_some() { group.expert } else { 0 };
            let codes = one_of(codes[place].try_extract_tensor::<u8>()?.1, expert, experts);
            let scales = one_of(scales[place].try_extract_tensor::<S>()?.1, expert, experts);
            let CodeBlocks { bits, group: codes_of_scale, codebook } = self.blocks;
            let outer = match zeros.get(place).filter(|_| self.outer) {
                Some(outer) => Some(one_of(outer.try_extract_tensor::<f16>()?.1, expert, experts)),
                None => None,
            };
            let zeros = match (codebook, zeros.get(place)) {
                (Some(book), _) => Zeros::Codebook(book),
                (_, Some(zeros)) if self.zero_points => {
                    Zeros::Codes(one_of(zeros.try_extract_tensor::<u8>()?.1, expert, experts))
                }
                (_, Some(offsets)) => {
                    Zeros::Offsets(one_of(offsets.try_extract_tensor::<f32>()?.1, expert, experts))
                }
                (_, None) => Zeros::Middle,
            };
            let weight =
                Weight { codes, scales, outer, zeros, width: rows.width, bits, group: codes_of_scale };
            if !weight.holds(out) {
                return Err(misfit());
            }
            let (mine, others) = rest.split_at_mut(group.rows.len() * out);
            rest = others;
            let x = &x[group.first * rows.width..(group.first + group.rows.len()) * rows.width];
            products.push(quantized::Product::new(x, weight, None, mine, |rows, round| match rows {
                0..=FEW => {
                    (0..rows).for_each(round);
                    Ok(())
                }
                _ => context.par_for(rows, rows, round),
            })?);
        }
        run(context, &products)?;
        drop(products);
        rows.scatter(context, &result, out)
    }
}

/// One of so many parts of the same length.
fn one_of<T>(all: &[T], index: usize, count: usize) -> &[T] {
    let length = all.len() / count;
    &all[index * length..][..length]
}

/// A product that is cut into blocks, which threads take in any order.
trait Blocks: Sync {
    fn blocks(&self) -> usize;
    fn compute(&self, block: usize);
}

/// The product of the rows of one expert.
enum Job<'a, W> {
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

impl<S: Stored> Blocks for quantized::Product<'_, S> {
    fn blocks(&self) -> usize {
        self.blocks()
    }

    fn compute(&self, block: usize) {
        self.compute(block);
    }
}

/// Computes all blocks of all products, on all threads.
fn run(context: &ComputeContext, products: &[impl Blocks]) -> ort::Result<()> {
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

/// An operand of each expert that some row selected, by the place that it has.
fn used<'a>(
    context: &'a ComputeContext,
    rows: &Rows,
    place: impl Fn(usize) -> usize,
) -> ort::Result<Vec<ValueRef<'a>>> {
    let count = context.num_inputs()?;
    let operand = |expert: usize| {
        let place = place(expert);
        if place >= count {
            return Err(ort::Error::new(format!("expert {expert} was selected, and there is none")));
        }
        context.input(place)?.ok_or_else(misfit)
    };
    rows.groups.iter().map(|group| operand(group.expert)).collect()
}

/// The width of the result where no row selected an expert.
fn out_of(context: &ComputeContext, transposed: bool) -> ort::Result<usize> {
    let weight = context.input(WEIGHTS)?.ok_or_else(misfit)?;
    let shape = weight.shape();
    let place = if transposed { shape.len().checked_sub(1) } else { shape.len().checked_sub(2) };
    Ok(place.map_or(0, |place| shape[place].unsigned_abs() as usize))
}

fn misfit() -> ort::Error {
    ort::Error::new("the weights of an expert do not fit the rows that selected it")
}
