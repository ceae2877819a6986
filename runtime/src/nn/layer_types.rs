//! What differs by layer: `layer_types`, rope parameters and attention scale by layer index.

use std::collections::BTreeMap;

use super::RopeParameters;

/// Whether a layer is of a kind, where the list says of what kind each is.
pub fn is_layer_kind<'a>(
    kinds: impl IntoIterator<Item = &'a Vec<String>>,
    index: usize,
    kind: &str,
) -> Option<bool> {
    kinds.into_iter().next()?.get(index).map(|found| found == kind)
}

/// What a list says of a layer, where it says anything: a number, a truth value, or a text.
pub fn of_layer<'a, T: LayerEntry + 'a>(
    list: impl IntoIterator<Item = &'a Vec<T>>,
    index: usize,
) -> Option<T::Read<'a>> {
    list.into_iter().next()?.get(index).map(LayerEntry::read)
}

/// An element of a list with one for each layer.
pub trait LayerEntry {
    /// What it is read as.
    type Read<'a>
    where
        Self: 'a;

    /// Reads it.
    fn read(&self) -> Self::Read<'_>;
}

/// Elements that are copied.
macro_rules! copied {
    ($($kind:ty),+) => {$(
        impl LayerEntry for $kind {
            type Read<'a> = $kind;

            fn read(&self) -> $kind {
                *self
            }
        }
    )+};
}
copied!(usize, i64, f64, bool);

impl LayerEntry for String {
    type Read<'a> = &'a str;

    fn read(&self) -> &str {
        self
    }
}

/// Rotary embeddings with another base, where that is given.
pub fn rope_with(rope: &RopeParameters, theta: Option<f64>) -> RopeParameters {
    RopeParameters { rope_theta: theta.unwrap_or(rope.rope_theta), ..rope.clone() }
}

/// Rotary embeddings as they are, or where positions are not to be scaled plain ones of the same base (`rope_scaling_layers`).
pub fn rope_scaled(rope: &RopeParameters, scaled: bool) -> RopeParameters {
    if scaled { rope.clone() } else { RopeParameters::of(rope.rope_theta) }
}

/// Rope parameters of a layer type, or default ones of base `theta`.
pub fn layer_type_rope(ropes: &BTreeMap<String, RopeParameters>, kind: &str, theta: f64) -> RopeParameters {
    ropes.get(kind).cloned().unwrap_or_else(|| RopeParameters::of(theta))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_say_what_a_layer_is() {
        let kinds = Some(vec!["full_attention".to_owned(), "sliding_attention".to_owned()]);
        let slides = |index| is_layer_kind(&kinds, index, "sliding_attention");
        assert_eq!([slides(0), slides(1), slides(2)], [Some(false), Some(true), None]);
        assert_eq!(is_layer_kind(&None, 0, "sliding_attention"), None);
        assert_eq!(of_layer(&kinds, 1), Some("sliding_attention"));
        let thetas = vec![1e4, 1e6];
        assert_eq!([of_layer([&thetas], 1), of_layer([&thetas], 2)], [Some(1e6), None]);
    }

    #[test]
    fn ropes_have_bases_by_kind_of_layer() {
        let rope = RopeParameters::of(1e4);
        assert_eq!(rope_with(&rope, None), rope);
        assert_eq!(rope_with(&rope, Some(1e6)), RopeParameters::of(1e6));
        let ropes = BTreeMap::from([("sliding_attention".to_owned(), rope.clone())]);
        assert_eq!(layer_type_rope(&ropes, "sliding_attention", 5e5), rope);
        assert_eq!(layer_type_rope(&ropes, "full_attention", 5e5), RopeParameters::of(5e5));
    }
}
