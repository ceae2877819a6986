//! `cargo xtask`: the command line of this repository.

mod bench;
mod binaries;
mod demo;
mod doctor;
mod farm;
mod gallery;
mod generate;
mod lint;
mod new;
mod package;
mod process;
mod quantize;
mod query;
mod record;
mod reference;
mod report;
mod setup;
mod sparse;
mod specs;
mod table;
mod terminal;
mod test;
mod verify;
mod web;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use terminal::Usage;

/// Generating makes and drops millions of small texts, on all threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Generates, tests and reports model crates: every model on every backend, as it was observed.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 110)]
#[command(after_help = "Exit codes: 0 done, 1 something failed, 2 bad usage.")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Demo(demo::Args),
    Generate(generate::Args),
    Gallery(gallery::Args),
    Lint(lint::Args),
    Test(test::Args),
    Farm(farm::Args),
    #[command(hide = true)]
    FarmTask(farm::TaskArgs),
    Verify(verify::Args),
    Web(web::Args),
    New(new::Args),
    Sparse(sparse::Args),
    Setup(setup::Args),
    Doctor(doctor::Args),
    Bench(bench::Args),
    Quantize(quantize::Args),
    Package(package::Args),
    Report(report::Args),
    Query(query::Args),
    Reference(reference::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = terminal::catch_interrupts().and_then(|()| match &cli.verb {
        Verb::Demo(args) => demo::run(args),
        Verb::Generate(args) => generate::run(args),
        Verb::Gallery(args) => gallery::run(args),
        Verb::Lint(args) => lint::run(args),
        Verb::Test(args) => test::run(args),
        Verb::Farm(args) => farm::run(args),
        Verb::FarmTask(args) => farm::run_task(args),
        Verb::Verify(args) => verify::run(args),
        Verb::Web(args) => web::run(args),
        Verb::New(args) => new::run(args),
        Verb::Sparse(args) => sparse::run(args),
        Verb::Setup(args) => setup::run(args),
        Verb::Doctor(args) => doctor::run(args),
        Verb::Bench(args) => bench::run(args),
        Verb::Quantize(args) => quantize::run(args),
        Verb::Package(args) => package::run(args),
        Verb::Report(args) => report::run(args),
        Verb::Query(args) => query::run(args),
        Verb::Reference(args) => reference::run(args),
    });
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) if error.downcast_ref::<std::io::Error>().is_some_and(gone) => ExitCode::from(1),
        Err(error) => {
            terminal::note(format!("error: {error:#}"));
            ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
        }
    }
}

/// Whoever read the output has left (`| head`): nothing to say, and nobody to say it to.
fn gone(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::BrokenPipe
}
