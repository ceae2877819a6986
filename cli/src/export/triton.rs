//! A model repository of the Triton Inference Server: `NAME/config.pbtxt` and `NAME/1/model.onnx`.

use std::fmt::Write;
use std::fs;

use weft::Result;
use weft::onnx::{Graph, ValueInfo, dimension};

use super::seq2seq::Form;
use super::storage::Stored;
use super::{Export, create, graphs, io};
use crate::terminal::bad_input;

/// Writes the repository, whose folder gives the model's name; an encoder-decoder is two models, `NAME_encoder` and
/// `NAME_decoder`.
pub fn write(export: &Export<'_>, name: &str) -> Result<Vec<Stored>> {
    let mut all = vec![];
    for (stem, lowered) in graphs::lowered(export, export.dtypes[0], Form::Cached)? {
        let name = if stem == graphs::MODEL { name.to_owned() } else { format!("{name}_{stem}") };
        let folder = export.out.join(&name).join("1");
        create(&folder)?;
        let described = lowered.model.graph.as_ref().map(|graph| describe(&name, graph)).transpose()?;
        let stored = graphs::write(lowered, &folder, graphs::MODEL, export.storage)?;
        let path = export.out.join(&name).join("config.pbtxt");
        fs::write(&path, described.unwrap_or_default()).map_err(|source| io(&path, source))?;
        let inside = |file: Stored| Stored { path: format!("{name}/1/{}", file.path), ..file };
        all.extend(stored.into_iter().map(inside));
    }
    Ok(all)
}

/// `config.pbtxt` (`inference.ModelConfig` in text format): every axis is given whole, so that Triton adds none for batches.
fn describe(name: &str, graph: &Graph) -> Result<String> {
    let mut text = format!("name: {name:?}\nplatform: \"onnxruntime_onnx\"\nmax_batch_size: 0\n");
    for (list, values) in [("input", &graph.input), ("output", &graph.output)] {
        for value in values {
            let dims: Vec<_> = lengths(value)
                .unwrap_or_default()
                .iter()
                .map(|length| match length {
                    dimension::Value::Number(number) => number.to_string(),
                    dimension::Value::Parameter(_) => "-1".to_owned(),
                })
                .collect();
            let _ = write!(
                text,
                "{list} {{\n  name: {:?}\n  data_type: {}\n  dims: [ {} ]\n}}\n",
                value.name,
                data_type(value)?,
                dims.join(", ")
            );
        }
    }
    Ok(text)
}

/// Triton's name for a value's element type.
fn data_type(value: &ValueInfo) -> Result<&'static str> {
    let number = value.kind.as_ref().and_then(|kind| kind.tensor.as_ref()).map(|tensor| tensor.elem_type);
    Ok(match number {
        Some(1) => "TYPE_FP32",
        Some(6) => "TYPE_INT32",
        Some(7) => "TYPE_INT64",
        Some(9) => "TYPE_BOOL",
        Some(10) => "TYPE_FP16",
        _ => {
            let help = "export it in fp32";
            return Err(bad_input(&value.name, "has an element type that Triton does not take", help));
        }
    })
}

/// The lengths of a value's axes.
pub fn lengths(value: &ValueInfo) -> Option<Vec<dimension::Value>> {
    let shape = value.kind.as_ref()?.tensor.as_ref()?.shape.as_ref()?;
    shape.dim.iter().map(|length| length.value.clone()).collect()
}

#[cfg(test)]
mod tests {
    use weft::{Dim, Dtype};

    use super::*;

    #[test]
    fn axes_of_any_length_are_minus_one() {
        let graph = Graph {
            input: vec![ValueInfo::new(
                "input_ids",
                Dtype::I64,
                &[Dim::symbol("batch"), Dim::symbol("sequence")],
            )],
            output: vec![ValueInfo::new("x", Dtype::F32, &[Dim::symbol("batch"), Dim::Fixed(32)])],
            ..Graph::default()
        };
        let text = describe("bert", &graph).unwrap();
        assert!(text.starts_with("name: \"bert\"\nplatform: \"onnxruntime_onnx\"\nmax_batch_size: 0\n"));
        assert!(
            text.contains("  name: \"input_ids\"\n  data_type: TYPE_INT64\n  dims: [ -1, -1 ]\n"),
            "{text}"
        );
        assert!(
            text.contains("output {\n  name: \"x\"\n  data_type: TYPE_FP32\n  dims: [ -1, 32 ]\n"),
            "{text}"
        );
    }
}
