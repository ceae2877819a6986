//! The table: medians, ratios, and whether the goals are met.

mod committed;
mod memory;
mod opened;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::committed::RESULTS;
pub use self::committed::figures;
pub use self::memory::Memory;
pub use self::opened::Opened;
use super::peak::{Least, Peak};
use super::rows::PYTORCH;
use crate::table::Table;

/// One run of the command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    pub machine: String,
    pub threads: usize,
    pub rounds: u32,
    pub versions: BTreeMap<String, String>,
    /// Peers that were not measured, and why.
    pub absent: BTreeMap<String, String>,
    /// Works without rows, and why.
    #[serde(default)]
    pub failed: BTreeMap<String, String>,
    pub rows: Vec<Row>,
    pub opened: Vec<Opened>,
    #[serde(default)]
    pub memory: Vec<Memory>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    pub model: String,
    pub what: String,
    /// `run`, `prefill` or `token`.
    pub key: String,
    pub weft: Timed,
    pub peers: Vec<Timed>,
    /// The most that the time may be of a peer's.
    pub goals: BTreeMap<String, f64>,
    /// What it takes at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<Least>,
    /// What the machine did at most in the same rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<Peak>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Timed {
    pub name: String,
    pub median_ms: f64,
    pub runs_ms: Vec<f64>,
}

impl Row {
    fn ratio(&self, peer: &Timed) -> f64 {
        self.weft.median_ms / peer.median_ms
    }

    /// The share of the time that the machine needs at least.
    fn of_peak(&self) -> Option<f64> {
        Some(self.peak?.share(&self.least?, self.weft.median_ms))
    }

    /// Whether every goal is met of those whose peers were measured.
    fn met(&self) -> bool {
        self.peers.iter().all(|peer| self.goals.get(&peer.name).is_none_or(|most| self.ratio(peer) <= *most))
    }

    fn verdict(&self) -> &'static str {
        let behind = |peer: &&Timed| peer.name == PYTORCH && self.ratio(peer) >= 1.0;
        match self.met() {
            true if self.goals.is_empty() => "",
            true => "met",
            false if self.peers.iter().any(|peer| behind(&peer)) => "slower",
            false => "missed",
        }
    }

    fn goal(&self) -> String {
        let each = self.goals.iter().map(|(peer, most)| match self.goals.len() {
            1 => format!("{most:.2}"),
            _ => format!("{most:.2} {peer}"),
        });
        each.collect::<Vec<_>>().join(", ")
    }
}

impl Results {
    pub fn new(threads: usize, rounds: u32) -> Self {
        Self {
            machine: machine(),
            threads,
            rounds,
            versions: BTreeMap::new(),
            absent: BTreeMap::new(),
            failed: BTreeMap::new(),
            rows: vec![],
            opened: vec![],
            memory: vec![],
        }
    }

    /// Takes in what another measured.
    pub fn take(&mut self, other: Self) {
        self.rows.extend(other.rows);
        self.opened.extend(other.opened);
        self.memory.extend(other.memory);
        self.versions.extend(other.versions);
        self.absent.extend(other.absent);
        self.failed.extend(other.failed);
    }

    /// Notes the version that a peer says it is.
    pub fn told(&mut self, peer: &str, report: &Value) {
        if let Some(version) = report["version"].as_str() {
            self.versions.insert(peer.to_owned(), version.to_owned());
        }
    }

    pub fn met(&self) -> bool {
        self.failed.is_empty() && self.rows.iter().all(Row::met) && self.opened.iter().all(Opened::met)
    }

