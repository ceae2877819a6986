//! Time series: scaling by their own statistics, and patches of them.

use crate::graph::{Binary, Dim, Dtype, Graph, Reduction, Tensor, Unary};
use crate::{Result, dims};

/// A time series that was scaled, with what undoes it.
#[derive(Clone, Debug)]
pub struct ScaledSeries {
    /// The scaled values, of the shape of those given.
    pub values: Tensor,
    /// What was subtracted: `[batch, 1, …]`.
    pub loc: Tensor,
    /// What the values were divided by: `[batch, 1, …]`.
    pub scale: Tensor,
}

/// Scales time series by their statistics over time (`TimeSeriesStdScaler`, `TimeSeriesMeanScaler`, `TimeSeriesNOPScaler`):
/// `values` and `observed`, true where a value was observed, `[batch, time, …]`; `scaling` is `std`, `mean` or none.
///
/// # Errors
/// When the shapes differ.
pub fn scale_series(
    g: &mut Graph,
    values: &Tensor,
    observed: &Tensor,
    scaling: Option<&str>,
) -> Result<ScaledSeries> {
    let seen = g.cast(observed, Dtype::F32);
    let known = g.mul(values, &seen)?;
    let (zero, one) = (g.scalar(0.0), g.scalar(1.0));
    let count = g.reduce(Reduction::Sum, &seen, &[1], true)?;
    let at_least_one = g.binary(Binary::Max, &count, &one)?;
    match scaling {
        Some("std") => {
            let sum = g.reduce(Reduction::Sum, &known, &[1], true)?;
            let loc = g.div(&sum, &at_least_one)?;
            let centred = g.sub(values, &loc)?;
            let known = g.mul(&centred, &seen)?;
            let squares = g.mul(&known, &known)?;
            let variance = g.reduce(Reduction::Sum, &squares, &[1], true)?;
            let variance = g.div(&variance, &at_least_one)?;
            let minimum = g.scalar(1e-5);
            let variance = g.add(&variance, &minimum)?;
            let scale = g.unary(Unary::Sqrt, &variance);
            Ok(ScaledSeries { values: g.div(&centred, &scale)?, loc, scale })
        }
        Some(_) => {
            let magnitude = g.unary(Unary::Abs, &known);
            let sum = g.reduce(Reduction::Sum, &magnitude, &[1], true)?;
            let own = g.div(&sum, &at_least_one)?;
            // What nothing was observed of has the scale of the batch.
            let all = g.reduce(Reduction::Sum, &sum, &[0], true)?;
            let all_count = g.reduce(Reduction::Sum, &count, &[0], true)?;
            let all_count = g.binary(Binary::Max, &all_count, &one)?;
            let of_batch = g.div(&all, &all_count)?;
            let any = g.binary(Binary::Greater, &count, &zero)?;
            let scale = g.select(&any, &own, &of_batch)?;
            let minimum = g.scalar(1e-10);
            let scale = g.binary(Binary::Max, &scale, &minimum)?;
            let loc = g.mul(&scale, &zero)?;
            Ok(ScaledSeries { values: g.div(values, &scale)?, loc, scale })
        }
        None => {
            let loc = g.mul(&count, &zero)?;
            let scale = g.add(&loc, &one)?;
            Ok(ScaledSeries { values: values.clone(), loc, scale })
        }
    }
}

/// The last patches of a series (`PatchTSTPatchify`): values `[batch, context, channels]` to
/// `[batch, channels, patches, patch_length]`, a patch each `stride`.
///
/// # Errors
/// When the series has not three axes, its length is not fixed, or shorter than a patch.
pub fn patchify_series(g: &mut Graph, values: &Tensor, patch_length: usize, stride: usize) -> Result<Tensor> {
    let [batch, Dim::Fixed(context), channels] = values.shape() else {
        return Err(g.error("patchify_series", "a series is [batch, context, channels], its context fixed"));
    };
    if patch_length > *context {
        return Err(g.error(
            "patchify_series",
            format!("patches of {patch_length} do not fit a context of {context}"),
        ));
    }
    let (batch, channels, stride) = (batch.clone(), channels.clone(), stride.max(1));
    let patches = (context - patch_length) / stride + 1;
    let start = context - (patch_length + stride * (patches - 1));
    let positions =
        (0..patches).flat_map(|p| (0..patch_length).map(move |i| (start + p * stride + i) as i64));
    let positions = g.integers(&[patches * patch_length], positions.collect())?;
    let x = g.gather(values, &positions, 1)?;
    let x = g.transpose(&x, &[0, 2, 1])?;
    g.reshape(&x, dims![batch, channels, patches, patch_length])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{expect, refusal};

    fn series(g: &mut Graph) -> Result<(Tensor, Tensor)> {
        let values = g.constant(&[2, 3, 1], vec![1.0, 3.0, 100.0, 7.0, 8.0, 9.0])?;
        let observed = g.constant(&[2, 3, 1], vec![1.0, 1.0, 0.0, 0.0, 0.0, 0.0])?;
        Ok((values, observed))
    }

    #[test]
    fn observed_values_alone_give_mean_and_deviation() {
        let part = |pick: fn(ScaledSeries) -> Tensor, scaling: Option<&'static str>| {
            move |g: &mut Graph| {
                let (values, observed) = series(g)?;
                Ok(pick(scale_series(g, &values, &observed, scaling)?))
            }
        };
        expect(&[], part(|s| s.loc, Some("std")), &[2, 1, 1], &[2.0, 0.0]);
        expect(&[], part(|s| s.scale, Some("std")), &[2, 1, 1], &[1.00001_f32.sqrt(), 1e-5_f32.sqrt()]);
        // The second has no value of its own, and the scale of both.
        expect(&[], part(|s| s.scale, Some("mean")), &[2, 1, 1], &[2.0, 2.0]);
        expect(&[], part(|s| s.values, Some("mean")), &[2, 3, 1], &[0.5, 1.5, 50.0, 3.5, 4.0, 4.5]);
        expect(&[], part(|s| s.scale, None), &[2, 1, 1], &[1.0, 1.0]);
        expect(&[], part(|s| s.values, None), &[2, 3, 1], &[1.0, 3.0, 100.0, 7.0, 8.0, 9.0]);
    }

    #[test]
    fn patches_end_with_the_series() {
        let build = |g: &mut Graph| {
            let values = g.constant(&[1, 6, 2], (0..12).map(|i| i as f32).collect())?;
            patchify_series(g, &values, 3, 2)
        };
        // Of six values the first is left out: 1, 2, 3 and 3, 4, 5 of each channel.
        let want = [2.0, 4.0, 6.0, 6.0, 8.0, 10.0, 3.0, 5.0, 7.0, 7.0, 9.0, 11.0];
        expect(&[], build, &[1, 2, 2, 3], &want);
    }

    #[test]
    fn a_patch_fits_the_series() {
        let problem = refusal(|g| {
            let values = g.constant(&[1, 2, 1], vec![1.0, 2.0])?;
            patchify_series(g, &values, 3, 1)
        });
        insta::assert_snapshot!(problem, @"patchify_series in the root: patches of 3 do not fit a context of 2");
    }
}
