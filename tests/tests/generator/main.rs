//! The generator as its users meet it: files, error messages, what it leaves alone, how long it takes.

mod crate_files;
mod expressions;
mod fields;
mod messages;
mod modules;
mod nesting;
mod no_rust;
mod not_yet;
mod one_of;
mod options;
mod outside;
mod pipelines;
mod processing;
mod readme;
mod schemas;
mod speed;
mod templates;
mod writing;
