//! Checked expressions as Rust.

use super::check::{Checked, Tree};
use super::tree::{Function, Operator};
use super::{Kind, Name};

/// How tightly the outermost operator of some Rust binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Block,
    Or,
    And,
    Comparison,
    Sum,
    Product,
    Cast,
    Sign,
    Atom,
}

/// Rust, and how tightly it binds.
struct Rust {
    text: String,
    level: Level,
}

impl Rust {
    fn new(text: impl Into<String>, level: Level) -> Self {
        Self { text: text.into(), level }
    }

    fn atom(text: impl Into<String>) -> Self {
        Self::new(text, Level::Atom)
    }

    /// As an operand of what binds so tightly.
    fn within(self, level: Level) -> String {
        if self.level < level { format!("({})", self.text) } else { self.text }
    }
}

impl Checked {
    /// Rust that gives a value of this kind; an option of it where the place takes null.
    pub fn rust(&self, kind: Kind, nullable: bool) -> String {
        if nullable { option(self, kind).text } else { value(self, kind).text }
    }

    /// Whether its Rust may as well be evaluated where it is not needed.
    pub fn is_cheap(&self) -> bool {
        cheap(self)
    }
}

/// What is never null, as a value of this kind.
fn value(checked: &Checked, kind: Kind) -> Rust {
    match &checked.tree {
        Tree::Number(text) => Rust::atom(number(text, kind)),
        Tree::Text(text) => Rust::atom(format!("{text:?}")),
        Tree::Truth(value) => Rust::atom(value.to_string()),
        Tree::Null => Rust::atom("None"),
        Tree::Name(name) => cast(Rust::atom(&name.rust), checked.kind, kind),
        Tree::Negate(inner) => {
            let inner = value(inner, if kind == Kind::Usize { Kind::I64 } else { kind });
            Rust::new(format!("-{}", inner.within(Level::Sign)), Level::Sign)
        }
        Tree::Not(inner) => not(inner),
        Tree::Binary(operator, a, b) => binary(*operator, a, b, checked.kind, kind),
        Tree::In(item, list) => contains(item, list),
        Tree::IsNull(inner) => {
            let inner = option(inner, inner.kind).within(Level::Atom);
            Rust::atom(format!("{inner}.is_none()"))
        }
        Tree::Or(a, b) => cast(or(a, b, checked.kind), checked.kind, kind),
        Tree::If(a, condition, b) => choice(condition, &value(a, kind), &value(b, kind)),
        Tree::Call(Function::Sqrt, arguments) => {
            let inner = arguments.first().map(|argument| receiver(argument, Kind::F64));
            cast(Rust::atom(format!("{}.sqrt()", inner.unwrap_or_default())), Kind::F64, kind)
        }
        Tree::Call(function, arguments) => {
            let name = if *function == Function::Min { "min" } else { "max" };
            let mut arguments = arguments.iter();
            let first = arguments.next().map(|first| receiver(first, kind)).unwrap_or_default();
            Rust::atom(
                arguments.fold(first, |text, next| format!("{text}.{name}({})", value(next, kind).text)),
            )
        }
        // Elements may be null, and are only asked for as options.
        Tree::Element(..) => option(checked, kind),
    }
}

/// The same as an option.
fn option(checked: &Checked, kind: Kind) -> Rust {
    if !checked.optional {
        return Rust::atom(format!("Some({})", value(checked, kind).text));
    }
    match &checked.tree {
        Tree::Name(name) if name.kind == Kind::Text => Rust::atom(format!("{}.as_deref()", name.rust)),
        Tree::Name(name) => mapped(Rust::atom(&name.rust), &local(name), checked.kind, kind),
        Tree::Element(list, index) => {
            let index = value(index, Kind::Usize).text;
            let element = Rust::atom(format!("nn::of_layer({}, {index})", several(list)));
            mapped(element, "value", checked.kind, kind)
        }
        Tree::Binary(operator, a, b) => {
            if let Some(kinds) = layer_kind(*operator, a, b).or_else(|| layer_kind(*operator, b, a)) {
                return kinds;
            }
            let (base, name, inner) = lifted(*operator, a, b, checked.kind, kind);
            Rust::atom(format!("{base}.map(|{name}| {inner})"))
        }
        Tree::Or(a, b) => {
            let (a, or) = (option(a, kind).within(Level::Atom), option(b, kind).text);
            let cheap = cheap(b);
            Rust::atom(if cheap { format!("{a}.or({or})") } else { format!("{a}.or_else(|| {or})") })
        }
        Tree::If(a, condition, b) => choice(condition, &option(a, kind), &option(b, kind)),
        _ => Rust::atom("None"),
    }
}

