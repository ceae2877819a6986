//! Visual document retrieval: pages as images, found by texts through late interaction of their embeddings.
//!
//! Reference: `ColPaliProcessor` and `ColQwen2Processor`, of which no pipeline is made.

mod late_interaction;

use ndarray::{Array2, ArrayD, Axis};

pub use late_interaction::score_multi_vector;

use super::batches::TextModel;
use super::builder::opened;
use super::image_text_to_text::Placeholders;
use super::inputs::model_inputs;
use super::outputs::output;
use super::{Pipeline, Task};
use crate::any_model::AnyModel;
use crate::image::{Image, ImageProcessor};
use crate::text::{EncodeOptions, Text};
use crate::{Error, Result, Value, Values};

/// How often the token that pads texts follows a query, which models read as room for thought (`query_augmentation_token`).
const AUGMENTATION: usize = 10;

/// Finds pages by texts: an embedding of each token of a query and of each part of a page, compared by their largest similarities
/// (`ColPaliForRetrieval`, `ColQwen2ForRetrieval`).
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::image::Image;
///
/// let retrieval = weft::tasks::VisualDocumentRetrieval::<A>::open("vidore/colqwen2-v1.0-hf")?.load()?;
/// let pages = [Image::open("page-1.png")?, Image::open("page-2.png")?];
/// let scores = retrieval.run(&["What did cloth cost in 1921?"], &pages)?; // [queries, pages]
/// println!("{scores:.2}");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct VisualDocumentRetrieval<A> {
    text: TextModel<A>,
    processor: ImageProcessor,
    placeholders: Placeholders,
    prompts: Prompts,
}

/// What stands around queries and images.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Prompts {
    /// Before a query.
    query: String,
    /// After a query.
    suffix: String,
    /// Of an image, with the token that stands for it.
    image: String,
}

impl<A: AnyModel> Pipeline<A> for VisualDocumentRetrieval<A> {
    const TASK: Task = Task::VisualDocumentRetrieval;

    fn from_model(model: A) -> Result<Self> {
        let text = TextModel::new(model)?;
        let checkpoint = text.model.checkpoint();
        let placeholders = Placeholders::read(checkpoint, text.model.raw_config(), &text.tokenizer)?;
        let processor = ImageProcessor::from_checkpoint(checkpoint)?;
        let settings = text.tokenizer.settings();
        let Some((padding, _)) = text.tokenizer.pad_token() else {
            let help = "take the tokenizer's files from the checkpoint that the model came with";
            let problem = "no `pad_token`: it follows every query";
            return Err(Error::tokenizer(text.tokenizer.file(), problem, help));
        };
        let written = checkpoint.json("processor_config.json")?.unwrap_or_default();
        let bos = settings.bos_token.as_deref().unwrap_or_default();
        let prompts = Prompts::new(&written, &placeholders, bos, padding);
        Ok(Self { text, processor, placeholders, prompts })
    }
}

impl Prompts {
    /// By what `processor_config.json` says, and the class's defaults where it does not.
    fn new(written: &serde_json::Value, placeholders: &Placeholders, bos: &str, padding: &str) -> Self {
        let said = |key: &str| written[key].as_str();
        let suffix = format!("{}\n", padding.repeat(AUGMENTATION));
        let token = &placeholders.token;
        if placeholders.has_special_tokens() {
            // `ColPaliProcessor`.
            let query = format!("{bos}{}", said("query_prefix").unwrap_or("Question: "));
            let image = said("visual_prompt_prefix").unwrap_or("Describe the image.");
            return Self { query, suffix, image: format!("{token}{bos}{image}\n") };
        }
        // `ColQwen2Processor` has its own also where the file has an empty text.
        let said = |key: &str| said(key).filter(|text| !text.is_empty());
        let query = said("query_prefix").unwrap_or("Query: ").to_owned();
        let image = said("visual_prompt_prefix").map_or_else(
            || {
                format!(
                    "<|im_start|>user\n<|vision_start|>{token}<|vision_end|>Describe the image.<|im_end|><|endoftext|>"
                )
            },
            str::to_owned,
        );
        Self { query, suffix, image }
    }
}

opened!(VisualDocumentRetrieval: text.model);

impl<A: AnyModel> VisualDocumentRetrieval<A> {
    /// The score of every query with every page: `[queries, pages]`.
    ///
    /// # Errors
    /// When there are no queries or no pages, a query is empty or longer than the model's positions, or the model fails.
    pub fn run(&self, queries: &[&str], pages: &[Image]) -> Result<Array2<f32>> {
        score_multi_vector(&self.embed_queries(queries)?, &self.embed_images(pages)?)
    }

    /// The embeddings of each query's tokens: `[tokens, embedding_dim]`, of length 1.
    ///
    /// # Errors
    /// When a query is empty or longer than the model's positions, or the model fails.
    pub fn embed_queries(&self, queries: &[&str]) -> Result<Vec<Array2<f32>>> {
        self.text.refuse_blank(queries)?;
        let Prompts { query: prefix, suffix, .. } = &self.prompts;
        let embed = |query: &&str| self.embed(&format!("{prefix}{query}{suffix}"), Values::new());
        queries.iter().map(embed).collect()
    }

    /// The embeddings of each page's tokens, most of which are parts of the image: `[tokens, embedding_dim]`, of length 1.
    ///
    /// # Errors
    /// When an image does not become what the model takes, or the model fails.
    pub fn embed_images(&self, pages: &[Image]) -> Result<Vec<Array2<f32>>> {
        let embed = |page: &Image| {
            let processed = self.processor.process(std::slice::from_ref(page))?;
            let replaced = self.placeholders.image(&self.processor, &processed)?;
            let text = self.prompts.image.replace(&self.placeholders.token, &replaced);
            self.embed(&text, self.batched(processed))
        };
        pages.iter().map(embed).collect()
    }

    /// Patches of one image as a batch, where the model has them image by image (`ColQwen2`).
    fn batched(&self, mut processed: Values) -> Values {
        let inputs = self.text.model.inputs();
        let ranks = inputs.iter().find(|input| input.name == "pixel_values").map(|input| input.shape.len());
        if let Some(Value::F32(pixels)) = processed.get_mut("pixel_values")
            && ranks == Some(pixels.ndim() + 1)
        {
            *pixels = std::mem::take(pixels).insert_axis(Axis(0));
        }
        processed
    }

    /// The embeddings of a text's tokens.
    fn embed(&self, text: &str, mut values: Values) -> Result<Array2<f32>> {
        let encode = EncodeOptions { add_special_tokens: false, ..EncodeOptions::default() };
        let rows = self.text.encode(&[Text::from(text)], &encode, true)?;
        let length = rows.first().map_or(0, crate::text::Encoding::len);
        let ids = rows.into_iter().flat_map(|row| row.ids).collect::<Vec<i64>>();
        let row =
            |ids: Vec<i64>| -> Value { ndarray::Array::from(ids).insert_axis(Axis(0)).into_dyn().into() };
        values.insert("input_ids".to_owned(), row(ids));
        values.insert("attention_mask".to_owned(), row(vec![1; length]));
        // All of a text is a prefix, where the model tells that from what follows.
        values.insert("token_type_ids".to_owned(), row(vec![0; length]));
        let model = &self.text.model;
        let outputs = model.run(model_inputs(model, values))?;
        let embeddings: &ArrayD<f32> = output(&outputs, "embeddings")?;
        let embeddings = embeddings.index_axis(Axis(0), 0).to_owned();
        embeddings.into_dimensionality().map_err(|e| {
            Error::input("embeddings", e.to_string(), "choose a class that gives an embedding of each token")
        })
    }
}
