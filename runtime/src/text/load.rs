//! From a checkpoint's files to a tokenizer.

use std::panic::catch_unwind;
use std::path::Path;

use serde::de::IgnoredAny;
use serde_json::Value;
use tokenizers::normalizers::{Lowercase, Sequence};
use tokenizers::{
    AddedToken, NormalizerWrapper, PaddingDirection, PostProcessorWrapper, TruncationDirection,
};

use super::filled::filled;
use super::{Settings, Side, Tokenizer, clip_bpe, word_piece};
use crate::gguf::Gguf;
use crate::hub::Checkpoint;
use crate::{Error, Result, files};

/// Vocabulary files of formats that are not read, to be named where there is nothing else.
const OTHER_FORMATS: [&str; 7] = [
    "vocab.json",
    "merges.txt",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
    "tekken.json",
    "vocab.bpe",
];

pub(super) fn from_checkpoint(checkpoint: &Checkpoint) -> Result<Tokenizer> {
    if let Some(gguf) = checkpoint.gguf() {
        let own = from_gguf(checkpoint, gguf);
        // One of a kind that is not read may have what was converted beside it.
        let beside = if own.is_err() { checkpoint.path("tokenizer.json")? } else { None };
        return match beside {
            None => own,
            Some(file) => {
                let settings = Settings::read(checkpoint).unwrap_or_default();
                build(&files::read(&file).map_err(|e| Error::io(&file, e))?, settings, &file)
            }
        };
    }
    let settings = Settings::read(checkpoint)?;
    if let Some(file) = checkpoint.path("tokenizer.json")? {
        let bytes = files::read(&file).map_err(|e| Error::io(&file, e))?;
        return build(&bytes, settings, &file);
    }
    if let Some(file) = checkpoint.path("vocab.txt")? {
        let text = files::read_to_string(&file).map_err(|e| Error::io(&file, e))?;
        let json = word_piece::tokenizer_json(&text, &settings);
        return build(json.to_string().as_bytes(), settings, &file);
    }
    if let Some(file) = checkpoint.path("spm_char.model")? {
        let bytes = files::read(&file).map_err(|e| Error::io(&file, e))?;
        let eos = settings.eos_token.clone().unwrap_or_else(|| "</s>".to_owned());
        let json = super::spm_char::tokenizer_json(&bytes, &eos).ok_or_else(|| {
            Error::tokenizer(&file, "is no SentencePiece model of characters", "fetch the file again")
        })?;
        return build(json.to_string().as_bytes(), settings, &file);
    }
    let class = checkpoint.json("tokenizer_config.json")?.unwrap_or_default();
    if class["tokenizer_class"] == "Speech2TextTokenizer" {
        let file = checkpoint.require("vocab.json")?;
        let vocabulary = checkpoint.json("vocab.json")?.unwrap_or_default();
        return build(written_pieces(&vocabulary, &settings).to_string().as_bytes(), settings, &file);
    }
    if let (Some(file), Some(merges)) = (checkpoint.path("vocab.json")?, checkpoint.path("merges.txt")?) {
        let vocabulary = checkpoint.json("vocab.json")?.unwrap_or_default();
        if clip_bpe::is_clip(&vocabulary, &class) {
            let text = files::read_to_string(&merges).map_err(|e| Error::io(&merges, e))?;
            let mut settings = settings;
            let json = clip_bpe::tokenizer_json(&vocabulary, &text, &mut settings).ok_or_else(|| {
                let problem = "and merges.txt beside it do not fit together";
                Error::tokenizer(&file, problem, "fetch both files again")
            })?;
            return build(json.to_string().as_bytes(), settings, &file);
        }
    }
    let mut found = Vec::new();
    for name in OTHER_FORMATS {
        if checkpoint.path(name)?.is_some() {
            found.push(name);
        }
    }
    let (problem, help) = if found.is_empty() {
        (
            "no tokenizer.json and no vocab.txt: the checkpoint has no tokenizer".to_string(),
            "copy tokenizer.json from the checkpoint it was trained from".to_string(),
        )
    } else {
        (
            format!("no tokenizer.json; {} alone cannot be read", found.join(", ")),
            "write one with the reference: `AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)`"
                .to_string(),
        )
    };
    Err(Error::tokenizer(checkpoint.dir(), problem, help))
}

/// The tokenizer that a GGUF file holds.
fn from_gguf(checkpoint: &Checkpoint, gguf: &Gguf) -> Result<Tokenizer> {
    let settings = Settings::read(checkpoint)?;
    let json = match checkpoint.json("tokenizer.json")? {
        Some(json) => json,
        None => word_piece::tokenizer_json(&gguf.word_pieces()?, &settings),
    };
    build(json.to_string().as_bytes(), settings, gguf.path())
}

