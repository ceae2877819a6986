//! The tasks, which differ in their names alone.

use serde::Serialize;

use super::Writer;
use crate::Result;
use crate::any_model::{AnyModel, DynModel};
use crate::tasks::OnText;
use crate::tasks::assistant::Assistant;
use crate::tasks::builder::opened;
use crate::tasks::{GenerationOptions, Pipeline, Task};

/// A text written for another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rewritten {
    /// The text.
    pub generated_text: String,
}

/// A summary of a text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The summary.
    pub summary_text: String,
}

/// A text in another language.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Translated {
    /// The translation.
    pub translation_text: String,
}

macro_rules! kind {
    ($(#[$doc:meta])* $name:ident, $task:ident, $result:ident { $field:ident }) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name<A> {
            writer: Writer<A>,
        }

        impl<A: AnyModel> Pipeline<A> for $name<A> {
            const TASK: Task = Task::$task;

            fn from_model(model: A) -> Result<Self> {
                Ok(Self { writer: Writer::new(model, Self::TASK)? })
            }
        }

        opened!($name: writer.text.model);

        impl<A: AnyModel> $name<A> {
            /// Takes a smaller model that drafts (assisted or speculative decoding, `assistant_model`), as
            /// [`TextGeneration::with_assistant`](crate::tasks::TextGeneration::with_assistant) does; its own encoder reads the texts too. There
            /// are no beams where the caller does not ask for them.
            ///
            /// # Errors
            /// When it has other tokens, or a file of its checkpoint cannot be read.
            pub fn with_assistant(mut self, assistant: DynModel) -> Result<Self> {
                self.set_assistant(assistant)?;
                Ok(self)
            }

            pub(in crate::tasks) fn set_assistant(&mut self, assistant: DynModel) -> Result<()> {
                let text = &self.writer.text;
                self.writer.assistant = Some(Assistant::new(assistant, (&text.model, &text.tokenizer))?);
                Ok(())
            }
        }

        impl<A: AnyModel> $name<A> {
            /// For one text.
            ///
            /// # Errors
            /// When the text is empty or longer than the model's positions, or the model fails.
            pub fn run(&self, text: &str) -> Result<Vec<$result>> {
                Ok(self.run_with(&[text], &GenerationOptions::default())?.pop().unwrap_or_default())
            }

            /// For several, with other than the default options; for each as often as `num_return_sequences` says.
            ///
            /// # Errors
            /// As `run`, and when options contradict each other.
            pub fn run_with(&self, texts: &[&str], options: &GenerationOptions) -> Result<Vec<Vec<$result>>> {
                let all = self.writer.write(None, texts, options, None)?;
                let made = |$field| $result { $field };
                Ok(all.into_iter().map(|texts| texts.into_iter().map(made).collect()).collect())
            }

            /// For one text, telling of each piece as it comes: the most probable tokens one by one, without beams, unless
            /// the options ask for them.
            ///
            /// # Errors
            /// As `run_with`.
            pub fn stream(
                &self,
                text: &str,
                options: &GenerationOptions,
                on_text: &mut OnText<'_>,
            ) -> Result<$result> {
                let mut all = self.writer.write(None, &[text], options, Some(on_text))?;
                let $field = all.pop().and_then(|mut texts| texts.pop()).unwrap_or_default();
                Ok($result { $field })
            }
        }
    };
}

kind! {
    /// Writes a text for another.
    ///
    /// ```no_run
    /// # fn example<A: weft::Architecture>() -> weft::Result<()> {
    /// let writer = weft::tasks::Text2TextGeneration::<A>::open("org/checkpoint")?.load()?;
    /// println!("{}", writer.run("cola sentence: The weaver throws the weft.")?[0].generated_text);
    /// # Ok(())
    /// # }
    /// ```
    Text2TextGeneration, Text2TextGeneration, Rewritten { generated_text }
}

kind! {
    /// Summarises texts.
    ///
    /// ```no_run
    /// # fn example<A: weft::Architecture>() -> weft::Result<()> {
    /// let summarization = weft::tasks::Summarization::<A>::open("org/checkpoint")?.load()?;
    /// println!("{}", summarization.run("A long report …")?[0].summary_text);
    /// # Ok(())
    /// # }
    /// ```
    Summarization, Summarization, Summary { summary_text }
}

kind! {
    /// Translates texts.
    ///
    /// ```no_run
    /// # fn example<A: weft::Architecture>() -> weft::Result<()> {
    /// let translation = weft::tasks::Translation::<A>::open("org/checkpoint")?.load()?.languages("en", "de");
    /// println!("{}", translation.run("The weaver throws the weft.")?[0].translation_text);
    /// # Ok(())
    /// # }
    /// ```
    Translation, Translation, Translated { translation_text }
}

impl<A: AnyModel> Translation<A> {
    /// From which language into which, as the checkpoint names them: `en_XX` and `de_DE` for mBART, `eng_Latn` for NLLB.
    /// Multilingual checkpoints must be told; of others it chooses among the options that they hold for pairs.
    #[must_use]
    pub fn languages(mut self, from: &str, to: &str) -> Self {
        self.writer.languages = Some((from.to_owned(), to.to_owned()));
        self
    }

    /// Several texts between languages that are told with them.
    pub(in crate::tasks) fn between(
        &self,
        languages: Option<&(String, String)>,
        texts: &[&str],
        options: &GenerationOptions,
    ) -> Result<Vec<Vec<Translated>>> {
        let all = self.writer.write(languages, texts, options, None)?;
        let made = |translation_text| Translated { translation_text };
        Ok(all.into_iter().map(|texts| texts.into_iter().map(made).collect()).collect())
    }
}
