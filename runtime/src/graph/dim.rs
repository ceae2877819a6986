//! Lengths of axes: known numbers, symbols such as `batch`, and sums, products and quotients of them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Add, Mul, Sub};
use std::sync::Arc;

/// The symbols that model inputs share.
pub mod dims {
    use super::Dim;

    /// Independent items that are run together.
    pub const BATCH: Dim = Dim::symbol("batch");
    /// Positions in a text.
    pub const SEQUENCE: Dim = Dim::symbol("sequence");
    /// Positions in a text that were run before and are cached.
    pub const PAST: Dim = Dim::symbol("past");
    /// Cached items, where beams continue them in another order.
    pub const PAST_BATCH: Dim = Dim::symbol("past_batch");
    /// Tokens that a step runs together: an axis of no input, limited where a token's logits hang on how many run with it.
    pub const TOKENS_TOGETHER: Dim = Dim::symbol("tokens_together");
    /// Positions whose logits are computed.
    pub const LOGITS_TO_KEEP: Dim = Dim::symbol("logits_to_keep");
    /// Positions in what an encoder reads, where a decoder has a sequence of its own.
    pub const ENCODER_SEQUENCE: Dim = Dim::symbol("encoder_sequence");
    /// Images, where texts are run with them.
    pub const IMAGES: Dim = Dim::symbol("images");
    /// Videos, where texts are run with them.
    pub const VIDEOS: Dim = Dim::symbol("videos");
    /// Recordings, where texts are run with them.
    pub const RECORDINGS: Dim = Dim::symbol("recordings");
    /// Rows of pixels.
    pub const HEIGHT: Dim = Dim::symbol("height");
    /// Columns of pixels.
    pub const WIDTH: Dim = Dim::symbol("width");
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
    /// A sum of products; never equal in value to one of the simpler forms.
    Sum(Arc<Polynomial>),
}

/// Coefficients by product of factors; the empty product stands for a number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Polynomial(BTreeMap<Vec<Factor>, i64>);

/// A part of a length that is known when the model is run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Factor {
    /// The length of an input's axis.
    Symbol(Cow<'static, str>),
    /// A length divided by a number, rounded down.
    Quotient(Arc<Dim>, usize),
}

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

    /// The terms as (coefficient, factors): what an engine computes at run time.
    pub fn terms(&self) -> Vec<(i64, Vec<Factor>)> {
        self.polynomial().0.into_iter().map(|(factors, n)| (n, factors)).collect()
    }

    /// The length divided by a number, rounded down.
    ///
    /// ```
    /// use weft::graph::{Dim, dims::SEQUENCE};
    /// let halved = (SEQUENCE * Dim::from(4) + Dim::from(3)).floor_div(2);
    /// assert_eq!(halved, SEQUENCE * Dim::from(2) + Dim::from(1));
    /// ```
    #[must_use]
    pub fn floor_div(&self, divisor: usize) -> Self {
        let by = narrow(divisor.max(1));
        let (mut whole, mut rest) = (Polynomial::default(), Polynomial::default());
        for (factors, n) in self.polynomial().0 {
            // What is left is never below zero, where engines round towards zero.
            let (quotient, remainder) = match factors.is_empty() || n % by == 0 || n < 0 {
                true => (n.div_euclid(by), n.rem_euclid(by)),
                false => (0, n),
            };
            whole.add(factors.clone(), quotient);
            rest.add(factors, remainder);
        }
        // What is left of the number alone is less than one.
        if rest.0.keys().any(|factors| !factors.is_empty()) {
            whole.add(vec![Factor::Quotient(Arc::new(rest.into()), divisor)], 1);
        }
        whole.into()
    }

    /// The length divided by a number, rounded up.
    #[must_use]
    pub fn ceil_div(&self, divisor: usize) -> Self {
        (self.clone() + Self::Fixed(divisor.saturating_sub(1))).floor_div(divisor)
    }

    /// The value once symbols have values; `None` if one is unknown.
    pub fn evaluate(&self, value_of: &dyn Fn(&str) -> Option<usize>) -> Option<usize> {
        self.number(value_of).map(|n| usize::try_from(n).unwrap_or_default())
    }

    fn number(&self, value_of: &dyn Fn(&str) -> Option<usize>) -> Option<i64> {
        self.terms().into_iter().try_fold(0_i64, |sum, (n, factors)| {
            let term = factors.iter().try_fold(n, |product, factor| {
                let value = match factor {
                    Factor::Symbol(name) => narrow(value_of(name)?),
                    Factor::Quotient(dim, by) => dim.number(value_of)?.div_euclid(narrow(*by)),
                };
                Some(product.saturating_mul(value))
            });
            Some(sum.saturating_add(term?))
        })
    }

    /// The same length with some symbols replaced by numbers.
    #[must_use]
    pub fn substitute(&self, value_of: &dyn Fn(&str) -> Option<usize>) -> Self {
        let mut sum = Polynomial::default();
        for (n, factors) in self.terms() {
            let mut product = Polynomial(BTreeMap::from([(vec![], n)]));
            for factor in factors {
                let value = match &factor {
                    Factor::Symbol(name) => match value_of(name) {
                        Some(value) => Self::Fixed(value),
                        None => Self::Symbol(name.clone()),
                    },
                    Factor::Quotient(dim, by) => dim.substitute(value_of).floor_div(*by),
                };
                product = product.times(&value.polynomial());
            }
            product.0.into_iter().for_each(|(factors, n)| sum.add(factors, n));
        }
        sum.into()
    }

    /// Whether it depends on a symbol.
    pub fn mentions(&self, symbol: &str) -> bool {
        self.terms().iter().flat_map(|(_, factors)| factors).any(|factor| match factor {
            Factor::Symbol(name) => name == symbol,
            Factor::Quotient(dim, _) => dim.mentions(symbol),
        })
    }

    fn polynomial(&self) -> Polynomial {
        match self {
            Self::Fixed(0) => Polynomial::default(),
            Self::Fixed(n) => Polynomial(BTreeMap::from([(vec![], narrow(*n))])),
            Self::Symbol(name) => Polynomial(BTreeMap::from([(vec![Factor::Symbol(name.clone())], 1)])),
            Self::Sum(p) => (**p).clone(),
        }
    }
}

