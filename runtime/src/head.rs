//! A model whose class is known at compile time: what it takes and gives are types of the generated crate.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use ndarray::{Array, ArrayD, Dimension};

use crate::session::{Architecture, Loads};
use crate::{Error, Loader, Result, Session, Value, Values};

/// What one of the reference's classes gives; a generated crate has one such type for each class.
pub trait HeadOutput<A: Architecture>: FromOutputs {
    /// What the class takes.
    type Inputs: Into<Values>;
    /// The class.
    const HEAD: A::Head;
}

/// One of the reference's classes, loaded; a generated crate names it, such as `ForCausalLM`.
pub struct HeadModel<A: Architecture, O> {
    model: A,
    outputs: PhantomData<fn() -> O>,
}

impl<A: Architecture, O: HeadOutput<A>> HeadModel<A, O> {
    /// Finds a checkpoint: a folder, or a hub id such as `google-bert/bert-base-uncased`. `.load()` loads it.
    ///
    /// # Errors
    /// When there is no such checkpoint.
    pub fn open(checkpoint: &str) -> Result<Loader<A, Self>> {
        Loader::open(checkpoint)
    }

    /// Runs the model once: the reference's `forward`. Inputs are taken as they are, and not copied.
    ///
    /// # Errors
    /// When an input has the wrong shape or is out of range, or the engine fails.
    pub fn forward(&self, inputs: O::Inputs) -> Result<O> {
        O::from_outputs(&mut self.run(inputs.into())?, "")
    }
}

impl<A: Architecture, O: HeadOutput<A>> Loads<A> for HeadModel<A, O> {
    fn head() -> Option<A::Head> {
        Some(O::HEAD)
    }

    fn from_model(model: A) -> Self {
        Self { model, outputs: PhantomData }
    }
}

impl<A: Architecture, O> Deref for HeadModel<A, O> {
    type Target = Session<A>;

    fn deref(&self) -> &Session<A> {
        self.model.session()
    }
}

impl<A: Architecture, O> fmt::Debug for HeadModel<A, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeadModel").field("model", self.model.session()).finish()
    }
}

/// What is taken out of a model's outputs by its name: a tensor of a fixed rank, or several under one name.
pub trait FromOutputs: Sized {
    /// Takes it out.
    ///
    /// # Errors
    /// When it is not there, or has another element type or rank.
    fn from_outputs(outputs: &mut Values, name: &str) -> Result<Self>;
}

/// A struct of outputs, each moved into the field of its name.
#[macro_export]
macro_rules! outputs {
    ($output:ident { $($name:ident),* $(,)? }) => {
        impl $crate::FromOutputs for $output {
            fn from_outputs(outputs: &mut $crate::Values, name: &str) -> $crate::Result<Self> {
                let within = |field: &str| if name.is_empty() { field.to_owned() } else { format!("{name}.{field}") };
                Ok(Self { $($name: $crate::FromOutputs::from_outputs(outputs, &within(stringify!($name)))?),* })
            }
        }
    };
}

/// A struct of inputs, each moved out of the field of its name, `field = "name.of.it"` where that has dots; fields that are `None` are
/// left out.
#[macro_export]
macro_rules! inputs {
    (@name $name:ident) => { stringify!($name) };
    (@name $name:ident $tensor:literal) => { $tensor };
    ($inputs:ident { $($name:ident $(= $tensor:literal)?),* $(,)? }) => {
        impl From<$inputs> for $crate::Values {
            fn from(inputs: $inputs) -> Self {
                let mut values = Self::new();
                $(values.extend($crate::IntoInput::into_input(inputs.$name).map(|value| ($crate::inputs!(@name $name $($tensor)?).to_owned(), value)));)*
                values
            }
        }
    };
}

/// What an input is given as: an array of a fixed rank, or none.
pub trait IntoInput {
    /// The tensor, moved; none where the input is left out.
    fn into_input(self) -> Option<Value>;
}

impl<T: IntoInput> IntoInput for Option<T> {
    fn into_input(self) -> Option<Value> {
        self.and_then(T::into_input)
    }
}

/// Outputs that a checkpoint may be without, such as those of a pooler.
impl<T: FromOutputs> FromOutputs for Option<T> {
    fn from_outputs(outputs: &mut Values, name: &str) -> Result<Self> {
        if outputs.contains_key(name) { T::from_outputs(outputs, name).map(Some) } else { Ok(None) }
    }
}

/// A tuple of outputs, `name.0`, `name.1` …, such as the feature maps of a backbone.
impl<T: FromOutputs> FromOutputs for Vec<T> {
    fn from_outputs(outputs: &mut Values, name: &str) -> Result<Self> {
        let names = (0..).map(|place| format!("{name}.{place}"));
        let there: Vec<_> = names.take_while(|name| outputs.contains_key(name)).collect();
        there.iter().map(|name| T::from_outputs(outputs, name)).collect()
    }
}

