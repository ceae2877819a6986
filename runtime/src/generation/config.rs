//! `generation_config.json`, typed, and how it is put together with the caller's wishes.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value as Json};

use crate::hub::Checkpoint;
use crate::{Error, Result};

/// New tokens where neither the caller nor the checkpoint says how many.
const DEFAULT_NEW_TOKENS: usize = 20;
/// Where older checkpoints without `generation_config.json` keep the decoder's fields.
const NESTED: [&str; 3] = ["decoder", "generator", "text_config"];

/// When beam search stops looking for better texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyStopping {
    /// When a better one is unlikely.
    #[default]
    Heuristic,
    /// As soon as there are as many finished texts as beams.
    Enough,
    /// When no better one is possible.
    Never,
}

impl<'de> Deserialize<'de> for EarlyStopping {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        match Json::deserialize(deserializer)? {
            Json::Bool(true) => Ok(Self::Enough),
            Json::Bool(false) => Ok(Self::Heuristic),
            Json::String(word) if word == "never" => Ok(Self::Never),
            other => Err(serde::de::Error::custom(format!("{other} is not true, false or \"never\""))),
        }
    }
}

macro_rules! configuration {
    ($($(#[$meta:meta])* $field:ident: $type:ty,)*) => {
        /// How to generate, under the reference's names; what is `None` is left to the checkpoint, and then to
        /// the reference's defaults.
        ///
        /// Reference: `transformers.GenerationConfig`.
        #[derive(Clone, Debug, Default, PartialEq, Deserialize)]
        #[serde(default)]
        pub struct GenerationConfig {
            $($(#[$meta])* pub $field: Option<$type>,)*
        }

        impl GenerationConfig {
            /// What is not set here is taken from `defaults`.
            #[must_use]
            pub fn or(self, defaults: Self) -> Self {
                Self { $($field: self.$field.or(defaults.$field),)* }
            }

            /// The names of all fields.
            pub const FIELDS: &'static [&'static str] = &[$(stringify!($field)),*];
        }
    };
}

configuration! {
    /// The most tokens of prompt and answer together.
    max_length: usize,
    /// The most tokens of the answer; wins over `max_length`.
    max_new_tokens: usize,
    /// The fewest tokens of prompt and answer together.
    min_length: usize,
    /// The fewest tokens of the answer; wins over `min_length`.
    min_new_tokens: usize,
    /// When beam search stops.
    early_stopping: EarlyStopping,
    /// The most seconds.
    max_time: f64,
    /// Texts that end the answer; they stay in it.
    #[serde(deserialize_with = "one_or_many")]
    stop_strings: Vec<String>,
    /// Draws tokens by their probabilities; otherwise takes the most probable.
    do_sample: bool,
    /// The texts that are followed at once; 1 is no beam search.
    num_beams: usize,
    /// The sequences that are returned for each prompt.
    num_return_sequences: usize,
    /// Divides scores before drawing: below 1 sharpens, above 1 flattens.
    temperature: f64,
    /// Draws among this many most probable tokens; 0 for all (50 where not given).
    top_k: usize,
    /// Draws among the most probable tokens that together have this probability.
    top_p: f64,
    /// Draws among tokens with at least this share of the most probable one's probability.
    min_p: f64,
    /// Draws among the most probable tokens with this share of the distribution's entropy.
    top_h: f64,
    /// Draws among the most typical tokens that together have this probability.
    typical_p: f64,
    /// Draws among tokens with at least this probability.
    epsilon_cutoff: f64,
    /// Draws among tokens above a bound that follows the distribution's entropy.
    eta_cutoff: f64,
    /// Makes tokens of the text so far less likely where above 1.
    repetition_penalty: f64,
    /// Makes tokens of the encoder's text more likely where above 1.
    encoder_repetition_penalty: f64,
    /// The power of the length by which beam scores are divided: above 0 favours long texts.
    length_penalty: f64,
    /// No sequence of this many tokens occurs twice.
    no_repeat_ngram_size: usize,
    /// No sequence of this many tokens of the encoder's text occurs.
    encoder_no_repeat_ngram_size: usize,
    /// Token sequences that never occur.
    bad_words_ids: Vec<Vec<i64>>,
    /// Token sequences with what is added to the score of their last token.
    sequence_bias: Vec<(Vec<i64>, f64)>,
    /// Normalises scores after all processing.
    renormalize_logits: bool,
    /// The first token after the decoder's start token.
    forced_bos_token_id: i64,
    /// The last tokens when `max_length` is reached.
    #[serde(deserialize_with = "one_or_many")]
    forced_eos_token_id: Vec<i64>,
    /// Replaces infinities and what is no number.
    remove_invalid_values: bool,
    /// After how many new tokens the end becomes likelier, and by which factor with each.
    exponential_decay_length_penalty: (usize, f64),
    /// Tokens that never occur.
    suppress_tokens: Vec<i64>,
    /// Tokens that do not begin the answer.
    begin_suppress_tokens: Vec<i64>,
    /// Fills rows.
    pad_token_id: i64,
    /// Begins a text.
    bos_token_id: i64,
    /// Any of these ends a text; empty for none.
    #[serde(deserialize_with = "one_or_many")]
    eos_token_id: Vec<i64>,
    /// The first token of an encoder-decoder's answer.
    decoder_start_token_id: i64,
    /// The most tokens that an assistant proposes at a time (20 where not given).
    num_assistant_tokens: usize,
    /// Whether that stays (`constant`, where not given), or follows what is accepted (`heuristic`, `heuristic_transient`).
    num_assistant_tokens_schedule: String,
    /// The assistant's least probability of a token to go on after it (0.4 where not given).
    assistant_confidence_threshold: f64,
    /// Proposes so many tokens that followed the last ones where these stood before in the text (prompt lookup decoding).
    prompt_lookup_num_tokens: usize,
    /// How many last tokens are looked for, the most (2 where not given).
    max_matching_ngram_size: usize,
    /// Not supported; anything but 1 is an error.
    guidance_scale: f64,
    /// Not supported; anything above 1 is an error.
    num_beam_groups: usize,
    /// Not supported; anything above 0 is an error.
    penalty_alpha: f64,
    /// Not supported.
    watermarking_config: Json,
    /// Not supported.
    dola_layers: Json,
    /// Not supported.
    constraints: Json,
    /// Not supported.
    force_words_ids: Json,
    /// Not supported.
    token_healing: bool,
    /// Not supported; `true` is an error.
    use_mtp: bool,
    /// Not supported.
    assistant_early_exit: usize,
    /// Not supported.
    assistant_ensemble_weight: f64,
}

/// A value or a list of values, which may be null.
fn one_or_many<'de, D, T>(deserializer: D) -> std::result::Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Many<T> {
        List(Vec<T>),
        One(T),
    }
    Ok(Option::<Many<T>>::deserialize(deserializer)?.map(|many| match many {
        Many::List(list) => list,
        Many::One(one) => vec![one],
    }))
}

impl GenerationConfig {
    /// What a checkpoint says: `generation_config.json`, or else the fields of that name in `config.json`.
    ///
    /// # Errors
    /// When a file cannot be read or a field has the wrong type.
    pub fn from_checkpoint(checkpoint: &Checkpoint) -> Result<Self> {
        let (file, json) = match checkpoint.json("generation_config.json")? {
            Some(json) => ("generation_config.json", json),
            None => ("config.json", flattened(checkpoint.json("config.json")?.unwrap_or_default())),
        };
        serde_path_to_error::deserialize(&json).map_err(|e| {
            Error::config(
                checkpoint.dir().join(file),
                format!("{}: {}", e.path(), e.inner()),
                "compare the file with the published one",
            )
        })
    }

    /// Parameters given as JSON, by the reference's names.
    ///
    /// # Errors
    /// When one has the wrong type; names it.
    pub fn from_json(parameters: &Json) -> Result<Self> {
        serde_path_to_error::deserialize(parameters).map_err(|e| {
            let help = "give it in the type that `transformers.GenerationConfig` documents";
            Error::input(e.path().to_string(), e.inner().to_string(), help)
        })
    }

    /// `max_length` and `min_length` for prompts of this length; the model's positions bound the default alone.
    pub(crate) fn lengths(&self, prompt: usize, positions: Option<usize>) -> Result<Lengths> {
        let most = match (self.max_new_tokens, self.max_length) {
            (Some(new), _) => prompt + new,
            (None, Some(most)) => most,
            (None, None) => positions.unwrap_or(usize::MAX).min(prompt + DEFAULT_NEW_TOKENS),
        };
        if most <= prompt {
            let problem = format!("is {most}, but the prompt alone has {prompt} tokens");
            return Err(Error::input("max_length", problem, "raise it, or give `max_new_tokens`"));
        }
        let least = match self.min_new_tokens {
            Some(new) => prompt + new,
            None => self.min_length.unwrap_or(0),
        };
        Ok(Lengths { prompt, least, most })
    }

    /// The beams of beam search; 1 without.
    pub fn num_beams(&self) -> usize {
        self.num_beams.unwrap_or(1)
    }

    /// The sequences that are returned for each prompt.
    pub fn num_return_sequences(&self) -> usize {
        self.num_return_sequences.unwrap_or(1)
    }

    /// Whether tokens are sampled.
    pub fn do_sample(&self) -> bool {
        self.do_sample.unwrap_or(false)
    }

    /// The end-of-sequence tokens.
    pub fn eos_token_ids(&self) -> &[i64] {
        self.eos_token_id.as_deref().unwrap_or_default()
    }

    /// What fills rows that ended: the padding token, or the first end-of-sequence token.
    pub fn pad_token(&self) -> Option<i64> {
        self.pad_token_id.or(self.eos_token_ids().first().copied())
    }

    /// Refuses what contradicts itself or is not supported.
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |name: &str, problem: &str, help: &str| Err(Error::input(name, problem, help));
        let unsupported = [
            ("guidance_scale", self.guidance_scale.is_some_and(|scale| scale != 1.0)),
            ("num_beam_groups", self.num_beam_groups.is_some_and(|groups| groups > 1)),
            ("penalty_alpha", self.penalty_alpha.is_some_and(|alpha| alpha > 0.0) && !self.do_sample()),
            ("watermarking_config", self.watermarking_config.is_some()),
            ("dola_layers", self.dola_layers.is_some()),
            ("constraints", self.constraints.is_some()),
            ("force_words_ids", self.force_words_ids.is_some()),
            ("token_healing", self.token_healing == Some(true)),
            ("use_mtp", self.use_mtp == Some(true)),
            ("assistant_early_exit", self.assistant_early_exit.is_some()),
            ("assistant_ensemble_weight", self.assistant_ensemble_weight.is_some()),
        ];
        if let Some((name, _)) = unsupported.iter().find(|(_, set)| *set) {
            return refuse(name, "is not supported", "leave it out");
        }
        let positive = [
            ("temperature", self.temperature),
            ("repetition_penalty", self.repetition_penalty),
            ("encoder_repetition_penalty", self.encoder_repetition_penalty),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, value)| value.is_some_and(|value| value <= 0.0)) {
            return refuse(name, "must be above 0", "for the most probable tokens, leave out `do_sample`");
        }
        let shares = [
            ("top_p", self.top_p),
            ("min_p", self.min_p),
            ("typical_p", self.typical_p),
            ("top_h", self.top_h),
            ("assistant_confidence_threshold", self.assistant_confidence_threshold),
        ];
        let within = |value: f64| (0.0..=1.0).contains(&value);
        if let Some((name, _)) = shares.iter().find(|(_, value)| value.is_some_and(|value| !within(value))) {
            return refuse(name, "must be from 0 to 1", "leave it out");
        }
        if let Some(schedule) = self.num_assistant_tokens_schedule.as_deref()
            && !["constant", "heuristic", "heuristic_transient"].contains(&schedule)
        {
            let problem = format!("is `{schedule}`");
            let help = "choose among constant, heuristic and heuristic_transient";
            return refuse("num_assistant_tokens_schedule", &problem, help);
        }
        if self.num_beams() == 0 || self.num_return_sequences() == 0 {
            return refuse("num_beams", "and `num_return_sequences` must be at least 1", "leave them out");
        }
        if self.num_return_sequences() > self.num_beams() && self.num_beams() > 1 {
            return refuse("num_return_sequences", "must not exceed `num_beams`", "raise `num_beams`");
        }
        if self.num_return_sequences() > 1 && self.num_beams() == 1 && !self.do_sample() {
            let problem = "is above 1, but the most probable tokens give one answer only";
            return refuse("num_return_sequences", problem, "set `do_sample` or `num_beams`");
        }
        Ok(())
    }
}

