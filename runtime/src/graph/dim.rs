//! Lengths of axes: known numbers, symbols such as `batch`, and sums and products of them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Add, Mul};
use std::sync::Arc;

/// The symbols that model inputs share.
pub mod dims {
    use super::Dim;

    /// Independent items that are run together.
    pub const BATCH: Dim = Dim::symbol("batch");
    /// Positions in a text.
    pub const SEQUENCE: Dim = Dim::symbol("sequence");
    /// Alternatives of a multiple-choice item.
    pub const CHOICES: Dim = Dim::symbol("choices");
}

/// The length of one axis.
///
/// Arithmetic stops at the largest number instead of overflowing: no weight has such a shape, so a configuration
/// with absurd sizes ends in an error about its weights.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dim {
    /// Known when the graph is built.
    Fixed(usize),
    /// Known when the model is run.
    Symbol(Cow<'static, str>),
    /// A sum of products of symbols; never equal in value to one of the simpler forms.
    Sum(Arc<Polynomial>),
}

/// Coefficients by product of symbols; the empty product stands for a number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Polynomial(BTreeMap<Vec<Cow<'static, str>>, usize>);

impl Dim {
    /// A symbol, usable in constants.
    pub const fn symbol(name: &'static str) -> Self {
        Self::Symbol(Cow::Borrowed(name))
    }

    /// The number, where it is one.
    pub fn fixed(&self) -> Option<usize> {
        match self {
            Self::Fixed(n) => Some(*n),
            _ => None,
        }
    }

    /// The terms as (coefficient, symbols): what an engine computes at run time.
    pub fn terms(&self) -> Vec<(usize, Vec<&str>)> {
        match self {
            Self::Fixed(n) => vec![(*n, vec![])],
            Self::Symbol(name) => vec![(1, vec![name.as_ref()])],
            Self::Sum(p) => {
                p.0.iter().map(|(symbols, n)| (*n, symbols.iter().map(AsRef::as_ref).collect())).collect()
            }
        }
    }

    /// The value once symbols have values; `None` if one is unknown.
    pub fn evaluate(&self, value_of: &dyn Fn(&str) -> Option<usize>) -> Option<usize> {
        self.terms().into_iter().try_fold(0, |sum, (n, symbols)| {
            symbols
                .into_iter()
                .try_fold(n, |product, name| Some(usize::saturating_mul(product, value_of(name)?)))
                .map(|term| usize::saturating_add(sum, term))
        })
    }

    /// The same length with some symbols replaced by numbers.
    pub fn substitute(&self, value_of: &dyn Fn(&str) -> Option<usize>) -> Self {
        self.terms().into_iter().fold(Self::Fixed(0), |sum, (n, symbols)| {
            let term = symbols.into_iter().fold(Self::Fixed(n), |product, name| match value_of(name) {
                Some(value) => product * Self::Fixed(value),
                None => product * Self::Symbol(Cow::Owned(name.to_owned())),
            });
            sum + term
        })
    }

    fn polynomial(&self) -> Polynomial {
        match self {
            Self::Fixed(0) => Polynomial::default(),
            Self::Fixed(n) => Polynomial(BTreeMap::from([(vec![], *n)])),
            Self::Symbol(name) => Polynomial(BTreeMap::from([(vec![name.clone()], 1)])),
            Self::Sum(p) => (**p).clone(),
        }
    }
}

impl From<Polynomial> for Dim {
    /// The simplest form of the same value.
    fn from(p: Polynomial) -> Self {
        let mut terms = p.0.iter();
        match (terms.next(), terms.next()) {
            (None, _) => Self::Fixed(0),
            (Some((symbols, n)), None) if symbols.is_empty() => Self::Fixed(*n),
            (Some((symbols, 1)), None) if symbols.len() == 1 => Self::Symbol(symbols[0].clone()),
            _ => Self::Sum(Arc::new(p)),
        }
    }
}

impl From<usize> for Dim {
    fn from(n: usize) -> Self {
        Self::Fixed(n)
    }
}

impl From<&Dim> for Dim {
    fn from(dim: &Dim) -> Self {
        dim.clone()
    }
}

impl Add for Dim {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let mut sum = self.polynomial();
        for (symbols, n) in other.polynomial().0 {
            let coefficient = sum.0.entry(symbols).or_default();
            *coefficient = coefficient.saturating_add(n);
        }
        sum.into()
    }
}

impl Mul for Dim {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let (left, right) = (self.polynomial(), other.polynomial());
        let mut product = Polynomial::default();
        for (a, n) in &left.0 {
            for (b, m) in &right.0 {
                let mut symbols: Vec<_> = a.iter().chain(b).cloned().collect();
                symbols.sort();
                let coefficient = product.0.entry(symbols).or_default();
                *coefficient = coefficient.saturating_add(n.saturating_mul(*m));
            }
        }
        product.into()
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms = self.terms().into_iter().map(|(n, symbols)| match (n, symbols.is_empty()) {
            (n, true) => n.to_string(),
            (1, false) => symbols.join("*"),
            (n, false) => format!("{n}*{}", symbols.join("*")),
        });
        f.write_str(&terms.collect::<Vec<_>>().join("+"))
    }
}

/// A list of lengths: `dims![BATCH, SEQUENCE, c.hidden_size]`.
#[macro_export]
macro_rules! dims {
    ($($dim:expr),* $(,)?) => { vec![$($crate::graph::Dim::from($dim)),*] };
}

#[cfg(test)]
mod tests {
    use super::dims::{BATCH, SEQUENCE};
    use super::*;

    #[test]
    fn equal_values_are_equal() {
        let a = BATCH * (SEQUENCE + Dim::Fixed(1));
        let b = SEQUENCE * BATCH + BATCH;
        assert_eq!(a, b);
        assert_eq!(a.to_string(), "batch+batch*sequence");
        assert_eq!(Dim::Fixed(2) * Dim::Fixed(3), Dim::Fixed(6));
        assert_eq!(BATCH * Dim::Fixed(1), BATCH);
        assert_eq!(BATCH * Dim::Fixed(0), Dim::Fixed(0));
    }

    #[test]
    fn substitution_gives_numbers() {
        let dim = BATCH * SEQUENCE + Dim::Fixed(4);
        let of = |name: &str| (name == "batch").then_some(2);
        assert_eq!(dim.substitute(&of).to_string(), "4+2*sequence");
        assert_eq!(dim.evaluate(&|name| Some(if name == "batch" { 2 } else { 8 })), Some(20));
        assert_eq!(dim.evaluate(&of), None);
    }
}
