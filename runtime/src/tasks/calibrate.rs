//! Quantization calibrated on inputs of a checkpoint's task.

use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};

use super::{Task, load_json};
use crate::quantization::{Recipe, Written};
use crate::{Architecture, Error, Hardware, Loader, Precision, Result};

/// Tokens that are written where a decoder has no other input than what it wrote.
const WRITTEN: usize = 32;

impl<A: Architecture> Loader<A> {
    /// [`Loader::quantize_calibrated`] on inputs of the task that the checkpoint is for, as [`super::JsonPipeline`] takes them: texts,
    /// paths of images or of audio, chats.
    ///
    /// # Errors
    /// As that, and when the task of the checkpoint is not known, or refuses an input.
    pub fn quantize_on(&self, recipe: Recipe, inputs: &[Json], out: &Path) -> Result<Written> {
        let task = self.task()?;
        let parameters = match task {
            // A prompt runs whole, and what follows it is the model's own.
            Task::TextGeneration => json!({ "max_new_tokens": 1 }),
            Task::Text2TextGeneration
            | Task::Summarization
            | Task::Translation
            | Task::ImageTextToText
            | Task::VideoTextToText
            | Task::AutomaticSpeechRecognition => json!({ "max_new_tokens": WRITTEN }),
            _ => Json::Null,
        };
        self.quantize_calibrated(recipe, out, &mut |calibration| {
            let loader = Self::of(self.checkpoint().clone())
                .hardware(Hardware::Cpu)
                .precision(Precision::F32)
                .calibration(calibration);
            let pipeline = load_json(task.name(), loader)?;
            inputs.iter().try_for_each(|input| pipeline.run_json(input, &parameters).map(|_| ()))
        })
    }
}

/// The inputs that a file has a line for each, a text, a path or JSON; or the paths of a folder's files.
///
/// # Errors
/// When it cannot be read, or there is none.
pub fn calibration_inputs(path: &Path) -> Result<Vec<Json>> {
    let failed = |e| Error::io(path, e);
    let inputs: Vec<Json> = if path.is_dir() {
        let entries = fs::read_dir(path).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let mut files: Vec<_> =
            entries.iter().map(fs::DirEntry::path).filter(|path| path.is_file()).collect();
        files.sort();
        files.iter().map(|file| file.to_string_lossy().into_owned().into()).collect()
    } else {
        let text = fs::read_to_string(path).map_err(failed)?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let json =
            |line: &str| line.starts_with(['{', '[']).then(|| serde_json::from_str(line).ok()).flatten();
        lines.map(|line| json(line).unwrap_or_else(|| line.into())).collect()
    };
    if inputs.is_empty() {
        let problem = format!("{} has no inputs", path.display());
        return Err(Error::input(
            "calibration",
            problem,
            "write a text or the path of an image on each line",
        ));
    }
    Ok(inputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_texts_or_json_and_folders_are_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("texts.txt");
        fs::write(&file, "A text.\n\n {\"a\": 1}\n[not JSON\n").unwrap();
        let inputs = calibration_inputs(&file).unwrap();
        assert_eq!(inputs, [json!("A text."), json!({"a": 1}), json!("[not JSON")]);
        assert_eq!(calibration_inputs(folder.path()).unwrap(), [json!(file.to_str().unwrap())]);
        fs::write(&file, "\n").unwrap();
        let said = calibration_inputs(&file).unwrap_err().to_string();
        assert!(said.contains("texts.txt has no inputs") && said.contains("path of an image"), "{said}");
        assert!(calibration_inputs(&folder.path().join("absent")).is_err());
    }
}
