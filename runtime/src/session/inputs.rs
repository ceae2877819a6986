//! Inputs of a run: known names, right dtypes and shapes, ids in range; defaults for what is left out.

use std::collections::BTreeMap;

use ndarray::{ArrayD, Axis, Dimension, IxDyn};

use crate::graph::{Dim, Dtype, Input, InputDefault, Limit, show};
use crate::multimodal::LEFT_OUT;
use crate::value::last_positions;
use crate::{Error, Result, Value, Values};

/// The symbol of what is cached.
const PAST: &str = "past";
/// The symbol of the items that are cached.
const PAST_BATCH: &str = "past_batch";

/// How long axes may be.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    /// The longest.
    pub most: Vec<Limit>,
    /// Lengths of which something must be left.
    pub some: Vec<Dim>,
}

impl Limits {
    fn check(&self, symbols: &BTreeMap<String, (usize, String)>) -> Result<()> {
        for limit in &self.most {
            if let Some((length, name)) =
                symbols.get(&limit.symbol).filter(|(length, _)| *length > limit.most)
            {
                let problem = format!(
                    "{} is {length}, but the model has {} ({})",
                    limit.symbol, limit.most, limit.field
                );
                let help = "shorten the input: truncate it or split it into parts";
                return Err(Error::input(name.as_str(), problem, help));
            }
        }
        let left = |dim: &Dim, other: Option<(&str, usize)>| {
            let known = |symbol: &str| symbols.get(symbol).map(|(length, _)| *length);
            dim.evaluate(&|symbol| match other {
                Some((name, length)) if name == symbol => Some(length),
                _ => known(symbol),
            })
        };
        let Some(nothing) = self.some.iter().find(|dim| left(dim, None) == Some(0)) else { return Ok(()) };
        let Some((symbol, (length, name))) = symbols.iter().find(|(symbol, _)| nothing.mentions(symbol))
        else {
            return Ok(());
        };
        let enough =
            |length: &usize| self.some.iter().all(|dim| left(dim, Some((symbol, *length))) != Some(0));
        let help = match (length + 1..length + MOST_TRIED).find(enough) {
            Some(least) => format!("give at least {least}, such as by padding"),
            None => "give more".to_owned(),
        };
        Err(Error::input(
            name.as_str(),
            format!("{symbol} is {length}, too few for the model's convolutions"),
            help,
        ))
    }
}

/// How far to look for a length that is enough.
const MOST_TRIED: usize = 100_000;

/// Checks what was given and fills in the rest; lengths that are `known` already are those of what is cached, in
/// inputs that the engine has `kept`.
pub(super) fn complete(
    inputs: &[Input],
    limits: &Limits,
    mut given: Values,
    known: &BTreeMap<String, usize>,
    kept: &dyn Fn(&str) -> bool,
) -> Result<Values> {
    if let Some(name) = given.keys().find(|name| inputs.iter().all(|input| input.name != **name)) {
        let known: Vec<_> = inputs.iter().map(|input| input.name.as_str()).collect();
        let help = format!("it takes {}", known.join(", "));
        return Err(Error::input(name.as_str(), "this model does not take it", help));
    }
    let known = known.iter().map(|(symbol, length)| (symbol.clone(), (*length, "the cache".to_owned())));
    let mut symbols: BTreeMap<_, _> = known.collect();
    for symbol in [PAST, PAST_BATCH] {
        symbols.entry(symbol.to_owned()).or_insert((0, "the cache".to_owned()));
    }
    leave_out(inputs, &mut given, kept);
    for input in inputs.iter().filter(|input| input.allows_integers) {
        if let Some(value) = given.get_mut(&input.name)
            && let Value::I64(numbers) = value
        {
            *value = Value::F32(numbers.mapv(|number| number as f32));
        }
    }
    for input in inputs.iter().filter(|input| input.trailing) {
        cut_to_new(input, inputs, &mut given);
    }
    for input in inputs.iter().filter(|input| !kept(&input.name)) {
        match given.get(&input.name) {
            Some(value) => check(input, value, &mut symbols)?,
            None if input.default.is_none() && input.computed.is_none() => {
                let help = format!("give it as {} {}", input.dtype, show(&input.shape));
                return Err(Error::input(&input.name, "is required and was not given", help));
            }
            None => {}
        }
    }
    for input in inputs {
        if let (None, Some(computed)) = (given.get(&input.name), &input.computed) {
            let value = (computed.0)(&given)?;
            check(input, &value, &mut symbols)?;
            given.insert(input.name.clone(), value);
        }
    }
    given.remove(LEFT_OUT);
    limits.check(&symbols)?;
    for input in inputs {
        if let (None, false, Some(default)) = (given.get(&input.name), kept(&input.name), input.default) {
            given.insert(input.name.clone(), default_value(input, default, &symbols, &given)?);
        }
    }
    Ok(given)
}

