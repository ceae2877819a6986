//! Images as sequences of patches (Vision Transformer, arXiv:2010.11929): patch embedding, tokens beside the patches, position
//! embeddings at other resolutions, mask tokens, and the way back to pixels.

use crate::graph::dims::{HEIGHT, WIDTH};
use crate::graph::{Conv, Dim, Graph, Input, Interpolation, Reduction, Scope, Tensor, show};
use crate::{Result, dims};

/// The input `pixel_values` of a model whose position embeddings can be interpolated: `[batch, channels, size, size]`, of any
/// height and width where `interpolate_pos_encoding` was asked for.
pub fn interpolable_pixel_values(g: &mut Graph, batch: Dim, channels: usize, size: usize) -> Tensor {
    let shape = match g.interpolate_pos_encoding() {
        true => dims![batch, channels, HEIGHT, WIDTH],
        false => dims![batch, channels, size, size],
    };
    g.input(Input::f32("pixel_values", shape))
}

/// Patch embedding (`ViTPatchEmbeddings`): the convolution `conv` over `pixels` `[batch, channels, height, width]`, flattened row
/// by row to `[batch, rows * columns, width]`; and its rows and columns.
///
/// # Errors
/// When `pixels` are not four axes with a fixed number of channels, or `conv` has not two.
pub fn patch_embedding(g: &mut Graph, w: &Scope, pixels: &Tensor, conv: &Conv) -> Result<(Tensor, [Dim; 2])> {
    let map = g.conv(w, pixels, conv)?;
    let x = flatten_feature_map(g, &map)?;
    Ok((x, [map.shape()[2].clone(), map.shape()[3].clone()]))
}

/// A feature map `[batch, channels, rows, columns]` as a sequence, row by row: `[batch, rows * columns, channels]`.
///
/// # Errors
/// When the map has not four axes.
pub fn flatten_feature_map(g: &mut Graph, map: &Tensor) -> Result<Tensor> {
    if map.rank() != 4 {
        let problem = format!("{} is not [batch, channels, rows, columns]", show(map.shape()));
        return Err(g.error("flatten_feature_map", problem));
    }
    let x = g.flatten(map, 2..4)?;
    g.transpose(&x, &[0, 2, 1])
}

/// A sequence `[batch, rows * columns, channels]` as a feature map: `[batch, channels, rows, columns]`.
///
/// # Errors
/// When the sequence has not three axes, or another length.
pub fn unflatten_feature_map(g: &mut Graph, x: &Tensor, [rows, columns]: &[Dim; 2]) -> Result<Tensor> {
    let [batch, _, channels] = x.shape() else {
        let problem = format!("{} is not [batch, positions, channels]", show(x.shape()));
        return Err(g.error("unflatten_feature_map", problem));
    };
    let shape = dims![batch, channels, rows, columns];
    let x = g.transpose(x, &[0, 2, 1])?;
    g.reshape(&x, shape)
}

/// Learned tokens before a sequence, such as class, distillation and register tokens (`ViTEmbeddings`): each `[width]` or
/// `[1, count, width]`, repeated over the batch and put before x `[batch, positions, width]` in this order.
///
/// # Errors
/// When x has not three axes, or a token another width.
pub fn prepend_tokens(g: &mut Graph, tokens: &[&Tensor], x: &Tensor) -> Result<Tensor> {
    let [batch, _, _] = x.shape() else {
        return Err(
            g.error("prepend_tokens", format!("{} is not [batch, positions, width]", show(x.shape())))
        );
    };
    let mut parts = vec![];
    for token in tokens {
        parts.push(expand_tokens(g, token, batch)?);
    }
    parts.push(x.clone());
    g.concat(&parts.iter().collect::<Vec<_>>(), 1)
}

