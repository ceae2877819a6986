//! Tokenizers that are missing or do not fit, and texts that cannot be run.

use std::fs;

use insta::assert_snapshot;
use serde_json::{Value as Json, json};
use weft::Hardware;
use weft_bert::tasks::FillMask;

use crate::checkpoint::{Checkpoint, runs};

fn load(checkpoint: &Checkpoint) -> weft::Result<FillMask> {
    FillMask::open(checkpoint.id())?.hardware(Hardware::Cpu).threads(1).load()
}

/// What opening the checkpoint for the task says.
fn refusal(checkpoint: &Checkpoint) -> String {
    checkpoint.shown(&load(checkpoint).map(|_| ()).unwrap_err())
}

fn change(checkpoint: &Checkpoint, file: &str, change: impl FnOnce(&mut Json)) {
    let mut json: Json = serde_json::from_slice(&fs::read(checkpoint.path(file)).unwrap()).unwrap();
    change(&mut json);
    checkpoint.write(file, json.to_string().as_bytes());
}

#[test]
fn no_tokenizer() {
    if !runs() {
        return;
    }
    let checkpoint = Checkpoint::sound();
    assert_snapshot!(refusal(checkpoint.remove("tokenizer.json")), @r"
        DIR: no tokenizer.json and no vocab.txt: the checkpoint has no tokenizer
          help: copy tokenizer.json from the checkpoint it was trained from
        ");
    assert_snapshot!(refusal(checkpoint.write("spiece.model", b"")), @r"
        DIR: no tokenizer.json; spiece.model alone cannot be read
          help: write one with the reference: `AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)`
        ");
}

#[test]
fn the_tokenizer_is_damaged() {
    if !runs() {
        return;
    }
    assert_snapshot!(refusal(Checkpoint::sound().write("tokenizer.json", b"{\"version\": ")), @r"
        DIR/tokenizer.json: not a tokenizer: EOF while parsing a value at line 1 column 12
          help: the file is damaged or cut short: fetch it again
        ");
    assert_snapshot!(refusal(Checkpoint::sound().write("tokenizer.json", b"")), @r"
        DIR/tokenizer.json: not a tokenizer: EOF while parsing a value at line 1 column 0
          help: the file is damaged or cut short: fetch it again
        ");
    assert_snapshot!(refusal(Checkpoint::sound().write("tokenizer_config.json", b"[")), @r"
        DIR/tokenizer_config.json: not JSON: EOF while parsing a list at line 1 column 1
          help: the file is damaged or cut short: fetch it again
        ");
}

#[test]
fn the_mask_token_is_out_of_the_vocabulary() {
    if !runs() {
        return;
    }
    let checkpoint = Checkpoint::sound();
    change(&checkpoint, "tokenizer_config.json", |config| config["mask_token"] = json!("<gap>"));
    assert_snapshot!(refusal(&checkpoint), @r"
        DIR/tokenizer.json: mask_token `<gap>` has id 700, but the model's vocabulary has 700 tokens and the tokenizer's 701
          help: take tokenizer and weights from one checkpoint
        ");
    let checkpoint = Checkpoint::sound();
    change(&checkpoint, "tokenizer_config.json", |config| config["mask_token"] = json!(null));
    let maskless = load(&checkpoint);
    assert!(maskless.is_err() || maskless.is_ok_and(|pipeline| pipeline.mask_token() == "[MASK]"));
}

#[test]
fn another_class() {
    let checkpoint =
        Checkpoint::sound().config(|config| config["architectures"] = json!(["BertForQuestionAnswering"]));
    assert_snapshot!(refusal(&checkpoint), @r"
        DIR/config.json: `architectures` names BertForQuestionAnswering, which does not do fill-mask: that needs BertForMaskedLM
          help: open a checkpoint trained for fill-mask; or, if the weights are there, choose the class with `.head(..)`
        ");
}

#[test]
fn texts() {
    if !runs() {
        return;
    }
    let pipeline = load(&Checkpoint::sound()).unwrap();
    let said = |texts: &[&str]| pipeline.run_batch(texts).unwrap_err().to_string();
    assert_snapshot!(said(&[""]), @r"
        input text: is empty: the tokenizer finds nothing in it
          help: leave it out, or set `allow_empty` for the answer that the reference gives
        ");
    assert_snapshot!(said(&["A [MASK].", " \n\t"]), @r"
        input text 1: is empty: the tokenizer finds nothing in it
          help: leave it out, or set `allow_empty` for the answer that the reference gives
        ");
    assert_snapshot!(said(&["Nothing to fill in."]), @r"
        input text: has no mask token
          help: write `[MASK]` where a token is to be filled in
        ");
    assert_snapshot!(said(&[&"one [MASK] ".repeat(400)]), @r"
        input text: has 802 tokens, but the model has positions for 48
          help: shorten it, split it, or set `truncation` to cut it
        ");
    assert!(pipeline.run_batch(&[]).unwrap().is_empty());
}