fn narrow(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

impl Polynomial {
    fn add(&mut self, factors: Vec<Factor>, n: i64) {
        let sum = self.0.get(&factors).copied().unwrap_or_default().saturating_add(n);
        match sum {
            0 => self.0.remove(&factors),
            sum => self.0.insert(factors, sum),
        };
    }

    fn times(&self, other: &Self) -> Self {
        let mut product = Self::default();
        for (a, n) in &self.0 {
            for (b, m) in &other.0 {
                let mut factors: Vec<_> = a.iter().chain(b).cloned().collect();
                factors.sort();
                product.add(factors, n.saturating_mul(*m));
            }
        }
        product
    }
}

impl From<Polynomial> for Dim {
    /// The simplest form of the same value; a number below zero is no length, and becomes 0.
    fn from(p: Polynomial) -> Self {
        let mut terms = p.0.iter();
        match (terms.next(), terms.next()) {
            (None, _) => Self::Fixed(0),
            (Some((factors, n)), None) if factors.is_empty() => {
                Self::Fixed(usize::try_from(*n).unwrap_or_default())
            }
            (Some((factors, 1)), None) => match factors.as_slice() {
                [Factor::Symbol(name)] => Self::Symbol(name.clone()),
                _ => Self::Sum(Arc::new(p)),
            },
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
        other.polynomial().0.into_iter().for_each(|(factors, n)| sum.add(factors, n));
        sum.into()
    }
}

impl Sub for Dim {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        let mut difference = self.polynomial();
        other.polynomial().0.into_iter().for_each(|(factors, n)| difference.add(factors, n.saturating_neg()));
        difference.into()
    }
}

impl Mul for Dim {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        self.polynomial().times(&other.polynomial()).into()
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (n, factors)) in self.terms().into_iter().enumerate() {
            if index > 0 && n >= 0 {
                f.write_str("+")?;
            }
            let product = factors.iter().map(ToString::to_string).collect::<Vec<_>>().join("*");
            match (n, factors.is_empty()) {
                (n, true) => write!(f, "{n}")?,
                (1, false) => f.write_str(&product)?,
                (-1, false) => write!(f, "-{product}")?,
                (n, false) => write!(f, "{n}*{product}")?,
            }
        }
        if *self == Self::Fixed(0) { f.write_str("0") } else { Ok(()) }
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Symbol(name) => f.write_str(name),
            Self::Quotient(dim, by) => match dim.as_ref() {
                Dim::Symbol(name) => write!(f, "{name}/{by}"),
                other => write!(f, "({other})/{by}"),
            },
        }
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
    fn quotients_are_taken_apart_and_put_together() {
        let conv = |length: Dim| (length - Dim::Fixed(10)).floor_div(5) + Dim::Fixed(1);
        let length = conv(SEQUENCE);
        assert_eq!(length.to_string(), "-1+sequence/5");
        assert_eq!(length.evaluate(&|_| Some(104)), Some(19));
        assert_eq!(length.substitute(&|_| Some(104)), Dim::Fixed(19));
        assert_eq!(conv(Dim::Fixed(104)), Dim::Fixed(19));
        assert_eq!((SEQUENCE * Dim::Fixed(4) + Dim::Fixed(3)).floor_div(2).to_string(), "1+2*sequence");
        assert_eq!(SEQUENCE.floor_div(2), (SEQUENCE + Dim::Fixed(2)).floor_div(2) - Dim::Fixed(1));
        // Half of what is left of 7, whose half rounds towards zero below it.
        let middle = (Dim::Fixed(7) - SEQUENCE).floor_div(2);
        assert_eq!(middle, Dim::Fixed(3) - SEQUENCE + (SEQUENCE + Dim::Fixed(1)).floor_div(2));
        assert_eq!(middle.evaluate(&|_| Some(4)), Some(1));
        assert_eq!((SEQUENCE - SEQUENCE).to_string(), "0");
        assert!(length.mentions("sequence") && !length.mentions("batch"));
        assert_eq!(Dim::Fixed(7).ceil_div(2), Dim::Fixed(4));
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
