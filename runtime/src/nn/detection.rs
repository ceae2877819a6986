//! Blocks of detection transformers (DETR, arXiv:2005.12872).

use super::{Activation, merge_heads, reference_points, split_heads, split_last};
use crate::graph::{Binary, Dim, Dtype, Graph, Reduction, Scope, Tensor, Unary};
use crate::{Result, dims};

/// The MLP of class logits or boxes (`DetrMLPPredictionHead`): three linear layers at `0`, `1` and `2` of `layers`, ReLU between
/// them, x `[…, width]` to `[…, out]`.
///
/// # Errors
/// When the last axis of x has no fixed length.
pub fn mlp_prediction_head(
    g: &mut Graph,
    layers: &Scope,
    x: &Tensor,
    width: usize,
    out: usize,
) -> Result<Tensor> {
    let h = g.linear(&layers.index(0), x, width)?;
    let h = g.activation(Activation::Relu, &h)?;
    let h = g.linear(&layers.index(1), &h, width)?;
    let h = g.activation(Activation::Relu, &h)?;
    g.linear(&layers.index(2), &h, out)
}

/// Sinusoidal embeddings of coordinates from 0 to 1 (`encode_sinusoidal_position_embedding`): `[…, coordinates]` to
/// `[…, coordinates * width]`, sines and cosines in turn, that of down before that of across.
///
/// # Errors
/// When the last axis has no fixed length.
pub fn coordinate_embeddings(g: &mut Graph, x: &Tensor, width: usize) -> Result<Tensor> {
    let axis = x.rank().saturating_sub(1);
    let coordinates = x.dim(-1).and_then(Dim::fixed).unwrap_or_default();
    let half = width / 2;
    let wavelengths = (0..half).map(|pair| 10_000_f32.powf((2 * pair) as f32 / width as f32)).collect();
    let wavelengths = g.constant(&[half], wavelengths)?;
    let mut shape = x.shape()[..axis].to_vec();
    shape.push(width.into());
    let mut parts = vec![];
    for coordinate in 0..coordinates {
        let angle = g.slice(x, axis, coordinate..coordinate + 1)?;
        let angle = g.scale(&angle, 2.0 * std::f64::consts::PI)?;
        let angle = g.div(&angle, &wavelengths)?;
        let waves = [Unary::Sin, Unary::Cos].map(|wave| g.unary(wave, &angle));
        let waves = [g.unsqueeze(&waves[0], axis + 1)?, g.unsqueeze(&waves[1], axis + 1)?];
        let waves = g.concat(&[&waves[0], &waves[1]], axis + 1)?;
        parts.push(g.reshape(&waves, shape.clone())?);
    }
    if coordinates > 1 {
        parts.swap(0, 1);
    }
    g.concat(&parts.iter().collect::<Vec<_>>(), axis)
}

/// Two-dimensional sinusoidal position embeddings of a feature map without padding (`Mask2FormerSinePositionEmbedding`): sines and
/// cosines in turn of the row, then of the column, `[1, rows * columns, width]`. Places are counted from 1, in parts of all.
///
/// # Errors
/// Never; as [`coordinate_embeddings`].
pub fn sine_positions(g: &mut Graph, [rows, columns]: [&Dim; 2], width: usize) -> Result<Tensor> {
    let (one, least) = (g.scalar(1.0), g.scalar(1e-6));
    let mut ends = vec![];
    for (length, shape) in [(columns, dims![1, columns, 1]), (rows, dims![rows, 1, 1])] {
        let places = g.arange(length);
        let places = g.cast(&places, Dtype::F32);
        let places = g.add(&places, &one)?;
        let all = g.length(length)?;
        let all = g.add(&all, &least)?;
        let places = g.div(&places, &all)?;
        let places = g.reshape(&places, shape)?;
        ends.push(g.expand(&places, dims![rows, columns, 1])?);
    }
    let ends = g.concat(&[&ends[0], &ends[1]], 2)?;
    let ends = g.reshape(&ends, dims![1, rows.clone() * columns.clone(), 2])?;
    coordinate_embeddings(g, &ends, width / 2)
}

