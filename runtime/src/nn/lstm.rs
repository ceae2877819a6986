//! Long short-term memory, as `torch.nn.LSTM` has it.

use crate::graph::{Graph, LstmLayer, Scope, Tensor, show};
use crate::{Result, dims};

/// A stack of LSTM layers (`torch.nn.LSTM` with `batch_first`; Hochreiter and Schmidhuber, 1997), each over what the one before gives.
#[derive(Clone, Copy, Debug)]
pub struct Lstm {
    /// The width of the hidden state of one direction.
    pub hidden_size: usize,
    /// How many layers there are.
    pub num_layers: usize,
    /// Whether a second direction goes from the last position to the first.
    pub bidirectional: bool,
    /// Whether there are biases, `bias_ih_l0` and `bias_hh_l0`.
    pub bias: bool,
}

impl Lstm {
    /// x `[batch, sequence, in]` to the last layer's hidden states `[batch, sequence, directions·hidden_size]`, with the hidden and
    /// the cell states behind the last position, each `[num_layers·directions, batch, hidden_size]`. The weights at `w` are `weight_ih_l0`,
    /// `weight_hh_l0` and so on, those of the second direction with `_reverse`; states begin with zeros where none are given.
    ///
    /// # Errors
    /// When x has other axes, or the states do not fit.
    pub fn forward(
        &self,
        g: &mut Graph,
        w: &Scope,
        x: &Tensor,
        states: Option<[&Tensor; 2]>,
    ) -> Result<(Tensor, [Tensor; 2])> {
        g.enter(w);
        let directions = if self.bidirectional { 2 } else { 1 };
        let size = self.hidden_size;
        let [batch, sequence, _] = x.shape() else {
            return Err(g.error("Lstm", format!("{} is not [batch, sequence, in]", show(x.shape()))));
        };
        let (batch, sequence) = (batch.clone(), sequence.clone());
        if self.num_layers == 0 {
            return Err(g.error("Lstm", "there is no layer"));
        }
        let mut x = g.transpose(x, &[1, 0, 2])?;
        let [mut hidden, mut cell] = [vec![], vec![]];
        for layer in 0..self.num_layers {
            let ends: &[&str] = if self.bidirectional { &["", "_reverse"] } else { &[""] };
            let [mut input, mut recurrence, mut biases] = [vec![], vec![], vec![]];
            let width = x.dim(-1).and_then(crate::graph::Dim::fixed).unwrap_or_default();
            for end in ends {
                let name = |what: &str| w.name(&format!("{what}_l{layer}{end}"));
                input.push(gates(g, &name("weight_ih"), &[4 * size, width])?);
                recurrence.push(gates(g, &name("weight_hh"), &[4 * size, size])?);
                biases.push(if self.bias {
                    let both =
                        [gates(g, &name("bias_ih"), &[4 * size])?, gates(g, &name("bias_hh"), &[4 * size])?];
                    let both = g.concat(&[&both[0], &both[1]], 0)?;
                    g.unsqueeze(&both, 0)?
                } else {
                    g.constant(&[1, 8 * size], vec![0.0; 8 * size])?
                });
            }
            let [input, recurrence] = [input, recurrence]
                .map(|of| of.iter().map(|x| g.unsqueeze(x, 0)).collect::<Result<Vec<_>>>());
            let [input, recurrence, bias] =
                [input?, recurrence?, biases].map(|of| g.concat(&of.iter().collect::<Vec<_>>(), 0));
            let (first, last) = (layer * directions, (layer + 1) * directions);
            let [h, c] = match states {
                Some(states) => states.map(|state| g.slice(state, 0, first..last)),
                None => [(); 2].map(|()| g.full(dims![directions, &batch, size], 0.0)),
            };
            let given = LstmLayer {
                x: &x,
                input: &input?,
                recurrence: &recurrence?,
                bias: &bias?,
                states: [&h?, &c?],
            };
            let given = g.lstm(&given)?;
            let y = g.transpose(&given.output, &[0, 2, 1, 3])?;
            x = g.reshape(&y, dims![&sequence, &batch, directions * size])?;
            let [h, c] = given.states;
            hidden.push(h);
            cell.push(c);
        }
        let [hidden, cell] = [hidden, cell].map(|of| g.concat(&of.iter().collect::<Vec<_>>(), 0));
        Ok((g.transpose(&x, &[1, 0, 2])?, [hidden?, cell?]))
    }
}

