//! `cargo xtask bench --speed`: models at the shapes of published checkpoints against PyTorch, llama.cpp and candle.
//!
//! Of each model all contenders stay loaded and take turns, a round each, so that whatever else the machine does hits all
//! alike; then the next model's.

pub(super) mod contenders;
mod peak;
mod results;
mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use weft_generator::spec::hardware::Hardware;

use self::peak::{Least, Peak};
use self::results::{Memory, Opened, Results, Row, Timed};
pub use self::results::{figures, machine};
use self::rows::PYTORCH;
pub(super) use self::rows::{Measure, Work};
use super::Args;
use super::peer::Served;
use super::table::median;
use crate::binaries::{self, Profile};
use crate::terminal::{Progress, Usage, interrupted, note, say};
use crate::workspace::{self, Member};
use crate::{reference, setup};

/// The contender that tells what the machine does at most.
const MACHINE: &str = "machine";
/// Rounds of each contender.
const ROUNDS: u32 = 5;
/// Processes that open a checkpoint where that is measured.
const OPENINGS: usize = 3;

/// Runs the verb; whether every goal is met.
pub fn run(args: &Args) -> Result<bool> {
    let works = selected(&args.models)?;
    setup::ensure(&[Hardware::Cpu])?;
    let python = reference::python(None)?;
    let binaries = build(&works)?;
    let rounds = args.rounds.unwrap_or(ROUNDS);
    let none = || Results::new(args.threads, rounds);
    // Named rows come into the committed table as each is measured; whether they suit it is found out before.
    let kept = args.write && !args.models.is_empty();
    if kept {
        none().into_committed()?;
    }
    let mut results = none();
    let progress = Progress::new(works.len());
    for work in works {
        progress.step(work.title);
        let mut own = none();
        let measured = measure(work, &python, &binaries[work.model], &mut own);
        if interrupted() {
            bail!("interrupted before all was measured");
        }
        // The other rows are worth having all the same.
        if let Err(error) = measured {
            note(format!("{} is not measured: {error:#}", work.title));
            own.failed.insert(work.name.to_owned(), error.to_string());
        }
        if kept {
            own.clone().into_committed()?.write()?;
        }
        results.take(own);
    }
    progress.finish();
    if args.write && !kept {
        results.write()?;
    }
    say(if args.json { serde_json::to_string_pretty(&results)? } else { results.text() })?;
    Ok(results.met())
}

/// The rows of these models, or of these titles; all where none is named.
pub(super) fn selected(named: &[String]) -> Result<Vec<&'static Work>> {
    let works = rows::selected(named);
    for name in named {
        if !works.iter().any(|work| work.is_named(name)) {
            let models: BTreeSet<_> = rows::WORKS.iter().map(|work| work.model).collect();
            let models = Vec::from_iter(models).join(", ");
            let problem =
                format!("no row of `{name}`: it is none of {models}, and no title in docs/speed.md");
            return Err(Usage(problem).into());
        }
    }
    Ok(works)
}

/// The binaries of the crates, in release.
fn build(works: &[&Work]) -> Result<BTreeMap<&'static str, PathBuf>> {
    let mut members: BTreeMap<&str, Member> = BTreeMap::new();
    for work in works {
        let found = workspace::select(workspace::root(), &[], &[work.model.to_owned()])?;
        members.insert(work.model, found.into_iter().next().context("no such crate")?);
    }
    note("building the crates in release");
    let all: Vec<Member> = members.values().cloned().collect();
    let built = binaries::build(&all, Profile::Release)?;
    let binary = |(model, member): (&'static str, Member)| {
        let path = built.get(&member.package).with_context(|| format!("{} was not built", member.package))?;
        Ok((model, path.clone()))
    };
    members.into_iter().map(binary).collect()
}

