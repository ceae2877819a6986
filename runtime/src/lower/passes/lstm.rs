//! Long short-term memory where a backend has no kernel for it, or none in its precision.

use crate::Result;
use crate::graph::{Dtype, Graph, LstmOp, LstmResult, Op, Operation, Tensor, Unary};

/// An LSTM step by step, at a fixed length: one product of all positions, and one of the hidden state at each. Where the length is
/// no number it stays.
pub(in crate::lower) fn by_steps(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let (Op::Lstm(op), [x, input, recurrence, bias, hidden, cell]) = (it.op, it.operands) else {
        return Ok(None);
    };
    let Some(length) = x.shape()[0].fixed() else { return Ok(None) };
    let directions = if op.bidirectional { 2 } else { 1 };
    let mut results = vec![];
    for direction in 0..directions {
        let of = |g: &mut Graph, x: &Tensor| {
            let x = g.slice(x, 0, direction..direction + 1)?;
            g.squeeze(&x, 0)
        };
        let [input, recurrence] = [input, recurrence].map(|weight| {
            let weight = of(g, weight)?;
            g.transpose(&weight, &[1, 0])
        });
        let bias = of(g, bias)?;
        let halves =
            [0, 1].map(|half| g.slice(&bias, 0, half * 4 * op.hidden_size..(half + 1) * 4 * op.hidden_size));
        let [of_input, of_hidden] = halves;
        let bias = g.add(&of_input?, &of_hidden?)?;
        let all = g.matmul(x, &input?)?;
        let all = g.add(&all, &bias)?;
        let recurrence = recurrence?;
        let (mut h, mut c) = (of(g, hidden)?, of(g, cell)?);
        let mut outputs = vec![];
        for step in 0..length {
            let position = if direction == 0 { step } else { length - 1 - step };
            let now = g.slice(&all, 0, position..position + 1)?;
            let now = g.squeeze(&now, 0)?;
            (h, c) = stepped(g, *op, &now, &recurrence, [&h, &c])?;
            outputs.push(g.unsqueeze(&h, 0)?);
        }
        if direction == 1 {
            outputs.reverse();
        }
        results.push(match op.gives {
            LstmResult::Output if outputs.is_empty() => return Ok(None),
            LstmResult::Output => {
                let outputs = g.concat(&outputs.iter().collect::<Vec<_>>(), 0)?;
                g.unsqueeze(&outputs, 1)?
            }
            LstmResult::Hidden => g.unsqueeze(&h, 0)?,
            LstmResult::Cell => g.unsqueeze(&c, 0)?,
        });
    }
    let axis = usize::from(op.gives == LstmResult::Output);
    g.concat(&results.iter().collect::<Vec<_>>(), axis).map(Some)
}

/// The states `[batch, hidden]` behind one position, whose part of the gates is `now` `[batch, 4·hidden]`.
fn stepped(
    g: &mut Graph,
    op: LstmOp,
    now: &Tensor,
    recurrence: &Tensor,
    [h, c]: [&Tensor; 2],
) -> Result<(Tensor, Tensor)> {
    let size = op.hidden_size;
    let gates = g.matmul(h, recurrence)?;
    let gates = g.add(now, &gates)?;
    let open = g.slice(&gates, 1, 0..3 * size)?;
    let open = g.unary(Unary::Sigmoid, &open);
    let [input, output, forget] = [0, 1, 2].map(|gate| g.slice(&open, 1, gate * size..(gate + 1) * size));
    let new = g.slice(&gates, 1, 3 * size..4 * size)?;
    let new = g.tanh(&new);
    let kept = g.mul(&forget?, c)?;
    let new = g.mul(&input?, &new)?;
    let c = g.add(&kept, &new)?;
    let shown = g.tanh(&c);
    Ok((g.mul(&output?, &shown)?, c))
}

/// An LSTM in single precision, in which its states add up: no backend has a kernel in bfloat16, and the CPU none in half precision.
pub(in crate::lower) fn in_single(g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
    let Op::Lstm(_) = it.op else { return Ok(None) };
    if it.result.dtype() == Dtype::F32 {
        return Ok(None);
    }
    let wide: Vec<_> = it.operands.iter().map(|x| g.cast(x, Dtype::F32)).collect();
    let wide = it.again(g, &wide.iter().collect::<Vec<_>>(), Dtype::F32);
    Ok(Some(g.cast(&wide, it.result.dtype())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims;
    use crate::graph::{Dim, LstmLayer};
    use crate::nn::testing::evaluate;

    /// Numbers between -1 and 1 that follow no pattern.
    fn drawn(g: &mut Graph, shape: &[usize], seed: usize) -> Result<Tensor> {
        let count = shape.iter().product();
        let numbers = (0..count).map(|i: usize| ((i * 7919 + seed * 104_729) % 2003) as f32 / 1001.5 - 1.0);
        g.constant(shape, numbers.collect())
    }

    /// All three results of a layer over 5 positions, of 2 rows of 3 numbers, in rows of 2.
    fn layer(g: &mut Graph, directions: usize) -> Result<Tensor> {
        let x = drawn(g, &[5, 2, 3], 1)?;
        let input = drawn(g, &[directions, 8, 3], 2)?;
        let recurrence = drawn(g, &[directions, 8, 2], 3)?;
        let bias = drawn(g, &[directions, 16], 4)?;
        let states = [drawn(g, &[directions, 2, 2], 5)?, drawn(g, &[directions, 2, 2], 6)?];
        let given = LstmLayer {
            x: &x,
            input: &input,
            recurrence: &recurrence,
            bias: &bias,
            states: [&states[0], &states[1]],
        };
        let given = g.lstm(&given)?;
        let [h, c] = given.states;
        let rows = [given.output, h, c].map(|x| {
            let count = x.shape().iter().filter_map(Dim::fixed).product::<usize>();
            g.reshape(&x, dims![count / 2, 2])
        });
        let [y, h, c] = rows;
        g.concat(&[&y?, &h?, &c?], 0)
    }

    #[test]
    fn steps_give_what_the_kernel_gives() {
        for directions in [1, 2] {
            let Some((_, want)) = evaluate(&[], |g| layer(g, directions)) else { return };
            let stepped = |g: &mut Graph| {
                let rows = layer(g, directions)?;
                g.output("rows", &rows)?;
                g.rewrite(by_steps)?;
                assert!(!g.has_lstm());
                let (_, id) = g.outputs.pop().unwrap();
                Ok(g.tensor(id).clone())
            };
            let Some((_, got)) = evaluate(&[], stepped) else { return };
            let most = got.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(most < 1e-5, "{directions}: {most}");
        }
    }
}