/// Whether a layer is of a kind, where a list of kinds says so.
fn layer_kind(operator: Operator, list: &Checked, kind: &Checked) -> Option<Rust> {
    let (Tree::Element(list, index), Tree::Text(text)) = (&list.tree, &kind.tree) else { return None };
    let (list, index) = (several(list), value(index, Kind::Usize).text);
    let is = format!("nn::is_layer_kind({list}, {index}, {text:?})");
    Some(Rust::atom(if operator == Operator::Equal { is } else { format!("{is}.map(|is| !is)") }))
}

/// A list of which there may be none: what iterates over it.
fn several(list: &Name) -> String {
    if list.optional { format!("&{}", list.rust) } else { format!("[&{}]", list.rust) }
}

/// An operation of which one operand may be null: that operand, a name for it, and the operation on what it is.
fn lifted(operator: Operator, a: &Checked, b: &Checked, own: Kind, kind: Kind) -> (String, String, String) {
    let optional = if a.optional { a } else { b };
    let name = match &optional.tree {
        Tree::Name(name) => local(name),
        _ => "value".to_owned(),
    };
    let inside = Name { kind: optional.kind, optional: false, rust: name.clone(), min: 0, of: vec![] };
    let inside = Checked { kind: optional.kind, optional: false, tree: Tree::Name(inside) };
    let inner = if a.optional {
        binary(operator, &inside, b, own, kind)
    } else {
        binary(operator, a, &inside, own, kind)
    };
    (option(optional, optional.kind).within(Level::Atom), name, inner.text)
}

/// The first, or the second where that is null.
fn or(a: &Checked, b: &Checked, kind: Kind) -> Rust {
    let other = value(b, kind).text;
    let lazy = !cheap(b);
    if let Tree::Binary(operator, first, second) = &a.tree
        && layer_kind(*operator, first, second).or_else(|| layer_kind(*operator, second, first)).is_none()
    {
        let (base, name, inner) = lifted(*operator, first, second, a.kind, kind);
        return Rust::atom(match other.as_str() {
            "false" => format!("{base}.is_some_and(|{name}| {inner})"),
            "true" => format!("{base}.is_none_or(|{name}| {inner})"),
            _ if lazy => format!("{base}.map_or_else(|| {other}, |{name}| {inner})"),
            _ => format!("{base}.map_or({other}, |{name}| {inner})"),
        });
    }
    let a = option(a, kind).within(Level::Atom);
    Rust::atom(if lazy {
        format!("{a}.unwrap_or_else(|| {other})")
    } else {
        format!("{a}.unwrap_or({other})")
    })
}

/// Whether it may as well be evaluated where it is not needed.
fn cheap(checked: &Checked) -> bool {
    match &checked.tree {
        Tree::Number(_) | Tree::Text(_) | Tree::Truth(_) | Tree::Null => true,
        Tree::Name(name) => !name.rust.ends_with(')'),
        Tree::Not(inner) | Tree::Negate(inner) => cheap(inner),
        Tree::Binary(Operator::Power, ..) => false,
        Tree::Binary(operator, a, b) => {
            let literal = |side: &Checked| matches!(side.tree, Tree::Number(_));
            let plain = !operator.is_arithmetic() || *operator != Operator::Multiply && literal(b);
            plain && cheap(a) && cheap(b)
        }
        Tree::IsNull(inner) => matches!(inner.tree, Tree::Name(_)),
        _ => false,
    }
}

fn not(inner: &Checked) -> Rust {
    match &inner.tree {
        Tree::IsNull(inner) => {
            Rust::atom(format!("{}.is_some()", option(inner, inner.kind).within(Level::Atom)))
        }
        _ => Rust::new(format!("!{}", value(inner, Kind::Bool).within(Level::Sign)), Level::Sign),
    }
}

