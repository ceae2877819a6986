//! Sums of embeddings, of tokens, token types and positions, and embeddings of bounding boxes.

use crate::Result;
use crate::graph::{Dim, Graph, Scope, Tensor, show};

/// Adds an embedding (`BertEmbeddings`): to x `[batch, sequence, width]` the rows of the table `[rows, width]` at `w` that ids
/// `[batch, sequence]` pick.
///
/// # Errors
/// When x has no fixed width, or the ids do not go with it.
pub fn add_embedding(g: &mut Graph, w: &Scope, x: &Tensor, ids: &Tensor, rows: usize) -> Result<Tensor> {
    let Some(width) = x.dim(-1).and_then(Dim::fixed) else {
        g.enter(w);
        return Err(g.error("add_embedding", format!("{} has no fixed width", show(x.shape()))));
    };
    let rows = g.embedding(w, ids, rows, width)?;
    g.add(x, &rows)
}

/// Bounding box embeddings (`LayoutLMEmbeddings`, `LiltLayoutEmbeddings`): of boxes `[batch, sequence, 4]` i64 (left, upper, right
/// and lower edge, each below `rows`) the embeddings `[batch, sequence, width]` of left, upper, right and lower edge, height and
/// width. The tables `[rows, width]` at `w` are `x_…`, `y_…`, `h_…` and `w_position_embeddings`; both edges of an axis share one.
///
/// # Errors
/// When the last axis is none of four.
pub fn bbox_embeddings(
    g: &mut Graph,
    w: &Scope,
    bbox: &Tensor,
    rows: usize,
    width: usize,
) -> Result<[Tensor; 6]> {
    if bbox.dim(-1).and_then(Dim::fixed) != Some(4) {
        g.enter(w);
        return Err(
            g.error("bbox_embeddings", format!("{} is no list of boxes of 4 edges", show(bbox.shape())))
        );
    }
    let axis = bbox.shape().len() - 1;
    let [left, upper, right, lower] = [0, 1, 2, 3].map(|edge| g.take(bbox, axis, edge));
    let (left, upper, right, lower) = (left?, upper?, right?, lower?);
    let (tall, wide) = (g.sub(&lower, &upper)?, g.sub(&right, &left)?);
    let mut of = |axis: &str, length: &Tensor| {
        g.embedding(&w.scope(&format!("{axis}_position_embeddings")), length, rows, width)
    };
    Ok([
        of("x", &left)?,
        of("y", &upper)?,
        of("x", &right)?,
        of("y", &lower)?,
        of("h", &tall)?,
        of("w", &wide)?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims;
    use crate::graph::Input;
    use crate::graph::dims::{BATCH, SEQUENCE};
    use crate::nn::testing::{expect, refusal};

    #[test]
    fn rows_are_added_by_their_ids() {
        let table = [0.5, 0.25, 9.0, 9.0, 10.0, 20.0];
        let build = |g: &mut Graph| {
            let x = g.constant(&[1, 3, 2], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
            let ids = g.integers(&[1, 3], vec![2, 0, 2])?;
            add_embedding(g, &g.scope("position_embeddings"), &x, &ids, 3)
        };
        let want = [11.0, 22.0, 3.5, 4.25, 15.0, 26.0];
        expect(&[("position_embeddings.weight", &table)], build, &[1, 3, 2], &want);
    }

    #[test]
    fn a_width_is_needed() {
        let problem = refusal(|g| {
            let x = g.input(Input::f32("x", dims![BATCH, SEQUENCE]));
            let ids = g.integers(&[1], vec![0])?;
            add_embedding(g, &g.scope("embeddings"), &x, &ids, 3)
        });
        insta::assert_snapshot!(problem, @"add_embedding in embeddings: [batch, sequence] has no fixed width");
    }

    #[test]
    fn boxes_have_embeddings_of_their_edges_height_and_width() {
        let tables: [(&str, &[f32]); 4] = [
            ("embeddings.x_position_embeddings.weight", &[0.0, 1.0, 2.0, 3.0]),
            ("embeddings.y_position_embeddings.weight", &[0.0, 10.0, 20.0, 30.0]),
            ("embeddings.h_position_embeddings.weight", &[0.0, 100.0, 200.0, 300.0]),
            ("embeddings.w_position_embeddings.weight", &[0.5, 1000.0, 2000.0, 3000.0]),
        ];
        let build = |g: &mut Graph| {
            let bbox = g.integers(&[1, 2, 4], vec![1, 0, 3, 3, 2, 1, 2, 3])?;
            let of = bbox_embeddings(g, &Scope::root().scope("embeddings"), &bbox, 4, 1)?;
            g.concat(&of.each_ref(), 2)
        };
        // Left, upper, right, lower edge, height, width.
        let want = [1.0, 0.0, 3.0, 30.0, 300.0, 2000.0, 2.0, 10.0, 2.0, 30.0, 200.0, 0.5];
        expect(&tables, build, &[1, 2, 6], &want);
    }

    #[test]
    fn a_box_has_four_edges() {
        let problem = refusal(|g| {
            let bbox = g.integers(&[1, 1, 3], vec![0, 0, 0])?;
            bbox_embeddings(g, &Scope::root().scope("embeddings"), &bbox, 4, 1)
        });
        insta::assert_snapshot!(problem, @"bbox_embeddings in embeddings: [1, 1, 3] is no list of boxes of 4 edges");
    }
}
