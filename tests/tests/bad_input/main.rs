//! Checkpoints, texts and tensors that nobody should give: each is refused with a message that names the thing,
//! the place and the way out, and none makes the program panic.

#![allow(clippy::unwrap_used, reason = "all of it is tests")]

mod checkpoint;
mod composed;
mod config;
mod hub;
mod inputs;
mod layouts;
mod pictures;
mod text;
mod weights;
