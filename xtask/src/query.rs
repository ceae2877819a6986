//! `cargo xtask query`: SQL over the records of test runs, by the pinned DuckDB command line.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::bench;
use crate::record;
use crate::report::sources;
use crate::setup;
use crate::terminal::{Usage, note};

/// Ask the records of test runs in SQL.
///
/// `results` is one row for each case that was run; `outputs` one for each output that was compared: of committed records
/// the worst of a case, and those that are not close enough; `bench` one for each measure and contender of `docs/speed.md`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  cargo xtask query \"SELECT model, backend, evidence, count(*) FROM results GROUP BY ALL ORDER BY ALL\"
  cargo xtask query \"SELECT model, \\\"case\\\", name, max_rel FROM outputs ORDER BY max_rel DESC LIMIT 10\"
  cargo xtask query \"SELECT model, measured, contender, median_ms, ratio FROM bench\"
  cargo xtask query --format csv \"SELECT * FROM results\" gpu-machine/results.jsonl")]
pub struct Args {
    /// The query.
    sql: String,
    /// How to print the rows.
    #[arg(long, value_parser = ["table", "csv", "json", "markdown"], default_value = "table")]
    format: String,
    /// Files or folders of records [default: results/ and the local runs of `cargo xtask test`].
    #[arg(value_name = "RESULTS")]
    results: Vec<PathBuf>,
}

/// Runs the verb; whether DuckDB accepted the query.
pub fn run(args: &Args) -> Result<bool> {
    let records = record::read_all(&sources(&args.results)?)?;
    if records.is_empty() {
        return Err(Usage("no records yet: run `cargo xtask test` first".into()).into());
    }
    // Compact files and those of runs as one, which DuckDB reads by its columns.
    let file = tempfile::Builder::new().suffix(".jsonl").tempfile().context("creating a file for DuckDB")?;
    fs::write(file.path(), record::lines(&records)?).context("writing a file for DuckDB")?;
    let figures: Vec<String> = bench::figures()?.iter().map(Value::to_string).collect();
    let bench = tempfile::Builder::new().suffix(".jsonl").tempfile().context("creating a file for DuckDB")?;
    fs::write(bench.path(), figures.join("\n")).context("writing a file for DuckDB")?;
    let duckdb = setup::ensure_package("duckdb-cli")?;
    let mode = if args.format == "table" { "-box".to_owned() } else { format!("-{}", args.format) };
    let status = Command::new(&duckdb)
        .args(["-batch", "-bail", &mode, "-cmd", &views(file.path(), bench.path()), "-c", &args.sql])
        .status()
        .with_context(|| format!("starting {}", duckdb.display()))?;
    if !status.success() {
        note("the tables are `results`, `outputs` and `bench`; `DESCRIBE results` lists the columns");
    }
    Ok(status.success())
}

/// The tables; every column has its type whatever the first records hold.
fn views(file: &Path, bench: &Path) -> String {
    let quoted = |path: &Path| path.to_string_lossy().replace('\'', "''");
    let (file, bench) = (quoted(file), quoted(bench));
    format!(
        "CREATE TEMP VIEW results AS SELECT * REPLACE (to_timestamp(try_cast(\"time\" AS DOUBLE)) AS \"time\") \
         FROM read_json('{file}', format='newline_delimited', columns={{{COLUMNS}}}); \
         CREATE TEMP VIEW outputs AS SELECT run, model, \"case\", backend, precision, evidence, \
         unnest(outputs, recursive := true) FROM results; \
         CREATE TEMP VIEW bench AS SELECT * FROM read_json('{bench}', format='newline_delimited', \
         columns={{{FIGURES}}});"
    )
}

const FIGURES: &str = "model: 'VARCHAR', measured: 'VARCHAR', measure: 'VARCHAR', contender: 'VARCHAR', \
    median_ms: 'DOUBLE', rounds: 'BIGINT', ratio: 'DOUBLE', of_peak: 'DOUBLE', machine: 'VARCHAR', threads: 'BIGINT'";

const COLUMNS: &str = "run: 'VARCHAR', \"time\": 'VARCHAR', model: 'VARCHAR', \"case\": 'VARCHAR', class: 'VARCHAR', \
    kind: 'VARCHAR', backend: 'VARCHAR', precision: 'VARCHAR', evidence: 'VARCHAR', passed: 'BOOLEAN', \
    expected_failure: 'VARCHAR', reason: 'VARCHAR', outputs: 'STRUCT(name VARCHAR, shape BIGINT[], max_abs DOUBLE, \
    max_rel DOUBLE, tolerance DOUBLE, passed BOOLEAN, problem VARCHAR)[]', placement: 'MAP(VARCHAR, BIGINT)', \
    ms: 'MAP(VARCHAR, DOUBLE)', memory_bytes: 'BIGINT', versions: 'MAP(VARCHAR, VARCHAR)', \
    machine: 'MAP(VARCHAR, VARCHAR)'";
