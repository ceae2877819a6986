//! The initial tokens of the decoder: the language, the task, whether timestamps are predicted.
//!
//! Reference: `WhisperGenerationMixin._retrieve_init_tokens`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::SpeechOptions;
use super::languages;
use crate::any_model::AnyModel;
use crate::hub::Checkpoint;
use crate::{Error, Result, Value};

const FILE: &str = "generation_config.json";
const TRANSCRIBE: &str = "transcribe";

/// What `generation_config.json` says of them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tokens {
    decoder_start_token_id: Option<i64>,
    lang_to_id: Option<BTreeMap<String, i64>>,
    task_to_id: Option<BTreeMap<String, i64>>,
    /// Says that no timestamps follow; the tokens after it are timestamps.
    no_timestamps_token_id: Option<i64>,
    is_multilingual: Option<bool>,
    pub return_timestamps: Option<bool>,
    forced_decoder_ids: Option<Vec<(usize, Option<i64>)>>,
    language: Option<String>,
    task: Option<String>,
    pub max_initial_timestamp_index: Option<usize>,
    /// The layers and heads whose cross-attention aligns tokens with audio.
    alignment_heads: Option<Vec<[i64; 2]>>,
}

/// The initial tokens of the decoder (`_retrieve_init_tokens`).
pub(super) enum InitTokens {
    /// These tokens.
    Known(Vec<i64>),
    /// These, but for the language in the second place, which is to be detected first: one of these.
    DetectLanguage { tokens: Vec<i64>, languages: Vec<i64> },
}

impl Tokens {
    /// The alignment heads, counted through all layers.
    pub(super) fn alignment_heads(&self, model: &dyn AnyModel) -> Result<Value> {
        let Some(heads) = self.alignment_heads.as_ref().filter(|heads| !heads.is_empty()) else {
            let problem = "`alignment_heads`: is missing, which timestamps of words come from";
            let help =
                "ask for true instead of \"word\", or take the file as OpenAI's checkpoints publish it";
            return Err(Error::config(model.checkpoint().dir().join(FILE), problem, help));
        };
        let each = model.raw_config()["decoder_attention_heads"].as_i64().unwrap_or(1);
        Ok(ndarray::Array1::from_iter(heads.iter().map(|[layer, head]| layer * each + head))
            .into_dyn()
            .into())
    }

    pub(super) fn read(checkpoint: &Checkpoint) -> Result<Self> {
        let config = checkpoint.json("config.json")?.unwrap_or_default();
        let json = checkpoint.json(FILE)?.unwrap_or_else(|| config.clone());
        let mut tokens: Self = serde_path_to_error::deserialize(&json).map_err(|e| {
            let problem = format!("`{}`: {}", e.path(), e.inner());
            Error::config(checkpoint.dir().join(FILE), problem, "use the file as the checkpoint publishes it")
        })?;
        let older = || serde_json::from_value(config["forced_decoder_ids"].clone()).ok().flatten();
        tokens.forced_decoder_ids = tokens.forced_decoder_ids.or_else(older);
        tokens.decoder_start_token_id =
            tokens.decoder_start_token_id.or(config["decoder_start_token_id"].as_i64());
        if tokens.decoder_start_token_id.is_none() {
            let problem = "names no `decoder_start_token_id`: no token begins a text";
            return Err(Error::config(checkpoint.dir().join(FILE), problem, "take the published file"));
        }
        Ok(tokens)
    }

    /// The first timestamp token; none where the checkpoint has none.
    pub(super) fn timestamp_begin(&self) -> Option<i64> {
        self.no_timestamps_token_id.map(|id| id + 1)
    }

    /// The token that all texts begin with.
    pub(super) fn start(&self) -> i64 {
        self.decoder_start_token_id.unwrap_or_default()
    }

    /// The initial tokens; `times` says whether timestamps are predicted.
    pub(super) fn init_tokens(&self, options: &SpeechOptions, times: bool) -> Result<InitTokens> {
        let asked = options.language.is_some() || options.task.is_some();
        if asked && self.is_multilingual == Some(false) {
            let problem = "the checkpoint knows one language and one task only";
            return Err(Error::input("language", problem, "leave out `language` and `task`"));
        }
        let language = options.language.as_deref().or(self.language.as_deref());
        let task = options.task.as_deref().or(self.task.as_deref());
        let mut tokens = vec![Some(self.start())];
        if language.is_none() && task.is_none() {
            // Older files name tokens by their places.
            let forced = self.forced_decoder_ids.iter().flatten().enumerate();
            tokens.extend(forced.take_while(|(i, (at, _))| *at == i + 1).map(|(_, (_, token))| *token));
        }
        let unknown = tokens.get(1).is_none_or(Option::is_none);
        let language_id = language.map(|language| self.language_id(language)).transpose()?;
        let detects = language.is_none() && unknown && self.lang_to_id.is_some();
        if language_id.is_some() || detects {
            match tokens.get_mut(1) {
                Some(place) => *place = language_id,
                None => tokens.push(language_id),
            }
        }
        let known = |token: &Option<i64>| self.task_to_id.iter().flatten().any(|(_, id)| *token == Some(*id));
        match task {
            Some(task) => {
                let id = self.task_id(task)?;
                tokens.retain(|token| !known(token));
                tokens.push(Some(id));
            }
            None if language.is_some() && self.task_to_id.is_some() && !tokens.iter().any(known) => {
                tokens.push(Some(self.task_id(TRANSCRIBE)?));
            }
            None => {}
        }
        let last = tokens.last().copied().flatten();
        match self.no_timestamps_token_id {
            Some(id) if !times && last != Some(id) => tokens.push(Some(id)),
            Some(id) if times && last == Some(id) => drop(tokens.pop()),
            _ => {}
        }
        if detects {
            let tokens = tokens.into_iter().map(Option::unwrap_or_default).collect();
            return Ok(InitTokens::DetectLanguage { tokens, languages: self.languages() });
        }
        Ok(InitTokens::Known(tokens.into_iter().flatten().collect()))
    }

    /// The tokens of all languages.
    pub(super) fn languages(&self) -> Vec<i64> {
        self.lang_to_id.iter().flatten().map(|(_, id)| *id).collect()
    }

    fn language_id(&self, language: &str) -> Result<i64> {
        let ids = self.lang_to_id.as_ref().ok_or_else(|| {
            let problem = "generation_config.json has no `lang_to_id`";
            Error::input("language", problem, "leave it out, or take the published file")
        })?;
        let language = language.to_lowercase();
        let code = languages::code(&language).unwrap_or(&language);
        let found = ids.get(&language).or_else(|| ids.get(&format!("<|{code}|>")));
        found.copied().ok_or_else(|| {
            let names: Vec<_> = ids.keys().map(|name| name.trim_matches(['<', '|', '>'])).collect();
            Error::input(
                "language",
                format!("`{language}` is not known"),
                format!("one of {}", names.join(", ")),
            )
        })
    }

    fn task_id(&self, task: &str) -> Result<i64> {
        let ids = self.task_to_id.as_ref();
        ids.and_then(|ids| ids.get(task)).copied().ok_or_else(|| {
            let names: Vec<_> = ids.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
            let help = format!("one of {}", names.join(", "));
            Error::input("task", format!("`{task}` is not known to the checkpoint"), help)
        })
    }
}
