//! Operations on values: element-wise, products, shapes.

use super::shape::{broadcast, product};
use super::{Activation, Binary, Dim, Dtype, Graph, Op, Reduction, Shape, Tensor, Unary, show};
use crate::Result;

impl Graph {
    /// `a + b`, with broadcasting.
    ///
    /// # Errors
    /// When the shapes do not broadcast or the dtypes differ; so for all element-wise operations.
    pub fn add(&mut self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        self.binary(Binary::Add, a, b)
    }

    /// `a - b`, with broadcasting.
    ///
    /// # Errors
    /// As [`Graph::add`].
    pub fn sub(&mut self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        self.binary(Binary::Sub, a, b)
    }

    /// `a · b`, with broadcasting.
    ///
    /// # Errors
    /// As [`Graph::add`].
    pub fn mul(&mut self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        self.binary(Binary::Mul, a, b)
    }

    /// `a / b`, with broadcasting.
    ///
    /// # Errors
    /// As [`Graph::add`].
    pub fn div(&mut self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        self.binary(Binary::Div, a, b)
    }

    /// An element-wise operation on two operands, with broadcasting.
    ///
    /// # Errors
    /// As [`Graph::add`].
    pub fn binary(&mut self, op: Binary, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        if a.dtype() != b.dtype() {
            return Err(self.error(op.onnx(), format!("{} and {} do not mix", a.dtype(), b.dtype())));
        }
        let Some(shape) = broadcast(a.shape(), b.shape()) else {
            let problem = format!("{} and {} do not broadcast", show(a.shape()), show(b.shape()));
            return Err(self.error(op.onnx(), problem));
        };
        let logical = matches!(op, Binary::And | Binary::Or);
        if logical && a.dtype() != Dtype::Bool {
            return Err(self.error(op.onnx(), format!("needs booleans, not {}", a.dtype())));
        }
        let dtype = if op.compares() { Dtype::Bool } else { a.dtype() };
        Ok(self.node(Op::Binary(op), &[a, b], dtype, shape))
    }

    /// An element-wise operation.
    pub fn unary(&mut self, op: Unary, x: &Tensor) -> Tensor {
        self.node(Op::Unary(op), &[x], x.dtype(), x.shape().to_vec())
    }

    /// The hyperbolic tangent.
    pub fn tanh(&mut self, x: &Tensor) -> Tensor {
        self.unary(Unary::Tanh, x)
    }

    /// An activation function.
    ///
    /// # Errors
    /// When x is not floating point.
    pub fn activation(&mut self, act: Activation, x: &Tensor) -> Result<Tensor> {
        self.float(act.name(), x)?;
        if act == Activation::Linear {
            return Ok(x.clone());
        }
        Ok(self.node(Op::Activate(act), &[x], x.dtype(), x.shape().to_vec()))
    }

    /// Batched matrix product: `[…, m, k]` and `[…, k, n]` to `[…, m, n]`.
    ///
    /// # Errors
    /// When the inner lengths differ or the outer ones do not broadcast.
    pub fn matmul(&mut self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        let misfit = |g: &Self| {
            let problem = "the inner lengths must be equal and the outer ones broadcast";
            g.error("MatMul", format!("{} · {}: {problem}", show(a.shape()), show(b.shape())))
        };
        self.float("MatMul", a)?;
        if a.dtype() != b.dtype() {
            return Err(self.error("MatMul", format!("{} and {} do not mix", a.dtype(), b.dtype())));
        }
        let (Some((a_outer, [m, k])), Some((b_outer, [k2, n]))) =
            (a.shape().split_last_chunk::<2>(), b.shape().split_last_chunk::<2>())
        else {
            return Err(misfit(self));
        };
        let mut shape = broadcast(a_outer, b_outer).filter(|_| k == k2).ok_or_else(|| misfit(self))?;
        shape.extend([m.clone(), n.clone()]);
        Ok(self.node(Op::MatMul, &[a, b], a.dtype(), shape))
    }

    /// Normalised exponentials along the last axis.
    ///
    /// # Errors
    /// When x has no axes.
    pub fn softmax(&mut self, x: &Tensor) -> Result<Tensor> {
        let axis = self.last_axis("Softmax", x)?;
        Ok(self.node(Op::Softmax { axis }, &[x], x.dtype(), x.shape().to_vec()))
    }

    /// Logarithms of normalised exponentials along the last axis.
    ///
    /// # Errors
    /// When x has no axes.
    pub fn log_softmax(&mut self, x: &Tensor) -> Result<Tensor> {
        let axis = self.last_axis("LogSoftmax", x)?;
        Ok(self.node(Op::LogSoftmax { axis }, &[x], x.dtype(), x.shape().to_vec()))
    }

    fn last_axis(&self, op: &str, x: &Tensor) -> Result<usize> {
        x.rank().checked_sub(1).ok_or_else(|| self.error(op, "a number has no axis"))
    }

    /// x, but at least `low` and at most `high`.
    ///
    /// # Errors
    /// When x is not f32.
    pub fn clip(&mut self, x: &Tensor, low: f32, high: f32) -> Result<Tensor> {
        let (low, high) = (self.scalar(low), self.scalar(high));
        let x = self.binary(Binary::Max, x, &low)?;
        self.binary(Binary::Min, &x, &high)
    }

    /// `factor · x`; x itself where the factor is 1.
    ///
    /// # Errors
    /// When x is not f32.
    pub fn scale(&mut self, x: &Tensor, factor: f64) -> Result<Tensor> {
        if factor == 1.0 {
            return Ok(x.clone());
        }
        let factor = self.scalar(factor as f32);
        self.mul(x, &factor)
    }

