//! What all text pipelines share: texts to checked rows, rows through the model in batches.

use ndarray::{ArrayD, Axis, Slice};
use serde_json::Value as Json;

use super::outputs::output;
use crate::any_model::AnyModel;
use crate::graph::Input;
use crate::text::{Batch, EncodeOptions, Encoding, Padding, Text, Tokenizer, Truncation};
use crate::{Error, Result, Values};

/// What to do with texts that are long, many or empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Cuts texts that are longer than `max_length`; otherwise they are errors.
    pub truncation: bool,
    /// The most tokens; by default the tokenizer's `model_max_length`, and never more than the model's positions.
    pub max_length: Option<usize>,
    /// The most rows that run through the model at once.
    pub batch_size: usize,
    /// Gives an answer for texts without any token, as the reference does; otherwise they are errors.
    pub allow_empty: bool,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self { truncation: false, max_length: None, batch_size: 32, allow_empty: false }
    }
}

/// Whether an output has one entry for each token or for each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Per {
    Token,
    Row,
}

/// A model with its tokenizer.
#[derive(Debug)]
pub(super) struct TextModel<A> {
    pub(super) model: A,
    pub(super) tokenizer: Tokenizer,
}

impl<A: AnyModel> TextModel<A> {
    pub(super) fn new(model: A) -> Result<Self> {
        let tokenizer = Tokenizer::from_checkpoint(model.checkpoint())?;
        Ok(Self { model, tokenizer })
    }

    /// The number of tokens that the model has embeddings for.
    pub(super) fn vocab_size(&self) -> Option<usize> {
        self.token_ids().and_then(|ids| ids.below).map(|(size, _)| size)
    }

    /// The model's input of token ids, or the first of several: `classes_input_ids`.
    fn token_ids(&self) -> Option<&Input> {
        let inputs = self.model.inputs();
        let named = inputs.iter().find(|input| input.name == "input_ids");
        named.or_else(|| inputs.iter().find(|input| input.name.ends_with("input_ids")))
    }

    /// The positions that the model has for what is given to it; an encoder's may be others than a decoder's.
    pub(super) fn positions(&self) -> Option<usize> {
        let ids = self.token_ids();
        let length = ids.and_then(|ids| ids.shape.last()).map(ToString::to_string);
        let table = self.model.limit(length.as_deref().unwrap_or("sequence"));
        table.or_else(|| context(self.model.raw_config()))
    }

    /// The longest row: the tokenizer's limit or the model's positions, whichever is less.
    pub(super) fn longest(&self) -> Option<usize> {
        let settings = self.tokenizer.settings().model_max_length;
        settings.into_iter().chain(self.positions()).min()
    }

