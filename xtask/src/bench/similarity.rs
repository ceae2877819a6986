//! `cargo xtask bench --similarity`: how near the similarities of sentences stay to float32's, of a real model by the precision
//! of its weights and by how these were quantized.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::json;
use weft_generator::spec::hardware::Hardware;

use super::Args;
use crate::binaries::{self, Profile};
use crate::demo::{self, Model, similarities};
use crate::setup;
use crate::table::Table;
use crate::terminal::{note, say};
use crate::workspace::{self, root};

/// Sentences whose similarities are compared, and others by which weights are calibrated.
const SENTENCES: usize = 160;
const CALIBRATION: usize = 128;

/// Precisions of weights that are quantized as the checkpoint opens.
const PRECISIONS: [&str; 5] = ["int8", "int4", "int4-mixed", "int3", "int2"];

/// Checkpoints that are written: bits, group, whether symmetric, whether calibrated.
const WRITTEN: [(&str, &str, bool, bool); 6] = [
    ("8", "32", true, false),
    ("4", "32", true, false),
    ("4", "32", true, true),
    ("4", "32", false, true),
    ("4", "16", true, true),
    ("4", "128", true, true),
];

/// The correlation that each is to reach: of 8 bits, and of 4 that are calibrated.
const LIMITS: [f64; 2] = [0.999, 0.99];

/// Runs the verb; whether 8 bits and 4 calibrated bits in groups of 32 are as near as they are to be.
pub fn run(args: &Args) -> Result<bool> {
    setup::ensure(&[Hardware::Cpu])?;
    let checkpoint = setup::ensure_package(demo::CHECKPOINT)?;
    let member = workspace::select(root(), &[], &[demo::MODEL.into()])?;
    let member = member.first().context("the crate is missing: run `cargo xtask generate`")?;
    note(format!("building {}", member.package));
    let binary = binaries::build_one(member, Profile::Dev)?;
    let (compared, others) = apart(&sentences()?)?;
    let work = tempfile::tempdir().context("making a folder")?;
    let texts = work.path().join("texts.txt");
    fs::write(&texts, others.join("\n"))?;
    let vectors = |checkpoint: &Path, precision: &str| {
        let sentences: Vec<&str> = compared.iter().map(String::as_str).collect();
        let embedded = Model::start(&binary, checkpoint, &["--precision", precision])?.embed(&sentences)?;
        anyhow::Ok(pairs(&similarities(&embedded.vectors)))
    };
    let want = vectors(&checkpoint, "f32")?;
    let mut rows = vec![];
    for precision in PRECISIONS {
        note(precision);
        rows.push((
            format!("{precision}, made when it opens"),
            correlation(&want, &vectors(&checkpoint, precision)?),
        ));
    }
    for (index, (bits, group, symmetric, calibrated)) in WRITTEN.into_iter().enumerate() {
        let symmetry = if symmetric { "symmetric" } else { "zero points" };
        let how = if calibrated { "GPTQ" } else { "to nearest" };
        let name = format!("{bits} bits, groups of {group}, {symmetry}, {how}");
        note(&name);
        let out = work.path().join(index.to_string());
        let mut command = binaries::command(&binary);
        command.arg("--quantize").arg(&checkpoint).arg(&out).args([bits, group, &symmetric.to_string()]);
        if calibrated {
            command.arg("--calibrate").arg(&texts);
        }
        if !command.stdin(Stdio::null()).stdout(Stdio::null()).status()?.success() {
            bail!("{name}: the checkpoint could not be written: what is wrong is above");
        }
        rows.push((name, correlation(&want, &vectors(&out, "f32")?)));
    }
    let kept = rows.iter().all(|(name, got)| match name {
        name if name.starts_with("int8") || name.starts_with('8') => *got >= LIMITS[0],
        name if name.contains("32, symmetric, GPTQ") => *got >= LIMITS[1],
        _ => true,
    });
    say(match args.json {
        true => json!({ "pairs": want.len(), "calibration": others.len(), "rows": rows, "kept": kept })
            .to_string(),
        false => text(&rows, want.len(), others.len()),
    })?;
    Ok(kept)
}

fn text(rows: &[(String, f64)], pairs: usize, calibration: usize) -> String {
    let mut table = Table::new(["weights", "correlation"]);
    for (name, correlation) in rows {
        table.row([name.clone(), format!("{correlation:.4}")]);
    }
    format!(
        "Correlation of the similarities of {pairs} pairs of sentences of these documents with float32's, \
         all-MiniLM-L6-v2 on the CPU; GPTQ by {calibration} other sentences.\n\n{}",
        table.text()
    )
}

