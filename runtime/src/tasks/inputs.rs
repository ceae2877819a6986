//! A model's inputs by name.

use crate::Values;
use crate::any_model::AnyModel;

/// Those of the values that the model takes.
pub(super) fn model_inputs<A: AnyModel>(model: &A, mut values: Values) -> Values {
    values.retain(|name, _| model.inputs().iter().any(|input| input.name == *name));
    values
}
