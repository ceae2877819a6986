//! A call's parameters, by the reference's names.

use std::cell::RefCell;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

#[cfg(feature = "text")]
use crate::generation::GenerationConfig;
#[cfg(feature = "text")]
use crate::tasks::TextOptions;
use crate::{Error, Result};

/// An object of parameters that remembers which names were asked for, to refuse the others.
pub(super) struct Parameters<'a> {
    values: Option<&'a Map<String, Json>>,
    asked: RefCell<Vec<&'static str>>,
}

impl<'a> Parameters<'a> {
    pub(super) fn new(parameters: &'a Json) -> Result<Self> {
        let values = match parameters {
            Json::Null => None,
            Json::Object(values) => Some(values),
            other => {
                let problem = format!("{other} is not an object");
                return Err(Error::input(
                    "parameters",
                    problem,
                    "give names and values, such as {\"top_k\": 3}",
                ));
            }
        };
        Ok(Self { values, asked: RefCell::default() })
    }

    fn raw(&self, name: &'static str) -> Option<&'a Json> {
        let mut asked = self.asked.borrow_mut();
        if !asked.contains(&name) {
            asked.push(name);
        }
        drop(asked);
        self.values?.get(name)
    }

    /// A parameter, if it was given and is not null.
    pub(super) fn get<T: DeserializeOwned>(&self, name: &'static str) -> Result<Option<T>> {
        match self.raw(name) {
            None | Some(Json::Null) => Ok(None),
            Some(value) => serde_json::from_value(value.clone()).map(Some).map_err(|e| {
                Error::input(name, format!("{value}: {e}"), "give it in the type that the task takes")
            }),
        }
    }

    /// Refuses names that nobody asked for.
    pub(super) fn finish(&self) -> Result<()> {
        self.others(|_| false).map(drop)
    }

    /// The parameters that nobody asked for and that are known otherwise; refuses all others.
    pub(super) fn others(&self, known: impl Fn(&str) -> bool) -> Result<Map<String, Json>> {
        let asked = self.asked.borrow();
        let others = self.values.into_iter().flatten().filter(|(name, _)| !asked.contains(&name.as_str()));
        match others.clone().find(|(name, _)| !known(name)) {
            None => Ok(others.map(|(name, value)| (name.clone(), value.clone())).collect()),
            Some((name, _)) => {
                let help = format!("one of {}", asked.join(", "));
                Err(Error::input("parameters", format!("unknown parameter `{name}`"), help))
            }
        }
    }
}

#[cfg(feature = "text")]
impl<'a> Parameters<'a> {
    /// Whether a parameter was given, be it as null.
    pub(super) fn given(&self, name: &'static str) -> bool {
        self.raw(name).is_some()
    }

    /// A parameter that holds parameters itself.
    pub(super) fn inner(&self, name: &'static str) -> Result<Parameters<'a>> {
        Parameters::new(self.raw(name).unwrap_or(&Json::Null))
    }

    /// The tokenizer's parameters, which some pipelines take beside their own and some in an object.
    pub(super) fn tokenizer(&self) -> Result<Tokenizing> {
        let truncation = match self.get::<Json>("truncation")? {
            None => None,
            Some(Json::Bool(yes)) => Some(yes),
            Some(Json::String(name)) if name == "longest_first" => Some(true),
            Some(Json::String(name)) if name == "do_not_truncate" => Some(false),
            Some(other) => {
                let help = "true, false, \"longest_first\" or \"do_not_truncate\"";
                return Err(Error::input("truncation", format!("is {other}"), help));
            }
        };
        let pad_to_max = match self.get::<Json>("padding")? {
            None | Some(Json::Bool(_)) => false,
            Some(Json::String(name)) if name == "longest" || name == "do_not_pad" => false,
            Some(Json::String(name)) if name == "max_length" => true,
            Some(other) => {
                let help = "true, false, \"longest\", \"max_length\" or \"do_not_pad\"";
                return Err(Error::input("padding", format!("is {other}"), help));
            }
        };
        let max_length = self.get("max_length")?;
        // A length alone asks for truncation, unless it is for padding.
        let truncation = truncation.unwrap_or(max_length.is_some() && !pad_to_max);
        Ok(Tokenizing { truncation, max_length, pad_to_max })
    }

    /// The options that all text pipelines have.
    pub(super) fn text(&self, tokenizing: &Tokenizing) -> Result<TextOptions> {
        Ok(TextOptions {
            truncation: tokenizing.truncation,
            max_length: tokenizing.max_length,
            batch_size: self.get("batch_size")?.unwrap_or(TextOptions::default().batch_size),
            allow_empty: self.get("allow_empty")?.unwrap_or(true),
        })
    }

    /// The parameters of generating, by the names of `GenerationConfig`; null is as if it were not given.
    pub(super) fn generation(&self) -> Result<GenerationConfig> {
        let names = GenerationConfig::FIELDS.iter().filter_map(|name| Some((*name, self.raw(name)?)));
        let given: Map<String, Json> = names.map(|(name, value)| (name.to_owned(), value.clone())).collect();
        GenerationConfig::from_json(&Json::Object(given))
    }
}

/// How a call wants its texts tokenized.
#[cfg(feature = "text")]
#[derive(Default)]
pub(super) struct Tokenizing {
    pub(super) truncation: bool,
    pub(super) max_length: Option<usize>,
    pub(super) pad_to_max: bool,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_length_alone_truncates() {
        let tokenizing = |json: Json| Parameters::new(&json).unwrap().tokenizer().unwrap();
        assert!(tokenizing(json!({"max_length": 7})).truncation);
        assert!(!tokenizing(json!({"max_length": 7, "truncation": false})).truncation);
        let padded = tokenizing(json!({"max_length": 7, "padding": "max_length"}));
        assert!(!padded.truncation && padded.pad_to_max);
    }

    #[test]
    fn others_are_known_or_refused() {
        let json = json!({"top_k": 3, "enable_thinking": false});
        let parameters = Parameters::new(&json).unwrap();
        parameters.get::<usize>("top_k").unwrap();
        let others = parameters.others(|name| name.starts_with("enable")).unwrap();
        assert_eq!(Json::Object(others), json!({"enable_thinking": false}));
        assert!(parameters.others(|_| false).unwrap_err().to_string().contains("`enable_thinking`"));
    }

    #[test]
    fn unknown_and_mistyped_parameters_are_named() {
        let json = json!({"topk": 3, "top_k": "three"});
        let parameters = Parameters::new(&json).unwrap();
        let text = parameters.get::<usize>("top_k").unwrap_err().to_string();
        assert!(text.contains("top_k") && text.contains("three"), "{text}");
        let text = parameters.finish().unwrap_err().to_string();
        assert!(text.contains("unknown parameter `topk`") && text.contains("one of top_k"), "{text}");
    }
}
