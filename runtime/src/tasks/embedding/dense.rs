//! Dense layer after the pooling (`sentence_transformers.models.Dense`).
//!
//! Reference: `sentence_transformers.models.Dense`.

use std::path::Path;

use half::{bf16, f16};
use ndarray::{Array1, Array2};
use safetensors::{Dtype, SafeTensors};
use serde_json::Value as Json;

use crate::hub::Checkpoint;
use crate::{Error, Result};

/// `activation(weight · x + bias)`.
#[derive(Debug)]
pub(super) struct Dense {
    /// `[out_features, in_features]`.
    weight: Array2<f32>,
    bias: Option<Array1<f32>>,
    activation: Activation,
}

#[derive(Clone, Copy, Debug)]
enum Activation {
    Identity,
    Tanh,
    Relu,
    Sigmoid,
}

impl Dense {
    pub(super) fn read(checkpoint: &Checkpoint, path: &str, config: &Json) -> Result<Self> {
        let file = format!("{path}/model.safetensors");
        if checkpoint.path(&file)?.is_none()
            && checkpoint.path(&format!("{path}/pytorch_model.bin"))?.is_some()
        {
            return Err(Error::weights(
                checkpoint.dir().join(path),
                "has pytorch_model.bin, which runs code when it is opened, and no model.safetensors",
                "save the checkpoint again with a current sentence-transformers",
            ));
        }
        let file = checkpoint.require(&file)?;
        let settings = checkpoint.dir().join(path).join("config.json");
        let unfit =
            |problem: String| Error::config(&settings, problem, "only plain dense layers are known here");
        if config["use_residual"].as_bool() == Some(true) {
            return Err(unfit("`use_residual` is true".into()));
        }
        let activation = match config["activation_function"].as_str() {
            None => Activation::Tanh,
            Some(name) => {
                activation(name).ok_or_else(|| unfit(format!("`activation_function` is {name}")))?
            }
        };
        let bytes = crate::files::read(&file).map_err(|e| Error::io(&file, e))?;
        let tensors = SafeTensors::deserialize(&bytes).map_err(|e| damaged(&file, &e.to_string()))?;
        let (shape, weight) = tensor(&file, &tensors, "linear.weight")?;
        let [rows, columns] = shape[..] else {
            return Err(damaged(&file, &format!("linear.weight has shape {shape:?}, not two axes")));
        };
        let weight =
            Array2::from_shape_vec((rows, columns), weight).map_err(|e| damaged(&file, &e.to_string()))?;
        let bias = match config["bias"].as_bool() {
            Some(false) => None,
            _ => Some(Array1::from(tensor(&file, &tensors, "linear.bias")?.1)),
        };
        if let Some(bias) = bias.as_ref().filter(|bias| bias.len() != rows) {
            return Err(damaged(&file, &format!("linear.bias has {} values for {rows} rows", bias.len())));
        }
        Ok(Self { weight, bias, activation })
    }

    pub(super) fn apply(&self, x: &Array1<f32>) -> Result<Array1<f32>> {
        if x.len() != self.weight.ncols() {
            let problem =
                format!("a dense layer takes {} numbers, the pooling gives {}", self.weight.ncols(), x.len());
            return Err(Error::input(
                "sentence_embedding",
                problem,
                "the module files are of different checkpoints",
            ));
        }
        let mut y = self.weight.dot(x);
        if let Some(bias) = &self.bias {
            y += bias;
        }
        y.mapv_inplace(|x| self.activation.apply(x));
        Ok(y)
    }
}

impl Activation {
    fn apply(self, x: f32) -> f32 {
        match self {
            Self::Identity => x,
            Self::Tanh => x.tanh(),
            Self::Relu => x.max(0.0),
            Self::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        }
    }
}

/// By the class's name, whatever package it is in.
fn activation(name: &str) -> Option<Activation> {
    match name.rsplit('.').next()? {
        "Identity" => Some(Activation::Identity),
        "Tanh" => Some(Activation::Tanh),
        "ReLU" => Some(Activation::Relu),
        "Sigmoid" => Some(Activation::Sigmoid),
        _ => None,
    }
}

fn tensor(file: &Path, tensors: &SafeTensors<'_>, name: &str) -> Result<(Vec<usize>, Vec<f32>)> {
    let view = tensors.tensor(name).map_err(|e| damaged(file, &format!("{name}: {e}")))?;
    let pairs = || view.data().chunks_exact(2).map(|b| [b[0], b[1]]);
    let values = match view.dtype() {
        Dtype::F32 => {
            view.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
        }
        Dtype::F16 => pairs().map(|b| f16::from_le_bytes(b).to_f32()).collect(),
        Dtype::BF16 => pairs().map(|b| bf16::from_le_bytes(b).to_f32()).collect(),
        other => return Err(damaged(file, &format!("{name} is {other:?}, not a floating-point type"))),
    };
    Ok((view.shape().to_vec(), values))
}

fn damaged(file: &Path, problem: &str) -> Error {
    Error::weights(file, problem, "fetch the file again")
}

#[cfg(test)]
mod tests {
    use ndarray::array;
    use safetensors::tensor::TensorView;
    use serde_json::json;

    use super::*;

    fn bytes(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    #[test]
    fn applies_weights_and_activation() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("2_Dense")).unwrap();
        let (weight, bias) = (bytes(&[1.0, 0.0, 1.0, 1.0]), bytes(&[0.5, -9.0]));
        let tensors = [
            ("linear.weight", TensorView::new(Dtype::F32, vec![2, 2], &weight).unwrap()),
            ("linear.bias", TensorView::new(Dtype::F32, vec![2], &bias).unwrap()),
        ];
        let file = folder.path().join("2_Dense/model.safetensors");
        safetensors::serialize_to_file(tensors, None, &file).unwrap();
        let checkpoint = Checkpoint::open(folder.path().to_str().unwrap()).unwrap();
        let relu = json!({"activation_function": "torch.nn.modules.activation.ReLU"});
        let dense = Dense::read(&checkpoint, "2_Dense", &relu).unwrap();
        assert_eq!(dense.apply(&array![1.0, 2.0]).unwrap(), array![1.5, 0.0]);
        let text = dense.apply(&array![1.0]).unwrap_err().to_string();
        assert!(text.contains("takes 2 numbers"), "{text}");
        let odd = json!({"activation_function": "mine.Odd"});
        let text = Dense::read(&checkpoint, "2_Dense", &odd).unwrap_err().to_string();
        assert!(text.contains("mine.Odd"), "{text}");
    }
}
