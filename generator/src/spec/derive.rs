//! What a spec says by its name, so that it need not say it again.

use super::load::SpecFile;
use super::model::ModelSpec;

/// What stands for the model's name in `weights.prefix`, so that those that inherit it have their own.
const NAME: &str = "{model}";

/// Fills in the model's name, which is the file's, and what follows from it.
pub(super) fn derive(spec: &mut ModelSpec, file: &SpecFile) {
    spec.model.clone_from(&file.name);
    let name = spec.model.replace('-', "_");
    spec.weights.prefix = spec.weights.prefix.replace(NAME, &name);
    if file.built_in {
        spec.reference.get_or_insert_with(|| format!("models/{name}/modeling_{name}.py"));
    }
}
