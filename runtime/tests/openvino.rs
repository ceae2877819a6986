//! OpenVINO beside ONNX Runtime, without its library, and with what it must refuse.
//!
//! What concerns a whole process runs in a process of its own: this binary again, told by `WEFT_PROBE` what to do.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use weft::engine::{self, Options, library};
use weft::graph::dims::{BATCH, SEQUENCE};
use weft::graph::{Graph, Input};
use weft::lower::{Lowered, Target, lower};
use weft::weights::{Bytes, WeightData};
use weft::{Dim, Dtype, Error, Hardware, Precision, Value, Values};

const PROBE: &str = "WEFT_PROBE";

fn main() -> ExitCode {
    match std::env::var(PROBE) {
        Ok(probe) => {
            print!("{}", answer(&probe));
            ExitCode::SUCCESS
        }
        Err(_) => libtest_mimic::run(&Arguments::from_args(), trials()).exit_code(),
    }
}

fn trials() -> Vec<Trial> {
    let here = |name: &str, test: fn() -> Result<(), Failed>| {
        Trial::ignorable_test(name, move || match missing() {
            Some(reason) => Ok(Completion::ignored_with(reason)),
            None => test().map(|()| Completion::Completed),
        })
    };
    vec![
        Trial::test("a_removed_library_is_reported_as_missing", removed),
        here("a_session_beside_another_gives_the_numbers_it_gives_alone", side_by_side),
        here("weights_are_read_from_linked_files_and_from_memory", weights_in_files),
        here("an_operator_that_it_lacks_is_refused", unknown_operator),
        here("a_device_that_is_not_there_is_named_with_those_that_are", unknown_device),
        here("placement_names_the_device_and_its_operations", placed),
        here("selected_experts_alone_are_computed", selected_experts),
    ]
}

/// Why the tests that need both engines cannot run here.
fn missing() -> Option<String> {
    [Hardware::Openvino, Hardware::Cpu].into_iter().find_map(|hardware| match engine::available(hardware) {
        Err(error @ Error::Unavailable { .. }) => Some(error.to_string().replace("\n  ", "; ")),
        _ => None,
    })
}

fn removed() -> Result<(), Failed> {
    let empty = tempfile::tempdir()?;
    let said = probe("available", &[("WEFT_CACHE", empty.path()), ("OPENVINO_INSTALL_DIR", Path::new(""))])?;
    let place = empty.path().to_string_lossy();
    let named = said.contains(&*place) && said.contains("cargo xtask setup --hw openvino");
    expect(said.starts_with("openvino is not available") && named, &said)
}

fn side_by_side() -> Result<(), Failed> {
    let [cpu, openvino] = ["run cpu", "run openvino"].map(|what| numbers(what, &[]));
    let both = numbers("run cpu openvino cpu openvino", &[])?;
    let (cpu, openvino) = (cpu?, openvino?);
    expect(both == format!("{cpu}{openvino}{cpu}{openvino}"), &format!("{cpu}{openvino}beside:\n{both}"))
}

fn weights_in_files() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    // An offset that no number is aligned to.
    let mut bytes = vec![0xff; 3];
    bytes.extend(weight_bytes());
    std::fs::write(folder.path().join("weights.bin"), bytes)?;
    let installed = library::package("openvino");
    let installed =
        std::env::var_os("OPENVINO_INSTALL_DIR").map(PathBuf::from).or(installed).unwrap_or_default();
    let nowhere = folder.path().join("weights.bin/no-folder");
    let file = ("WEFT_FILE", folder.path());
    let inline = numbers("run openvino", &[])?;
    let linked = numbers("run openvino", &[file])?;
    let without =
        [("WEFT_CACHE", nowhere.as_path()), ("TMPDIR", &nowhere), ("OPENVINO_INSTALL_DIR", &installed), file];
    let copied = numbers("run openvino", &without)?;
    expect(linked == inline && copied == inline, &format!("{inline}linked:\n{linked}copied:\n{copied}"))?;
    let left = std::fs::read_dir(folder.path())?.count();
    expect(left == 1, "the folder of the weights was written to")
}

fn unknown_operator() -> Result<(), Failed> {
    let mut lowered = lowered(Hardware::Openvino)?;
    for node in lowered.model.graph.iter_mut().flat_map(|graph| &mut graph.node) {
        if node.op_type == "Tanh" {
            "NoSuchOperator".clone_into(&mut node.op_type);
        }
    }
    match engine::compile(Hardware::Openvino, &lowered, &Options::default()) {
        Err(Error::Engine { hardware: Hardware::Openvino, problem }) => {
            expect(problem.contains("NoSuchOperator"), &problem)
        }
        Err(other) => Err(other.into()),
        Ok(_) => Err("it compiled".into()),
    }
}