/// The lengths of rows, prompt included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lengths {
    pub(crate) prompt: usize,
    pub(crate) least: usize,
    pub(crate) most: usize,
}

/// `config.json` with the decoder's own fields where the outer ones do not say.
fn flattened(config: Json) -> Json {
    let Json::Object(mut outer) = config else { return Json::Object(Map::new()) };
    outer.retain(|_, value| !value.is_null());
    let inner = NESTED.iter().find_map(|name| outer.get(*name)).and_then(Json::as_object).cloned();
    for (name, value) in inner.into_iter().flatten().filter(|(_, value)| !value.is_null()) {
        outer.entry(name).or_insert(value);
    }
    // Older decoders say so instead of naming the token.
    if outer.get("force_bos_token_to_be_generated") == Some(&Json::Bool(true))
        && let Some(bos) = outer.get("bos_token_id").cloned()
    {
        outer.insert("forced_bos_token_id".to_owned(), bos);
    }
    outer.retain(|name, _| GenerationConfig::FIELDS.contains(&name.as_str()));
    Json::Object(outer)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checkpoint(files: &[(&str, Json)]) -> Result<GenerationConfig> {
        let folder = tempfile::tempdir().unwrap();
        for (name, json) in files {
            std::fs::write(folder.path().join(name), json.to_string()).unwrap();
        }
        GenerationConfig::from_checkpoint(&Checkpoint::open(folder.path().to_str().unwrap())?)
    }

    #[test]
    fn the_generation_file_alone_counts_where_there_is_one() {
        let config = json!({"eos_token_id": 9, "top_k": 3, "decoder_start_token_id": 1});
        let file = json!({"eos_token_id": [1, 2], "early_stopping": "never", "transformers_version": "4.9", "top_p": 1});
        let found = checkpoint(&[("config.json", config.clone()), ("generation_config.json", file)]).unwrap();
        assert_eq!((found.eos_token_ids(), found.top_k, found.top_p), (&[1, 2][..], None, Some(1.0)));
        assert_eq!(found.early_stopping, Some(EarlyStopping::Never));
        let found = checkpoint(&[("config.json", config)]).unwrap();
        assert_eq!(
            (found.eos_token_ids(), found.top_k, found.decoder_start_token_id),
            (&[9][..], Some(3), Some(1))
        );
    }

    #[test]
    fn nested_decoders_fill_in_what_is_left_open() {
        let config =
            json!({"decoder": {"eos_token_id": 3, "max_length": 7, "pad_token_id": null}, "eos_token_id": 2});
        let found = checkpoint(&[("config.json", config)]).unwrap();
        assert_eq!((found.eos_token_ids(), found.max_length, found.pad_token_id), (&[2][..], Some(7), None));
    }

    #[test]
    fn wrong_types_are_named() {
        let text =
            checkpoint(&[("generation_config.json", json!({"top_k": "many"}))]).unwrap_err().to_string();
        assert!(text.contains("generation_config.json") && text.contains("top_k"), "{text}");
        let text = GenerationConfig::from_json(&json!({"early_stopping": 3})).unwrap_err().to_string();
        assert!(text.contains("early_stopping") && text.contains("never"), "{text}");
    }

    #[test]
    fn lengths_follow_the_reference() {
        let of = |json: Json, positions| {
            GenerationConfig::from_json(&json).unwrap().lengths(5, positions).map(|l| (l.least, l.most))
        };
        assert_eq!(of(json!({}), None).unwrap(), (0, 25));
        assert_eq!(of(json!({}), Some(16)).unwrap(), (0, 16));
        assert_eq!(of(json!({"max_length": 30}), Some(16)).unwrap(), (0, 30));
        assert_eq!(
            of(json!({"max_length": 30, "max_new_tokens": 4, "min_new_tokens": 2}), None).unwrap(),
            (7, 9)
        );
        assert!(of(json!({"max_length": 5}), None).is_err());
    }

    #[test]
    fn contradictions_are_refused() {
        let refused = |json: Json| GenerationConfig::from_json(&json).unwrap().check().is_err();
        assert!(refused(json!({"num_return_sequences": 2})));
        assert!(refused(json!({"num_return_sequences": 3, "num_beams": 2})));
        assert!(refused(json!({"temperature": 0.0})));
        assert!(refused(json!({"guidance_scale": 2.0})));
        assert!(!refused(json!({"num_return_sequences": 2, "do_sample": true, "guidance_scale": 1.0})));
    }
}
