//! Shapes as operands: literals where they are known, computed from the inputs' shapes where not.

use super::{Printer, integers};
use crate::Result;
use crate::graph::{Dim, Factor, Tensor, show};
use crate::onnx::Attribute;

impl Printer<'_> {
    /// 1 wherever `Expand` keeps the length.
    pub(super) fn expand_operand(&mut self, from: &[Dim], to: &[Dim]) -> Result<String> {
        let added = to.len() - from.len();
        let grown: Vec<Dim> = to
            .iter()
            .enumerate()
            .map(|(axis, dim)| match axis.checked_sub(added).map(|axis| &from[axis]) {
                Some(same) if same == dim => Dim::Fixed(1),
                _ => dim.clone(),
            })
            .collect();
        self.shape_operand(&grown)
    }

    /// 0, the length and 1, of the result's type.
    pub(super) fn range_operands(&mut self, result: &Tensor) -> Result<[String; 3]> {
        let count = match result.shape()[0].fixed() {
            Some(count) => self.literal(result.dtype(), &[], integers(result.dtype(), &[count as i64])),
            None => self.scalar_length(&result.shape()[0])?,
        };
        let [zero, one] = [0, 1].map(|n| self.literal(result.dtype(), &[], integers(result.dtype(), &[n])));
        Ok([zero, count, one])
    }

    /// A length as an integer without axes.
    pub(super) fn scalar_length(&mut self, dim: &Dim) -> Result<String> {
        if let Some(length) = dim.fixed() {
            return Ok(self.integer(length as i64));
        }
        let length = self.length(dim)?;
        let scalar = self.integers(&[]);
        Ok(self.part("Reshape", &[&length, &scalar], vec![]))
    }

    /// A literal wherever `Reshape` can copy (0) or infer (-1) what is not known.
    pub(super) fn reshape_operand(&mut self, from: &[Dim], to: &[Dim]) -> Result<String> {
        let mut inferred = false;
        let literal: Option<Vec<i64>> = to
            .iter()
            .enumerate()
            .map(|(axis, dim)| match dim {
                Dim::Fixed(n) if *n > 0 => Some(*n as i64),
                dim if from.get(axis) == Some(dim) => Some(0),
                _ if !inferred => {
                    inferred = true;
                    Some(-1)
                }
                _ => None,
            })
            .collect();
        match literal {
            Some(literal) => Ok(self.integers(&literal)),
            None => self.shape_operand(to),
        }
    }

    /// A list of lengths.
    pub(super) fn shape_operand(&mut self, dims: &[Dim]) -> Result<String> {
        let fixed: Option<Vec<i64>> = dims.iter().map(|dim| dim.fixed().map(|n| n as i64)).collect();
        if let Some(fixed) = fixed {
            return Ok(self.integers(&fixed));
        }
        let parts = dims.iter().map(|dim| self.length(dim)).collect::<Result<Vec<_>>>()?;
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        Ok(self.part("Concat", &parts, vec![Attribute::int("axis", 0)]))
    }

    /// A length as a list of one integer.
    fn length(&mut self, dim: &Dim) -> Result<String> {
        let mut sum: Option<String> = None;
        for (number, factors) in dim.terms() {
            let mut term = (number != 1 || factors.is_empty()).then(|| self.integers(&[number]));
            for factor in factors {
                let length = self.factor(&factor, dim)?;
                term = Some(match term {
                    Some(term) => self.part("Mul", &[&term, &length], vec![]),
                    None => length,
                });
            }
            let term = term.unwrap_or_default();
            sum = Some(match sum {
                Some(sum) => self.part("Add", &[&sum, &term], vec![]),
                None => term,
            });
        }
        Ok(sum.unwrap_or_else(|| self.integers(&[0])))
    }

    fn factor(&mut self, factor: &Factor, dim: &Dim) -> Result<String> {
        match factor {
            Factor::Symbol(symbol) => self.symbol(symbol, dim),
            Factor::Quotient(inner, by) => {
                let key = factor.to_string();
                if let Some(name) = self.symbols.get(&key) {
                    return Ok(name.clone());
                }
                let length = self.length(inner)?;
                let by = self.integers(&[*by as i64]);
                let name = self.part("Div", &[&length, &by], vec![]);
                self.symbols.insert(key, name.clone());
                Ok(name)
            }
        }
    }

    /// The value of a symbol, read off an input that has it as the length of an axis.
    fn symbol(&mut self, symbol: &str, dim: &Dim) -> Result<String> {
        if let Some(name) = self.symbols.get(symbol) {
            return Ok(name.clone());
        }
        let wanted = Dim::Symbol(symbol.to_owned().into());
        let found = self.graph.inputs.iter().find_map(|input| {
            input.shape.iter().position(|dim| *dim == wanted).map(|axis| (input.name.clone(), axis as i64))
        });
        let Some((input, axis)) = found else {
            if let Some(rest) = self.symbol_of_sum(symbol)? {
                return Ok(rest);
            }
            let problem = format!(
                "no input has an axis of length {symbol}, needed for {}",
                show(std::slice::from_ref(dim))
            );
            return Err(self.graph.error("Shape", problem));
        };
        let attributes = vec![Attribute::int("start", axis), Attribute::int("end", axis + 1)];
        let name = format!("/{symbol}");
        self.write("", "Shape", &[&input], attributes, name.clone(), name.clone());
        self.symbols.insert(symbol.to_owned(), name.clone());
        Ok(name)
    }

    /// The value of a symbol that no axis has for itself, from one that has it in a sum: all of it but the rest.
    fn symbol_of_sum(&mut self, symbol: &str) -> Result<Option<String>> {
        let wanted = Dim::Symbol(symbol.to_owned().into());
        let found = self.graph.inputs.iter().find_map(|input| {
            input.shape.iter().enumerate().find_map(|(axis, dim)| {
                let rest = dim.clone() - wanted.clone();
                let fits = matches!(dim, Dim::Sum(_)) && rest.clone() + wanted.clone() == *dim;
                (fits && !rest.mentions(symbol)).then(|| (input.name.clone(), axis as i64, rest))
            })
        });
        let Some((input, axis, rest)) = found else { return Ok(None) };
        let attributes = vec![Attribute::int("start", axis), Attribute::int("end", axis + 1)];
        let whole = self.part("Shape", &[&input], attributes);
        let rest = self.length(&rest)?;
        let name = self.part("Sub", &[&whole, &rest], vec![]);
        self.symbols.insert(symbol.to_owned(), name.clone());
        Ok(Some(name))
    }
}
