//! Long short-term memory: one layer over a sequence, in one direction or both.

use crate::Result;
use crate::graph::{Dim, Graph, LstmLayer, LstmOp, LstmOutput, LstmResult, Op, show};
use crate::lower::rare;

impl Graph {
    /// A layer of long short-term memory (ONNX's `LSTM`): `i, o, f = σ(…)`, `c = f·c + i·tanh(…)`, `h = o·tanh(c)`. The second of two
    /// directions goes from the last position to the first.
    ///
    /// # Errors
    /// When the shapes do not go together.
    pub fn lstm(&mut self, layer: &LstmLayer<'_>) -> Result<LstmOutput> {
        self.rare.lstm = Some(&rare::LSTM);
        let LstmLayer { x, input, recurrence, bias, states: [hidden, cell] } = *layer;
        let operands = [x, input, recurrence, bias, hidden, cell];
        for operand in operands {
            self.float("LSTM", operand)?;
        }
        let misfit = |g: &Self, why: &str| {
            let shapes = operands.map(|x| show(x.shape())).join(", ");
            g.error("LSTM", format!("{shapes}: {why}"))
        };
        let [sequence, batch, width] = x.shape() else {
            return Err(misfit(self, "x is [sequence, batch, in]"));
        };
        let [directions @ Dim::Fixed(1 | 2), rows, columns] = recurrence.shape() else {
            return Err(misfit(
                self,
                "the weights of the hidden state are [directions, 4·hidden, hidden], of 1 or 2 directions",
            ));
        };
        let (Some(size), Some(_)) = (columns.fixed(), width.fixed()) else {
            return Err(misfit(self, "the last axes have fixed lengths"));
        };
        let shape = [directions.clone(), batch.clone(), Dim::Fixed(size)];
        let weights = rows.fixed() == Some(4 * size)
            && *input.shape() == [directions.clone(), rows.clone(), width.clone()];
        if !weights || *bias.shape() != [directions.clone(), Dim::Fixed(8 * size)] {
            return Err(misfit(self, "weights have 4·hidden rows for each direction, and biases 8·hidden"));
        }
        if *hidden.shape() != shape || *cell.shape() != shape {
            return Err(misfit(self, "states are [directions, batch, hidden]"));
        }
        let op = LstmOp {
            hidden_size: size,
            bidirectional: directions.fixed() == Some(2),
            gives: LstmResult::Output,
        };
        let all = vec![sequence.clone(), directions.clone(), batch.clone(), size.into()];
        let mut give =
            |gives, shape: Vec<Dim>| self.node(Op::Lstm(LstmOp { gives, ..op }), &operands, x.dtype(), shape);
        let output = give(LstmResult::Output, all);
        let states = [LstmResult::Hidden, LstmResult::Cell].map(|gives| give(gives, shape.to_vec()));
        Ok(LstmOutput { output, states })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims;
    use crate::graph::Input;
    use crate::graph::dims::{BATCH, SEQUENCE};
    use crate::nn::testing::refusal;

    #[test]
    fn what_does_not_fit_is_refused() {
        let layer = |x: Vec<Dim>, directions: usize, rows: usize, bias: usize, state: usize| {
            refusal(|g| {
                let x = g.input(Input::f32("x", x));
                let input = g.input(Input::f32("w", dims![directions, rows, 3]));
                let recurrence = g.input(Input::f32("r", dims![directions, rows, 2]));
                let bias = g.input(Input::f32("b", dims![directions, bias]));
                let hidden = g.input(Input::f32("h", dims![directions, BATCH, state]));
                g.lstm(&LstmLayer {
                    x: &x,
                    input: &input,
                    recurrence: &recurrence,
                    bias: &bias,
                    states: [&hidden, &hidden],
                })
            })
        };
        let x = || dims![SEQUENCE, BATCH, 3];
        insta::assert_snapshot!(layer(dims![BATCH, 3], 1, 8, 16, 2), @"LSTM in the root: [batch, 3], [1, 8, 3], [1, 8, 2], [1, 16], [1, batch, 2], [1, batch, 2]: x is [sequence, batch, in]");
        insta::assert_snapshot!(layer(x(), 3, 8, 16, 2), @"LSTM in the root: [sequence, batch, 3], [3, 8, 3], [3, 8, 2], [3, 16], [3, batch, 2], [3, batch, 2]: the weights of the hidden state are [directions, 4·hidden, hidden], of 1 or 2 directions");
        insta::assert_snapshot!(layer(dims![SEQUENCE, BATCH, SEQUENCE], 1, 8, 16, 2), @"LSTM in the root: [sequence, batch, sequence], [1, 8, 3], [1, 8, 2], [1, 16], [1, batch, 2], [1, batch, 2]: the last axes have fixed lengths");
        insta::assert_snapshot!(layer(dims![SEQUENCE, BATCH, 4], 1, 8, 16, 2), @"LSTM in the root: [sequence, batch, 4], [1, 8, 3], [1, 8, 2], [1, 16], [1, batch, 2], [1, batch, 2]: weights have 4·hidden rows for each direction, and biases 8·hidden");
        insta::assert_snapshot!(layer(x(), 1, 8, 8, 2), @"LSTM in the root: [sequence, batch, 3], [1, 8, 3], [1, 8, 2], [1, 8], [1, batch, 2], [1, batch, 2]: weights have 4·hidden rows for each direction, and biases 8·hidden");
        insta::assert_snapshot!(layer(x(), 2, 8, 16, 3), @"LSTM in the root: [sequence, batch, 3], [2, 8, 3], [2, 8, 2], [2, 16], [2, batch, 3], [2, batch, 3]: states are [directions, batch, hidden]");
    }
}
