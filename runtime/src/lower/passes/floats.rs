//! Integers and booleans as floating-point numbers, for engines that compute with nothing else.
//!
//! Truth is 1, and logic and comparisons of whole numbers are arithmetic, which single precision does exactly up to
//! 2²⁴; fractions are compared by the sign of their difference. What indexes a table stays an integer, and one that is given on as
//! it came is a number in between: no engine here copies integers. What depends on constants alone stays as it is: engines
//! compute it before they divide the graph.

use std::collections::{HashMap, HashSet};

use crate::Result;
use crate::graph::{Binary, Constant, Dtype, Graph, Interpolation, Op, Operation, Reduction, Tensor, Unary};
use crate::lower::Target;
use crate::lower::passes::arithmetic;

/// All arithmetic on floating-point numbers; booleans arrive as such.
pub(in crate::lower) fn compute_in_floats(g: &mut Graph, _: &Target) -> Result<()> {
    let outputs: Vec<Dtype> = g.outputs.iter().map(|(_, id)| g.tensor(*id).dtype()).collect();
    let mut floats = Floats::default();
    g.rewrite(|g, it| floats.stands(g, it))?;
    for (index, dtype) in outputs.into_iter().enumerate() {
        let mut given = g.tensor(g.outputs[index].1).clone();
        if given.dtype() == Dtype::I64 && g.is_input(given.id) {
            given = floats.number(g, &given);
        }
        g.outputs[index].1 = floats.own(g, &given, dtype).id;
    }
    for input in g.inputs.iter_mut().filter(|input| input.dtype == Dtype::Bool) {
        input.dtype = Dtype::F32;
    }
    Ok(())
}

/// What is known about the values of a graph.
#[derive(Default)]
struct Floats {
    /// Floating-point values that are whole numbers.
    whole: HashSet<usize>,
    /// What depends on constants alone.
    folded: HashSet<usize>,
    /// Values in single precision.
    numbers: HashMap<usize, Tensor>,
}

impl Floats {
    /// What stands for an operation; where its result is none in floating point, a number in single precision does.
    fn stands(&mut self, g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
        if it.operands.iter().all(|x| self.is_folded(g, x)) {
            self.folded.insert(it.result.id);
            return Ok(self.keep(g, it));
        }
        let counted = !it.result.dtype().is_float();
        match it.op {
            Op::Cast { to } => self.cast(g, it, *to),
            Op::Binary(Binary::And | Binary::Or) | Op::Unary(Unary::Not) => self.logic(g, it),
            Op::Binary(op) if op.compares() => match it.operands.iter().all(|x| self.is_whole(g, x)) {
                true => self.comparison(g, it, *op),
                false => {
                    let numbers: Vec<_> = it.operands.iter().map(|x| self.number(g, x)).collect();
                    let [a, b] = numbers.as_slice() else { return Ok(None) };
                    let compared = arithmetic::compared(g, *op, a, b)?;
                    Ok(Some(self.whole(compared)))
                }
            },
            Op::Where => self.choice(g, it),
            Op::ArgMax { .. } => {
                let x = match it.types[0].is_float() {
                    true => it.operands[0].clone(),
                    false => self.number(g, &it.operands[0]),
                };
                Ok(Some(it.again(g, &[&x], it.result.dtype())))
            }
            Op::Binary(op @ (Binary::Mod | Binary::Div)) if counted => {
                let numbers: Vec<_> = it.operands.iter().map(|x| self.number(g, x)).collect();
                let [a, b] = numbers.as_slice() else { return Ok(None) };
                let result = match op {
                    Binary::Mod => arithmetic::remainder(g, a, b)?,
                    _ => arithmetic::quotient(g, a, b)?,
                };
                Ok(Some(self.whole(result)))
            }
            Op::Binary(Binary::Add | Binary::Sub | Binary::Mul | Binary::Max) | Op::Concat { .. }
                if counted =>
            {
                let numbers: Vec<_> = it.operands.iter().map(|x| self.number(g, x)).collect();
                Ok(Some(self.counted(g, it, &numbers)))
            }
            Op::Reduce { by: Reduction::Sum | Reduction::Max, .. }
            | Op::Reshape
            | Op::Transpose { .. }
            | Op::Slice { .. }
            | Op::Tile { .. }
            | Op::Gather { .. }
                if counted =>
            {
                let mut numbers = vec![self.number(g, &it.operands[0])];
                for (x, dtype) in it.operands.iter().zip(it.types).skip(1) {
                    numbers.push(self.own(g, x, *dtype));
                }
                Ok(Some(self.counted(g, it, &numbers)))
            }
            _ => Ok(self.keep(g, it)),
        }
    }