    /// Encodes texts as `options` say and checks them.
    pub(super) fn rows(&self, texts: &[Text<'_>], options: &TextOptions) -> Result<Vec<Encoding>> {
        let encode = if options.truncation {
            let limit = self.positions();
            let asked = options.max_length.or(self.longest());
            EncodeOptions::truncated(asked.into_iter().chain(limit).min())
        } else {
            EncodeOptions::default()
        };
        self.encode(texts, &encode, options.allow_empty)
    }

    /// Encodes texts and checks that each has tokens, all of them the model's, and not too many.
    pub(super) fn encode(
        &self,
        texts: &[Text<'_>],
        encode: &EncodeOptions,
        allow_empty: bool,
    ) -> Result<Vec<Encoding>> {
        let rows = self.tokenizer.encode(texts, encode)?;
        let bounds = Bounds { positions: self.positions(), vocab_size: self.vocab_size() };
        for row in &rows {
            let name = numbered("text", row.sample, texts.len());
            if row.is_blank() && !allow_empty {
                return Err(blank(name));
            }
            bounds.check(&self.tokenizer, row, name, encode.truncation)?;
        }
        Ok(rows)
    }

    /// Refuses texts without any token, where they are only a part of what is encoded.
    pub(super) fn refuse_blank(&self, texts: &[&str]) -> Result<()> {
        let alone: Vec<Text<'_>> = texts.iter().map(|text| (*text).into()).collect();
        let rows = self.tokenizer.encode(&alone, &EncodeOptions::default())?;
        match rows.iter().find(|row| row.is_blank()) {
            Some(row) => Err(blank(numbered("text", row.sample, texts.len()))),
            None => Ok(()),
        }
    }

    /// Runs rows in batches of similar length; gives for each output the rows' entries in their order.
    ///
    /// Entries by token are as long as their row: padding is cut off.
    pub(super) fn run(
        &self,
        rows: &[Encoding],
        batch_size: usize,
        outputs: &[(&str, Per)],
    ) -> Result<Vec<Vec<ArrayD<f32>>>> {
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|i| std::cmp::Reverse(rows[*i].len()));
        let mut entries = vec![vec![ArrayD::zeros(vec![0]); rows.len()]; outputs.len()];
        for chunk in order.chunks(batch_size.max(1)) {
            let picked: Vec<&Encoding> = chunk.iter().map(|i| &rows[*i]).collect();
            let mut batch = self.tokenizer.pad(&picked, &Padding::default())?;
            let starts = std::mem::take(&mut batch.starts);
            let values = self.model.run(self.inputs(batch))?;
            for ((name, per), entries) in outputs.iter().zip(&mut entries) {
                let all = output(&values, name)?;
                for (r, row) in chunk.iter().enumerate() {
                    let mut entry = all.index_axis(Axis(0), r);
                    if *per == Per::Token {
                        let start = starts[r];
                        entry.slice_axis_inplace(Axis(0), Slice::from(start..start + rows[*row].len()));
                    }
                    entries[*row] = entry.to_owned();
                }
            }
        }
        Ok(entries)
    }

    /// The tensors of a batch that the model and the tokenizer's configuration both name.
    pub(super) fn inputs(&self, batch: Batch) -> Values {
        let mut values = batch.into_values();
        let named = self.tokenizer.settings().model_input_names.as_ref();
        values.retain(|name, _| {
            self.model.inputs().iter().any(|input| input.name == *name)
                && (name == "input_ids" || named.is_none_or(|names| names.contains(name)))
        });
        values
    }
}

/// The error of a text without any token.
fn blank(name: String) -> Error {
    let help = "leave it out, or set `allow_empty` for the answer that the reference gives";
    Error::input(name, "is empty: the tokenizer finds nothing in it", help)
}

/// What a model's rows may hold.
struct Bounds {
    positions: Option<usize>,
    vocab_size: Option<usize>,
}

impl Bounds {
    fn check(
        &self,
        tokenizer: &Tokenizer,
        row: &Encoding,
        name: String,
        truncation: Truncation,
    ) -> Result<()> {
        if let Some(positions) = self.positions.filter(|positions| row.len() > *positions) {
            let help = match truncation {
                Truncation::No => "shorten it, split it, or set `truncation` to cut it",
                _ => "set `max_length` to no more than that",
            };
            let problem = format!("has {} tokens, but the model has positions for {positions}", row.len());
            return Err(Error::input(name, problem, help));
        }
        self.vocab_size.map_or(Ok(()), |size| tokenizer.check_vocabulary(row, size))
    }
}

/// The longest text that a model without a table of positions was made for; none where its waves grow with the text.
fn context(config: &Json) -> Option<usize> {
    let longest = |config: &Json| config["max_position_embeddings"].as_u64();
    let config = Some(&config["text_config"]).filter(|text| longest(text).is_some()).unwrap_or(config);
    let grows = ["rope_parameters", "rope_scaling"]
        .iter()
        .map(|key| &config[key])
        // A given `alpha` stretches waves once and for all.
        .any(|rope| {
            ["rope_type", "type"].iter().any(|kind| rope[kind] == "dynamic") && rope["alpha"].is_null()
        });
    longest(config).filter(|_| !grows).and_then(|longest| usize::try_from(longest).ok())
}

/// `text`, or `text 3` of many.
pub(super) fn numbered(name: &str, index: usize, count: usize) -> String {
    if count == 1 { name.to_string() } else { format!("{name} {index}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::hub::Checkpoint;

    fn tokenizer() -> Tokenizer {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("vocab.txt"), "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n")
            .unwrap();
        Tokenizer::from_checkpoint(&Checkpoint::open(folder.path().to_str().unwrap()).unwrap()).unwrap()
    }

    fn check(text: &str, positions: usize, vocab_size: usize, truncation: Truncation) -> String {
        let tokenizer = tokenizer();
        let rows = tokenizer.encode(&[text.into()], &EncodeOptions::default()).unwrap();
        let bounds = Bounds { positions: Some(positions), vocab_size: Some(vocab_size) };
        bounds
            .check(&tokenizer, &rows[0], numbered("text", 2, 3), truncation)
            .map_or_else(|e| e.to_string(), |()| String::new())
    }

    #[test]
    fn a_text_longer_than_the_positions_names_both_lengths() {
        assert_eq!(check("a b", 4, 7, Truncation::No), "");
        let text = check("a b a", 4, 7, Truncation::No);
        assert!(text.contains("text 2: has 5 tokens") && text.contains("positions for 4"), "{text}");
        assert!(text.contains("`truncation`"), "{text}");
        assert!(check("a b a", 4, 7, Truncation::LongestFirst).contains("`max_length`"));
    }

    #[test]
    fn rotary_models_have_the_context_that_they_were_made_for() {
        let of = |config: Json| context(&config);
        assert_eq!(of(json!({"max_position_embeddings": 2048})), Some(2048));
        let nested = json!({"max_position_embeddings": 1, "text_config": {"max_position_embeddings": 4096}});
        assert_eq!(of(nested), Some(4096));
        let grows = json!({"rope_type": "dynamic", "factor": 2.0});
        assert_eq!(of(json!({"max_position_embeddings": 2048, "rope_parameters": grows})), None);
        let stretched = json!({"rope_type": "dynamic", "factor": 1.0, "alpha": 1000.0});
        assert_eq!(of(json!({"max_position_embeddings": 2048, "rope_parameters": stretched})), Some(2048));
        assert_eq!(of(json!({"n_positions": 512})), None);
    }

    #[test]
    fn a_token_beyond_the_vocabulary_names_both_sizes() {
        let text = check("a b", 4, 6, Truncation::No);
        assert!(
            text.contains("`b` has id 6") && text.contains("has 6 tokens and the tokenizer's 7"),
            "{text}"
        );
    }
}
