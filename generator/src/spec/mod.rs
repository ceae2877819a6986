//! The data that crates are generated from, as types.

pub mod architectures;
pub mod document;
pub mod hardware;
pub mod packages;
pub mod vocabulary;
