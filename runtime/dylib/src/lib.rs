//! The runtime as a shared library (`crate-type = ["dylib"]`), as Bevy's `dynamic_linking` has it.
//!
//! A test binary that names this crate links [`weft`] and all that it stands on from here: it is linked in a tenth of a
//! second and holds a megabyte, where a copy of the runtime in each makes fifty.

pub use weft::*;
