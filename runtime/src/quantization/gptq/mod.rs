//! GPTQ: codes of a linear layer that err least in what the layer gives for inputs that were seen (Frantar et al., 2023).
//!
//! Of weights w and their codes' values q, `(w − q) · H · (w − q)ᵀ` is what a row's outputs are off by in all, squared, where H
//! is the Gram matrix of the inputs. With `H = R · Rᵀ`, R upper triangular, the columns of `(w − q) · R` are made small one by
//! one: each depends on the columns before it and its own. That is the paper's update of the columns that are left, without the
//! inverse of H; columns go in the order of how large their inputs are (`actorder` `static` of compressed-tensors), and scales
//! are those of the weights as they were.

mod factor;
#[cfg(test)]
mod tests;

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, s};

use super::rounding::Rounding;
use factor::upper_factor;

/// Columns whose errors are carried to the rest at once.
const BLOCK: usize = 32;

/// What is added to the diagonal of H, as a part of its mean; ten times as much where H is not positive definite with it.
const DAMPING: [f32; 4] = [0.01, 0.1, 1.0, 10.0];

/// The codes of a weight's rows, a byte each, with the scales and zero points of their blocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Codes {
    pub codes: Vec<u8>,
    pub scales: Vec<f32>,
    pub zeros: Vec<u8>,
}

/// What the inputs of linear layers tell: their Gram matrix `[in, in]`, factored.
pub(super) struct Inputs {
    /// Columns, those with the largest inputs first.
    order: Vec<usize>,
    /// The factor of the damped matrix, its columns in order.
    factor: Array2<f32>,
}

impl Inputs {
    /// By the Gram matrix `[in, in]`; none where the inputs were nothing, or no numbers.
    pub(super) fn new(gram: &[f32]) -> Option<Self> {
        let columns = gram.len().isqrt();
        let size = |column: usize| gram[column * (columns + 1)];
        let mut order: Vec<usize> = (0..columns).collect();
        order.sort_by(|a, b| size(*b).total_cmp(&size(*a)));
        let mean = (0..columns).map(size).sum::<f32>() / columns as f32;
        if !mean.is_normal() {
            return None;
        }
        let damped = |damping: f32| {
            Array2::from_shape_fn((columns, columns), |(i, j)| {
                let size = gram[order[i] * columns + order[j]] / mean;
                if i == j { size + damping } else { size }
            })
        };
        let factor = DAMPING.into_iter().find_map(|damping| upper_factor(damped(damping)))?;
        Some(Self { order, factor })
    }

    /// The codes of a weight `[out, in]`; none where a scale is not finite.
    pub(super) fn codes(&self, weight: &[f32], rounding: Rounding) -> Option<Codes> {
        let Self { order, factor } = self;
        let columns = order.len();
        let (out, blocks) = (weight.len() / columns.max(1), columns.div_ceil(rounding.group));
        let mut made = scaled(weight, columns, rounding)?;
        // Columns of the weight as rows, in order; and what the columns before each have left of error in it.
        let ordered = Array2::from_shape_fn((columns, out), |(j, row)| weight[row * columns + order[j]]);
        let mut errors = Array2::<f32>::zeros((columns, out));
        let mut end = 0;
        while end < columns {
            let start = end;
            end = (start + BLOCK).min(columns);
            let mut off = Array2::<f32>::zeros((end - start, out));
            for j in start..end {
                let (block, pivot) = (order[j] / rounding.group, factor[[j, j]]);
                for row in 0..out {
                    let at = row * blocks + block;
                    let wanted = ordered[[j, row]] + errors[[j, row]] / pivot;
                    let (code, value) = rounding.nearest(wanted, made.scales[at], made.zeros[at]);
                    made.codes[row * columns + order[j]] = code;
                    off[[j - start, row]] = ordered[[j, row]] - value;
                }
                let own = off.row(j - start);
                for k in j + 1..end {
                    errors.row_mut(k).scaled_add(factor[[j, k]], &own);
                }
            }
            let right = factor.slice(s![start..end, end..]);
            general_mat_mul(1.0, &right.t(), &off, 1.0, &mut errors.slice_mut(s![end.., ..]));
        }
        Some(made)
    }
}

/// The scales and zero points of all blocks, with the nearest codes.
fn scaled(weight: &[f32], columns: usize, rounding: Rounding) -> Option<Codes> {
    let mut made = Codes { codes: vec![0; weight.len()], ..Codes::default() };
    let rows = weight.chunks(columns).zip(made.codes.chunks_mut(columns));
    let blocks =
        rows.flat_map(|(row, codes)| row.chunks(rounding.group).zip(codes.chunks_mut(rounding.group)));
    for (values, codes) in blocks {
        let (scale, zero) = rounding.unpacked(values, codes);
        if !scale.is_finite() || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        made.scales.push(scale);
        made.zeros.push(zero);
    }
    Some(made)
}
