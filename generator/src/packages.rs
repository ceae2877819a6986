//! The crates of categories, each with a feature for every model, and the one that opens checkpoints of all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;
use tera::Context;

use crate::render::Output;
use crate::render::header::Header;
use crate::repository::Changes;
use crate::run::{Error, Request};
use crate::spec::architectures::Architectures;
use crate::spec::document::Problem;
use crate::spec::load::{self, Specs};
use crate::template::{self, Templates};
use crate::write::plan;

/// The folder of the repository that they are in.
const FOLDER: &str = "packages";

/// A module that the crate of all has for each category.
const OF_A_CATEGORY: &str = "category.rs";

/// A category as templates see it.
#[derive(Clone, Debug, Serialize)]
struct Category {
    name: String,
    title: String,
    package: String,
    library: String,
    module: String,
    models: Vec<Model>,
}

/// A model as templates see it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Model {
    name: String,
    title: String,
    package: String,
    library: String,
    module: String,
    model_types: Vec<String>,
}

/// Writes them below `root`, or only compares: of all models, whichever the request names.
///
/// # Errors
/// Everything that is wrong with specs and templates; a file that was not generated is in the way; the disk refuses.
pub fn generate(request: &Request, root: &Path, staging: &Path) -> Result<Changes, Error> {
    let templates = Templates::parse(&template::find(&request.templates)?)?;
    let outputs = render(&templates, &categories(request)?)?;
    let plan = plan(root, Path::new(""), outputs, &BTreeSet::new(), &[FOLDER.to_owned()])?;
    if !request.check {
        plan.apply(root, staging)?;
    }
    Ok((plan.changes, plan.same))
}

/// The categories that have models, in the order of `architectures.yaml`.
fn categories(request: &Request) -> Result<Vec<Category>, Error> {
    let architectures = Architectures::load(&request.model_specs).map_err(|problems| problems.0)?;
    let known: Vec<_> = architectures.categories.keys().map(String::as_str).collect();
    let specs = Specs::read(load::find(&request.specs)?, &known);
    let mut models: BTreeMap<String, BTreeSet<Model>> = BTreeMap::new();
    let mut problems = vec![];
    for index in (0..specs.files.len()).filter(|index| specs.files[*index].generate) {
        match specs.resolve(index) {
            Ok(resolved) => {
                let category = specs.category(index).unwrap_or_default().to_owned();
                models.entry(category).or_default().insert(model(&resolved.spec));
            }
            Err(wrong) => problems.extend(wrong),
        }
    }
    if !problems.is_empty() {
        return Err(problems.into());
    }
    let category = |(name, category): (&String, &crate::spec::architectures::Category)| {
        let models = models.remove(name)?.into_iter().collect();
        let package = format!("weft-{name}");
        Some(Category {
            title: category.title.clone(),
            library: package.replace('-', "_"),
            module: name.replace('-', "_"),
            name: name.clone(),
            package,
            models,
        })
    };
    Ok(architectures.categories.iter().filter_map(category).collect())
}

fn model(spec: &crate::spec::model::ModelSpec) -> Model {
    let name = spec.model.clone();
    let package = format!("weft-{name}");
    Model {
        title: spec.title.clone().unwrap_or_default(),
        library: package.replace('-', "_"),
        module: name.replace('-', "_"),
        model_types: match spec.model_types.as_slice() {
            [] => vec![name.clone()],
            named => named.to_vec(),
        },
        name,
        package,
    }
}

fn render(templates: &Templates, categories: &[Category]) -> Result<Vec<Output>, Error> {
    let mut outputs = vec![];
    let mut file = |key: &str, path: String, context: &Context| -> Result<(), Problem> {
        let Some(template) = templates.get(key) else { return Ok(()) };
        let text = templates.render(key, context, &|_| None)?;
        let header = Header { command: "cargo xtask generate", specs: &[], template: &template.label };
        outputs.push(Output { text: format!("{}\n{}\n", header.text(&path), text.trim()), path });
        Ok(())
    };
    let rendered = (|| {
        for (path, template) in templates.under("packages/category/") {
            for category in categories {
                let mut context = Context::new();
                context.insert("category", category);
                file(&template.key, format!("{FOLDER}/{}/{path}", category.name), &context)?;
            }
        }
        for (path, template) in templates.under("packages/models/") {
            let mut context = Context::new();
            context.insert("categories", categories);
            let Some(folder) = path.strip_suffix(OF_A_CATEGORY) else {
                file(&template.key, format!("{FOLDER}/models/{path}"), &context)?;
                continue;
            };
            for category in categories {
                context.insert("category", category);
                file(&template.key, format!("{FOLDER}/models/{folder}{}.rs", category.module), &context)?;
            }
        }
        Ok::<_, Problem>(())
    })();
    rendered.map_err(|problem| Error::from(vec![problem]))?;
    Ok(outputs)
}
