//! Padding of waveforms beyond their ends.

use super::EdgePadding;
use crate::graph::{Binary, Dim, Dtype, Graph, PadMode, Tensor, show};
use crate::{Result, dims};

/// x `[batch, channels, samples]` with so many more before and behind (`EncodecConv1d._pad1d`). Where there are too few to mirror,
/// zeros stand behind them.
///
/// # Errors
/// When x has other axes.
pub fn pad_edges(g: &mut Graph, x: &Tensor, left: usize, right: Dim, by: EdgePadding) -> Result<Tensor> {
    let [batch, channels, length] = x.shape() else {
        return Err(g.error("pad_edges", format!("{} is not [batch, channels, samples]", show(x.shape()))));
    };
    let (batch, channels, length) = (batch.clone(), channels.clone(), length.clone());
    if by == EdgePadding::Constant {
        let behind = right.fixed().unwrap_or_default();
        let x = match left + behind {
            0 => x.clone(),
            _ => g.pad(x, &[(2, left, behind)], PadMode::Constant(0.0))?,
        };
        if right.fixed().is_some() {
            return Ok(x);
        }
        let zeros = g.full(dims![batch, channels, right], 0.0)?;
        return g.concat(&[&x, &zeros], 2);
    }
    let count = counted(g, &length)?;
    let one = g.integer(1);
    let last = g.sub(&count, &one)?;
    let mut parts = vec![];
    if left > 0 {
        let places =
            if by == EdgePadding::Reflect { (1..=left as i64).rev().collect() } else { vec![0; left] };
        let places = g.integers(&[left], places)?;
        parts.push(edge(g, x, &places, &last, by)?);
    }
    parts.push(x.clone());
    if right != Dim::Fixed(0) {
        let all = g.arange(&(length.clone() + right.clone()));
        let mut places = g.slice_dims(&all, 0, length.clone(), length + right.clone())?;
        if by == EdgePadding::Reflect {
            // With the zeros where these are needed, so many are mirrored.
            let behind = counted(g, &right)?;
            let before = g.integer(left as i64);
            let most = g.binary(Binary::Max, &behind, &before)?;
            let least = g.add(&most, &one)?;
            let span = g.binary(Binary::Max, &count, &least)?;
            let two = g.integer(2);
            let end = g.sub(&span, &one)?;
            let twice = g.mul(&end, &two)?;
            let mirrored = g.sub(&twice, &places)?;
            let before_end = g.binary(Binary::Less, &places, &span)?;
            places = g.select(&before_end, &places, &mirrored)?;
        }
        parts.push(edge(g, x, &places, &last, by)?);
    }
    g.concat(&parts.iter().collect::<Vec<_>>(), 2)
}

/// The samples at these places; behind the last one the last one, or zeros where the waveform is mirrored.
fn edge(g: &mut Graph, x: &Tensor, places: &Tensor, last: &Tensor, by: EdgePadding) -> Result<Tensor> {
    let within = g.binary(Binary::Min, places, last)?;
    let samples = g.gather(x, &within, 2)?;
    if by == EdgePadding::Replicate {
        return Ok(samples);
    }
    let inside = g.binary(Binary::LessOrEqual, places, last)?;
    let inside = g.cast(&inside, Dtype::F32);
    g.mul(&samples, &inside)
}

/// A length as a number `[1]`.
fn counted(g: &mut Graph, length: &Dim) -> Result<Tensor> {
    if let Some(length) = length.fixed() {
        return g.integers(&[1], vec![length as i64]);
    }
    let one_more = length.clone() + Dim::Fixed(1);
    let all = g.arange(&one_more);
    g.slice_dims(&all, 0, length.clone(), one_more)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{expect, refusal};
    use super::*;

    #[test]
    fn ends_are_mirrored_with_zeros_behind_what_is_short() {
        let of = |values: &'static [f32], left: usize, right: usize, by: EdgePadding| {
            move |g: &mut Graph| {
                let x = g.constant(&[1, 1, values.len()], values.to_vec())?;
                pad_edges(g, &x, left, Dim::Fixed(right), by)
            }
        };
        let reflect = EdgePadding::Reflect;
        let four: &[f32] = &[1.0, 2.0, 3.0, 4.0];
        expect(&[], of(four, 2, 1, reflect), &[1, 1, 7], &[3.0, 2.0, 1.0, 2.0, 3.0, 4.0, 3.0]);
        expect(&[], of(&[1.0, 2.0], 3, 0, reflect), &[1, 1, 5], &[0.0, 0.0, 2.0, 1.0, 2.0]);
        let both = [0.0, 0.0, 2.0, 1.0, 2.0, 0.0, 0.0, 0.0];
        expect(&[], of(&[1.0, 2.0], 3, 3, reflect), &[1, 1, 8], &both);
        expect(&[], of(&[5.0, 6.0, 7.0], 0, 3, reflect), &[1, 1, 6], &[5.0, 6.0, 7.0, 0.0, 7.0, 6.0]);
        let replicate = EdgePadding::Replicate;
        expect(&[], of(&[1.0, 2.0], 2, 1, replicate), &[1, 1, 5], &[1.0, 1.0, 1.0, 2.0, 2.0]);
        expect(&[], of(&[1.0], 1, 2, EdgePadding::Constant), &[1, 1, 4], &[0.0, 1.0, 0.0, 0.0]);
        let problem = refusal(|g| {
            let x = g.constant(&[2], vec![0.0; 2])?;
            pad_edges(g, &x, 1, Dim::Fixed(1), reflect)
        });
        insta::assert_snapshot!(problem, @"pad_edges in the root: [2] is not [batch, channels, samples]");
    }
}
