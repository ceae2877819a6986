//! Operations on windows of images and audio: convolutions, and norms by channel.

use super::{ConvOp, Dim, Graph, Op, PadMode, Scope, Shape, Tensor, show};
use crate::Result;

/// A convolution, by spatial axis: `Conv::new(out, &[3, 3]).stride(&[2, 2])`.
#[derive(Clone, Debug)]
pub struct Conv {
    out: usize,
    pub(super) op: ConvOp,
    bias: bool,
    output_padding: Vec<usize>,
}

impl Conv {
    /// `out` channels from windows of these lengths: next to each other, no padding, with a bias.
    pub fn new(out: usize, kernel: &[usize]) -> Self {
        let ones = vec![1; kernel.len()];
        let op = ConvOp {
            kernel: kernel.to_vec(),
            stride: ones.clone(),
            padding: vec![(0, 0); kernel.len()],
            dilation: ones,
            groups: 1,
        };
        Self { out, op, bias: true, output_padding: vec![0; kernel.len()] }
    }

    /// `out` channels from square patches next to each other, with a bias: the convolution of a patch embedding.
    pub fn patches(out: usize, size: usize) -> Self {
        Self::new(out, &[size; 2]).stride(&[size; 2])
    }

    /// From one window to the next.
    #[must_use]
    pub fn stride(mut self, stride: &[usize]) -> Self {
        self.op.stride = stride.to_vec();
        self
    }

    /// Zeros on both sides of each axis.
    #[must_use]
    pub fn padding(mut self, padding: &[usize]) -> Self {
        self.op.padding = padding.iter().map(|&n| (n, n)).collect();
        self
    }

    /// As many zeros on both sides as windows reach around their middle.
    #[must_use]
    pub fn half_padding(mut self) -> Self {
        let ConvOp { kernel, dilation, .. } = &self.op;
        let sides = kernel.iter().zip(dilation).map(|(kernel, dilation)| (kernel - 1) / 2 * dilation);
        self.op.padding = sides.map(|n| (n, n)).collect();
        self
    }

    /// As many zeros as the last window over `x` lacks, more of them behind: TensorFlow's `SAME`. Where the length of an axis is
    /// known at run time only, `x` gets the most zeros that any length lacks, less those too many.
    ///
    /// # Errors
    /// When x has not as many axes, or where its lengths are not known, windows that leave gaps or are dilated.
    pub fn same_padding(mut self, g: &mut Graph, x: &Tensor) -> Result<(Tensor, Self)> {
        let mut x = x.clone();
        for axis in 0..self.op.kernel.len() {
            let (kernel, stride, dilation) =
                (self.op.kernel[axis], self.op.stride[axis], self.op.dilation[axis]);
            let Some(length) = x.shape().get(axis + 2).cloned() else {
                return Err(g.error("Conv", format!("{} has too few axes", show(x.shape()))));
            };
            let lacks = match (length.fixed(), stride) {
                (_, 1) => kernel - 1,
                (Some(length), _) => kernel.saturating_sub(length - (length - 1) / stride * stride),
                (None, _) if kernel < stride || dilation > 1 => {
                    return Err(
                        g.error("Conv", format!("padding needs fixed lengths, not {}", show(x.shape())))
                    );
                }
                (None, _) => {
                    x = pad_to_windows(g, &x, axis + 2, length, kernel, stride)?;
                    0
                }
            };
            self.op.padding[axis] = (lacks / 2 * dilation, (lacks - lacks / 2) * dilation);
        }
        Ok((x, self))
    }

    /// Zeros before and after each axis.
    #[must_use]
    pub fn padding_around(mut self, padding: &[(usize, usize)]) -> Self {
        self.op.padding = padding.to_vec();
        self
    }

    /// From one element of a window to the next.
    #[must_use]
    pub fn dilation(mut self, dilation: &[usize]) -> Self {
        self.op.dilation = dilation.to_vec();
        self
    }

    /// Independent groups of channels.
    #[must_use]
    pub fn groups(mut self, groups: usize) -> Self {
        self.op.groups = groups;
        self
    }

    /// Without a bias.
    #[must_use]
    pub fn no_bias(mut self) -> Self {
        self.bias = false;
        self
    }

    /// Positions added after each axis of a transposed convolution's result.
    #[must_use]
    pub fn output_padding(mut self, padding: &[usize]) -> Self {
        self.output_padding = padding.to_vec();
        self
    }
}

impl Graph {
    /// Convolution with `weight` and `bias`: `[batch, in, …]` to `[batch, out, …]`.
    ///
    /// # Errors
    /// When x has not as many spatial axes as the kernel, or its channels are not a multiple of the groups.
    pub fn conv(&mut self, w: &Scope, x: &Tensor, conv: &Conv) -> Result<Tensor> {
        self.enter(w);
        let channels = self.channels("Conv", x, conv)?;
        let shape = [&[conv.out, channels / conv.op.groups], conv.op.kernel.as_slice()].concat();
        let weight = self.weight(&w.name("weight"), &shape)?;
        let bias = conv.bias.then(|| self.weight(&w.name("bias"), &[conv.out])).transpose()?;
        self.conv_with(x, &weight, bias.as_ref(), conv)
    }

