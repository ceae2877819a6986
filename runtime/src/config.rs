//! What typed configurations are made of besides numbers and texts, and what older files say otherwise.

mod conv_block;
mod depth_bins;
mod layer_numbers;
mod layer_overrides;

use serde::{Deserialize, Deserializer, Serialize};

pub use conv_block::ConvBlock;
pub use depth_bins::DepthBins;
pub use layer_numbers::LayerNumbers;
pub use layer_overrides::LayerOverrides;
pub use serde_json::Value as Json;

use crate::Configuration;

/// Height and width, in pixels or patches: `224`, `[224, 224]` or `{"height": 224, "width": 224}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ImageSize {
    /// From top to bottom.
    pub height: usize,
    /// From left to right.
    pub width: usize,
}

impl ImageSize {
    /// As high as wide.
    pub const fn square(size: usize) -> Self {
        Self { height: size, width: size }
    }

    /// Height times width.
    pub const fn area(self) -> usize {
        self.height.saturating_mul(self.width)
    }
}

impl<'de> Deserialize<'de> for ImageSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a number, or a list or map of height and width")]
        enum Form {
            Square(usize),
            List([usize; 2]),
            Map { height: usize, width: usize },
        }
        Ok(match Form::deserialize(deserializer)? {
            Form::Square(size) => Self::square(size),
            Form::List([height, width]) | Form::Map { height, width } => Self { height, width },
        })
    }
}

/// One length for height and width: `448`, `[448, 448]` or `{"height": 448, "width": 448}`.
///
/// # Errors
/// When they are two.
pub fn square_size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let ImageSize { height, width } = ImageSize::deserialize(deserializer)?;
    if height != width {
        let problem = format!("expected height and width to be the same, not {height} and {width}");
        return Err(serde::de::Error::custom(problem));
    }
    Ok(height)
}

/// The period of a repeating pattern of layers: `4`, or `"LLLG"`, a letter for each (`sliding_window_pattern`); 0, which
/// stands for no pattern, is 1.
///
/// # Errors
/// When it is neither.
pub fn period<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a number of layers, or a letter for each")]
    enum Form {
        Layers(usize),
        Letters(String),
    }
    Ok(match Form::deserialize(deserializer)? {
        Form::Layers(layers) => layers.max(1),
        Form::Letters(letters) => letters.chars().count().max(1),
    })
}

/// Refuses a list, where it is given, with an entry that is none of these words.
///
/// # Errors
/// Names the field, the entry and the words.
pub fn words(name: &str, list: Option<&[String]>, known: &[&str]) -> Result<(), String> {
    let unknown =
        list.iter().copied().flatten().enumerate().find(|(_, word)| !known.contains(&word.as_str()));
    match unknown {
        None => Ok(()),
        Some((index, word)) => {
            Err(format!("{name}: entry {index} is `{word}`, expected one of {}", known.join(", ")))
        }
    }
}

/// Refuses a list, where it is given and not empty, of another length than a field says.
///
/// # Errors
/// Names both fields and both lengths.
pub fn length<T>(name: &str, list: Option<&[T]>, of: &str, expected: usize) -> Result<(), String> {
    match list.map_or(0, <[T]>::len) {
        0 => Ok(()),
        found if found == expected => Ok(()),
        found => Err(format!("{name}: has {found} entries, expected one for each of {of}, {expected}")),
    }
}

/// Refuses a list, where it is given, that is shorter than a field says.
///
/// # Errors
/// Names both fields and both lengths.
pub fn min_length<T>(name: &str, list: Option<&[T]>, of: &str, least: usize) -> Result<(), String> {
    match list.map(<[T]>::len) {
        Some(found) if found < least => {
            Err(format!("{name}: has {found} entries, expected one for each of {of}, {least}"))
        }
        _ => Ok(()),
    }
}

/// Ids of tokens: `2`, `[2, 3]`, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TokenIds(pub Vec<usize>);

impl<'de> Deserialize<'de> for TokenIds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected the id of a token, or a list of them")]
        enum Form {
            One(usize),
            Many(Vec<usize>),
        }
        Ok(Self(match Form::deserialize(deserializer)? {
            Form::One(id) => vec![id],
            Form::Many(ids) => ids,
        }))
    }
}