fn binary(operator: Operator, a: &Checked, b: &Checked, own: Kind, kind: Kind) -> Rust {
    use Operator::{Add, And, Divide, Multiply, Or, Power, Remainder, Subtract};
    // Arithmetic happens in the numbers that are asked for, comparisons in the wider of both.
    let inside = match operator {
        And | Or => Kind::Bool,
        Power => Kind::F64,
        _ if operator.is_arithmetic() => kind,
        _ if a.kind == Kind::F64 || b.kind == Kind::F64 => Kind::F64,
        _ if a.kind == Kind::I64 || b.kind == Kind::I64 => Kind::I64,
        _ => a.kind,
    };
    if operator == Power {
        let text = format!("{}.powf({})", receiver(a, Kind::F64), value(b, Kind::F64).text);
        return cast(Rust::atom(text), own, kind);
    }
    if operator == Subtract && inside == Kind::Usize {
        return Rust::atom(format!("{}.saturating_sub({})", receiver(a, inside), value(b, inside).text));
    }
    if matches!(operator, Operator::Equal | Operator::Unequal)
        && inside == Kind::Usize
        && let Some(text) = multiple_of(a, b)
    {
        return if operator == Operator::Equal {
            Rust::atom(text)
        } else {
            Rust::new(format!("!{text}"), Level::Sign)
        };
    }
    let (level, left, right) = match operator {
        Or => (Level::Or, Level::Or, Level::And),
        And => (Level::And, Level::And, Level::Comparison),
        Add | Subtract => (Level::Sum, Level::Sum, Level::Product),
        Multiply | Divide | Remainder => (Level::Product, Level::Product, Level::Cast),
        _ => (Level::Comparison, Level::Sum, Level::Sum),
    };
    let mut first = value(a, inside).within(left);
    // `as f64 <` would open a list of types.
    if operator == Operator::Less && (first.ends_with(" as f64") || first.ends_with(" as i64")) {
        first = format!("({first})");
    }
    Rust::new(format!("{first} {} {}", operator.rust(), value(b, inside).within(right)), level)
}

/// `a % every == 0` as Rust says it; clippy asks for it.
fn multiple_of(a: &Checked, b: &Checked) -> Option<String> {
    let (Tree::Binary(Operator::Remainder, count, every), Tree::Number(zero)) = (&a.tree, &b.tree) else {
        return None;
    };
    (zero == "0").then(|| {
        format!("{}.is_multiple_of({})", receiver(count, Kind::Usize), value(every, Kind::Usize).text)
    })
}

fn contains(item: &Checked, list: &Name) -> Rust {
    let rust = &list.rust;
    let found = |list: &str| match item.kind {
        Kind::Text => format!("{list}.iter().any(|value| value == {})", value(item, Kind::Text).text),
        kind => format!("{list}.contains(&{})", value(item, kind).within(Level::Sign)),
    };
    Rust::atom(if list.optional {
        format!("{rust}.as_ref().is_some_and(|list| {})", found("list"))
    } else {
        found(rust)
    })
}

fn choice(condition: &Checked, a: &Rust, b: &Rust) -> Rust {
    let condition = value(condition, Kind::Bool).text;
    let other = if b.text.starts_with("if ") { b.text.clone() } else { format!("{{ {} }}", b.text) };
    Rust::new(format!("if {condition} {{ {} }} else {other}", a.text), Level::Block)
}

/// As what a method is called of.
fn receiver(checked: &Checked, kind: Kind) -> String {
    let suffix = match kind {
        Kind::F64 => "_f64",
        Kind::I64 => "_i64",
        _ => "_usize",
    };
    let rust = value(checked, kind).within(Level::Atom);
    if matches!(checked.tree, Tree::Number(_)) { rust + suffix } else { rust }
}

fn cast(rust: Rust, from: Kind, to: Kind) -> Rust {
    let name = match to {
        Kind::F64 => "f64",
        Kind::I64 => "i64",
        _ => return rust,
    };
    if from == to {
        return rust;
    }
    Rust::new(format!("{} as {name}", rust.within(Level::Cast)), Level::Cast)
}

fn mapped(option: Rust, name: &str, from: Kind, to: Kind) -> Rust {
    let inner = cast(Rust::atom(name), from, to).text;
    if inner == name { option } else { Rust::atom(format!("{}.map(|{name}| {inner})", option.text)) }
}

/// A name for what a field is: the last of its path.
fn local(name: &Name) -> String {
    name.rust.rsplit('.').next().unwrap_or(&name.rust).trim_end_matches("()").to_owned()
}

/// A number as a literal of this kind.
fn number(text: &str, kind: Kind) -> String {
    if kind == Kind::F64 && !text.contains(['.', 'e', 'E']) { format!("{text}.0") } else { text.to_owned() }
}