    /// Convolution without a bias by a standardised `weight`: that of each output channel has mean 0 and variance 1 (Weight
    /// Standardization, arXiv:1903.10520; `WeightStandardizedConv2d`).
    ///
    /// # Errors
    /// As [`Graph::conv`].
    pub fn conv_standardized(&mut self, w: &Scope, x: &Tensor, conv: &Conv, epsilon: f64) -> Result<Tensor> {
        self.enter(w);
        let channels = self.channels("Conv", x, conv)?;
        let shape = [&[conv.out, channels / conv.op.groups], conv.op.kernel.as_slice()].concat();
        let weight = self.weight(&w.name("weight"), &shape)?;
        let rows = self.flatten(&weight, 1..shape.len())?;
        let width = shape[1..].iter().product();
        let ones = self.constant(&[width], vec![1.0; width])?;
        let rows = self.node(Op::LayerNorm { epsilon }, &[&rows, &ones], rows.dtype(), rows.shape().to_vec());
        let weight = self.reshape(&rows, shape.iter().map(|&length| length.into()).collect())?;
        self.conv_with(x, &weight, None, conv)
    }

    /// Convolution with a weight `[out, in / groups, …]` and a bias `[out]` that were computed.
    ///
    /// # Errors
    /// As [`Graph::conv`].
    pub fn conv_with(
        &mut self,
        x: &Tensor,
        weight: &Tensor,
        bias: Option<&Tensor>,
        conv: &Conv,
    ) -> Result<Tensor> {
        self.channels("Conv", x, conv)?;
        let mut shape = vec![x.shape()[0].clone(), conv.out.into()];
        let windows = windows(x, &conv.op.kernel, &conv.op.stride, &conv.op.padding, &conv.op.dilation);
        self.needs_some(&windows);
        shape.extend(windows);
        let operands: Vec<_> = [x, weight].into_iter().chain(bias).collect();
        Ok(self.node(Op::Conv(conv.op.clone()), &operands, x.dtype(), shape))
    }

    /// Transposed convolution with `weight` `[in, out / groups, …]` and `bias`: `[batch, in, …]` to `[batch, out, …]`.
    ///
    /// # Errors
    /// As [`Graph::conv`].
    pub fn conv_transpose(&mut self, w: &Scope, x: &Tensor, conv: &Conv) -> Result<Tensor> {
        self.enter(w);
        let channels = self.channels("ConvTranspose", x, conv)?;
        let shape = [&[channels, conv.out / conv.op.groups], conv.op.kernel.as_slice()].concat();
        let weight = self.weight(&w.name("weight"), &shape)?;
        let bias = conv.bias.then(|| self.weight(&w.name("bias"), &[conv.out])).transpose()?;
        self.conv_transpose_with(x, &weight, bias.as_ref(), conv)
    }

    /// Transposed convolution with a weight `[in, out / groups, …]` and a bias `[out]` that were computed.
    ///
    /// # Errors
    /// As [`Graph::conv`].
    pub fn conv_transpose_with(
        &mut self,
        x: &Tensor,
        weight: &Tensor,
        bias: Option<&Tensor>,
        conv: &Conv,
    ) -> Result<Tensor> {
        self.channels("ConvTranspose", x, conv)?;
        let mut op = conv.op.clone();
        let mut shape = vec![x.shape()[0].clone(), conv.out.into()];
        for (axis, dim) in x.shape()[2..].iter().enumerate() {
            let grown = (dim.clone() - Dim::Fixed(1)) * op.stride[axis].into()
                + (op.dilation[axis] * (op.kernel[axis] - 1) + 1 + conv.output_padding[axis]).into();
            shape.push(grown - (op.padding[axis].0 + op.padding[axis].1).into());
            // Padding of the result is less cut off.
            op.padding[axis].1 = op.padding[axis].1.saturating_sub(conv.output_padding[axis]);
        }
        let operands: Vec<_> = [x, weight].into_iter().chain(bias).collect();
        Ok(self.node(Op::ConvTranspose(op), &operands, x.dtype(), shape))
    }

    /// Batch normalisation by `running_mean` and `running_var`, with `weight` and `bias`: `[batch, channels, …]`.
    ///
    /// # Errors
    /// When the number of channels is not fixed.
    pub fn batch_norm(&mut self, w: &Scope, x: &Tensor, epsilon: f64) -> Result<Tensor> {
        self.enter(w);
        let channels = self.channel_count("BatchNormalization", x)?;
        let names = ["weight", "bias", "running_mean", "running_var"].map(|name| w.name(name));
        self.unused_weight(&w.name("num_batches_tracked"));
        let mut operands = vec![x.clone()];
        for name in names {
            operands.push(self.weight(&name, &[channels])?);
        }
        let operands: Vec<_> = operands.iter().collect();
        Ok(self.node(Op::BatchNorm { epsilon }, &operands, x.dtype(), x.shape().to_vec()))
    }

