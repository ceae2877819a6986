//! The model at its published size, which the defaults of its configuration are: a checkpoint of zeros that takes no room is
//! opened, and its graph lowered.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::machine::{peak, processor_time};
use super::refusals::Copy;
use super::run::{Target, evidence, recorded};
use super::subject::{Request, Subject};
use super::{Record, sparse};
use crate::golden::OutputReport;
use crate::{Error, GraphKind, Hardware, Result, engine};

/// The fields of configurations whose defaults are not a published size, by model, beside the models' goldens.
const FIELDS: &str = "published.json";

/// Other backends that take symbolic lengths; the rest get a graph anew for each combination of lengths.
const OTHERS: [Hardware; 2] = [Hardware::Cuda, Hardware::Openvino];

/// Models of at most so many tensors are lowered for other backends and as their other graphs too, one of a few.
const SMALL: usize = 1_000;
const ONE_OF: usize = 4;

/// The processor time that opening and lowering one graph may take, without optimization.
const TIME: Duration = Duration::from_secs(15);
const BYTES: u64 = 1 << 30;

/// The same of all components of a pipeline together.
const OPENING: Duration = Duration::from_secs(3);

/// The largest lowered model, bytes, without the weights that stay in their files.
const MODEL: usize = 64 << 20;

/// Tries the model whose goldens are in a folder.
pub(super) fn golden(subject: Subject, goldens: &Path, target: Target<'_>) -> Record {
    recorded(subject, goldens, target, attempt)
}

fn attempt(subject: Subject, goldens: &Path, target: Target<'_>, record: &mut Record) -> Result<()> {
    record.versions.insert("engine".to_owned(), engine::available(target.hardware)?);
    let folder = Copy::empty().map_err(|e| Error::io("a folder for temporary files", e))?;
    let class = (subject.class)();
    record.class = class.to_owned();
    let mut config = json!({"model_type": subject.model_type, "architectures": [class], "dtype": "bfloat16"});
    let fields = fields(subject.name, goldens)?;
    config.as_object_mut().into_iter().for_each(|config| config.extend(fields.clone()));
    let written = sparse::write(subject, &config, &folder.0)?;
    let checkpoint = folder.0.to_string_lossy();
    let mut graphs = vec![(GraphKind::Forward, Hardware::Cpu)];
    let kinds = (subject.graph_kinds)(class);
    let is_pipeline = kinds.iter().any(|kind| kind.is_component());
    let sampled = subject.name.bytes().map(usize::from).sum::<usize>().is_multiple_of(ONE_OF);
    let sampled = sampled && written.tensors <= SMALL;
    if is_pipeline || sampled {
        let kinds = kinds.iter().filter(|kind| **kind != GraphKind::Forward);
        graphs.extend(kinds.map(|kind| (*kind, Hardware::Cpu)));
    }
    if sampled {
        graphs.extend(OTHERS.map(|hardware| (GraphKind::Forward, hardware)));
    }
    let mut opening = Duration::ZERO;
    for (kind, hardware) in graphs {
        let (start, before) = (processor_time(), peak());
        let request = Request { checkpoint: &checkpoint, kind, ..Request::default() };
        let lowered = (subject.lower)(request, hardware).map(|lowered| lowered.bytes().len());
        let (took, more) = (processor_time() - start, peak().saturating_sub(before));
        record.ms.insert(format!("{kind:?} {hardware}"), took.as_millis() as f64);
        opening += if hardware == Hardware::Cpu { took } else { Duration::ZERO };
        let problem = match lowered {
            Err(error) => Some(error.to_string()),
            Ok(_) if took > TIME => Some(format!("took {} s", took.as_secs())),
            Ok(_) if more > BYTES => Some(format!("took {} MB", more >> 20)),
            Ok(model) if model > MODEL => Some(format!("is a model of {} MB without weights", model >> 20)),
            Ok(_) => None,
        };
        record.outputs.push(OutputReport::claim(format!("{kind:?} on {hardware}"), problem));
    }
    if is_pipeline {
        let problem = (opening > OPENING).then(|| format!("take {:.1} s to open", opening.as_secs_f64()));
        record.outputs.push(OutputReport::claim("all components".to_owned(), problem));
    }
    record.passed = record.outputs.iter().all(|output| output.passed);
    record.evidence = if record.passed { evidence(target.hardware) } else { "failed" }.to_owned();
    Ok(())
}

/// The model's own fields, where its defaults are not those of a published checkpoint.
fn fields(model: &str, goldens: &Path) -> Result<serde_json::Map<String, Json>> {
    let Some(path) = goldens.parent().map(|folder| folder.join(FIELDS)).filter(|path| path.is_file()) else {
        return Ok(Default::default());
    };
    let text = std::fs::read(&path).map_err(|e| Error::io(&path, e))?;
    let all: Json = serde_json::from_slice(&text)
        .map_err(|e| Error::case(&path, e.to_string(), "write an object of configurations, by model"))?;
    Ok(all[model].as_object().cloned().unwrap_or_default())
}
