//! Convolutions whose weights stay where they lie: windows of the input are laid side by side, and each block of weights is
//! widened once, or in bfloat16 rounded, and multiplied with all of them.
//!
//! ONNX Runtime would keep such weights in single precision, and a second time in the order in which it reads them.

mod product;
pub(super) mod quantized;
mod windows;
mod winograd;

use std::cell::RefCell;
use std::marker::PhantomData;

use ndarray::ArrayViewD;
use ort::operator::{ComputeContext, Kernel, KernelContext, Operator, OperatorInput, OperatorOutput};
use ort::value::TensorElementType;

use self::product::{Chunk, Epilogue, Multiplied, Product};
use self::windows::{Geometry, Scratch, Windows};
use self::winograd::Winograd;
use super::operators::{IN_BF16, convolution, missing};
use super::panel;
use super::stored::Stored;

/// The attribute that says what the variances of batch normalisation are raised by.
pub(super) const EPSILON: &str = "epsilon";

/// The attribute that says whether numbers below zero become zero behind all else (`Relu`).
pub(super) const RELU: &str = "relu";

/// The attribute that says whether numbers are multiplied with their sigmoid (`Silu`), where nothing is added and they are no
/// rectifier's: of quantized weights.
pub(super) const SILU: &str = "silu";

/// Floating-point numbers that the windows of one chunk take at the most, 8 MB: what processors have as their last cache.
const CHUNK: usize = 2 << 20;

/// The most that a thread keeps of them and of the zeros around an input for the next convolution.
const KEPT: usize = 2 * CHUNK;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// `Conv` with what follows it: `x` `[batch, channels, ..lengths]`, `w` `[out, channels / groups, ..kernel]`, and optionally
/// a bias `[out]`, the scale, shift, mean and variance of batch normalisation, `[out]` each, and what is added to the result
/// (`Add`); `[batch, out, ..positions]`. One to three axes of lengths.
pub(super) struct Convolution<W> {
    attributes: Attributes,
    stored: PhantomData<W>,
}

impl<W> Default for Convolution<W> {
    fn default() -> Self {
        Self { attributes: Attributes::default(), stored: PhantomData }
    }
}

/// How windows lie, and what becomes of sums.
#[derive(Default)]
struct Attributes {
    kernel: Vec<i64>,
    strides: Vec<i64>,
    pads: Vec<i64>,
    dilations: Vec<i64>,
    group: i64,
    epsilon: f32,
    relu: bool,
    silu: bool,
    in_bf16: bool,
}

impl Attributes {
    fn of(context: &KernelContext<'_>) -> Self {
        let list = |name| context.get::<Vec<i64>>(name).unwrap_or_default();
        Self {
            kernel: list("kernel_shape"),
            strides: list("strides"),
            pads: list("pads"),
            dilations: list("dilations"),
            group: context.get::<i64>("group").unwrap_or(1),
            epsilon: context.get::<f32>(EPSILON).unwrap_or_default(),
            relu: context.get::<i64>(RELU) == Some(1),
            silu: context.get::<i64>(SILU) == Some(1),
            in_bf16: context.get::<i64>(IN_BF16) == Some(1),
        }
    }

    fn geometry(&self, x: &[i64], weight: &[i64]) -> ort::Result<Geometry> {
        Geometry::new(x, weight, &self.strides, &self.pads, &self.dilations, self.group)
            .map_err(ort::Error::new)
    }

