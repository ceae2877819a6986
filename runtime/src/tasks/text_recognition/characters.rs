//! Indices of characters to texts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::hub::Checkpoint;
use crate::image::ImageProcessor;
use crate::{Error, Result};

/// What a model's indices stand for.
#[derive(Clone, Debug)]
pub(super) enum Characters {
    /// One for each column of an image, the first of which is the blank: what follows on itself is one
    /// (`post_process_text_recognition`).
    Ctc {
        /// The characters by index.
        list: Vec<String>,
        /// The file that lists them.
        file: PathBuf,
    },
    /// One after the other, up to the token of the end (`MgpstrProcessor.char_decode`).
    Listed {
        /// The characters by index.
        names: BTreeMap<usize, String>,
        /// The file that lists them.
        file: PathBuf,
    },
}

const VOCABULARY: &str = "vocab.json";
/// The token of the end, as the reference's processor has it.
const END: (usize, &str) = (1, "[s]");
const HELP: &str = "take the file from the checkpoint that it came with";

impl Characters {
    /// Those of the image processor, where it lists them, or else of the tokenizer.
    pub(super) fn of(processor: &ImageProcessor, checkpoint: &Checkpoint) -> Result<Self> {
        if processor.class().starts_with("PPOCR") {
            return Ok(Self::Ctc { list: processor.character_list()?, file: processor.file().to_owned() });
        }
        let file = checkpoint.dir().join(VOCABULARY);
        let wrong = |problem: &str| Error::config(&file, problem.to_owned(), HELP);
        let written = checkpoint.json(VOCABULARY)?;
        let written = written.ok_or_else(|| wrong("is missing, so that no text can be told"))?;
        let listed = written.as_object().ok_or_else(|| wrong("is no map of characters to indices"))?;
        let index =
            |(name, index): (&String, &serde_json::Value)| Some((index.as_u64()? as usize, name.clone()));
        let names = listed.iter().map(index).collect::<Option<BTreeMap<_, _>>>();
        match names {
            Some(names) if !names.is_empty() => Ok(Self::Listed { names, file }),
            _ => Err(wrong("is no map of characters to indices")),
        }
    }

    /// The text of the most probable indices, and its score.
    pub(super) fn text(&self, best: &[(usize, f32)]) -> Result<(String, f32)> {
        match self {
            Self::Ctc { list, file } => {
                let new = |place: usize| place == 0 || best[place].0 != best[place - 1].0;
                let kept: Vec<_> = (0..best.len())
                    .filter(|place| new(*place) && best[*place].0 != 0)
                    .map(|place| best[place])
                    .collect();
                let name = |(index, _): &(usize, f32)| {
                    list.get(*index).map(String::as_str).ok_or_else(|| {
                        let problem = format!(
                            "`character_list` has {} characters, but the model gave index {index}",
                            list.len()
                        );
                        Error::config(file, problem, HELP)
                    })
                };
                let text = kept.iter().map(name).collect::<Result<String>>()?;
                let sum: f32 = kept.iter().map(|(_, score)| score).sum();
                Ok((text, if kept.is_empty() { 0.0 } else { sum / kept.len() as f32 }))
            }
            Self::Listed { names, file } => {
                // The first token is that of the beginning.
                let read = best.get(1..).unwrap_or_default();
                let end = read.iter().position(|(index, _)| *index == END.0);
                let name = |(index, _): &(usize, f32)| {
                    names.get(index).map(String::as_str).ok_or_else(|| {
                        Error::config(
                            file,
                            format!("has no character of index {index}, which the model gave"),
                            HELP,
                        )
                    })
                };
                let all = read.iter().map(name).collect::<Result<String>>()?;
                let cut = all.find(END.1);
                // Without an end the reference leaves out the last character, and is not sure at all.
                let last = all.char_indices().next_back().map_or(0, |(at, _)| at);
                let score = end.map_or(0.0, |end| read[..=end].iter().map(|(_, score)| score).product());
                Ok((all[..cut.unwrap_or(last)].to_owned(), score))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_and_repetitions_are_left_out() {
        let list = ["blank", "a", "b", "é"].map(str::to_owned).to_vec();
        let characters = Characters::Ctc { list, file: PathBuf::from("preprocessor_config.json") };
        let best = [(1, 0.5), (1, 0.9), (0, 0.8), (1, 0.7), (3, 0.6)];
        let (text, score) = characters.text(&best).unwrap();
        assert_eq!(text, "aaé");
        assert!((score - 0.6).abs() < 1e-6);
        assert_eq!(characters.text(&[(0, 1.0)]).unwrap(), (String::new(), 0.0));
        let said = characters.text(&[(9, 1.0)]).unwrap_err().to_string();
        assert!(said.contains("index 9") && said.contains("preprocessor_config.json"), "{said}");
    }

    #[test]
    fn texts_are_read_up_to_their_end() {
        let names = [(0, "[GO]"), (1, "[s]"), (2, "w"), (3, "e")];
        let names = names.map(|(index, name)| (index, name.to_owned())).into_iter().collect();
        let characters = Characters::Listed { names, file: PathBuf::from(VOCABULARY) };
        let best = [(0, 0.9), (2, 0.5), (3, 0.5), (1, 0.8), (2, 0.1)];
        let (text, score) = characters.text(&best).unwrap();
        assert_eq!(text, "we");
        assert!((score - 0.2).abs() < 1e-6);
        assert_eq!(characters.text(&best[..3]).unwrap(), ("w".to_owned(), 0.0));
    }
}
