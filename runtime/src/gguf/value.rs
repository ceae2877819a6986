//! The metadata of GGUF files: typed values by key.

use std::ops::Range;

use serde_json::Value as Json;

/// A value of a file's metadata.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    Text(String),
    /// Left where it is until it is asked for: vocabularies are long.
    Array(Array),
}

/// Where an array is.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    pub(super) element: Element,
    pub(super) count: usize,
    pub(super) range: Range<usize>,
}

/// The types of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    Unsigned(usize),
    Signed(usize),
    Float(usize),
    Bool,
    Text,
    Array,
}

impl Element {
    pub(super) fn of(id: u32) -> Option<Self> {
        Some(match id {
            0 => Self::Unsigned(1),
            1 => Self::Signed(1),
            2 => Self::Unsigned(2),
            3 => Self::Signed(2),
            4 => Self::Unsigned(4),
            5 => Self::Signed(4),
            6 => Self::Float(4),
            7 => Self::Bool,
            8 => Self::Text,
            9 => Self::Array,
            10 => Self::Unsigned(8),
            11 => Self::Signed(8),
            12 => Self::Float(8),
            _ => return None,
        })
    }

    /// The bytes of one; none where they differ.
    pub(super) fn size(self) -> Option<usize> {
        match self {
            Self::Unsigned(size) | Self::Signed(size) | Self::Float(size) => Some(size),
            Self::Bool => Some(1),
            Self::Text | Self::Array => None,
        }
    }

    /// A number in as many little-endian bytes as it has.
    pub(super) fn number(self, bytes: &[u8]) -> Value {
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let bits = u64::from_le_bytes(wide);
        match self {
            Self::Float(4) => Value::Float(f64::from(f32::from_bits(bits as u32))),
            Self::Float(_) => Value::Float(f64::from_bits(bits)),
            Self::Signed(size) => {
                let unused = 64 - 8 * size;
                Value::Signed((bits << unused).cast_signed() >> unused)
            }
            Self::Bool => Value::Bool(bits != 0),
            _ => Value::Unsigned(bits),
        }
    }
}

impl Value {
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn whole(&self) -> Option<u64> {
        match self {
            Self::Unsigned(number) => Some(*number),
            Self::Signed(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    pub fn real(&self) -> Option<f64> {
        match self {
            Self::Float(number) => Some(*number),
            Self::Unsigned(number) => Some(*number as f64),
            Self::Signed(number) => Some(*number as f64),
            _ => None,
        }
    }

    pub fn bool(&self) -> Option<bool> {
        match self {
            Self::Bool(yes) => Some(*yes),
            _ => None,
        }
    }

    /// The value as a configuration has it; none of arrays.
    pub fn json(&self) -> Option<Json> {
        Some(match self {
            Self::Unsigned(number) => Json::from(*number),
            Self::Signed(number) => Json::from(*number),
            // Written in single precision: as many digits as that has, so that 1e-5 stays 1e-5.
            Self::Float(number) => (*number as f32).to_string().parse::<f64>().map(Json::from).ok()?,
            Self::Bool(yes) => Json::from(*yes),
            Self::Text(text) => Json::from(text.as_str()),
            Self::Array(_) => return None,
        })
    }
}
