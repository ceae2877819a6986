//! Tables as tokens: which of them are of one cell, and which cells answer a question (`TapasForQuestionAnswering`; Herzig et
//! al., 2020, arXiv:2004.02349).

use crate::Result;
use crate::graph::{Binary, Dim, Dtype, Graph, Reduction, Scope, Tensor};

/// `CLOSE_ENOUGH_TO_LOG_ZERO`.
const LOG_ZERO: f64 = -10_000.0;

/// Whether two tokens are of one cell: bool `[batch, sequence, sequence]` of rows and columns `[batch, sequence]` i64
/// (`ProductIndexMap`).
///
/// # Errors
/// When these have not two axes.
pub fn same_cell(g: &mut Graph, rows: &Tensor, columns: &Tensor) -> Result<Tensor> {
    let mut same = |index: &Tensor| {
        let (own, others) = (g.unsqueeze(index, 2)?, g.unsqueeze(index, 1)?);
        g.binary(Binary::Equal, &own, &others)
    };
    let (row, column) = (same(rows)?, same(columns)?);
    g.binary(Binary::And, &row, &column)
}

/// The cell selection of `TapasForQuestionAnswering`, of one column (`select_one_column`).
#[derive(Clone, Copy, Debug)]
pub struct CellSelection {
    /// Rows from here on count as the last one.
    pub max_num_rows: usize,
    /// Columns from here on count as the last one.
    pub max_num_columns: usize,
    /// What logits are divided by.
    pub temperature: f64,
    /// Whether the column may be none.
    pub allow_empty_column_selection: bool,
}

impl CellSelection {
    /// Logits `[batch, sequence]` that a token's cell is in the answer, of hidden states `[batch, sequence, hidden_size]`,
    /// `token_type_ids` `[batch, sequence, 7]` and `attention_mask` `[batch, sequence]`.
    ///
    /// # Errors
    /// When the shapes do not go together.
    pub fn logits(
        &self,
        g: &mut Graph,
        w: &Scope,
        hidden: &Tensor,
        token_type_ids: &Tensor,
        attention_mask: &Tensor,
    ) -> Result<Tensor> {
        let logits = token_logits(g, w, hidden, "output")?;
        let logits = g.scale(&logits, 1.0 / self.temperature)?;
        let column_logits = token_logits(g, w, hidden, "column_output")?;
        let (last_row, last) =
            (g.integer(self.max_num_rows as i64 - 1), g.integer(self.max_num_columns as i64 - 1));
        let rows = g.take(token_type_ids, 2, 2)?;
        let rows = g.binary(Binary::Min, &rows, &last_row)?;
        let columns = g.take(token_type_ids, 2, 1)?;
        let columns = g.binary(Binary::Min, &columns, &last)?;
        let same = same_cell(g, &rows, &columns)?;
        let same = g.cast(&same, Dtype::F32);
        let count = g.reduce(Reduction::Sum, &same, &[2], false)?;
        let cell_mean = |g: &mut Graph, x: &Tensor| -> Result<Tensor> {
            let x = g.unsqueeze(x, 2)?;
            let sum = g.matmul(&same, &x)?;
            let sum = g.squeeze(&sum, 2)?;
            g.div(&sum, &count)
        };
        let mask = g.cast(attention_mask, Dtype::F32);
        let cell_mask = cell_mean(g, &mask)?;
        let logits = cell_mean(g, &logits)?;
        let column_logits = cell_mean(g, &column_logits)?;

        // Every cell once: its tokens share it.
        let share = g.div(&cell_mask, &count)?;
        let share = g.unsqueeze(&share, 1)?;
        let numbers = g.arange(&self.max_num_columns.into());
        let numbers = g.reshape(&numbers, crate::dims![1, 1, self.max_num_columns])?;
        let own = g.unsqueeze(&columns, 2)?;
        let member = g.binary(Binary::Equal, &own, &numbers)?;
        let member = g.cast(&member, Dtype::F32);
        let cells = g.matmul(&share, &member)?;
        let weighted = g.unsqueeze(&column_logits, 1)?;
        let weighted = g.mul(&weighted, &share)?;
        let sums = g.matmul(&weighted, &member)?;
        let none = g.scalar(1e-10);
        let some = g.add(&cells, &none)?;
        let scores = g.div(&sums, &some)?;

        let (half, zero) = (g.scalar(0.5), g.integer(0));
        let is_empty = g.binary(Binary::Less, &cells, &half)?;
        let is_first = g.binary(Binary::Equal, &numbers, &zero)?;
        let is_other = g.binary(Binary::Greater, &numbers, &zero)?;
        let mut hidden = g.binary(Binary::And, &is_empty, &is_other)?;
        if !self.allow_empty_column_selection {
            hidden = g.binary(Binary::Or, &hidden, &is_first)?;
        }
        let hidden = g.cast(&hidden, Dtype::F32);
        let hidden = g.scale(&hidden, LOG_ZERO)?;
        let scores = g.add(&scores, &hidden)?;
        let selected = g.argmax(&scores, 2)?;

        let is_selected = g.binary(Binary::Equal, &columns, &selected)?;
        let is_column = g.binary(Binary::Greater, &columns, &zero)?;
        let is_selected = g.binary(Binary::And, &is_selected, &is_column)?;
        let is_selected = g.cast(&is_selected, Dtype::F32);
        let kept = g.mul(&cell_mask, &is_selected)?;
        let (one, low) = (g.scalar(1.0), g.scalar(LOG_ZERO as f32));
        let dropped = g.sub(&one, &kept)?;
        let dropped = g.mul(&dropped, &low)?;
        g.add(&logits, &dropped)
    }
}

