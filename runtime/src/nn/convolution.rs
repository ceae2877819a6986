//! Blocks of convolutional networks: convolution with batch normalisation, squeeze-and-excitation, layer scale, global pooling.

use super::Activation;
use crate::graph::{Conv, Dim, Graph, Reduction, Scope, Tensor, Unary, show};
use crate::{Result, dims};

/// The weight `[out, in, kernel]` of a convolution with weight normalisation along its kernel (`weight_norm` with `dim=2`): its direction,
/// `parametrizations.weight.original1` at `w`, at the length that `original0` `[1, 1, kernel]` says.
///
/// # Errors
/// When the shape has not three axes.
pub fn weight_norm(g: &mut Graph, w: &Scope, shape: &[usize]) -> Result<Tensor> {
    let parts = w.scope("parametrizations").scope("weight");
    let &[_, _, kernel] = shape else {
        g.enter(w);
        return Err(g.error("weight_norm", format!("{shape:?} is not [out, in, kernel]")));
    };
    let magnitude = g.weight(&parts.name("original0"), &[1, 1, kernel])?;
    let direction = g.weight(&parts.name("original1"), shape)?;
    let squares = g.mul(&direction, &direction)?;
    let squares = g.reduce(Reduction::Sum, &squares, &[0, 1], true)?;
    let length = g.unary(Unary::Sqrt, &squares);
    let scale = g.div(&magnitude, &length)?;
    g.mul(&direction, &scale)
}

/// The same weight of a convolution with weight normalisation of each channel that it gives (`weight_norm`): `original0` is `[out, 1, 1]`.
///
/// # Errors
/// When the shape has not three axes.
pub fn weight_norm_by_channel(g: &mut Graph, w: &Scope, shape: &[usize]) -> Result<Tensor> {
    let parts = w.scope("parametrizations").scope("weight");
    let &[out, _, _] = shape else {
        g.enter(w);
        return Err(g.error("weight_norm_by_channel", format!("{shape:?} is not [out, in, kernel]")));
    };
    let magnitude = g.weight(&parts.name("original0"), &[out, 1, 1])?;
    let direction = g.weight(&parts.name("original1"), shape)?;
    of_length(g, &direction, &magnitude)
}

/// As [`weight_norm_by_channel`], of a module whose weight is computed by a hook (`torch.nn.utils.weight_norm`): its direction is
/// `weight_v`, the length of each channel `weight_g`.
///
/// # Errors
/// When the shape has not three axes.
pub fn weight_norm_by_hook(g: &mut Graph, w: &Scope, shape: &[usize]) -> Result<Tensor> {
    let &[out, _, _] = shape else {
        g.enter(w);
        return Err(g.error("weight_norm_by_hook", format!("{shape:?} is not [out, in, kernel]")));
    };
    let magnitude = g.weight(&w.name("weight_g"), &[out, 1, 1])?;
    let direction = g.weight(&w.name("weight_v"), shape)?;
    of_length(g, &direction, &magnitude)
}

/// A direction `[out, in, kernel]` at the length of each channel `[out, 1, 1]`.
fn of_length(g: &mut Graph, direction: &Tensor, magnitude: &Tensor) -> Result<Tensor> {
    let squares = g.mul(direction, direction)?;
    let squares = g.reduce(Reduction::Sum, &squares, &[1, 2], true)?;
    let length = g.unary(Unary::Sqrt, &squares);
    let scale = g.div(magnitude, &length)?;
    g.mul(direction, &scale)
}

/// Gated linear unit over channels (`nn.GLU(dim=1)`): the first half of x `[batch, 2·channels, …]` times the sigmoid of the second.
///
/// # Errors
/// When there is no second axis of a known length.
pub fn glu_channels(g: &mut Graph, x: &Tensor) -> Result<Tensor> {
    let Some(width) = x.shape().get(1).and_then(Dim::fixed) else {
        return Err(g.error("glu_channels", format!("{} is not [batch, channels, …]", show(x.shape()))));
    };
    let gate = g.slice(x, 1, width / 2..width)?;
    let gate = g.unary(Unary::Sigmoid, &gate);
    let h = g.slice(x, 1, 0..width / 2)?;
    g.mul(&h, &gate)
}

/// Convolution and batch normalisation (`ResNetConvLayer`): `convolution` and `normalization` of the layer at `w`.
///
/// # Errors
/// When the convolution does not fit x `[batch, channels, rows, columns]`.
pub fn conv_bn(g: &mut Graph, w: &Scope, x: &Tensor, conv: &Conv, epsilon: f64) -> Result<Tensor> {
    conv_bn_at(g, [&w.scope("convolution"), &w.scope("normalization")], x, conv, epsilon)
}

