//! Names and types of expressions.

use super::tree::{Expression, Function, Node, Operator};
use super::{Kind, Name, Names, Wrong};
use crate::spec::document::nearest_name;

/// An expression whose names are known and whose types fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// What it gives; a whole number may stand where a number is expected.
    pub kind: Kind,
    /// Whether it may give null.
    pub optional: bool,
    pub(super) tree: Tree,
}

/// The kinds of checked expressions.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tree {
    Number(String),
    Text(String),
    Truth(bool),
    Null,
    Name(Name),
    Element(Name, Box<Checked>),
    Negate(Box<Checked>),
    Not(Box<Checked>),
    Binary(Operator, Box<Checked>, Box<Checked>),
    In(Box<Checked>, Name),
    IsNull(Box<Checked>),
    Or(Box<Checked>, Box<Checked>),
    If(Box<Checked>, Box<Checked>, Box<Checked>),
    Call(Function, Vec<Checked>),
}

impl Checked {
    fn new(kind: Kind, tree: Tree) -> Self {
        Self { kind, optional: false, tree }
    }

    fn maybe(self, optional: bool) -> Self {
        Self { optional, ..self }
    }

    /// The truth value that it always gives, if it is a literal.
    pub fn truth(&self) -> Option<bool> {
        match self.tree {
            Tree::Truth(value) => Some(value),
            _ => None,
        }
    }

    /// Whether it is a number of at least 1, whatever the configuration says.
    fn positive(&self) -> bool {
        let positive = |inner: &Self| inner.positive();
        match &self.tree {
            Tree::Number(text) => text.parse::<f64>().is_ok_and(|number| number >= 1.0),
            Tree::Name(name) => name.min >= 1,
            Tree::Binary(Operator::Add, a, b) => a.positive() || b.positive(),
            Tree::Binary(Operator::Multiply, a, b) | Tree::Or(a, b) | Tree::If(a, _, b) => {
                a.positive() && b.positive()
            }
            Tree::Call(Function::Max, arguments) => arguments.iter().any(positive),
            Tree::Call(_, arguments) => arguments.iter().all(positive),
            _ => false,
        }
    }
}

impl Expression {
    /// Checks it against what a place takes: a kind, and whether that may be null there.
    ///
    /// # Errors
    /// A name is unknown, or a type does not fit; `text` is what was parsed.
    pub fn check(
        &self,
        text: &str,
        names: &dyn Names,
        expected: Kind,
        nullable: bool,
    ) -> Result<Checked, Wrong> {
        let checker = Checker { text, names };
        let found = checker.check(self)?;
        let fits = matches!(
            (found.kind, expected),
            (Kind::Null, _)
                | (Kind::Usize, Kind::Usize | Kind::I64 | Kind::F64)
                | (Kind::I64, Kind::I64 | Kind::F64)
        ) || found.kind == expected;
        if !fits {
            let (is, expected) = (found.kind.words(), expected.words());
            return Err(Wrong::new(format!("`{}` is {is}; expected {expected}", text.trim())));
        }
        if nullable { Ok(found) } else { checker.given(self, found) }
    }
}

struct Checker<'a> {
    text: &'a str,
    names: &'a dyn Names,
}