fn unknown_device() -> Result<(), Failed> {
    let lowered = lowered(Hardware::Openvino)?;
    // `AUTO` would let OpenVINO choose, and so run somewhere else than was asked for.
    for device in ["TPU", "AUTO", "HETERO:GPU,CPU"] {
        let options = Options { device: Some(device.to_owned()), ..Options::default() };
        match engine::compile(Hardware::Openvino, &lowered, &options) {
            Err(Error::Unavailable { problem, .. }) => {
                expect(problem.contains(device) && problem.contains("CPU"), &problem)?;
            }
            Err(other) => return Err(other.into()),
            Ok(_) => return Err(format!("it compiled on {device}").into()),
        }
    }
    Ok(())
}

fn placed() -> Result<(), Failed> {
    let compiled = engine::compile(Hardware::Openvino, &lowered(Hardware::Openvino)?, &Options::default())?;
    let placement = compiled.placement();
    let on_cpu = placement.devices.get("OpenVINO:CPU").filter(|_| placement.devices.len() == 1);
    let found = on_cpu.is_some_and(|operations| operations.contains_key("FullyConnected"));
    expect(found, &format!("{placement:?}"))
}

/// Mixtures of gated experts are products of the selected ones alone to its CPU plugin, however weights are stored.
fn selected_experts() -> Result<(), Failed> {
    use weft::nn::{
        Activation, BatchedExperts, GatedMlp, clamped_swiglu, combine_experts, combine_weighted_inputs,
        experts, glu, softmax_topk,
    };
    for act in [Activation::Silu, Activation::Gelu, Activation::GeluNew] {
        for (form, dtype) in [
            ("modules", Dtype::F32),
            ("modules", Dtype::Bf16),
            ("batched", Dtype::F32),
            ("transposed", Dtype::F32),
            ("transposed", Dtype::F16),
            ("weighted", Dtype::F32),
            ("clamped", Dtype::F32),
            ("clamped", Dtype::Bf16),
        ] {
            let mut g = Graph::new();
            let x = g.input(Input::f32("x", vec![BATCH, SEQUENCE, Dim::Fixed(32)]));
            let logits = g.input(Input::f32("logits", vec![BATCH, SEQUENCE, Dim::Fixed(8)]));
            let routing = softmax_topk(&mut g, &logits, 2, true)?;
            let w = g.scope("experts");
            let y = match form {
                "modules" => {
                    let expert =
                        GatedMlp { gate: "gate", up: "up", down: "down", width: 16, act, bias: false };
                    experts(&mut g, &w, &x, &routing, &expert)?
                }
                "batched" => {
                    let expert = BatchedExperts { gate_up: "gate_up", down: "down", width: 16, act };
                    expert.forward(&mut g, &w, &x, &routing)?
                }
                "weighted" => {
                    let gate_up = g.weight("gate_up", &[8, 32, 32])?;
                    let down = g.weight("down", &[8, 16, 32])?;
                    let routing = softmax_topk(&mut g, &logits, 1, false)?;
                    combine_weighted_inputs(&mut g, &x, &routing, |g, x, selected| {
                        let h = selected.linear(g, x, &gate_up, true)?;
                        let h = glu(g, &h, act)?;
                        selected.linear(g, &h, &down, true)
                    })?
                }
                "clamped" => {
                    let (gate_up, bias) = (g.weight("gate_up", &[8, 32, 32])?, g.weight("bias", &[8, 32])?);
                    let (down, down_bias) =
                        (g.weight("down", &[8, 16, 32])?, g.weight("down_bias", &[8, 32])?);
                    combine_experts(&mut g, &x, &routing, |g, x, selected| {
                        let h = selected.linear(g, x, &gate_up, true)?;
                        let bias = selected.rows(g, &bias)?;
                        let h = g.add(&h, &bias)?;
                        let (gate, up) = (g.slice_step(&h, 2, 0, 2)?, g.slice_step(&h, 2, 1, 2)?);
                        let h = clamped_swiglu(g, &gate, &up, 1.702, 7.0)?;
                        let h = selected.linear(g, &h, &down, true)?;
                        let bias = selected.rows(g, &down_bias)?;
                        g.add(&h, &bias)
                    })?
                }
                _ => {
                    let gate_up = g.weight("gate_up", &[8, 32, 32])?;
                    let down = g.weight("down", &[8, 16, 32])?;
                    combine_experts(&mut g, &x, &routing, |g, x, selected| {
                        let h = selected.linear(g, x, &gate_up, true)?;
                        let h = glu(g, &h, act)?;
                        selected.linear(g, &h, &down, true)
                    })?
                }
            };
            g.output("y", &y)?;
            // What is equal is computed once, and no mixture to the engine.
            let drawn = |seed: usize, count: usize| -> Vec<u8> {
                // Bytes of numbers that are neither infinite nor none in any type.
                (0..count).map(|i| ((i * 7919 + seed * 104_729) % 59) as u8).collect()
            };
            let located = g.weights().iter().enumerate().map(|(seed, weight)| WeightData {
                dtype,
                shape: weight.shape.clone(),
                stored_as: weight.name.clone(),
                bytes: Bytes::memory(drawn(seed, dtype.size() * weight.shape.iter().product::<usize>())),
            });
            let located: Vec<WeightData> = located.collect();
            for precision in [Precision::F32, Precision::Bf16] {
                let lowered = lower(&g, &located, &Target::of(Hardware::Openvino, precision))?;
                let options = Options { precision, ..Options::default() };
                let compiled = match engine::compile(Hardware::Openvino, &lowered, &options) {
                    Err(Error::Unavailable { .. }) => continue,
                    compiled => compiled?,
                };
                let operations = &compiled.placement().devices["OpenVINO:CPU"];
                let products = if form == "clamped" { 2 } else { 3 };
                let selected = operations.get("GatherMatmul") == Some(&products);
                let found = format!("{act:?}, {form} in {dtype}, {precision:?}: {operations:?}");
                expect(selected, &found)?;
            }
        }
    }
    Ok(())
}

