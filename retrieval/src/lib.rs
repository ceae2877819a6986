//! Document retrieval and retrieval-augmented generation (RAG): passages of text files in an index on disk, found by the
//! similarity of their embeddings, and handed to a generator together with the question.
//!
//! Any model that embeds texts retrieves ([`Embed`]), any that writes generates ([`Generate`]):
//!
//! ```no_run
//! # fn ask<B: weft::AnyModel, L: weft::AnyModel>(
//! #     embedding: weft::tasks::SentenceEmbedding<B>, generator: weft::tasks::TextGeneration<L>,
//! # ) -> Result<(), Box<dyn std::error::Error>> {
//! use std::path::Path;
//! use weft_retrieval::{Index, Rag, Splitting};
//!
//! let mut index = Index::create(Path::new("notes.index"), &embedding)?;
//! index.update(Path::new("notes"), &embedding, &Splitting::default(), &mut |_| {})?;
//! let rag = Rag::new(&index, &embedding, &generator);
//! let answer = rag.run("What is a weft?")?;
//! println!("{}", answer.answer);
//! for source in &answer.sources {
//!     println!("{} {:.3}", source.passage.source, source.score);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The index is an HNSW graph (Malkov and Yashunin, 2016) in LMDB by [`hannoy`]: memory-mapped, so that it grows past memory and
//! opens at once; written in transactions, so that what dies half way leaves what was there; and it takes changes without being
//! built anew. `arroy`, from which it comes, has trees of random projections in place of the graph.

mod embed;
mod error;
mod index;
mod passages;
mod rag;
mod update;

pub use embed::{Embed, Generate};
pub use error::{Error, Result};
pub use index::{About, Found, Index};
pub use passages::{Passage, Splitting};
pub use rag::{Answer, Rag};
pub use update::{Progress, Updated};