/// Cuts off the beginning of an input `[batch, past + sequence]` of which only the new positions are read: as many as the
/// required input of the same shape has, the tokens' ids.
fn cut_to_new(input: &Input, inputs: &[Input], given: &mut Values) {
    let ids = inputs.iter().find(|other| other.shape == input.shape && other.default.is_none());
    let new = ids.and_then(|ids| given.get(&ids.name)?.shape().last().copied());
    if let (Some(new), Some(value)) = (new, given.get_mut(&input.name))
        && let Some(axis) = value.shape().len().checked_sub(1)
        && value.shape()[axis] > new
    {
        *value = last_positions(value, axis, new);
    }
}

/// Gives inputs of modalities that are left out what stands for them, and says so to what is computed of them.
fn leave_out(inputs: &[Input], given: &mut Values, kept: &dyn Fn(&str) -> bool) {
    for input in inputs {
        let Some(InputDefault::LeftOut { length, fill }) = input.default else { continue };
        if kept(&input.name) || given.contains_key(&input.name) {
            continue;
        }
        let shape: Vec<usize> = input.shape.iter().map(|dim| dim.fixed().unwrap_or(length)).collect();
        let value = match input.dtype {
            Dtype::F32 => Value::F32(ArrayD::from_elem(shape, fill as f32)),
            Dtype::Bool => Value::Bool(ArrayD::from_elem(shape, fill != 0)),
            _ => Value::I64(ArrayD::from_elem(shape, fill)),
        };
        given.insert(input.name.clone(), value);
        given.insert(LEFT_OUT.to_owned(), Value::Bool(ArrayD::from_elem(IxDyn(&[]), true)));
    }
}