/// States of a stack of layers: `-2`, or `[-2, 6]`. 0 is what goes into the first layer, -1 what comes out of the last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LayerIndices(pub Vec<i64>);

impl LayerIndices {
    /// Which states these are where there are so many layers, of which each gives one after that which goes in.
    ///
    /// # Errors
    /// What is wrong, when there is no such state or none is named.
    pub fn states(&self, layers: usize) -> Result<Vec<usize>, String> {
        if self.0.is_empty() {
            return Err("it names no layer".to_owned());
        }
        let state = |&index: &i64| {
            let counted = index + if index < 0 { layers as i64 + 1 } else { 0 };
            let state = usize::try_from(counted).ok().filter(|&state| state <= layers);
            state.ok_or_else(|| format!("it names layer {index}, but there are {layers} layers"))
        };
        self.0.iter().map(state).collect()
    }
}

impl<'de> Deserialize<'de> for LayerIndices {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected the number of a layer, or a list of them")]
        enum Form {
            One(i64),
            Many(Vec<i64>),
        }
        Ok(Self(match Form::deserialize(deserializer)? {
            Form::One(layer) => vec![layer],
            Form::Many(layers) => layers,
        }))
    }
}

/// A ratio of whole numbers, as a text: `3/8`, of which neither is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// The number above the line.
    pub numerator: usize,
    /// The number below it.
    pub denominator: usize,
}

impl Ratio {
    /// That share of a number, rounded down.
    pub fn of(self, number: usize) -> usize {
        number.saturating_mul(self.numerator) / self.denominator.max(1)
    }
}

impl std::str::FromStr for Ratio {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse().ok().filter(|number| *number > 0);
        let parts = text.split_once('/').and_then(|(above, below)| number(above).zip(number(below)));
        let (numerator, denominator) =
            parts.ok_or_else(|| format!("`{text}` is no ratio of whole numbers, as `3/8` is"))?;
        Ok(Self { numerator, denominator })
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.numerator, self.denominator)
    }
}

impl Serialize for Ratio {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Ratio {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A size of each layer: `512` for all, or `[32, 64]`, one for each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PerLayer(pub Vec<usize>);

impl PerLayer {
    /// One for each of so many layers.
    ///
    /// # Errors
    /// What is wrong, when there are several and not as many as layers.
    pub fn of_layers(&self, layers: usize) -> Result<Vec<usize>, String> {
        match self.0.as_slice() {
            &[size] => Ok(vec![size; layers]),
            sizes if sizes.len() == layers => Ok(sizes.to_vec()),
            sizes => Err(format!("has {} entries, but there are {layers} layers", sizes.len())),
        }
    }
}

impl<'de> Deserialize<'de> for PerLayer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a number, or a list of one for each layer")]
        enum Form {
            All(usize),
            Each(Vec<usize>),
        }
        Ok(Self(match Form::deserialize(deserializer)? {
            Form::All(size) => vec![size],
            Form::Each(sizes) => sizes,
        }))
    }
}

/// Words: `"c2p|p2c"`, `["c2p", "p2c"]`, or none; `true` is the word `true`, and `false` none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StringSet(pub Vec<String>);

impl StringSet {
    /// Whether a word is among them.
    pub fn contain(&self, word: &str) -> bool {
        self.0.iter().any(|known| known == word)
    }
}

impl<'de> Deserialize<'de> for StringSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected words, as a list or with `|` between them")]
        enum Form {
            None(()),
            Flag(bool),
            Text(String),
            List(Vec<String>),
        }
        Ok(Self(match Form::deserialize(deserializer)? {
            Form::None(()) | Form::Flag(false) => vec![],
            Form::Flag(true) => vec!["true".to_owned()],
            Form::Text(text) => text.to_lowercase().split('|').map(|word| word.trim().to_owned()).collect(),
            Form::List(words) => words,
        }))
    }
}