    /// Computes with what comes behind the weight: a bias, batch normalisation, and what is added.
    fn compute(
        &self,
        context: &ComputeContext,
        geometry: &Geometry,
        axes: usize,
        first: usize,
        compute: impl FnOnce(&Epilogue<'_>, &mut [f32]) -> ort::Result<()>,
    ) -> ort::Result<()> {
        let count = context.num_inputs()?;
        let others: Vec<_> =
            (first..count.min(first + 6)).map(|at| context.input(at)).collect::<Result<_, _>>()?;
        let other = |at: usize| -> ort::Result<Option<&[f32]>> {
            let Some(value) = others.get(at).and_then(Option::as_ref) else { return Ok(None) };
            Ok(Some(value.try_extract_tensor::<f32>()?.1))
        };
        let out = geometry.out * geometry.groups;
        let lengths = geometry.positions.iter().skip(3 - axes);
        let given: Vec<i64> =
            [geometry.batch, out].iter().chain(lengths).map(|length| *length as i64).collect();
        let normed = match (other(1)?, other(2)?, other(3)?, other(4)?) {
            (Some(scale), Some(shift), Some(mean), Some(variance)) => {
                let factor = |at: usize| scale[at] / (variance[at] + self.epsilon).sqrt();
                Some((0..out).map(|at| (factor(at), shift[at] - mean[at] * factor(at))).collect())
            }
            _ => None,
        };
        let mut epilogue = Epilogue { bias: other(0)?, normed, addend: None, relu: self.relu };
        let addend = match others.get(5).and_then(Option::as_ref) {
            Some(addend) => Some(addend.try_extract_tensor::<f32>()?),
            None => None,
        };
        match addend {
            Some((shape, addend)) if **shape != *given => {
                epilogue.relu = false;
                let mut sums = vec![0.0; given.iter().product::<i64>().unsigned_abs() as usize];
                compute(&epilogue, &mut sums)?;
                self.add(context, (&given, &sums), (shape, addend))
            }
            _ => {
                epilogue.addend = addend.map(|(_, addend)| addend);
                let mut result = context.output(0, given)?.ok_or_else(missing)?;
                let (_, result) = result.try_extract_tensor_mut::<f32>()?;
                compute(&epilogue, result)
            }
        }
    }

    /// The sum of two of different shapes (`Add`).
    fn add(
        &self,
        context: &ComputeContext,
        (shape, sums): (&[i64], &[f32]),
        (other_shape, addend): (&[i64], &[f32]),
    ) -> ort::Result<()> {
        let problem = || ort::Error::new(format!("{shape:?} and {other_shape:?} have no sum"));
        if let Some(apart) = of_channels(shape, other_shape) {
            let mut result = context.output(0, shape.to_vec())?.ok_or_else(missing)?;
            let (_, result) = result.try_extract_tensor_mut::<f32>()?;
            let channels = result.chunks_exact_mut(apart).zip(sums.chunks_exact(apart));
            for ((result, sums), addend) in channels.zip(addend.iter().cycle()) {
                for (result, sum) in result.iter_mut().zip(sums) {
                    let sum = sum + addend;
                    *result = if self.relu && sum < 0.0 { 0.0 } else { sum };
                }
            }
            return Ok(());
        }
        let rank = shape.len().max(other_shape.len());
        let at =
            |shape: &[i64], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |at| shape[at]);
        let given: Vec<i64> = (0..rank)
            .map(|axis| match (at(shape, axis), at(other_shape, axis)) {
                (1, length) | (length, _) => length,
            })
            .collect();
        let lengths = |shape: &[i64]| shape.iter().map(|it| it.unsigned_abs() as usize).collect::<Vec<_>>();
        let of = |shape: &[i64], numbers| {
            let view = ArrayViewD::from_shape(lengths(shape), numbers).map_err(|_| problem())?;
            Ok::<_, ort::Error>(view.broadcast(lengths(&given)).ok_or_else(problem)?.to_owned())
        };
        let sum = of(shape, sums)? + of(other_shape, addend)?;
        let mut result = context.output(0, given)?.ok_or_else(missing)?;
        let (_, result) = result.try_extract_tensor_mut::<f32>()?;
        for (result, sum) in result.iter_mut().zip(sum) {
            *result = if self.relu && sum < 0.0 { 0.0 } else { sum };
        }
        Ok(())
    }
}

/// How many numbers of a result of this shape each number of an addend is for, where it has one for each channel, or for each channel of
/// each image; none where its shape is another.
fn of_channels(shape: &[i64], addend: &[i64]) -> Option<usize> {
    let (&[batch, channels, ref lengths @ ..], &[images, of, ref others @ ..]) = (shape, addend) else {
        return None;
    };
    let is_one = lengths.len() == others.len() && (images == 1 || images == batch) && of == channels;
    let apart = lengths.iter().product::<i64>().unsigned_abs() as usize;
    (is_one && apart > 0 && others.iter().all(|length| *length == 1)).then_some(apart)
}

