//! Linear layers of selected experts: rows are gathered by expert, and only the weights of experts that some row selected are read,
//! where they lie.

mod quantized;
mod rows;
#[cfg(test)]
mod tests;
mod transposed;

use std::marker::PhantomData;

use half::bf16;
use ort::operator::{ComputeContext, Kernel, KernelContext, Operator, OperatorInput, OperatorOutput};
use ort::value::{Shape, TensorElementType, ValueRef};

pub(super) use self::quantized::ExpertLinearQuantized;
use super::jobs::{Job, Shared, run};
use super::operators::{IN_BF16, computes_in_bf16};
use super::stored::Stored;
use crate::graph::Dtype;
use rows::Rows;
pub(super) use transposed::Transposed;

/// The weights' place among the operands.
const WEIGHTS: usize = 2;

/// The attribute of experts that are found by their places: of each its stretch, and the first of its elements there.
pub(super) const PLACES: &str = "places";
/// The attribute of the two lengths of each expert's weight, where they are found by their places.
pub(super) const LENGTHS: &str = "lengths";

/// The most layers that one operator computes: gate and up projections.
pub(super) const MOST: usize = 2;

/// Where the weights of experts are in stretches of files, which are the operands behind the first two.
struct Places {
    experts: Vec<[usize; 2]>,
    lengths: [usize; 2],
}

impl Places {
    /// Those of each layer, of which all have as many experts; none where weights are operands.
    fn of(context: &KernelContext<'_>) -> ort::Result<Vec<Self>> {
        let given = |name| {
            let numbers = context.get::<Vec<i64>>(name)?;
            numbers.into_iter().map(|n| usize::try_from(n).ok()).collect::<Option<Vec<_>>>()
        };
        let Some(experts) = given(PLACES) else { return Ok(vec![]) };
        let lengths = given(LENGTHS).unwrap_or_default();
        let (experts, lengths) = (experts.as_chunks().0, lengths.as_chunks().0);
        if lengths.is_empty() || !experts.len().is_multiple_of(lengths.len()) {
            return Err(ort::Error::new("places of experts come with the lengths of a weight"));
        }
        let of_layer = experts.chunks((experts.len() / lengths.len()).max(1));
        Ok(of_layer
            .zip(lengths)
            .map(|(experts, &lengths)| Self { experts: experts.to_vec(), lengths })
            .collect())
    }
}

/// Rows of x by the weights of the experts that they select: x `[rows, selected, in]` or `[rows, 1, in]`, indices
/// `[rows, selected]`, then for each expert `[out, in]`, or for all `[experts, out, in]`, or stretches of files that hold them;
/// `[rows, selected, out]`.
///
/// Where weights are in stretches of files, layers of the same x, as gate and up projections, may be one operator, with an output each.
#[derive(Default)]
pub(super) struct ExpertLinear<W> {
    places: Vec<Places>,
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
        let number = TensorElementType::Float32;
        let others = std::iter::repeat_with(move || OperatorOutput::optional(number)).take(MOST - 1);
        std::iter::once(OperatorOutput::required(number)).chain(others)
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
        let values = self.operands(context, &rows)?;
        let tensors =
            values.iter().map(|value| value.try_extract_tensor::<W>()).collect::<ort::Result<Vec<_>>>()?;
        let mut layers = vec![];
        if self.places.is_empty() {
            layers.push(self.given(context, &rows, &tensors)?);
        }
        for places in &self.places {
            layers.push(self.placed(places, &rows, &tensors)?);
        }
        let x = rows.gathered();
        let in_bf16 = self.in_bf16 && computes_in_bf16();
        let mut narrow = vec![bf16::ZERO; if in_bf16 { x.len() } else { 0 }];
        f32::narrow(&x[..narrow.len()], &mut narrow);
        let shared = Shared { x: &x, narrow: &narrow, width: rows.width };
        let results = layers.iter().enumerate().map(|(place, layer)| rows.result(context, place, layer.out));
        let mut results = results.collect::<ort::Result<Vec<_>>>()?;
        let mut products = vec![];
        for (layer, result) in layers.iter().zip(&mut results) {
            let (_, result) = result.try_extract_tensor_mut::<f32>()?;
            let mut places: Vec<&mut [f32]> = result.chunks_mut(layer.out.max(1)).collect();
            for (weight, group) in layer.weights.iter().zip(&rows.groups) {
                let mine =
                    group.rows.iter().filter_map(|place| Some(std::mem::take(places.get_mut(*place)?)));
                let mut mine: Vec<&mut [f32]> = mine.collect();
                let of_group = group.first..group.first + group.rows.len();
                products.push(if self.transposed {
                    // What is added to.
                    mine.iter_mut().for_each(|row| row.fill(0.0));
                    let x = &x[of_group.start * rows.width..of_group.end * rows.width];
                    Job::Transposed(Transposed::new(x, weight, rows.width, mine))
                } else {
                    shared.by(of_group, weight, None, mine)?
                });
            }
        }
        run(context, &products)
    }
}

