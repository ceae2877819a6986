//! The KV cache between runs: keys and values of past tokens, and states of fixed size.

use std::collections::BTreeMap;

use super::executable::{CachedShapes, Executable};
use super::kv_bucket;
use crate::engine::KvState;
use crate::graph::{Input, InputDefault};
use crate::value::last_positions;
use crate::{Error, Hardware, Result, Value, Values};

/// The KV cache of a decoder's past tokens; its tensors stay in the engine.
#[derive(Debug, Default)]
pub struct Cache {
    pub(super) state: KvState,
    pub(super) past: usize,
    /// The positions that its tensors have where these are of fixed lengths: padding, and those that are cached.
    pub(super) capacity: usize,
    pub(super) rows: usize,
    /// The lengths of the encoder's outputs.
    pub(super) lengths: BTreeMap<String, usize>,
    /// The shapes of what the encoder left.
    pub(super) shapes: CachedShapes,
    /// How its tensors lie, once there are some.
    pub(super) layout: Option<Layout>,
}

/// How cached tensors lie.
#[derive(Debug)]
pub(super) struct Layout {
    /// The axis of positions, by the inputs that take keys and values.
    positions: BTreeMap<String, usize>,
    /// The inputs that take states, which have no positions.
    states: Vec<String>,
    /// The backend that holds them.
    hardware: Hardware,
    /// Whether they are padded before the first position, to a bucket.
    in_buckets: bool,
}

/// The states of a [`Cache`] at a number of positions.
#[derive(Debug)]
pub(crate) struct SavedStates {
    states: Values,
    past: usize,
}

impl Cache {
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of cached positions, padding included.
    pub fn len(&self) -> usize {
        self.past
    }

    /// The bytes of what is cached, as the engine holds it.
    pub fn bytes(&self) -> usize {
        self.state.bytes()
    }

    /// Whether nothing is cached.
    pub fn is_empty(&self) -> bool {
        self.past == 0
    }

    /// Takes the last positions off, of all rows (`DynamicCache.crop`): what follows goes on from those before.
    ///
    /// # Errors
    /// When there are not so many, when it holds states that have no positions (`conv_states`, `recurrent_states`), or the engine does
    /// not give its tensors back.
    pub fn crop(&mut self, count: usize) -> Result<()> {
        if let Some(state) = self.layout.iter().find_map(|layout| layout.states.first()) {
            let problem = format!("holds `{state}`, from which no tokens can be taken off");
            return Err(Error::input(
                "cache",
                problem,
                "run the tokens before them once more, in a new cache",
            ));
        }
        self.crop_positions(count)
    }

    fn crop_positions(&mut self, count: usize) -> Result<()> {
        let Some(kept) = self.past.checked_sub(count) else {
            let problem = format!("has {} positions, fewer than {count}", self.past);
            return Err(Error::input("cache", problem, "take off those that there are"));
        };
        let Some(Layout { positions, hardware, in_buckets, .. }) = &self.layout else { return Ok(()) };
        if count == 0 {
            return Ok(());
        }
        for (input, axis) in positions {
            self.state.crop(*hardware, input, *axis, count)?;
        }
        if *in_buckets {
            self.capacity -= count;
        }
        self.past = kept;
        Ok(())
    }

    /// The keys and values of a layer (`past_key_values.{layer}.key`), `[batch, heads, positions, size]`; none of a layer that
    /// caches none.
    ///
    /// # Errors
    /// When the cache is quantized, or the engine does not give its tensors back.
    pub(crate) fn key_value(&self, layer: usize) -> Result<Option<[Value; 2]>> {
        let Some(layout) = &self.layout else { return Ok(None) };
        let of = |what: &str| -> Result<Option<Value>> {
            let input = format!("past_key_values.{layer}.{what}");
            let Some(&axis) = layout.positions.get(&input) else { return Ok(None) };
            if layout.positions.contains_key(&format!("{input}_scale")) {
                let problem = "is quantized: keys and values cannot be read from it";
                return Err(Error::input(
                    "kv_cache",
                    problem,
                    "leave it out, or generate without this assistant",
                ));
            }
            let value = self.state.copy(layout.hardware, &input)?;
            Ok(value
                .map(|value| if layout.in_buckets { last_positions(&value, axis, self.past) } else { value }))
        };
        Ok(of("key")?.zip(of("value")?).map(|(key, value)| [key, value]))
    }

    /// A copy of its states, to go back to; none where it holds keys and values alone.
    ///
    /// # Errors
    /// When the engine does not give its tensors back.
    pub(crate) fn saved(&self) -> Result<Option<SavedStates>> {
        let mut states = Values::new();
        let Some(layout) = &self.layout else { return Ok(None) };
        for input in &layout.states {
            if let Some(value) = self.state.copy(layout.hardware, input)? {
                states.insert(input.clone(), value);
            }
        }
        Ok((!states.is_empty()).then_some(SavedStates { states, past: self.past }))
    }

    /// Goes back to what was saved; later positions are taken off.
    ///
    /// # Errors
    /// As [`Cache::crop`].
    pub(crate) fn restore(&mut self, saved: SavedStates) -> Result<()> {
        self.crop_positions(self.past.saturating_sub(saved.past))?;
        saved.states.into_iter().for_each(|(input, value)| self.state.set(&input, value));
        Ok(())
    }
}

impl SavedStates {
    /// The states by the inputs that take them, `past_key_values.{layer}.{what}`.
    pub(crate) fn values(&self) -> &Values {
        &self.states
    }
}

impl Layout {
    pub(super) fn of(inputs: &[Input], executable: &Executable) -> Self {
        let cached = || inputs.iter().filter(|input| input.name.starts_with("past_key_values."));
        let positions = cached().filter_map(|input| Some((input.name.clone(), kv_bucket::axis(input)?)));
        let states = cached()
            .filter(|input| input.default == Some(InputDefault::Past) && kv_bucket::axis(input).is_none());
        Self {
            positions: positions.collect(),
            states: states.map(|input| input.name.clone()).collect(),
            hardware: executable.hardware(),
            in_buckets: executable.fixed_on().is_some(),
        }
    }
}
