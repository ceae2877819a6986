//! The forms of a linear layer.

use super::LinearForm;
use super::emitter::Emitter;
use crate::Result;
use crate::graph::{Dim, Node};
use crate::onnx::Attribute;

impl Emitter<'_> {
    /// `x · wᵀ + b`.
    pub(super) fn linear(&mut self, node: &Node, operands: &[&str]) -> Result<String> {
        let (x, weight, bias) = (operands[0], operands[1], operands.get(2).copied());
        let (from, to) = (self.shape(node.inputs[0]), self.shape(node.output));
        match self.rules.linear {
            LinearForm::Gemm => self.gemm(x, weight, bias, &from, &to),
            LinearForm::FusedMatMul => {
                let attributes = vec![Attribute::int("transB", 1)];
                Ok(match bias {
                    Some(bias) => {
                        let product = self.part_in("com.microsoft", "FusedMatMul", &[x, weight], attributes);
                        self.last("Add", &[&product, bias], vec![])
                    }
                    None => self.last_in("com.microsoft", "FusedMatMul", &[x, weight], attributes),
                })
            }
            LinearForm::Transposed => {
                let transposed = self.transposed(node.inputs[1], weight);
                Ok(match bias {
                    Some(bias) => {
                        let product = self.part("MatMul", &[x, &transposed], vec![]);
                        self.last("Add", &[&product, bias], vec![])
                    }
                    None => self.last("MatMul", &[x, &transposed], vec![]),
                })
            }
        }
    }

    fn gemm(
        &mut self,
        x: &str,
        weight: &str,
        bias: Option<&str>,
        from: &[Dim],
        to: &[Dim],
    ) -> Result<String> {
        let attributes = vec![Attribute::int("transB", 1)];
        let operands = |x| [Some(x), Some(weight), bias].into_iter().flatten().collect::<Vec<_>>();
        if from.len() == 2 {
            return Ok(self.last("Gemm", &operands(x), attributes));
        }
        let (rows, width) = from.split_at(from.len() - 1);
        let rows = crate::graph::product(rows);
        let flat = [rows.clone(), width[0].clone()];
        let x = self.reshape_part(x, from, &flat)?;
        let product = self.part("Gemm", &operands(&x), attributes);
        let result = self.reshape(&product, &[rows, to[to.len() - 1].clone()], to)?;
        // ONNX infers the width of `Attention` from that of its values, and takes an unknown one for 0.
        self.declare(&result, to);
        Ok(result)
    }

    /// The weight with its axes exchanged, written once however often it is used.
    fn transposed(&mut self, id: usize, weight: &str) -> String {
        if let Some(name) = self.derived.get(&(id, "transposed")) {
            return name.clone();
        }
        let attributes = vec![Attribute::ints("perm", vec![1, 0])];
        let name = self.named("Transpose", &[weight], attributes, &format!("{weight}/Transpose"));
        self.derived.insert((id, "transposed"), name.clone());
        name
    }
}