/// Learned tokens `[width]` or `[1, count, width]`, the same for the whole batch: `[batch, count, width]`.
///
/// # Errors
/// When the tokens have another shape.
pub fn expand_tokens(g: &mut Graph, tokens: &Tensor, batch: &Dim) -> Result<Tensor> {
    let (one, [.., width]) = (Dim::Fixed(1), tokens.shape()) else {
        return Err(g.error("expand_tokens", "a number is no token"));
    };
    let shape = dims![batch, tokens.dim(-2).unwrap_or(&one), width];
    g.expand(tokens, shape)
}

/// Position embeddings of a `trained` grid of patches at another one (`interpolate_pos_encoding`), bicubic and without
/// antialiasing: `[layers, positions, width]`, or `[positions, width]` for one layer, to
/// `[layers, prefix + rows * columns + suffix, width]`. Those of the `prefix` tokens before the patches and of what comes behind
/// them stay as they are, and so do all where the grid is the trained one.
///
/// # Errors
/// When there are fewer positions than that, or their number is not fixed.
pub fn interpolate_pos_encoding(
    g: &mut Graph,
    positions: &Tensor,
    prefix: usize,
    trained: [usize; 2],
    grid: [Dim; 2],
) -> Result<Tensor> {
    if grid == trained.map(Dim::Fixed) {
        return Ok(positions.clone());
    }
    let positions = if positions.rank() == 2 { &g.unsqueeze(positions, 0)? } else { positions };
    let patches = prefix..prefix + trained[0] * trained[1];
    let all = positions.dim(1).and_then(Dim::fixed).unwrap_or_default();
    let x = g.slice(positions, 1, patches.clone())?;
    let x = unflatten_feature_map(g, &x, &trained.map(Dim::Fixed))?;
    let x = g.resize(&x, grid, Interpolation::Bicubic, false)?;
    let x = flatten_feature_map(g, &x)?;
    let mut parts = vec![];
    if prefix > 0 {
        parts.push(g.slice(positions, 1, 0..prefix)?);
    }
    parts.push(x);
    if patches.end < all {
        parts.push(g.slice(positions, 1, patches.end..all)?);
    }
    g.concat(&parts.iter().collect::<Vec<_>>(), 1)
}

/// Position embeddings of a `trained` grid `[1, rows * columns, width]` at another one by weights over its rows and columns, those of
/// [`interpolation_weights`](crate::image::interpolation_weights): `[1, new rows * new columns, width]`.
///
/// # Errors
/// When the positions are not those of the grid, or a weight is not `[new, trained]`.
pub fn interpolate_by_weights(
    g: &mut Graph,
    positions: &Tensor,
    trained: [usize; 2],
    weights: [&Tensor; 2],
) -> Result<Tensor> {
    let width = positions.dim(-1).cloned().unwrap_or(Dim::Fixed(0));
    let [rows, columns] = weights.map(|weights| weights.dim(0).cloned().unwrap_or(Dim::Fixed(0)));
    let [down, across] = weights;
    let x = g.reshape(positions, dims![trained[0], Dim::from(trained[1]) * width.clone()])?;
    let x = g.matmul(down, &x)?;
    let x = g.reshape(&x, dims![&rows, trained[1], &width])?;
    let x = g.matmul(across, &x)?;
    g.reshape(&x, dims![1, rows * columns, width])
}

/// Mask tokens (`bool_masked_pos`): where `masked` `[batch, patches]` holds, the learned token of this name replaces the patch of
/// x `[batch, patches, width]`.
///
/// # Errors
/// When the shapes do not go together, or the width is not fixed.
pub fn mask_patches(g: &mut Graph, token: &str, x: &Tensor, masked: &Tensor) -> Result<Tensor> {
    let ([batch, patches, _], Some(width)) = (x.shape(), x.dim(-1).and_then(Dim::fixed)) else {
        let problem = format!("{} is not [batch, patches, width] of a fixed width", show(x.shape()));
        return Err(g.error("mask_patches", problem));
    };
    let token = g.weight(token, &[1, 1, width])?;
    let masked = g.reshape(masked, dims![batch, patches, 1])?;
    g.select(&masked, &token, x)
}