fn build(bytes: &[u8], mut settings: Settings, file: &Path) -> Result<Tokenizer> {
    let broken = |e: tokenizers::Error| {
        Error::tokenizer(
            file,
            format!("not a tokenizer: {e}"),
            "the file is damaged or cut short: fetch it again",
        )
    };
    let mut core = parsed(bytes).map_err(broken)?;
    take_stored_defaults(&core, &mut settings);
    core.with_truncation(None).map_err(broken)?;
    core.with_padding(None);
    let post_processor = core.get_post_processor().cloned();
    core.with_post_processor(None::<PostProcessorWrapper>);
    apply_bert_options(&mut core, &settings).map_err(broken)?;

    let unknown: Vec<AddedToken> =
        settings.added.iter().filter(|t| core.token_to_id(&t.content).is_none()).cloned().collect();
    core.add_tokens(unknown).map_err(broken)?;
    settings.complete(|name| core.get_added_vocabulary().is_special_token(name));
    let declared = core.get_added_tokens_decoder();
    let special: Vec<AddedToken> = settings
        .special_tokens()
        .filter(|name| !declared.values().any(|t| &t.content == *name && t.special))
        .map(|name| AddedToken::from(name.clone(), true).normalized(false))
        .collect();
    core.add_special_tokens(special).map_err(broken)?;
    Ok(Tokenizer { core, post_processor, settings, file: file.into() })
}

/// Through a value in a page, since the library reads the parts through values, too: read of bytes, each would be there twice.
fn parsed(bytes: &[u8]) -> tokenizers::Result<tokenizers::Tokenizer> {
    if cfg!(target_family = "wasm") {
        return Ok(serde_json::from_value(serde_json::from_slice(bytes)?)?);
    }
    serde_json::from_slice::<IgnoredAny>(bytes)?;
    // The library takes some damages for what cannot be, and panics.
    let read = catch_unwind(|| tokenizers::Tokenizer::from_bytes(bytes));
    read.unwrap_or_else(|_| Err("its parts do not fit together".into()))
}

/// Sides and the padding token are taken from `tokenizer.json` where the configuration does not say; the
/// lengths stored there are not.
fn take_stored_defaults(core: &tokenizers::Tokenizer, settings: &mut Settings) {
    if let Some(padding) = core.get_padding() {
        settings.pad_token.get_or_insert_with(|| padding.pad_token.clone());
        if matches!(padding.direction, PaddingDirection::Left) {
            settings.padding_side = Side::Left;
        }
    }
    if let Some(truncation) = core.get_truncation()
        && truncation.direction == TruncationDirection::Left
    {
        settings.truncation_side = Side::Left;
    }
}

/// The reference's tokenizer classes build a `BertNormalizer` anew from the configuration and their own
/// defaults; only its generic classes take the one in `tokenizer.json`.
fn apply_bert_options(core: &mut tokenizers::Tokenizer, settings: &Settings) -> tokenizers::Result<()> {
    let Some(NormalizerWrapper::BertNormalizer(stored)) = core.get_normalizer() else { return Ok(()) };
    if settings.bert.as_stored {
        return Ok(());
    }
    let mut normalizer = *stored;
    normalizer.clean_text = true;
    normalizer.lowercase = settings.bert.do_lower_case.unwrap_or(true);
    normalizer.strip_accents = settings.bert.strip_accents;
    normalizer.handle_chinese_chars = settings.bert.tokenize_chinese_chars.unwrap_or(true);
    core.with_normalizer(Some(normalizer))?;
    Ok(())
}

pub(super) fn lowercased(mut tokenizer: Tokenizer) -> Result<Tokenizer> {
    let mut steps = vec![NormalizerWrapper::Lowercase(Lowercase)];
    steps.extend(tokenizer.core.get_normalizer().cloned());
    if let Err(e) = tokenizer.core.with_normalizer(Some(Sequence::new(steps))) {
        return Err(
            tokenizer.error(format!("cannot be turned to lower case: {e}"), "set `do_lower_case` to false")
        );
    }
    Ok(tokenizer)
}

/// The tokenizer of models that write texts and read none (`Speech2TextTokenizer`): SentencePiece's pieces by `vocab.json`, which
/// says all that decoding needs.
fn written_pieces(vocabulary: &Value, settings: &Settings) -> Value {
    let unknown = settings.unk_token.as_deref().unwrap_or("<unk>");
    let json = r#"{
        "version": "1.0",
        "added_tokens": [],
        "normalizer": null,
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
        "post_processor": null,
        "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
        "model": {"type": "WordLevel", "vocab": "$vocab", "unk_token": "$unknown"}
    }"#;
    filled(json, &[("$vocab", vocabulary.clone()), ("$unknown", unknown.into())])
}
