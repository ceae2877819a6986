//! Masks of pixels in the sizes of feature maps.

use crate::graph::{Dim, Graph, Reduction, Tensor, Unary};
use crate::{Dtype, Result, dims};

/// Nearest interpolation of a mask (`torch.nn.functional.interpolate` with `mode="nearest"`): of `[batch, height, width]` the
/// pixels at `floor(place * height / rows)` and `floor(place * width / columns)`, `[batch, rows, columns]` f32.
///
/// `Resize` of ONNX divides by `rows / height` in single precision instead: of 42 pixels in six rows the third would be pixel
/// 20, not 21.
///
/// # Errors
/// When the mask has not these axes.
pub fn nearest_mask(g: &mut Graph, mask: &Tensor, size: &[Dim; 2]) -> Result<Tensor> {
    let [_, height, width] = mask.shape() else {
        return Err(g.error("nearest_mask", format!("a mask has 3 axes, not {}", mask.shape().len())));
    };
    let whole = [height.clone(), width.clone()];
    let mut mask = mask.clone();
    for (axis, (whole, count)) in whole.iter().zip(size).enumerate() {
        let (step, parts) = (g.length(whole)?, g.length(count)?);
        let step = g.div(&step, &parts)?;
        let places = g.arange(count);
        let places = g.cast(&places, Dtype::F32);
        let places = g.mul(&places, &step)?;
        let places = g.unary(Unary::Floor, &places);
        let places = g.cast(&places, Dtype::I64);
        mask = g.gather(&mask, &places, 1 + axis)?;
    }
    Ok(g.cast(&mask, Dtype::F32))
}

/// How much of a map is no padding, across and down, by its first row and column (`get_valid_ratio`): mask `[batch, rows, columns]`
/// f32 to `[batch, 1, 2]`.
///
/// # Errors
/// When the mask has not these axes.
pub fn valid_ratio(g: &mut Graph, mask: &Tensor) -> Result<Tensor> {
    let [batch, rows, columns] = mask.shape() else {
        return Err(g.error("valid_ratio", format!("a mask has 3 axes, not {}", mask.shape().len())));
    };
    let (batch, lengths) = (batch.clone(), [(1, columns.clone()), (2, rows.clone())]);
    let mut ratios = vec![];
    for (axis, length) in lengths {
        let edge = g.slice_dims(mask, axis, 0.into(), 1.into())?;
        let count = g.reduce(Reduction::Sum, &edge, &[1, 2], false)?;
        let length = g.length(&length)?;
        let ratio = g.div(&count, &length)?;
        ratios.push(g.reshape(&ratio, dims![&batch, 1, 1])?);
    }
    g.concat(&[&ratios[0], &ratios[1]], 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::expect;

    #[test]
    fn pixels_are_those_of_the_reference() {
        // F.interpolate(torch.arange(42.).view(1, 1, 1, 42), (1, 6)), and of 7 columns in 5.
        let row = |count: usize, parts: usize| {
            move |g: &mut Graph| {
                let values = g.constant(&[count], (0..count).map(|x| x as f32).collect())?;
                let values = g.reshape(&values, dims![1, 1, count])?;
                nearest_mask(g, &values, &[Dim::Fixed(1), Dim::Fixed(parts)])
            }
        };
        expect(&[], row(42, 6), &[1, 1, 6], &[0.0, 7.0, 14.0, 21.0, 28.0, 35.0]);
        expect(&[], row(7, 5), &[1, 1, 5], &[0.0, 1.0, 2.0, 4.0, 5.0]);
        let error =
            nearest_mask(&mut Graph::new(), &Graph::new().scalar(1.0), &[Dim::Fixed(1), Dim::Fixed(1)]);
        assert!(error.unwrap_err().to_string().contains("3 axes, not 0"));
    }

    #[test]
    fn ratios_are_those_of_the_first_row_and_column() {
        let ratios = |g: &mut Graph| {
            let mask = g.constant(&[1, 2, 4], vec![1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0])?;
            valid_ratio(g, &mask)
        };
        expect(&[], ratios, &[1, 1, 2], &[0.75, 0.5]);
        let error = valid_ratio(&mut Graph::new(), &Graph::new().scalar(1.0));
        assert!(error.unwrap_err().to_string().contains("3 axes, not 0"));
    }
}