/// Two-dimensional sinusoidal position embeddings of a grid (`build_2d_sinusoidal_position_embedding`): sines and cosines of the row,
/// then of the column, `[1, rows * columns, width]`.
///
/// # Errors
/// When the width is no multiple of 4.
pub fn sine_grid(
    g: &mut Graph,
    [rows, columns]: [&Dim; 2],
    width: usize,
    temperature: f64,
) -> Result<Tensor> {
    let quarter = width / 4;
    if quarter * 4 != width {
        return Err(g.error("sine_grid", format!("a width of {width} is no multiple of 4")));
    }
    let frequencies: Vec<f32> =
        (0..quarter).map(|index| temperature.powf(-(index as f64) / quarter as f64) as f32).collect();
    let mut parts = vec![];
    for (length, shape) in [(rows, dims![rows, 1, quarter]), (columns, dims![1, columns, quarter])] {
        let positions = g.arange(length);
        for wave in [Unary::Sin, Unary::Cos] {
            let waves = g.angles(&positions, wave, &frequencies, 1.0)?;
            let waves = g.reshape(&waves, shape.clone())?;
            parts.push(g.expand(&waves, dims![rows, columns, quarter])?);
        }
    }
    let all = g.concat(&parts.iter().collect::<Vec<_>>(), 2)?;
    g.reshape(&all, dims![1, rows.clone() * columns.clone(), width])
}

/// Anchors at the places of feature maps (`RTDetrModel.generate_anchors`), in logits: centre, width and height `[1, positions, 4]`, as
/// large as `size` in the first map and twice that in each further one; and 1 where all of them lie within the image, or else 0,
/// `[1, positions, 1]` f32. The others are the largest number.
///
/// # Errors
/// When there is no map.
pub fn anchors(g: &mut Graph, levels: &[[Dim; 2]], size: f32) -> Result<(Tensor, Tensor)> {
    let mut boxes = vec![];
    for (level, [rows, columns]) in levels.iter().enumerate() {
        let middles = reference_points(g, rows, columns)?;
        let extent = g.full(middles.shape().to_vec(), size * 2_f32.powi(level as i32))?;
        boxes.push(g.concat(&[&middles, &extent], 2)?);
    }
    let boxes = g.concat(&boxes.iter().collect::<Vec<_>>(), 1)?;
    logits_within(g, &boxes)
}

/// Anchors as quadrilaterals (`PPDocLayoutV4Model.generate_anchors`), in logits: squares around the places of feature maps by their centre
/// and corners, `[1, positions, 10]`, as large as `size` in the first map and twice that in each further one; and 1 where all of
/// them lie within the image, or else 0, `[1, positions, 1]` f32.
///
/// # Errors
/// When there is no map.
pub fn quadrilateral_anchors(g: &mut Graph, levels: &[[Dim; 2]], size: f32) -> Result<(Tensor, Tensor)> {
    let mut quads = vec![];
    for (level, [rows, columns]) in levels.iter().enumerate() {
        let middles = reference_points(g, rows, columns)?;
        let half = size * 2_f32.powi(level as i32) / 2.0;
        let [low, high] = [0.5 - half, 0.5 + half];
        let corners = g.constant(&[1, 1, 8], vec![low, low, high, low, high, high, low, high])?;
        let corners = g.expand(&corners, dims![1, &middles.shape()[1], 8])?;
        quads.push(g.concat(&[&middles, &corners], 2)?);
    }
    let quads = g.concat(&quads.iter().collect::<Vec<_>>(), 1)?;
    logits_within(g, &quads)
}

