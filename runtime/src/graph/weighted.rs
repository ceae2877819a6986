//! Operations that carry weights; they name the nodes around them after their scope.

use std::collections::BTreeSet;

use super::{Dtype, Graph, Op, Origin, Scope, Tensor, show};
use crate::Result;

impl Graph {
    /// `x · weightᵀ + bias`: `[…, in]` to `[…, out]`.
    ///
    /// # Errors
    /// When x has no axes or its last one is not a fixed length.
    pub fn linear(&mut self, w: &Scope, x: &Tensor, out: usize) -> Result<Tensor> {
        self.linear_with(&w.name("weight"), Some(&w.name("bias")), x, out)
    }

    /// `x · weightᵀ`: `[…, in]` to `[…, out]`.
    ///
    /// # Errors
    /// As [`Graph::linear`].
    pub fn linear_no_bias(&mut self, w: &Scope, x: &Tensor, out: usize) -> Result<Tensor> {
        self.linear_with(&w.name("weight"), None, x, out)
    }

    /// A linear layer whose `bias` the configuration may leave out: `[…, in]` to `[…, out]`.
    ///
    /// # Errors
    /// As [`Graph::linear`].
    pub fn linear_biased(&mut self, w: &Scope, x: &Tensor, out: usize, bias: bool) -> Result<Tensor> {
        if bias { self.linear(w, x, out) } else { self.linear_no_bias(w, x, out) }
    }

    /// A linear layer whose weight lies the other way, `[in, out]`: `x · weight + bias`.
    ///
    /// # Errors
    /// As [`Graph::linear`].
    pub fn linear_transposed(&mut self, w: &Scope, x: &Tensor, out: usize) -> Result<Tensor> {
        self.enter(w);
        let width = self.width("Linear", x)?;
        let weight = self.weight_transposed(&w.name("weight"), &[width, out])?;
        let bias = self.weight(&w.name("bias"), &[out])?;
        let h = self.matmul(x, &weight)?;
        self.add(&h, &bias)
    }

    /// A linear layer without bias whose weight has a name of its own and lies the other way, `[in, out]`: `x · weight`.
    ///
    /// # Errors
    /// As [`Graph::linear`].
    pub fn linear_transposed_with(&mut self, weight: &str, x: &Tensor, out: usize) -> Result<Tensor> {
        self.enter(&Scope::root().scope(weight).parent());
        let width = self.width("Linear", x)?;
        let weight = self.weight_transposed(weight, &[width, out])?;
        self.matmul(x, &weight)
    }

    /// A linear layer whose weights have names of their own, as tied ones do.
    ///
    /// # Errors
    /// As [`Graph::linear`].
    pub fn linear_with(
        &mut self,
        weight: &str,
        bias: Option<&str>,
        x: &Tensor,
        out: usize,
    ) -> Result<Tensor> {
        self.enter(&Scope::root().scope(weight).parent());
        let Some(width) = x.dim(-1).and_then(super::Dim::fixed) else {
            let problem = format!("the last axis of x {} must have a fixed length", show(x.shape()));
            return Err(self.error("Linear", problem));
        };
        self.float("Linear", x)?;
        let weight = self.weight(weight, &[out, width])?;
        let bias = bias.map(|name| self.weight(name, &[out])).transpose()?;
        let mut shape = x.shape().to_vec();
        if let Some(last) = shape.last_mut() {
            *last = out.into();
        }
        let operands: Vec<_> = [x, &weight].into_iter().chain(&bias).collect();
        Ok(self.node(Op::Linear, &operands, Dtype::F32, shape))
    }

    /// Rows of a table: ids `[…]` to `[…, width]`.
    ///
    /// # Errors
    /// When the ids are not integers.
    pub fn embedding(&mut self, w: &Scope, ids: &Tensor, rows: usize, width: usize) -> Result<Tensor> {
        self.enter(w);
        let table = self.weight(&w.name("weight"), &[rows, width])?;
        self.gather(&table, ids, 0)
    }