fn expect(met: bool, found: &str) -> Result<(), Failed> {
    if met { Ok(()) } else { Err(format!("found:\n{found}").into()) }
}

/// What this binary answers in a process of its own, with these variables.
fn probe(what: &str, variables: &[(&str, &Path)]) -> Result<String, Failed> {
    let output =
        Command::new(std::env::current_exe()?).env(PROBE, what).envs(variables.iter().copied()).output()?;
    if !output.status.success() {
        return Err(format!(
            "`{what}` ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )
        .into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// As [`probe`], where an answer without numbers is a failure.
fn numbers(what: &str, variables: &[(&str, &Path)]) -> Result<String, Failed> {
    let answer = probe(what, variables)?;
    let backends = what.split(' ').count() - 1;
    expect(answer.lines().count() == backends && answer.lines().all(|line| line.ends_with(']')), &answer)?;
    Ok(answer)
}

/// The child's side: `available`, or `run` and the backends to run on, all ready before the first one runs.
fn answer(probe: &str) -> String {
    let Some(backends) = probe.strip_prefix("run ") else {
        return engine::available(Hardware::Openvino).unwrap_or_else(|e| e.to_string());
    };
    let answered = || -> Result<String, Error> {
        let options = Options { threads: Some(1), ..Options::default() };
        let ready = backends.split(' ').map(|name| {
            let hardware: Hardware = name.parse()?;
            Ok((name, engine::compile(hardware, &lowered(hardware)?, &options)?))
        });
        let ready = ready.collect::<Result<Vec<_>, Error>>()?;
        let x = ndarray::ArrayD::from_shape_fn(vec![2, 3, WIDTH], |at| {
            (at[0] * 5 + at[1] * 3 + at[2]) as f32 / 7.0
        });
        let inputs = Values::from([("x".to_owned(), Value::F32(x))]);
        let mut answer = String::new();
        for (name, compiled) in ready {
            let outputs = compiled.run(&inputs)?;
            let bits: Vec<u32> = outputs["y"].f32("y")?.iter().map(|y| y.to_bits()).collect();
            answer += &format!("{name} {bits:08x?}\n");
        }
        Ok(answer)
    };
    answered().unwrap_or_else(|error| error.to_string())
}

const WIDTH: usize = 8;

/// `tanh(softmax(x · wᵀ))`, its weight in memory, or in a file where `WEFT_FILE` names a folder.
fn lowered(hardware: Hardware) -> Result<Lowered, Error> {
    let mut g = Graph::new();
    let x = g.input(Input::f32("x", vec![BATCH, SEQUENCE, Dim::Fixed(WIDTH)]));
    let y = g.linear_with("weight", None, &x, WIDTH)?;
    let y = g.softmax(&y)?;
    let y = g.tanh(&y);
    g.output("y", &y)?;
    let bytes = match std::env::var_os("WEFT_FILE") {
        Some(folder) => {
            let path = Path::new(&folder).join("weights.bin");
            Bytes::File { path, offset: 3, length: weight_bytes().len() as u64 }
        }
        None => Bytes::memory(weight_bytes()),
    };
    let weight =
        WeightData { dtype: Dtype::F32, shape: vec![WIDTH, WIDTH], stored_as: "weight".to_owned(), bytes };
    lower(&g, &[weight], &Target::of(hardware, Precision::F32))
}

fn weight_bytes() -> Vec<u8> {
    (0..WIDTH * WIDTH).flat_map(|n| ((n * n % 23) as f32 / 11.0 - 1.0).to_le_bytes()).collect()
}