/// Logits of coordinates where all of a place lie within the image, or else the largest number, and 1 there and 0 elsewhere.
fn logits_within(g: &mut Graph, boxes: &Tensor) -> Result<(Tensor, Tensor)> {
    let [least, most] = [Reduction::Min, Reduction::Max].map(|by| g.reduce(by, boxes, &[2], true));
    let (low, high) = (g.scalar(0.01), g.scalar(1.0 - 0.01));
    let above = g.binary(Binary::Greater, &least?, &low)?;
    let below = g.binary(Binary::Less, &most?, &high)?;
    let valid = g.binary(Binary::And, &above, &below)?;
    let (one, half, far) = (g.scalar(1.0), g.scalar(0.5), g.scalar(f32::MAX));
    let boxes = g.select(&valid, boxes, &half)?;
    let rest = g.sub(&one, &boxes)?;
    let odds = g.div(&boxes, &rest)?;
    let logits = g.unary(Unary::Log, &odds);
    Ok((g.select(&valid, &logits, &far)?, g.cast(&valid, Dtype::F32)))
}

/// The boxes around quadrilaterals `[batch, queries, 10]`, whose centre these keep (`quad_to_rect` of PP-DocLayoutV4): centre, width and
/// height, `[batch, queries, 4]`.
///
/// # Errors
/// When the shape is another.
pub fn quadrilateral_boxes(g: &mut Graph, quads: &Tensor) -> Result<Tensor> {
    let mut parts = vec![g.slice(quads, 2, 0..2)?];
    for start in [2, 3] {
        let ends = (0..4).map(|corner| g.slice(quads, 2, start + 2 * corner..start + 2 * corner + 1));
        let ends = ends.collect::<Result<Vec<_>>>()?;
        let ends = g.concat(&ends.iter().collect::<Vec<_>>(), 2)?;
        let [least, most] = [Reduction::Min, Reduction::Max].map(|by| g.reduce(by, &ends, &[2], true));
        parts.push(g.sub(&most?, &least?)?);
    }
    g.concat(&parts.iter().collect::<Vec<_>>(), 2)
}

/// Logits of classes `[batch, queries, classes]` plus what the certainty of four edges says (`DFineLQE`): of the shares of distances `edges`
/// `[batch, queries, 4, bins]` the `top` largest and their mean, through `[layers, width]` linear layers with ReLU between them.
///
/// # Errors
/// When there are fewer bins than `top`.
pub fn location_quality(
    g: &mut Graph,
    w: &Scope,
    [logits, edges]: [&Tensor; 2],
    top: usize,
    [layers, width]: [usize; 2],
) -> Result<Tensor> {
    let shape = dims![&logits.shape()[0], &logits.shape()[1], 4 * (top + 1)];
    let (best, _) = g.top_k(edges, top)?;
    let mean = g.reduce(Reduction::Mean, &best, &[3], true)?;
    let all = g.concat(&[&best, &mean], 3)?;
    let mut x = g.reshape(&all, shape)?;
    for index in 0..layers {
        let last = index + 1 == layers;
        x = g.linear(&w.scope("reg_conf.layers").index(index), &x, if last { 1 } else { width })?;
        x = if last { x } else { g.activation(Activation::Relu, &x)? };
    }
    g.add(logits, &x)
}

/// Boxes `[…, 4]` that are moved by parts of their extents and made larger by powers of e (`refine_bboxes` of LW-DETR): centre, width
/// and height.
///
/// # Errors
/// When the shapes do not fit.
pub fn refine_extents(g: &mut Graph, boxes: &Tensor, deltas: &Tensor) -> Result<Tensor> {
    let axis = boxes.rank().saturating_sub(1);
    let [middle, extent] = split_last(g, boxes, [2, 2])?;
    let [shift, growth] = split_last(g, deltas, [2, 2])?;
    let shift = g.mul(&shift, &extent)?;
    let middle = g.add(&shift, &middle)?;
    let growth = g.unary(Unary::Exp, &growth);
    let extent = g.mul(&growth, &extent)?;
    g.concat(&[&middle, &extent], axis)
}

