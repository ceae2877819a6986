//! Selective scans (`selective_scan_fn`): decays and keys are computed where they are used, and never written down.
//!
//! As plain operators the decays of all positions, channels and states are a tensor of its own, which takes longer to write
//! and to read than the scan does.

mod positions;

use ort::operator::{ComputeContext, Kernel, KernelContext, Operator, OperatorInput, OperatorOutput};
use ort::value::TensorElementType;

use self::positions::fastest;
use super::operators::missing;
use super::state_blocks::{Neighbours, StateBlocks};

/// Of each channel `S = exp(∆·A)·S + ∆·u·B` with the softplus of what is given as ∆, of which the result is `Sᵀ·C + D·u`, times `SiLU(z)` where there is a gate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SelectiveScan {
    groups: usize,
}

impl Operator for SelectiveScan {
    type Kernel<'attr> = Self;

    fn name(&self) -> &'static str {
        "SelectiveScan"
    }

    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        let number = TensorElementType::Float32;
        [number; 7].map(OperatorInput::required).into_iter().chain([OperatorInput::optional(number)])
    }

    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        [TensorElementType::Float32; 2].map(OperatorOutput::required)
    }

    fn create_kernel<'attr>(&self, context: &KernelContext<'attr>) -> ort::Result<Self> {
        let groups = context.get::<i64>("groups").and_then(|groups| usize::try_from(groups).ok());
        match groups {
            Some(groups @ 1..) => Ok(Self { groups }),
            _ => Err(ort::Error::new("a selective scan has no groups")),
        }
    }
}

impl Kernel for SelectiveScan {
    fn compute(&mut self, context: &ComputeContext) -> ort::Result<()> {
        let count = context.num_inputs()?.min(8);
        let inputs = (0..count)
            .map(|place| context.input(place)?.ok_or_else(missing))
            .collect::<ort::Result<Vec<_>>>()?;
        let tensors =
            inputs.iter().map(|value| value.try_extract_tensor::<f32>()).collect::<ort::Result<Vec<_>>>()?;
        let [(shape, u), (_, delta), (_, a), (_, b), (_, c), (_, d), (lengths, state), ref gate @ ..] =
            tensors[..]
        else {
            return Err(missing());
        };
        let (&[batch, positions, width], &[_, _, states, _]) = (&shape[..], &lengths[..]) else {
            let problem = format!("a selective scan got channels {shape:?} and a state {lengths:?}");
            return Err(ort::Error::new(problem));
        };
        let [batch, positions, width, states] =
            [batch, positions, width, states].map(|length| length.unsigned_abs() as usize);
        let given = Given {
            groups: self.groups,
            lengths: [batch, positions, width, states],
            u,
            delta,
            a,
            b,
            c,
            d,
            state,
            z: gate.first().map(|(_, z)| *z),
        };
        given.check().map_err(ort::Error::new)?;
        let mut result = context.output(0, shape.to_vec())?.ok_or_else(missing)?;
        let mut left = context.output(1, lengths.to_vec())?.ok_or_else(missing)?;
        let (_, result) = result.try_extract_tensor_mut::<f32>()?;
        let (_, left) = left.try_extract_tensor_mut::<f32>()?;
        let task = Task::new(&given, result, left);
        context.par_for(task.blocks(), task.blocks(), |block| task.compute(block))
    }
}

/// What it is given.
#[derive(Clone, Copy, Debug)]
struct Given<'a> {
    groups: usize,
    /// Batch, positions, channels and the states of each.
    lengths: [usize; 4],
    /// `[batch, positions, width]`.
    u: &'a [f32],
    /// `[batch, positions, width]`.
    delta: &'a [f32],
    /// `[width, state]`.
    a: &'a [f32],
    /// `[batch, positions, groups·state]`.
    b: &'a [f32],
    /// `[batch, positions, groups·state]`.
    c: &'a [f32],
    /// `[width]`.
    d: &'a [f32],
    /// `[batch, width, state]`.
    state: &'a [f32],
    /// `[batch, positions, width]`.
    z: Option<&'a [f32]>,
}

impl Given<'_> {
    fn check(&self) -> Result<(), String> {
        let [batch, positions, width, states] = self.lengths;
        let rows = batch * positions;
        let fits = width * states > 0
            && width.is_multiple_of(self.groups)
            && self.u.len() == rows * width
            && self.delta.len() == rows * width
            && self.z.is_none_or(|z| z.len() == rows * width)
            && self.a.len() == width * states
            && self.b.len() == rows * self.groups * states
            && self.c.len() == rows * self.groups * states
            && self.d.len() == width
            && self.state.len() == batch * width * states;
        if fits {
            Ok(())
        } else {
            Err(format!("a selective scan got lengths that do not fit {:?}", self.lengths))
        }
    }
}

/// The work, cut into blocks of channels that threads take in any order.
struct Task<'a> {
    given: &'a Given<'a>,
    blocks: StateBlocks<'a>,
    positions: fn(&Given<'_>, &mut Neighbours<'_, '_>),
}

impl<'a> Task<'a> {
    fn new(given: &'a Given<'a>, results: &'a mut [f32], states: &'a mut [f32]) -> Self {
        let [_, _, width, each] = given.lengths;
        let blocks = StateBlocks::new(width, [each, 1], given.state, results, states);
        Self { given, blocks, positions: fastest() }
    }

    fn blocks(&self) -> usize {
        self.blocks.count()
    }

    fn compute(&self, block: usize) {
        self.blocks.compute(block, |mut channels| (self.positions)(self.given, &mut channels));
    }
}

#[cfg(test)]
mod tests;
