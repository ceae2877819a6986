//! A model's outputs by name.

use ndarray::ArrayD;

use crate::{Error, Result, Values};

/// One output of the model.
pub(super) fn output<'a>(values: &'a Values, name: &str) -> Result<&'a ArrayD<f32>> {
    match values.get(name) {
        Some(value) => value.f32(name),
        None => {
            let names: Vec<_> = values.keys().map(String::as_str).collect();
            Err(Error::input(name, "the model has no such output", format!("it has {}", names.join(", "))))
        }
    }
}

/// One output of the model, of whole numbers.
#[cfg(feature = "image")]
pub(super) fn integers<'a>(values: &'a Values, name: &str) -> Result<&'a ArrayD<i64>> {
    match values.get(name) {
        Some(crate::Value::I64(value)) => Ok(value),
        other => {
            let what = other.map_or("is not given".to_owned(), |other| format!("is {}", other.dtype()));
            Err(Error::input(name, what, "open a model that is made for this task"))
        }
    }
}