/// Rows of gates in PyTorch's order (input, forget, cell, output) in ONNX's: input, output, forget, cell.
fn gates(g: &mut Graph, name: &str, shape: &[usize]) -> Result<Tensor> {
    let weight = g.weight(name, shape)?;
    let size = shape[0] / 4;
    let [input, forget, cell, output] =
        [0, 1, 2, 3].map(|gate| g.slice(&weight, 0, gate * size..(gate + 1) * size));
    g.concat(&[&input?, &output?, &forget?, &cell?], 0)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{expect, refusal};
    use super::*;

    fn sigmoid(x: f32) -> f32 {
        1.0 / (1.0 + (-x).exp())
    }

    /// One step of one unit, gates in PyTorch's order.
    fn step(x: f32, [h, c]: [f32; 2], input: [f32; 4], recurrence: [f32; 4], bias: [f32; 4]) -> [f32; 2] {
        let [i, f, g, o] = [0, 1, 2, 3].map(|gate| input[gate] * x + recurrence[gate] * h + bias[gate]);
        let c = sigmoid(f) * c + sigmoid(i) * g.tanh();
        [sigmoid(o) * c.tanh(), c]
    }

    const INPUT: [f32; 4] = [1.0, -0.5, 2.0, 0.25];
    const RECURRENCE: [f32; 4] = [0.5, 3.0, -1.0, -2.0];
    const BACK: [f32; 4] = [-1.0, 1.5, 0.5, 1.0];
    const BIAS: [f32; 4] = [0.1, 0.2, 0.3, 0.4];

    #[test]
    fn gates_are_in_pytorchs_order() {
        let build = |all: bool| {
            move |g: &mut Graph| {
                let x = g.constant(&[1, 2, 1], vec![1.0, -2.0])?;
                let [h, c] = [0.5, -1.0].map(|state| g.constant(&[1, 1, 1], vec![state]));
                let lstm = Lstm { hidden_size: 1, num_layers: 1, bidirectional: false, bias: true };
                let (y, [h, c]) = lstm.forward(g, &g.scope("rnn"), &x, Some([&h?, &c?]))?;
                if all { Ok(y) } else { g.concat(&[&h, &c], 2) }
            }
        };
        let weights: [(&str, &[f32]); 4] = [
            ("rnn.weight_ih_l0", &INPUT),
            ("rnn.weight_hh_l0", &RECURRENCE),
            ("rnn.bias_ih_l0", &BIAS),
            ("rnn.bias_hh_l0", &[0.0, 0.0, 0.0, -0.8]),
        ];
        let bias = [0.1, 0.2, 0.3, -0.4];
        let first = step(1.0, [0.5, -1.0], INPUT, RECURRENCE, bias);
        let second = step(-2.0, first, INPUT, RECURRENCE, bias);
        expect(&weights, build(true), &[1, 2, 1], &[first[0], second[0]]);
        expect(&weights, build(false), &[1, 1, 2], &second);
    }

    #[test]
    fn the_second_direction_goes_back_and_layers_read_both() {
        let build = |last: bool| {
            move |g: &mut Graph| {
                let x = g.constant(&[1, 2, 1], vec![1.0, -2.0])?;
                let num_layers = if last { 2 } else { 1 };
                let lstm = Lstm { hidden_size: 1, num_layers, bidirectional: true, bias: false };
                let (y, [h, _]) = lstm.forward(g, &g.scope("rnn"), &x, None)?;
                if last { Ok(h) } else { Ok(y) }
            }
        };
        let first: [(&str, &[f32]); 4] = [
            ("rnn.weight_ih_l0", &INPUT),
            ("rnn.weight_hh_l0", &RECURRENCE),
            ("rnn.weight_ih_l0_reverse", &BACK),
            ("rnn.weight_hh_l0_reverse", &RECURRENCE),
        ];
        let there = step(1.0, [0.0; 2], INPUT, RECURRENCE, [0.0; 4]);
        let end = step(-2.0, there, INPUT, RECURRENCE, [0.0; 4]);
        let back = step(-2.0, [0.0; 2], BACK, RECURRENCE, [0.0; 4]);
        let begin = step(1.0, back, BACK, RECURRENCE, [0.0; 4]);
        expect(&first, build(false), &[1, 2, 2], &[there[0], begin[0], end[0], back[0]]);
        // The second layer reads the first direction alone, of which it keeps the final states.
        let one = [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0];
        let rest: [(&str, &[f32]); 4] = [
            ("rnn.weight_ih_l1", &one),
            ("rnn.weight_hh_l1", &RECURRENCE),
            ("rnn.weight_ih_l1_reverse", &one),
            ("rnn.weight_hh_l1_reverse", &[0.0; 4]),
        ];
        let unit = [1.0; 4];
        let above =
            step(end[0], step(there[0], [0.0; 2], unit, RECURRENCE, [0.0; 4]), unit, RECURRENCE, [0.0; 4]);
        let under =
            step(there[0], step(end[0], [0.0; 2], unit, [0.0; 4], [0.0; 4]), unit, [0.0; 4], [0.0; 4]);
        expect(&[first, rest].concat(), build(true), &[4, 1, 1], &[end[0], begin[0], above[0], under[0]]);
    }

    #[test]
    fn axes_and_layers_are_needed() {
        let of = |num_layers: usize, shape: &'static [usize]| {
            refusal(|g| {
                let x = g.constant(shape, vec![0.0; 2])?;
                let lstm = Lstm { hidden_size: 1, num_layers, bidirectional: false, bias: true };
                lstm.forward(g, &g.scope("rnn"), &x, None)
            })
        };
        insta::assert_snapshot!(of(1, &[1, 2]), @"Lstm in rnn: [1, 2] is not [batch, sequence, in]");
        insta::assert_snapshot!(of(0, &[1, 2, 1]), @"Lstm in rnn: there is no layer");
    }
}