/// Checks one input and learns the lengths of its symbolic axes.
fn check(input: &Input, value: &Value, symbols: &mut BTreeMap<String, (usize, String)>) -> Result<()> {
    let wanted = || format!("give it as {} {}", input.dtype, show(&input.shape));
    if value.dtype() != input.dtype {
        return Err(Error::input(
            &input.name,
            format!("is {}, not {}", value.dtype(), input.dtype),
            wanted(),
        ));
    }
    let shape = value.shape();
    let misfit = |why: String| Error::input(&input.name, format!("has shape {shape:?}: {why}"), wanted());
    if shape.len() != input.shape.len() {
        return Err(misfit(format!("{} axes are needed", input.shape.len())));
    }
    for (dim, &length) in input.shape.iter().zip(shape) {
        match dim {
            _ if length == 0 => return Err(misfit(format!("{dim} is 0; there is nothing to run"))),
            Dim::Fixed(n) if *n != length => return Err(misfit(format!("{n} is needed, not {length}"))),
            Dim::Symbol(symbol) => match symbols.get(symbol.as_ref()) {
                Some((known, by)) if *known != length => {
                    return Err(misfit(format!("{symbol} is {length} here and {known} in {by}")));
                }
                Some(_) => {}
                None => {
                    symbols.insert(symbol.to_string(), (length, input.name.clone()));
                }
            },
            Dim::Sum(_) => {
                let known = dim.evaluate(&|symbol| symbols.get(symbol).map(|(length, _)| *length));
                if let Some(known) = known.filter(|known| *known != length) {
                    return Err(misfit(format!("{dim} is {known}, not {length}")));
                }
            }
            Dim::Fixed(_) => {}
        }
    }
    if let (Some((limit, field)), Value::I64(ids)) = (input.below, value)
        && let Some(id) = ids.iter().find(|id| usize::try_from(**id).map_or(true, |id| id >= limit))
    {
        let problem = format!("holds {id}, but {field} is {limit}");
        let help = format!("values from 0 to {} are allowed", limit.saturating_sub(1));
        return Err(Error::input(&input.name, problem, help));
    }
    if let (Some((rows, field)), Some(length)) = (input.row_multiple, shape.first())
        && length % rows.max(1) != 0
    {
        let problem = format!("has {length} rows, but {field} is {rows}");
        return Err(Error::input(&input.name, problem, format!("give a multiple of {rows} rows")));
    }
    if let (Some((id, stands)), Value::I64(ids)) = (input.forbidden_token, value)
        && ids.iter().any(|found| *found == id as i64)
    {
        let problem = format!("holds {id}, which stands for {stands}, and there are none");
        return Err(Error::input(
            &input.name,
            problem,
            format!("give the {stands} as well, or leave it out"),
        ));
    }
    Ok(())
}

/// The reference's default for an input that was left out.
fn default_value(
    input: &Input,
    default: InputDefault,
    symbols: &BTreeMap<String, (usize, String)>,
    given: &Values,
) -> Result<Value> {
    let length = |dim: &Dim| {
        dim.evaluate(&|symbol| symbols.get(symbol).map(|(length, _)| *length)).ok_or_else(|| {
            Error::input(
                &input.name,
                format!("its length {dim} cannot be told"),
                "give it, or the other inputs",
            )
        })
    };
    let shape = IxDyn(&input.shape.iter().map(length).collect::<Result<Vec<_>>>()?);
    let last = shape[shape.ndim() - 1].max(1);
    let integers = |of: &dyn Fn(usize) -> i64| {
        let mut index = 0;
        ArrayD::from_shape_simple_fn(shape.clone(), || {
            index += 1;
            of(index - 1)
        })
    };
    let everywhere = match default {
        InputDefault::Ones => 1,
        InputDefault::Full(number) => number,
        _ => 0,
    };
    Ok(match (input.dtype, default) {
        (Dtype::F32, _) => Value::F32(ArrayD::from_elem(shape, everywhere as f32)),
        (Dtype::Bool, _) => Value::Bool(ArrayD::from_elem(shape, everywhere != 0)),
        (
            _,
            InputDefault::Zeros
            | InputDefault::LeftOut { .. }
            | InputDefault::Past
            | InputDefault::Ones
            | InputDefault::Full(_),
        ) => Value::I64(ArrayD::from_elem(shape, everywhere)),
        (_, InputDefault::Positions | InputDefault::PositionsFrom(_)) => {
            let first = if let InputDefault::PositionsFrom(first) = default { first } else { 0 };
            let past = symbols.get(PAST).map_or(0, |(past, _)| *past);
            Value::I64(integers(&|index| (first + past + index % last) as i64))
        }
        (_, InputDefault::TokenPositions { ids, padding }) => match given.get(ids) {
            Some(Value::I64(ids)) => {
                let past = symbols.get(PAST).map_or(0, |(past, _)| *past);
                Value::I64(token_positions(ids, padding as i64, past as i64))
            }
            _ => {
                return Err(Error::input(&input.name, format!("is counted by {ids}"), format!("give {ids}")));
            }
        },
    })
}

