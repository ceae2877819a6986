//! Text-to-audio: the speech of a text, as a waveform, or as a spectrogram that a vocoder makes one of.
//!
//! Reference: `TextToAudioPipeline`.

mod characters;
mod npy;
mod spectrogram;
mod waveform;

use ndarray::Array2;
use serde_json::Value as Json;

use super::builder::opened;
use super::outputs::output;
use super::{Pipeline, Task};
use crate::any_model::{AnyModel, DynModel};
use crate::audio::Audio;
use crate::text::{EncodeOptions, Encoding, Padding, Text, Tokenizer};
use crate::{Error, Result, Value, Values};
use characters::Characters;

pub use npy::read_speaker_embeddings;

/// Speaks texts.
///
/// ```no_run
/// # fn example<A: weft::Architecture, Vocoder: weft::Architecture>() -> weft::Result<()> {
/// use weft::tasks::{TextToAudio, TextToAudioOptions, read_speaker_embeddings};
///
/// let vocoder = weft::Loader::<Vocoder>::open("org/vocoder")?.load()?;
/// let speaker = TextToAudio::<A>::open("org/checkpoint")?.load()?.with_vocoder(Box::new(vocoder))?;
/// let voice = read_speaker_embeddings("voice.npy")?;
/// let options = TextToAudioOptions { speaker_embeddings: Some(voice), ..TextToAudioOptions::default() };
/// speaker.run("Good morning.", &options)?.save("speech.wav")?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TextToAudio<A> {
    model: A,
    texts: Texts,
    kind: Kind,
    vocoder: Option<Vocoder>,
}

/// What makes tokens of a text.
#[derive(Debug)]
enum Texts {
    Tokenizer(Box<Tokenizer>),
    Characters(Characters),
}

/// What the model makes of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A spectrogram, frame by frame.
    Spectrogram,
    /// A waveform.
    Waveform {
        /// Samples a second.
        sampling_rate: u32,
    },
}

/// A model that makes waveforms of spectrograms.
struct Vocoder {
    model: DynModel,
    sampling_rate: u32,
}

impl std::fmt::Debug for Vocoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vocoder").field("class", &self.model.class()).finish_non_exhaustive()
    }
}

/// How a text is spoken.
#[derive(Clone, Debug, PartialEq)]
pub struct TextToAudioOptions {
    /// The x-vector of the voice, which models that take one need.
    pub speaker_embeddings: Option<Vec<f32>>,
    /// The number of the voice, where a model knows several.
    pub speaker_id: Option<i64>,
    /// Of spectrograms made frame by frame: speech ends where the probability of that is above this.
    pub threshold: f32,
    /// The least length of such a spectrogram, in frames for each token.
    pub minlenratio: f64,
    /// The greatest.
    pub maxlenratio: f64,
    /// What draws noise and dropout; the same gives the same speech, as `torch.manual_seed` does before a call.
    pub seed: Option<u64>,
}

impl Default for TextToAudioOptions {
    fn default() -> Self {
        Self {
            speaker_embeddings: None,
            speaker_id: None,
            threshold: 0.5,
            minlenratio: 0.0,
            maxlenratio: 20.0,
            seed: None,
        }
    }
}

impl TextToAudioOptions {
    /// The seed, or one of the machine's own choice.
    fn seed(&self) -> u64 {
        let since = || crate::clock::now().duration_since(std::time::UNIX_EPOCH);
        self.seed.unwrap_or_else(|| since().map_or(0, |since| u64::from(since.subsec_nanos())))
    }
}

impl<A: AnyModel> Pipeline<A> for TextToAudio<A> {
    const TASK: Task = Task::TextToAudio;

    fn from_model(model: A) -> Result<Self> {
        let kind = match model.inputs().iter().any(|input| input.name == spectrogram::FRAMES) {
            true => Kind::Spectrogram,
            false => Kind::Waveform { sampling_rate: sampling_rate(&model)? },
        };
        let texts = match Characters::read(model.checkpoint())? {
            Some(characters) => Texts::Characters(characters),
            None => Texts::Tokenizer(Box::new(Tokenizer::from_checkpoint(model.checkpoint())?)),
        };
        Ok(Self { model, texts, kind, vocoder: None })
    }
}

opened!(TextToAudio: model);