impl<W: Stored> Operator for Convolution<W> {
    type Kernel<'attr> = Self;

    fn name(&self) -> &str {
        convolution(W::DTYPE).unwrap_or_default()
    }

    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        let number = TensorElementType::Float32;
        let weight = W::into_tensor_element_type();
        let given = [OperatorInput::required(number), OperatorInput::required(weight)];
        given.into_iter().chain((0..6).map(move |_| OperatorInput::optional(number)))
    }

    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        [OperatorOutput::required(TensorElementType::Float32)]
    }

    fn create_kernel<'attr>(&self, context: &KernelContext<'attr>) -> ort::Result<Self> {
        Ok(Self { attributes: Attributes::of(context), stored: PhantomData })
    }
}

impl<W: Stored> Kernel for Convolution<W> {
    fn compute(&mut self, context: &ComputeContext) -> ort::Result<()> {
        let x = context.input(0)?.ok_or_else(missing)?;
        let weight = context.input(1)?.ok_or_else(missing)?;
        let (shape, x) = x.try_extract_tensor::<f32>()?;
        let (weight_shape, weight) = weight.try_extract_tensor::<W>()?;
        let geometry = self.attributes.geometry(shape, weight_shape)?;
        let axes = shape.len() - 2;
        self.attributes.compute(context, &geometry, axes, 2, |epilogue, result| {
            if winograd::fits(&geometry) {
                let all = Winograd::new(&geometry, panel::kernel(), (x, weight), epilogue);
                return by_tiles(context, &all, result);
            }
            let depth = geometry.depth();
            // Both of a pair are of one window.
            let pairs = panel::pairs().filter(|_| self.attributes.in_bf16 && depth.is_multiple_of(2));
            let multiplied = match pairs {
                Some(kernel) => Multiplied::in_bf16(kernel),
                None => Multiplied::in_single(panel::kernel()),
            };
            compute(context, &geometry, multiplied, (x, weight), epilogue, result)
        })
    }
}

/// All groups, and of each so many windows at a time as there is room for.
fn compute<W: Stored>(
    context: &ComputeContext,
    geometry: &Geometry,
    multiplied: Multiplied<W>,
    (x, weight): (&[f32], &[W]),
    epilogue: &Epilogue<'_>,
    result: &mut [f32],
) -> ort::Result<()> {
    let kernel = multiplied.kernel;
    let chunks = Chunk::all(geometry, kernel, CHUNK);
    let mut scratch = SCRATCH.take();
    let Scratch { padded, laid } = &mut scratch;
    let windows = Windows::new(geometry, x, padded, |parts, copy| context.par_for(parts, parts, copy))?;
    for group in 0..geometry.groups {
        for chunk in &chunks {
            windows.lay(group, chunk, kernel, laid, |parts, lay| context.par_for(parts, parts, lay))?;
            if multiplied.of_pairs {
                laid.pair(chunk.panels.len(), kernel, geometry.depth(), |parts, pair| {
                    context.par_for(parts, parts, pair)
                })?;
            }
            let product = Product::new(geometry, multiplied, weight, group, epilogue, chunk, laid, result);
            context.par_for(product.blocks(), product.blocks(), |block| product.compute(block))?;
        }
    }
    if scratch.numbers() <= KEPT {
        SCRATCH.set(scratch);
    }
    Ok(())
}

/// So many tiles at a time as there is room for.
fn by_tiles<W: Stored>(
    context: &ComputeContext,
    all: &Winograd<'_, W>,
    result: &mut [f32],
) -> ort::Result<()> {
    let mut scratch = SCRATCH.take();
    let laid = &mut scratch.laid.panels;
    for tiles in &all.chunks(CHUNK) {
        all.lay(tiles, laid, |parts, lay| context.par_for(parts, parts, lay))?;
        all.multiply(tiles, laid, result, |parts, task| context.par_for(parts, parts, task))?;
    }
    if scratch.numbers() <= KEPT {
        SCRATCH.set(scratch);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