/// Logits of tokens `[batch, sequence]` (`compute_token_logits`).
fn token_logits(g: &mut Graph, w: &Scope, hidden: &Tensor, name: &str) -> Result<Tensor> {
    let width = hidden.shape().last().and_then(Dim::fixed).unwrap_or_default();
    let weights = g.weight(&w.name(&format!("{name}_weights")), &[width])?;
    let weights = g.reshape(&weights, crate::dims![width, 1])?;
    let bias = g.weight(&w.name(&format!("{name}_bias")), &[])?;
    let logits = g.matmul(hidden, &weights)?;
    let logits = g.squeeze(&logits, 2)?;
    g.add(&logits, &bias)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::expect;

    const WEIGHTS: [(&str, &[f32]); 4] = [
        ("output_weights", &[1.0]),
        ("output_bias", &[0.5]),
        ("column_output_weights", &[1.0]),
        ("column_output_bias", &[0.0]),
    ];
    const ONE_COLUMN: CellSelection = CellSelection {
        max_num_rows: 4,
        max_num_columns: 4,
        temperature: 2.0,
        allow_empty_column_selection: false,
    };

    /// A question's token, two cells in the first column, one of two tokens in the second, and padding.
    fn logits(selection: CellSelection) -> impl Fn(&mut Graph) -> Result<Tensor> {
        move |g| {
            let types: Vec<i64> = [[0, 0], [1, 1], [1, 2], [2, 1], [2, 1], [0, 0]]
                .iter()
                .flat_map(|&[column, row]| [0, column, row, 0, 0, 0, 0])
                .collect();
            let types = g.integers(&[1, 6, 7], types)?;
            let mask = g.integers(&[1, 6], vec![1, 1, 1, 1, 1, 0])?;
            let hidden = g.constant(&[1, 6, 1], vec![9.0, 3.0, 5.0, 2.0, 8.0, 3.0])?;
            selection.logits(g, &g.root(), &hidden, &types, &mask)
        }
    }

    #[test]
    fn cells_of_one_column_are_selected() {
        // The columns' means are 4 and 5; the second cell's logit is 5.5 with the bias. The question's is 6.5; all are halved.
        let want = [-9996.75, -9998.25, -9997.25, 2.75, 2.75, -9996.75];
        expect(&WEIGHTS, logits(ONE_COLUMN), &[1, 6], &want);
    }

    #[test]
    fn the_empty_column_selects_nothing() {
        let empty = CellSelection { allow_empty_column_selection: true, ..ONE_COLUMN };
        let build = |g: &mut Graph| {
            let logits = logits(empty)(g)?;
            g.slice(&logits, 1, 3..5)
        };
        // The question and padding are one cell: (9 + 3) / 2 is above the second column's 5.
        expect(&WEIGHTS, build, &[1, 2], &[-9997.25, -9997.25]);
    }
}
