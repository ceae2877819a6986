//! Each pipeline's inputs, parameters and answers in the reference's shapes.

use serde_json::{Value as Json, json};

use super::JsonPipeline;
use super::parameters::Parameters;
use super::shapes::{shaped, start_of, texts, to_json};
use crate::any_model::DynModel;
use crate::tasks::{
    Aggregation, ClassificationOptions, EmbeddingOptions, FeatureExtraction, FeatureOptions, FillMask,
    FillMaskOptions, Question, QuestionAnswering, QuestionOptions, SentenceEmbedding, TextClassification,
    TextOptions, TokenClassification, TokenOptions, ZeroShotClassification, ZeroShotOptions,
};
use crate::text::Text;
use crate::{Error, Result};

impl JsonPipeline for FillMask<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let inner = parameters.inner("tokenizer_kwargs")?;
        let tokenizing = inner.tokenizer()?;
        inner.finish()?;
        let targets = match parameters.get::<Json>("targets")? {
            None => Vec::new(),
            Some(one @ Json::String(_)) => texts(&one)?.into_iter().map(str::to_string).collect(),
            Some(list) => texts(&list)?.into_iter().map(str::to_string).collect(),
        };
        let options = FillMaskOptions {
            top_k: parameters.get("top_k")?.unwrap_or(5),
            targets,
            text: parameters.text(&tokenizing)?,
        };
        parameters.finish()?;
        let mut filled = self.run_with(&texts(inputs)?, &options)?;
        // A list of one text is answered as the text alone.
        if filled.len() == 1 { to_json(&filled.remove(0)) } else { to_json(&filled) }
    }
}

impl JsonPipeline for TextClassification<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        // Without `top_k` each text has one label, outside of a list; `null` asks for all of them.
        let plain = !parameters.given("top_k");
        let options = ClassificationOptions {
            top_k: if plain { Some(1) } else { parameters.get("top_k")? },
            function_to_apply: parameters.get("function_to_apply")?,
            text: parameters.text(&parameters.tokenizer()?)?,
        };
        parameters.finish()?;
        let given: Vec<Text<'_>> = match inputs {
            Json::Array(list) => list.iter().map(text_or_pair).collect::<Result<_>>()?,
            one => vec![text_or_pair(one)?],
        };
        let results = self.run_with(&given, &options)?;
        let shaped: Vec<Json> = results
            .into_iter()
            .map(|mut labels| if plain { to_json(&labels.remove(0)) } else { to_json(&labels) })
            .collect::<Result<_>>()?;
        Ok(match inputs {
            Json::Array(_) => Json::Array(shaped),
            Json::String(_) if plain => Json::Array(shaped),
            _ => shaped.into_iter().next().unwrap_or_default(),
        })
    }
}

impl JsonPipeline for ZeroShotClassification<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let labels: Json = parameters.get("candidate_labels")?.unwrap_or_else(|| json!([]));
        let defaults = ZeroShotOptions::default();
        let options = ZeroShotOptions {
            hypothesis_template: parameters
                .get("hypothesis_template")?
                .unwrap_or(defaults.hypothesis_template),
            multi_label: parameters.get("multi_label")?.unwrap_or(defaults.multi_label),
            text: parameters.text(&super::parameters::Tokenizing::default())?,
        };
        parameters.finish()?;
        // One text names them all, with commas between.
        let labels = match &labels {
            Json::String(list) => list.split(',').map(str::trim).filter(|label| !label.is_empty()).collect(),
            list => texts(list)?,
        };
        let given = texts(inputs)?;
        let answers =
            self.run_with(&given, &labels, &options)?.into_iter().zip(&given).map(|(found, text)| {
                let (labels, scores): (Vec<_>, Vec<_>) =
                    found.into_iter().map(|label| (label.label, label.score)).unzip();
                json!({"sequence": text, "labels": labels, "scores": scores})
            });
        shaped(inputs, answers.collect())
    }
}

impl JsonPipeline for TokenClassification<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let defaults = TokenOptions::default();
        let options = TokenOptions {
            aggregation: parameters.get::<Aggregation>("aggregation_strategy")?.unwrap_or_default(),
            ignore_labels: parameters.get("ignore_labels")?.unwrap_or(defaults.ignore_labels),
            stride: parameters.get("stride")?,
            delimiter: parameters.get("delimiter")?.unwrap_or(defaults.delimiter),
            text: parameters.text(&super::parameters::Tokenizing::default())?,
        };
        let split: bool = parameters.get("is_split_into_words")?.unwrap_or(false);
        parameters.finish()?;
        if split {
            let nested = inputs.as_array().is_some_and(|list| list.iter().all(Json::is_array));
            let sentences = match inputs {
                Json::Array(list) if nested => list.iter().map(texts).collect::<Result<Vec<_>>>()?,
                one => vec![texts(one)?],
            };
            let given: Vec<Text<'_>> = sentences.iter().map(|words| Text::Words(words)).collect();
            return to_json(&self.run_with(&given, &options)?);
        }
        let given: Vec<Text<'_>> = texts(inputs)?.into_iter().map(Text::from).collect();
        shaped(inputs, self.run_with(&given, &options)?)
    }
}

