//! `cargo xtask bench --against COMMIT`: the models of the table of speeds as they are here against those of another commit.
//!
//! The other commit is built in a clone in `target/weft-bench`. Of each model both stay loaded and take turns, so that
//! whatever else the machine does hits both alike; a round gives one ratio, and the median of these is held to a limit.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use weft_generator::spec::hardware::Hardware;

use super::Args;
use super::speed::{self, Times, Work, contenders};
use super::table::median;
use crate::binaries::{self, Place, Profile};
use crate::table::Table;
use crate::terminal::{Progress, Usage, interrupted, note, say};
use crate::workspace::{self, Member, root, target_dir};
use crate::{reference, setup};

/// Rounds of each.
const ROUNDS: u32 = 10;
/// The most that the time may be of the other commit's.
const MOST: f64 = 1.1;
const HERE: &str = "here";
const THERE: &str = "there";

/// Everything measured.
#[derive(Debug, Serialize)]
struct Compared {
    commit: String,
    machine: String,
    threads: usize,
    rounds: u32,
    rows: Vec<Row>,
    /// Works without rows, and why.
    absent: BTreeMap<String, String>,
}

/// One measure of a model.
#[derive(Debug, PartialEq, Serialize)]
struct Row {
    model: String,
    what: String,
    here_ms: f64,
    there_ms: f64,
    /// The median of the rounds' ratios, this commit's time over the other's.
    ratio: f64,
    /// The ratio of each round.
    ratios: Vec<f64>,
}

impl Row {
    /// A measure of both, whose rounds belong together one by one.
    fn of(model: &str, what: &str, here: &[f64], there: &[f64]) -> Self {
        let ratios: Vec<f64> = here.iter().zip(there).map(|(here, there)| here / there).collect();
        Self {
            model: model.to_owned(),
            what: what.to_owned(),
            here_ms: median(here),
            there_ms: median(there),
            ratio: median(&ratios),
            ratios,
        }
    }

    fn kept(&self) -> bool {
        self.ratio <= MOST
    }
}

impl Compared {
    /// Whether something was compared, and nothing is slower.
    fn kept(&self) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(Row::kept)
    }

    fn text(&self) -> String {
        let head = ["model", "measured", "there ms", "here ms", "ratio", "from", "to", "verdict"];
        let mut table = Table::new(head);
        for row in &self.rows {
            let end =
                |least: fn(f64, f64) -> f64| row.ratios.iter().copied().reduce(least).unwrap_or(f64::NAN);
            table.row([
                row.model.clone(),
                row.what.clone(),
                format!("{:.1}", row.there_ms),
                format!("{:.1}", row.here_ms),
                format!("{:.2}", row.ratio),
                format!("{:.2}", end(f64::min)),
                format!("{:.2}", end(f64::max)),
                if row.kept() { "kept".into() } else { format!("slower: above {MOST:.2}") },
            ]);
        }
        let (commit, threads, rounds) = (&self.commit, self.threads, self.rounds);
        let conditions =
            format!("against {commit}, {threads} threads, in turns, {rounds} rounds, {}", self.machine);
        let mut text = format!("\n{conditions}\n\n{}\n", table.text());
        for (work, reason) in &self.absent {
            let _ = writeln!(text, "{work} was not compared: {reason}");
        }
        text
    }
}

/// Runs the verb; whether nothing is slower than it was.
pub fn run(args: &Args, commit: &str) -> Result<bool> {
    let works = speed::selected(&args.models)?;
    let commit = resolve(commit)?;
    setup::ensure(&[Hardware::Cpu])?;
    let python = reference::python(None)?;
    let profile = if args.dev { Profile::Dev } else { Profile::Release };
    let house = target_dir().join("weft-bench/against");
    let (folder, target) = (house.join("repository"), house.join("target"));
    check_out(&folder, &commit)?;
    note(format!(
        "building the crates as they are here, and those of {} in {}",
        &commit[..12],
        folder.display()
    ));
    let here = build(Place { folder: root(), target: &target_dir() }, &works, profile)?;
    let there = build(Place { folder: &folder, target: &target }, &works, profile)?;
    let (threads, rounds) = (args.threads, args.rounds.unwrap_or(ROUNDS));
    let machine = speed::machine();
    let mut compared = Compared { commit, machine, threads, rounds, rows: vec![], absent: BTreeMap::new() };
    let progress = Progress::new(works.len());
    for work in works {
        progress.step(work.title);
        let measured = measure(work, &python, [here.get(work.model), there.get(work.model)], &mut compared);
        if interrupted() {
            bail!("interrupted before all was compared");
        }
        if let Err(error) = measured {
            note(format!("{} is not compared: {error:#}", work.title));
            compared.absent.insert(work.name.to_owned(), format!("{error:#}"));
        }
    }
    progress.finish();
    say(if args.json { serde_json::to_string_pretty(&compared)? } else { compared.text() })?;
    Ok(compared.kept())
}

