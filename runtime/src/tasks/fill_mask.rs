//! Fill-mask: tokens for the gaps of a text.
//!
//! Reference: `FillMaskPipeline`.

use ndarray::{ArrayViewD, Axis};
use serde::{Serialize, Serializer};

use super::batches::{Per, TextModel, numbered};
use super::builder::opened;
use super::scores::{softmax, top};
use super::{Pipeline, Task, TextOptions};
use crate::any_model::AnyModel;
use crate::text::{EncodeOptions, Encoding, Text};
use crate::{Error, Result};

/// Fills the gaps of a text, which its tokenizer's mask token marks.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// let fill = weft::tasks::FillMask::<A>::open("google-bert/bert-base-uncased")?.load()?;
/// for candidate in &fill.run("The capital of France is [MASK].")?.masks[0] {
///     println!("{:.3} {}", candidate.score, candidate.sequence);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FillMask<A> {
    text: TextModel<A>,
    mask: (String, i64),
}

/// How candidates are chosen.
#[derive(Clone, Debug)]
pub struct FillMaskOptions {
    /// The number of candidates for each gap.
    pub top_k: usize,
    /// The only candidates, if any are named. One that is not a token stands for its first token.
    pub targets: Vec<String>,
    /// Long, many and empty texts.
    pub text: TextOptions,
}

impl Default for FillMaskOptions {
    fn default() -> Self {
        Self { top_k: 5, targets: Vec::new(), text: TextOptions::default() }
    }
}

/// One way to fill a gap.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// Its probability among all tokens.
    pub score: f32,
    /// The token's id.
    pub token: i64,
    /// The token's text.
    pub token_str: String,
    /// The whole text with this gap filled.
    pub sequence: String,
}

/// The candidates for each gap of one text, in the order of the gaps.
#[derive(Clone, Debug, PartialEq)]
pub struct Filled {
    /// Candidates by gap, best first.
    pub masks: Vec<Vec<Candidate>>,
}

/// A list of candidates for one gap, a list of lists for several: the reference's shape.
impl Serialize for Filled {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self.masks.as_slice() {
            [only] => only.serialize(serializer),
            several => several.serialize(serializer),
        }
    }
}

impl<A: AnyModel> Pipeline<A> for FillMask<A> {
    const TASK: Task = Task::FillMask;

    fn from_model(model: A) -> Result<Self> {
        let text = TextModel::new(model)?;
        let Some((token, id)) = text.tokenizer.mask_token() else {
            return Err(Error::tokenizer(
                text.tokenizer.file(),
                "the tokenizer has no mask_token, which fill-mask needs",
                "name it in tokenizer_config.json, such as `\"mask_token\": \"[MASK]\"`",
            ));
        };
        let mask = (token.to_string(), id);
        if let Some(size) = text.vocab_size().filter(|size| usize::try_from(id).is_ok_and(|id| id >= *size)) {
            let problem = format!(
                "mask_token `{}` has id {id}, but the model's vocabulary has {size} tokens and the tokenizer's {}",
                mask.0,
                text.tokenizer.vocab_size()
            );
            let help = "take tokenizer and weights from one checkpoint";
            return Err(Error::tokenizer(text.tokenizer.file(), problem, help));
        }
        Ok(Self { text, mask })
    }
}

opened!(FillMask: text.model);

impl<A: AnyModel> FillMask<A> {
    /// The token that marks a gap.
    pub fn mask_token(&self) -> &str {
        &self.mask.0
    }

    /// The five best candidates for each gap of a text.
    ///
    /// # Errors
    /// When the text has no gap, is longer than the model's positions, or the model fails.
    pub fn run(&self, text: &str) -> Result<Filled> {
        let filled = self.run_batch(&[text])?;
        Ok(filled.into_iter().next().unwrap_or(Filled { masks: Vec::new() }))
    }

    /// The same for many texts at once.
    ///
    /// # Errors
    /// As [`FillMask::run`].
    pub fn run_batch(&self, texts: &[&str]) -> Result<Vec<Filled>> {
        self.run_with(texts, &FillMaskOptions::default())
    }

    /// The same with other than the default options.
    ///
    /// # Errors
    /// As [`FillMask::run`], and when no target can be used.
    pub fn run_with(&self, texts: &[&str], options: &FillMaskOptions) -> Result<Vec<Filled>> {
        let targets = self.targets(&options.targets)?;
        let texts: Vec<Text<'_>> = texts.iter().map(|text| Text::from(*text)).collect();
        let rows = self.text.rows(&texts, &options.text)?;
        for row in &rows {
            self.check_gap(row, texts.len(), options.text.truncation)?;
        }
        let outputs = self.text.run(&rows, options.text.batch_size, &[("logits", Per::Token)])?;
        rows.iter()
            .zip(&outputs[0])
            .map(|(row, logits)| self.filled(row, &logits.view(), targets.as_deref(), options.top_k))
            .collect()
    }