/// The sentences of this repository's documents, each once.
fn sentences() -> Result<Vec<String>> {
    let mut files = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    let docs = fs::read_dir(root().join("docs"))?.collect::<Result<Vec<_>, _>>()?;
    let own: BTreeSet<PathBuf> = docs.iter().map(fs::DirEntry::path).collect();
    // What reports draw changes with each run of theirs.
    let drawn = ["results.md", "architectures.md"];
    let written = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".md") && !drawn.contains(&&*name)
    };
    files.extend(own.into_iter().filter(written));
    let mut all = vec![];
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        all.extend(of_document(&text));
    }
    let mut seen = BTreeSet::new();
    all.retain(|sentence| seen.insert(sentence.clone()));
    Ok(all)
}

/// Sentences of 30 to 300 letters of a document's paragraphs, without its code, headings and tables.
fn of_document(text: &str) -> Vec<String> {
    let prose = text.split("```").step_by(2).flat_map(|part| part.split("\n\n"));
    let paragraphs = prose.filter(|paragraph| !paragraph.trim_start().starts_with(['#', '|', '!']));
    let mut sentences = vec![];
    for paragraph in paragraphs {
        let words = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        sentences.extend(words.split_inclusive(". ").map(|sentence| sentence.trim().to_owned()));
    }
    sentences.retain(|sentence| (30..300).contains(&sentence.len()));
    sentences
}

/// Sentences to compare and others to calibrate by, both from all documents.
fn apart(sentences: &[String]) -> Result<(Vec<String>, Vec<String>)> {
    if sentences.len() < SENTENCES + CALIBRATION {
        bail!("the documents have {} sentences, and {} are needed", sentences.len(), SENTENCES + CALIBRATION);
    }
    let spread = |all: &[String], count: usize| -> BTreeSet<usize> {
        (0..count).map(|index| index * all.len() / count).collect()
    };
    let compared = spread(sentences, SENTENCES);
    let others: Vec<String> = (0..sentences.len())
        .filter(|index| !compared.contains(index))
        .map(|index| sentences[index].clone())
        .collect();
    let chosen = spread(&others, CALIBRATION);
    let of =
        |all: &[String], chosen: BTreeSet<usize>| chosen.iter().map(|index| all[*index].clone()).collect();
    Ok((of(sentences, compared), of(&others, chosen)))
}

/// The similarities of all pairs.
fn pairs(similarities: &[Vec<f64>]) -> Vec<f64> {
    similarities.iter().enumerate().flat_map(|(index, row)| row[index + 1..].to_vec()).collect()
}

/// Pearson's correlation.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    let (middle_a, middle_b) = (mean(a), mean(b));
    let (mut both, mut of_a, mut of_b) = (0.0, 0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        both += (a - middle_a) * (b - middle_b);
        of_a += (a - middle_a).powi(2);
        of_b += (b - middle_b).powi(2);
    }
    both / (of_a * of_b).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_prose_and_none_is_on_both_sides() {
        let text = "# A heading that is long enough to be a sentence.\n\nThe first sentence of\nthe text is here. Short. \
                    The second one of them is here.\n\n```rust\nlet code = \"is no sentence of any kind\";\n```\n\n| a | b |";
        let found = of_document(text);
        assert_eq!(found, ["The first sentence of the text is here.", "The second one of them is here."]);
        let all: Vec<String> = (0..400).map(|index| index.to_string()).collect();
        let (compared, others) = apart(&all).unwrap();
        assert_eq!((compared.len(), others.len()), (SENTENCES, CALIBRATION));
        assert!(others.iter().all(|sentence| !compared.contains(sentence)));
        assert!(apart(&all[..200]).is_err());
    }

    #[test]
    fn correlations_are_of_what_differs_from_the_mean() {
        assert!((correlation(&[1.0, 2.0, 3.0], &[5.0, 7.0, 9.0]) - 1.0).abs() < 1e-12);
        assert!((correlation(&[1.0, 2.0, 3.0], &[1.0, 3.0, 2.0]) - 0.5).abs() < 1e-12);
        assert_eq!(pairs(&[vec![1.0, 2.0, 3.0], vec![2.0, 1.0, 4.0], vec![3.0, 4.0, 1.0]]), [2.0, 3.0, 4.0]);
    }
}