/// One work, by all contenders in turns.
fn measure(work: &Work, python: &Path, binary: &Path, results: &mut Results) -> Result<()> {
    let checkpoint = contenders::checkpoint(python, work)?;
    if work.opens_at_once {
        let mut opened = Vec::with_capacity(OPENINGS);
        for _ in 0..OPENINGS {
            let served = contenders::weft(binary, &checkpoint, work, results.threads)?;
            opened.push(served.report.clone());
        }
        results.opened.push(Opened::of(work.title, work.gguf.is_some(), &opened));
    }
    let mut all = vec![("weft", contenders::weft(binary, &checkpoint, work, results.threads)?)];
    for name in std::iter::once(PYTORCH).chain(work.peers.iter().map(|peer| peer.name())) {
        match contenders::peer(name, python, &checkpoint, work, results.threads) {
            Ok(served) => {
                results.told(name, &served.report);
                all.push((name, served));
            }
            // What is not there is named in the table; the others are measured all the same.
            Err(error) if name != PYTORCH => {
                note(format!("{name} is not measured: {error:#}"));
                results.absent.insert(name.to_owned(), "it could not be started".to_owned());
            }
            Err(error) => return Err(error),
        }
    }
    all.push((MACHINE, contenders::machine(python, results.threads)?));
    let told = |name: &str| {
        let served = all.iter().find(|(contender, _)| *contender == name);
        served.map(|(_, served)| served.report["work"].clone()).unwrap_or_default()
    };
    let (least, probes) = (told(PYTORCH), told(MACHINE));
    // Quantized weights have so much of the bytes that PyTorch's checkpoint has.
    let size = |file: &str| Ok::<_, anyhow::Error>(checkpoint.join(file).metadata()?.len() as f64);
    let share = match work.gguf {
        Some(file) => size(file)? / size("model.safetensors")?,
        None => work.precision.map_or(1.0, |precision| precision.share),
    };
    let times = in_turns(&mut all, results.rounds)?;
    results.memory.push(Memory::of(work.title, &all));
    let peak = times.get(MACHINE).map(|probed| Peak::of(probed, &probes));
    for measure in work.measures {
        let timed = |name: &str| {
            let ms = times.get(name)?.get(measure.key)?;
            Some(Timed { name: name.to_owned(), median_ms: median(ms), runs_ms: ms.clone() })
        };
        let weft = timed("weft").with_context(|| format!("weft has no times of `{}`", measure.key))?;
        let peers = all.iter().skip(1).filter(|(name, _)| *name != MACHINE);
        let peers = peers.filter_map(|(name, _)| timed(name)).collect();
        let goals = measure.goals.iter().map(|(name, most)| ((*name).to_owned(), *most)).collect();
        let (model, what) = (work.title.to_owned(), measure.what.to_owned());
        let least = Least::of(&least[measure.key]).map(|it| Least { bytes: it.bytes * share, ..it });
        let key = measure.key.to_owned();
        results.rows.push(Row { model, what, key, weft, peers, goals, least, peak });
    }
    Ok(())
}

/// Milliseconds of each round, by contender and measure.
pub(super) type Times = BTreeMap<String, BTreeMap<String, Vec<f64>>>;

/// What a round takes at least, milliseconds: right behind another contender's, threads wake up and caches hold what others need, and one
/// pass of MobileViT-S takes 17.8 ms where the median of several is 14.8.
const ROUND_MS: f64 = 400.0;

/// The most passes in a round.
const PASSES: f64 = 20.0;

/// A round of each, again and again; the first is not counted, and every other goes the other way round. Where passes are short, a
/// round is as many of them for each, and their median.
pub(super) fn in_turns(contenders: &mut [(&'static str, Served)], rounds: u32) -> Result<Times> {
    let mut longest: f64 = 0.0;
    for (name, served) in contenders.iter_mut() {
        let ms = served.measured(1)?.into_values().flatten().sum::<f64>();
        longest = if *name == MACHINE { longest } else { longest.max(ms) };
    }
    let passes = (ROUND_MS / longest).ceil().clamp(1.0, PASSES) as u32;
    let mut times = Times::new();
    for _ in 0..rounds {
        for (name, served) in contenders.iter_mut() {
            let passes = if *name == MACHINE { 1 } else { passes };
            for (measure, ms) in served.measured(passes)? {
                times.entry((*name).to_owned()).or_default().entry(measure).or_default().push(median(&ms));
            }
        }
        contenders.reverse();
    }
    if rounds % 2 == 1 {
        contenders.reverse();
    }
    Ok(times)
}
