//! Stopping criteria (`transformers.generation.stopping_criteria`).
//!
//! Reference: `transformers`, `generation/stopping_criteria.py`.

use std::collections::HashMap;
use std::time::Duration;

use super::config::GenerationConfig;
use crate::clock::Instant;
use crate::text::{TokenBytes, Tokenizer};
use crate::{Error, Result};

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A token that ends texts.
    End,
    /// The most tokens.
    Length,
    /// One of the texts that end answers.
    Text,
    /// The time was over.
    Time,
    /// The caller said so.
    Cancelled,
}

/// All criteria of one call.
pub(crate) struct Stopping {
    ends: Vec<i64>,
    most: usize,
    deadline: Option<Instant>,
    texts: Option<Texts>,
}

impl Stopping {
    pub(crate) fn new(config: &GenerationConfig, most: usize, tokenizer: Option<&Tokenizer>) -> Result<Self> {
        let texts = match (config.stop_strings.as_deref(), tokenizer) {
            (None | Some([]), _) => None,
            (Some(texts), Some(tokenizer)) => Some(Texts::new(texts, tokenizer)?),
            (Some(_), None) => {
                let help = "give the tokenizer too";
                return Err(Error::input("stop_strings", "cannot be found in tokens alone", help));
            }
        };
        let deadline = config.max_time.map(|seconds| {
            let time = Duration::try_from_secs_f64(seconds)
                .map_err(|_| Error::input("max_time", format!("{seconds} is no time"), "give seconds"))?;
            Ok(Instant::now().checked_add(time))
        });
        let deadline = deadline.transpose()?.flatten();
        Ok(Self { ends: config.eos_token_ids().to_vec(), most, deadline, texts })
    }

    /// Whether rows that ended are filled; where no token ends texts, the reference lets them go on.
    pub(crate) fn fills(&self) -> bool {
        !self.ends.is_empty()
    }

    /// Whether a row ends with its last token, and why.
    pub(crate) fn check(&mut self, ids: &[i64]) -> Result<Option<Stop>> {
        if ids.last().is_some_and(|last| self.ends.contains(last)) {
            return Ok(Some(Stop::End));
        }
        if let Some(texts) = &mut self.texts
            && texts.end(ids)?
        {
            return Ok(Some(Stop::Text));
        }
        if ids.len() >= self.most {
            return Ok(Some(Stop::Length));
        }
        Ok(self.deadline.is_some_and(|deadline| Instant::now() > deadline).then_some(Stop::Time))
    }
}

/// Texts that end an answer, looked for in the bytes of its tokens.
struct Texts {
    wanted: Vec<Vec<u8>>,
    longest: usize,
    bytes: TokenBytes,
    known: HashMap<i64, Vec<u8>>,
}

impl Texts {
    fn new(wanted: &[String], tokenizer: &Tokenizer) -> Result<Self> {
        if wanted.iter().any(String::is_empty) {
            return Err(Error::input("stop_strings", "an empty text ends nothing", "leave it out"));
        }
        let wanted: Vec<Vec<u8>> = wanted.iter().map(|text| text.as_bytes().to_vec()).collect();
        let longest = wanted.iter().map(Vec::len).max().unwrap_or(0);
        Ok(Self { wanted, longest, bytes: tokenizer.token_bytes()?, known: HashMap::new() })
    }

    /// Whether one of the texts ends within the last token.
    fn end(&mut self, ids: &[i64]) -> Result<bool> {
        let Some((last, before)) = ids.split_last() else { return Ok(false) };
        let last = self.bytes_of(*last)?;
        if last.is_empty() {
            return Ok(false);
        }
        let mut tail: Vec<Vec<u8>> = Vec::new();
        let mut length = 0;
        for id in before.iter().rev().take(self.longest) {
            if length >= self.longest {
                break;
            }
            let bytes = self.bytes_of(*id)?;
            length += bytes.len();
            tail.push(bytes);
        }
        let mut text: Vec<u8> = tail.into_iter().rev().flatten().collect();
        let before = text.len();
        text.extend(&last);
        Ok(self.wanted.iter().any(|wanted| {
            text.windows(wanted.len())
                .enumerate()
                .any(|(at, window)| at + wanted.len() > before && window == wanted)
        }))
    }

    fn bytes_of(&mut self, id: i64) -> Result<Vec<u8>> {
        if let Some(bytes) = self.known.get(&id) {
            return Ok(bytes.clone());
        }
        let bytes = self.bytes.of(id)?;
        self.known.insert(id, bytes.clone());
        Ok(bytes)
    }
}
