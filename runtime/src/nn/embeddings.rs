//! Sums of embeddings: of tokens, token types, positions.

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
}
