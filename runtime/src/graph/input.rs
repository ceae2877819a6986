//! Inputs of a model: name, dtype, shape, default and range.

use std::fmt;
use std::sync::Arc;

use super::{Dim, Dtype, Shape};
use crate::{Result, Value, Values};

/// An input of the model, by the reference's argument name.
#[derive(Clone, Debug)]
pub struct Input {
    /// The reference's name.
    pub name: String,
    /// The element type.
    pub dtype: Dtype,
    /// The lengths of all axes.
    pub shape: Shape,
    /// Its default; required where there is none.
    pub default: Option<InputDefault>,
    /// Ids must be below this, by the configuration field of that name.
    pub below: Option<(usize, &'static str)>,
    /// The token id that it must not hold, and what that stands for.
    pub(crate) forbidden_token: Option<(usize, &'static str)>,
    /// What its rows must be a multiple of, by the configuration field of that name.
    pub(crate) row_multiple: Option<(usize, &'static str)>,
    /// Whether whole numbers may be given for its floating-point ones.
    pub(crate) allows_integers: bool,
    /// Whether only its end is read, as long as the new tokens: what is given of cached ones is cut off.
    pub(crate) trailing: bool,
    /// What computes it from the other inputs before a run, where it is not given.
    pub(crate) computed: Option<Computed>,
}

/// A value that depends on other inputs in ways that graphs do not express, such as rows that are picked by sizes.
#[derive(Clone)]
pub(crate) struct Computed(pub Arc<Compute>);

/// The other inputs to the value.
pub(crate) type Compute = dyn Fn(&Values) -> Result<Value> + Send + Sync;

impl fmt::Debug for Computed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Computed")
    }
}

/// The default of an input that is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputDefault {
    /// All zero.
    Zeros,
    /// All one.
    Ones,
    /// This number everywhere.
    Full(i64),
    /// Of a modality that is left out while another is given, whose encoder runs nevertheless: so many along each axis that is
    /// symbolic, and `fill` everywhere. No token stands for what it gives.
    LeftOut {
        /// The length of symbolic axes.
        length: usize,
        /// The number everywhere.
        fill: i64,
    },
    /// 0, 1, 2 … along the last axis; where a cache is continued, on from its length.
    Positions,
    /// What a cache holds; nothing at first.
    Past,
    /// This number, then the next ones along the last axis; where a cache is continued, on from its length.
    PositionsFrom(usize),
    /// Along the last axis, the padding's id for padding and that plus 1, 2, 3 … for the tokens of another input.
    TokenPositions {
        /// The input that holds the tokens' ids; of the same shape.
        ids: &'static str,
        /// The padding's id.
        padding: usize,
    },
}

impl Input {
    fn new(name: &str, dtype: Dtype, shape: Vec<Dim>) -> Self {
        let name = name.to_owned();
        Self {
            name,
            dtype,
            shape,
            default: None,
            below: None,
            forbidden_token: None,
            row_multiple: None,
            allows_integers: false,
            trailing: false,
            computed: None,
        }
    }

    /// An input of 64-bit integers.
    pub fn i64(name: &str, shape: Vec<Dim>) -> Self {
        Self::new(name, Dtype::I64, shape)
    }

    /// An input of 32-bit floating-point numbers.
    pub fn f32(name: &str, shape: Vec<Dim>) -> Self {
        Self::new(name, Dtype::F32, shape)
    }

    /// An input of unsigned bytes: codes that a cache holds, given as integers.
    pub(crate) fn u8(name: &str, shape: Vec<Dim>) -> Self {
        Self::new(name, Dtype::U8, shape)
    }

    /// An input of booleans.
    pub fn bool(name: &str, shape: Vec<Dim>) -> Self {
        Self::new(name, Dtype::Bool, shape)
    }

    /// Gives it another axis, of this length, after the others.
    #[must_use]
    pub fn axis(mut self, length: impl Into<Dim>) -> Self {
        self.shape.push(length.into());
        self
    }

    /// Makes it optional.
    #[must_use]
    pub fn or(mut self, default: InputDefault) -> Self {
        self.default = Some(default);
        self
    }

    /// Takes the mask of all tokens, of which only that of new ones is read.
    #[must_use]
    pub fn trailing(mut self) -> Self {
        self.trailing = true;
        self
    }

    /// Computes it from the other inputs before a run, where it is not given.
    #[must_use]
    pub fn computed(mut self, of: impl Fn(&Values) -> Result<Value> + Send + Sync + 'static) -> Self {
        self.computed = Some(Computed(Arc::new(of)));
        self
    }

    /// Bounds its values: `0 ≤ value < limit`; `field` is the configuration field that sets the limit.
    #[must_use]
    pub fn below(mut self, limit: usize, field: &'static str) -> Self {
        self.below = Some((limit, field));
        self
    }
}

/// The largest value that a symbol may take, and the configuration field that says so.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    pub symbol: String,
    pub most: usize,
    pub field: &'static str,
}
