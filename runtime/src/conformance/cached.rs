//! A golden once more, token by token: what a cache holds must give what the whole text gave.

use ndarray::{ArrayD, Axis, Slice};

use crate::GraphKind;
use crate::golden::Case;
use crate::graph::dims::BATCH;
use crate::graph::{Dim, Input, InputDefault};
use crate::value::selected;
use crate::{AnyModel, Cache, Result, Value, Values};

const SEQUENCE: &str = "sequence";

/// Outputs of a prefill and of what follows it, joined, by the names of the golden's, and states as [`state_name`] has them; what is
/// wanted stands where padding is.
pub(super) struct Steps {
    /// Of single steps.
    pub single: Values,
    /// Of all that follows in one run, which was taken back before the single steps: what assisted decoding does. None on backends
    /// that compile a graph for each number of tokens.
    pub together: Option<Values>,
}

/// Runs a golden by prefill and steps. None where the head has no steps.
pub(super) fn steps(loaded: &dyn AnyModel, case: &Case, want: &Values) -> Result<Option<Steps>> {
    let kinds = loaded.graph_kinds();
    if !kinds.contains(&GraphKind::Decode) {
        return Ok(None);
    }
    let mut cache = Cache::new();
    let inputs = loaded.inputs_of(GraphKind::Decode)?;
    // What every step takes of the encoder, such as which of its positions are padding.
    let mut encoded = Values::new();
    if kinds.contains(&GraphKind::Encoder) {
        let own = loaded.inputs_of(GraphKind::Encoder)?;
        // A text alone of a decoder whose layers attend to images, and are passed over where there are none.
        if kinds.contains(&GraphKind::TextOnly) && !has_all(&own, case) {
            return Ok(None);
        }
        let own = chosen(&own, case, None);
        encoded = loaded.run_cached(GraphKind::Encoder, own, &mut cache)?;
        encoded.retain(|name, _| inputs.iter().any(|input| input.name == *name));
    }
    let Some(length) = inputs.iter().find_map(|input| length(input, case)) else {
        return Ok(None);
    };
    // Of a text without images, the first step is as all others.
    let begins = kinds.contains(&GraphKind::Prefill) && has_all(&loaded.inputs_of(GraphKind::Prefill)?, case);
    let prefill = if length > 3 { length - 2 } else { 1 };
    let (mut joined, mut together) = (Values::new(), None);
    let mut deltas: Option<ArrayD<i64>> = None;
    let mut start = 0;
    for end in prefill..=length {
        let kind = if start == 0 && begins { GraphKind::Prefill } else { GraphKind::Decode };
        let given = |end: usize, deltas: &Option<ArrayD<i64>>| -> Result<Values> {
            let mut given = match kind {
                GraphKind::Prefill => chosen(&loaded.inputs_of(kind)?, case, Some((start, end))),
                _ => for_each_encoded(chosen(&inputs, case, Some((start, end))), &inputs),
            };
            given.extend(encoded.clone());
            if let Some(deltas) = deltas {
                given.extend(positions(case, deltas, start, end));
            }
            Ok(given)
        };
        if start == prefill && length > prefill + 1 && !loaded.needs_fixed_shapes() {
            let saved = cache.saved()?;
            let outputs = loaded.run_cached(kind, given(length, &deltas)?, &mut cache)?;
            let left = states(&cache, case)?;
            match saved {
                Some(saved) => cache.restore(saved)?,
                None => cache.crop(length - start)?,
            }
            let mut whole = joined.clone();
            join(&mut whole, outputs, case);
            whole.extend(left);
            together = Some(whole);
        }
        let outputs = loaded.run_cached(kind, given(end, &deltas)?, &mut cache)?;
        if let Some(Value::I64(found)) = outputs.get("rope_deltas") {
            deltas = Some(found.clone());
        }
        join(&mut joined, outputs, case);
        start = end;
    }
    joined.extend(states(&cache, case)?);
    let seen = ["decoder_attention_mask", "attention_mask"].iter().find_map(|name| {
        inputs.iter().find(|input| input.name == **name && grows(input).is_some())?;
        case.inputs.get(*name)
    });
    if let Some(Value::I64(seen)) = seen {
        for (name, got) in joined.iter_mut().chain(together.iter_mut().flatten()) {
            if let Some(want) = want.get(name) {
                leave_out_padding(got, want, seen);
            }
        }
    }
    Ok((!joined.is_empty()).then_some(Steps { single: joined, together }))
}

/// The states that a cache holds, of those that the golden has.
fn states(cache: &Cache, case: &Case) -> Result<Values> {
    let Some(saved) = cache.saved()?.filter(|_| !case.states.is_empty()) else { return Ok(Values::new()) };
    let named = saved.values().iter().filter_map(|(input, value)| {
        let name = input.strip_prefix("past_key_values.")?;
        case.states.contains_key(name).then(|| (state_name(name), value.clone()))
    });
    Ok(named.collect())
}

/// What a state is called beside outputs.
fn state_name(name: &str) -> String {
    format!("state.{name}")
}

/// The states of a golden by their names beside outputs.
pub(super) fn wanted_states(case: &Case) -> Values {
    case.states.iter().map(|(name, value)| (state_name(name), value.clone())).collect()
}

/// Appends a run's outputs to those of the runs before, of those that the golden has.
fn join(joined: &mut Values, outputs: Values, case: &Case) {
    for (name, value) in outputs.into_iter().filter(|(name, _)| case.outputs.contains_key(name)) {
        let whole = match joined.remove(&name) {
            Some(before) => append(before, value),
            None => value,
        };
        joined.insert(name, whole);
    }
}