impl Checker<'_> {
    fn shown(&self, expression: &Expression) -> &str {
        self.text.get(expression.span.clone()).unwrap_or_default().trim()
    }

    fn check(&self, expression: &Expression) -> Result<Checked, Wrong> {
        match &expression.node {
            Node::Number(text) => {
                let kind = if text.contains(['.', 'e', 'E']) { Kind::F64 } else { Kind::Usize };
                Ok(Checked::new(kind, Tree::Number(text.clone())))
            }
            Node::Text(text) => Ok(Checked::new(Kind::Text, Tree::Text(text.clone()))),
            Node::Truth(value) => Ok(Checked::new(Kind::Bool, Tree::Truth(*value))),
            Node::Null => Ok(Checked::new(Kind::Null, Tree::Null).maybe(true)),
            Node::Name(path) => {
                let name = self.names.name(path)?;
                Ok(Checked::new(name.kind, Tree::Name(name.clone())).maybe(name.optional))
            }
            Node::Element(list, index) => {
                let (name, kind) = self.list(list)?;
                let index = self.number(index)?;
                if index.kind != Kind::Usize {
                    return Err(Wrong::new(format!("`{}` is indexed by {}", name.rust, index.kind.words())));
                }
                Ok(Checked::new(kind, Tree::Element(name, Box::new(index))).maybe(true))
            }
            Node::Negate(inner) => {
                let inner = self.number(inner)?;
                let kind = if inner.kind == Kind::Usize { Kind::I64 } else { inner.kind };
                Ok(Checked::new(kind, Tree::Negate(Box::new(inner))))
            }
            Node::Not(inner) => Ok(Checked::new(Kind::Bool, Tree::Not(Box::new(self.truth(inner)?)))),
            Node::Binary(operator @ (Operator::And | Operator::Or), a, b) => {
                let (a, b) = (self.truth(a)?, self.truth(b)?);
                Ok(Checked::new(Kind::Bool, Tree::Binary(*operator, Box::new(a), Box::new(b))))
            }
            Node::Binary(operator, a, b) => self.binary(expression, *operator, a, b),
            Node::In(item, list) => {
                let (name, kind) = self.list(list)?;
                let found = self.check(item)?;
                let found = self.given(item, found)?;
                if found.kind != kind {
                    let (is, holds) = (found.kind.words(), kind.words());
                    let (item, list) = (self.shown(item), self.shown(list));
                    return Err(Wrong::new(format!("`{item}` is {is}, and an element of `{list}` {holds}")));
                }
                self.word(&name, self.shown(list), &found)?;
                Ok(Checked::new(Kind::Bool, Tree::In(Box::new(found), name)))
            }
            Node::IsNull(inner) => {
                let found = self.check(inner)?;
                self.nullable(inner, &found, "`is null` is always false")?;
                Ok(Checked::new(Kind::Bool, Tree::IsNull(Box::new(found))))
            }
            Node::Or(a, b) => {
                let (first, second) = (self.check(a)?, self.check(b)?);
                self.nullable(a, &first, "`??` has nothing to stand for")?;
                let kind = self.common(expression, first.kind, second.kind)?;
                let optional = second.optional;
                Ok(Checked::new(kind, Tree::Or(Box::new(first), Box::new(second))).maybe(optional))
            }
            Node::If(a, condition, b) => {
                let condition = self.truth(condition)?;
                let (first, second) = (self.check(a)?, self.check(b)?);
                let kind = self.common(expression, first.kind, second.kind)?;
                let optional = first.optional || second.optional;
                let tree = Tree::If(Box::new(first), Box::new(condition), Box::new(second));
                Ok(Checked::new(kind, tree).maybe(optional))
            }
            Node::Call(function, arguments) => {
                let arguments: Vec<_> =
                    arguments.iter().map(|argument| self.number(argument)).collect::<Result<_, _>>()?;
                let kinds = arguments.iter().map(|argument| argument.kind);
                let kind = match function {
                    Function::Sqrt => Kind::F64,
                    _ => kinds.reduce(wider).unwrap_or(Kind::Usize),
                };
                Ok(Checked::new(kind, Tree::Call(*function, arguments)))
            }
        }
    }

    fn binary(
        &self,
        whole: &Expression,
        operator: Operator,
        a: &Expression,
        b: &Expression,
    ) -> Result<Checked, Wrong> {
        let (first, second) = (self.check(a)?, self.check(b)?);
        if first.optional && second.optional {
            let (a, b) = (self.shown(a), self.shown(b));
            let message =
                format!("both `{a}` and `{b}` may be null; say with `??` what stands for one of them");
            return Err(Wrong::new(message));
        }
        let optional = first.optional || second.optional;
        for (side, found) in [(a, &first), (b, &second)] {
            let number = number(found.kind);
            if (operator.is_arithmetic() || operator.is_order()) && !number {
                let (side, is) = (self.shown(side), found.kind.words());
                let message = format!("`{side}` is {is}, and `{}` takes numbers", operator.text());
                return Err(Wrong::new(message));
            }
            let compared = number || matches!(found.kind, Kind::Bool | Kind::Text);
            if !compared {
                let (side, is) = (self.shown(side), found.kind.words());
                return Err(Wrong::new(format!("`{side}` is {is}, which cannot be compared")));
            }
        }
        let common = self.common(whole, first.kind, second.kind)?;
        let whole_numbers = common != Kind::F64;
        if matches!(operator, Operator::Divide | Operator::Remainder) && whole_numbers && !second.positive() {
            let divisor = self.shown(b);
            let message = format!("`{divisor}` may be 0, and is divided by; give it `min: 1` in config");
            return Err(Wrong::new(message));
        }
        for (field, other, side) in [(&first, &second, a), (&second, &first, b)] {
            if let Tree::Name(name) | Tree::Element(name, _) = &field.tree {
                self.word(name, self.shown(side), other)?;
            }
        }
        let kind = match operator {
            Operator::Power => Kind::F64,
            _ if operator.is_arithmetic() => common,
            _ => Kind::Bool,
        };
        Ok(Checked::new(kind, Tree::Binary(operator, Box::new(first), Box::new(second))).maybe(optional))
    }

    /// A text that is compared with a field is one of the words that the field can be.
    fn word(&self, name: &Name, shown: &str, text: &Checked) -> Result<(), Wrong> {
        let Tree::Text(word) = &text.tree else { return Ok(()) };
        if name.of.is_empty() || name.of.contains(word) {
            return Ok(());
        }
        let words = name.of.iter().map(String::as_str);
        Err(Wrong {
            message: format!("`{shown}` is never \"{word}\"; it is one of {}", name.of.join(", ")),
            nearest: nearest_name(word, words).map(str::to_owned),
        })
    }

    /// A field that is a list, and what its elements are.
    fn list(&self, expression: &Expression) -> Result<(Name, Kind), Wrong> {
        let found = self.check(expression)?;
        match (found.tree, found.kind) {
            (Tree::Name(name), Kind::List(item)) => Ok((name, item.kind())),
            (_, kind) => {
                Err(Wrong::new(format!("`{}` is {}; expected a list", self.shown(expression), kind.words())))
            }
        }
    }

    fn number(&self, expression: &Expression) -> Result<Checked, Wrong> {
        let found = self.check(expression)?;
        if !number(found.kind) {
            let (shown, is) = (self.shown(expression), found.kind.words());
            return Err(Wrong::new(format!("`{shown}` is {is}; expected a number")));
        }
        self.given(expression, found)
    }

    fn truth(&self, expression: &Expression) -> Result<Checked, Wrong> {
        let found = self.check(expression)?;
        if found.kind != Kind::Bool {
            let (shown, is) = (self.shown(expression), found.kind.words());
            return Err(Wrong::new(format!("`{shown}` is {is}; expected true or false")));
        }
        self.given(expression, found)
    }

    /// What is never null.
    fn given(&self, expression: &Expression, found: Checked) -> Result<Checked, Wrong> {
        if !found.optional {
            return Ok(found);
        }
        let shown = self.shown(expression);
        Err(Wrong::new(format!("`{shown}` may be null; say what stands for it then: `{shown} ?? …`")))
    }

    /// What may be null.
    fn nullable(&self, expression: &Expression, found: &Checked, so: &str) -> Result<(), Wrong> {
        if found.optional {
            return Ok(());
        }
        Err(Wrong::new(format!("`{}` is never null; {so}", self.shown(expression))))
    }

    fn common(&self, expression: &Expression, a: Kind, b: Kind) -> Result<Kind, Wrong> {
        match (a, b) {
            (Kind::Null, other) | (other, Kind::Null) => Ok(other),
            _ if a == b => Ok(a),
            _ if number(a) && number(b) => Ok(wider(a, b)),
            _ => {
                let (a, b) = (a.words(), b.words());
                Err(Wrong::new(format!("`{}` puts {a} beside {b}", self.shown(expression))))
            }
        }
    }
}

fn number(kind: Kind) -> bool {
    matches!(kind, Kind::Usize | Kind::I64 | Kind::F64)
}

/// The kind of numbers that both are.
fn wider(a: Kind, b: Kind) -> Kind {
    match (a, b) {
        (Kind::F64, _) | (_, Kind::F64) => Kind::F64,
        (Kind::I64, _) | (_, Kind::I64) => Kind::I64,
        _ => Kind::Usize,
    }
}
