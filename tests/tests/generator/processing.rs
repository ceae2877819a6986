//! What specs say that pipelines know of a model: data of its `Architecture`.

use weft_tests::Workshop;

/// What a BERT with this under `processing` says of it.
fn workshop(processing: &str) -> Workshop {
    let workshop = Workshop::new();
    let spec = format!(
        "model: loud\ntitle: Loud\nextends: bert\ncategory: text-encoders\nconfig: {{text_config: {{context_length: 77}}}}\n\
         processing: {processing}\n"
    );
    workshop.spec("text-encoders/loud.yaml", &spec);
    workshop
}

/// The lines of the function in the crate; none if there is no such function.
fn function(processing: &str) -> String {
    let workshop = workshop(processing);
    workshop.run().expect("the spec is sound");
    let model = &workshop.files("out/text-encoders/loud/src")["model.rs"];
    let lines = model.lines().skip_while(|line| !line.contains("fn processing"));
    lines.take_while(|line| *line != "    }").map(str::trim).collect::<Vec<_>>().join(" ")
}

#[test]
fn facts_are_data() {
    insta::assert_snapshot!(
        function("{do_lower_case: true, max_length: 64, function_to_apply: sigmoid, bf16_memory: true}"),
        @"fn processing(_: &Config) -> Processing { Processing { do_lower_case: true, max_length: Some(64), function_to_apply: Some(ScoreFunction::Sigmoid), bf16_memory: true, batched_memory: false, }"
    );
    assert_eq!(function("{}"), "");
}

#[test]
fn lengths_are_read_from_the_configuration() {
    insta::assert_snapshot!(
        function("{max_length: text_config.context_length}"),
        @"fn processing(c: &Config) -> Processing { Processing { do_lower_case: false, max_length: Some(c.text_config.context_length), function_to_apply: None, bf16_memory: false, batched_memory: false, }"
    );
}

#[test]
fn facts_that_are_none() {
    let wrong = |processing: &str| workshop(processing).errors();
    insta::assert_snapshot!(wrong("{lower_case: true}"), @"specs/text-encoders/loud.yaml:6: `processing.lower_case`: unknown key; expected one of do_lower_case, max_length, function_to_apply, bf16_memory, batched_memory; did you mean `do_lower_case`?");
    insta::assert_snapshot!(wrong("{function_to_apply: sigmoidal}"), @r#"specs/text-encoders/loud.yaml:6: `processing.function_to_apply`: expected one of sigmoid, softmax, found the text "sigmoidal"; did you mean `sigmoid`?"#);
    insta::assert_snapshot!(wrong("{max_length: text_config.context_lenght}"), @"specs/text-encoders/loud.yaml:6: `processing.max_length`: `text_config.context_lenght` is not a field of config; did you mean `text_config.context_length`?");
    insta::assert_snapshot!(wrong("{max_length: [64]}"), @"specs/text-encoders/loud.yaml:6: `processing.max_length`: expected a whole number or a text or nothing, found a list");
}
