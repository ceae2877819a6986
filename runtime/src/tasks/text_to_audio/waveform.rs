//! Waveforms at once, as long as the durations that the model predicts for tokens (`VitsModel`,
//! `FastSpeech2ConformerWithHifiGan`).

use ndarray::{Array1, Array3};

use super::{TextToAudio, TextToAudioOptions};
use crate::any_model::AnyModel;
use crate::random::Generator;
use crate::tasks::outputs::output;
use crate::{Error, GraphKind, Result, Value, Values};

/// The positions of frames, as many as durations sum to.
const POSITIONS: &str = "frame_positions";
/// The noise of a stochastic duration predictor, and that of latents.
const DURATION_NOISE: &str = "duration_noise";
const LATENT_NOISE: &str = "latent_noise";

/// More frames than any speech has that is made at once.
const MOST: usize = 1 << 20;

impl<A: AnyModel> TextToAudio<A> {
    /// The waveform of a text.
    pub(super) fn waveform(&self, text: &str, options: &TextToAudioOptions) -> Result<Vec<f32>> {
        let model = &self.model;
        let mut generator = Generator::new(options.seed());
        let mut inputs = self.inputs(text)?;
        let tokens = inputs.get("input_ids").map_or(0, |ids| ids.shape().iter().product::<usize>());
        if self.takes(DURATION_NOISE) {
            let noise = Array3::from_shape_vec((1, 2, tokens), generator.randn(2 * tokens));
            let noise = noise.map_err(|e| misshapen(&e))?;
            inputs.insert(DURATION_NOISE.to_owned(), Value::from(noise.into_dyn()));
        }
        if let Some(speaker) = options.speaker_id {
            if !self.takes("speaker_id") {
                return Err(Error::input(
                    "speaker_id",
                    "is not read: the model has one voice",
                    "leave it out",
                ));
            }
            inputs.insert("speaker_id".to_owned(), Value::from(Array1::from_elem(1, speaker).into_dyn()));
        }
        let frames = self.frame_count(&inputs)?;
        let positions = Array1::from_iter(0..frames as i64);
        inputs.insert(POSITIONS.to_owned(), Value::from(positions.into_dyn()));
        if self.takes(LATENT_NOISE) {
            let width = self.latent_width()?;
            // The reference draws them one by one, as they lie there: `[frames, width]`.
            let noise: Vec<f32> = generator.normals(frames * width);
            let noise = Array3::from_shape_fn((1, width, frames), |(_, channel, frame)| {
                noise[frame * width + channel]
            });
            inputs.insert(LATENT_NOISE.to_owned(), Value::from(noise.into_dyn()));
        }
        let made = model.run(inputs)?;
        Ok(output(&made, "waveform")?.iter().copied().collect())
    }

    /// How many frames the durations of tokens sum to.
    fn frame_count(&self, inputs: &Values) -> Result<usize> {
        let taken = self.model.inputs_of(GraphKind::Encoder)?;
        let mut own = inputs.clone();
        own.retain(|name, _| taken.iter().any(|input| input.name == *name));
        let encoded = self.model.run_graph(GraphKind::Encoder, own)?;
        let lengths =
            encoded.get("predicted_lengths").map(|value| value.i64("predicted_lengths")).transpose()?;
        let frames = lengths.and_then(|lengths| lengths.iter().max().copied()).unwrap_or(0);
        usize::try_from(frames).ok().filter(|frames| (1..=MOST).contains(frames)).ok_or_else(|| {
            let problem = format!("the model predicts {frames} frames for this text");
            Error::input("text", problem, "give a text, at most a few sentences of it at once")
        })
    }

    fn takes(&self, name: &str) -> bool {
        self.model.inputs().iter().any(|input| input.name == name)
    }

    /// The channels of latent noise.
    fn latent_width(&self) -> Result<usize> {
        let input = self.model.inputs().iter().find(|input| input.name == LATENT_NOISE);
        input.and_then(|input| input.shape.get(1)?.fixed()).ok_or_else(|| {
            let problem = "has no fixed number of channels";
            Error::input(LATENT_NOISE, problem, "open a model that is made for this task")
        })
    }
}

fn misshapen(error: &ndarray::ShapeError) -> Error {
    Error::input(DURATION_NOISE, error.to_string(), "open a model that is made for this task")
}
