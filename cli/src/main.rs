//! `weft`: runs, describes, quantizes and exports checkpoints of every architecture of this build.

mod bench;
mod cache;
mod chat;
mod doctor;
mod export;
mod info;
mod manual;
mod options;
mod quantize;
mod run;
mod setup;
mod terminal;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Runs Hugging Face checkpoints on CPU and accelerators, without Python.
#[derive(Parser)]
#[command(name = "weft", version, max_term_width = 110, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 done, 1 something failed, 2 bad usage.")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Run(run::Args),
    Chat(chat::Args),
    Info(info::Args),
    Bench(bench::Args),
    Quantize(quantize::Args),
    Export(export::Args),
    Cache(cache::Args),
    Doctor(doctor::Args),
    Setup(setup::Args),
    Models(info::ModelsArgs),
    Completions(manual::CompletionsArgs),
    Man(manual::ManArgs),
}

fn main() -> ExitCode {
    let done = match Cli::parse().verb {
        Verb::Run(args) => run::run(args),
        Verb::Chat(args) => chat::run(&args),
        Verb::Info(args) => info::run(&args),
        Verb::Bench(args) => bench::run(&args),
        Verb::Quantize(args) => quantize::run(&args),
        Verb::Export(args) => export::run(&args),
        Verb::Cache(args) => cache::run(&args),
        Verb::Doctor(args) => doctor::run(&args),
        Verb::Setup(args) => setup::run(&args),
        Verb::Models(args) => info::models(&args),
        Verb::Completions(args) => manual::completions(&args, &mut Cli::command()),
        Verb::Man(args) => manual::pages(&args, Cli::command()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            terminal::error(&error.to_string());
            ExitCode::from(1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_is_well_formed() {
        Cli::command().debug_assert();
    }
}
