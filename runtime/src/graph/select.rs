//! Parts of values: by index, by range, by comparison; and values made longer.

use super::{Dim, Dtype, Graph, Op, PadMode, Shape, Tensor, TopKOp, TopKResult, show};
use crate::Result;

impl Graph {
    /// Slices of x along an axis, by integer ids: the ids' shape takes the axis's place.
    ///
    /// # Errors
    /// When the ids are not integers or the axis does not exist.
    pub fn gather(&mut self, x: &Tensor, ids: &Tensor, axis: usize) -> Result<Tensor> {
        if axis >= x.rank() || !matches!(ids.dtype(), Dtype::I64 | Dtype::I32) {
            let problem = match axis < x.rank() {
                true => format!("ids are integers, not {} {}", ids.dtype(), show(ids.shape())),
                false => format!("{} has no axis {axis}", show(x.shape())),
            };
            return Err(self.error("Gather", problem));
        }
        let shape = [&x.shape()[..axis], ids.shape(), &x.shape()[axis + 1..]].concat();
        Ok(self.node(Op::Gather { axis }, &[x, ids], x.dtype(), shape))
    }

    /// One position of an axis; the axis disappears.
    ///
    /// # Errors
    /// When the axis does not exist.
    pub fn take(&mut self, x: &Tensor, axis: usize, index: i64) -> Result<Tensor> {
        let index = self.integer(index);
        self.gather(x, &index, axis)
    }

    /// Elements of x at the indices along an axis that `ids` holds; the result has the shape of `ids`.
    ///
    /// # Errors
    /// When the ids are not integers, have another rank or differ from x elsewhere than in the axis.
    pub fn gather_elements(&mut self, x: &Tensor, ids: &Tensor, axis: usize) -> Result<Tensor> {
        let same =
            x.rank() == ids.rank() && (0..x.rank()).all(|i| i == axis || x.shape()[i] == ids.shape()[i]);
        if axis >= x.rank() || !same || ids.dtype() != Dtype::I64 {
            let problem = format!("{} {} do not index axis {axis}", ids.dtype(), show(ids.shape()));
            return Err(self.error("GatherElements", format!("{problem} of {}", show(x.shape()))));
        }
        Ok(self.node(Op::GatherElements { axis }, &[x, ids], x.dtype(), ids.shape().to_vec()))
    }

    /// x with the elements of `updates` at the indices along the last axis that `ids` holds (`torch.scatter`), of the same shape as
    /// x; where one is held several times, any of those.
    ///
    /// # Errors
    /// When the ids are not integers, or do not have the shape of the updates, which differs from that of x in the last axis alone.
    pub fn scatter_elements(&mut self, x: &Tensor, ids: &Tensor, updates: &Tensor) -> Result<Tensor> {
        let last = x.rank().saturating_sub(1);
        let same = x.rank() > 0 && x.rank() == ids.rank() && x.shape()[..last] == ids.shape()[..last];
        if !same
            || ids.dtype() != Dtype::I64
            || ids.shape() != updates.shape()
            || x.dtype() != updates.dtype()
        {
            let places = format!("{} {}", ids.dtype(), show(ids.shape()));
            let given = format!("{} {}", updates.dtype(), show(updates.shape()));
            let problem = format!("{given} cannot be put at {places} of {} {}", x.dtype(), show(x.shape()));
            return Err(self.error("ScatterElements", problem));
        }
        Ok(self.node(Op::ScatterElements, &[x, ids, updates], x.dtype(), x.shape().to_vec()))
    }

    /// One position of the second axis for each item: x `[batch, length, …]` at `index` `[batch]` i64, `[batch, …]`.
    ///
    /// # Errors
    /// When the index is not one integer for each item.
    pub fn gather_batched(&mut self, x: &Tensor, index: &Tensor) -> Result<Tensor> {
        if x.rank() < 2 || index.dtype() != Dtype::I64 || *index.shape() != x.shape()[..1] {
            let problem = format!("{} {} is not one index", index.dtype(), show(index.shape()));
            return Err(self.error("GatherND", format!("{problem} for each item of {}", show(x.shape()))));
        }
        let index = self.unsqueeze(index, 1)?;
        let mut shape = x.shape().to_vec();
        shape.remove(1);
        Ok(self.node(Op::GatherBatched, &[x, &index], x.dtype(), shape))
    }

    /// A range of an axis of fixed length.
    ///
    /// # Errors
    /// When the range does not lie within the axis.
    pub fn slice(&mut self, x: &Tensor, axis: usize, range: std::ops::Range<usize>) -> Result<Tensor> {
        let length =
            x.shape().get(axis).and_then(Dim::fixed).filter(|&n| range.start <= range.end && range.end <= n);
        if length.is_none() {
            let problem = format!("{range:?} does not lie in axis {axis} of {}", show(x.shape()));
            return Err(self.error("Slice", format!("{problem}, whose length must be fixed")));
        }
        self.slice_dims(x, axis, range.start.into(), range.end.into())
    }

    /// A range of an axis, by lengths that may be known at run time only; it must lie within the axis.
    ///
    /// # Errors
    /// When the axis does not exist.
    pub fn slice_dims(&mut self, x: &Tensor, axis: usize, start: Dim, end: Dim) -> Result<Tensor> {
        let mut shape = self.with_axis("Slice", x, axis)?;
        shape[axis] = end.clone() - start.clone();
        Ok(self.node(Op::Slice { axis, start, end, step: 1 }, &[x], x.dtype(), shape))
    }

