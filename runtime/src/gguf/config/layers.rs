//! What differs by layer, by the tensors of each and by keys that have a number for each.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::{MOST_LAYERS, Result, by_layer, end_of_layers, layer_count, numbers, optional, required};
use crate::gguf::Gguf;

/// The layers with a tensor.
pub(super) fn with(gguf: &Gguf, name: &str) -> BTreeSet<u64> {
    let end = end_of_layers(gguf).unwrap_or(MOST_LAYERS).min(MOST_LAYERS);
    let of_layer = |tensor: &str| {
        let (layer, found) = tensor.strip_prefix("blk.")?.split_once('.')?;
        layer.parse::<u64>().ok().filter(|layer| found == name && *layer < end)
    };
    gguf.files.iter().flat_map(|file| &file.tensors).filter_map(|tensor| of_layer(&tensor.name)).collect()
}

/// Of how many layers one has a tensor; more than there are where not two have.
pub(super) fn period(gguf: &Gguf, name: &str) -> Result<u64> {
    let found: Vec<_> = with(gguf, name).into_iter().collect();
    let [first, second, ..] = found[..] else { return Ok(count(gguf)? + 1) };
    let period = second - first;
    let next = found.last().map_or(0, |last| last + period);
    let regular = found.windows(2).all(|pair| pair[1] - pair[0] == period);
    if regular && first < period && next >= count(gguf)? {
        return Ok(period);
    }
    Err(gguf.wrong(format!("has `{name}` in the layers {found:?}, which no such model has")))
}

/// The first layer with a tensor; behind all others where none has.
pub(super) fn offset(gguf: &Gguf, name: &str) -> Result<u64> {
    with(gguf, name).first().copied().map_or_else(|| count(gguf), Ok)
}

/// A word for each layer, by the first of some tensors that it has.
pub(super) fn kinds(gguf: &Gguf, kinds: &[(&str, &str)]) -> Result<Json> {
    let known: Vec<_> = kinds.iter().map(|(name, word)| (with(gguf, name), *word)).collect();
    let of_layer = |layer| {
        let kind = known.iter().find(|(layers, _)| layers.contains(&layer)).map(|(_, word)| *word);
        kind.ok_or_else(|| {
            let names: Vec<_> = kinds.iter().map(|(name, _)| *name).collect();
            gguf.wrong(format!("has none of the tensors {} in layer {layer}", names.join(", ")))
        })
    };
    (0..count(gguf)?).map(of_layer).collect()
}

/// A key's number for each layer, or that of all.
pub(super) fn of_all(gguf: &Gguf, key: &str) -> Result<Vec<u64>> {
    let many = numbers(gguf, key).filter(|numbers| !numbers.is_empty());
    match many {
        Some(numbers) => Ok(numbers.into_iter().map(|number| number as u64).collect()),
        None => Ok(vec![required(gguf, &[key])?.as_u64().unwrap_or(0)]),
    }
}

/// Which layers have a window: as a list says, else all of so many but the first; none of a file without windows.
pub(super) fn windows(gguf: &Gguf, period: u64) -> Result<Json> {
    let key = "attention.sliding_window_pattern";
    let word = |slides| if slides { "sliding_attention" } else { "full_attention" };
    if let Some(list) = by_layer(gguf, key, |window| word(window != 0.0)) {
        return Ok(list);
    }
    let window = optional(gguf, &["attention.sliding_window"])?.and_then(|window| window.as_u64());
    let period = optional(gguf, &[key])?.and_then(|period| period.as_u64()).unwrap_or(period).max(1);
    let slides = |layer: u64| window.is_some_and(|window| window > 0) && !layer.is_multiple_of(period);
    Ok((0..count(gguf)?).map(|layer| word(slides(layer))).collect())
}

/// The base of each layer's rotary position embeddings, 0 of one without.
pub(super) fn bases(gguf: &Gguf, key: &str) -> Result<Option<Json>> {
    let base = optional(gguf, &["rope.freq_base"])?.unwrap_or_else(|| json!(10_000.0));
    let of_layer = |turns| if turns == 0.0 { json!(0.0) } else { base.clone() };
    Ok(numbers(gguf, key).map(|numbers| numbers.into_iter().map(of_layer).collect()))
}

/// Numbers as whole ones.
pub(super) fn whole_numbers(numbers: &[f64]) -> Json {
    numbers.iter().map(|number| *number as u64).collect()
}

/// A key's number for the layers whose attention slides, or for the others; none where the file has no such layer.
pub(super) fn of_sliding(gguf: &Gguf, key: &str, slides: bool) -> Result<Option<u64>> {
    let found = of_all(gguf, key)?;
    let [one] = found[..] else {
        let windows = numbers(gguf, "attention.sliding_window_pattern").unwrap_or_default();
        let mut layers = windows.iter().zip(found);
        return Ok(layers.find(|(window, _)| (**window != 0.0) == slides).map(|(_, number)| number));
    };
    Ok(Some(one))
}

fn count(gguf: &Gguf) -> Result<u64> {
    Ok(layer_count(gguf)?.min(MOST_LAYERS))
}
