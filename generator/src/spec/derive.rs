//! What a spec says by its name, so that it need not say it again.

use super::load::SpecFile;
use super::model::ModelSpec;

/// What stands for the model's name in `weights.prefix`, so that those that inherit it have their own.
const NAME: &str = "{model}";

/// Fills in what follows from the model's name.
pub(super) fn derive(spec: &mut ModelSpec, file: &SpecFile) {
    let name = spec.model.replace('-', "_");
    spec.weights.prefix = spec.weights.prefix.replace(NAME, &name);
    if file.built_in {
        spec.reference.get_or_insert_with(|| format!("models/{name}/modeling_{name}.py"));
    }
}
