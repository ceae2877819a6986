//! `--quantize CHECKPOINT OUT BITS GROUP SYMMETRIC [--calibrate FILE]`: the checkpoint with its linear layers quantized, as compressed-tensors has
//! them.

use std::path::Path;
use std::process::ExitCode;

use super::arguments::Arguments;
use super::subject::{Request, Subject};
use crate::quantization::{Recipe, Written};
use crate::tasks::calibration_inputs;
use crate::{Error, Result};

pub(super) fn main(subject: Subject, arguments: &[String]) -> Result<ExitCode> {
    let arguments = Arguments::parse(arguments)?;
    let refused = || {
        let help = "write `--quantize CHECKPOINT OUT 4 32 true`";
        Error::input(
            "--quantize",
            "needs a checkpoint, a folder, bits, a group and whether it is symmetric",
            help,
        )
    };
    let [checkpoint, out, bits, group, symmetric] = arguments.alone.as_slice() else { return Err(refused()) };
    let number = |text: &str| text.parse::<usize>().map_err(|_| refused());
    let recipe = Recipe { bits: number(bits)?, group: number(group)?, symmetric: symmetric == "true" };
    let request = Request { checkpoint, ..Request::default() };
    let inputs = arguments.get("calibrate").map(|file| calibration_inputs(Path::new(file))).transpose()?;
    let written = (subject.quantize)(request, recipe, inputs.as_deref(), Path::new(out))?;
    let Written { quantized, calibrated, kept, before, after } = written;
    let [before, after] = [before, after].map(|bytes| bytes as f64 / 1e6);
    println!(
        "{out}: {quantized} weights in {bits} bits, {calibrated} of them calibrated, {kept} tensors as they were: {before:.1} MB are {after:.1} MB"
    );
    Ok(ExitCode::SUCCESS)
}
