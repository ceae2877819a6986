//! `weft info`: what a checkpoint is and needs, without loading it; and `weft models`, what this build opens.

use serde_json::json;
use weft::{BackendVerdict, Inspection, MemoryNeed, Result};

use crate::terminal::{bytes, count, heading, say, table};

/// Describes a checkpoint without loading it: architecture, parameters, memory, backends, missing and unused tensors.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// A folder, an id of the Hugging Face hub, or a GGUF file.
    checkpoint: String,
    /// The reference's class to describe; the one that config.json names where not given.
    #[arg(long, value_name = "CLASS")]
    class: Option<String>,
    /// A length of context to give the memory for, with the KV cache; may be repeated.
    #[arg(long, value_name = "TOKENS", default_values_t = [4096, 32_768])]
    context: Vec<usize>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// Lists the models that this build opens, by category.
#[derive(clap::Args, Debug)]
pub struct ModelsArgs {
    /// Also those that this build was made without.
    #[arg(long)]
    all: bool,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// Runs `weft info`; whether no weight is missing.
pub fn run(args: &Args) -> Result<bool> {
    let mut loader = weft_models::loader(&args.checkpoint)?;
    if let Some(class) = &args.class {
        loader = loader.class(class);
    }
    let found = loader.inspect(&args.context)?;
    match args.json {
        true => say(serde_json::to_string_pretty(&found).unwrap_or_default()),
        false => say(text(&found)),
    }
    Ok(found.missing.is_empty())
}

fn text(found: &Inspection) -> String {
    let mut lines = vec![];
    let mut line =
        |name: &str, value: String| lines.push(format!("{}  {value}", heading(&format!("{name:<13}"))));
    line("architecture", format!("{} (model_type `{}`)", found.architecture, found.model_type));
    line("class", found.class.to_owned());
    line("tasks", found.tasks.join(", "));
    line("parameters", count(found.parameters));
    let types = found.stored_types.iter().map(|(name, size)| format!("{name} {}", bytes(*size)));
    let types = types.collect::<Vec<_>>().join(", ");
    line("weights", format!("{} in {} tensors: {types}", bytes(found.stored_bytes), found.tensors));
    if let Some(longest) = found.longest_sequence {
        line("longest input", format!("{longest} tokens"));
    }
    if found.cache_bytes_per_token > 0 {
        line("KV cache", format!("{} a token", bytes(found.cache_bytes_per_token)));
    }
    if found.state_bytes > 0 {
        line("states", format!("{} a sequence", bytes(found.state_bytes)));
    }
    let free = found.free_bytes.map(|free| format!("; {} is free here", bytes(free))).unwrap_or_default();
    lines.push(format!("\n{}", heading(&format!("memory by precision{free}"))));
    let contexts = found.memory.first().map(|need| need.contexts.as_slice()).unwrap_or_default();
    let head = ["", "weights"].into_iter().map(str::to_owned);
    let head = head.chain(contexts.iter().map(|(tokens, _)| format!("with {tokens} tokens")));
    let rows = found.memory.iter().map(|need| {
        let cached = need.contexts.iter().map(|(_, size)| bytes(*size));
        [need.precision.name().to_owned(), bytes(need.weights)].into_iter().chain(cached).collect()
    });
    lines.push(table(&[head.collect()].into_iter().chain(rows).collect::<Vec<Vec<String>>>()));
    if let Some(free) = found.free_bytes {
        lines.push(format!("  {}", fitting(&found.memory, free)));
    }
    lines.push(format!("\n{}", heading("backends")));
    let rows: Vec<_> = found.backends.iter().map(backend).collect();
    lines.push(table(&rows));
    lines.extend(names("missing tensors", &found.missing));
    lines.extend(names("unused tensors", &found.unused));
    lines.join("\n")
}

/// Which precisions' weights, with the cache of the shortest context, are in the memory that is free.
fn fitting(memory: &[MemoryNeed], free: u64) -> String {
    let least = |need: &&MemoryNeed| need.contexts.first().map_or(need.weights, |(_, bytes)| *bytes) <= free;
    let fitting: Vec<_> = memory.iter().filter(least).map(|need| need.precision.name()).collect();
    match fitting.len() {
        0 => "none of these fits: weights would be read from disk again for every token".to_owned(),
        all if all == memory.len() => "all of these fit".to_owned(),
        _ => format!("these fit: {}", fitting.join(", ")),
    }
}

fn backend(verdict: &BackendVerdict) -> Vec<String> {
    let state = match (verdict.chosen, verdict.available) {
        (true, _) => "taken by auto",
        (false, true) => "by name",
        (false, false) => "not here",
    };
    vec![verdict.hardware.name().to_owned(), state.to_owned(), verdict.reason.clone()]
}

/// Tensors under a heading, the first few by name.
fn names(title: &str, tensors: &[String]) -> Vec<String> {
    const SHOWN: usize = 8;
    if tensors.is_empty() {
        return vec![];
    }
    let mut lines = vec![format!("\n{}", heading(&format!("{title}: {}", tensors.len())))];
    lines.extend(tensors.iter().take(SHOWN).map(|name| format!("  {name}")));
    if tensors.len() > SHOWN {
        lines.push(format!("  and {} more; `--json` names all", tensors.len() - SHOWN));
    }
    lines
}

/// Runs `weft models`.
pub fn models(args: &ModelsArgs) -> Result<bool> {
    let built: Vec<&str> = weft_models::REGISTRY.architectures().map(weft::DynArchitecture::name).collect();
    let shown: Vec<_> =
        weft_models::REGISTRY.known().filter(|model| args.all || built.contains(&model.name)).collect();
    if args.json {
        let entry = |model: &&weft::KnownModel| {
            json!({ "name": model.name, "category": model.category, "model_types": model.model_types,
                    "built": built.contains(&model.name) })
        };
        say(format!("{:#}", json!(shown.iter().map(entry).collect::<Vec<_>>())));
        return Ok(true);
    }
    let rows = shown.iter().map(|model| {
        let note = if built.contains(&model.name) { "" } else { "not in this build" };
        vec![model.name.to_owned(), model.category.to_owned(), note.to_owned()]
    });
    say(table(&rows.collect::<Vec<_>>()));
    Ok(true)
}

#[cfg(test)]
mod tests {
    use weft::Precision;

    use super::*;

    #[test]
    fn what_fits_is_with_the_cache_of_the_shortest_context() {
        let need = |precision, weights| MemoryNeed { precision, weights, contexts: vec![(10, weights + 50)] };
        let memory = [need(Precision::F32, 400), need(Precision::Int8, 100)];
        let texts = [500, 200, 120].map(|free| fitting(&memory, free));
        let none = "none of these fits: weights would be read from disk again for every token";
        assert_eq!(texts, ["all of these fit", "these fit: int8", none]);
    }
}
