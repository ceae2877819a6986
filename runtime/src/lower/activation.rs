//! The forms of activation functions.

use super::GeluForm;
use super::emitter::Emitter;
use crate::nn::Activation;
use crate::onnx::Attribute;

impl Emitter<'_> {
    /// An activation function as the operation's result.
    pub(super) fn activation(&mut self, act: Activation, x: &str) -> String {
        match act {
            Activation::Gelu if self.rules.gelu == GeluForm::Standard => self.last("Gelu", &[x], vec![]),
            Activation::GeluNew if self.rules.gelu == GeluForm::Standard => {
                self.last("Gelu", &[x], vec![Attribute::string("approximate", "tanh")])
            }
            Activation::Gelu if self.rules.gelu == GeluForm::Contrib => {
                self.last_in("com.microsoft", "Gelu", &[x], vec![])
            }
            Activation::GeluNew if self.rules.gelu == GeluForm::Contrib => {
                self.last_in("com.microsoft", "FastGelu", &[x], vec![])
            }
            Activation::Gelu => self.gelu_by_erf(x),
            Activation::GeluNew => self.gelu_by_tanh(x),
            Activation::QuickGelu => {
                let factor = self.number(1.702);
                let scaled = self.part("Mul", &[x, &factor], vec![]);
                let gate = self.part("Sigmoid", &[&scaled], vec![]);
                self.last("Mul", &[x, &gate], vec![])
            }
            Activation::Relu => self.last("Relu", &[x], vec![]),
            Activation::Relu2 => {
                let positive = self.part("Relu", &[x], vec![]);
                self.last("Mul", &[&positive, &positive], vec![])
            }
            Activation::Relu6 => {
                let (zero, six) = (self.number(0.0), self.number(6.0));
                self.last("Clip", &[x, &zero, &six], vec![])
            }
            Activation::Silu => {
                let gate = self.part("Sigmoid", &[x], vec![]);
                self.last("Mul", &[x, &gate], vec![])
            }
            Activation::Sigmoid => self.last("Sigmoid", &[x], vec![]),
            Activation::Tanh => self.last("Tanh", &[x], vec![]),
            Activation::Mish => {
                let soft = self.part("Softplus", &[x], vec![]);
                let gate = self.part("Tanh", &[&soft], vec![]);
                self.last("Mul", &[x, &gate], vec![])
            }
            Activation::Linear => self.last("Identity", &[x], vec![]),
        }
    }

    /// `x/2 · (1 + erf(x/√2))`.
    fn gelu_by_erf(&mut self, x: &str) -> String {
        let (root, one, half) = (self.number(std::f32::consts::SQRT_2), self.number(1.0), self.number(0.5));
        let scaled = self.part("Div", &[x, &root], vec![]);
        let erf = self.part("Erf", &[&scaled], vec![]);
        let shifted = self.part("Add", &[&erf, &one], vec![]);
        let product = self.part("Mul", &[x, &shifted], vec![]);
        self.last("Mul", &[&product, &half], vec![])
    }

    /// `x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))`.
    fn gelu_by_tanh(&mut self, x: &str) -> String {
        let (one, half) = (self.number(1.0), self.number(0.5));
        let (cubic, root) = (self.number(0.044_715), self.number((2.0 / std::f32::consts::PI).sqrt()));
        let square = self.part("Mul", &[x, x], vec![]);
        let cube = self.part("Mul", &[&square, x], vec![]);
        let cube = self.part("Mul", &[&cube, &cubic], vec![]);
        let inner = self.part("Add", &[x, &cube], vec![]);
        let inner = self.part("Mul", &[&inner, &root], vec![]);
        let tanh = self.part("Tanh", &[&inner], vec![]);
        let shifted = self.part("Add", &[&tanh, &one], vec![]);
        let product = self.part("Mul", &[x, &shifted], vec![]);
        self.last("Mul", &[&product, &half], vec![])
    }
}
