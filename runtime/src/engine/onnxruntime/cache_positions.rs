//! Cached keys and values position by position, in memory that has room for more: a step appends its own behind those that are there.

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::ptr::{self, NonNull};

use ndarray::{ArrayD, ArrayView4, ArrayViewD, IxDyn};
use ort::memory::{Allocator, MemoryInfo};
use ort::ortsys;
use ort::value::{DynValue, TensorElementType};

use super::cached_attention;
use super::operators::DOMAIN;
use crate::engine::KvState;
use crate::graph::dims::SEQUENCE;
use crate::onnx::Model;
use crate::onnx::dimension::Value as Length;
use crate::{Value, Values};

/// A tensor that an engine holds from one run to the next.
#[derive(Debug)]
pub(crate) enum Held {
    /// In ONNX Runtime's own memory.
    Value(DynValue),
    /// Keys or values, in the runtime's.
    Positions(CachePositions),
}

/// The fewest positions that there is room for.
const FEWEST: usize = 256;

/// `[positions, batch, kv_heads, size]`, with room behind it.
#[derive(Debug, PartialEq)]
pub(crate) struct CachePositions {
    numbers: Vec<f32>,
    shape: [usize; 4],
}

impl CachePositions {
    /// Of keys or values `[batch, kv_heads, positions, size]`.
    pub(super) fn of(heads_first: ArrayViewD<'_, f32>) -> Option<Self> {
        if heads_first.ndim() != 4 {
            return None;
        }
        let by_position = heads_first.permuted_axes(IxDyn(&[2, 0, 1, 3]));
        let shape = <[usize; 4]>::try_from(by_position.shape()).ok()?;
        Some(Self { shape, numbers: by_position.iter().copied().collect() })
    }

    /// The same as `[batch, kv_heads, positions, size]`.
    pub(super) fn heads_first(&self) -> ArrayD<f32> {
        let view = ArrayView4::from_shape(self.shape, &self.numbers[..self.len()]);
        let view = view.map(|view| view.permuted_axes([1, 2, 0, 3]).as_standard_layout().into_owned());
        view.unwrap_or_default().into_dyn()
    }

    /// Takes off the last positions.
    pub(super) fn crop(&mut self, count: usize) {
        self.shape[0] = self.shape[0].saturating_sub(count);
    }

    /// Numbers that are there.
    pub(super) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Its lengths when so many positions are appended.
    pub(super) fn appended(&self, count: usize) -> [usize; 4] {
        let [positions, rest @ ..] = self.shape;
        [positions + count, rest[0], rest[1], rest[2]]
    }

    /// Empty memory for these lengths, where there is no room for them here.
    ///
    /// It is for twice as many positions; pages that nothing was written to take no memory.
    pub(super) fn larger(&self, shape: [usize; 4]) -> Option<Self> {
        let [positions, rest @ ..] = shape;
        let one = rest.iter().product::<usize>();
        let room = (2 * positions).max(FEWEST) * one;
        (positions * one > self.numbers.len()).then(|| Self { numbers: vec![0.0; room], shape })
    }

    /// So much of its memory as a tensor, which nothing but it may read or write while there is the tensor.
    pub(super) fn tensor(&mut self, shape: [usize; 4]) -> ort::Result<DynValue> {
        let count: usize = shape.iter().product();
        if count > self.numbers.len() {
            return Err(ort::Error::new(format!("a cache of {:?} has no room for {shape:?}", self.shape)));
        }
        over(self.numbers.as_mut_ptr(), shape)
    }

    /// After a run that appended to it.
    pub(super) fn has_become(&mut self, shape: [usize; 4]) {
        self.shape = shape;
    }

    pub(super) fn shape(&self) -> [usize; 4] {
        self.shape
    }
}

/// The inputs of a session that take keys and values position by position.
#[derive(Debug, Default)]
pub(super) struct CachedInputs {
    names: BTreeSet<String>,
    /// An input by which it is known how many positions a run appends, and the axis.
    sequence: Option<(String, usize)>,
}