    fn table(&self) -> Table {
        let mut peers = vec![];
        for peer in self.rows.iter().flat_map(|row| &row.peers) {
            if !peers.contains(&peer.name) {
                peers.push(peer.name.clone());
            }
        }
        let mut header: Vec<String> = ["model", "measured", "weft ms"].map(str::to_owned).to_vec();
        let has_peaks = self.rows.iter().any(|row| row.of_peak().is_some());
        if has_peaks {
            header.push("of peak".to_owned());
        }
        for peer in &peers {
            header.extend([format!("{peer} ms"), "ratio".to_owned()]);
        }
        header.extend(["goal".to_owned(), "verdict".to_owned()]);
        let mut table = Table::with_columns(header);
        for row in &self.rows {
            let mut cells = vec![row.model.clone(), row.what.clone(), format!("{:.1}", row.weft.median_ms)];
            if has_peaks {
                cells.push(row.of_peak().map(|share| format!("{share:.2}")).unwrap_or_default());
            }
            for name in &peers {
                match row.peers.iter().find(|peer| peer.name == *name) {
                    Some(peer) => {
                        cells.extend([format!("{:.1}", peer.median_ms), format!("{:.2}", row.ratio(peer))]);
                    }
                    None => cells.extend([String::new(), String::new()]),
                }
            }
            cells.extend([row.goal(), row.verdict().to_owned()]);
            table.row(cells);
        }
        table
    }

    /// What stands below the table.
    fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.opened.iter().map(Opened::text).collect();
        let rates = self.rows.iter().filter(|row| row.key == "token").map(|row| {
            let each = std::iter::once(&row.weft).chain(&row.peers);
            let rates: Vec<_> =
                each.map(|timed| format!("{} {:.2}", timed.name, 1e3 / timed.median_ms)).collect();
            format!("{}, tokens a second: {}", row.model, rates.join(", "))
        });
        notes.extend(rates);
        notes.extend(self.memory.iter().filter_map(Memory::text));
        let peaks = || self.rows.iter().filter_map(|row| row.peak);
        let most = |of: fn(Peak) -> f64| peaks().map(of).reduce(f64::max);
        if let (Some(flops), Some(bytes)) = (most(|peak| peak.flops), most(|peak| peak.bytes)) {
            notes.push(format!(
                "of peak: the least time of a row's operations or of reading its weights, by the fastest float32 products \
                 and reads between its rounds, over weft's; at most {:.0} GFLOP/s and {:.1} GB/s here",
                flops / 1e9,
                bytes / 1e9
            ));
        }
        notes.extend(self.failed.iter().map(|(work, reason)| format!("{work} was not measured: {reason}")));
        notes.extend(self.absent.iter().map(|(peer, reason)| format!("{peer} was not measured: {reason}")));
        let versions = self.versions.iter().map(|(peer, version)| format!("{peer} {version}"));
        notes.push(versions.collect::<Vec<_>>().join("; "));
        notes
    }

    fn conditions(&self) -> String {
        format!(
            "{} threads, in turns, medians of {} rounds (of short passes each the median of several), {}",
            self.threads, self.rounds, self.machine
        )
    }

    /// For terminals.
    pub fn text(&self) -> String {
        let mut text = format!("\n{}\n\n{}\n", self.conditions(), self.table().text());
        for note in self.notes() {
            let _ = writeln!(text, "{note}");
        }
        text
    }

    fn markdown(&self) -> String {
        let mut text = format!(
            "# Speed\n\nWritten by `cargo xtask bench --speed --write` from `{RESULTS}`; not edited by hand.\n\n\
             Models at the shapes of published checkpoints with random weights: {}. PyTorch runs `transformers` in eager \
             mode. A ratio is weft's time over the peer's: below 1 is faster, and at most the goal is met.\n\n{}\n",
            self.conditions(),
            self.table().markdown()
        );
        for note in self.notes() {
            let _ = writeln!(text, "- {note}");
        }
        text.push_str(
            "\nA decoder with a cache and a quarter of a gigabyte of weights or more leaves them in their mapped pages, in the type they \
             are stored in: it opens at once, and its prompts are slower. `Model::open(..)?.map_weights(false)` opens it \
             for prompts instead. All compute in float32 but the rows in bfloat16, where weft is asked for it \
             (`--precision bf16`; float32 is what it computes in by itself), PyTorch computes in the checkpoint's type and \
             `llama.cpp bf16` rounds what it multiplies, and the rows of quantized weights, where weft and llama.cpp round what \
             they multiply to 8 bits and PyTorch computes with the checkpoint as it is; weft and llama.cpp read the same file \
             that llama.cpp quantized. `llama.cpp` without a type and candle compute in float32. Vision-language models in 4 \
             bits are rounded by weft as the same checkpoint opens (`--precision int4`). A token reads every weight but the embeddings \
             once, and reading them is what takes its time: of float32 \
             weights nobody is faster than the memory, of bfloat16 ones half as much is read.\n",
        );
        text
    }

    fn figures(&self) -> Vec<Value> {
        let figure = |row: &Row, timed: &Timed| {
            let own = timed.name == row.weft.name;
            json!({
                "model": row.model, "measured": row.what, "measure": row.key, "contender": timed.name,
                "median_ms": timed.median_ms, "rounds": timed.runs_ms.len(),
                "ratio": (!own).then(|| row.ratio(timed)), "of_peak": row.of_peak().filter(|_| own),
                "machine": self.machine, "threads": self.threads,
            })
        };
        let mut all = vec![];
        for row in &self.rows {
            all.extend(std::iter::once(&row.weft).chain(&row.peers).map(|timed| figure(row, timed)));
        }
        all
    }
}

