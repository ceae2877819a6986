//! Spectrograms frame by frame, each of what was made before (`_generate_speech`).

use ndarray::{Array2, Array3, Axis, Ix2, Ix3, concatenate, s};

use super::{TextToAudio, TextToAudioOptions, count};
use crate::any_model::AnyModel;
use crate::random::Generator;
use crate::tasks::outputs::output;
use crate::{Cache, Error, GraphKind, Result, Value, Values};

/// The frames that the decoder takes.
pub(super) const FRAMES: &str = "decoder_input_values";
const KEPT: &str = "prenet_dropout_mask";

/// The dropout of the decoder's pre-net, which is on at inference too.
struct Dropout {
    generator: Generator,
    layers: usize,
    units: usize,
    rate: f64,
}

impl Dropout {
    /// What is kept of the last of so many positions, `[layers, units]`: the reference draws masks for all of them at each step.
    fn last(&mut self, positions: usize) -> Array2<f32> {
        let mut kept = Array2::zeros((self.layers, self.units));
        for mut layer in kept.rows_mut() {
            self.generator.skip_doubles((positions - 1) * self.units);
            layer.mapv_inplace(|_| f32::from(self.generator.uniform_double() < self.rate));
        }
        kept
    }
}

impl<A: AnyModel> TextToAudio<A> {
    /// The spectrogram of a text, `[frames, mels]`.
    pub(super) fn frames(&self, text: &str, options: &TextToAudioOptions) -> Result<Array2<f32>> {
        let model = &self.model;
        let config = model.raw_config();
        let (mels, factor) = (count(config, "num_mel_bins", 80), count(config, "reduction_factor", 2).max(1));
        let mut dropout = Dropout {
            generator: Generator::new(options.seed()),
            layers: count(config, "speech_decoder_prenet_layers", 2),
            units: count(config, "speech_decoder_prenet_units", 256),
            rate: config["speech_decoder_prenet_dropout"].as_f64().unwrap_or(0.5),
        };
        let voice = voice(options, count(config, "speaker_embedding_dim", 512))?;
        let inputs = self.inputs(text)?;
        let tokens = inputs.get("input_ids").map_or(0, |ids| ids.shape().iter().product::<usize>());
        let bound = |ratio: f64| (tokens as f64 * ratio / factor as f64) as usize;
        let most = bound(options.maxlenratio).min(model.limit("sequence").unwrap_or(usize::MAX));
        let mut cache = Cache::new();
        model.run_cached(GraphKind::Encoder, inputs.clone(), &mut cache)?;
        let mut frame = Array3::<f32>::zeros((1, 1, mels));
        let (mut given, mut masks) = (vec![], vec![]);
        for step in 1.. {
            let kept = dropout.last(step).insert_axis(Axis(1));
            let step_inputs = Values::from([
                (FRAMES.to_owned(), Value::from(frame.clone().into_dyn())),
                (KEPT.to_owned(), Value::from(kept.clone().into_dyn())),
                ("speaker_embeddings".to_owned(), voice.clone()),
            ]);
            given.push(frame);
            masks.push(kept);
            let made = model.run_cached(GraphKind::Decode, step_inputs, &mut cache)?;
            let spectrum = output(&made, "spectrum")?.view().into_dimensionality::<Ix3>();
            frame = spectrum.map_err(|e| misshapen(&e))?.slice(s![.., -1.., ..]).to_owned();
            let ends: f32 = output(&made, "stop_logits")?.iter().map(|x| 1.0 / (1.0 + (-x).exp())).sum();
            if step >= bound(options.minlenratio) && (step >= most || ends >= options.threshold) {
                break;
            }
        }
        self.whole(inputs, (&given, &masks), voice)
    }

    /// The spectrogram with what the post-net adds, of all frames that the decoder took.
    fn whole(
        &self,
        mut inputs: Values,
        (given, masks): (&[Array3<f32>], &[Array3<f32>]),
        voice: Value,
    ) -> Result<Array2<f32>> {
        let joined = |parts: &[Array3<f32>]| {
            let views: Vec<_> = parts.iter().map(|part| part.view()).collect();
            let joined = concatenate(Axis(1), &views).map_err(|e| misshapen(&e))?;
            Ok::<_, Error>(Value::from(joined.as_standard_layout().into_owned().into_dyn()))
        };
        inputs.insert(FRAMES.to_owned(), joined(given)?);
        inputs.insert(KEPT.to_owned(), joined(masks)?);
        inputs.insert("speaker_embeddings".to_owned(), voice);
        let made = self.model.run(inputs)?;
        let spectrogram = output(&made, "spectrogram")?.index_axis(Axis(0), 0).to_owned();
        spectrogram.into_dimensionality::<Ix2>().map_err(|e| misshapen(&e))
    }
}

/// The x-vector of the voice, `[1, width]`.
fn voice(options: &TextToAudioOptions, width: usize) -> Result<Value> {
    let help = "give the x-vector of a voice, such as one of Matthijs/cmu-arctic-xvectors: a .npy file, or a list of numbers";
    let Some(voice) = &options.speaker_embeddings else {
        return Err(Error::input("speaker_embeddings", "are missing", help));
    };
    if voice.len() != width || voice.iter().any(|x| !x.is_finite()) {
        let problem = format!("are {} numbers; the model takes {width} finite ones", voice.len());
        return Err(Error::input("speaker_embeddings", problem, help));
    }
    let voice = Array2::from_shape_vec((1, width), voice.clone()).map_err(|e| misshapen(&e))?;
    Ok(Value::from(voice.into_dyn()))
}

fn misshapen(error: &ndarray::ShapeError) -> Error {
    Error::input("spectrogram", error.to_string(), "open a model that is made for this task")
}
