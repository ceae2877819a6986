//! Contrastive learning (CLIP, arXiv:2103.00020): unit vectors, and their scaled products as logits.

use crate::Result;
use crate::graph::{Graph, Reduction, Tensor, Unary};

/// L2 normalisation over the last axis (`x / x.norm(dim=-1, keepdim=True)`), in single precision: squares do not fit into half.
///
/// # Errors
/// When x is a number.
pub fn l2_normalize(g: &mut Graph, x: &Tensor) -> Result<Tensor> {
    g.in_single(|g| {
        let squares = g.mul(x, x)?;
        let sum = g.reduce(Reduction::Sum, &squares, &[x.rank().saturating_sub(1)], true)?;
        let length = g.unary(Unary::Sqrt, &sum);
        g.div(x, &length)
    })
}

/// Contrastive logits (`CLIPModel`): the products of embeddings a `[a, width]` and b `[b, width]`, times the exponential of the
/// learned `logit_scale`, a number: `[a, b]`.
///
/// # Errors
/// When the widths differ.
pub fn contrastive_logits(g: &mut Graph, a: &Tensor, b: &Tensor, logit_scale: &Tensor) -> Result<Tensor> {
    let scale = g.unary(Unary::Exp, logit_scale);
    let across = g.transpose(b, &[1, 0])?;
    let cosines = g.matmul(a, &across)?;
    g.mul(&cosines, &scale)
}

/// Vector quantisation (`VectorQuantizer` of VQGAN, arXiv:2012.09841): of vectors x `[.., width]` the index of the nearest of the
/// codes `[codes, width]`, `[..]` i64.
///
/// # Errors
/// When the widths differ.
pub fn nearest_codes(g: &mut Graph, x: &Tensor, codes: &Tensor) -> Result<Tensor> {
    // Of squares of distances, that of the vector itself is the same for all codes: the nearest has the largest 2·x·e - e².
    // Nearly equal numbers of half precision would be equal.
    let nearness = g.in_single(|g| {
        let across = g.transpose(codes, &[1, 0])?;
        let products = g.matmul(x, &across)?;
        let products = g.scale(&products, 2.0)?;
        let squares = g.mul(codes, codes)?;
        let squares = g.reduce(Reduction::Sum, &squares, &[1], false)?;
        g.sub(&products, &squares)
    })?;
    g.argmax(&nearness, x.rank().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{expect, refusal};
    use super::*;

    #[test]
    fn rows_get_length_one() {
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 2, 2], vec![3.0, 4.0, 0.0, -5.0])?;
            l2_normalize(g, &x)
        };
        expect(&[], build, &[1, 2, 2], &[0.6, 0.8, 0.0, -1.0]);
        let number = |g: &mut Graph| {
            let x = g.scalar(2.0);
            l2_normalize(g, &x)
        };
        insta::assert_snapshot!(refusal(number), @"ReduceSum in the root: [] has no axis 0");
    }

    #[test]
    fn logits_are_scaled_products_of_each_pair() {
        let build = |g: &mut Graph| {
            let a = g.constant(&[1, 2], vec![1.0, 2.0])?;
            let b = g.constant(&[3, 2], vec![1.0, 0.0, 0.0, 1.0, 1.0, -1.0])?;
            let scale = g.weight("logit_scale", &[])?;
            contrastive_logits(g, &a, &b, &scale)
        };
        expect(&[("logit_scale", &[10.0_f32.ln()])], build, &[1, 3], &[10.0, 20.0, -10.0]);
    }

    #[test]
    fn the_nearest_code_is_no_long_one() {
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 3, 2], vec![1.0, 1.0, -1.0, 0.0, 9.0, 9.0])?;
            let codes = g.constant(&[3, 2], vec![9.0, 8.0, -2.0, 0.5, 1.0, 0.5])?;
            let nearest = nearest_codes(g, &x, &codes)?;
            Ok(g.cast(&nearest, crate::Dtype::F32))
        };
        expect(&[], build, &[1, 3], &[2.0, 1.0, 0.0]);
    }
}