    /// Every `step`th position of an axis, from `start` on.
    ///
    /// # Errors
    /// When the axis does not exist.
    pub fn slice_step(&mut self, x: &Tensor, axis: usize, start: usize, step: usize) -> Result<Tensor> {
        let mut shape = self.with_axis("Slice", x, axis)?;
        let end = shape[axis].clone();
        shape[axis] = (end.clone() - start.into()).ceil_div(step);
        Ok(self.node(Op::Slice { axis, start: start.into(), end, step }, &[x], x.dtype(), shape))
    }

    /// An axis of fixed length in parts, one after the other.
    ///
    /// # Errors
    /// When the parts are longer than the axis.
    pub fn split(&mut self, x: &Tensor, axis: usize, sizes: &[usize]) -> Result<Vec<Tensor>> {
        let mut start = 0;
        sizes
            .iter()
            .map(|size| {
                start += size;
                self.slice(x, axis, start - size..start)
            })
            .collect()
    }

    /// A new axis of length 1.
    ///
    /// # Errors
    /// When x has fewer axes than that.
    pub fn unsqueeze(&mut self, x: &Tensor, axis: usize) -> Result<Tensor> {
        if axis > x.rank() {
            return Err(self.error("Unsqueeze", format!("{} takes no axis {axis}", show(x.shape()))));
        }
        let mut shape = x.shape().to_vec();
        shape.insert(axis, Dim::Fixed(1));
        self.reshape(x, shape)
    }

    /// Drops an axis of length 1.
    ///
    /// # Errors
    /// When it is longer, or does not exist.
    pub fn squeeze(&mut self, x: &Tensor, axis: usize) -> Result<Tensor> {
        let mut shape = self.with_axis("Squeeze", x, axis)?;
        shape.remove(axis);
        self.reshape(x, shape)
    }

    /// The axes of a range as one.
    ///
    /// # Errors
    /// When the range does not lie within the axes.
    pub fn flatten(&mut self, x: &Tensor, axes: std::ops::Range<usize>) -> Result<Tensor> {
        if axes.is_empty() || axes.end > x.rank() {
            return Err(self.error("Flatten", format!("{} has no axes {axes:?}", show(x.shape()))));
        }
        let mut shape = x.shape().to_vec();
        let joined = super::product(&shape[axes.clone()]);
        shape.splice(axes, [joined]);
        self.reshape(x, shape)
    }

    /// Elements around those there are: `(axis, before, after)`.
    ///
    /// # Errors
    /// When an axis does not exist.
    pub fn pad(&mut self, x: &Tensor, around: &[(usize, usize, usize)], by: PadMode) -> Result<Tensor> {
        let mut shape = x.shape().to_vec();
        let mut all = vec![(0, 0); x.rank()];
        for &(axis, before, after) in around {
            self.with_axis("Pad", x, axis)?;
            shape[axis] = shape[axis].clone() + (before + after).into();
            all[axis] = (before, after);
        }
        Ok(self.node(Op::Pad { by, around: all }, &[x], x.dtype(), shape))
    }

    /// The sum of all elements up to each, along an axis.
    ///
    /// # Errors
    /// When the axis does not exist.
    pub fn cumsum(&mut self, x: &Tensor, axis: usize) -> Result<Tensor> {
        let shape = self.with_axis("CumSum", x, axis)?;
        Ok(self.node(Op::CumSum { axis }, &[x], x.dtype(), shape))
    }

    /// The first index of the largest element along an axis, which disappears: i64.
    ///
    /// # Errors
    /// When the axis does not exist.
    pub fn argmax(&mut self, x: &Tensor, axis: usize) -> Result<Tensor> {
        let mut shape = self.with_axis("ArgMax", x, axis)?;
        shape.remove(axis);
        Ok(self.node(Op::ArgMax { axis }, &[x], Dtype::I64, shape))
    }

    /// The largest elements along the last axis, in descending order (`torch.topk`): values `[…, count]`, and their indices, i64.
    /// Of equal ones the first is selected. Where the axis has no fixed length, what is run must have as many.
    ///
    /// # Errors
    /// When there are fewer than `count` elements, or none are asked for.
    pub fn top_k(&mut self, x: &Tensor, count: usize) -> Result<(Tensor, Tensor)> {
        self.float("TopK", x)?;
        let fits = x.dim(-1).is_some_and(|length| length.fixed().is_none_or(|length| length >= count));
        if !fits || count == 0 {
            let problem = format!("{} has no {count} largest along its last axis", show(x.shape()));
            return Err(self.error("TopK", problem));
        }
        let mut shape = x.shape().to_vec();
        if let Some(last) = shape.last_mut() {
            *last = count.into();
        }
        let op = |gives| Op::TopK(TopKOp { count, gives });
        let values = self.node(op(TopKResult::Values), &[x], x.dtype(), shape.clone());
        Ok((values, self.node(op(TopKResult::Indices), &[x], Dtype::I64, shape)))
    }

    fn with_axis(&self, op: &str, x: &Tensor, axis: usize) -> Result<Shape> {
        match axis < x.rank() {
            true => Ok(x.shape().to_vec()),
            false => Err(self.error(op, format!("{} has no axis {axis}", show(x.shape())))),
        }
    }
}
