//! What BERT is made of on each backend, and what backends that are not here would leave to the CPU.

use std::fmt::Write as _;

use weft::lower::{self, Target};
use weft::{Hardware, Precision};
use weft_bert::Model;

const CHECKPOINT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/goldens/bert/file");

/// The operator sets, the operators with their counts, and the ones that would fall back: as everywhere, whatever is here
/// to run them.
fn form(hardware: Hardware, precision: Precision) -> String {
    form_of(hardware, precision, Target::of(hardware, precision))
}

fn form_of(hardware: Hardware, precision: Precision, target: Target) -> String {
    let loader = Model::open(CHECKPOINT)
        .expect("the goldens are there")
        .precision(precision)
        .dim("batch", 2)
        .dim("sequence", 7);
    let lowered = loader.lower_to(target).expect("the goldens are there");
    let sets = lowered.model.opset_import.iter();
    let sets: Vec<_> = sets.map(|set| format!("{}{}", set.domain, set.version.unwrap_or_default())).collect();
    let mut text = format!("operator sets: {}\n", sets.join(", "));
    for (operator, count) in &lowered.operators {
        let _ = writeln!(text, "{count:4}  {operator}");
    }
    for (operator, (count, reason)) in lower::unsupported_ops(&lowered.model, hardware) {
        let _ = writeln!(text, "left to the CPU: {operator} ({count}: {reason})");
    }
    text
}

#[test]
fn bert_is_made_of_these_operators() {
    for hardware in Hardware::ALL {
        insta::assert_snapshot!(format!("bert_on_{hardware}"), form(hardware, Precision::F32));
    }
}

#[test]
fn bert_is_made_of_these_operators_in_a_page() {
    let target = Target::in_browser(Hardware::Webgpu, Precision::F32);
    insta::assert_snapshot!("bert_on_webgpu_in_a_page", form_of(Hardware::Webgpu, Precision::F32, target));
}

#[test]
fn bert_lowers_whole_for_backends_that_are_not_here() {
    for hardware in [Hardware::Cuda, Hardware::Rocm, Hardware::Metal] {
        assert!(lower::source(hardware).is_some(), "{hardware} publishes its operators");
        for precision in [Precision::F32, Precision::F16] {
            let form = form(hardware, precision);
            assert!(!form.contains("left to the CPU"), "{hardware} in {precision}:\n{form}");
        }
    }
}
