//! The grammar of expressions, from what binds least to what binds most.
//!
//! `a if b else c`, `??`, `or`, `and`, `not`, comparisons, `+ -`, `* / %`, `-a`, `**`, `list[index]`.

use super::Wrong;
use super::token::{Lexeme, Token, tokens};
use super::tree::{Expression, Function, Node, Operator};
use crate::spec::document::nearest_name;

/// Words that are no names.
const WORDS: [&str; 10] = ["if", "else", "or", "and", "not", "is", "in", "null", "true", "false"];
/// So deep that no expression that is meant to be read gets there.
const DEPTH: usize = 64;

impl Expression {
    /// Reads a text.
    ///
    /// # Errors
    /// The text is not an expression.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        let tokens = tokens(text)?;
        let mut parser = Parser { text, tokens, next: 0, depth: 0 };
        let expression = parser.choice()?;
        match parser.peek() {
            None => Ok(expression),
            Some(found) => Err(Wrong::new(format!(
                "`{found}` stands behind what is already an expression, `{}`",
                &text[expression.span]
            ))),
        }
    }

    /// The names of fields and variables in it.
    pub fn names(&self) -> Vec<String> {
        match &self.node {
            Node::Number(_) | Node::Text(_) | Node::Truth(_) | Node::Null => vec![],
            Node::Name(name) => vec![name.clone()],
            Node::Negate(a) | Node::Not(a) | Node::IsNull(a) => a.names(),
            Node::Element(a, b) | Node::Binary(_, a, b) | Node::In(a, b) | Node::Or(a, b) => {
                [a.names(), b.names()].concat()
            }
            Node::If(a, b, c) => [a.names(), b.names(), c.names()].concat(),
            Node::Call(_, arguments) => arguments.iter().flat_map(Self::names).collect(),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.next).map(|token| &self.text[token.span.clone()])
    }

    /// Whether this word or sign comes next; it is then passed over.
    fn take(&mut self, expected: &str) -> bool {
        let text = self.tokens.get(self.next).is_some_and(|token| matches!(token.kind, Lexeme::Text(_)));
        let found = !text && self.peek() == Some(expected);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, expected: &str) -> Result<(), Wrong> {
        if self.take(expected) {
            return Ok(());
        }
        let found = self.peek().map_or("the end".to_owned(), |found| format!("`{found}`"));
        Err(Wrong::new(format!("expected `{expected}`, found {found} in `{}`", self.text)))
    }

    /// An expression from where another starts to what was read last.
    fn to_here(&self, start: usize, node: Node) -> Expression {
        let end = self.next.checked_sub(1).map_or(0, |last| self.tokens[last].span.end);
        Expression { span: start..end, node }
    }

    fn two(
        &self,
        a: Expression,
        b: Expression,
        node: impl FnOnce(Box<Expression>, Box<Expression>) -> Node,
    ) -> Expression {
        let start = a.span.start;
        self.to_here(start, node(Box::new(a), Box::new(b)))
    }

    fn choice(&mut self) -> Result<Expression, Wrong> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(Wrong::new("is nested too deeply"));
        }
        let value = self.or_else()?;
        let value = if self.take("if") {
            let condition = self.or_else()?;
            self.expect("else")?;
            let other = self.choice()?;
            let start = value.span.start;
            self.to_here(start, Node::If(Box::new(value), Box::new(condition), Box::new(other)))
        } else {
            value
        };
        self.depth -= 1;
        Ok(value)
    }

    fn or_else(&mut self) -> Result<Expression, Wrong> {
        let value = self.either()?;
        if !self.take("??") {
            return Ok(value);
        }
        let other = self.or_else()?;
        Ok(self.two(value, other, Node::Or))
    }

    fn either(&mut self) -> Result<Expression, Wrong> {
        self.chain(&[Operator::Or], Self::both)
    }

    fn both(&mut self) -> Result<Expression, Wrong> {
        self.chain(&[Operator::And], Self::negation)
    }

    fn negation(&mut self) -> Result<Expression, Wrong> {
        let start = self.tokens.get(self.next).map_or(self.text.len(), |token| token.span.start);
        let mut count = 0;
        while self.take("not") {
            count += 1;
        }
        let mut value = self.comparison()?;
        for _ in 0..count {
            value = self.to_here(start, Node::Not(Box::new(value)));
        }
        Ok(value)
    }

    fn comparison(&mut self) -> Result<Expression, Wrong> {
        use Operator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, Unequal};
        const ALL: [Operator; 6] = [Equal, Unequal, LessOrEqual, GreaterOrEqual, Less, Greater];
        let value = self.sum()?;
        let start = value.span.start;
        if self.take("is") {
            let not = self.take("not");
            self.expect("null")?;
            let value = self.to_here(start, Node::IsNull(Box::new(value)));
            return Ok(if not { self.to_here(start, Node::Not(Box::new(value))) } else { value });
        }
        let not = self.take("not");
        if not || self.peek() == Some("in") {
            self.expect("in")?;
            let list = self.sum()?;
            let value = self.two(value, list, Node::In);
            return Ok(if not { self.to_here(start, Node::Not(Box::new(value))) } else { value });
        }
        let Some(operator) = ALL.into_iter().find(|operator| self.take(operator.text())) else {
            return Ok(value);
        };
        let other = self.sum()?;
        if ALL.iter().any(|operator| self.peek() == Some(operator.text())) {
            return Err(Wrong::new(format!("`{}` has two comparisons; join them with `and`", self.text)));
        }
        Ok(self.two(value, other, |a, b| Node::Binary(operator, a, b)))
    }

    fn sum(&mut self) -> Result<Expression, Wrong> {
        self.chain(&[Operator::Add, Operator::Subtract], Self::product)
    }

    fn product(&mut self) -> Result<Expression, Wrong> {
        self.chain(&[Operator::Multiply, Operator::Divide, Operator::Remainder], Self::sign)
    }

    fn chain(
        &mut self,
        operators: &[Operator],
        operand: fn(&mut Self) -> Result<Expression, Wrong>,
    ) -> Result<Expression, Wrong> {
        let mut value = operand(self)?;
        while let Some(&operator) = operators.iter().find(|operator| self.take(operator.text())) {
            let other = operand(self)?;
            value = self.two(value, other, |a, b| Node::Binary(operator, a, b));
        }
        Ok(value)
    }

    fn sign(&mut self) -> Result<Expression, Wrong> {
        let start = self.tokens.get(self.next).map_or(self.text.len(), |token| token.span.start);
        if self.take("-") {
            let value = self.power()?;
            return Ok(self.to_here(start, Node::Negate(Box::new(value))));
        }
        self.power()
    }

    fn power(&mut self) -> Result<Expression, Wrong> {
        let value = self.element()?;
        if !self.take("**") {
            return Ok(value);
        }
        let other = self.sign()?;
        Ok(self.two(value, other, |a, b| Node::Binary(Operator::Power, a, b)))
    }

    fn element(&mut self) -> Result<Expression, Wrong> {
        let value = self.atom()?;
        if !self.take("[") {
            return Ok(value);
        }
        let index = self.choice()?;
        self.expect("]")?;
        Ok(self.two(value, index, Node::Element))
    }

    fn atom(&mut self) -> Result<Expression, Wrong> {
        let Some(token) = self.tokens.get(self.next).cloned() else {
            return Err(Wrong::new(match self.text.trim() {
                "" => "is empty".to_owned(),
                text => format!("`{text}` ends where a name or a number is expected"),
            }));
        };
        self.next += 1;
        let (start, word) = (token.span.start, &self.text[token.span.clone()]);
        let node = match token.kind {
            Lexeme::Number => Node::Number(word.to_owned()),
            Lexeme::Text(text) => Node::Text(text),
            Lexeme::Word => match word {
                "true" => Node::Truth(true),
                "false" => Node::Truth(false),
                "null" => Node::Null,
                _ if self.peek() == Some("(") => self.call(word)?,
                _ if WORDS.contains(&word) => {
                    return Err(Wrong::new(format!("expected a name or a number, found `{word}`")));
                }
                _ => self.path(word)?,
            },
            Lexeme::Sign if word == "(" => {
                let inner = self.choice()?;
                self.expect(")")?;
                inner.node
            }
            Lexeme::Sign => {
                return Err(Wrong::new(format!(
                    "expected a name or a number, found `{word}` in `{}`",
                    self.text
                )));
            }
        };
        Ok(self.to_here(start, node))
    }

    fn path(&mut self, first: &str) -> Result<Node, Wrong> {
        let mut path = first.to_owned();
        while self.take(".") {
            let next = self.tokens.get(self.next).filter(|token| token.kind == Lexeme::Word);
            let Some(next) = next else {
                return Err(Wrong::new(format!("expected the name of a field behind `{path}.`")));
            };
            path = format!("{path}.{}", &self.text[next.span.clone()]);
            self.next += 1;
            if self.peek() == Some("(") {
                return Err(Wrong::new(format!("`{path}` is a method; expressions have none")));
            }
        }
        Ok(Node::Name(path))
    }

    fn call(&mut self, name: &str) -> Result<Node, Wrong> {
        let known = Function::ALL.iter().find(|(known, ..)| *known == name);
        let Some(&(_, function, count)) = known else {
            let names = Function::ALL.iter().map(|(name, ..)| *name);
            let list = names.clone().collect::<Vec<_>>().join(", ");
            return Err(Wrong {
                message: format!("`{name}` is not a function; expected one of {list}"),
                nearest: nearest_name(name, names).map(str::to_owned),
            });
        };
        self.expect("(")?;
        let mut arguments = vec![self.choice()?];
        while self.take(",") {
            arguments.push(self.choice()?);
        }
        self.expect(")")?;
        if arguments.len() != count {
            return Err(Wrong::new(format!("`{name}` takes {count} numbers, found {}", arguments.len())));
        }
        Ok(Node::Call(function, arguments))
    }
}
