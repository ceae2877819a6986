//! Weights that files hold as rows of one tensor, or as several tensors.

use std::collections::HashMap;
use std::path::Path;

use safetensors::Dtype as Stored;
use safetensors::tensor::{TensorView, serialize_to_file};

use super::*;

const NAMES: Names = Names {
    base_model_prefix: "model",
    legacy_suffixes: &[],
    key_mapping: &[],
    fused_weights: &[("qkv", &["q", "k", "v"]), ("table.first + table.second", &["embed.weight"])],
    ignore_unexpected: &[],
};

/// A checkpoint of tensors, whose elements count up from 0, in single precision or by a type of two bytes.
fn checkpoint(folder: &Path, tensors: &[(&str, [usize; 2], Stored)]) -> Weights {
    let bytes = |[rows, columns]: [usize; 2], stored: Stored| -> Vec<u8> {
        let counted = 0..(rows * columns) as u16;
        match stored {
            Stored::F32 => counted.flat_map(|x| f32::from(x).to_le_bytes()).collect(),
            _ => counted.flat_map(|_| [0; 2]).collect(),
        }
    };
    let all: Vec<_> = tensors.iter().map(|(_, shape, stored)| bytes(*shape, *stored)).collect();
    let views: HashMap<&str, TensorView<'_>> = tensors
        .iter()
        .zip(&all)
        .map(|((name, shape, stored), bytes)| {
            (*name, TensorView::new(*stored, shape.to_vec(), bytes).unwrap())
        })
        .collect();
    serialize_to_file(views, None, &folder.join("model.safetensors")).unwrap();
    std::fs::write(folder.join("config.json"), "{}").unwrap();
    Weights::open(&Checkpoint::open(folder.to_str().unwrap()).unwrap()).unwrap()
}

fn numbers(weight: &WeightData) -> Vec<f32> {
    weight.dtype.decoded(&weight.bytes.read().unwrap())
}

#[test]
fn rows_of_a_fused_tensor_are_as_many_as_each_weight_has() {
    let folder = tempfile::tempdir().unwrap();
    let weights = checkpoint(folder.path(), &[("model.a.qkv.weight", [8, 1], Stored::F32)]);
    let wanted = [("a.q.weight", 4), ("a.k.weight", 2), ("a.v.weight", 2)]
        .map(|(name, rows)| Weight::new(name, &[rows, 1]));
    let found = weights.locate(&wanted, &NAMES).unwrap();
    let found: Vec<_> = found.iter().map(numbers).collect();
    assert_eq!(found, [vec![0.0, 1.0, 2.0, 3.0], vec![4.0, 5.0], vec![6.0, 7.0]]);
    let wanted = ["a.q.weight", "a.k.weight"].map(|name| Weight::new(name, &[2, 1]));
    let error = weights.locate(&wanted, &NAMES).unwrap_err().to_string();
    assert!(error.contains("`a.q.weight` [2, 1] is missing"), "{error}");
}

#[test]
fn rows_of_several_tensors_are_one_weight() {
    let wanted = [Weight::new("model.embed.weight", &[5, 2])];
    let tensors = [("table.first", [3, 2], Stored::F32), ("table.second", [2, 2], Stored::F32)];
    for between in [None, Some(("table.other", [1, 2], Stored::F32))] {
        let folder = tempfile::tempdir().unwrap();
        let stored: Vec<_> =
            tensors[..1].iter().copied().chain(between).chain(tensors[1..].to_vec()).collect();
        let weights = checkpoint(folder.path(), &stored);
        let found = weights.locate(&wanted, &NAMES).unwrap();
        assert_eq!(numbers(&found[0]), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 0.0, 1.0, 2.0, 3.0]);
        // In the file both lie one behind the other, unless a third lies between.
        assert_eq!(matches!(found[0].bytes, Bytes::File { .. }), between.is_none());
        let survey = weights.survey(&wanted, &[], &NAMES);
        let unused: &[&str] = if between.is_some() { &["table.other"] } else { &[] };
        assert_eq!(
            (survey.missing, survey.unused),
            (vec![], unused.iter().map(|x| (*x).to_owned()).collect())
        );
        assert_eq!(weights.places(&wanted, &NAMES).len(), 2);
    }
}

#[test]
fn tensors_of_one_weight_are_of_one_type_and_fit() {
    let wanted = [Weight::new("embed.weight", &[5, 2])];
    for (second, message) in [
        (([2, 2], Stored::BF16), "`table.second` is bf16, but `table.first`"),
        (([3, 2], Stored::F32), "`embed.weight` [5, 2] is missing"),
        (([2, 3], Stored::F32), "`embed.weight` [5, 2] is missing"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let stored = [("table.first", [3, 2], Stored::F32), ("table.second", second.0, second.1)];
        let error = checkpoint(folder.path(), &stored).locate(&wanted, &NAMES).unwrap_err().to_string();
        assert!(error.to_lowercase().contains(message), "{error}");
    }
}