/// The processor and its cores.
pub fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("model name"));
    let processor = line.and_then(|line| Some(line.split_once(':')?.1.trim()));
    format!("{} with {cores} cores", processor.unwrap_or(std::env::consts::ARCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn timed(name: &str, ms: f64) -> Timed {
        Timed { name: name.to_owned(), median_ms: ms, runs_ms: vec![ms] }
    }

    pub(super) fn row(key: &str, weft: f64, peers: Vec<Timed>, goals: &[(&str, f64)]) -> Row {
        let goals = goals.iter().map(|(peer, most)| ((*peer).to_owned(), *most)).collect();
        let (model, what) = ("Llama 1.1B".to_owned(), format!("a {key}"));
        let (key, weft) = (key.to_owned(), timed("weft", weft));
        Row { model, what, key, weft, peers, goals, least: None, peak: None }
    }

    #[test]
    fn a_goal_is_met_by_every_peer_that_it_names() {
        let peers = || vec![timed(PYTORCH, 200.0), timed("llama.cpp", 100.0)];
        let mut results = Results::new(2, 5);
        results.machine = "a processor with 2 cores".into();
        results.versions.insert(PYTORCH.into(), "2".into());
        results.absent.insert("candle".into(), "it was not built".into());
        let goals = [(PYTORCH, 0.5), ("llama.cpp", 0.8)];
        for weft in [70.0, 90.0, 250.0] {
            results.rows.push(row("token", weft, peers(), &goals));
        }
        results.rows.push(row("run", 100.0, vec![timed(PYTORCH, 200.0)], &[(PYTORCH, 0.75)]));
        let report = serde_json::json!({"load_ms": 220.0, "loaded_bytes": 37e6, "weights_bytes": 4.4e9});
        results.opened.push(Opened::of("Llama 1.1B", false, &[report]));
        assert!(!results.met());
        insta::assert_snapshot!(results.text() + &results.markdown());
    }

    #[test]
    fn rows_stand_beside_the_machines_peak() {
        let mut results = Results::new(2, 5);
        results.rows.push(row("run", 100.0, vec![], &[]));
        assert!(!results.text().contains("of peak"));
        let (least, peak) = (Least { flops: 9e9, bytes: 1e6 }, Peak { flops: 1.8e11, bytes: 1e10 });
        results.rows.push(Row { least: Some(least), peak: Some(peak), ..row("run", 100.0, vec![], &[]) });
        let text = results.text();
        assert!(text.contains("  0.50") && text.contains("at most 180 GFLOP/s and 10.0 GB/s here"), "{text}");
    }

    #[test]
    fn what_was_not_measured_is_not_met() {
        assert!(!Opened::of("Llama 1.1B", false, &[]).met());
        assert!(!row("run", f64::NAN, vec![timed(PYTORCH, 1.0)], &[(PYTORCH, 0.75)]).met());
    }

    #[test]
    fn a_figure_is_of_a_measure_and_a_contender() {
        let mut results = Results::new(2, 5);
        results.rows.push(row("token", 70.0, vec![timed(PYTORCH, 200.0)], &[]));
        let all = results.figures();
        let of = |index: usize| (all[index]["contender"].as_str(), all[index]["ratio"].as_f64());
        assert_eq!([of(0), of(1)], [(Some("weft"), None), (Some(PYTORCH), Some(0.35))]);
        assert!(!figures().unwrap().is_empty(), "of the committed ones");
    }
}