/// Two halves of each head side by side (`ConditionalDetrDecoderCrossAttention`): `content` and `place`
/// `[batch, positions, heads·size]` to `[batch, positions, heads·2·size]`.
///
/// # Errors
/// When the heads do not divide the width, or the shapes differ.
pub fn concat_heads(g: &mut Graph, content: &Tensor, place: &Tensor, heads: usize) -> Result<Tensor> {
    let content = split_heads(g, content, heads)?;
    let place = split_heads(g, place, heads)?;
    let both = g.concat(&[&content, &place], 3)?;
    merge_heads(g, &both)
}

#[cfg(test)]
mod tests {
    use super::super::testing::expect;
    use super::*;

    #[test]
    fn boxes_move_by_their_extents_and_grow_by_powers() {
        let refined = |g: &mut Graph| {
            let boxes = g.constant(&[1, 4], vec![0.5, 0.25, 0.2, 0.4])?;
            let deltas = g.constant(&[1, 4], vec![0.5, -0.25, 0.0, 2_f32.ln()])?;
            refine_extents(g, &boxes, &deltas)
        };
        expect(&[], refined, &[1, 4], &[0.6, 0.15, 0.2, 0.8]);
    }

    #[test]
    fn boxes_are_around_quadrilaterals() {
        let around = |g: &mut Graph| {
            let quads = g.constant(&[1, 1, 10], vec![0.5, 0.4, 0.1, 0.2, 0.7, 0.3, 0.6, 0.8, 0.2, 0.9])?;
            quadrilateral_boxes(g, &quads)
        };
        expect(&[], around, &[1, 1, 4], &[0.5, 0.4, 0.6, 0.7]);
    }

    #[test]
    fn squares_beyond_the_image_are_no_anchors() {
        // One place, whose square is 0.5 wide: corners at 0.25 and 0.75 are ∓ln 3 in logits.
        let logits = |g: &mut Graph| Ok(quadrilateral_anchors(g, &[[Dim::Fixed(1), Dim::Fixed(1)]], 0.5)?.0);
        let corner = 3_f32.ln();
        let corners = [-1.0, -1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 1.0].map(|sign| sign * corner);
        expect(&[], logits, &[1, 1, 10], &[&[0.0, 0.0], &corners[..]].concat());
        let whole = |g: &mut Graph| Ok(quadrilateral_anchors(g, &[[Dim::Fixed(1), Dim::Fixed(1)]], 1.0)?.1);
        expect(&[], whole, &[1, 1, 1], &[0.0]);
    }

    #[test]
    fn certain_edges_add_to_logits() {
        let build = |g: &mut Graph| {
            let logits = g.constant(&[1, 1, 2], vec![1.0, -1.0])?;
            let edges =
                g.constant(&[1, 1, 4, 3], vec![0.1, 0.7, 0.2, 0.5, 0.3, 0.2, 0.2, 0.2, 0.6, 0.1, 0.8, 0.1])?;
            location_quality(g, &Scope::root(), [&logits, &edges], 1, [1, 4])
        };
        // The largest share of each edge and its mean, which is the same: 0.7 + 0.5 + 0.6 + 0.8 twice.
        let weights: [(&str, &[f32]); 2] =
            [("reg_conf.layers.0.weight", &[1.0; 8]), ("reg_conf.layers.0.bias", &[0.3])];
        expect(&weights, build, &[1, 1, 2], &[6.5, 4.5]);
    }

    #[test]
    fn three_layers_have_relu_between_them_and_none_behind() {
        let weights: [(&str, &[f32]); 6] = [
            ("layers.0.weight", &[1.0, -1.0]),
            ("layers.0.bias", &[0.0, 5.0]),
            ("layers.1.weight", &[2.0, 1.0, -3.0, 0.0]),
            ("layers.1.bias", &[1.0, 2.0]),
            ("layers.2.weight", &[-1.0, 4.0]),
            ("layers.2.bias", &[-0.5]),
        ];
        let build = |g: &mut Graph| {
            let x = g.constant(&[2, 1], vec![2.0, -1.0])?;
            mlp_prediction_head(g, &Scope::root().scope("layers"), &x, 2, 1)
        };
        // (2, 3) and (0, 6); then (8, 0) and (7, 2).
        expect(&weights, build, &[2, 1], &[-8.5, 0.5]);
    }

