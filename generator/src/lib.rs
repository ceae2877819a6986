//! Specs to crates: reads the specs, checks them, renders the templates, writes the files.
//!
//! `load -> resolve extends -> validate -> lower to a render context -> Tera -> syn -> prettyplease -> write`: each
//! step is a module here, and [`generate`] runs them all.

#![warn(missing_docs)]

pub mod expression;
pub mod lower;
pub mod packages;
pub mod render;
pub mod repository;
mod run;
pub mod schema;
pub mod spec;
pub mod template;
pub mod write;

pub use run::{Error, Report, Request, generate, parts, unlisted_fields};