impl JsonPipeline for FeatureExtraction<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let inner = parameters.inner("tokenize_kwargs")?;
        let mut tokenizing = inner.tokenizer()?;
        inner.finish()?;
        if let Some(truncation) = parameters.get("truncation")? {
            tokenizing.truncation = truncation;
        }
        let batch_size: usize = parameters.get("batch_size")?.unwrap_or(1);
        let text = TextOptions { batch_size, ..parameters.text(&tokenizing)? };
        parameters.finish()?;
        let given = texts(inputs)?;
        let pad_to = tokenizing.pad_to_max.then(|| tokenizing.max_length.or(self.longest())).flatten();
        let mut features = Vec::new();
        for chunk in given.chunks(batch_size.max(1)) {
            // The reference does not cut off what a batch's shorter texts are padded by.
            let longest = self.lengths(chunk, &text)?.into_iter().max();
            let padded = pad_to.max(longest.filter(|_| chunk.len() > 1));
            let options = FeatureOptions { pad_to: padded, text: text.clone() };
            for states in self.run_with(chunk, &options)? {
                let rows: Vec<Vec<f32>> = states.outer_iter().map(|row| row.to_vec()).collect();
                features.push(json!([rows]));
            }
        }
        shaped(inputs, features)
    }
}

impl JsonPipeline for SentenceEmbedding<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let options = EmbeddingOptions {
            prompt: parameters.get("prompt")?,
            prompt_name: parameters.get("prompt_name")?,
            normalize: parameters.get("normalize_embeddings")?.unwrap_or(false),
            truncate_dim: parameters.get("truncate_dim")?,
            text: parameters.text(&super::parameters::Tokenizing::default())?,
        };
        parameters.finish()?;
        let vectors = self.run_with(&texts(inputs)?, &options)?;
        shaped(inputs, vectors.outer_iter().map(|row| row.to_vec()).collect())
    }
}

impl JsonPipeline for QuestionAnswering<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let defaults = QuestionOptions::default();
        let options = QuestionOptions {
            top_k: parameters.get("top_k")?.unwrap_or(defaults.top_k),
            doc_stride: parameters.get("doc_stride")?,
            max_answer_len: parameters.get("max_answer_len")?.unwrap_or(defaults.max_answer_len),
            max_seq_len: parameters.get("max_seq_len")?,
            handle_impossible_answer: parameters.get("handle_impossible_answer")?.unwrap_or(false),
            align_to_words: parameters.get("align_to_words")?.unwrap_or(true),
            batch_size: parameters.get("batch_size")?.unwrap_or(defaults.batch_size),
        };
        parameters.finish()?;
        let given = match inputs {
            Json::Array(list) => list.iter().map(question).collect::<Result<Vec<_>>>()?,
            one => vec![question(one)?],
        };
        let mut results = Vec::new();
        for mut answers in self.run_with(&given, &options)? {
            results.push(if answers.len() == 1 { to_json(&answers.remove(0))? } else { to_json(&answers)? });
        }
        // A list of one question is answered as the question alone.
        Ok(if results.len() == 1 { results.remove(0) } else { Json::Array(results) })
    }
}

fn question(value: &Json) -> Result<Question<'_>> {
    match (value["question"].as_str(), value["context"].as_str()) {
        (Some(question), Some(context)) => Ok(Question { question, context }),
        _ => Err(Error::input(
            "inputs",
            format!("{} is not a question with its context", start_of(value)),
            "give {\"question\": \"…\", \"context\": \"…\"}, or a list of those",
        )),
    }
}

/// A text, or an object with `text` and `text_pair`.
fn text_or_pair(value: &Json) -> Result<Text<'_>> {
    match (value.as_str(), value["text"].as_str(), &value["text_pair"]) {
        (Some(text), _, _) | (None, Some(text), Json::Null) => Ok(Text::Single(text)),
        (None, Some(text), Json::String(pair)) if pair.is_empty() => Ok(Text::Single(text)),
        (None, Some(text), Json::String(pair)) => Ok(Text::Pair(text, pair)),
        _ => Err(Error::input(
            "inputs",
            format!("{} is neither a text nor a pair", start_of(value)),
            "give a text, {\"text\": \"…\", \"text_pair\": \"…\"}, or a list of those",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_told_apart() {
        assert_eq!(text_or_pair(&json!("a")).unwrap(), Text::Single("a"));
        assert_eq!(text_or_pair(&json!({"text": "a", "text_pair": "b"})).unwrap(), Text::Pair("a", "b"));
        assert!(text_or_pair(&json!(["a", "b"])).is_err());
        assert!(question(&json!({"question": "a"})).is_err());
    }
}