impl CachedInputs {
    /// Those of [`CachedAttention`](super::cached_attention).
    pub(super) fn of(model: &Model) -> Self {
        let graphs = || model.graph.iter();
        let nodes = graphs().flat_map(|graph| &graph.node);
        let attention = nodes.filter(|node| node.domain == DOMAIN && node.op_type == cached_attention::NAME);
        let names = attention.flat_map(|node| cached_attention::PAST.map(|place| node.input[place].clone()));
        let sequence = SEQUENCE.to_string();
        let is_sequence = |dim: &Length| matches!(dim, Length::Parameter(name) if *name == sequence);
        let found = graphs().flat_map(|graph| &graph.input).find_map(|info| {
            let shape = info.kind.as_ref()?.tensor.as_ref()?.shape.as_ref()?;
            let axis = shape.dim.iter().position(|dim| dim.value.as_ref().is_some_and(is_sequence))?;
            Some((info.name.clone(), axis))
        });
        Self { names: names.collect(), sequence: found }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(super) fn takes(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// How many positions a run appends.
    pub(super) fn appended(&self, inputs: &Values) -> usize {
        let length = |(name, axis): &(String, usize)| inputs.get(name)?.shape().get(*axis).copied();
        self.sequence.as_ref().and_then(length).unwrap_or_default()
    }

    /// Takes keys and values out of what was kept, or of what is given.
    pub(super) fn taken(
        &self,
        inputs: &Values,
        state: &mut KvState,
    ) -> ort::Result<Vec<(String, CachePositions)>> {
        let mut taken = vec![];
        for name in &self.names {
            let of_value = |value: &Value| match value {
                Value::F32(numbers) => CachePositions::of(numbers.view()),
                _ => None,
            };
            let cached = match (state.values.remove(name), state.host.remove(name)) {
                (Some(Held::Positions(cached)), _) => Some(cached),
                (Some(Held::Value(value)), _) => CachePositions::of(value.try_extract_array::<f32>()?),
                (None, Some(value)) => of_value(&value),
                (None, None) => inputs.get(name).and_then(of_value),
            };
            taken.extend(cached.map(|cached| (name.clone(), cached)));
        }
        Ok(taken)
    }
}

/// A tensor over memory that outlives it.
#[allow(unsafe_code)]
fn over(numbers: *mut f32, shape: [usize; 4]) -> ort::Result<DynValue> {
    let (allocator, count) = (Allocator::default(), shape.iter().product::<usize>());
    let shape = shape.map(|length| length as i64);
    let mut value: *mut ort::sys::OrtValue = ptr::null_mut();
    let memory: &MemoryInfo<'_> = allocator.memory_info();
    ortsys![
        unsafe CreateTensorWithDataAsOrtValue(
            ort::AsPointer::ptr(memory),
            numbers.cast::<c_void>(),
            count * size_of::<f32>(),
            shape.as_ptr(),
            shape.len(),
            TensorElementType::Float32.into(),
            &mut value
        )?
    ];
    let value = NonNull::new(value).ok_or_else(|| ort::Error::new("ONNX Runtime made no tensor"))?;
    // SAFETY: the pointer is that of a tensor which nothing else owns. It leaves the memory that it lies over alone.
    Ok(unsafe { DynValue::from_ptr(value, Some(&allocator)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `[batch, kv_heads, positions, size]`, each number by its place.
    fn numbered(shape: [usize; 4]) -> ArrayD<f32> {
        let count = shape.iter().product::<usize>();
        ArrayD::from_shape_vec(IxDyn(&shape), (0..count).map(|n| n as f32).collect()).unwrap()
    }

    #[test]
    fn positions_lie_one_behind_the_other() {
        let heads_first = numbered([2, 3, 4, 5]);
        let mut cached = CachePositions::of(heads_first.view()).unwrap();
        assert_eq!(cached.shape(), [4, 2, 3, 5]);
        assert_eq!(cached.numbers[..10], [0., 1., 2., 3., 4., 20., 21., 22., 23., 24.]);
        assert_eq!(cached.heads_first(), heads_first);
        cached.crop(1);
        assert_eq!(cached.heads_first(), heads_first.slice(ndarray::s![.., .., ..3, ..]).into_dyn());
        cached.crop(9);
        assert_eq!((cached.len(), cached.heads_first().shape()), (0, &[2, 3, 0, 5][..]));
        assert!(CachePositions::of(ArrayD::zeros(IxDyn(&[2, 3])).view()).is_none());
    }

    #[test]
    fn memory_grows_by_twice_what_is_needed() {
        let cached = CachePositions::of(numbered([1, 2, 3, 4]).view()).unwrap();
        let larger = cached.larger(cached.appended(1)).unwrap();
        assert_eq!((larger.shape(), larger.numbers.len()), ([4, 1, 2, 4], FEWEST * 8));
        assert_eq!(larger.appended(FEWEST - 4), [FEWEST, 1, 2, 4]);
        assert_eq!(larger.larger([FEWEST, 1, 2, 4]), None);
        let larger = larger.larger([FEWEST + 1, 1, 2, 4]).unwrap();
        assert_eq!(larger.numbers.len(), 2 * (FEWEST + 1) * 8);
        assert_eq!(cached.larger(cached.appended(0)), None);
    }
}
