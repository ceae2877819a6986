//! Prompts as the text encoder's hidden states.

use ndarray::{Array2, ArrayD, Axis};

use super::{TextToImage, TextToImageOptions, floats};
use crate::any_model::AnyModel;
use crate::text::{EncodeOptions, Text};
use crate::{Error, GraphKind, Result, Value, Values};

impl<A: AnyModel> TextToImage<A> {
    /// The hidden states of each image's prompt, `[images, tokens, width]`; with guidance those of the negative prompt before.
    pub(super) fn text(
        &self,
        prompts: &[&str],
        options: &TextToImageOptions,
        guided: bool,
    ) -> Result<ArrayD<f32>> {
        let negative = options.negative_prompt.as_deref().unwrap_or_default();
        let negatives = if guided { vec![negative; prompts.len()] } else { vec![] };
        let texts: Vec<&str> = negatives.into_iter().chain(prompts.iter().copied()).collect();
        let ids = self.ids(&texts)?;
        let inputs = Values::from([("input_ids".to_owned(), Value::from(ids.into_dyn()))]);
        let states = floats(self.model.run_graph(GraphKind::TextEncoder, inputs)?, "last_hidden_state")?;
        // Images of a prompt stand one after the other.
        let rows: Vec<usize> =
            (0..texts.len()).flat_map(|row| vec![row; options.num_images_per_prompt]).collect();
        Ok(states.select(Axis(0), &rows))
    }

    /// Token ids, cut and padded to as many as the tokenizer says.
    fn ids(&self, texts: &[&str]) -> Result<Array2<i64>> {
        let limit = self.model.limit("sequence");
        let length = self.tokenizer.settings().model_max_length.or(limit).unwrap_or(77);
        let length = length.min(limit.unwrap_or(length));
        let Some((_, pad)) = self.tokenizer.pad_token() else {
            let help = "add the published `pad_token` to tokenizer_config.json";
            return Err(Error::tokenizer(self.tokenizer.file(), "has no padding token", help));
        };
        let texts: Vec<Text<'_>> = texts.iter().map(|text| Text::from(*text)).collect();
        let rows = self.tokenizer.encode(&texts, &EncodeOptions::truncated(Some(length)))?;
        let mut ids = Array2::from_elem((rows.len(), length), pad);
        for (row, encoding) in rows.iter().enumerate() {
            for (column, id) in encoding.ids.iter().take(length).enumerate() {
                ids[[row, column]] = *id;
            }
        }
        Ok(ids)
    }
}