    /// Group normalisation with `weight` and `bias`: `[batch, channels, …]`.
    ///
    /// # Errors
    /// When the number of channels is not a multiple of the groups.
    pub fn group_norm(&mut self, w: &Scope, x: &Tensor, groups: usize, epsilon: f64) -> Result<Tensor> {
        self.enter(w);
        let channels = self.channel_count("GroupNormalization", x)?;
        if groups == 0 || channels % groups != 0 {
            let problem = format!("{groups} groups do not divide {channels} channels");
            return Err(self.error("GroupNormalization", problem));
        }
        let scale = self.weight(&w.name("weight"), &[channels])?;
        let shift = self.weight(&w.name("bias"), &[channels])?;
        if groups == channels {
            let op = Op::InstanceNorm { epsilon };
            return Ok(self.node(op, &[x, &scale, &shift], x.dtype(), x.shape().to_vec()));
        }
        let rest = super::product(&x.shape()[1..]).floor_div(groups);
        let grouped = self.reshape(x, vec![x.shape()[0].clone(), groups.into(), rest])?;
        let ones = self.constant(&[groups], vec![1.0; groups])?;
        let zeros = self.constant(&[groups], vec![0.0; groups])?;
        let op = Op::InstanceNorm { epsilon };
        let h = self.node(op, &[&grouped, &ones, &zeros], x.dtype(), grouped.shape().to_vec());
        let h = self.reshape(&h, x.shape().to_vec())?;
        let mut by_channel = vec![Dim::Fixed(1); x.rank() - 1];
        by_channel[0] = channels.into();
        let scale = self.reshape(&scale, by_channel.clone())?;
        let shift = self.reshape(&shift, by_channel)?;
        let h = self.mul(&h, &scale)?;
        self.add(&h, &shift)
    }

    fn channel_count(&self, op: &str, x: &Tensor) -> Result<usize> {
        self.float(op, x)?;
        x.dim(1).and_then(Dim::fixed).ok_or_else(|| {
            self.error(op, format!("the second axis of {} must have a fixed length", show(x.shape())))
        })
    }

    fn channels(&self, op: &str, x: &Tensor, conv: &Conv) -> Result<usize> {
        let channels = self.channel_count(op, x)?;
        let ConvOp { kernel, stride, padding, dilation, groups } = &conv.op;
        let axes = x.rank() - 2;
        if [kernel.len(), stride.len(), padding.len(), dilation.len()] != [axes; 4] {
            let problem =
                format!("a kernel {kernel:?} does not fit {axes} spatial axes: {}", show(x.shape()));
            return Err(self.error(op, problem));
        }
        if *groups == 0 || channels % groups != 0 || !conv.out.is_multiple_of(*groups) {
            let problem = format!("{groups} groups do not divide {channels} channels and {}", conv.out);
            return Err(self.error(op, problem));
        }
        Ok(channels)
    }
}

/// How many windows there are along each spatial axis.
pub(super) fn windows(
    x: &Tensor,
    kernel: &[usize],
    stride: &[usize],
    padding: &[(usize, usize)],
    dilation: &[usize],
) -> Shape {
    let axes = x.shape()[2..].iter().enumerate();
    axes.map(|(axis, dim)| {
        let padded = dim.clone() + (padding[axis].0 + padding[axis].1).into();
        let reach = dilation[axis] * kernel[axis].saturating_sub(1) + 1;
        (padded - reach.into()).floor_div(stride[axis]) + Dim::Fixed(1)
    })
    .collect()
}

/// The zeros that [`Conv::same_padding`] puts around an axis whose length is known at run time only.
fn pad_to_windows(
    g: &mut Graph,
    x: &Tensor,
    axis: usize,
    length: Dim,
    kernel: usize,
    stride: usize,
) -> Result<Tensor> {
    // One element is left for the last window where it lacks most.
    let most = kernel - 1;
    let padded = g.pad(x, &[(axis, most / 2, most - most / 2)], PadMode::Constant(0.0))?;
    let windows = (length.clone() - Dim::Fixed(1)).floor_div(stride);
    let left = length.clone() - windows * Dim::Fixed(stride);
    let lacks = Dim::Fixed(kernel) - left.clone();
    // Half of what is lacking, of numbers that are never below 0: divisions at run time round towards it.
    let before = (Dim::Fixed(kernel) + left.clone()).floor_div(2) - left;
    let start = Dim::Fixed(most / 2) - before;
    g.slice_dims(&padded, axis, start.clone(), start + length + lacks)
}
