//! Browsers beside ONNX Runtime, without their packages, after a crash, and with what they must refuse.
//!
//! What concerns a whole process runs in a process of its own: this binary again, told by `WEFT_PROBE` what to do.

use std::path::Path;
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use weft::engine::{self, Compiled, Options};
use weft::graph::{Graph, Input};
use weft::lower::{Lowered, Target, lower};
use weft::weights::{Bytes, WeightData};
use weft::{Dim, Dtype, Error, Hardware, Precision, Value, Values};

const PROBE: &str = "WEFT_PROBE";

fn main() -> ExitCode {
    match std::env::var(PROBE) {
        Ok(probe) => {
            let answer = answer(&probe).unwrap_or_else(|error| error.to_string());
            print!("{answer}");
            ExitCode::SUCCESS
        }
        Err(_) => {
            let mut arguments = Arguments::from_args();
            arguments.test_threads.get_or_insert(1);
            libtest_mimic::run(&arguments, trials()).exit_code()
        }
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
        Trial::test("a_removed_package_is_reported_as_missing", removed),
        here("models_beside_each_other_give_the_numbers_they_give_alone", side_by_side),
        here("numbers_are_those_of_the_cpu", close_to_cpu),
        here("placement_names_the_device_and_its_operators", placed),
        here("an_operator_that_webnn_lacks_is_named_and_refused", unknown_operator),
        here("a_hung_model_costs_only_itself", too_slow),
        here("a_crash_costs_only_the_models_that_were_open", crashed),
    ]
}

/// Why the tests that need a browser cannot run here.
fn missing() -> Option<String> {
    match engine::available(Hardware::Webnn) {
        Err(error @ Error::Unavailable { .. }) => Some(error.to_string().replace("\n  ", "; ")),
        _ => None,
    }
}

fn removed() -> Result<(), Failed> {
    let empty = tempfile::tempdir()?;
    let said = probe("available", &[("WEFT_CACHE", empty.path())])?;
    let named =
        said.contains(&*empty.path().to_string_lossy()) && said.contains("cargo xtask setup --hw webnn");
    expect(said.starts_with("webnn is not available") && named, &said)
}

fn side_by_side() -> Result<(), Failed> {
    let alone = probe("run webnn", &[])?;
    expect(alone.ends_with("]\n"), &alone)?;
    let both = probe("run webnn webnn webnn", &[])?;
    expect(both == alone.repeat(3), &format!("{alone}beside:\n{both}"))
}

fn close_to_cpu() -> Result<(), Failed> {
    if engine::available(Hardware::Cpu).is_err() {
        return Ok(());
    }
    let [cpu, webnn] = [Hardware::Cpu, Hardware::Webnn].map(|hardware| {
        let compiled = engine::compile(hardware, &lowered(hardware)?, &Options::default())?;
        numbers(&*compiled)
    });
    let (cpu, webnn) = (cpu?, webnn?);
    let far = cpu.iter().zip(&webnn).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    expect(cpu.len() == webnn.len() && far < 1e-5, &format!("{cpu:?}\n{webnn:?}"))
}

fn placed() -> Result<(), Failed> {
    let compiled = engine::compile(Hardware::Webnn, &lowered(Hardware::Webnn)?, &Options::default())?;
    let placement = compiled.placement();
    let on_cpu =
        placement.devices.get("WebNNExecutionProvider (cpu)").filter(|_| placement.devices.len() == 1);
    let found =
        on_cpu.is_some_and(|operators| operators.contains_key("MatMul") && operators.contains_key("Tanh"));
    expect(found, &format!("{placement:?}"))
}

/// ONNX Runtime computes `Hardmax` on the CPU, and WebNN does not have it.
fn unknown_operator() -> Result<(), Failed> {
    let mut lacking = lowered(Hardware::Webnn)?;
    for node in lacking.model.graph.iter_mut().flat_map(|graph| &mut graph.node) {
        if node.op_type == "Tanh" {
            "Hardmax".clone_into(&mut node.op_type);
            "lacking".clone_into(&mut node.name);
        }
    }
    match engine::compile(Hardware::Webnn, &lacking, &Options::default()) {
        Err(Error::Engine { hardware: Hardware::Webnn, problem }) => {
            expect(problem.contains("lacking"), &problem)?;
        }
        Err(other) => return Err(other.into()),
        Ok(_) => return Err("it compiled".into()),
    }
    // The browser goes on.
    numbers(&*engine::compile(Hardware::Webnn, &lowered(Hardware::Webnn)?, &Options::default())?)?;
    Ok(())
}

