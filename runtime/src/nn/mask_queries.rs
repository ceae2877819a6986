//! Masks of queries (MaskFormer, arXiv:2107.06278).

use crate::graph::{Binary, Dtype, Graph, Reduction, Tensor, show};
use crate::{Result, dims};

/// Mask logits of queries `[batch, queries, channels]` on a map `[batch, channels, rows, columns]`: `[batch, queries, rows, columns]`
/// (`einsum("bqc,bchw->bqhw")`).
///
/// # Errors
/// When the shapes do not fit.
pub fn mask_logits(g: &mut Graph, queries: &Tensor, map: &Tensor) -> Result<Tensor> {
    let ([batch, count, _], [_, channels, rows, columns]) = (queries.shape(), map.shape()) else {
        let problem = format!("queries {} do not fit a map {}", show(queries.shape()), show(map.shape()));
        return Err(g.error("mask_logits", problem));
    };
    let shape = dims![batch, count, rows, columns];
    let places = dims![batch, channels, rows.clone() * columns.clone()];
    let map = g.reshape(map, places)?;
    let logits = g.matmul(queries, &map)?;
    g.reshape(&logits, shape)
}

/// The boxes around masks (`mask_to_box_coordinate` of PP-DocLayoutV3): where logits `[batch, queries, rows, columns]` are above 0, centre,
/// width and height relative to the map, `[batch, queries, 4]`; zeros where no place is.
///
/// # Errors
/// When the logits have not these axes.
pub fn mask_boxes(g: &mut Graph, logits: &Tensor) -> Result<Tensor> {
    let [_, _, rows, columns] = logits.shape() else {
        return Err(g.error(
            "mask_boxes",
            format!("{} is not [batch, queries, rows, columns]", show(logits.shape())),
        ));
    };
    let (rows, columns) = (rows.clone(), columns.clone());
    let [zero, one, most] = [g.scalar(0.0), g.scalar(1.0), g.scalar(f32::MAX)];
    let inside = g.binary(Binary::Greater, logits, &zero)?;
    let share = g.cast(&inside, Dtype::F32);
    let any = g.reduce(Reduction::Max, &share, &[2, 3], false)?;
    let mut ends = vec![];
    for (length, shape) in [(&columns, dims![1, 1, 1, &columns]), (&rows, dims![1, 1, &rows, 1])] {
        let places = g.arange(length);
        let places = g.cast(&places, Dtype::F32);
        let places = g.reshape(&places, shape)?;
        let kept = g.mul(&share, &places)?;
        let last = g.reduce(Reduction::Max, &kept, &[2, 3], false)?;
        let last = g.add(&last, &one)?;
        let others = g.select(&inside, &places, &most)?;
        let first = g.reduce(Reduction::Min, &others, &[2, 3], false)?;
        let length = g.length(length)?;
        let mut relative = |end: &Tensor| {
            let end = g.mul(end, &any)?;
            g.div(&end, &length)
        };
        let (first, last) = (relative(&first)?, relative(&last)?);
        let sum = g.add(&first, &last)?;
        ends.push((g.scale(&sum, 0.5)?, g.sub(&last, &first)?));
    }
    let [(across, width), (down, height)] = &ends[..] else { return Ok(any) };
    let parts = [across, down, width, height].map(|part| g.unsqueeze(part, 2));
    let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
    g.concat(&parts.iter().collect::<Vec<_>>(), 2)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{expect, refusal};
    use super::*;

    #[test]
    fn each_query_weighs_the_channels_of_each_place() {
        let masks = |g: &mut Graph| {
            let queries = g.constant(&[1, 2, 2], vec![1.0, 10.0, -1.0, 0.0])?;
            let map = g.constant(&[1, 2, 1, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
            mask_logits(g, &queries, &map)
        };
        expect(&[], masks, &[1, 2, 1, 3], &[41.0, 52.0, 63.0, -1.0, -2.0, -3.0]);
    }

    #[test]
    fn a_map_without_rows_is_refused() {
        let text = refusal(|g| {
            let queries = g.constant(&[1, 1, 1], vec![1.0])?;
            mask_logits(g, &queries, &queries)
        });
        assert!(text.contains("do not fit a map [1, 1, 1]"), "{text}");
    }

    #[test]
    fn boxes_are_around_what_is_above_0() {
        let build = |g: &mut Graph| {
            let mut first = vec![-1.0; 8];
            first[5] = 0.5;
            first[6] = 2.0;
            let logits = g.constant(&[1, 2, 2, 4], [first, vec![0.0; 8]].concat())?;
            mask_boxes(g, &logits)
        };
        // In the second row, the second and third of four columns; then nothing.
        expect(&[], build, &[1, 2, 4], &[0.5, 0.75, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0]);
    }
}
