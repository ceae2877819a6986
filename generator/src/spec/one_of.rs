//! Modules that are one of several models, by the `model_type` of their configuration: `text: {one_of: [llama, qwen2]}`.

use std::collections::BTreeMap;

use super::document::Problem;
use super::load::{Merged, Specs};
use super::modules::{MODEL_TYPES, ONE_OF, Site, descend, find, holds, lay};
use super::yaml::{Data, Entry, Node};

/// What a module that is one of several says of itself; everything else is said of each.
const SAID: [&str; 2] = ["config", ONE_OF];

impl Specs {
    /// Lays each model that a module may be over its spec: its graph under `one_of` of the module, its configuration under
    /// `one_of` of the field that holds it.
    pub(super) fn adopt_one_of(
        &self,
        merged: &mut Merged,
        site: &Site,
        module: &Site,
        entry: &Entry,
        several: &Node,
        within: &[usize],
    ) -> Result<Vec<(Site, Vec<usize>)>, Vec<Problem>> {
        let key = module.graph.join(".");
        let models = models(several, &format!("{key}.{ONE_OF}")).map_err(|problem| vec![problem])?;
        alone(entry, &key).map_err(|problem| vec![problem])?;
        holds(merged, site, module, entry, &models[0].0)?;
        if module.config == site.config {
            let message = "one of several models needs a field of its own, whose `model_type` says which";
            return Err(vec![entry.at.problem(format!("{key}.config"), message)]);
        }
        let holder = module.config.strip_suffix(&["fields".to_owned()]).unwrap_or(&module.config);
        let mut adopted = vec![];
        let mut problems = vec![];
        let mut known: BTreeMap<String, String> = BTreeMap::new();
        for (index, (name, model)) in models.into_iter().enumerate() {
            let key = format!("{key}.{ONE_OF}[{index}]");
            let named = model.value.get("model").unwrap_or(&model.value);
            let source = match self.source(named, &key, within) {
                Ok(source) => source,
                Err(wrong) => {
                    problems.extend(wrong);
                    continue;
                }
            };
            let own = [ONE_OF.to_owned(), model.key.clone()];
            let config: Vec<_> = holder.iter().cloned().chain(own.clone()).collect();
            let fields = config.iter().cloned().chain(["fields".to_owned()]).collect();
            let inner = Site { graph: [module.graph.as_slice(), &own].concat(), config: fields };
            let through = source.through.clone();
            lay(merged, &model, &inner, source);
            let types = find(&merged.node, &inner.graph).and_then(|graph| graph.get(MODEL_TYPES)).cloned();
            for chosen in types.iter().flat_map(Node::items).filter_map(Node::text) {
                if let Some(other) = known.insert(chosen.to_owned(), name.clone()) {
                    let message = format!(
                        "`{name}` has the `model_type` `{chosen}`, and so has `{other}`; leave one out, or say other \
                         `model_types` of it"
                    );
                    problems.push(model.at.problem(&key, message));
                }
            }
            if let (Some(types), Some(Node { data: Data::Map(entries), .. })) =
                (types, descend(&mut merged.node, &config))
            {
                entries.retain(|entry| entry.key != MODEL_TYPES);
                entries.push(Entry { key: MODEL_TYPES.to_owned(), at: model.at.clone(), value: types });
            }
            adopted.push((inner, through));
        }
        if problems.is_empty() { Ok(adopted) } else { Err(problems) }
    }
}

/// The models of a list, each with the name of its Rust module: names, or maps with `model` and what differs.
fn models(several: &Node, key: &str) -> Result<Vec<(String, Entry)>, Problem> {
    if several.items().is_empty() {
        let message =
            format!("expected a list of specs, such as `[llama, qwen2]`, found {}", several.found());
        return Err(several.at.problem(key, message));
    }
    let mut models: Vec<(String, Entry)> = vec![];
    for (index, item) in several.items().iter().enumerate() {
        let key = format!("{key}[{index}]");
        let at = item.at.clone();
        let value = match &item.data {
            Data::Map(_) => item.clone(),
            _ => Node {
                at: at.clone(),
                data: Data::Map(vec![Entry { key: "model".to_owned(), at: at.clone(), value: item.clone() }]),
            },
        };
        let Some(name) = value.get("model").and_then(Node::text).map(str::to_owned) else {
            let message = format!(
                "expected the name of a spec, or a map with `model` and what differs, found {}",
                item.found()
            );
            return Err(item.at.problem(key, message));
        };
        let module = name.replace(['-', '.'], "_");
        if models.iter().any(|(_, known)| known.key == module) {
            return Err(item.at.problem(key, format!("`{name}` is listed twice")));
        }
        models.push((name, Entry { key: module, at, value }));
    }
    Ok(models)
}

/// Refuses what is said of a module beside `one_of`, as if it were one model.
fn alone(entry: &Entry, key: &str) -> Result<(), Problem> {
    let Some(other) = entry.value.entries().iter().find(|other| !SAID.contains(&other.key.as_str())) else {
        return Ok(());
    };
    let message = if other.key == "model" {
        format!(
            "is given beside `{ONE_OF}`; a module is one model or one of several: leave one of the two out"
        )
    } else {
        format!(
            "is given beside `{ONE_OF}`; say it of the models it is for: `{{model: llama, {}: …}}`",
            other.key
        )
    };
    Err(other.at.problem(format!("{key}.{}", other.key), message))
}
