//! KV cache buckets on backends with fixed shapes: the cache is padded to a power of two, so that one graph runs many steps.
//!
//! Cached positions lie at the end of the bucket; those before are padding and masked, as in a row that is padded on the
//! left. Distances between tokens are what they are without them, and positions are counted
//! from the tokens that there really are.

#[cfg(test)]
mod steps;

use crate::Values;
use crate::graph::dims::PAST;
use crate::graph::{Dim, Input};
use crate::value::last_positions;

/// The smallest bucket; no axis is empty on these backends.
const LEAST: usize = 32;

/// The bucket of so many cached positions: it doubles when it is full.
pub(super) fn bucket(positions: usize) -> usize {
    positions.max(LEAST).next_power_of_two()
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
