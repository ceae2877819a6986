//! Backends beside each other in one process, and graphs that a backend cannot run.

use std::collections::BTreeMap;
use std::path::Path;

use libtest_mimic::{Completion, Failed, Trial};
use weft::engine::{self, Options};
use weft::golden::Case;
use weft::lower::Lowered;
use weft::onnx::{self, Node, OperatorSet, ValueInfo};
use weft::{Dim, Dtype, Hardware, Loader, Values};
use weft_bert::Model;

/// The plugin providers, which hand back to the CPU what they lack.
const PLUGINS: [Hardware; 2] = [Hardware::Qnn, Hardware::Webgpu];

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![];
    for hardware in PLUGINS {
        trials.push(trial(hardware, "lacks_an_operator", lacking));
    }
    for hardware in PLUGINS.into_iter().chain([Hardware::Openvino]) {
        trials.push(trial(hardware, "runs_beside_the_cpu", beside));
    }
    trials
}

fn trial(hardware: Hardware, name: &str, test: fn(Hardware)) -> Trial {
    Trial::ignorable_test(format!("{hardware}_{name}"), move || {
        for needed in [Hardware::Cpu, hardware] {
            if let Err(error) = engine::available(needed) {
                return Ok(Completion::ignored_with(error.to_string()));
            }
        }
        test(hardware);
        Ok::<_, Failed>(Completion::Completed)
    })
}

/// A determinant between two operations that every backend has: the CPU has it, the plugins do not.
fn determinant() -> Lowered {
    let square = [1, 4, 4].map(Dim::Fixed);
    let node = |op: &str, input: &str, output: &str| Node {
        op_type: op.to_owned(),
        name: format!("/{op}"),
        input: vec![input.to_owned()],
        output: vec![output.to_owned()],
        ..Node::default()
    };
    let graph = onnx::Graph {
        name: "determinant".to_owned(),
        node: vec![
            node("Relu", "x", "positive"),
            node("Det", "positive", "det"),
            node("Sigmoid", "det", "y"),
        ],
        input: vec![ValueInfo::new("x", Dtype::F32, &square)],
        output: vec![ValueInfo::new("y", Dtype::F32, &[Dim::Fixed(1)])],
        ..onnx::Graph::default()
    };
    let model = onnx::Model {
        ir_version: Some(10),
        opset_import: vec![OperatorSet { domain: String::new(), version: Some(21) }],
        graph: Some(graph),
        ..onnx::Model::default()
    };
    let operators = ["Relu", "Det", "Sigmoid"].map(|name| (name.to_owned(), 1));
    Lowered { model, folder: None, memory: Default::default(), operators: BTreeMap::from(operators) }
}

fn lacking(hardware: Hardware) {
    let lowered = determinant();
    engine::compile(Hardware::Cpu, &lowered, &Options::default()).unwrap();
    let options = Options { precision: hardware.default_precision(), ..Options::default() };
    let refused = engine::compile(hardware, &lowered, &options);
    let said = refused.err().expect("a graph with an operator that the backend lacks was taken").to_string();
    assert!(said.contains("Det"), "{said}");
    let allowed = Options { cpu_fallback: vec!["Det".to_owned()], ..options };
    let compiled = engine::compile(hardware, &lowered, &allowed).unwrap();
    let placement = &compiled.placement().devices;
    assert!(placement.len() == 2, "nothing ran on {hardware}: {placement:?}");
}

fn golden() -> Case {
    Case::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/bert/base")).unwrap()
}

fn load(case: &Case, hardware: Hardware) -> Model {
    let loader = Loader::<Model>::open(case.dir.to_str().unwrap()).unwrap().hardware(hardware).threads(1);
    loader.weights(case.weights().unwrap().unwrap()).load().unwrap()
}

fn run(model: &Model, case: &Case) -> Values {
    model.run(case.inputs.clone()).unwrap()
}

/// Numbers of one backend do not depend on whether the other is loaded, or runs at the same time.
fn beside(hardware: Hardware) {
    let case = golden();
    let alone = run(&load(&case, Hardware::Cpu), &case);
    let other_alone = run(&load(&case, hardware), &case);
    assert_ne!(alone, other_alone, "{hardware} gives the very bits of the CPU: did it run there?");
    let (cpu, other) = (load(&case, Hardware::Cpu), load(&case, hardware));
    for _ in 0..3 {
        std::thread::scope(|scope| {
            let beside = scope.spawn(|| run(&other, &case));
            assert_eq!(run(&cpu, &case), alone);
            assert_eq!(beside.join().unwrap(), other_alone);
        });
    }
    drop(other);
    assert_eq!(run(&cpu, &case), alone);
    let devices = |model: &Model| model.placement().counts().into_keys().collect::<Vec<_>>();
    assert_eq!(devices(&cpu), ["CPUExecutionProvider"]);
}
