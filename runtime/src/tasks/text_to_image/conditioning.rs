//! What a denoiser takes besides latents and a timestep: hidden states of texts, pooled texts, sizes, a guidance scale.

use ndarray::{Array1, Array2, ArrayD, Axis, Slice, arr2, concatenate};

use super::pipelines::{Conditioning, Guidance, Layout, Time};
use super::prompt_weights::{self, WeightedPrompt};
use super::prompts::{Prompt, TextInput};
use super::text_encoders::Mask;
use super::{TextToImage, TextToImageOptions, controlnet, floats, guidance, misshapen, rotary};
use crate::any_model::AnyModel;
use crate::{Error, Result, Value, Values};

impl<A: AnyModel> TextToImage<A> {
    /// What each run of the denoiser takes of each image's prompt, under its names, `[images, ..]` each; with guidance that of the
    /// negative prompt before, or in a run of its own.
    pub(super) fn conditioning(
        &self,
        prompts: &[&str],
        options: &TextToImageOptions,
        size: [usize; 2],
    ) -> Result<Vec<Values>> {
        let guided = self.guided(options);
        if !(guided && self.class.apart) {
            return Ok(vec![self.conditions(prompts, options, guided, size)?]);
        }
        let negative = options.negative_prompt.as_deref().unwrap_or_default();
        let negatives = vec![negative; prompts.len()];
        [&negatives[..], prompts].iter().map(|texts| self.conditions(texts, options, false, size)).collect()
    }

    /// What one run of the denoiser takes.
    fn conditions(
        &self,
        prompts: &[&str],
        options: &TextToImageOptions,
        guided: bool,
        [height, width]: [usize; 2],
    ) -> Result<Values> {
        let image = self.settings.tokens([height, width]);
        let parts = match self.class.guidance {
            _ if !guided => 1,
            Guidance::Image => 3,
            _ => 2,
        };
        let rows = prompts.len() * options.num_images_per_prompt * parts;
        let mut values = match self.class.conditioning {
            Conditioning::Classes => self.classes(prompts, options, guided)?,
            _ => self.texts(prompts, options, guided, image)?,
        };
        if self.class.conditioning == Conditioning::Lengths
            && let Some(states) = values.remove("encoder_hidden_states")
        {
            values.insert("text_bth".to_owned(), states);
        }
        let scale = self.guidance_scale(options);
        let mut give = |name: &str, value: Value| values.insert(name.to_owned(), value);
        if self.class.conditioning == Conditioning::Sizes {
            give("time_ids", self.time_ids([height, width], rows, guided));
        }
        if self.class.conditioning == Conditioning::Pairs {
            let size = [height as f32, width as f32];
            for (name, pair) in [("original_size", size), ("crop_coords", [0.0; 2]), ("target_size", size)] {
                give(name, same_rows(rows, &pair));
            }
        }
        if self.class.conditioning == Conditioning::Bilingual {
            let [cos, sin] = rotary::tables(self.settings.grid([height, width]), &self.settings);
            give("freqs_cos", cos.into_dyn().into());
            give("freqs_sin", sin.into_dyn().into());
            if self.settings.takes_style {
                // The original size of the reference's pipeline, the size, and where the image was cropped.
                let sizes = [1024.0, 1024.0, height as f32, width as f32, 0.0, 0.0];
                give("image_meta_size", same_rows(rows, &sizes));
                give("style", ArrayD::<i64>::zeros(vec![rows]).into());
            }
        }
        if self.settings.takes_resolution {
            let (height, width) = (height as f32, width as f32);
            give("resolution", same_rows(rows, &[height, width]));
            give("aspect_ratio", same_rows(rows, &[(f64::from(height) / f64::from(width)) as f32]));
        }
        if let Some(width) = self.settings.guidance_width {
            give("timestep_cond", guidance::embedding(scale - 1.0, width, rows).into_dyn().into());
        }
        if self.class.conditioning == Conditioning::Shaped {
            let [rows, columns] = self.settings.grid([height, width]).map(|count| count as i64);
            give("img_shapes", arr2(&[[1, rows, columns]]).into_dyn().into());
        }
        let embeds = self.class.conditioning == Conditioning::Placed || self.class.time == Time::Angle;
        if embeds && self.settings.guidance_embeds {
            let scale = scale * self.settings.guidance_embeds_scale;
            give("guidance", ArrayD::from_elem(vec![rows], scale).into());
        }
        if self.class.conditioning == Conditioning::Placed {
            // Tokens that are no patches have a fourth axis, along which those of texts are counted.
            let axes = if self.class.layout == Layout::Tokens { 4 } else { 3 };
            give("img_ids", self.settings.token_places([height, width], axes).into_dyn().into());
            let tokens = self.texts.iter().filter_map(|input| input.tokens(options)).sum();
            let counted = |axis: usize| self.class.text_axes.contains(&axis);
            let place = |(token, axis): (usize, usize)| if counted(axis) { token as i64 } else { 0 };
            give("txt_ids", Array2::from_shape_fn((tokens, axes), place).into_dyn().into());
        }
        if let Some(image) = &options.control_image {
            give("controlnet_cond", controlnet::control(image, [height, width], rows)?);
        }
        Ok(values)
    }

