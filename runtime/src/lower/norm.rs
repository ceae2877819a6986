//! Normalisation over the last axis; that by the root of mean squares ONNX has from operator set 23 on.

use half::f16;

use super::RmsNormForm;
use super::emitter::Emitter;
use crate::graph::Dtype;
use crate::onnx::{self, Attribute};

impl Emitter<'_> {
    /// `(x − mean(x)) / √(variance(x) + ε) · scale + shift`, over the last axis.
    pub(super) fn layer_norm(&mut self, operands: &[&str], epsilon: f64) -> String {
        // Engines compute with it in the type of the values: as 0 in half precision, it would make no number of a row
        // of zeros.
        let least = if self.rules.float == Dtype::F16 { f16::MIN_POSITIVE_SUBNORMAL.to_f64() } else { 0.0 };
        let epsilon = epsilon.max(least) as f32;
        let attributes = vec![Attribute::int("axis", -1), Attribute::float("epsilon", epsilon)];
        self.last("LayerNormalization", operands, attributes)
    }

    /// `x / √(mean(x²) + ε) · scale`, over the last axis.
    pub(super) fn rms_norm(&mut self, operands: &[&str], epsilon: f64) -> String {
        let operator = match self.rules.rms_norm {
            RmsNormForm::Standard => Some("RMSNormalization"),
            RmsNormForm::Contrib => Some("SimplifiedLayerNormalization"),
            RmsNormForm::Plain => None,
        };
        if let Some(operator) = operator {
            let attributes = vec![Attribute::int("axis", -1), Attribute::float("epsilon", epsilon as f32)];
            return self.last(operator, operands, attributes);
        }
        let [x, scale] = [operands[0], operands[1]];
        // Squares of ordinary hidden states do not fit into half precision.
        let half = self.rules.float == Dtype::F16;
        let to = |dtype| vec![Attribute::int("to", i64::from(onnx::data_type(dtype)))];
        let wide = if half { self.part("Cast", &[x], to(Dtype::F32)) } else { x.to_owned() };
        let squares = self.part("Mul", &[&wide, &wide], vec![]);
        let last = self.integers(&[-1]);
        let mean = self.part("ReduceMean", &[&squares, &last], vec![Attribute::int("keepdims", 1)]);
        let epsilon = if half {
            self.literal(Dtype::F32, &[], (epsilon as f32).to_le_bytes().to_vec())
        } else {
            self.number(epsilon as f32)
        };
        let sum = self.part("Add", &[&mean, &epsilon], vec![]);
        let root = self.part("Sqrt", &[&sum], vec![]);
        let normed = self.part("Div", &[&wide, &root], vec![]);
        let normed = if half { self.part("Cast", &[&normed], to(Dtype::F16)) } else { normed };
        self.last("Mul", &[&normed, scale], vec![])
    }
}
