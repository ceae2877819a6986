//! Texts and pictures that do not belong together.

use std::path::Path;

use insta::assert_snapshot;
use weft::golden::Case;
use weft::{Hardware, Value};
use weft_llava::Model;

use crate::checkpoint::runs;

/// A golden with a picture in each of two texts, and its model.
fn golden() -> Option<(Case, Model)> {
    if !runs() {
        return None;
    }
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/llava/next-token");
    let case = Case::open(&dir).unwrap();
    let loader = Model::open(dir.to_str().unwrap()).unwrap().hardware(Hardware::Cpu).threads(1);
    let model = loader.weights(case.weights().unwrap().unwrap()).load().unwrap();
    Some((case, model))
}

#[test]
fn tokens_of_pictures_without_pictures() {
    let Some((case, model)) = golden() else { return };
    let mut inputs = case.inputs;
    let pixels = inputs.remove("pixel_values");
    assert_snapshot!(model.run(inputs.clone()).unwrap_err(), @r"
    input input_ids: holds 90, which stands for images, and there are none
      help: give the images as well, or leave it out
    ");
    if let Some(Value::I64(ids)) = inputs.get_mut("input_ids") {
        ids.mapv_inplace(|id| if id == 90 { 7 } else { id });
    }
    assert!(model.run(inputs.clone()).unwrap().contains_key("logits"));
    inputs.insert("pixel_values".to_owned(), pixels.unwrap());
    assert_snapshot!(model.run(inputs.clone()).unwrap_err(), @r"
    input input_ids: has 0 image tokens (90), but the images give 8 features
      help: make text and images with the checkpoint's processor
    ");
    inputs.remove("input_ids");
    assert_snapshot!(model.run(inputs).unwrap_err(), @r"
    input input_ids: is required and was not given
      help: give it as i64 [batch, sequence]
    ");
}

#[test]
fn fewer_pictures_than_tokens() {
    let Some((case, model)) = golden() else { return };
    let mut inputs = case.inputs;
    if let Some(Value::F32(pixels)) = inputs.get_mut("pixel_values") {
        *pixels = pixels.slice_axis(ndarray::Axis(0), (0..1).into()).to_owned();
    }
    assert_snapshot!(model.run(inputs).unwrap_err(), @r"
    input input_ids: has 8 image tokens (90), but the images give 4 features
      help: make text and images with the checkpoint's processor
    ");
}

#[test]
fn an_architecture_without_positions_of_images_to_interpolate() {
    let bert = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/bert/masked-lm");
    let case = Case::open(&bert).unwrap();
    let loader = weft_bert::Model::open(bert.to_str().unwrap()).unwrap().hardware(Hardware::Cpu);
    let loader = loader.weights(case.weights().unwrap().unwrap()).interpolate_pos_encoding(true);
    if !runs() {
        return;
    }
    assert_snapshot!(loader.load().unwrap_err(), @r"
    input interpolate_pos_encoding: BertForMaskedLM has no positions of images that could be interpolated
      help: load it without, and give images of the configuration's size
    ");
}
