//! Specs to crates: reads the specs, checks them, renders the templates, writes the files.

#![warn(missing_docs)]

pub mod spec;
