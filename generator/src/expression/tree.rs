//! The syntax tree of an expression.

use std::ops::Range;

/// An expression and where in the text it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// The bytes of the text that it is.
    pub span: Range<usize>,
    /// What it is.
    pub node: Node,
}

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A number as it is written.
    Number(String),
    /// A text between quotes.
    Text(String),
    /// `true` or `false`.
    Truth(bool),
    /// `null`.
    Null,
    /// A field, or a variable of the template; dots lead into configurations.
    Name(String),
    /// An element of a list.
    Element(Box<Expression>, Box<Expression>),
    /// The negative of a number.
    Negate(Box<Expression>),
    /// The opposite of a truth value.
    Not(Box<Expression>),
    /// Two operands and what stands between them.
    Binary(Operator, Box<Expression>, Box<Expression>),
    /// Whether a list has an element.
    In(Box<Expression>, Box<Expression>),
    /// Whether a value is null.
    IsNull(Box<Expression>),
    /// The first, or the second where that is null.
    Or(Box<Expression>, Box<Expression>),
    /// The first where the second holds, or else the third.
    If(Box<Expression>, Box<Expression>, Box<Expression>),
    /// A function and its arguments.
    Call(Function, Vec<Expression>),
}

/// What stands between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Remainder,
    /// `**`
    Power,
    /// `==`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `and`
    And,
    /// `or`
    Or,
}

/// The functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// The least of two numbers.
    Min,
    /// The greatest of two numbers.
    Max,
    /// The square root.
    Sqrt,
}

impl Function {
    /// All of them, by name.
    pub const ALL: [(&'static str, Self, usize); 3] =
        [("min", Self::Min, 2), ("max", Self::Max, 2), ("sqrt", Self::Sqrt, 1)];
}

impl Operator {
    /// As it is written in expressions.
    pub fn text(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
            Self::Power => "**",
            Self::Equal => "==",
            Self::Unequal => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::And => "and",
            Self::Or => "or",
        }
    }

    /// As it is written in Rust; `**` is a method there.
    pub fn rust(self) -> &'static str {
        match self {
            Self::And => "&&",
            Self::Or => "||",
            other => other.text(),
        }
    }

    /// Whether it makes a number of two.
    pub fn is_arithmetic(self) -> bool {
        use Operator::{Add, Divide, Multiply, Power, Remainder, Subtract};
        matches!(self, Add | Subtract | Multiply | Divide | Remainder | Power)
    }

    /// Whether it asks which of two numbers is greater.
    pub fn is_order(self) -> bool {
        matches!(self, Self::Less | Self::LessOrEqual | Self::Greater | Self::GreaterOrEqual)
    }
}
