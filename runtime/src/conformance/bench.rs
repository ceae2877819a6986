//! `--bench DIR`: a checkpoint on random or given inputs; prints times and memory as one line of JSON.
//!
//! With `--serve` it stays and reads `run N` lines, so that it can be measured in turn with its peers.

mod work;

use std::io::BufRead;
use std::path::Path;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Instant;

use ndarray::ArrayD;
use serde_json::json;

use self::work::Work;
use super::arguments::Arguments;
use super::machine::private_bytes;
use super::subject::{Request, Subject};
use crate::GraphKind;
use crate::graph::{Dtype, Input};
use crate::session::millis;
use crate::{Error, Precision, Result, Value, golden};

pub(super) fn main(subject: Subject, arguments: &[String]) -> Result<ExitCode> {
    let arguments = Arguments::parse(arguments)?;
    let [dir] = arguments.alone.as_slice() else {
        return Err(Error::input("--bench", "needs one checkpoint", "write `--bench DIR --batch 1`"));
    };
    let before = private_bytes();
    let own = || private_bytes().zip(before).map(|(after, before)| after.saturating_sub(before));
    let start = Instant::now();
    let loaded = (subject.load)(Request {
        checkpoint: dir,
        hardware: Some(arguments.hardware()?),
        precision: arguments.precision()?,
        threads: Some(arguments.number("threads", 2)?),
        kind: if arguments.get("generate").is_some() { GraphKind::Decode } else { GraphKind::Forward },
        map_weights: arguments.flag("map-weights")?,
        kv_cache: arguments.get("kv-cache").map(Precision::from_str).transpose()?,
        weights: golden::rule_of(Path::new(dir))?,
        // As users have it.
        exact_activations: Some(false),
        ..Request::default()
    })?;
    let (load_ms, loaded_bytes) = (millis(start), own());
    let work = Work::of(&*loaded, &arguments)?;
    let first = work.round(&*loaded)?;
    let first_ms = millis(start);
    let timings = loaded.timings();
    let report = json!({
        "class": loaded.class(),
        "batch": arguments.number("batch", 1)?,
        "sequence": arguments.number("sequence", 128)?,
        "graph_ms": timings.graph_ms,
        "emit_ms": timings.lower_ms,
        "compile_ms": timings.compile_ms,
        "load_ms": load_ms,
        "loaded_bytes": loaded_bytes,
        "first_ms": first_ms,
        "first_round_ms": first,
        "private_bytes": own(),
        "cache": work.cached().map(|[positions, bytes]| json!({"positions": positions, "bytes": bytes})),
        "weights_bytes": loaded.weight_bytes(),
        "placement": loaded.placement().counts(),
        "hardware": loaded.hardware(),
        "explanation": loaded.explanation(),
    });
    let time = |rounds: usize| -> Result<serde_json::Map<String, serde_json::Value>> {
        let mut found = serde_json::Map::new();
        for _ in 0..rounds {
            for (measure, ms) in work.round(&*loaded)? {
                if let Some(all) = found.entry(measure).or_insert_with(|| json!([])).as_array_mut() {
                    all.push(json!(ms));
                }
            }
        }
        Ok(found)
    };
    if arguments.get("serve").is_none() {
        time(arguments.number("warmup", 3)?)?;
        let mut report = report;
        report["runs_ms"] = json!(time(arguments.number("rounds", 20)?)?);
        println!("{report}");
        return Ok(ExitCode::SUCCESS);
    }
    println!("{report}");
    for line in std::io::stdin().lock().lines().map_while(std::io::Result::ok) {
        let Some(rounds) = line.strip_prefix("run ").and_then(|rounds| rounds.trim().parse().ok()) else {
            break;
        };
        println!("{}", json!({ "ms": time(rounds)? }));
    }
    Ok(ExitCode::SUCCESS)
}

/// Ids by a fixed sequence of numbers, so that every run does the same work.
fn random(input: &Input, batch: usize, sequence: usize) -> Value {
    let length =
        |dim: &crate::Dim| dim.evaluate(&|symbol| Some(if symbol == "batch" { batch } else { sequence }));
    let shape: Vec<usize> = input.shape.iter().map(|dim| length(dim).unwrap_or(1)).collect();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 11
    };
    match input.dtype {
        Dtype::F32 => {
            Value::F32(ArrayD::from_shape_simple_fn(shape, || (next() % 2001) as f32 / 1000.0 - 1.0))
        }
        _ => {
            let below = input.below.map_or(2, |(limit, _)| limit as u64);
            Value::I64(ArrayD::from_shape_simple_fn(shape, || (next() % below) as i64))
        }
    }
}
