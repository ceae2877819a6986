//! Tensors that the model cannot take.

use insta::assert_snapshot;
use ndarray::{Array2, ArrayD, IxDyn, array};
use weft::{Hardware, Value, Values};
use weft_bert::Model;
use weft_bert::heads::{ForMaskedLM, ForQuestionAnswering, Inputs};

use crate::checkpoint::{Checkpoint, runs};

fn model() -> Option<Model> {
    if !runs() {
        return None;
    }
    let checkpoint = Checkpoint::sound();
    Some(Model::open(checkpoint.id()).unwrap().hardware(Hardware::Cpu).threads(1).load().unwrap())
}

/// The checkpoint as the class it was saved from.
fn masked_lm() -> Option<ForMaskedLM> {
    if !runs() {
        return None;
    }
    let checkpoint = Checkpoint::sound();
    Some(ForMaskedLM::open(checkpoint.id()).unwrap().hardware(Hardware::Cpu).threads(1).load().unwrap())
}

fn refusal(model: &Model, values: &[(&str, Value)]) -> String {
    let values: Values = values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    model.run(values).unwrap_err().to_string()
}

fn ids() -> Value {
    array![[2_i64, 7, 9, 3]].into_dyn().into()
}

#[test]
fn names() {
    let Some(model) = model() else { return };
    assert_snapshot!(refusal(&model, &[]), @r"
        input input_ids: is required and was not given
          help: give it as i64 [batch, sequence]
        ");
    assert_snapshot!(refusal(&model, &[("input_ids", ids()), ("pixel_values", ids())]), @r"
        input pixel_values: this model does not take it
          help: it takes input_ids, attention_mask, token_type_ids, position_ids
        ");
}

#[test]
fn dtypes() {
    let Some(model) = model() else { return };
    assert_snapshot!(refusal(&model, &[("input_ids", array![[1.0_f32]].into_dyn().into())]), @r"
        input input_ids: is f32, not i64
          help: give it as i64 [batch, sequence]
        ");
    let mask = array![[true, true, true, false]].into_dyn();
    assert_snapshot!(refusal(&model, &[("input_ids", ids()), ("attention_mask", mask.into())]), @r"
        input attention_mask: is bool, not i64
          help: give it as i64 [batch, sequence]
        ");
}

#[test]
fn shapes() {
    let Some(model) = model() else { return };
    let zeros = |shape: &[usize]| Value::I64(ArrayD::zeros(IxDyn(shape)));
    assert_snapshot!(refusal(&model, &[("input_ids", zeros(&[4]))]), @r"
        input input_ids: has shape [4]: 2 axes are needed
          help: give it as i64 [batch, sequence]
        ");
    assert_snapshot!(refusal(&model, &[("input_ids", zeros(&[]))]), @r"
        input input_ids: has shape []: 2 axes are needed
          help: give it as i64 [batch, sequence]
        ");
    assert_snapshot!(refusal(&model, &[("input_ids", zeros(&[1, 2, 3]))]), @r"
        input input_ids: has shape [1, 2, 3]: 2 axes are needed
          help: give it as i64 [batch, sequence]
        ");
    assert_snapshot!(refusal(&model, &[("input_ids", ids()), ("attention_mask", zeros(&[1, 5]))]), @r"
        input attention_mask: has shape [1, 5]: sequence is 5 here and 4 in input_ids
          help: give it as i64 [batch, sequence]
        ");
    assert_snapshot!(refusal(&model, &[("input_ids", ids()), ("token_type_ids", zeros(&[2, 4]))]), @r"
        input token_type_ids: has shape [2, 4]: batch is 2 here and 1 in input_ids
          help: give it as i64 [batch, sequence]
        ");
}

#[test]
fn nothing_to_run() {
    let Some(model) = model() else { return };
    let zeros = |shape: &[usize]| Value::I64(ArrayD::zeros(IxDyn(shape)));
    assert_snapshot!(refusal(&model, &[("input_ids", zeros(&[0, 4]))]), @r"
        input input_ids: has shape [0, 4]: batch is 0; there is nothing to run
          help: give it as i64 [batch, sequence]
        ");
    assert_snapshot!(refusal(&model, &[("input_ids", zeros(&[2, 0]))]), @r"
        input input_ids: has shape [2, 0]: sequence is 0; there is nothing to run
          help: give it as i64 [batch, sequence]
        ");
    let Some(model) = masked_lm() else { return };
    assert_snapshot!(model.forward(Inputs::new(Array2::zeros((0, 0)))).unwrap_err(), @r"
        input input_ids: has shape [0, 0]: batch is 0; there is nothing to run
          help: give it as i64 [batch, sequence]
        ");
}

#[test]
fn ids_out_of_range() {
    let Some(model) = model() else { return };
    let row = |id: i64| Value::from(array![[2, id, 3, 3]].into_dyn());
    assert_snapshot!(refusal(&model, &[("input_ids", row(i64::MAX))]), @r"
        input input_ids: holds 9223372036854775807, but vocab_size is 700
          help: values from 0 to 699 are allowed
        ");
    assert_snapshot!(refusal(&model, &[("input_ids", row(-1))]), @r"
        input input_ids: holds -1, but vocab_size is 700
          help: values from 0 to 699 are allowed
        ");
    assert_snapshot!(refusal(&model, &[("input_ids", ids()), ("token_type_ids", row(2))]), @r"
        input token_type_ids: holds 2, but type_vocab_size is 2
          help: values from 0 to 1 are allowed
        ");
    assert_snapshot!(refusal(&model, &[("input_ids", ids()), ("position_ids", row(4000))]), @r"
        input position_ids: holds 4000, but max_position_embeddings is 48
          help: values from 0 to 47 are allowed
        ");
}

#[test]
fn longer_than_the_positions() {
    let Some(model) = masked_lm() else { return };
    assert_snapshot!(model.forward(Inputs::new(Array2::ones((1, 5000)))).unwrap_err(), @r"
        input input_ids: sequence is 5000, but the model has 48 (max_position_embeddings)
          help: shorten the input: truncate it or split it into parts
        ");
}

#[test]
fn a_class_that_the_checkpoint_does_not_hold() {
    if !runs() {
        return;
    }
    let checkpoint = Checkpoint::sound();
    let opened = ForQuestionAnswering::open(checkpoint.id()).unwrap().hardware(Hardware::Cpu);
    let refusal = opened.load().unwrap_err().to_string();
    assert!(refusal.contains("tensor `qa_outputs.weight` [2, 32] is missing"), "{refusal}");
    assert!(refusal.contains("`architectures` must name the class that was saved"), "{refusal}");
}

#[test]
fn outputs_have_fixed_ranks() {
    let Some(model) = masked_lm() else { return };
    let outputs = model.forward(Inputs::new(array![[2_i64, 7, 3]])).unwrap();
    assert_eq!(outputs.logits.dim(), (1, 3, 700));
}