impl<A: AnyModel> TextToAudio<A> {
    /// Takes a vocoder, where the model gives spectrograms.
    ///
    /// # Errors
    /// When the model makes waveforms itself, or the other one makes none.
    pub fn with_vocoder(mut self, vocoder: DynModel) -> Result<Self> {
        self.set_vocoder(vocoder)?;
        Ok(self)
    }

    pub(super) fn set_vocoder(&mut self, vocoder: DynModel) -> Result<()> {
        if self.kind != Kind::Spectrogram {
            let problem = format!("{} makes waveforms itself", self.model.class());
            return Err(Error::input("vocoder", problem, "leave it out"));
        }
        if !vocoder.inputs().iter().any(|input| input.name == "spectrogram") {
            let problem = format!("{} takes no spectrograms", vocoder.class());
            return Err(Error::input(
                "vocoder",
                problem,
                "open a vocoder, such as microsoft/speecht5_hifigan",
            ));
        }
        self.vocoder = Some(Vocoder { sampling_rate: sampling_rate(&vocoder)?, model: vocoder });
        Ok(())
    }

    /// The speech of a text.
    ///
    /// # Errors
    /// When the text has no tokens or too many, the model needs a voice or a vocoder and has none, or it fails.
    pub fn run(&self, text: &str, options: &TextToAudioOptions) -> Result<Audio> {
        if let Kind::Waveform { sampling_rate } = self.kind {
            return Ok(Audio { samples: self.waveform(text, options)?, sampling_rate });
        }
        let Some(vocoder) = &self.vocoder else {
            let problem =
                "is missing: the model makes spectrograms, and waveforms are made of these by another";
            return Err(Error::input("vocoder", problem, "give one, such as microsoft/speecht5_hifigan"));
        };
        let frames = self.spectrogram(text, options)?.insert_axis(ndarray::Axis(0));
        let inputs = Values::from([("spectrogram".to_owned(), Value::from(frames.into_dyn()))]);
        let made = vocoder.model.run(inputs)?;
        let samples = output(&made, "waveform")?.iter().copied().collect();
        Ok(Audio { samples, sampling_rate: vocoder.sampling_rate })
    }

    /// The log-mel spectrogram of a text, `[frames, mels]`, which a vocoder makes a waveform of.
    ///
    /// # Errors
    /// As [`TextToAudio::run`], and when the model makes none.
    pub fn spectrogram(&self, text: &str, options: &TextToAudioOptions) -> Result<Array2<f32>> {
        if self.kind != Kind::Spectrogram {
            let problem = format!("{} makes waveforms, and no spectrograms", self.model.class());
            return Err(Error::input("spectrogram", problem, "ask for the waveform"));
        }
        self.frames(text, options)
    }

    /// Whether it has all that waveforms need.
    pub(super) fn makes_waveforms(&self) -> bool {
        self.kind != Kind::Spectrogram || self.vocoder.is_some()
    }

    /// The tokens of a text, as the model takes them.
    fn inputs(&self, text: &str) -> Result<Values> {
        let mut inputs = match &self.texts {
            Texts::Characters(characters) => characters.encode(text)?,
            Texts::Tokenizer(tokenizer) => {
                let rows = tokenizer.encode(&[Text::from(text)], &EncodeOptions::default())?;
                if rows.iter().any(Encoding::is_blank) {
                    return Err(Error::input("text", "is empty", "give a text with letters"));
                }
                tokenizer.pad(&rows, &Padding::default())?.into_values()
            }
        };
        inputs.retain(|name, _| self.model.inputs().iter().any(|input| input.name == *name));
        Ok(inputs)
    }
}

/// The samples a second that the configuration says.
fn sampling_rate(model: &dyn AnyModel) -> Result<u32> {
    let config = model.raw_config();
    let said = ["sampling_rate", "sample_rate"].iter().find_map(|name| config[*name].as_u64());
    let nested = || config["vocoder_config"]["sampling_rate"].as_u64();
    let rate = said.or_else(nested).unwrap_or(16_000);
    u32::try_from(rate).ok().filter(|rate| (1..=1 << 21).contains(rate)).ok_or_else(|| {
        let path = model.checkpoint().dir().join("config.json");
        Error::config(
            path,
            format!("`sampling_rate` is {rate}"),
            "use the file as the checkpoint publishes it",
        )
    })
}

/// A field of the configuration that is a count.
fn count(config: &Json, name: &str, default: usize) -> usize {
    config[name].as_u64().map_or(default, |n| n as usize)
}