/// Positions of the tokens from `start` to `end`, which differ by `deltas` from how many tokens stand before them.
fn positions(case: &Case, deltas: &ArrayD<i64>, start: usize, end: usize) -> Option<(String, Value)> {
    let Value::I64(mask) = case.inputs.get("attention_mask")? else { return None };
    let mut counted = mask.clone();
    counted.accumulate_axis_inplace(Axis(1), |before, count| *count += before);
    let after = counted.slice_axis(Axis(1), Slice::from(start..end)).to_owned();
    Some(("position_ids".to_owned(), Value::I64(after - 1 + deltas)))
}

/// Texts of which each is written for several of the encoder's rows (passages of a question): in steps each of these has its own.
fn for_each_encoded(given: Values, inputs: &[Input]) -> Values {
    let by_row =
        |name: &str| inputs.iter().any(|input| input.name == name && input.shape.first() == Some(&BATCH));
    let rows = |value: &Value| value.shape().first().copied().unwrap_or(1).max(1);
    let all = given.iter().filter(|(name, _)| by_row(name)).map(|(_, value)| rows(value)).max().unwrap_or(1);
    let repeated = given.into_iter().map(|(name, value)| {
        let each = if by_row(&name) { all / rows(&value) } else { 1 };
        (name, if each > 1 { repeated(&value, each) } else { value })
    });
    repeated.collect()
}

/// Each row `n` times.
fn repeated(value: &Value, n: usize) -> Value {
    let rows = value.shape().first().copied().unwrap_or(0);
    selected(value, 0, &(0..rows).flat_map(|row| vec![row; n]).collect::<Vec<_>>())
}

/// Whether the case has all that a part needs.
fn has_all(inputs: &[Input], case: &Case) -> bool {
    let mut needed = inputs.iter().filter(|input| input.default.is_none() && input.computed.is_none());
    let mut apart =
        inputs.iter().filter(|input| matches!(input.default, Some(InputDefault::LeftOut { .. }))).peekable();
    needed.all(|input| case.inputs.contains_key(&input.name))
        && (apart.peek().is_none() || apart.any(|input| case.inputs.contains_key(&input.name)))
}

/// Padding that sees nothing but padding gets the mean of all values, and a step has fewer of them: nobody reads it.
fn leave_out_padding(got: &mut Value, want: &Value, seen: &ArrayD<i64>) {
    let (Value::F32(got), Value::F32(want)) = (got, want) else { return };
    if got.shape() != want.shape() || seen.ndim() != 2 || got.shape().get(..2) != Some(seen.shape()) {
        return;
    }
    for (index, _) in seen.indexed_iter().filter(|(_, seen)| **seen == 0) {
        let want = want.index_axis(Axis(0), index[0]);
        let mut got = got.index_axis_mut(Axis(0), index[0]);
        got.index_axis_mut(Axis(0), index[1]).assign(&want.index_axis(Axis(0), index[1]));
    }
}

/// The axis that grows with the cache.
fn grows(input: &Input) -> Option<usize> {
    input.shape.iter().position(|dim| matches!(dim, Dim::Sum(_)) && dim.mentions("past"))
}

/// How many tokens the case has, by an input that has them as an axis.
fn length(input: &Input, case: &Case) -> Option<usize> {
    let axis = axis(input)?;
    case.inputs.get(&input.name)?.shape().get(axis).copied()
}

fn axis(input: &Input) -> Option<usize> {
    input.shape.iter().position(|dim| matches!(dim, Dim::Symbol(name) if name == SEQUENCE))
}

/// The case's inputs that a part takes: those of new tokens from `start` to `end`, masks up to `end`, others whole.
fn chosen(inputs: &[Input], case: &Case, range: Option<(usize, usize)>) -> Values {
    let mut chosen = Values::new();
    for input in inputs {
        let found = case.inputs.get(&input.name).or_else(|| match input.name.as_str() {
            "encoder_attention_mask" => case.inputs.get("attention_mask"),
            _ => None,
        });
        let Some(value) = found else { continue };
        let value = match (range, axis(input), grows(input)) {
            (Some((start, end)), Some(axis), _) => cut(value, axis, start, end),
            (Some((_, end)), None, Some(axis)) => cut(value, axis, 0, end),
            _ => value.clone(),
        };
        chosen.insert(input.name.clone(), value);
    }
    chosen
}

fn cut(value: &Value, axis: usize, start: usize, end: usize) -> Value {
    let range = Slice::from(start..end);
    match value {
        Value::F32(a) => Value::F32(a.slice_axis(Axis(axis), range).to_owned()),
        Value::I64(a) => Value::I64(a.slice_axis(Axis(axis), range).to_owned()),
        Value::Bool(a) => Value::Bool(a.slice_axis(Axis(axis), range).to_owned()),
    }
}

/// Outputs of later positions after those of earlier ones; what has no positions is that of the last step.
fn append(before: Value, after: Value) -> Value {
    match (before, after) {
        (Value::F32(a), Value::F32(b)) if a.ndim() > 1 => {
            match ndarray::concatenate(Axis(1), &[a.view(), b.view()]) {
                Ok(joined) => Value::F32(joined.as_standard_layout().into_owned()),
                Err(_) => Value::F32(b),
            }
        }
        (_, after) => after,
    }
}