    /// The original size, where the image was cropped and its size, or how beautiful it is to be.
    fn time_ids(&self, [height, width]: [usize; 2], rows: usize, guided: bool) -> Value {
        // `aesthetic_score` and `negative_aesthetic_score` of the reference's pipeline.
        const SCORES: [f32; 2] = [6.0, 2.5];
        let [height, width] = [height as f32, width as f32];
        if !self.settings.requires_aesthetics_score {
            return same_rows(rows, &[height, width, 0.0, 0.0, height, width]);
        }
        let negatives = if guided { rows / 2 } else { 0 };
        let score = |row: usize| SCORES[usize::from(row < negatives)];
        let at = |(row, column): (usize, usize)| [height, width, 0.0, 0.0, score(row)][column];
        Array2::from_shape_fn((rows, 5), at).into_dyn().into()
    }

    /// How far predictions are guided.
    pub(super) fn guidance_scale(&self, options: &TextToImageOptions) -> f32 {
        options.guidance_scale.unwrap_or(self.class.guidance_scale)
    }

    /// Whether there is a second prediction, for the negative prompt.
    pub(super) fn guided(&self, options: &TextToImageOptions) -> bool {
        let scale = self.guidance_scale(options);
        match self.class.guidance {
            Guidance::Embedded => false,
            Guidance::Added => scale > 0.0,
            Guidance::Image => scale > 1.0 && options.image_guidance_scale >= 1.0,
            Guidance::ClassifierFree => scale > 1.0 && self.settings.guidance_width.is_none(),
            Guidance::Undistilled => scale > 1.0 && !self.settings.distilled,
            Guidance::Normalized { asked } => scale > 1.0 && (!asked || options.negative_prompt.is_some()),
        }
    }

    /// The class that each prompt names, by number or by label; for the negative prompt that which is none.
    fn classes(&self, prompts: &[&str], options: &TextToImageOptions, guided: bool) -> Result<Values> {
        const NONE: i64 = 1000;
        let labels = &self.model.raw_config()["id2label"];
        let labels = labels.as_object().into_iter().flatten();
        let labelled = |name: &str| {
            let has = |label: &str| label.split(',').any(|label| label.trim() == name);
            labels
                .clone()
                .find(|(_, label)| label.as_str().is_some_and(has))
                .and_then(|(id, _)| id.parse().ok())
        };
        let class = |prompt: &&str| {
            let id = prompt.parse().ok().filter(|id| (0..NONE).contains(id)).or_else(|| labelled(prompt));
            let help = "give a number below 1000, or a label of the `id2label` of model_index.json";
            id.ok_or_else(|| Error::input("prompt", format!("`{prompt}` is no class"), help))
        };
        let ids = prompts.iter().map(class).collect::<Result<Vec<i64>>>()?;
        let ids: Vec<i64> = ids.into_iter().flat_map(|id| vec![id; options.num_images_per_prompt]).collect();
        let none = if guided { vec![NONE; ids.len()] } else { vec![] };
        let ids = Array1::from_iter(none.into_iter().chain(ids));
        Ok(Values::from([("class_labels".to_owned(), ids.into_dyn().into())]))
    }

