//! Rust source as templates give it, to source as people write it: parsed, its imports found, what nobody calls left
//! out, printed as rustfmt would.
//!
//! A crate of its own, because it is where the generator spends its time: the workspace builds it with optimization,
//! and the rest, which is built for each change, without.

#![warn(missing_docs)]

mod code;
mod dispatch;
mod imports;
mod layout;
mod names;
mod prune;
mod remarks;
#[cfg(test)]
mod tests;

pub use code::{Code, Invalid, is_name, parse};
pub use dispatch::{Choice, Differs};
pub use names::{Fields, Read};