    /// The operation as it was, on operands of their own types.
    fn keep(&mut self, g: &mut Graph, it: &Operation<'_>) -> Option<Tensor> {
        let own: Vec<_> = it.operands.iter().zip(it.types).map(|(x, dtype)| self.own(g, x, *dtype)).collect();
        let changed = own.iter().zip(it.operands).any(|(own, x)| own.id != x.id);
        let operands: Vec<&Tensor> = own.iter().collect();
        let kept = changed.then(|| it.again(g, &operands, it.result.dtype()));
        let data = match it.op {
            Op::Binary(Binary::Add | Binary::Sub | Binary::Mul | Binary::Max) => own.len(),
            Op::MatMul | Op::Concat { .. } => own.len(),
            Op::Reduce { by: Reduction::Sum | Reduction::Max, .. } | Op::Gather { .. } => 1,
            Op::Reshape | Op::Transpose { .. } | Op::Slice { .. } | Op::Tile { .. } | Op::Expand => 1,
            Op::Trilu { .. } | Op::Clip { .. } => 1,
            Op::Resize(op) if op.by == Interpolation::Nearest => 1,
            _ => 0,
        };
        if data > 0 && own.iter().take(data).all(|x| self.is_whole(g, x)) {
            self.whole.insert(kept.as_ref().unwrap_or(it.result).id);
        }
        kept
    }

    /// The operation on numbers, which gives a whole one.
    fn counted(&mut self, g: &mut Graph, it: &Operation<'_>, numbers: &[Tensor]) -> Tensor {
        let numbers: Vec<&Tensor> = numbers.iter().collect();
        let result = it.again(g, &numbers, Dtype::F32);
        self.whole(result)
    }

    fn cast(&mut self, g: &mut Graph, it: &Operation<'_>, to: Dtype) -> Result<Option<Tensor>> {
        let (x, from) = (&it.operands[0], it.types[0]);
        match (from.is_float(), to.is_float()) {
            (true, false) if !self.is_whole(g, x) => Ok(None),
            (true, true) => {
                let whole = self.is_whole(g, x);
                let cast = g.cast(x, to);
                Ok(Some(if whole { self.whole(cast) } else { cast }))
            }
            (false, true) => {
                let number = self.number(g, x);
                let cast = g.cast(&number, to);
                Ok(Some(self.whole(cast)))
            }
            (_, false) => {
                let number = self.number(g, x);
                if to != Dtype::Bool || from == Dtype::Bool {
                    return Ok(Some(self.whole(number)));
                }
                let square = g.mul(&number, &number)?;
                Ok(Some(self.clipped(g, &square)))
            }
        }
    }

    fn logic(&mut self, g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
        let given: Vec<_> = it.operands.iter().map(|x| self.number(g, x)).collect();
        let result = match (it.op, given.as_slice()) {
            (Op::Binary(Binary::And), [a, b]) => g.mul(a, b)?,
            (Op::Binary(_), [a, b]) => g.binary(Binary::Max, a, b)?,
            (_, [x, ..]) => {
                let one = g.scalar(1.0);
                g.sub(&one, x)?
            }
            _ => return Ok(None),
        };
        Ok(Some(self.whole(result)))
    }

    fn comparison(&mut self, g: &mut Graph, it: &Operation<'_>, op: Binary) -> Result<Option<Tensor>> {
        let [a, b] = it.operands else { return Ok(None) };
        let [a, b] = [self.number(g, a), self.number(g, b)];
        let difference = match op {
            Binary::Greater | Binary::GreaterOrEqual => g.sub(&a, &b)?,
            _ => g.sub(&b, &a)?,
        };
        let one = g.scalar(1.0);
        Ok(Some(match op {
            Binary::Equal => {
                let square = g.mul(&difference, &difference)?;
                let differs = self.clipped(g, &square);
                let equal = g.sub(&one, &differs)?;
                self.whole(equal)
            }
            Binary::LessOrEqual | Binary::GreaterOrEqual => {
                let reached = g.add(&difference, &one)?;
                self.clipped(g, &reached)
            }
            _ => self.clipped(g, &difference),
        }))
    }