    fn check_gap(&self, row: &Encoding, count: usize, truncated: bool) -> Result<()> {
        let (token, id) = &self.mask;
        if row.ids.contains(id) {
            return Ok(());
        }
        let name = numbered("text", row.sample, count);
        let cut = if truncated { " in the part that truncation left" } else { "" };
        Err(Error::input(
            name,
            format!("has no mask token{cut}"),
            format!("write `{token}` where a token is to be filled in"),
        ))
    }

    fn filled(
        &self,
        row: &Encoding,
        logits: &ArrayViewD<'_, f32>,
        targets: Option<&[i64]>,
        top_k: usize,
    ) -> Result<Filled> {
        let gaps: Vec<usize> = (0..row.len()).filter(|i| row.ids[*i] == self.mask.1).collect();
        let mut masks = Vec::with_capacity(gaps.len());
        for gap in &gaps {
            let logits: Vec<f32> = logits.index_axis(Axis(0), *gap).iter().copied().collect();
            let best = best(&logits, targets, top_k);
            let mut candidates = Vec::with_capacity(best.len());
            for (token, score) in best {
                let mut ids = row.ids.clone();
                ids[*gap] = token;
                if let Some((_, pad)) = self.text.tokenizer.pad_token() {
                    ids.retain(|id| *id != pad);
                }
                candidates.push(Candidate {
                    score,
                    token,
                    token_str: self.text.tokenizer.decode(&[token], false)?,
                    // With several gaps the others must stay to be seen, so special tokens stay too.
                    sequence: self.text.tokenizer.decode(&ids, gaps.len() == 1)?,
                });
            }
            masks.push(candidates);
        }
        Ok(Filled { masks })
    }

    /// The ids of the targets, or none when none are named.
    fn targets(&self, targets: &[String]) -> Result<Option<Vec<i64>>> {
        if targets.is_empty() {
            return Ok(None);
        }
        let mut ids = Vec::new();
        for target in targets {
            let Some(id) = self.target(target)? else { continue };
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        if ids.is_empty() {
            let problem = format!("none of {targets:?} has a token");
            return Err(Error::input("targets", problem, "name words that the tokenizer knows"));
        }
        Ok(Some(ids))
    }

    fn target(&self, target: &str) -> Result<Option<i64>> {
        let tokenizer = &self.text.tokenizer;
        let id = match tokenizer.id(target) {
            Some(id) => id,
            None => {
                let plain = EncodeOptions { add_special_tokens: false, ..EncodeOptions::default() };
                let rows = tokenizer.encode(&[target.into()], &plain)?;
                let Some(id) = rows.first().and_then(|row| row.ids.first().copied()) else {
                    tracing::warn!("target `{target}` is not in the vocabulary and is left out");
                    return Ok(None);
                };
                let token = tokenizer.token(id).unwrap_or_default();
                tracing::warn!("target `{target}` is not in the vocabulary: `{token}` stands for it");
                id
            }
        };
        if let Some(size) = self.text.vocab_size() {
            let one = Encoding { ids: vec![id], ..Encoding::default() };
            tokenizer.check_vocabulary(&one, size)?;
        }
        Ok(Some(id))
    }
}

/// The best tokens for one gap and their probabilities among all, best first.
fn best(logits: &[f32], targets: Option<&[i64]>, top_k: usize) -> Vec<(i64, f32)> {
    let probabilities = softmax(logits);
    match targets {
        None => top(&probabilities, top_k).into_iter().map(|i| (i as i64, probabilities[i])).collect(),
        Some(ids) => {
            let picked: Vec<f32> = ids.iter().map(|id| probabilities[*id as usize]).collect();
            top(&picked, top_k).into_iter().map(|i| (ids[i], picked[i])).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_keep_their_probability_among_all() {
        let logits = [0.0, 1.0, 2.0, 3.0];
        let all = best(&logits, None, 2);
        assert_eq!((all[0].0, all[1].0), (3, 2));
        let some = best(&logits, Some(&[0, 2]), 5);
        assert_eq!(some.iter().map(|c| c.0).collect::<Vec<_>>(), [2, 0]);
        assert_eq!(some[0].1, all[1].1);
    }

    #[test]
    fn one_gap_is_a_list_and_several_are_a_list_of_lists() {
        let candidate = Candidate { score: 0.5, token: 7, token_str: "fox".into(), sequence: "a fox".into() };
        let one = Filled { masks: vec![vec![candidate.clone()]] };
        let json = serde_json::to_value(&one).unwrap();
        assert_eq!(json[0]["token_str"], "fox");
        let two = Filled { masks: vec![vec![candidate.clone()], vec![candidate]] };
        assert_eq!(serde_json::to_value(&two).unwrap()[1][0]["token"], 7);
    }
}
