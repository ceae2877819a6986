//! One run of the generator in a folder, as a process that a test can kill.

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let folder = std::env::args_os().nth(1).map(PathBuf::from).unwrap_or_default();
    match weft_generator::generate(&weft_tests::request(&folder)) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