/// Counts tokens along the last axis, from the number after the padding's id and the cached ones; padding keeps its id.
fn token_positions(ids: &ArrayD<i64>, padding: i64, past: i64) -> ArrayD<i64> {
    let mut positions = ids.clone();
    for mut row in positions.lanes_mut(Axis(ids.ndim() - 1)) {
        let mut position = padding + past;
        for id in row.iter_mut().filter(|id| **id != padding) {
            position += 1;
            *id = position;
        }
    }
    positions
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;
    use crate::dims;
    use crate::graph::dims::{BATCH, SEQUENCE};
    use crate::graph::{Conv, Graph};

    /// What a graph of these inputs says of these values.
    fn said(inputs: &[Input], limits: &Limits, given: &[(&str, Value)]) -> String {
        let given = given.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        complete(inputs, limits, given, &BTreeMap::new(), &|_| false).unwrap_err().to_string()
    }

    #[test]
    fn too_few_samples_for_convolutions() {
        let mut g = Graph::new();
        let mut x = g.input(Input::f32("input_values", dims![BATCH, 1, SEQUENCE]));
        for (kernel, stride) in [(10, 5), (3, 2)] {
            let conv = Conv::new(1, &[kernel]).stride(&[stride]);
            x = g.conv(&g.scope("layer").index(kernel), &x, &conv).unwrap();
        }
        let limits = Limits { most: vec![], some: g.lengths.clone() };
        let samples = |length: usize| Value::F32(ArrayD::zeros(IxDyn(&[2, 1, length])));
        insta::assert_snapshot!(said(g.inputs(), &limits, &[("input_values", samples(3))]), @r"
        input input_values: sequence is 3, too few for the model's convolutions
          help: give at least 20, such as by padding
        ");
        let enough = Values::from([("input_values".to_owned(), samples(20))]);
        assert!(complete(g.inputs(), &limits, enough, &BTreeMap::new(), &|_| false).is_ok());
    }

    #[test]
    fn tokens_of_what_is_not_given_and_frames_of_half_a_video() {
        let mut g = Graph::new();
        g.input(Input::i64("input_ids", dims![BATCH, SEQUENCE]));
        g.forbid_token("input_ids", 9, "images");
        let ids = Value::I64(array![[4, 9, 9]].into_dyn());
        insta::assert_snapshot!(said(g.inputs(), &Limits::default(), &[("input_ids", ids)]), @r"
        input input_ids: holds 9, which stands for images, and there are none
          help: give the images as well, or leave it out
        ");
        let mut g = Graph::new();
        g.input(Input::f32("pixel_values", dims![BATCH, 3]));
        g.row_multiple("pixel_values", 4, "num_frames");
        let pixels = Value::F32(ArrayD::zeros(IxDyn(&[6, 3])));
        insta::assert_snapshot!(said(g.inputs(), &Limits::default(), &[("pixel_values", pixels)]), @r"
        input pixel_values: has 6 rows, but num_frames is 4
          help: give a multiple of 4 rows
        ");
    }

    #[test]
    fn whole_numbers_for_floating_point_ones_where_allowed() {
        let mut g = Graph::new();
        g.input(Input::f32("bbox", dims![BATCH, 2]));
        let boxes = || Values::from([("bbox".to_owned(), Value::I64(array![[3, -4]].into_dyn()))]);
        let completed =
            |g: &Graph| complete(g.inputs(), &Limits::default(), boxes(), &BTreeMap::new(), &|_| false);
        assert!(completed(&g).unwrap_err().to_string().contains("is i64, not f32"));
        g.allow_integers("bbox");
        assert_eq!(completed(&g).unwrap()["bbox"], Value::F32(array![[3.0, -4.0]].into_dyn()));
    }

    #[test]
    fn padding_is_not_counted() {
        let ids = array![[5, 6, 7, 1], [1, 1, 8, 9]].into_dyn();
        assert_eq!(token_positions(&ids, 1, 0), array![[2, 3, 4, 1], [1, 1, 2, 3]].into_dyn());
        assert_eq!(token_positions(&ids, 1, 3), array![[5, 6, 7, 1], [1, 1, 5, 6]].into_dyn());
    }
}
