//! Multiscale deformable attention (Deformable DETR, arXiv:2010.04159), and the points and boxes that it is led by.

use super::Activation;
use crate::graph::{Binary, Dim, Dtype, Graph, Reduction, Scope, Tensor, Unary, show};
use crate::{Result, dims};

/// Multiscale deformable attention (`DeformableDetrMultiscaleDeformableAttention`, `RTDetrV2MultiscaleDeformableAttention`,
/// `DFineMultiscaleDeformableAttention`): each query mixes a few samples of each feature map, at offsets that it predicts from its
/// reference point.
#[derive(Clone, Copy, Debug)]
pub struct DeformableAttention<'a> {
    /// The number of heads.
    pub heads: usize,
    /// The width of queries, values and the result.
    pub width: usize,
    /// Rows and columns of each level's feature map.
    pub levels: &'a [[Dim; 2]],
    /// The number of sampling points in each level.
    pub points: &'a [usize],
    /// Where reference points are boxes: how far an offset of all points reaches, in parts of the box.
    pub offset_scale: f64,
    /// Where reference points are boxes: the buffer at the weights' scope with a factor for each point (`n_points_scale`), where it is
    /// not one divided by the number of the level's points.
    pub points_scale: Option<&'a str>,
    /// Whether samples are one place's value, half a place on and rounded down, not between four (`decoder_method: discrete`).
    pub discrete: bool,
    /// Whether values and the result have projections, `value_proj` and `output_proj`.
    pub projected: bool,
    /// The positions of the feature maps that are no padding, whose values are 0: `[batch, positions]` bool.
    pub mask: Option<&'a Tensor>,
}

impl<'a> DeformableAttention<'a> {
    /// Bilinear samples, offsets of half a box, projections, no mask.
    pub fn new(heads: usize, width: usize, levels: &'a [[Dim; 2]], points: &'a [usize]) -> Self {
        Self {
            heads,
            width,
            levels,
            points,
            offset_scale: 0.5,
            points_scale: None,
            discrete: false,
            projected: true,
            mask: None,
        }
    }

