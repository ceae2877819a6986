//! Answers of RAG-Sequence: written from each passage alone, and scored by all (`RagSequenceForGeneration.generate`, "thorough
//! decoding"). What fills passages is hidden from the generator, as in the reference before release 5, which leaves out the mask.

use ndarray::{Array1, Array2, Array3, Axis, s};

use super::{GenerativeQuestionAnswering, Layout, log_sum_exp};
use crate::any_model::AnyModel;
use crate::generation::{GenerationConfig, ModelDecoder, Prompt};
use crate::tasks::outputs::output;
use crate::tasks::text_generation::GenerationOptions;
use crate::{Error, Result, Value, Values};

impl<A: AnyModel> GenerativeQuestionAnswering<A> {
    /// The tokens of the likeliest answers over all passages, the likeliest first: as many as `num_return_sequences` says, or all where
    /// passages and beams gave fewer that differ.
    pub(super) fn sequences(
        &self,
        start: i64,
        inputs: &Values,
        config: &GenerationConfig,
        options: &GenerationOptions,
    ) -> Result<Vec<Vec<i64>>> {
        // Of these the reference asks its own configuration, not the generator's.
        let raw = self.model.raw_config();
        let own = |given: Option<usize>, name: &str| {
            given.or(raw[name].as_u64().map(|count| count as usize)).unwrap_or(1)
        };
        let wanted = own(options.generation.num_return_sequences, "num_return_sequences");
        let beams = own(options.generation.num_beams, "num_beams");
        let Some(Value::I64(read)) = inputs.get("context_input_ids") else { return Ok(vec![]) };
        let read = read.clone().into_dimensionality().unwrap_or_else(|_| Array2::zeros((1, 1)));
        let prompt = Prompt::decoder(start, read);
        let each =
            GenerationConfig { num_beams: Some(beams), num_return_sequences: Some(beams), ..config.clone() };
        let mut decoder = ModelDecoder::encoder_decoder(&self.model, inputs.clone())?;
        let generated = self.generated(&prompt, &each, options, &mut decoder)?;
        let mut candidates: Vec<&Vec<i64>> = vec![];
        for sequence in &generated.sequences {
            if !self.layout.deduplicate || !candidates.contains(&sequence) {
                candidates.push(sequence);
            }
        }
        let pad = config.pad_token_id;
        let without_bos = begin_with_bos(&candidates, &self.layout);
        let mut scored = vec![];
        for sequence in candidates {
            let (logits, doc_scores) = self.logits(inputs, sequence)?;
            let score = sequence_score(&logits, &doc_scores, sequence, pad, without_bos);
            scored.push((score, sequence));
        }
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        Ok(scored.into_iter().take(wanted).map(|(_, sequence)| sequence.clone()).collect())
    }

    /// The logits `[n_docs, length, vocab_size]` of an answer after each passage, and the passages' scores `[n_docs]`.
    fn logits(&self, inputs: &Values, sequence: &[i64]) -> Result<(Array3<f32>, Array1<f32>)> {
        let mut given = inputs.clone();
        let ids = Array1::from_iter(sequence.iter().copied()).insert_axis(Axis(0));
        given.insert("decoder_input_ids".to_owned(), Value::I64(ids.into_dyn()));
        let outputs = self.model.run(given)?;
        let logits = output(&outputs, "logits")?.to_owned().into_dimensionality();
        let logits = logits.map_err(|e| {
            let help = "load the class `RagSequenceForGeneration`";
            Error::input("logits", format!("they are not those of each passage: {e}"), help)
        })?;
        let scores = output(&outputs, "doc_scores")?;
        Ok((logits, Array1::from_iter(scores.iter().copied())))
    }
}

/// Whether all answers begin with the token that begins texts, behind the one that begins every answer.
fn begin_with_bos(sequences: &[&Vec<i64>], layout: &Layout) -> bool {
    layout.bos_token_id.is_some_and(|bos| sequences.iter().all(|sequence| sequence.get(1) == Some(&bos)))
}

/// The logarithm of an answer's probability over all passages (`get_nll`). `logits` are `[n_docs, length, vocab_size]`; what fills the
/// answer does not count. As in the reference, passages weigh in with the answer's second token, and not at all where that fills it.
fn sequence_score(
    logits: &Array3<f32>,
    doc_scores: &Array1<f32>,
    sequence: &[i64],
    pad: Option<i64>,
    without_bos: bool,
) -> f32 {
    let sum = log_sum_exp(doc_scores.iter().copied());
    let next = sequence.iter().skip(1).map(|id| Some(*id)).chain([pad]);
    let targets: Vec<Option<usize>> =
        next.map(|id| id.filter(|_| id != pad).and_then(|id| usize::try_from(id).ok())).collect();
    let of_passage = |(passage, score): (usize, &f32)| {
        let tokens = targets.iter().enumerate().skip(usize::from(without_bos));
        tokens
            .filter_map(|(at, target)| {
                let row = logits.slice(s![passage, at, ..]);
                let token = row.get((*target)?)? - log_sum_exp(row.iter().copied());
                Some(if at == 1 { token + score - sum } else { token })
            })
            .sum::<f32>()
    };
    let passages: Vec<f32> = doc_scores.iter().enumerate().map(of_passage).collect();
    log_sum_exp(passages.iter().copied())
}

#[cfg(test)]
mod tests {
    use ndarray::arr1;
    use serde_json::json;

    use super::*;

    /// Two passages, three tokens each of four: the logarithms of what is to be added up by hand.
    fn logits() -> Array3<f32> {
        let rows = [[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25]];
        let more = [[0.7, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.7], [0.25, 0.25, 0.25, 0.25]];
        Array3::from_shape_fn((2, 3, 4), |(p, at, id)| f32::ln([rows, more][p][at][id]))
    }

    #[test]
    fn passages_weigh_in_with_the_second_token() {
        let scores = arr1(&[f32::ln(3.0), 0.0]);
        let score = |sequence: &[i64], bos| sequence_score(&logits(), &scores, sequence, Some(1), bos);
        assert!((score(&[2, 3, 0], false) - f32::ln(0.4 * 0.4 * 0.75 + 0.1 * 0.1 * 0.25)).abs() < 1e-5);
        assert!((score(&[2, 3, 0], true) - f32::ln(0.4 * 0.75 + 0.1 * 0.25)).abs() < 1e-5);
        assert!((score(&[2, 3, 1], false) - f32::ln(0.4 + 0.1)).abs() < 1e-5, "the second fills");
    }

    #[test]
    fn the_token_that_begins_texts_counts_unless_all_begin_with_it() {
        let layout = |config| Layout::of(&config);
        let both = [&vec![2, 0, 5], &vec![2, 0, 7]];
        assert!(begin_with_bos(&both, &layout(json!({"generator": {"bos_token_id": 0}}))));
        assert!(begin_with_bos(&both, &layout(json!({"bos_token_id": 0, "generator": {"bos_token_id": 0}}))));
        assert!(!begin_with_bos(
            &both,
            &layout(json!({"bos_token_id": 4, "generator": {"bos_token_id": 0}}))
        ));
        assert!(!begin_with_bos(
            &[&vec![2, 0], &vec![2, 6]],
            &layout(json!({"generator": {"bos_token_id": 0}}))
        ));
        assert!(!begin_with_bos(&both, &layout(json!({}))));
    }
}