    /// Each of two values times whether it is chosen.
    fn choice(&mut self, g: &mut Graph, it: &Operation<'_>) -> Result<Option<Tensor>> {
        let [condition, yes, no] = it.operands else { return Ok(None) };
        let chosen = self.number(g, condition);
        let [yes, no] = match it.result.dtype().is_float() {
            true => [yes.clone(), no.clone()],
            false => [self.number(g, yes), self.number(g, no)],
        };
        let mut sum: Option<Tensor> = None;
        if !is_zero(g, &yes) || is_zero(g, &no) {
            let chosen = g.cast(&chosen, yes.dtype());
            sum = Some(g.mul(&yes, &chosen)?);
        }
        if !is_zero(g, &no) {
            let one = g.scalar(1.0);
            let other = g.sub(&one, &chosen)?;
            let other = g.cast(&other, no.dtype());
            let second = g.mul(&no, &other)?;
            sum = Some(match sum {
                Some(first) => g.add(&first, &second)?,
                None => second,
            });
        }
        let whole = self.is_whole(g, &yes) && self.is_whole(g, &no);
        Ok(sum.map(|sum| if whole { self.whole(sum) } else { sum }))
    }

    /// 1 for what is 1 or more, 0 for what is 0 or less.
    fn clipped(&mut self, g: &mut Graph, x: &Tensor) -> Tensor {
        let op = Op::Clip { low: 0.0, high: Some(1.0) };
        let clipped = g.node(op, &[x], x.dtype(), x.shape().to_vec());
        self.whole(clipped)
    }

    /// A value as a number in single precision.
    fn number(&mut self, g: &mut Graph, x: &Tensor) -> Tensor {
        if x.dtype() == Dtype::F32 {
            return x.clone();
        }
        if let Some(number) = self.numbers.get(&x.id) {
            return number.clone();
        }
        let whole = self.is_whole(g, x);
        let number = match g.literal(x) {
            Some(Constant::I64(integers)) => {
                let numbers = integers.iter().map(|n| *n as f32).collect();
                g.filled(Dtype::F32, x.shape().to_vec(), Constant::F32(numbers))
            }
            _ if x.dtype() == Dtype::Bool && g.is_input(x.id) => g.retyped_input(x, Dtype::F32),
            _ => g.cast(x, Dtype::F32),
        };
        self.numbers.insert(x.id, number.clone());
        if whole { self.whole(number) } else { number }
    }

    /// A value in its own type, where a number stands for it.
    fn own(&mut self, g: &mut Graph, x: &Tensor, dtype: Dtype) -> Tensor {
        match x.dtype() == Dtype::Bool && g.is_input(x.id) {
            true => {
                let number = self.number(g, x);
                g.cast(&number, dtype)
            }
            false => g.cast(x, dtype),
        }
    }

    fn whole(&mut self, x: Tensor) -> Tensor {
        self.whole.insert(x.id);
        x
    }

    fn is_whole(&self, g: &Graph, x: &Tensor) -> bool {
        match g.literal(x) {
            _ if !x.dtype().is_float() => true,
            Some(Constant::F32(numbers)) => numbers.iter().all(|number| number.fract() == 0.0),
            _ => self.whole.contains(&x.id),
        }
    }

    fn is_folded(&self, g: &Graph, x: &Tensor) -> bool {
        g.literal(x).is_some() || g.is_weight(x) || self.folded.contains(&x.id)
    }
}

/// Whether a literal holds zeros only.
fn is_zero(g: &Graph, x: &Tensor) -> bool {
    match g.literal(x) {
        Some(Constant::F32(numbers)) => numbers.iter().all(|number| *number == 0.0),
        Some(Constant::I64(integers)) => integers.iter().all(|integer| *integer == 0),
        None => false,
    }
}
