//! What retrieves and what generates: the tasks of Weft's models that serve.

use ndarray::Array2;
use weft::AnyModel;
use weft::generation::GenerationConfig;
use weft::tasks::{
    EmbeddingOptions, GenerationOptions, SentenceEmbedding, Text2TextGeneration, TextGeneration,
};
use weft::text::chat::Message;

/// What turns texts into vectors: `[texts, dimension]` f32, compared by their cosine.
pub trait Embed {
    /// The vectors of passages.
    ///
    /// # Errors
    /// When the model fails.
    fn embed(&self, passages: &[&str]) -> weft::Result<Array2<f32>>;

    /// The vectors of questions, where a model makes them in another way: with a prompt, or by an encoder of their own (DPR).
    ///
    /// # Errors
    /// When the model fails.
    fn embed_queries(&self, queries: &[&str]) -> weft::Result<Array2<f32>> {
        self.embed(queries)
    }

    /// What the index remembers of the model, so that another is not asked by mistake: a hub id, or a folder's name.
    fn name(&self) -> String;
}

/// What writes an answer for a prompt.
pub trait Generate {
    /// The answer alone, without the prompt.
    ///
    /// # Errors
    /// When the prompt is longer than the model takes, or the model fails.
    fn generate(&self, prompt: &str) -> weft::Result<String>;
}

impl<A: AnyModel> Embed for SentenceEmbedding<A> {
    fn embed(&self, passages: &[&str]) -> weft::Result<Array2<f32>> {
        self.run_batch(passages)
    }

    /// With the checkpoint's prompt `query`, where it has one.
    fn embed_queries(&self, queries: &[&str]) -> weft::Result<Array2<f32>> {
        let options =
            EmbeddingOptions { prompt_name: Some("query".to_owned()), ..EmbeddingOptions::default() };
        match self.prompt_names().any(|name| name == "query") {
            true => self.run_with(queries, &options),
            false => self.run_batch(queries),
        }
    }

    fn name(&self) -> String {
        let id = self.model().checkpoint().id();
        let folder = std::path::Path::new(id).file_name().filter(|_| std::path::Path::new(id).is_dir());
        folder.map_or_else(|| id.to_owned(), |name| name.to_string_lossy().into_owned())
    }
}

/// The longest answer, in tokens, of a checkpoint that names none.
const NEW_TOKENS: usize = 256;

fn options() -> GenerationOptions {
    GenerationOptions::from(GenerationConfig {
        max_new_tokens: Some(NEW_TOKENS),
        ..GenerationConfig::default()
    })
}

impl<A: AnyModel> Generate for TextGeneration<A> {
    /// Answers a chat where the checkpoint has a template for one, else continues the prompt.
    fn generate(&self, prompt: &str) -> weft::Result<String> {
        match self.chat_template() {
            Some(_) => {
                self.stream_chat(&[Message::user(prompt)], &options(), &mut go_on).map(|chat| chat.reply)
            }
            None => self.stream(prompt, &options(), &mut go_on).map(|text| text.new_text().to_owned()),
        }
    }
}

impl<A: AnyModel> Generate for Text2TextGeneration<A> {
    fn generate(&self, prompt: &str) -> weft::Result<String> {
        let all = self.run_with(&[prompt], &options())?;
        Ok(all.into_iter().flatten().next().map(|written| written.generated_text).unwrap_or_default())
    }
}

fn go_on(_: &str) -> std::ops::ControlFlow<()> {
    std::ops::ControlFlow::Continue(())
}
