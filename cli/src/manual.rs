//! `weft completions` and `weft man`: what shells and `man` know of the command line.

use std::fs;
use std::path::PathBuf;

use clap::Command;
use clap_complete::Shell;
use weft::{Error, Result};

use crate::terminal::say;

/// Prints the completions of a shell.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example: weft completions bash > ~/.local/share/bash-completion/completions/weft")]
pub struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// Writes the manual's pages, one for each verb.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example: weft man ~/.local/share/man/man1")]
pub struct ManArgs {
    /// The folder to write them to.
    folder: PathBuf,
}

/// Runs `weft completions`.
pub fn completions(args: &CompletionsArgs, command: &mut Command) -> Result<bool> {
    let mut script = vec![];
    clap_complete::generate(args.shell, command, "weft", &mut script);
    say(String::from_utf8_lossy(&script).trim_end());
    Ok(true)
}

/// Runs `weft man`.
pub fn pages(args: &ManArgs, command: Command) -> Result<bool> {
    let written =
        fs::create_dir_all(&args.folder).and_then(|()| clap_mangen::generate_to(command, &args.folder));
    written.map_err(|source| Error::Io { path: args.folder.clone(), source })?;
    say(args.folder.display().to_string());
    Ok(true)
}