    #[test]
    fn coordinates_are_waves_of_down_before_across() {
        let embedded = |g: &mut Graph| {
            let x = g.constant(&[1, 3], vec![0.25, 0.0, 0.5])?;
            coordinate_embeddings(g, &x, 4)
        };
        // Wavelengths are 1 and 100.
        let (quarter, half) = (std::f32::consts::PI / 200.0, std::f32::consts::PI / 100.0);
        let down = [0.0, 1.0, 0.0, 1.0];
        let across = [1.0, 0.0, quarter.sin(), quarter.cos()];
        let width = [0.0, -1.0, half.sin(), half.cos()];
        expect(&[], embedded, &[1, 12], &[down, across, width].concat());
    }

    #[test]
    fn halves_of_each_head_lie_side_by_side() {
        let joined = |g: &mut Graph| {
            let content = g.constant(&[1, 1, 4], vec![1.0, 2.0, 3.0, 4.0])?;
            let place = g.constant(&[1, 1, 4], vec![5.0, 6.0, 7.0, 8.0])?;
            concat_heads(g, &content, &place, 2)
        };
        expect(&[], joined, &[1, 1, 8], &[1.0, 2.0, 5.0, 6.0, 3.0, 4.0, 7.0, 8.0]);
    }

    #[test]
    fn rows_come_before_columns_in_a_grid() {
        let grid = |g: &mut Graph| sine_grid(g, [&Dim::Fixed(2), &Dim::Fixed(2)], 8, 100.0);
        let (s, c) = (1.0_f32.sin(), 1.0_f32.cos());
        let (t, d) = (0.1_f32.sin(), 0.1_f32.cos());
        let (zero, one) = ([0.0, 0.0, 1.0, 1.0], [s, t, c, d]);
        let want = [[zero, zero], [zero, one], [one, zero], [one, one]].concat().concat();
        expect(&[], grid, &[1, 4, 8], &want);
    }

    #[test]
    fn positions_of_a_map_are_waves_of_its_rows_and_columns() {
        let positions = |g: &mut Graph| sine_positions(g, [&Dim::Fixed(1), &Dim::Fixed(2)], 4);
        // The only row ends the map, and so does the second column.
        let (s, c) = (0.0, 1.0);
        let want = [[s, c, s, -c], [s, c, s, c]].concat();
        let Some((shape, found)) = super::super::testing::evaluate(&[], positions) else { return };
        assert_eq!(shape, [1, 2, 4]);
        assert!(found.iter().zip(&want).all(|(found, want)| (found - want).abs() < 1e-5), "{found:?}");
    }

    #[test]
    fn anchors_lie_at_places_and_double_from_level_to_level() {
        let levels = [[Dim::Fixed(1), Dim::Fixed(2)], [Dim::Fixed(1), Dim::Fixed(1)]];
        let logit = |x: f32| (x / (1.0 - x)).ln();
        let boxes = |g: &mut Graph| Ok(anchors(g, &levels, 0.25)?.0);
        let (quarter, rest) = (logit(0.25), logit(0.75));
        let want = [[quarter, 0.0, quarter, quarter], [rest, 0.0, quarter, quarter], [0.0, 0.0, 0.0, 0.0]];
        expect(&[], boxes, &[1, 3, 4], &want.concat());
        // Half an image, doubled, is too large.
        let valid = |g: &mut Graph| Ok(anchors(g, &levels, 0.5)?.1);
        expect(&[], valid, &[1, 3, 1], &[1.0, 1.0, 0.0]);
    }
}
