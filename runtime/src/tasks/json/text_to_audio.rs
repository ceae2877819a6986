//! Text-to-audio: texts in, samples with their rate out, or the file that they were written to.

use std::path::Path;

use serde_json::{Value as Json, json};

use super::JsonPipeline;
use super::parameters::Parameters;
use super::shapes::{shaped, texts};
use crate::any_model::DynModel;
use crate::tasks::{TextToAudio, TextToAudioOptions, read_speaker_embeddings};
use crate::{Error, Result};

impl JsonPipeline for TextToAudio<DynModel> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let inner = parameters.inner("forward_params")?;
        let options = options(&parameters, &inner)?;
        let out: Option<String> = parameters.get("out")?;
        inner.finish()?;
        parameters.finish()?;
        let texts = texts(inputs)?;
        if !self.makes_waveforms() && out.is_none() {
            let spectrogram = |text: &&str| self.spectrogram(text, &options).map(|made| rows(&made));
            let all: Result<Vec<_>> = texts.iter().map(spectrogram).collect();
            return shaped(inputs, all?);
        }
        let mut answers = vec![];
        for (index, text) in texts.iter().enumerate() {
            let audio = self.run(text, &options)?;
            let rate = audio.sampling_rate;
            answers.push(match &out {
                None => json!({"audio": audio.samples, "sampling_rate": rate}),
                Some(out) => {
                    let file = if texts.len() > 1 { numbered(out, index) } else { out.clone() };
                    audio.save(&file)?;
                    json!({"audio": file, "sampling_rate": rate, "seconds": audio.seconds()})
                }
            });
        }
        shaped(inputs, answers)
    }

    fn set_vocoder(&mut self, vocoder: DynModel) -> Result<()> {
        Self::set_vocoder(self, vocoder)
    }
}

/// A spectrogram, frame by frame.
fn rows(frames: &ndarray::Array2<f32>) -> Json {
    let frames: Vec<Vec<f32>> = frames.outer_iter().map(|frame| frame.to_vec()).collect();
    json!({"spectrogram": frames})
}

/// The options of a call, beside the others or in `forward_params`, where the reference has them.
fn options(parameters: &Parameters<'_>, inner: &Parameters<'_>) -> Result<TextToAudioOptions> {
    let defaults = TextToAudioOptions::default();
    let voice = parameters.get::<Json>("speaker_embeddings")?.or(inner.get("speaker_embeddings")?);
    Ok(TextToAudioOptions {
        speaker_embeddings: voice.map(|voice| numbers(&voice)).transpose()?,
        speaker_id: parameters.get("speaker_id")?.or(inner.get("speaker_id")?),
        threshold: parameters.get("threshold")?.or(inner.get("threshold")?).unwrap_or(defaults.threshold),
        minlenratio: parameters
            .get("minlenratio")?
            .or(inner.get("minlenratio")?)
            .unwrap_or(defaults.minlenratio),
        maxlenratio: parameters
            .get("maxlenratio")?
            .or(inner.get("maxlenratio")?)
            .unwrap_or(defaults.maxlenratio),
        seed: parameters.get("seed")?,
    })
}

/// A vector as a list, a list of one list, or a `.npy` file.
fn numbers(voice: &Json) -> Result<Vec<f32>> {
    if let Json::String(path) = voice {
        return read_speaker_embeddings(path);
    }
    let inner = match voice.as_array().map(Vec::as_slice) {
        Some([one @ Json::Array(_)]) => one,
        _ => voice,
    };
    serde_json::from_value(inner.clone()).map_err(|e| {
        Error::input(
            "speaker_embeddings",
            e.to_string(),
            "give a list of numbers, or the path of a .npy file",
        )
    })
}

/// `speech.wav` as `speech-2.wav`, counted from 1.
fn numbered(out: &str, index: usize) -> String {
    let path = Path::new(out);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let ending = path.extension().map(|ending| format!(".{}", ending.to_string_lossy())).unwrap_or_default();
    path.with_file_name(format!("{stem}-{}{ending}", index + 1)).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn voices_are_lists_or_lists_of_one() {
        assert_eq!(numbers(&json!([0.5, 1])).unwrap(), [0.5, 1.0]);
        assert_eq!(numbers(&json!([[0.5, 1]])).unwrap(), [0.5, 1.0]);
        assert!(numbers(&json!([[1], [2]])).unwrap_err().to_string().contains("a list of numbers"));
        assert!(numbers(&json!("no/such.npy")).unwrap_err().to_string().contains("no/such.npy"));
    }

    #[test]
    fn several_waveforms_are_numbered() {
        assert_eq!(numbered("a/speech.wav", 1), "a/speech-2.wav");
    }
}
