//! Gated linear units (SwiGLU and GEGLU: Shazeer, 2020, arXiv:2002.05202), in one go over gates and factors.

use std::sync::{Mutex, PoisonError};

use ort::operator::{ComputeContext, Kernel, KernelContext, Operator, OperatorInput, OperatorOutput};
use ort::value::TensorElementType;

use super::lanes::{self, LANES, exp, gelu};
use super::operators::missing;

/// Elements that a thread computes at a time: fewer take less time than another thread to wake.
const BLOCK: usize = 1 << 14;

/// Of gates and factors of one shape, or of one operand of which they are the halves of the last axis:
/// `gate · σ(alpha · gate) · factor`, or `GELU(gate) · factor`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Glu {
    act: Act,
    factors_first: bool,
}

/// How gates are activated.
#[derive(Clone, Copy, Debug, Default)]
enum Act {
    /// By the error function.
    #[default]
    Gelu,
    /// `gate · σ(alpha · gate)`.
    Sigmoid(f32),
}

impl Operator for Glu {
    type Kernel<'attr> = Self;

    fn name(&self) -> &str {
        "Glu"
    }

    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        let number = TensorElementType::Float32;
        [OperatorInput::required(number), OperatorInput::optional(number)]
    }

    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        [OperatorOutput::required(TensorElementType::Float32)]
    }

    fn create_kernel<'attr>(&self, context: &KernelContext<'attr>) -> ort::Result<Self> {
        let act = match (context.get::<f32>("alpha"), context.get::<String>("activation").as_deref()) {
            (Some(alpha), _) => Act::Sigmoid(alpha),
            (_, Some("Gelu")) => Act::Gelu,
            _ => return Err(ort::Error::new("a gated linear unit does not say how its gates are activated")),
        };
        Ok(Self { act, factors_first: context.get::<i64>("factors_first") == Some(1) })
    }
}

impl Kernel for Glu {
    fn compute(&mut self, context: &ComputeContext) -> ort::Result<()> {
        let gates = context.input(0)?.ok_or_else(missing)?;
        let factors = if context.num_inputs()? > 1 { context.input(1)? } else { None };
        let (shape, gates) = gates.try_extract_tensor::<f32>()?;
        let factors = factors.as_ref().map(|factors| factors.try_extract_tensor::<f32>()).transpose()?;
        let mut shape = shape.to_vec();
        let given = match factors {
            Some((_, factors)) if factors.len() == gates.len() => Given::apart(*self, gates, factors),
            Some((other, _)) => {
                return Err(ort::Error::new(format!("gates {shape:?} got factors {other:?}")));
            }
            None => {
                let last = shape.last_mut().filter(|last| **last % 2 == 0).ok_or_else(missing)?;
                *last /= 2;
                Given::halves(*self, gates, last.unsigned_abs() as usize)
            }
        };
        let mut result = context.output(0, shape)?.ok_or_else(missing)?;
        let (_, result) = result.try_extract_tensor_mut::<f32>()?;
        if result.len() <= BLOCK {
            given.compute(0, result);
            return Ok(());
        }
        let blocks: Vec<_> = result.chunks_mut(BLOCK).map(Mutex::new).collect();
        context.par_for(blocks.len(), blocks.len(), |block| {
            let mut result = blocks[block].lock().unwrap_or_else(PoisonError::into_inner);
            given.compute(block * BLOCK, &mut result);
        })
    }
}

/// Gates and factors, row by row.
#[derive(Clone, Copy, Debug)]
struct Given<'a> {
    of: Glu,
    gates: &'a [f32],
    factors: &'a [f32],
    /// The elements of a row, and those from the beginning of one to the beginning of the next.
    width: usize,
    pitch: usize,
}

impl<'a> Given<'a> {
    /// All in one row.
    fn apart(of: Glu, gates: &'a [f32], factors: &'a [f32]) -> Self {
        Self { of, gates, factors, width: gates.len(), pitch: gates.len() }
    }

    fn halves(of: Glu, x: &'a [f32], width: usize) -> Self {
        let (first, second) = (x, x.get(width..).unwrap_or_default());
        let (gates, factors) = if of.factors_first { (second, first) } else { (first, second) };
        Self { of, gates, factors, width, pitch: 2 * width }
    }

    /// The results from this one on.
    fn compute(&self, start: usize, mut into: &mut [f32]) {
        let (compute, mut at) = (fastest(), start);
        while !into.is_empty() {
            let (row, column) = (at / self.width, at % self.width);
            let (here, rest) = into.split_at_mut(into.len().min(self.width - column));
            let range = row * self.pitch + column..row * self.pitch + column + here.len();
            compute(self.of, &self.gates[range.clone()], &self.factors[range], here);
            at += here.len();
            into = rest;
        }
    }
}

/// The form of [`gated`] that this processor is fastest with.
fn fastest() -> fn(Glu, &[f32], &[f32], &mut [f32]) {
    lanes::fastest!(gated: fn(of: Glu, gates: &[f32], factors: &[f32], into: &mut [f32]))
}

#[inline(always)]
fn gated<const FUSED: bool>(of: Glu, gates: &[f32], factors: &[f32], into: &mut [f32]) {
    match of.act {
        Act::Gelu => each(gates, factors, into, |gate, factor| gelu::<FUSED>(gate) * factor),
        Act::Sigmoid(alpha) => {
            each(gates, factors, into, |gate, factor| gate / (1.0 + exp::<FUSED>(-alpha * gate)) * factor);
        }
    }
}

#[inline(always)]
fn each(gates: &[f32], factors: &[f32], into: &mut [f32], one: impl Fn(f32, f32) -> f32) {
    let (gate_chunks, gate_rest) = gates.as_chunks::<LANES>();
    let (factor_chunks, factor_rest) = factors.as_chunks::<LANES>();
    let (chunks, rest) = into.as_chunks_mut::<LANES>();
    for ((gates, factors), into) in gate_chunks.iter().zip(factor_chunks).zip(chunks) {
        for lane in 0..LANES {
            into[lane] = one(gates[lane], factors[lane]);
        }
    }
    for ((gate, factor), into) in gate_rest.iter().zip(factor_rest).zip(rest) {
        *into = one(*gate, *factor);
    }
}

#[cfg(test)]
mod tests;