    /// Attention of `query` `[batch, queries, width]` over `memory` `[batch, positions, width]`, the feature maps one after the
    /// other, by reference points `[batch, queries, levels, 2]`, across and down in parts of each map, or boxes
    /// `[batch, queries, levels, 4]`; of one level where all share it: `[batch, queries, width]`.
    ///
    /// # Errors
    /// When the heads do not divide the width, there are not as many numbers of points as levels, or the shapes do not fit.
    pub fn forward(
        &self,
        g: &mut Graph,
        w: &Scope,
        query: &Tensor,
        memory: &Tensor,
        reference: &Tensor,
    ) -> Result<Tensor> {
        g.enter(w);
        let (heads, total) = (self.heads, self.points.iter().sum::<usize>());
        let size = self.width / heads.max(1);
        let [batch, queries, _] = query.shape() else {
            return Err(g.error("DeformableAttention", format!("queries are {}", show(query.shape()))));
        };
        if size * heads != self.width || self.points.len() != self.levels.len() {
            let problem = format!("{heads} heads, {} levels, points {:?}", self.levels.len(), self.points);
            return Err(g.error("DeformableAttention", format!("{problem} do not fit width {}", self.width)));
        }
        let value = match self.projected {
            true => g.linear(&w.scope("value_proj"), memory, self.width)?,
            false => memory.clone(),
        };
        let value = match self.mask {
            Some(mask) => {
                let (mask, zero) = (g.unsqueeze(mask, 2)?, g.scalar(0.0));
                g.select(&mask, &value, &zero)?
            }
            None => value,
        };
        let offsets = g.linear(&w.scope("sampling_offsets"), query, heads * total * 2)?;
        let offsets = g.reshape(&offsets, dims![batch, queries, heads, total, 2])?;
        let weights = g.linear(&w.scope("attention_weights"), query, heads * total)?;
        let weights = g.reshape(&weights, dims![batch, queries, heads, total])?;
        let weights = g.softmax(&weights)?;
        let factors = match self.points_scale {
            Some(name) => Some(g.weight(&w.name(name), &[total])?),
            None => None,
        };
        g.enter(w);
        let folded = batch.clone() * heads.into();
        let (mut samples, mut start, mut first) = (vec![], Dim::Fixed(0), 0);
        for (level, ([rows, columns], &points)) in self.levels.iter().zip(self.points).enumerate() {
            let end = start.clone() + rows.clone() * columns.clone();
            let map = g.slice_dims(&value, 1, start, end.clone())?;
            let map = g.transpose(&map, &[0, 2, 1])?;
            let map = g.reshape(&map, dims![&folded, size, rows, columns])?;
            let offset = g.slice(&offsets, 3, first..first + points)?;
            let factors = match &factors {
                Some(factors) => {
                    let factors = g.slice(factors, 0, first..first + points)?;
                    g.unsqueeze(&factors, 1)?
                }
                None => g.scalar((points as f32).recip()),
            };
            let place = self.places(g, &offset, reference, level, &factors)?;
            let place = g.transpose(&place, &[0, 2, 1, 3, 4])?;
            let place = g.reshape(&place, dims![&folded, queries, points, 2])?;
            samples.push(g.grid_sample(&map, &place, false)?);
            (start, first) = (end, first + points);
        }
        let samples = g.concat(&samples.iter().collect::<Vec<_>>(), 3)?;
        let weights = g.transpose(&weights, &[0, 2, 1, 3])?;
        let weights = g.reshape(&weights, dims![&folded, 1, queries, total])?;
        let weighted = g.mul(&samples, &weights)?;
        let sum = g.reduce(Reduction::Sum, &weighted, &[3], false)?;
        let sum = g.reshape(&sum, dims![batch, self.width, queries])?;
        let sum = g.transpose(&sum, &[0, 2, 1])?;
        match self.projected {
            true => g.linear(&w.scope("output_proj"), &sum, self.width),
            false => Ok(sum),
        }
    }

    /// Where a level is sampled, as [`Graph::grid_sample`] has it: `[batch, queries, heads, points, 2]`.
    fn places(
        &self,
        g: &mut Graph,
        offset: &Tensor,
        reference: &Tensor,
        level: usize,
        factors: &Tensor,
    ) -> Result<Tensor> {
        let [rows, columns] = &self.levels[level];
        let edges = edges(g, rows, columns)?;
        let level = if reference.dim(2) == Some(&Dim::Fixed(1)) { 0 } else { level };
        let reference = g.slice(reference, 2, level..level + 1)?;
        let reference = g.unsqueeze(&reference, 3)?;
        let middle = g.slice(&reference, 4, 0..2)?;
        let offset = match reference.dim(4) {
            Some(Dim::Fixed(4)) => {
                let extent = g.slice(&reference, 4, 2..4)?;
                let offset = g.mul(offset, factors)?;
                let offset = g.scale(&offset, self.offset_scale)?;
                g.mul(&offset, &extent)?
            }
            _ => g.div(offset, &edges)?,
        };
        let mut place = g.add(&middle, &offset)?;
        if self.discrete {
            // The middle of a place within the map.
            let (zero, half, one) = (g.scalar(0.0), g.scalar(0.5), g.scalar(1.0));
            let index = g.mul(&place, &edges)?;
            let index = g.add(&index, &half)?;
            let index = g.unary(Unary::Floor, &index);
            let last = g.sub(&edges, &one)?;
            let index = g.binary(Binary::Max, &index, &zero)?;
            let index = g.binary(Binary::Min, &index, &last)?;
            let index = g.add(&index, &half)?;
            place = g.div(&index, &edges)?;
        }
        let one = g.scalar(1.0);
        let place = g.scale(&place, 2.0)?;
        g.sub(&place, &one)
    }
}

