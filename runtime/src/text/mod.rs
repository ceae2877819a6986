//! Text to token ids and back, as a checkpoint's own tokenizer files say.

pub mod chat;
mod classes;
mod clip_bpe;
mod decode;
mod encode;
mod encoding;
mod ends;
mod filled;
mod load;
mod pad;
mod pieces;
mod settings;
mod spm_char;
mod token_masks;
mod word_piece;

use std::path::{Path, PathBuf};

pub use classes::class_rows;
pub(crate) use decode::clean_up;
pub use encode::{EncodeOptions, Text, Truncation};
pub use encoding::Encoding;
pub use ends::ends;
pub use pad::{Batch, Padding};
pub use pieces::TokenBytes;
pub use settings::{Settings, Side};
pub use token_masks::{
    counted_positions, first_token_global, not_padding, question_global, token_count_mask, token_weights,
};

use crate::hub::Checkpoint;
use crate::{Error, Result};

/// A checkpoint's tokenizer: `tokenizer.json`, or `vocab.txt` in checkpoints older than it, or CLIP's
/// `vocab.json` and `merges.txt`, with what
/// `tokenizer_config.json` and `special_tokens_map.json` add.
///
/// Truncation and padding stored inside `tokenizer.json` do not apply, as in the reference: each call says
/// what it wants. Offsets count characters, not bytes.
///
/// ```
/// # fn main() -> weft::Result<()> {
/// # let folder = std::env::temp_dir().join("weft-doc-tokenizer");
/// # std::fs::create_dir_all(&folder).unwrap();
/// # std::fs::write(folder.join("vocab.txt"), "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nworld\n##s\n").unwrap();
/// # let folder = folder.to_str().unwrap();
/// use weft::text::{EncodeOptions, Padding, Tokenizer};
///
/// let tokenizer = Tokenizer::from_checkpoint(&weft::hub::Checkpoint::open(folder)?)?;
/// let rows = tokenizer.encode(&["Hello worlds".into(), "hello".into()], &EncodeOptions::default())?;
/// let batch = tokenizer.pad(&rows, &Padding::default())?;
/// assert_eq!(batch.input_ids, ndarray::array![[2, 5, 6, 7, 3], [2, 5, 3, 0, 0]]);
/// assert_eq!(batch.attention_mask, ndarray::array![[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]);
/// assert_eq!(rows[0].offsets[2], (6, 11));
/// assert_eq!(tokenizer.decode(&rows[0].ids, true)?, "hello worlds");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Tokenizer {
    /// Everything up to the post-processor, which must see sequences after they are truncated.
    core: tokenizers::Tokenizer,
    post_processor: Option<tokenizers::PostProcessorWrapper>,
    settings: Settings,
    file: PathBuf,
}

impl Tokenizer {
    /// Reads a checkpoint's tokenizer.
    ///
    /// # Errors
    /// When the checkpoint has none, or one of its files is not what it should be.
    pub fn from_checkpoint(checkpoint: &Checkpoint) -> Result<Self> {
        load::from_checkpoint(checkpoint)
    }

    /// What `tokenizer_config.json` and `special_tokens_map.json` say.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The file it was read from.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The number of tokens, added ones included.
    pub fn vocab_size(&self) -> usize {
        self.core.get_vocab_size(true)
    }

    /// Whether another tokenizer has the same tokens with the same ids.
    pub fn same_vocabulary(&self, other: &Self) -> bool {
        self.vocab_size() == other.vocab_size() && self.core.get_vocab(true) == other.core.get_vocab(true)
    }

    /// A token's id.
    pub fn id(&self, token: &str) -> Option<i64> {
        self.core.token_to_id(token).map(i64::from)
    }

    /// An id's token.
    pub fn token(&self, id: i64) -> Option<String> {
        self.core.id_to_token(u32::try_from(id).ok()?)
    }

    /// The ids of special tokens, which stand for no text.
    pub fn special_ids(&self) -> std::collections::BTreeSet<i64> {
        let added = self.core.get_added_tokens_decoder();
        added.iter().filter(|(_, token)| token.special).map(|(id, _)| i64::from(*id)).collect()
    }

    /// The token that stands for a gap to be filled, and its id.
    pub fn mask_token(&self) -> Option<(&str, i64)> {
        self.special(self.settings.mask_token.as_deref())
    }

    /// The token that fills rows up to one length, and its id.
    pub fn pad_token(&self) -> Option<(&str, i64)> {
        self.special(self.settings.pad_token.as_deref())
    }

    /// The token that begins a sequence and stands for the whole of it, and its id.
    pub fn cls_token(&self) -> Option<(&str, i64)> {
        self.special(self.settings.cls_token.as_deref())
    }

    /// The token that separates two texts and ends them, and its id.
    pub fn sep_token(&self) -> Option<(&str, i64)> {
        self.special(self.settings.sep_token.as_deref())
    }

    /// The token for what the vocabulary lacks, and its id.
    pub fn unk_token(&self) -> Option<(&str, i64)> {
        self.special(self.settings.unk_token.as_deref())
    }

    fn special<'a>(&self, token: Option<&'a str>) -> Option<(&'a str, i64)> {
        let token = token?;
        Some((token, self.id(token)?))
    }

    /// Whether continued words are marked (`##ing`), so that a token tells whether it begins a word.
    pub fn marks_subwords(&self) -> bool {
        match self.core.get_model() {
            tokenizers::ModelWrapper::WordPiece(model) => !model.continuing_subword_prefix.is_empty(),
            tokenizers::ModelWrapper::BPE(model) => {
                model.continuing_subword_prefix.as_ref().is_some_and(|prefix| !prefix.is_empty())
            }
            _ => false,
        }
    }

    /// The same tokenizer with a step before all others that turns text to lower case.
    ///
    /// # Errors
    /// When the underlying tokenizer cannot be changed.
    pub fn lowercased(self) -> Result<Self> {
        load::lowercased(self)
    }

    fn error(&self, problem: impl std::fmt::Display, help: &str) -> Error {
        Error::tokenizer(&self.file, problem.to_string(), help)
    }
}

#[cfg(test)]
mod tests;
