//! `generate`: crates from specs.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::json;
use weft_generator::render::Setting;
use weft_generator::spec::fields::ReferenceFields;
use weft_generator::write::{self, Difference};
use weft_generator::{Error, Report, Request, generate, packages, repository, spec, template};

use crate::terminal::{Usage, note, say};
use crate::workspace::{root, target_dir};

/// Generates crates from specs.
///
/// Everything that is wrong with specs and templates is reported together, and then nothing is written. Files that
/// were not generated are never touched.
#[derive(clap::Args, Default)]
pub struct Args {
    /// Only this category: a folder of the specs. May be repeated.
    #[arg(long, value_name = "CATEGORY")]
    category: Vec<String>,
    /// Only this model. May be repeated.
    #[arg(long, value_name = "MODEL")]
    model: Vec<String>,
    /// Write nothing; report each file that differs, is missing or is stale, and exit with 1 if there is one.
    #[arg(long)]
    check: bool,
    /// A folder of specs of your own, outside this repository; they may extend the built-in ones by name. Templates in
    /// its `templates/` override and add to the built-in ones.
    #[arg(long, value_name = "DIR", requires = "out")]
    specs: Option<PathBuf>,
    /// The folder that crates from `--specs` go to.
    #[arg(long, value_name = "DIR", requires = "specs")]
    out: Option<PathBuf>,
    /// Where crates from `--specs` find the `weft` crate; this repository's if left out.
    #[arg(long, value_name = "DIR", requires = "specs", conflicts_with = "weft_version")]
    weft_path: Option<PathBuf>,
    /// The published version of `weft` that crates from `--specs` depend on, instead of a path.
    #[arg(long, value_name = "VERSION", requires = "specs")]
    weft_version: Option<String>,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs the verb; false if `--check` found a difference or the specs are wrong.
pub fn run(args: &Args) -> Result<bool> {
    let start = Instant::now();
    let request = request(args)?;
    let mut report = match generate(&request) {
        Ok(report) => report,
        Err(error) => return failed(args, error),
    };
    if !args.check && args.out.is_some() {
        write::workspace(&request.out)?;
    }
    let whole = args.model.is_empty() && args.category.is_empty();
    if args.out.is_none() && whole {
        let staging = target_dir().join("weft-generate-repository");
        let (changes, same) = match repository::generate(root(), &staging, args.check) {
            Ok(done) => done,
            Err(error) => return failed(args, error),
        };
        report.changes.extend(changes);
        report.same += same;
    }
    if args.out.is_none() && (whole || args.check || !report.rendered.is_empty()) {
        match packages::generate(&request, root(), &target_dir().join("weft-generate-packages")) {
            Ok((changes, same)) => {
                report.changes.extend(changes);
                report.same += same;
            }
            Err(error) => return failed(args, error),
        }
    }
    show(args, &report, start)?;
    Ok(!args.check || report.changes.is_empty())
}

/// The templates and parts that each model is made of.
pub fn parts() -> Result<BTreeMap<String, BTreeSet<String>>> {
    let parts = weft_generator::parts(&request(&Args::default())?)?;
    Ok(parts.into_iter().map(|(model, parts)| (model, parts.into_keys().collect())).collect())
}

/// What the specs of these models, or of all, pass over in silence of the fields that the reference reads.
pub fn unlisted_fields(models: &[String], reference: &ReferenceFields) -> Result<Vec<String>> {
    let args = Args { model: models.to_vec(), ..Args::default() };
    Ok(weft_generator::unlisted_fields(&request(&args)?, reference)?)
}

/// Reports why nothing was written.
fn failed(args: &Args, error: Error) -> Result<bool> {
    match error {
        Error::Problems(problems) => {
            if args.json {
                let problems: Vec<_> = problems
                    .0
                    .iter()
                    .map(|problem| {
                        json!({"file": problem.file, "line": problem.line, "key": problem.key,
                               "message": problem.message, "nearest": problem.nearest})
                    })
                    .collect();
                say(json!({"problems": problems}).to_string())?;
            } else {
                note(problems.to_string());
                let count = problems.0.len();
                note(format!("{count} problem{}; nothing was written", if count == 1 { "" } else { "s" }));
            }
            Ok(false)
        }
        Error::Unknown(message) => Err(Usage(message).into()),
        Error::Io(error) => Err(error.into()),
    }
}

fn request(args: &Args) -> Result<Request> {
    let root = root();
    let own = |dir: &Path, generate| spec::load::Folder {
        dir: dir.to_path_buf(),
        label: dir.file_name().map_or_else(|| "specs".to_owned(), |name| name.to_string_lossy().into_owned()),
        shown: shown(dir),
        generate,
    };
    let templates = |dir: &Path| template::Folder {
        dir: dir.to_path_buf(),
        label: "templates".to_owned(),
        shown: shown(dir),
    };
    let model_specs = root.join("model_specs");
    let mut request = Request {
        specs: vec![own(&model_specs, args.specs.is_none())],
        templates: vec![templates(&root.join("templates"))],
        out: root.join("generated"),
        out_shown: shown(&root.join("generated")),
        categories: args.category.clone(),
        models: args.model.clone(),
        check: args.check,
        setting: Setting {
            weft: "workspace = true".to_owned(),
            member: true,
            goldens: "../../../tests/goldens".to_owned(),
            command: "cargo xtask generate".to_owned(),
        },
        cache: Some(target_dir().join("weft-generate.json")),
        staging: target_dir().join("weft-generate"),
        identity: identity(),
        model_specs,
    };
    if let (Some(specs), Some(out)) = (&args.specs, &args.out) {
        let specs = fs::canonicalize(specs).with_context(|| format!("--specs {}", specs.display()))?;
        fs::create_dir_all(out).with_context(|| format!("--out {}", out.display()))?;
        let out = fs::canonicalize(out).with_context(|| format!("--out {}", out.display()))?;
        let folder = own(&specs, true);
        let label = folder.label.clone();
        request.specs.push(folder);
        let own_templates = specs.join("templates");
        if own_templates.is_dir() {
            request
                .templates
                .push(template::Folder { label: format!("{label}/templates"), ..templates(&own_templates) });
        }
        request.setting = Setting {
            weft: dependency(args, root)?,
            member: false,
            goldens: "../../goldens".to_owned(),
            command: format!("cargo xtask generate --specs {label} --out {}", name(&out)),
        };
        request.cache = Some(out.join("target").join("weft-generate.json"));
        request.staging = out.join("target").join("weft-generate");
        request.out_shown = shown(&out);
        request.out = out;
    }
    Ok(request)
}

fn name(dir: &Path) -> String {
    dir.file_name().map_or_else(|| ".".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The dependency on `weft` of a crate outside this repository.
fn dependency(args: &Args, root: &Path) -> Result<String> {
    if let Some(version) = &args.weft_version {
        return Ok(format!("version = {version:?}"));
    }
    let path = args.weft_path.clone().unwrap_or_else(|| root.join("runtime"));
    let path = fs::canonicalize(&path).with_context(|| format!("--weft-path {}", path.display()))?;
    if !path.join("Cargo.toml").is_file() {
        return Err(Usage(format!("--weft-path {}: there is no Cargo.toml in it", path.display())).into());
    }
    Ok(format!("path = {:?}", path.display().to_string().replace('\\', "/")))
}

/// A path as a person in the current folder would write it.
fn shown(path: &Path) -> PathBuf {
    let here = env::current_dir().ok().and_then(|here| path.strip_prefix(here).ok().map(Path::to_path_buf));
    here.filter(|inside| inside.components().count() > 0).unwrap_or_else(|| path.to_path_buf())
}

/// Tells this build of the generator from others: a rebuilt one may give something else.
fn identity() -> String {
    let program = env::current_exe().and_then(fs::metadata);
    let built = program.and_then(|metadata| Ok((metadata.len(), metadata.modified()?)));
    format!("{} {:?}", env!("CARGO_PKG_VERSION"), built.ok())
}

fn show(args: &Args, report: &Report, start: Instant) -> Result<()> {
    let ms = start.elapsed().as_secs_f64() * 1e3;
    if args.json {
        let changes: Vec<_> = report
            .changes
            .iter()
            .map(|(path, difference)| json!({"path": path, "difference": difference.name()}))
            .collect();
        let value = json!({"models": report.models, "rendered": report.rendered, "changes": changes,
                           "same": report.same, "check": args.check, "ms": ms});
        return say(value.to_string());
    }
    for (path, difference) in &report.changes {
        let done = match (args.check, difference) {
            (true, difference) => difference.name(),
            (false, Difference::Missing) => "created",
            (false, Difference::Differs) => "updated",
            (false, Difference::Stale) => "removed",
        };
        say(format!("{done:>8}  {path}"))?;
    }
    let models = report.models.len();
    let plural = if models == 1 { "" } else { "s" };
    let summary = match (args.check, report.changes.len()) {
        (true, 0) => format!("{models} model{plural}: all {} files are up to date", report.same),
        (true, count) => {
            format!("{models} model{plural}: {count} files are not up to date; run `cargo xtask generate`")
        }
        (false, 0) => format!("{models} model{plural}: nothing to do"),
        (false, count) => {
            let rendered = report.rendered.len();
            format!("{models} model{plural}, {rendered} rendered: {count} files written or removed")
        }
    };
    say(format!("{summary} ({ms:.0} ms)"))
}