    /// Layer normalisation over the last axis, with `weight` and `bias`.
    ///
    /// # Errors
    /// When the last axis has no fixed length.
    pub fn layer_norm(&mut self, w: &Scope, x: &Tensor, epsilon: f64) -> Result<Tensor> {
        self.enter(w);
        let width = self.width("LayerNormalization", x)?;
        let scale = self.weight(&w.name("weight"), &[width])?;
        let shift = self.weight(&w.name("bias"), &[width])?;
        Ok(self.node(Op::LayerNorm { epsilon }, &[x, &scale, &shift], x.dtype(), x.shape().to_vec()))
    }

    /// Layer normalisation over the last axis, with `weight`, and with `bias` if it has one.
    ///
    /// # Errors
    /// As [`Graph::layer_norm`].
    pub fn layer_norm_biased(&mut self, w: &Scope, x: &Tensor, epsilon: f64, bias: bool) -> Result<Tensor> {
        if bias {
            return self.layer_norm(w, x, epsilon);
        }
        self.enter(w);
        let width = self.width("LayerNormalization", x)?;
        let scale = self.weight(&w.name("weight"), &[width])?;
        Ok(self.node(Op::LayerNorm { epsilon }, &[x, &scale], x.dtype(), x.shape().to_vec()))
    }

    /// Root-mean-square normalisation over the last axis, with `weight`.
    ///
    /// # Errors
    /// When the last axis has no fixed length.
    pub fn rms_norm(&mut self, w: &Scope, x: &Tensor, epsilon: f64) -> Result<Tensor> {
        self.enter(w);
        let width = self.width("RMSNormalization", x)?;
        let scale = self.weight(&w.name("weight"), &[width])?;
        Ok(self.node(Op::RmsNorm { epsilon }, &[x, &scale], x.dtype(), x.shape().to_vec()))
    }

    /// The weight of a linear layer that lies the other way, `[in, out]`.
    ///
    /// # Errors
    /// As [`Graph::weight`].
    pub(crate) fn weight_transposed(&mut self, name: &str, shape: &[usize]) -> Result<Tensor> {
        let tensor = self.weight(name, shape)?;
        if let Origin::Weight(index) = self.values[tensor.id].origin {
            self.weights[index].transposed = true;
        }
        Ok(tensor)
    }

    /// The weights of linear layers that nothing else uses, without heads, which have other names than the base model's
    /// modules, and without the routers of experts.
    pub(crate) fn linear_weights(&self, base_model_prefix: &str) -> Vec<&str> {
        let (mut others, mut linear) = (BTreeSet::new(), BTreeSet::new());
        for node in &self.nodes {
            for (place, input) in node.inputs.iter().enumerate() {
                if let Origin::Weight(index) = self.values[*input].origin {
                    let matrix = self.weights[index].shape.len() == 2;
                    let of_linear = match node.op {
                        Op::Linear => place == 1,
                        Op::ExpertLinear(op) => place > 1 && matrix && !op.transposed,
                        _ => false,
                    };
                    _ = if of_linear { linear.insert(index) } else { others.insert(index) };
                }
            }
        }
        let alone = linear.difference(&others);
        let mut names: Vec<&str> = alone.map(|index| self.weights[*index].name.as_str()).collect();
        let prefix = format!("{base_model_prefix}.");
        if names.iter().any(|name| name.starts_with(&prefix)) {
            names.retain(|name| name.starts_with(&prefix));
        }
        names.retain(|name| !name.ends_with(".gate.weight") && !name.ends_with(".router.weight"));
        names
    }

    fn width(&self, op: &str, x: &Tensor) -> Result<usize> {
        self.float(op, x)?;
        x.dim(-1).and_then(super::Dim::fixed).ok_or_else(|| {
            self.error(op, format!("the last axis of {} must have a fixed length", show(x.shape())))
        })
    }
}
