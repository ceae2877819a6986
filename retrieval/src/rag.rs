//! Retrieval-augmented generation: passages found for a question, and an answer that a generator writes from them.

use serde::Serialize;

use crate::{Embed, Error, Found, Generate, Index, Result};

/// A retriever and a generator: any model that embeds, any that writes.
///
/// This is the retrieval of documents in front of a prompt, as it is used with models of any kind; the reference's `RagModel`,
/// which is trained as one and weighs each passage's answer, is the architecture `rag`.
pub struct Rag<'a> {
    index: &'a Index,
    embedding: &'a dyn Embed,
    generator: &'a dyn Generate,
    count: usize,
    template: String,
}

/// An answer and what it was written from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// What the generator wrote.
    pub answer: String,
    /// The passages that it was given, the nearest first.
    pub sources: Vec<Found>,
}

const TEMPLATE: &str = "Answer the question from these passages alone, and say so where they do not answer it.\n\n\
                        {passages}\n\nQuestion: {question}\nAnswer:";

impl<'a> Rag<'a> {
    /// Of an index, the model that it was made with, and a generator.
    pub fn new(index: &'a Index, embedding: &'a dyn Embed, generator: &'a dyn Generate) -> Self {
        Self { index, embedding, generator, count: 4, template: TEMPLATE.to_owned() }
    }

    /// How many passages the generator is given; 4 where this is not called.
    #[must_use]
    pub fn passages(mut self, count: usize) -> Self {
        self.count = count;
        self
    }

    /// The prompt, with `{passages}` and `{question}` in it.
    ///
    /// # Errors
    /// When it lacks one of the two.
    pub fn template(mut self, template: &str) -> Result<Self> {
        for part in ["{passages}", "{question}"] {
            if !template.contains(part) {
                return Err(Error::Index {
                    path: self.index.path().to_owned(),
                    problem: format!("the prompt's template has no `{part}`"),
                    help: "write it where that belongs".to_owned(),
                });
            }
        }
        template.clone_into(&mut self.template);
        Ok(self)
    }

    /// The passages for a question: the task document-retrieval.
    ///
    /// # Errors
    /// When a model fails, or the index is another's.
    pub fn retrieve(&self, question: &str) -> Result<Vec<Found>> {
        let vector = self.embedding.embed_queries(&[question])?;
        self.index.search(&vector.row(0).to_vec(), self.count)
    }

    /// An answer with its sources: the task generative-question-answering.
    ///
    /// # Errors
    /// As [`Rag::retrieve`], and when the prompt is longer than the generator takes.
    pub fn run(&self, question: &str) -> Result<Answer> {
        let sources = self.retrieve(question)?;
        let answer = self.generator.generate(&self.prompt(question, &sources))?;
        Ok(Answer { answer: answer.trim().to_owned(), sources })
    }

    /// What the generator reads.
    pub fn prompt(&self, question: &str, sources: &[Found]) -> String {
        let numbered = sources.iter().enumerate().map(|(at, found)| {
            format!("[{}] ({}) {}", at + 1, found.passage.source, found.passage.text.trim())
        });
        let passages = numbered.collect::<Vec<_>>().join("\n\n");
        // The question last: what stands in passages is no place for it.
        let (before, after) = self.template.split_once("{passages}").unwrap_or((&self.template, ""));
        let filled = |part: &str| part.replace("{question}", question);
        format!("{}{passages}{}", filled(before), filled(after))
    }
}