macro_rules! element {
    ($type:ty, $variant:ident) => {
        impl<D: Dimension> FromOutputs for Array<$type, D> {
            fn from_outputs(outputs: &mut Values, name: &str) -> Result<Self> {
                match outputs.remove(name) {
                    Some(Value::$variant(array)) => ranked(name, array),
                    Some(other) => Err(unlike(name, format!("is of {}", other.dtype()))),
                    None => Err(unlike(name, "is not given".to_owned())),
                }
            }
        }

        impl<D: Dimension> IntoInput for Array<$type, D> {
            fn into_input(self) -> Option<Value> {
                Some(self.into_dyn().into())
            }
        }
    };
}

element!(f32, F32);
element!(i64, I64);
element!(bool, Bool);

fn ranked<T, D: Dimension>(name: &str, array: ArrayD<T>) -> Result<Array<T, D>> {
    let shape = array.shape().to_vec();
    array.into_dimensionality().map_err(|_| {
        let rank = D::NDIM.unwrap_or_default();
        unlike(name, format!("has shape {shape:?}, not {rank} axes"))
    })
}

/// The error of an output that is not what the head's part in the templates declares.
fn unlike(name: &str, problem: String) -> Error {
    Error::input(name, problem, "correct `outputs` of the head's part in templates/graph/parts/head/")
}

#[cfg(test)]
mod tests {
    use ndarray::{Array1, Array2, array};

    use super::*;

    #[derive(Debug, PartialEq)]
    struct Tower {
        last_hidden_state: Array2<f32>,
    }
    crate::outputs!(Tower { last_hidden_state });

    #[derive(Debug, PartialEq)]
    struct Both {
        scores: Array1<i64>,
        text: Tower,
        pooler_output: Option<Array1<f32>>,
        feature_maps: Vec<Array1<i64>>,
    }
    crate::outputs!(Both { scores, text, pooler_output, feature_maps });

    struct Inputs {
        input_ids: Array2<i64>,
        attention_mask: Option<Array2<i64>>,
    }
    crate::inputs!(Inputs { input_ids, attention_mask });

    struct InMaps {
        states_full_key: Array1<i64>,
        position_ids: Option<Array1<i64>>,
    }
    crate::inputs!(InMaps { states_full_key = "states.full.key", position_ids });

    fn outputs() -> Values {
        let state = array![[1.0_f32, 2.0]].into_dyn();
        Values::from([
            ("scores".to_owned(), array![3_i64].into_dyn().into()),
            ("text.last_hidden_state".to_owned(), state.into()),
            ("feature_maps.0".to_owned(), array![5_i64].into_dyn().into()),
            ("feature_maps.1".to_owned(), array![6_i64, 7].into_dyn().into()),
        ])
    }

    #[test]
    fn fields_take_outputs_of_their_name() {
        let both = Both::from_outputs(&mut outputs(), "").unwrap();
        assert_eq!(both.scores, array![3]);
        assert_eq!(both.text.last_hidden_state, array![[1.0, 2.0]]);
        assert_eq!(both.pooler_output, None);
        assert_eq!(both.feature_maps, [array![5], array![6, 7]]);
    }

    #[test]
    fn inputs_have_the_names_of_their_fields_or_those_that_are_given() {
        let given = InMaps { states_full_key: array![3], position_ids: Some(array![1]) };
        assert_eq!(Values::from(given).keys().collect::<Vec<_>>(), ["position_ids", "states.full.key"]);
        let given = InMaps { states_full_key: array![3], position_ids: None };
        assert_eq!(Values::from(given).keys().collect::<Vec<_>>(), ["states.full.key"]);
    }

    #[test]
    fn an_output_of_another_rank_or_type_is_named() {
        let message = |name: &str, value: Option<Value>| {
            let mut outputs = outputs();
            outputs.remove(name);
            outputs.extend(value.map(|value| (name.to_owned(), value)));
            Both::from_outputs(&mut outputs, "").unwrap_err().to_string()
        };
        let text = message("text.last_hidden_state", Some(array![1.0_f32].into_dyn().into()));
        assert!(text.contains("text.last_hidden_state: has shape [1], not 2 axes"), "{text}");
        let text = message("scores", Some(array![1.0_f32].into_dyn().into()));
        assert!(text.contains("scores: is of f32"), "{text}");
        let text = message("scores", None);
        assert!(text.contains("scores: is not given"), "{text}");
    }

    #[test]
    fn inputs_move_and_those_left_out_stay_out() {
        let ids = array![[1_i64, 2]];
        let place = ids.as_ptr();
        let values = Values::from(Inputs { input_ids: ids, attention_mask: None });
        assert_eq!(values.keys().collect::<Vec<_>>(), ["input_ids"]);
        let Value::I64(moved) = &values["input_ids"] else { unreachable!() };
        assert_eq!(moved.as_ptr(), place);
    }
}