/// The weights of experts that some row selected, and how many results each gives.
struct Layer<'a, W> {
    out: usize,
    weights: Vec<&'a [W]>,
}

impl<W: Stored> ExpertLinear<W> {
    /// The operands that weights are in: all stretches of files, or for each group of rows that of its expert.
    fn operands<'a>(&self, context: &'a ComputeContext, rows: &Rows) -> ort::Result<Vec<ValueRef<'a>>> {
        let count = context.num_inputs()?;
        if !self.places.is_empty() {
            return (WEIGHTS..count).map(|place| context.input(place)?.ok_or_else(misfit)).collect();
        }
        used(context, rows, |expert| if count == WEIGHTS + 1 { WEIGHTS } else { WEIGHTS + expert })
    }

    /// Weights that are operands, or parts of one.
    fn given<'a>(
        &self,
        context: &ComputeContext,
        rows: &Rows,
        tensors: &[(&'a Shape, &'a [W])],
    ) -> ort::Result<Layer<'a, W>> {
        let mut layer = Layer { out: 0, weights: vec![] };
        if tensors.is_empty() {
            layer.out = out_of(context, self.transposed)?;
        }
        for ((shape, all), group) in tensors.iter().zip(&rows.groups) {
            let [experts @ .., first, second] = &shape[..] else { return Err(misfit()) };
            let lengths = [first, second].map(|length| length.unsigned_abs() as usize);
            let index = if experts.is_empty() { 0 } else { group.expert };
            self.add(&mut layer, all, index * lengths[0] * lengths[1], lengths, rows)?;
        }
        Ok(layer)
    }

    /// Weights in stretches of files.
    fn placed<'a>(
        &self,
        places: &Places,
        rows: &Rows,
        tensors: &[(&'a Shape, &'a [W])],
    ) -> ort::Result<Layer<'a, W>> {
        let mut layer = Layer { out: places.lengths[usize::from(self.transposed)], weights: vec![] };
        for group in &rows.groups {
            let Some(&[stretch, start]) = places.experts.get(group.expert) else {
                return Err(none_there(group.expert));
            };
            let (_, all) = tensors.get(stretch).ok_or_else(misfit)?;
            self.add(&mut layer, all, start, places.lengths, rows)?;
        }
        Ok(layer)
    }

    /// Adds the weight of an expert that begins at this element.
    fn add<'a>(
        &self,
        layer: &mut Layer<'a, W>,
        all: &'a [W],
        start: usize,
        [first, second]: [usize; 2],
        rows: &Rows,
    ) -> ort::Result<()> {
        let (out, width) = if self.transposed { (second, first) } else { (first, second) };
        let weight = all.get(start..).and_then(|rest| rest.get(..out * width));
        layer.weights.push(weight.filter(|_| width == rows.width).ok_or_else(misfit)?);
        layer.out = out;
        Ok(())
    }
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
            return Err(none_there(expert));
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

fn none_there(expert: usize) -> ort::Error {
    ort::Error::new(format!("expert {expert} was selected, and there is none"))
}

fn misfit() -> ort::Error {
    ort::Error::new("the weights of an expert do not fit the rows that selected it")
}