/// One work, by both in turns.
fn measure(
    work: &Work,
    python: &Path,
    binaries: [Option<&PathBuf>; 2],
    compared: &mut Compared,
) -> Result<()> {
    let [Some(here), Some(there)] = binaries else { bail!("one of the commits has no crate of it") };
    let checkpoint = contenders::checkpoint(python, work)?;
    let mut both = vec![];
    for (name, binary) in [(HERE, here), (THERE, there)] {
        both.push((name, contenders::weft(binary, &checkpoint, work, compared.threads)?));
    }
    let times = speed::in_turns(&mut both, compared.rounds)?;
    compared.rows.extend(rows(work, &times));
    Ok(())
}

fn rows(work: &Work, times: &Times) -> Vec<Row> {
    let of = |name: &str, key: &str| times.get(name)?.get(key).map(Vec::as_slice);
    let row = |measure: &speed::Measure| {
        let (here, there) = (of(HERE, measure.key)?, of(THERE, measure.key)?);
        Some(Row::of(work.title, measure.what, here, there))
    };
    work.measures.iter().filter_map(row).collect()
}

/// The test binaries of the works' crates in a repository; one that it does not have is left out.
fn build(place: Place<'_>, works: &[&Work], profile: Profile) -> Result<BTreeMap<&'static str, PathBuf>> {
    let all = workspace::generated(place.folder)?;
    let find = |model: &str| all.iter().find(|member| member.model == model).cloned();
    let members: BTreeMap<&'static str, Member> =
        works.iter().filter_map(|work| Some((work.model, find(work.model)?))).collect();
    let crates: Vec<Member> = members.values().cloned().collect();
    let built = binaries::build_in(place, &crates, profile)?;
    let binary = |(model, member): (&'static str, Member)| Some((model, built.get(&member.package)?.clone()));
    Ok(members.into_iter().filter_map(binary).collect())
}

/// The full name of a commit of this repository.
fn resolve(commit: &str) -> Result<String> {
    let mut command = git(root());
    command
        .args(["rev-parse", "--verify", "--quiet", "--end-of-options"])
        .arg(format!("{commit}^{{commit}}"));
    let output = command.output().context("starting git")?;
    if !output.status.success() {
        return Err(Usage(format!("--against {commit}: this repository has no such commit")).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Makes a clone that borrows this repository's objects, once, and puts it at a commit: what did not change is not built again.
fn check_out(folder: &Path, commit: &str) -> Result<()> {
    if !folder.join(".git").is_dir() {
        let mut command = git(root());
        command.args(["clone", "--quiet", "--shared", "--no-checkout", "."]).arg(folder);
        succeed(command, "cloning the repository")?;
    }
    let mut command = git(folder);
    command.args(["checkout", "--quiet", "--force", "--detach", commit]);
    succeed(command, "checking the commit out")
}

fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(folder);
    command
}

fn succeed(mut command: Command, what: &str) -> Result<()> {
    let status = command.status().with_context(|| format!("{what}: starting git"))?;
    if !status.success() {
        bail!("{what} failed ({status}): what git says is above");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(rows: Vec<Row>) -> Compared {
        let absent = [("detr".to_owned(), "one of the commits has no crate of it".to_owned())].into();
        let (commit, machine) = ("abc".into(), "a processor with 2 cores".into());
        Compared { commit, machine, threads: 2, rounds: 3, rows, absent }
    }

    #[test]
    fn ratios_are_of_rounds_that_belong_together() {
        // The machine is three times as slow in the second round: medians of times would say 10 / 11.
        let row = Row::of("ViT", "1 image", &[10.0, 33.0, 11.0], &[8.0, 30.0, 10.0]);
        assert_eq!(row.ratios, [1.25, 1.1, 1.1]);
        assert!((row.ratio - 1.1).abs() < 1e-12 && row.kept());
        assert!(!Row::of("ViT", "1 image", &[12.0, 36.0, 11.0], &[10.0, 30.0, 10.0]).kept());
    }

    #[test]
    fn nothing_compared_is_not_kept() {
        assert!(!compared(vec![]).kept());
        assert!(!compared(vec![Row::of("ViT", "1 image", &[f64::NAN], &[1.0])]).kept());
    }

    #[test]
    fn the_table_names_what_is_slower_and_what_was_not_compared() {
        let rows = vec![
            Row::of("ViT-base", "1 image", &[120.0, 121.0, 118.0], &[119.0, 120.0, 121.0]),
            Row::of("T5-small", "32 tokens", &[240.0, 251.0, 246.0], &[200.0, 210.0, 205.0]),
        ];
        let compared = compared(rows);
        assert!(!compared.kept());
        insta::assert_snapshot!(compared.text(), @r"

        against abc, 2 threads, in turns, 3 rounds, a processor with 2 cores

        model     measured   there ms  here ms  ratio  from    to  verdict
        --------  ---------  --------  -------  -----  ----  ----  ------------------
        ViT-base  1 image       120.0    120.0   1.01  0.98  1.01  kept
        T5-small  32 tokens     205.0    246.0   1.20  1.20  1.20  slower: above 1.10

        detr was not compared: one of the commits has no crate of it
        ");
    }

    #[test]
    fn a_commit_that_is_not_there_is_refused() {
        assert_eq!(resolve("HEAD").unwrap().len(), 40);
        assert!(resolve("no-such-branch").unwrap_err().is::<Usage>());
        assert!(resolve("--help").unwrap_err().is::<Usage>());
    }
}