/// Convolution, batch normalisation and activation function (`ResNetConvLayer`), as [`conv_bn`].
///
/// # Errors
/// As [`conv_bn`].
pub fn conv_bn_act(
    g: &mut Graph,
    w: &Scope,
    x: &Tensor,
    conv: &Conv,
    epsilon: f64,
    act: Activation,
) -> Result<Tensor> {
    let x = conv_bn(g, w, x, conv, epsilon)?;
    g.activation(act, &x)
}

/// Convolution and batch normalisation that the checkpoint has in places of their own.
///
/// # Errors
/// As [`conv_bn`].
pub fn conv_bn_at(
    g: &mut Graph,
    [convolution, normalization]: [&Scope; 2],
    x: &Tensor,
    conv: &Conv,
    epsilon: f64,
) -> Result<Tensor> {
    let x = g.conv(convolution, x, conv)?;
    g.batch_norm(normalization, &x, epsilon)
}

/// Squeeze-and-excitation (arXiv:1709.01507; `RegNetSELayer`): each channel of x `[batch, channels, rows, columns]` times a gate,
/// the `gate` of two pointwise layers of all channels' means, `act` and `narrow` channels between them.
///
/// # Errors
/// When x has not these axes, or no fixed number of channels.
pub fn squeeze_excite(
    g: &mut Graph,
    [reduce, expand]: [&Scope; 2],
    x: &Tensor,
    narrow: usize,
    [act, gate]: [Activation; 2],
) -> Result<Tensor> {
    let channels = channels(g, "squeeze_excite", x)?;
    let h = g.reduce(Reduction::Mean, x, &[2, 3], true)?;
    let h = g.conv(reduce, &h, &Conv::new(narrow, &[1, 1]))?;
    let h = g.activation(act, &h)?;
    let h = g.conv(expand, &h, &Conv::new(channels, &[1, 1]))?;
    let h = g.activation(gate, &h)?;
    g.mul(x, &h)
}

/// Layer scale (CaiT, arXiv:2103.17239; `Dinov2LayerScale`): x `[…, width]` times the learned factors of this name, by channel.
///
/// # Errors
/// When the last axis has no fixed length.
pub fn layer_scale(g: &mut Graph, name: &str, x: &Tensor) -> Result<Tensor> {
    let Some(width) = x.dim(-1).and_then(Dim::fixed) else {
        let problem = format!("the last axis of {} must have a fixed length", show(x.shape()));
        return Err(g.error("layer_scale", problem));
    };
    let factors = g.weight(name, &[width])?;
    g.mul(x, &factors)
}

/// Layer scale of a feature map `[batch, channels, rows, columns]`, as [`layer_scale`].
///
/// # Errors
/// When x has not these axes, or no fixed number of channels.
pub fn layer_scale_2d(g: &mut Graph, name: &str, x: &Tensor) -> Result<Tensor> {
    let channels = channels(g, "layer_scale_2d", x)?;
    let factors = g.weight(name, &[channels])?;
    let factors = g.reshape(&factors, dims![channels, 1, 1])?;
    g.mul(x, &factors)
}

/// A learned scale and shift of all elements of x, both one number (`HGNetV2LearnableAffineBlock`).
///
/// # Errors
/// When x is not of floats.
pub fn learnable_affine(g: &mut Graph, w: &Scope, x: &Tensor) -> Result<Tensor> {
    let scale = g.weight(&w.name("scale"), &[1])?;
    let x = g.mul(x, &scale)?;
    let shift = g.weight(&w.name("bias"), &[1])?;
    g.add(&x, &shift)
}

/// Global average pooling (`nn.AdaptiveAvgPool2d(1)`): `[batch, channels, rows, columns]` to `[batch, channels]`.
///
/// # Errors
/// When x has not these axes.
pub fn global_avg_pool(g: &mut Graph, x: &Tensor) -> Result<Tensor> {
    g.reduce(Reduction::Mean, x, &[2, 3], false)
}