/// Mean pooling over patches (`BeitPooler`), of x `[batch, prefix + patches, width]` without the `prefix` tokens before them:
/// `[batch, width]`.
///
/// # Errors
/// When x has not three axes.
pub fn mean_patches(g: &mut Graph, x: &Tensor, prefix: usize) -> Result<Tensor> {
    let [_, positions, _] = x.shape() else {
        return Err(g.error("mean_patches", format!("{} is not [batch, positions, width]", show(x.shape()))));
    };
    let patches = if prefix == 0 { x } else { &g.slice_dims(x, 1, prefix.into(), positions.clone())? };
    g.reduce(Reduction::Mean, patches, &[1], false)
}

/// Features of images or audio in the places of a text's placeholder tokens (`masked_scatter` of `LlavaModel`): rows of x
/// `[batch, sequence, width]` and of `features` `[count, width]`, one list, picked by `indices` `[batch, sequence]`.
///
/// # Errors
/// When the widths differ.
pub fn merge_features(g: &mut Graph, x: &Tensor, features: &Tensor, indices: &Tensor) -> Result<Tensor> {
    let text = g.flatten(x, 0..2)?;
    let all = g.concat(&[&text, features], 0)?;
    g.gather(&all, indices, 0)
}

/// Pixel shuffle (`nn.PixelShuffle`): the channels of each position become a square of `factor` by `factor` pixels,
/// `[batch, channels * factor², rows, columns]` to `[batch, channels, rows * factor, columns * factor]`.
///
/// # Errors
/// When x has not four axes, or its channels are not a multiple of the square.
pub fn pixel_shuffle(g: &mut Graph, x: &Tensor, factor: usize) -> Result<Tensor> {
    let ([batch, channels, rows, columns], square) = (x.shape(), factor * factor) else {
        let problem = format!("{} is not [batch, channels, rows, columns]", show(x.shape()));
        return Err(g.error("pixel_shuffle", problem));
    };
    let Some(channels) = channels.fixed().filter(|all| square > 0 && all % square == 0) else {
        let problem = format!("{channels} channels are not a multiple of {square}, the pixels of a square");
        return Err(g.error("pixel_shuffle", problem));
    };
    let (batch, channels) = (batch.clone(), channels / square);
    let whole = [rows, columns].map(|length| length.clone() * factor.into());
    let x = g.reshape(x, dims![&batch, channels, factor, factor, rows, columns])?;
    let x = g.transpose(&x, &[0, 1, 4, 2, 5, 3])?;
    g.reshape(&x, dims![batch, channels, &whole[0], &whole[1]])
}

/// Pixel unshuffle of a square of patches (`pixel_shuffle` of `InternVLModel`, `Idefics3Connector`): squares of `factor` by
/// `factor` patches become channels, columns within rows; `[images, side², width]` to `[images, (side / factor)², factor² * width]`.
///
/// # Errors
/// When x has not three axes of which the last two are fixed, is no square, or `factor` does not divide its side.
pub fn pixel_unshuffle(g: &mut Graph, x: &Tensor, factor: usize) -> Result<Tensor> {
    let [images, Dim::Fixed(patches), Dim::Fixed(width)] = x.shape() else {
        let problem =
            format!("{} is not [images, patches, width] of fixed patches and width", show(x.shape()));
        return Err(g.error("pixel_unshuffle", problem));
    };
    let (images, patches, width, side) = (images.clone(), *patches, *width, patches.isqrt());
    if side * side != patches || factor == 0 || !side.is_multiple_of(factor) {
        let problem = format!("{patches} patches are no square whose side is a multiple of {factor}");
        return Err(g.error("pixel_unshuffle", problem));
    }
    let few = side / factor;
    let x = g.reshape(x, dims![&images, few, factor, few, factor * width])?;
    let x = g.transpose(&x, &[0, 1, 3, 2, 4])?;
    g.reshape(&x, dims![images, few * few, factor * factor * width])
}

#[cfg(test)]
mod tests;
