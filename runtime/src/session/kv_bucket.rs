//! KV cache of fixed capacity (`StaticCache`) on backends with fixed shapes: it is padded to a power of two, so that one graph runs
//! many steps, and a step leaves it as long as it found it, so that an engine need not give it back between them.
//!
//! Cached positions lie at the end of the bucket; those before are padding and masked, as in a row that is padded on the
//! left. Distances between tokens are what they are without them, and positions are counted
//! from the tokens that there really are.

#[cfg(test)]
mod steps;

use std::collections::BTreeMap;

use crate::graph::dims::PAST;
use crate::graph::{Dim, Graph, Input};
use crate::value::last_positions;
use crate::{Result, Values, engine};

/// The smallest bucket; no axis is empty on these backends.
const LEAST: usize = 32;

/// The bucket of so many cached positions: it doubles when it is full.
fn bucket(positions: usize) -> usize {
    positions.max(LEAST).next_power_of_two()
}

/// The capacity with which a run of new positions begins, where so many are cached: room for all of them, but for texts as long as what
/// is cached has room for, of which each position would be compared with that room.
pub(super) fn capacity(past: usize, new: usize) -> usize {
    let least = bucket(past);
    if new < least { bucket(past + new) } else { least }
}

/// The capacity of the cache that such a run leaves.
pub(super) fn left(capacity: usize, new: usize) -> usize {
    if new < capacity { capacity } else { capacity + new }
}

/// Has a graph of these lengths give caches of the capacity that it takes, whose first positions are padding.
///
/// # Errors
/// When the graph has no such axis, which it has.
pub(super) fn keep_capacity(g: &mut Graph, lengths: &BTreeMap<String, usize>) -> Result<()> {
    let number = |dim: &Dim| dim.substitute(&|symbol| lengths.get(symbol).copied()).fixed();
    for at in 0..g.outputs.len() {
        let (name, output) = &g.outputs[at];
        let all = g.tensor(*output).clone();
        let taken = engine::next_input(name);
        let found = g.inputs().iter().find(|input| Some(&input.name) == taken.as_ref()).and_then(|input| {
            let axis = axis(input)?;
            Some((axis, input.shape[axis].clone(), all.shape().get(axis)?.clone()))
        });
        let Some((axis, capacity, end)) = found else { continue };
        if let (Some(room), Some(positions)) = (number(&capacity), number(&end))
            && positions > room
            && left(room, positions - room) == room
        {
            let slice = |g: &mut Graph| g.slice_dims(&all, axis, end.clone() - capacity, end);
            let kept = if g.single.contains(&all.id) { g.in_single(slice) } else { slice(g) };
            g.outputs[at].1 = kept?.id;
        }
    }
    Ok(())
}

/// The axis of an input that is as long as the cache, or longer by what is new.
pub(super) fn axis(input: &Input) -> Option<usize> {
    input.shape.iter().position(|dim| *dim == PAST || matches!(dim, Dim::Sum(_)) && dim.mentions("past"))
}

/// Pads masks on the left by so many positions.
pub(super) fn pad_left(inputs: &[Input], mut given: Values, more: usize) -> Values {
    for input in inputs {
        if let (Some(axis), Some(value)) = (axis(input), given.get_mut(&input.name)) {
            let length = value.shape().get(axis).copied().unwrap_or_default();
            *value = last_positions(value, axis, length + more);
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;
    use crate::Value;
    use crate::dims;
    use crate::graph::dims::{BATCH, SEQUENCE};

    #[test]
    fn buckets_double() {
        assert_eq!([0, 1, 32, 33, 64, 65, 1000].map(bucket), [32, 32, 32, 64, 64, 128, 1024]);
    }

    #[test]
    fn there_is_room_for_new_positions_but_for_long_texts() {
        let of = |past, new| (capacity(past, new), left(capacity(past, new), new));
        assert_eq!(
            [(0, 7), (31, 1), (32, 1), (100, 29)].map(|(past, new)| of(past, new)),
            [(32, 32), (32, 32), (64, 64), (256, 256)]
        );
        assert_eq!(
            [(0, 32), (0, 130), (40, 64)].map(|(past, new)| of(past, new)),
            [(32, 64), (32, 162), (64, 128)]
        );
    }

    #[test]
    fn only_what_is_as_long_as_the_cache_is_widened() {
        let inputs = [
            Input::i64("input_ids", dims![BATCH, SEQUENCE]),
            Input::i64("attention_mask", dims![BATCH, PAST + SEQUENCE]),
            Input::f32("past_key_values.0.key", dims![BATCH, 2, PAST, 4]),
        ];
        let given = Values::from([
            ("input_ids".to_owned(), Value::I64(array![[7]].into_dyn())),
            ("attention_mask".to_owned(), Value::I64(array![[0, 1, 1]].into_dyn())),
        ]);
        let given = pad_left(&inputs, given, 2);
        assert_eq!(given["input_ids"].shape(), [1, 1]);
        assert_eq!(given["attention_mask"], Value::I64(array![[0, 0, 0, 1, 1]].into_dyn()));
        assert_eq!(inputs.each_ref().map(axis), [None, Some(1), Some(2)]);
    }
}
