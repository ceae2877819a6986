//! What an expression is for given values of its fields.

use std::cmp::Ordering;

use serde_json::Value as Json;

use super::tree::{Expression, Function, Node, Operator};

impl Expression {
    /// Its value, where `field` gives the fields' values by their dotted paths, null for one that is none; nothing where
    /// it names what `field` does not know.
    pub fn value(&self, field: &dyn Fn(&str) -> Option<Json>) -> Option<Json> {
        let of = |expression: &Self| expression.value(field);
        let number = |expression: &Self| of(expression)?.as_f64();
        Some(match &self.node {
            Node::Number(text) => Json::from(text.parse::<f64>().ok()?),
            Node::Text(text) => Json::from(text.as_str()),
            Node::Truth(value) => Json::from(*value),
            Node::Null => Json::Null,
            Node::Name(name) => field(name)?,
            Node::Element(list, index) => {
                of(list)?.get(number(index)? as usize).cloned().unwrap_or(Json::Null)
            }
            Node::Negate(inner) => Json::from(-number(inner)?),
            Node::Not(inner) => Json::from(!of(inner)?.as_bool()?),
            Node::Binary(operator, left, right) => binary(*operator, &of(left)?, &of(right)?)?,
            Node::In(element, list) => {
                let (element, list) = (of(element)?, of(list)?);
                Json::from(list.as_array().is_some_and(|list| list.contains(&element)))
            }
            Node::IsNull(inner) => Json::from(of(inner)?.is_null()),
            Node::Or(first, second) => match of(first)? {
                Json::Null => of(second)?,
                value => value,
            },
            Node::If(value, condition, otherwise) => {
                of(if of(condition)?.as_bool()? { value } else { otherwise })?
            }
            Node::Call(function, arguments) => {
                let values = arguments.iter().map(number).collect::<Option<Vec<_>>>()?;
                match (function, values.as_slice()) {
                    (Function::Min, [one, other]) => Json::from(one.min(*other)),
                    (Function::Max, [one, other]) => Json::from(one.max(*other)),
                    (Function::Sqrt, [one]) => Json::from(one.sqrt()),
                    _ => return None,
                }
            }
        })
    }
}

/// Two operands and what stands between them; null where an operand of a sum, product or comparison is.
fn binary(operator: Operator, left: &Json, right: &Json) -> Option<Json> {
    let numbers = left.as_f64().zip(right.as_f64());
    let equal = numbers.map_or(left == right, |(left, right)| left.total_cmp(&right) == Ordering::Equal);
    match operator {
        Operator::And => return Some(Json::from(left.as_bool()? && right.as_bool()?)),
        Operator::Or => return Some(Json::from(left.as_bool()? || right.as_bool()?)),
        _ if left.is_null() || right.is_null() => return Some(Json::Null),
        Operator::Equal => return Some(Json::from(equal)),
        Operator::Unequal => return Some(Json::from(!equal)),
        _ => {}
    }
    let (left, right) = numbers?;
    Some(match operator {
        Operator::Add => Json::from(left + right),
        Operator::Subtract => Json::from(left - right),
        Operator::Multiply => Json::from(left * right),
        Operator::Divide => Json::from(left / right),
        Operator::Remainder => Json::from(left % right),
        Operator::Power => Json::from(left.powf(right)),
        Operator::Less => Json::from(left < right),
        Operator::LessOrEqual => Json::from(left <= right),
        Operator::Greater => Json::from(left > right),
        Operator::GreaterOrEqual => Json::from(left >= right),
        _ => return None,
    })
}