    /// The same elements in another shape.
    ///
    /// # Errors
    /// When the number of elements is not provably the same.
    pub fn reshape(&mut self, x: &Tensor, shape: Vec<Dim>) -> Result<Tensor> {
        if product(x.shape()) != product(&shape) {
            let problem = format!("{} does not hold as many elements as {}", show(x.shape()), show(&shape));
            return Err(self.error("Reshape", problem));
        }
        Ok(self.node(Op::Reshape, &[x], x.dtype(), shape))
    }

    /// Axes in another order: output axis `i` is input axis `order[i]`.
    ///
    /// # Errors
    /// When `order` is not a permutation of the axes.
    pub fn transpose(&mut self, x: &Tensor, order: &[usize]) -> Result<Tensor> {
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..x.rank()) {
            return Err(self.error("Transpose", format!("{order:?} does not reorder {}", show(x.shape()))));
        }
        let shape = order.iter().map(|&axis| x.shape()[axis].clone()).collect();
        Ok(self.node(Op::Transpose { order: order.to_vec() }, &[x], x.dtype(), shape))
    }

    /// Repeats axes of length 1 until x has this shape.
    ///
    /// # Errors
    /// When x does not broadcast to it.
    pub fn expand(&mut self, x: &Tensor, shape: Vec<Dim>) -> Result<Tensor> {
        if broadcast(x.shape(), &shape).as_ref() != Some(&shape) {
            let problem = format!("{} does not grow to {}", show(x.shape()), show(&shape));
            return Err(self.error("Expand", problem));
        }
        Ok(self.node(Op::Expand, &[x], x.dtype(), shape))
    }

    /// Tensors one after the other along an axis; one alone stays as it is.
    ///
    /// # Errors
    /// When they differ elsewhere, or there are none.
    pub fn concat(&mut self, parts: &[&Tensor], axis: usize) -> Result<Tensor> {
        let shapes = || parts.iter().map(|p| show(p.shape())).collect::<Vec<_>>().join(", ");
        let Some(first) = parts.first().filter(|first| axis < first.rank()) else {
            let problem = match parts {
                [] => "there is nothing to join".to_owned(),
                _ => format!("{} has no axis {axis}", shapes()),
            };
            return Err(self.error("Concat", problem));
        };
        let mut shape: Shape = first.shape().to_vec();
        for part in &parts[1..] {
            let same = part.rank() == shape.len()
                && part.dtype() == first.dtype()
                && (0..shape.len()).all(|i| i == axis || part.shape()[i] == shape[i]);
            if !same {
                return Err(self.error(
                    "Concat",
                    format!("{} differ elsewhere than in axis {axis}, or in type", shapes()),
                ));
            }
            shape[axis] = shape[axis].clone() + part.shape()[axis].clone();
        }
        match parts {
            [only] => Ok((*only).clone()),
            _ => Ok(self.node(Op::Concat { axis }, parts, first.dtype(), shape)),
        }
    }

    /// 0, 1, 2 … up to a length: `[length]` i64.
    pub fn arange(&mut self, length: &Dim) -> Tensor {
        self.node(Op::Positions, &[], Dtype::I64, vec![length.clone()])
    }

    /// Another element type; booleans become 0 and 1.
    pub fn cast(&mut self, x: &Tensor, to: Dtype) -> Tensor {
        if x.dtype() == to { x.clone() } else { self.node(Op::Cast { to }, &[x], to, x.shape().to_vec()) }
    }

    /// What `build` adds to the graph is computed in single precision on every backend, as where the reference casts to float32.
    ///
    /// # Errors
    /// Those of `build`.
    pub fn in_single<T>(&mut self, build: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let first = self.values.len();
        let built = build(self)?;
        self.single.extend(first..self.values.len());
        Ok(built)
    }

    /// Elements of `yes` where the condition holds, of `no` elsewhere, with broadcasting.
    ///
    /// # Errors
    /// When the shapes do not broadcast or the dtypes do not fit.
    pub fn select(&mut self, condition: &Tensor, yes: &Tensor, no: &Tensor) -> Result<Tensor> {
        let shape = broadcast(yes.shape(), no.shape()).and_then(|s| broadcast(condition.shape(), &s));
        match shape {
            Some(shape) if condition.dtype() == Dtype::Bool && yes.dtype() == no.dtype() => {
                Ok(self.node(Op::Where, &[condition, yes, no], yes.dtype(), shape))
            }
            _ => {
                let shapes = [condition, yes, no].map(|t| format!("{} {}", t.dtype(), show(t.shape())));
                let problem = "a condition and two of one type that broadcast are needed";
                Err(self.error("Where", format!("{}: {problem}", shapes.join(", "))))
            }
        }
    }

    /// Folds axes away.
    ///
    /// # Errors
    /// When an axis does not exist.
    pub fn reduce(&mut self, by: Reduction, x: &Tensor, axes: &[usize], keep: bool) -> Result<Tensor> {
        if let Some(axis) = axes.iter().find(|&&axis| axis >= x.rank()) {
            let op = Op::Reduce { by, axes: vec![], keep };
            return Err(self.error(op.name(), format!("{} has no axis {axis}", show(x.shape()))));
        }
        let kept = x.shape().iter().enumerate().filter_map(|(axis, dim)| match axes.contains(&axis) {
            true => keep.then_some(Dim::Fixed(1)),
            false => Some(dim.clone()),
        });
        let shape = kept.collect();
        Ok(self.node(Op::Reduce { by, axes: axes.to_vec(), keep }, &[x], x.dtype(), shape))
    }

    pub(crate) fn float(&self, op: &str, x: &Tensor) -> Result<()> {
        if x.dtype().is_float() {
            return Ok(());
        }
        Err(self.error(op, format!("needs floating point, not {} {}", x.dtype(), show(x.shape()))))
    }
}