fn channels(g: &Graph, block: &str, x: &Tensor) -> Result<usize> {
    let channels = x.dim(1).and_then(Dim::fixed).filter(|_| x.rank() == 4);
    channels.ok_or_else(|| {
        g.error(
            block,
            format!("{} is not [batch, channels, rows, columns] of fixed channels", show(x.shape())),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{expect, refusal};
    use super::*;
    use crate::graph::Input;
    use crate::graph::dims::{BATCH, HEIGHT, WIDTH};

    /// Two channels of two by two.
    fn map(g: &mut Graph) -> Result<Tensor> {
        g.constant(&[1, 2, 2, 2], vec![1.0, 2.0, 3.0, 6.0, -1.0, -1.0, 0.0, 4.0])
    }

    #[test]
    fn each_channel_has_its_length() {
        let weights: [(&str, &[f32]); 2] = [
            ("w.parametrizations.weight.original0", &[10.0, 2.0]),
            ("w.parametrizations.weight.original1", &[3.0, 4.0, 0.0, 5.0]),
        ];
        let build = |g: &mut Graph| weight_norm_by_channel(g, &g.scope("w"), &[2, 1, 2]);
        expect(&weights, build, &[2, 1, 2], &[6.0, 8.0, 0.0, 2.0]);
        let hooked: [(&str, &[f32]); 2] =
            [("w.weight_g", &[10.0, 2.0]), ("w.weight_v", &[3.0, 4.0, 0.0, 5.0])];
        let build = |g: &mut Graph| weight_norm_by_hook(g, &g.scope("w"), &[2, 1, 2]);
        expect(&hooked, build, &[2, 1, 2], &[6.0, 8.0, 0.0, 2.0]);
        let problem = refusal(|g| weight_norm_by_hook(g, &g.scope("w"), &[2]));
        insta::assert_snapshot!(problem, @"weight_norm_by_hook in w: [2] is not [out, in, kernel]");
        let problem = refusal(|g| weight_norm_by_channel(g, &g.scope("w"), &[2, 2]));
        insta::assert_snapshot!(problem, @"weight_norm_by_channel in w: [2, 2] is not [out, in, kernel]");
    }

    #[test]
    fn the_second_half_of_the_channels_gates_the_first() {
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 2, 2], vec![2.0, 4.0, 0.0, 100.0])?;
            glu_channels(g, &x)
        };
        expect(&[], build, &[1, 1, 2], &[1.0, 4.0]);
        let problem = refusal(|g| {
            let x = g.constant(&[2], vec![1.0, 2.0])?;
            glu_channels(g, &x)
        });
        insta::assert_snapshot!(problem, @"glu_channels in the root: [2] is not [batch, channels, …]");
    }

    #[test]
    fn each_place_of_a_kernel_has_its_length() {
        let direction = [3.0, 1.0, 4.0, 0.0];
        let weights: [(&str, &[f32]); 2] = [
            ("w.parametrizations.weight.original0", &[10.0, 2.0]),
            ("w.parametrizations.weight.original1", &direction),
        ];
        let build = |g: &mut Graph| weight_norm(g, &g.scope("w"), &[1, 2, 2]);
        expect(&weights, build, &[1, 2, 2], &[6.0, 2.0, 8.0, 0.0]);
        let problem = refusal(|g| weight_norm(g, &g.scope("w"), &[2, 2]));
        insta::assert_snapshot!(problem, @"weight_norm in w: [2, 2] is not [out, in, kernel]");
    }

    #[test]
    fn batch_normalisation_follows_the_convolution() {
        let weights = |bias: &'static [f32]| -> [(&str, &[f32]); 5] {
            [
                // The second channel minus the first.
                ("w.convolution.weight", &[-1.0, 1.0]),
                ("w.normalization.weight", &[6.0]),
                ("w.normalization.bias", bias),
                ("w.normalization.running_mean", &[-2.0]),
                ("w.normalization.running_var", &[8.0]),
            ]
        };
        let conv = Conv::new(1, &[1, 1]).no_bias();
        let plain = |g: &mut Graph| {
            let x = map(g)?;
            conv_bn(g, &Scope::root().scope("w"), &x, &conv, 1.0)
        };
        expect(&weights(&[10.0]), plain, &[1, 1, 2, 2], &[10.0, 8.0, 8.0, 10.0]);
        let active = |g: &mut Graph| {
            let x = map(g)?;
            conv_bn_act(g, &Scope::root().scope("w"), &x, &conv, 1.0, Activation::Relu)
        };
        expect(&weights(&[1.0]), active, &[1, 1, 2, 2], &[1.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn channels_are_gated_by_the_means_of_all() {
        // The means are 3 and 0.5, the hidden layer is 4 · 3 − 2 · 0.5 − 10 = 1.
        let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
        let block = |g: &mut Graph| {
            let x = map(g)?;
            squeeze_excite(
                g,
                [&Scope::root().scope("fc1"), &Scope::root().scope("fc2")],
                &x,
                1,
                [Activation::Relu, Activation::Sigmoid],
            )
        };
        let weights: [(&str, &[f32]); 4] = [
            ("fc1.weight", &[4.0, -2.0]),
            ("fc1.bias", &[-10.0]),
            ("fc2.weight", &[1.0, -2.0]),
            ("fc2.bias", &[0.5, 0.0]),
        ];
        let (first, second) = (sigmoid(1.5), sigmoid(-2.0));
        let want = [first, 2.0 * first, 3.0 * first, 6.0 * first, -second, -second, 0.0, 4.0 * second];
        expect(&weights, block, &[1, 2, 2, 2], &want);
    }

    #[test]
    fn channels_are_scaled_where_they_are() {
        let last = |g: &mut Graph| {
            let x = map(g)?;
            layer_scale(g, "scale", &x)
        };
        let want = [10.0, 200.0, 30.0, 600.0, -10.0, -100.0, 0.0, 400.0];
        expect(&[("scale", &[10.0, 100.0])], last, &[1, 2, 2, 2], &want);
        let second = |g: &mut Graph| {
            let x = map(g)?;
            layer_scale_2d(g, "scale", &x)
        };
        let want = [10.0, 20.0, 30.0, 60.0, -100.0, -100.0, 0.0, 400.0];
        expect(&[("scale", &[10.0, 100.0])], second, &[1, 2, 2, 2], &want);
    }

    #[test]
    fn weights_of_each_channel_are_standardised() {
        let conv = Conv::new(2, &[1, 1]).no_bias();
        let standardised = |g: &mut Graph| {
            let x = map(g)?;
            g.conv_standardized(&Scope::root().scope("w"), &x, &conv, 0.0)
        };
        // (2, 6) and (5, 3) become (-1, 1) and (1, -1).
        let want = [-2.0, -3.0, -3.0, -2.0, 2.0, 3.0, 3.0, 2.0];
        expect(&[("w.weight", &[2.0, 6.0, 5.0, 3.0])], standardised, &[1, 2, 2, 2], &want);
    }

    #[test]
    fn zeros_around_a_pool_may_be_the_largest() {
        let values = vec![-1.0, -2.0, 3.0, -4.0];
        let padded = |g: &mut Graph| {
            let x = g.constant(&[1, 1, 2, 2], values.clone())?;
            g.max_pool_zero_padded(&x, 2, 1, [(1, 0), (0, 1)])
        };
        expect(&[], padded, &[1, 1, 2, 2], &[0.0, 0.0, 3.0, 0.0]);
        let same = |g: &mut Graph| {
            let x = g.constant(&[1, 1, 2, 2], values.clone())?;
            g.max_pool_same(&x, 3, 2)
        };
        expect(&[], same, &[1, 1, 1, 1], &[3.0]);
    }

    #[test]
    fn all_elements_are_scaled_and_shifted() {
        let affine = |g: &mut Graph| {
            let x = map(g)?;
            learnable_affine(g, &Scope::root().scope("lab"), &x)
        };
        let want = [3.0, 5.0, 7.0, 13.0, -1.0, -1.0, 1.0, 9.0];
        expect(&[("lab.scale", &[2.0]), ("lab.bias", &[1.0])], affine, &[1, 2, 2, 2], &want);
    }

    #[test]
    fn a_feature_map_is_averaged_over_its_positions() {
        let mean = |g: &mut Graph| {
            let x = map(g)?;
            global_avg_pool(g, &x)
        };
        expect(&[], mean, &[1, 2], &[3.0, 0.5]);
    }

    #[test]
    fn channels_must_be_fixed() {
        let scale = |g: &mut Graph| {
            let x = g.input(Input::f32("x", dims![BATCH, WIDTH, HEIGHT, WIDTH]));
            layer_scale_2d(g, "scale", &x)
        };
        insta::assert_snapshot!(refusal(scale), @"layer_scale_2d in the root: [batch, width, height, width] is not [batch, channels, rows, columns] of fixed channels");
        let gate = |g: &mut Graph| {
            let x = g.input(Input::f32("x", dims![BATCH, 8, WIDTH]));
            squeeze_excite(
                g,
                [&Scope::root(), &Scope::root()],
                &x,
                2,
                [Activation::Relu, Activation::Sigmoid],
            )
        };
        insta::assert_snapshot!(refusal(gate), @"squeeze_excite in the root: [batch, 8, width] is not [batch, channels, rows, columns] of fixed channels");
    }
}
