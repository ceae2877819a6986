//! The data that crates are generated from, as types.

pub mod architectures;
pub mod check;
mod config_type;
pub mod defaults;
mod derive;
pub mod document;
pub mod fields;
pub mod hardware;
pub mod load;
pub mod merge;
pub mod model;
mod modules;
mod nested;
pub mod not_yet;
mod one_of;
pub mod operators;
pub mod packages;
mod removals;
pub mod vocabulary;
pub mod yaml;
