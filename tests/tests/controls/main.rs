//! Proof that the proof can fail: the harness of the generated crates is given what must not pass.
//!
//! The binary is its own subject: with `WEFT_TESTS_SUITE` in its environment it is a generated crate's test binary
//! with that suite; without, it runs itself so and judges what comes of it.

#![allow(clippy::unwrap_used, reason = "all of it is tests, though it brings its own `main`")]

mod backends;
mod binary;
mod goldens;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    if let Some(suite) = std::env::var_os(binary::SUITE) {
        return binary::main(&suite.to_string_lossy());
    }
    let tests: Vec<Trial> = [goldens::trials(), backends::trials()].into_iter().flatten().collect();
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}