/// Columns and rows as numbers: `[2]`.
fn edges(g: &mut Graph, rows: &Dim, columns: &Dim) -> Result<Tensor> {
    let edges = [g.length(columns)?, g.length(rows)?];
    let edges = [g.reshape(&edges[0], dims![1])?, g.reshape(&edges[1], dims![1])?];
    g.concat(&[&edges[0], &edges[1]], 0)
}

/// The middles of a feature map's places, across and down in parts of the map: `[1, rows * columns, 2]`.
///
/// # Errors
/// Never; as [`Graph::expand`].
pub fn reference_points(g: &mut Graph, rows: &Dim, columns: &Dim) -> Result<Tensor> {
    let half = g.scalar(0.5);
    let shape = dims![rows, columns, 1];
    let mut middles = vec![];
    for (length, shape_of_axis) in [(columns, dims![1, columns, 1]), (rows, dims![rows, 1, 1])] {
        let positions = g.arange(length);
        let positions = g.cast(&positions, Dtype::F32);
        let middle = g.add(&positions, &half)?;
        let length = g.length(length)?;
        let middle = g.div(&middle, &length)?;
        let middle = g.reshape(&middle, shape_of_axis)?;
        middles.push(g.expand(&middle, shape.clone())?);
    }
    let middles = g.concat(&[&middles[0], &middles[1]], 2)?;
    g.reshape(&middles, dims![1, rows.clone() * columns.clone(), 2])
}

/// The logarithm of odds (`inverse_sigmoid`) of x, which is held between 0 and 1, and both odds to `epsilon` at least.
///
/// # Errors
/// When x is not f32.
pub fn inverse_sigmoid(g: &mut Graph, x: &Tensor, epsilon: f32) -> Result<Tensor> {
    let one = g.scalar(1.0);
    let least = g.scalar(epsilon);
    let x = g.clip(x, 0.0, 1.0)?;
    let rest = g.sub(&one, &x)?;
    let x = g.binary(Binary::Max, &x, &least)?;
    let rest = g.binary(Binary::Max, &rest, &least)?;
    let odds = g.div(&x, &rest)?;
    Ok(g.unary(Unary::Log, &odds))
}

/// Boxes moved by `deltas` in the space of logits (iterative refinement, `DeformableDetrDecoder`): `deltas` `[…, 4]` on boxes
/// `[…, 4]`, or on points `[…, 2]`, whose widths and heights come of `deltas` alone; `[…, 4]`.
///
/// # Errors
/// When the axes differ.
pub fn refine_boxes(g: &mut Graph, boxes: &Tensor, deltas: &Tensor) -> Result<Tensor> {
    let known = inverse_sigmoid(g, boxes, 1e-5)?;
    let moved = match boxes.dim(-1) {
        Some(Dim::Fixed(4)) => g.add(deltas, &known)?,
        _ => {
            let axis = deltas.rank().saturating_sub(1);
            let parts = g.split(deltas, axis, &[2, 2])?;
            let middle = g.add(&parts[0], &known)?;
            g.concat(&[&middle, &parts[1]], axis)?
        }
    };
    g.activation(Activation::Sigmoid, &moved)
}

/// Rows of x `[batch, positions, width]` at the indices `[batch, rows]` i64 of each item: `[batch, rows, width]`.
///
/// # Errors
/// When the shapes do not fit.
pub fn gather_rows(g: &mut Graph, x: &Tensor, indices: &Tensor) -> Result<Tensor> {
    let ([_, _, width], [batch, rows]) = (x.shape(), indices.shape()) else {
        let problem = format!("{} at {}", show(x.shape()), show(indices.shape()));
        return Err(
            g.error("gather_rows", format!("{problem} are not [batch, positions, width] and [batch, rows]"))
        );
    };
    let shape = dims![batch, rows, width];
    let indices = g.unsqueeze(indices, 2)?;
    let indices = g.expand(&indices, shape)?;
    g.gather_elements(x, &indices, 1)
}

#[cfg(test)]
mod tests;
