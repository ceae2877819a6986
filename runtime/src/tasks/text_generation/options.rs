//! How texts are generated, for every task that generates them.

use crate::generation::GenerationConfig;
use crate::text::Tokenizer;

/// How a text is generated.
#[derive(Clone, Debug, PartialEq)]
pub struct GenerationOptions {
    /// What the caller wants; what is not set is left to the checkpoint's `generation_config.json`, and then to the
    /// task.
    pub generation: GenerationConfig,
    /// Makes draws repeat; otherwise every call draws anew.
    pub seed: Option<u64>,
    /// Cuts prompts that are longer than `max_length`, or than the tokenizer's or the model's limit.
    pub truncation: bool,
    /// The most tokens of a prompt that is cut.
    pub max_length: Option<usize>,
    /// Whether the tokenizer's template adds its tokens to a prompt; chats have them already.
    pub add_special_tokens: bool,
    /// Whether special tokens are left out of the answer.
    pub skip_special_tokens: bool,
    /// Whether the spaces before punctuation go; by default as the tokenizer says.
    pub clean_up_tokenization_spaces: Option<bool>,
    /// The most prompts that run at once; together, they are filled to one length.
    pub batch_size: usize,
    /// Answers texts without any token, as the reference does: a decoder from the token that begins texts. Otherwise
    /// they are errors.
    pub allow_empty: bool,
}

impl Default for GenerationOptions {
    fn default() -> Self {
        Self {
            generation: GenerationConfig::default(),
            seed: None,
            truncation: false,
            max_length: None,
            add_special_tokens: true,
            skip_special_tokens: true,
            clean_up_tokenization_spaces: None,
            batch_size: 1,
            allow_empty: false,
        }
    }
}

impl From<GenerationConfig> for GenerationOptions {
    fn from(generation: GenerationConfig) -> Self {
        Self { generation, ..Self::default() }
    }
}

/// The caller's wishes, over what the checkpoint says, over what the task takes where neither says.
///
/// Reference: `Pipeline._prepare_generate_kwargs`. A length of the task's does not stand beside a length that was set;
/// what only drawing reads counts only where tokens are drawn.
pub(crate) fn resolve(
    wanted: &GenerationConfig,
    checkpoint: &GenerationConfig,
    task: &GenerationConfig,
    tokenizer: &Tokenizer,
) -> GenerationConfig {
    let set = wanted.clone().or(checkpoint.clone());
    let mut task = task.clone();
    if set.max_length.is_some() {
        task.max_new_tokens = None;
    }
    if !set.do_sample.or(task.do_sample).unwrap_or(false) {
        task.temperature = None;
    }
    task.pad_token_id = tokenizer.pad_token().map(|(_, id)| id);
    set.or(task)
}