    /// The outputs of all text encoders.
    fn texts(
        &self,
        prompts: &[&str],
        options: &TextToImageOptions,
        guided: bool,
        image: usize,
    ) -> Result<Values> {
        let Self { class, settings, .. } = self;
        let negative = options.negative_prompt.as_deref().unwrap_or_default();
        let zeros = match class.conditioning {
            Conditioning::Sizes => options.negative_prompt.is_none() && settings.zeros_for_empty_prompt,
            _ => class.empty_is_zeros && negative.is_empty(),
        };
        // Once more without the image.
        let parts = if class.guidance == Guidance::Image { 2 } else { 1 };
        let negatives = if guided && !zeros { vec![negative; parts * prompts.len()] } else { vec![] };
        let read = |text: &&str| match options.prompt_weighting {
            true => WeightedPrompt::read(text),
            false => WeightedPrompt { text: (*text).to_owned(), weights: vec![] },
        };
        let read: Vec<WeightedPrompt> = negatives.iter().chain(prompts).map(read).collect();
        let texts: Vec<Prompt<'_>> = read
            .iter()
            .enumerate()
            .map(|(row, read)| Prompt {
                text: &read.text,
                negative: row < negatives.len(),
                weights: &read.weights,
            })
            .collect();
        let mut joined = Values::new();
        for input in &self.texts {
            let tokens = input.tokenize(&texts, options)?;
            let mut inputs =
                Values::from([("input_ids".to_owned(), Value::from(tokens.ids.clone().into_dyn()))]);
            let encoder = &input.encoder;
            if encoder.mask != Mask::None {
                inputs.insert("attention_mask".to_owned(), tokens.mask.clone().into_dyn().into());
            }
            match encoder.mask {
                Mask::None | Mask::Encoder | Mask::Zeros => {}
                Mask::Denoiser(name) => drop(joined.insert(name.to_owned(), tokens.seen()?.into())),
                Mask::Lengths(name) => drop(joined.insert(name.to_owned(), tokens.lengths().into())),
                Mask::Joint => {
                    drop(joined.insert("attention_mask".to_owned(), tokens.joint(image).into_dyn().into()));
                }
            }
            for (name, value) in self.model.run_graph(encoder.kind, inputs)? {
                let Value::F32(mut value) = value else { continue };
                if let (Some(weights), 3) = (&tokens.weights, value.ndim()) {
                    value = prompt_weights::weighed(value, &self.empty(input, options, &name)?, weights);
                }
                let value = tokens.states(value, encoder.mask)?;
                let value = match joined.remove(&name) {
                    Some(Value::F32(before)) if encoder.length.is_some() => behind(&before, &value)?,
                    Some(Value::F32(before)) => beside(&before, &value)?,
                    _ => value,
                };
                joined.insert(name, value.into());
            }
        }
        let without = class
            .text_encoders
            .iter()
            .find(|encoder| encoder.optional)
            .filter(|_| self.texts.len() < class.text_encoders.len());
        if let (Some(encoder), Some(Value::F32(states))) = (without, joined.get_mut("encoder_hidden_states"))
        {
            let tokens = options.max_sequence_length.or(encoder.length).unwrap_or_default();
            let none = ArrayD::zeros(vec![texts.len(), tokens, settings.text_width]);
            *states = behind(states, &none)?;
        }
        // Images of a prompt stand one after the other.
        let rows: Vec<usize> =
            (0..texts.len()).flat_map(|row| vec![row; options.num_images_per_prompt]).collect();
        for value in joined.values_mut() {
            match value {
                Value::F32(array) => {
                    let mut all = array.select(Axis(0), &rows);
                    if guided && zeros {
                        let none = ArrayD::zeros(all.raw_dim());
                        all = concatenate(Axis(0), &[none.view(), all.view()]).map_err(|e| misshapen(&e))?;
                    }
                    *array = all;
                }
                Value::I64(array) => *array = array.select(Axis(0), &rows),
                _ => {}
            }
        }
        Ok(joined)
    }
}

impl<A: AnyModel> TextToImage<A> {
    /// The hidden states of the empty text, `[1, tokens, width]`.
    fn empty(&self, input: &TextInput, options: &TextToImageOptions, name: &str) -> Result<ArrayD<f32>> {
        let tokens = input.tokenize(&[Prompt { text: "", negative: false, weights: &[] }], options)?;
        let mut inputs = Values::from([("input_ids".to_owned(), Value::from(tokens.ids.clone().into_dyn()))]);
        if input.encoder.mask != Mask::None {
            inputs.insert("attention_mask".to_owned(), tokens.mask.clone().into_dyn().into());
        }
        floats(self.model.run_graph(input.encoder.kind, inputs)?, name)
    }
}

/// Rows that are all the same.
fn same_rows(rows: usize, row: &[f32]) -> Value {
    Array2::from_shape_fn((rows, row.len()), |(_, column)| row[column]).into_dyn().into()
}

/// Two text encoders' outputs, side by side.
fn beside(first: &ArrayD<f32>, second: &ArrayD<f32>) -> Result<ArrayD<f32>> {
    let last = Axis(first.ndim().saturating_sub(1));
    concatenate(last, &[first.view(), second.view()]).map_err(|error| misshapen(&error))
}

/// The tokens of one text encoder behind those of another, `[rows, tokens, width]`, which zeros make as wide.
fn behind(first: &ArrayD<f32>, second: &ArrayD<f32>) -> Result<ArrayD<f32>> {
    let mut filled = ArrayD::zeros(first.raw_dim());
    if let (&[rows, tokens, width], &[_, _, wide]) = (first.shape(), second.shape())
        && width <= wide
    {
        filled = ArrayD::zeros(vec![rows, tokens, wide]);
        filled
            .slice_each_axis_mut(|axis| Slice::from(..if axis.axis.0 == 2 { width } else { axis.len }))
            .assign(first);
    }
    concatenate(Axis(1), &[filled.view(), second.view()]).map_err(|error| misshapen(&error))
}
