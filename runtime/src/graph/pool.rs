//! Pools over windows of images and audio, and other resolutions.

use super::spatial::windows;
use super::{Conv, Dim, Dtype, Graph, Interpolation, Op, PoolOp, Reduction, ResizeOp, Tensor, show};
use crate::Result;

impl Graph {
    /// The largest element of each window.
    ///
    /// # Errors
    /// When x has not as many spatial axes as the kernel.
    pub fn max_pool(
        &mut self,
        x: &Tensor,
        kernel: &[usize],
        stride: &[usize],
        padding: &[usize],
    ) -> Result<Tensor> {
        self.pool(Reduction::Max, x, kernel, stride, padding)
    }

    /// The mean of each window; padding counts as zeros.
    ///
    /// # Errors
    /// When x has not as many spatial axes as the kernel.
    pub fn avg_pool(
        &mut self,
        x: &Tensor,
        kernel: &[usize],
        stride: &[usize],
        padding: &[usize],
    ) -> Result<Tensor> {
        self.pool(Reduction::Mean, x, kernel, stride, padding)
    }

    /// The largest element of each square window of a map with zeros around it: so many before and after rows and columns.
    ///
    /// # Errors
    /// As [`Graph::max_pool`].
    pub fn max_pool_zero_padded(
        &mut self,
        x: &Tensor,
        kernel: usize,
        stride: usize,
        around: [(usize, usize); 2],
    ) -> Result<Tensor> {
        let mut x = x.clone();
        for (axis, (before, after)) in [2, 3].into_iter().zip(around) {
            // Not by Pad, which ONNX Runtime makes part of the pool, where padding is lower than all.
            let mut parts = vec![];
            for (place, count) in [before, 0, after].into_iter().enumerate() {
                let mut shape = x.shape().to_vec();
                if let Some(length) = shape.get_mut(axis) {
                    *length = count.into();
                }
                match place {
                    1 => parts.push(x.clone()),
                    _ if count > 0 => parts.push(self.full(shape, 0.0)?),
                    _ => {}
                }
            }
            x = if parts.len() > 1 { self.concat(&parts.iter().collect::<Vec<_>>(), axis)? } else { x };
        }
        self.max_pool(&x, &[kernel; 2], &[stride; 2], &[0; 2])
    }

    /// The largest element of each square window, with as many zeros around as the last window lacks, more of them behind
    /// (TensorFlow's `SAME`; `BitMaxPool2d`).
    ///
    /// # Errors
    /// As [`Graph::max_pool`].
    pub fn max_pool_same(&mut self, x: &Tensor, kernel: usize, stride: usize) -> Result<Tensor> {
        let (padded, conv) = Conv::new(1, &[kernel; 2]).stride(&[stride; 2]).same_padding(self, x)?;
        let around = [0, 1].map(|axis: usize| conv.op.padding.get(axis).copied().unwrap_or_default());
        self.max_pool_zero_padded(&padded, kernel, stride, around)
    }

    fn pool(
        &mut self,
        by: Reduction,
        x: &Tensor,
        kernel: &[usize],
        stride: &[usize],
        padding: &[usize],
    ) -> Result<Tensor> {
        let padding: Vec<_> = padding.iter().map(|&n| (n, n)).collect();
        let op = PoolOp { by, kernel: kernel.to_vec(), stride: stride.to_vec(), padding };
        self.float(op.name(), x)?;
        let axes = x.rank().saturating_sub(2);
        if [kernel.len(), stride.len(), op.padding.len()] != [axes; 3] {
            let problem = format!("{} spatial axes of {} need as many lengths", axes, show(x.shape()));
            return Err(self.error(op.name(), problem));
        }
        let mut shape = x.shape()[..2].to_vec();
        let windows = windows(x, kernel, stride, &op.padding, &vec![1; axes]);
        self.needs_some(&windows);
        shape.extend(windows);
        Ok(self.node(Op::Pool(op), &[x], x.dtype(), shape))
    }

    /// Another resolution: `[batch, channels, height, width]` to `[batch, channels, size…]`.
    ///
    /// # Errors
    /// When x has not four axes, or is not f32.
    pub fn resize(
        &mut self,
        x: &Tensor,
        [height, width]: [Dim; 2],
        by: Interpolation,
        align_corners: bool,
    ) -> Result<Tensor> {
        self.float("Resize", x)?;
        let [batch, channels, ..] = x.shape() else {
            return Err(self.error("Resize", format!("four axes are needed, not {}", show(x.shape()))));
        };
        if x.rank() != 4 {
            return Err(self.error("Resize", format!("four axes are needed, not {}", show(x.shape()))));
        }
        let shape = vec![batch.clone(), channels.clone(), height, width];
        Ok(self.node(Op::Resize(ResizeOp { by, align_corners }), &[x], Dtype::F32, shape))
    }
}