fn too_slow() -> Result<(), Failed> {
    let said = probe("open webnn", &[("WEFT_BROWSER_TIMEOUT", Path::new("0"))])?;
    expect(said.contains("did not open the model within 0 s; WEFT_BROWSER_TIMEOUT"), &said)
}

#[cfg(target_os = "linux")]
fn crashed() -> Result<(), Failed> {
    let said = probe("crash webnn", &[])?;
    let lost = said.contains("the browser hung up") || said.contains("the browser closed the tab");
    expect(lost && said.contains("again: ["), &said)
}

#[cfg(not(target_os = "linux"))]
fn crashed() -> Result<(), Failed> {
    Ok(())
}

fn expect(met: bool, found: &str) -> Result<(), Failed> {
    if met { Ok(()) } else { Err(format!("found:\n{found}").into()) }
}

/// What this binary answers in a process of its own, with these variables.
fn probe(what: &str, variables: &[(&str, &Path)]) -> Result<String, Failed> {
    let output = Command::new(std::env::current_exe()?)
        .env(PROBE, what)
        .env_remove("WEFT_BROWSER")
        .envs(variables.iter().copied())
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    expect(output.status.success(), &format!("`{what}` ended with {}: {said}", output.status))?;
    Ok(String::from_utf8(output.stdout)?)
}

/// The child's side: `available`, `open` a model, `run` several side by side, or `crash` the browser under one.
fn answer(probe: &str) -> Result<String, Error> {
    let (what, backends) = probe.split_once(' ').unwrap_or((probe, ""));
    if what == "available" {
        return engine::available(Hardware::Webnn);
    }
    let ready = backends.split(' ').map(|name| {
        let hardware: Hardware = name.parse()?;
        engine::compile(hardware, &lowered(hardware)?, &Options::default())
    });
    let ready = ready.collect::<Result<Vec<_>, _>>()?;
    let mut answer = String::new();
    if what == "crash" {
        kill_browser();
        answer += &ready[0].run(&inputs()).err().map(|error| error.to_string()).unwrap_or_default();
        let again = engine::compile(Hardware::Webnn, &lowered(Hardware::Webnn)?, &Options::default())?;
        answer += &format!("\nagain: {:?}", numbers(&*again)?);
    } else if what == "run" {
        for compiled in ready {
            answer += &format!("{:?}\n", numbers(&*compiled)?);
        }
    }
    Ok(answer)
}

/// Ends the processes that this one has started, and theirs.
fn kill_browser() {
    let own = std::process::id();
    let children = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
    for child in children.split_whitespace() {
        // Each browser is in a process group of its own.
        let _ = Command::new("kill").args(["-9", "--", &format!("-{child}")]).status();
    }
}

fn numbers(compiled: &dyn Compiled) -> Result<Vec<f32>, Error> {
    Ok(compiled.run(&inputs())?["y"].f32("y")?.iter().copied().collect())
}

fn inputs() -> Values {
    let x =
        ndarray::ArrayD::from_shape_fn(vec![2, 3, WIDTH], |at| (at[0] * 5 + at[1] * 3 + at[2]) as f32 / 7.0);
    Values::from([("x".to_owned(), Value::F32(x))])
}

const WIDTH: usize = 8;

/// `tanh(softmax(x · wᵀ))`.
fn lowered(hardware: Hardware) -> Result<Lowered, Error> {
    let mut g = Graph::new();
    let x = g.input(Input::f32("x", vec![Dim::Fixed(2), Dim::Fixed(3), Dim::Fixed(WIDTH)]));
    let y = g.linear_with("weight", None, &x, WIDTH)?;
    let y = g.softmax(&y)?;
    let y = g.tanh(&y);
    g.output("y", &y)?;
    let bytes = (0..WIDTH * WIDTH).flat_map(|n| ((n * n % 23) as f32 / 11.0 - 1.0).to_le_bytes()).collect();
    let bytes = Bytes::memory(bytes);
    let weight =
        WeightData { dtype: Dtype::F32, shape: vec![WIDTH, WIDTH], stored_as: "weight".to_owned(), bytes };
    lower(&g, &[weight], &Target::of(hardware, Precision::F32))
}
