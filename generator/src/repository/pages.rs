//! A page of documentation for each backend.

use std::fmt::Write as _;

use indexmap::IndexMap;

use crate::spec::hardware::{Browser, Engine, EvidenceLevel, HardwareSpec, MemoryEstimate, Shapes, Support};
use crate::spec::packages::{Index, Package, Platform};

/// The page, from its title on.
pub fn render(spec: &HardwareSpec, packages: &[&Package]) -> String {
    let mut page = format!("# {}\n\n{}\n", spec.title, spec.summary);
    section(&mut page, "What it needs", &list(&spec.requirements));
    let name = spec.hardware.name();
    let install = format!(
        "```sh\n{}\ncargo xtask doctor\n```\n\n`setup` fetches the packages below and checks their sums; `doctor` tells \
         whether library and device are\nfound, and what is missing. `Hardware::{}.available()` says the same in a \
         program.\n",
        spec.install,
        spec.hardware.type_name()
    );
    section(&mut page, "How to install it", &install);
    section(&mut page, "What works", &works(spec));
    section(&mut page, "Benefits", &list(&spec.benefits));
    section(&mut page, "Limits", &list(&spec.limitations));
    if !spec.memory.is_empty() {
        section(&mut page, "Memory by size of model", &memory(&spec.memory));
    }
    section(&mut page, "Packages", &table_of_packages(packages));
    if !spec.browsers.is_empty() {
        section(&mut page, "Browsers", &browsers(&spec.browsers));
    }
    if !spec.provider.environment.is_empty() {
        let rows = spec.provider.environment.iter().map(|(name, use_)| format!("- `{name}`: {use_}\n"));
        section(&mut page, "Environment variables", &rows.collect::<String>());
    }
    if let Some(operators) = &spec.operators {
        let text = format!(
            "{} operators of the standard and {} contributed ones are in the published table that `model_specs/hardware/{name}.yaml`\n\
             carries. Source: {}.\n",
            operators.standard.len(),
            operators.contrib.len(),
            operators.source
        );
        section(&mut page, "Operators", &text);
    }
    if !spec.noted.is_empty() {
        section(&mut page, "Noted", &list(&spec.noted));
    }
    page
}

fn section(page: &mut String, title: &str, text: &str) {
    let _ = write!(page, "\n## {title}\n\n{text}");
}

fn list(items: &[String]) -> String {
    items.iter().map(|item| format!("- {item}\n")).collect()
}

/// How graphs get there, number formats, and what tests prove without the hardware.
fn works(spec: &HardwareSpec) -> String {
    let engine = match spec.engine {
        Engine::Onnxruntime => "ONNX Runtime, in the same process",
        Engine::Openvino => "OpenVINO, in the same process",
        Engine::Browser => "ONNX Runtime Web, in a browser",
    };
    let shapes = match spec.lowering.shapes {
        Shapes::Symbolic => "lengths may change from run to run",
        Shapes::Fixed => "a graph is compiled for each combination of lengths; the last few stay ready",
    };
    let level = match spec.evidence.without_hardware {
        EvidenceLevel::Device => "device",
        EvidenceLevel::Emulator => "emulator",
        EvidenceLevel::Lowered => "lowered",
    };
    let mut text =
        format!("- Engine: {engine}; nodes that ran there are reported as `{}`.\n", spec.provider.name);
    if let Some(alternative) = &spec.provider.alternative {
        let _ = writeln!(text, "- Alternative: `{alternative}`.");
    }
    let _ = writeln!(text, "- Shapes: {shapes}.");
    let _ = writeln!(text, "- Tests without the hardware: evidence `{level}`; {}.", spec.evidence.how);
    if let Some(fallback) = spec.fallback {
        let _ = writeln!(
            text,
            "- `Hardware::Auto` goes on to `{fallback}` where it is not available, and says so."
        );
    }
    text.push_str("\n| computes in | allowed difference, relative to max(1, largest value) | because |\n|---|---|---|\n");
    for (precision, tolerance) in &spec.precisions {
        let reason = tolerance.reason.as_deref().unwrap_or("the default");
        let tested = if tolerance.asked { "; tested where it is asked for" } else { "" };
        let _ = writeln!(text, "| {} | {:.0e} | {reason}{tested} |", precision.name(), tolerance.relative);
    }
    text
}

fn memory(estimates: &[MemoryEstimate]) -> String {
    let gigabytes = |mb: u32| if mb < 1000 { format!("{mb} MB") } else { format!("{} GB", mb / 1000) };
    let mut text = "Estimates; batch, sequence length and number format change them.\n\n\
                    | size | parameters | memory |\n|---|---|---|\n"
        .to_owned();
    for estimate in estimates {
        let amount = match (estimate.from_mb, estimate.to_mb) {
            (Some(from), Some(to)) => format!("{} to {}", gigabytes(from), gigabytes(to)),
            (Some(from), None) => format!("{} and more", gigabytes(from)),
            (None, Some(to)) => format!("up to {}", gigabytes(to)),
            (None, None) => "not supported".to_owned(),
        };
        let size = format!("{:?}", estimate.size).to_lowercase();
        let _ = writeln!(text, "| {size} | {} | {amount} |", estimate.parameters);
    }
    text
}

fn table_of_packages(packages: &[&Package]) -> String {
    let mut text =
        "| package | version | from | for | licence | platforms |\n|---|---|---|---|---|---|\n".to_owned();
    for package in packages {
        let index = match package.index {
            Index::Pypi => "PyPI",
            Index::Npm => "npm",
        };
        let optional = if package.optional { " (optional)" } else { "" };
        let platforms: Vec<_> = package
            .platforms
            .iter()
            .filter(|(_, pin)| pin.filename.is_some())
            .map(|(platform, _)| if *platform == Platform::Any { "any" } else { platform.name() })
            .collect();
        let _ = writeln!(
            text,
            "| `{}`{optional} | {} | {index} | {} | {} | {} |",
            package.name,
            package.version,
            package.purpose,
            package.license.as_deref().unwrap_or("not stated"),
            platforms.join(", ")
        );
    }
    let missing: IndexMap<_, _> = packages
        .iter()
        .flat_map(|package| &package.platforms)
        .filter_map(|(platform, pin)| Some((*platform, pin.none.as_ref()?)))
        .collect();
    if !missing.is_empty() {
        text.push('\n');
        for (platform, reason) in missing {
            let _ = writeln!(text, "- {platform}: {reason}");
        }
    }
    text
}

/// Declared facts, not observed ones.
fn browsers(browsers: &[Browser]) -> String {
    let mut formats: Vec<&str> =
        browsers.iter().flat_map(|b| b.precision.keys().map(String::as_str)).collect();
    let mut seen = std::collections::HashSet::new();
    formats.retain(|format| seen.insert(*format));
    let mut text = "Declared, not observed.\n\n| browser | support |".to_owned();
    for format in &formats {
        let _ = write!(text, " {format} |");
    }
    let _ = write!(text, " notes |\n|---|---|{}---|\n", "---|".repeat(formats.len()));
    for browser in browsers {
        let support = match browser.support {
            Support::Full => "full",
            Support::Limited => "limited",
            Support::No => "no",
        };
        let _ = write!(text, "| {} | {support} |", browser.name);
        for format in &formats {
            let _ = write!(text, " {} |", browser.precision.get(*format).map_or("", String::as_str));
        }
        let _ = writeln!(text, " {} |", browser.notes);
    }
    text
}
