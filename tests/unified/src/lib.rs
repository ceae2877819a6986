//! No code: the features that `Cargo.toml` asks for are all that this crate is for.