/// For fields in which `null` says what a missing field says.
///
/// # Errors
/// As the field's own type has them.
pub fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Keeps the first of several names of one field that a configuration gives a value; `null` is none.
pub fn keep_first(raw: &mut Json, names: &[&str]) {
    let Json::Object(raw) = raw else { return };
    let given = |name: &&&str| raw.get(**name).is_some_and(|value| !value.is_null());
    let kept =
        names.iter().find(given).or_else(|| names.iter().find(|name| raw.contains_key(**name))).copied();
    raw.retain(|name, _| Some(name.as_str()) == kept || !names.contains(&name.as_str()));
}

/// The `model_type` of a configuration that is one of several; the first, which it is given, where it has none.
pub fn model_type(raw: &mut Json, first: &str) -> String {
    let Json::Object(fields) = raw else { return first.to_owned() };
    let chosen = fields.entry("model_type").or_insert(Json::Null);
    if chosen.is_null() {
        *chosen = first.into();
    }
    chosen.as_str().unwrap_or(first).to_owned()
}

/// A configuration that is one of several, whose errors name the field within it.
///
/// # Errors
/// As the configuration's own type has them.
pub fn variant<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    serde_path_to_error::deserialize(deserializer)
        .map_err(|e| serde::de::Error::custom(format!("{}: {}", e.path(), e.inner())))
}

