//! Crates outside this repository: they build in a folder with nothing else in it, and refuse what the spec refuses.

use std::fs;
use std::process::Command;

use weft_generator::write::workspace;
use weft_tests::{Workshop, root};

/// The profiles and the lock file of this repository, and what it asks of dependencies in all: packages of the registry are
/// then those that its own builds have checked.
#[allow(clippy::unwrap_used, reason = "the test cannot go on without it")]
pub fn as_here(workshop: &Workshop) {
    fs::copy(root().join("Cargo.lock"), workshop.path("out/Cargo.lock")).unwrap();
    let ours = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let profiles = ours.find("[profile.").map_or("", |place| &ours[place..]);
    let theirs = fs::read_to_string(workshop.path("out/Cargo.toml")).unwrap();
    workshop.write("out/Cargo.toml", &format!("{theirs}\n{profiles}"));
    let unified = root().join("tests/unified");
    let manifest = format!(
        "[package]\nname = \"unified\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\n\
         weft-unified = {{ path = {unified:?} }}\n"
    );
    workshop.write("out/tests/unified/Cargo.toml", &manifest);
    workshop.write("out/tests/unified/src/lib.rs", "");
}

/// Runs `cargo check`: what the compiler warns of, or what it says if it refuses.
#[allow(clippy::unwrap_used, reason = "the test cannot go on without cargo")]
pub fn check(workshop: &Workshop, what: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO"))
        .args(["check", "--offline", "--quiet", "--color", "never", "--package", "unified"])
        .args(what)
        .current_dir(workshop.path("out"))
        .env("CARGO_TARGET_DIR", root().join("target"))
        .env_remove("RUSTFLAGS")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(said) } else { Err(said) }
}

#[test]
fn the_compiler_gives_the_reason_why_a_backend_is_refused() {
    let workshop = Workshop::with_fixture();
    workshop.run().unwrap();
    workspace(&workshop.path("out")).unwrap();
    as_here(&workshop);
    let manifest = format!(
        "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\nweft = {{ path = {:?} }}\n\
         weft-minerva = {{ path = \"../../text-encoders/minerva\" }}\n",
        root().join("runtime")
    );
    workshop.write("out/apps/app/Cargo.toml", &manifest);
    for backend in ["Cpu", "Qnn"] {
        let text = format!(
            "use weft_minerva::Model;\n\nfn main() -> weft::Result<()> {{\n    Model::load_on::<weft::{backend}>(\"checkpoint\")?;\n    \
             Ok(())\n}}\n"
        );
        workshop.write(&format!("out/apps/app/src/bin/{}.rs", backend.to_lowercase()), &text);
    }
    check(&workshop, &["--package", "weft-minerva", "--all-targets"]).unwrap();
    check(&workshop, &["--package", "app", "--bin", "cpu"]).unwrap();
    let refusal = check(&workshop, &["--package", "app", "--bin", "qnn"]).unwrap_err();
    assert!(refusal.contains("Minerva does not run on `"), "{refusal}");
    assert!(refusal.contains("qnn: Minerva's scores overflow half precision"), "{refusal}");
    assert!(refusal.contains("it runs on cpu, cuda, rocm, metal, openvino, webgpu, webnn"), "{refusal}");
}

#[test]
fn a_crate_of_modules_compiles() {
    let workshop = crate::modules::workshop(crate::modules::SPEC);
    workshop.run().unwrap();
    workspace(&workshop.path("out")).unwrap();
    as_here(&workshop);
    check(&workshop, &["--package", "weft-duo", "--all-targets"]).unwrap();
}

#[test]
fn a_crate_of_modules_of_modules_compiles_without_a_warning() {
    let workshop = crate::nesting::workshop(crate::nesting::SPEC);
    workshop.run().unwrap();
    workspace(&workshop.path("out")).unwrap();
    as_here(&workshop);
    assert_eq!(check(&workshop, &["--package", "weft-trio", "--all-targets"]).unwrap(), "");
}
