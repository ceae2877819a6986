//! The generator as its users meet it: files, error messages, what it leaves alone, how long it takes.

mod crate_files;
mod messages;
mod modules;
mod outside;
mod schemas;
mod speed;
mod writing;