/// Brings the configuration in a field into the form that its type reads.
pub fn prepare<C: Configuration>(raw: &mut Json, field: &str) {
    if let Some(within) = raw.get_mut(field).filter(|within| within.is_object()) {
        C::prepare(within);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_token_ids_have_several_forms() {
        let pair = |text: &str| serde_json::from_str::<ImageSize>(text);
        assert_eq!(pair("224").unwrap(), ImageSize::square(224));
        assert_eq!(pair("[2, 3]").unwrap(), ImageSize { height: 2, width: 3 });
        assert_eq!(pair(r#"{"height": 2, "width": 3}"#).unwrap(), ImageSize { height: 2, width: 3 });
        let error = pair("[1]").unwrap_err().to_string();
        assert_eq!(error, "expected a number, or a list or map of height and width");
        let size = |text: &str| square_size(&mut serde_json::Deserializer::from_str(text));
        assert_eq!((size("448").unwrap(), size("[14, 14]").unwrap()), (448, 14));
        let error = size("[14, 16]").unwrap_err().to_string();
        assert!(error.starts_with("expected height and width to be the same, not 14 and 16"), "{error}");
        let layers = |text: &str| period(&mut serde_json::Deserializer::from_str(text)).unwrap();
        assert_eq!((layers("4"), layers(r#""LLLG""#), layers("0")), (4, 4, 1));
        let tokens = |text: &str| serde_json::from_str::<TokenIds>(text).unwrap();
        assert_eq!((tokens("2"), tokens("[2, 3]")), (TokenIds(vec![2]), TokenIds(vec![2, 3])));
    }

    #[test]
    fn the_first_name_with_a_value_is_kept() {
        let kept = |text: &str| {
            let mut raw = serde_json::from_str(text).unwrap();
            keep_first(&mut raw, &["hidden_activation", "hidden_act"]);
            raw.to_string()
        };
        let both = r#"{"hidden_act":"gelu","hidden_activation":"relu","layers":2}"#;
        assert_eq!(kept(both), r#"{"hidden_activation":"relu","layers":2}"#);
        assert_eq!(kept(r#"{"hidden_act":"gelu","hidden_activation":null}"#), r#"{"hidden_act":"gelu"}"#);
        assert_eq!(kept(r#"{"hidden_act":null}"#), r#"{"hidden_act":null}"#);
    }

    #[test]
    fn one_of_several_says_which_it_is_and_what_is_wrong_within() {
        #[derive(Debug, Deserialize)]
        struct Sizes {
            sizes: Vec<usize>,
        }
        #[derive(Debug, Deserialize)]
        #[serde(tag = "model_type", rename_all = "lowercase")]
        enum Text {
            #[serde(deserialize_with = "variant")]
            Llama(Sizes),
            #[serde(deserialize_with = "variant")]
            Gemma(Sizes),
        }
        let read = |text: &str| {
            let mut raw = serde_json::from_str(text).unwrap();
            (model_type(&mut raw, "llama"), serde_json::from_value::<Text>(raw).map_err(|e| e.to_string()))
        };
        for said in ["", r#""model_type": null, "#, r#""model_type": "llama", "#] {
            let (chosen, text) = read(&format!(r#"{{{said}"sizes": [1]}}"#));
            assert!(
                chosen == "llama" && matches!(text, Ok(Text::Llama(text)) if text.sizes == [1]),
                "{said}"
            );
        }
        let (chosen, text) = read(r#"{"model_type": "gemma", "sizes": [2]}"#);
        assert!(chosen == "gemma" && matches!(text, Ok(Text::Gemma(text)) if text.sizes == [2]));
        let problem = read(r#"{"model_type": "gemma", "sizes": [3, "x"]}"#).1.unwrap_err();
        assert_eq!(problem, "sizes[1]: invalid type: string \"x\", expected usize");
        let problem = read(r#"{"model_type": "opt"}"#).1.unwrap_err();
        assert_eq!(problem, "unknown variant `opt`, expected `llama` or `gemma`");
    }

    #[test]
    fn lists_hold_known_words_one_for_each_layer() {
        let list = ["full_attention", "chunked"].map(str::to_owned);
        let known = ["sliding_attention", "full_attention"];
        assert_eq!(words("layer_types", Some(&list[..1]), &known), Ok(()));
        assert_eq!(words("layer_types", None, &known), Ok(()));
        let problem = words("layer_types", Some(&list), &known).unwrap_err();
        assert_eq!(
            problem,
            "layer_types: entry 1 is `chunked`, expected one of sliding_attention, full_attention"
        );
        let count = |list: Option<&[String]>| length("layer_types", list, "num_hidden_layers", 2);
        assert_eq!([count(Some(&list)), count(None), count(Some(&[]))], [Ok(()), Ok(()), Ok(())]);
        let problem = count(Some(&list[1..])).unwrap_err();
        assert_eq!(problem, "layer_types: has 1 entries, expected one for each of num_hidden_layers, 2");
        let least = |list: Option<&[String]>| min_length("depths", list, "num_encoder_blocks", 1);
        assert_eq!([least(Some(&list)), least(Some(&list[1..])), least(None)], [Ok(()), Ok(()), Ok(())]);
        let problem = least(Some(&[])).unwrap_err();
        assert_eq!(problem, "depths: has 0 entries, expected one for each of num_encoder_blocks, 1");
    }

    #[test]
    fn layers_are_counted_from_either_end() {
        let states = |text: &str| serde_json::from_str::<LayerIndices>(text).unwrap().states(3);
        assert_eq!((states("-2"), states("[0, -1, 1]")), (Ok(vec![2]), Ok(vec![0, 3, 1])));
        assert_eq!(states("[1, -5]"), Err("it names layer -5, but there are 3 layers".to_owned()));
        assert_eq!(states("4"), Err("it names layer 4, but there are 3 layers".to_owned()));
        assert_eq!(states("[]"), Err("it names no layer".to_owned()));
    }

    #[test]
    fn a_size_is_that_of_all_layers_or_one_for_each() {
        let sizes = |text: &str| serde_json::from_str::<PerLayer>(text).unwrap().of_layers(3);
        assert_eq!((sizes("8"), sizes("[2, 4, 6]")), (Ok(vec![8; 3]), Ok(vec![2, 4, 6])));
        assert_eq!(sizes("[2, 4]"), Err("has 2 entries, but there are 3 layers".to_owned()));
        let error = serde_json::from_str::<PerLayer>("-1").unwrap_err().to_string();
        assert_eq!(error, "expected a number, or a list of one for each layer");
    }
    #[test]
    fn a_ratio_is_a_text_of_two_numbers() {
        let ratio = |text: &str| serde_json::from_str::<Ratio>(text).map_err(|error| error.to_string());
        assert_eq!(ratio("\"3/8\"").map(|ratio| (ratio.of(24), ratio.of(9))), Ok((9, 3)));
        assert_eq!(serde_json::to_string(&Ratio { numerator: 4, denominator: 8 }).unwrap(), "\"4/8\"");
        for text in ["\"3\"", "\"3/0\"", "\"-1/2\"", "\"1/2/4\""] {
            assert!(ratio(text).unwrap_err().contains("is no ratio of whole numbers, as `3/8` is"), "{text}");
        }
    }
}
