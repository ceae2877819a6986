//! KV state: the tensors of a decoder's cache that an engine holds from one run to the next.

use std::fmt;

use super::onnxruntime::{self, Held};
use crate::value::{last_positions, without_last};
use crate::{Hardware, Result, Value, Values};

/// Cached tensors, by the name of the input that takes them: `past_key_values.0.key`.
#[derive(Default)]
pub struct KvState {
    /// In host memory, for engines that have nothing better.
    pub(super) host: Values,
    /// In the engine's own memory; handed back as it is, never copied.
    pub(super) values: std::collections::BTreeMap<String, Held>,
}

impl KvState {
    /// Whether it holds a tensor for this input.
    pub fn holds(&self, input: &str) -> bool {
        self.host.contains_key(input) || self.values.contains_key(input)
    }

    /// The bytes of all cached tensors.
    pub(crate) fn bytes(&self) -> usize {
        let host =
            self.host.values().map(|value| value.shape().iter().product::<usize>() * value.dtype().size());
        host.chain(self.values.values().map(onnxruntime::bytes)).sum()
    }

    /// Truncates an input's cached tensor to its last positions along an axis, or zero-pads it before them.
    ///
    /// # Errors
    /// When the engine does not give its tensor back.
    pub(crate) fn resize(
        &mut self,
        hardware: Hardware,
        input: &str,
        axis: usize,
        length: usize,
    ) -> Result<()> {
        let lies = self.values.get_mut(input).is_some_and(|held| onnxruntime::resize(held, axis, length));
        if !lies && let Some(value) = self.brought(hardware, input)? {
            *value = last_positions(value, axis, length);
        }
        Ok(())
    }

    /// Takes the last positions off an input's cached tensor (`Cache.crop`).
    ///
    /// # Errors
    /// When the engine does not give its tensor back.
    pub(crate) fn crop(&mut self, hardware: Hardware, input: &str, axis: usize, count: usize) -> Result<()> {
        let lies = self.values.get_mut(input).is_some_and(|held| onnxruntime::crop(held, axis, count));
        if !lies && let Some(value) = self.brought(hardware, input)? {
            *value = without_last(value, axis, count);
        }
        Ok(())
    }

    /// A copy of an input's cached tensor; none where there is none.
    ///
    /// # Errors
    /// When the engine does not give its tensor back.
    pub(crate) fn copy(&self, hardware: Hardware, input: &str) -> Result<Option<Value>> {
        match (self.host.get(input), self.values.get(input)) {
            (Some(value), _) => Ok(Some(value.clone())),
            (None, Some(held)) => onnxruntime::value(hardware, held).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// Replaces an input's cached tensor.
    pub(crate) fn set(&mut self, input: &str, value: Value) {
        self.values.remove(input);
        self.host.insert(input.to_owned(), value);
    }

    /// An input's cached tensor in host memory, where it stays.
    fn brought(&mut self, hardware: Hardware, input: &str) -> Result<Option<&mut Value>> {
        if let Some(value) = self.values.remove(input) {
            self.host.insert(input.to_owned(), onnxruntime::value(hardware, &value)?);
        }
        Ok(self.host.get_mut(input))
    }
}

/// The input that takes an output in the next run: `present.0.key` becomes `past_key_values.0.key`.
pub(crate) fn next_input(output: &str) -> Option<String> {
    output.strip_prefix("present.").map(|rest| format!("past_key_values.{rest}"))
}

/// The output that an input takes in the next run.
pub(crate) fn output_of(input: &str) -> String {
    input.replacen("past_key_values.", "present.", 1)
}

impl fmt::Debug for KvState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.host.keys()).entries(self.values.keys()).finish()
    }
}
