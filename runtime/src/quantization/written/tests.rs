//! What is written is read back, by the same rules as any published checkpoint.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};

use super::*;
use crate::graph::Weight;
use crate::weights::{Bytes, Names, Weights, rule};

const LINEAR: &str = "model.layers.0.mlp.up_proj.weight";
const KEPT: &str = "model.embed_tokens.weight";

/// A checkpoint of two weights, with a tokenizer and a folder of a module.
fn checkpoint(folder: &Path, spoil: Option<f32>) -> Checkpoint {
    let mut values = rule::generate(LINEAR, &[40, 64]);
    if let Some(value) = spoil {
        values[7] = value;
    }
    let kept = rule::generate(KEPT, &[8, 64]);
    let bytes: Vec<u8> = values.iter().chain(&kept).flat_map(|x| x.to_le_bytes()).collect();
    let header = json!({
        LINEAR: {"dtype": "F32", "shape": [40, 64], "data_offsets": [0, 40 * 64 * 4]},
        KEPT: {"dtype": "F32", "shape": [8, 64], "data_offsets": [40 * 64 * 4, 48 * 64 * 4]},
    });
    let header = header.to_string();
    let file = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &bytes].concat();
    fs::create_dir_all(folder.join("1_Pooling")).unwrap();
    fs::write(folder.join("model.safetensors"), file).unwrap();
    fs::write(folder.join("config.json"), r#"{"model_type": "llama"}"#).unwrap();
    fs::write(folder.join("tokenizer.json"), "{}").unwrap();
    fs::write(folder.join("1_Pooling/config.json"), "{}").unwrap();
    Checkpoint::open(folder.to_str().unwrap()).unwrap()
}

fn linear() -> BTreeSet<String> {
    BTreeSet::from([LINEAR.to_owned()])
}

/// Rounded to nearest.
fn write(checkpoint: &Checkpoint, linear: &BTreeSet<String>, recipe: Recipe, out: &Path) -> Result<Written> {
    Writing::new(checkpoint, linear, recipe, out)?.finish()
}

#[test]
fn what_is_written_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let source = checkpoint(&folder.path().join("source"), None);
    let want = rule::generate(LINEAR, &[40, 64]);
    for (bits, symmetric, most) in [(4, true, 0.16), (4, false, 0.16), (8, true, 0.01), (8, false, 0.01)] {
        let out = folder.path().join(format!("{bits}-{symmetric}"));
        let written = write(&source, &linear(), Recipe { bits, group: 32, symmetric }, &out).unwrap();
        assert_eq!((written.quantized, written.kept), (1, 1));
        assert!(written.after < written.before / 2);
        assert!(out.join("tokenizer.json").is_file() && out.join("1_Pooling/config.json").is_file());
        let config: Json = serde_json::from_slice(&fs::read(out.join("config.json")).unwrap()).unwrap();
        assert_eq!(config["quantization_config"]["config_groups"]["group_0"]["weights"]["num_bits"], bits);
        let files = Files::open(&Checkpoint::open(out.to_str().unwrap()).unwrap()).unwrap();
        let wanted = [Weight::new(LINEAR, &[40, 64]), Weight::new(KEPT, &[8, 64])];
        let found = Weights::Files(files).locate(&wanted, &Names::default()).unwrap();
        let Bytes::Quantized(blocks) = &found[0].bytes else { panic!("{:?}", found[0]) };
        assert_eq!((blocks.bits, blocks.group), (bits, 32));
        let got = blocks.dequantize().unwrap();
        let worst = got.iter().zip(&want).map(|(got, want)| (got - want).abs()).fold(0.0, f32::max);
        let size = want.iter().map(|x| x.abs()).fold(0.0, f32::max);
        assert!(worst / size < most, "{bits} {symmetric}: {worst} of {size}");
    }
}

#[test]
fn nothing_is_left_of_what_fails() {
    let folder = tempfile::tempdir().unwrap();
    let source = checkpoint(&folder.path().join("source"), Some(f32::NAN));
    let out = folder.path().join("out");
    let said = |recipe| write(&source, &linear(), recipe, &out).unwrap_err().to_string();
    assert!(said(Recipe::default()).contains(LINEAR));
    assert!(said(Recipe { bits: 3, ..Recipe::default() }).contains("with 3 bits"));
    assert!(said(Recipe { group: 128, ..Recipe::default() }).contains("no linear layer"));
    let entries: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
    fs::create_dir(&out).unwrap();
    fs::write(out.join("precious"), "").unwrap();
    assert!(said(Recipe::default()).contains("is there already"));
    let source = checkpoint(&folder.path().join("source"), None);
    let made = folder.path().join("made");
    write(&source, &linear(), Recipe::default(), &made).unwrap();
    let again = Checkpoint::open(made.to_str().unwrap()).unwrap();
    let said =
        write(&again, &linear(), Recipe::default(), &folder.path().join("again")).unwrap_err().to_string();
    assert!(said.contains("is quantized already"), "{said}");
}
