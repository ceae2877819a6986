//! What a denoiser takes besides latents and a timestep: hidden states of texts, pooled texts, sizes, a guidance scale.

use ndarray::{Array2, ArrayD, Axis, concatenate};

use super::pipelines::{Conditioning, TextEncoder, has};
use super::{TextToImage, TextToImageOptions, guidance, misshapen};
use crate::any_model::AnyModel;
use crate::hub::Checkpoint;
use crate::text::{EncodeOptions, Text, Tokenizer};
use crate::{Error, Result, Value, Values};

/// The tokenizer of a text encoder, and how many tokens it makes of a text.
#[derive(Debug)]
pub(super) struct TextInput {
    pub encoder: TextEncoder,
    tokenizer: Tokenizer,
    length: usize,
}

impl TextInput {
    /// Of a text encoder that the pipeline has; `None` where it may be without and is.
    pub(super) fn read(
        encoder: TextEncoder,
        checkpoint: &Checkpoint,
        config: &serde_json::Value,
    ) -> Result<Option<Self>> {
        let own = &config[encoder.name];
        if encoder.optional && !has(config, encoder.name) {
            return Ok(None);
        }
        let tokenizer = Tokenizer::from_checkpoint(&checkpoint.component(encoder.tokenizer))?;
        let positions = own["max_position_embeddings"].as_u64().map_or(77, |most| most as usize);
        let tokens = tokenizer.settings().model_max_length.unwrap_or(positions).min(positions);
        Ok(Some(Self { encoder, tokenizer, length: encoder.length.unwrap_or(tokens) }))
    }

    /// Token ids and the mask of those that are not padding, cut and padded to as many as there must be.
    fn ids(&self, texts: &[&str], most: Option<usize>) -> Result<[Array2<i64>; 2]> {
        let length = if self.encoder.length.is_some() { most.unwrap_or(self.length) } else { self.length };
        let Some((_, pad)) = self.tokenizer.pad_token() else {
            let help = "add the published `pad_token` to tokenizer_config.json";
            return Err(Error::tokenizer(self.tokenizer.file(), "has no padding token", help));
        };
        let texts: Vec<Text<'_>> = texts.iter().map(|text| Text::from(*text)).collect();
        let rows = self.tokenizer.encode(&texts, &EncodeOptions::truncated(Some(length)))?;
        let mut ids = Array2::from_elem((rows.len(), length), pad);
        let mut mask = Array2::zeros((rows.len(), length));
        for (row, encoding) in rows.iter().enumerate() {
            for (column, id) in encoding.ids.iter().take(length).enumerate() {
                ids[[row, column]] = *id;
                mask[[row, column]] = 1;
            }
        }
        Ok([ids, mask])
    }
}

impl<A: AnyModel> TextToImage<A> {
    /// What the denoiser takes of each image's prompt, under its names, `[images, ..]` each; with guidance that of the negative prompt
    /// before.
    pub(super) fn conditioning(
        &self,
        prompts: &[&str],
        options: &TextToImageOptions,
        [height, width]: [usize; 2],
    ) -> Result<Values> {
        let guided = self.guided(options);
        let mut values = self.texts(prompts, options, guided)?;
        let rows = prompts.len() * options.num_images_per_prompt * if guided { 2 } else { 1 };
        if self.class.conditioning == Conditioning::Sizes {
            // The original size, where the image was cropped, and its size.
            let sizes = [height, width, 0, 0, height, width];
            let ids = Array2::from_shape_fn((rows, 6), |(_, column)| sizes[column] as f32);
            values.insert("time_ids".to_owned(), ids.into_dyn().into());
        }
        let scale = self.guidance_scale(options);
        if let Some(width) = self.settings.guidance_width {
            let embedded = guidance::embedding(scale - 1.0, width, rows);
            values.insert("timestep_cond".to_owned(), embedded.into_dyn().into());
        }
        Ok(values)
    }

    /// How far predictions are guided.
    pub(super) fn guidance_scale(&self, options: &TextToImageOptions) -> f32 {
        options.guidance_scale.unwrap_or(self.class.guidance_scale)
    }

    /// Whether there is a second prediction, for the negative prompt.
    pub(super) fn guided(&self, options: &TextToImageOptions) -> bool {
        self.settings.guidance_width.is_none() && self.guidance_scale(options) > 1.0
    }

    /// The outputs of all text encoders.
    fn texts(&self, prompts: &[&str], options: &TextToImageOptions, guided: bool) -> Result<Values> {
        let zeros = options.negative_prompt.is_none()
            && self.settings.zeros_for_empty_prompt
            && self.class.conditioning == Conditioning::Sizes;
        let negative = options.negative_prompt.as_deref().unwrap_or_default();
        let negatives = if guided && !zeros { vec![negative; prompts.len()] } else { vec![] };
        let texts: Vec<&str> = negatives.into_iter().chain(prompts.iter().copied()).collect();
        let mut joined = Values::new();
        for input in &self.texts {
            let [ids, _] = input.ids(&texts, options.max_sequence_length)?;
            let ids = Values::from([("input_ids".to_owned(), Value::from(ids.into_dyn()))]);
            for (name, value) in self.model.run_graph(input.encoder.kind, ids)? {
                let Value::F32(value) = value else { continue };
                let value = match joined.remove(&name) {
                    Some(Value::F32(before)) => beside(&before, &value)?,
                    _ => value,
                };
                joined.insert(name, value.into());
            }
        }
        // Images of a prompt stand one after the other.
        let rows: Vec<usize> =
            (0..texts.len()).flat_map(|row| vec![row; options.num_images_per_prompt]).collect();
        for value in joined.values_mut() {
            if let Value::F32(array) = value {
                let mut all = array.select(Axis(0), &rows);
                if guided && zeros {
                    let none = ArrayD::zeros(all.raw_dim());
                    all = concatenate(Axis(0), &[none.view(), all.view()]).map_err(|e| misshapen(&e))?;
                }
                *value = all.into();
            }
        }
        Ok(joined)
    }
}

/// Two text encoders' outputs, side by side.
fn beside(first: &ArrayD<f32>, second: &ArrayD<f32>) -> Result<ArrayD<f32>> {
    let last = Axis(first.ndim().saturating_sub(1));
    concatenate(last, &[first.view(), second.view()]).map_err(|error| misshapen(&error))
}
