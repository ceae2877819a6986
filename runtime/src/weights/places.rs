//! Where the tensors of weights lie in files.

use std::collections::HashMap;
use std::path::Path;

use super::{Files, Names, Weights, names};
use crate::graph::Weight;

impl Weights {
    /// The ranges of files, by offset and length, that weights are read of: of a quantized one all tensors of its module.
    pub(super) fn places(&self, wanted: &[Weight], names: &Names) -> Vec<(&Path, [u64; 2])> {
        let Self::Files(files) = self else { return vec![] };
        let modules = files.modules();
        let mut places = vec![];
        for weight in wanted {
            let whole = names::candidates(&weight.name, names);
            let among = names::fused(&weight.name, names).into_iter().map(|fused| fused.name);
            let stored = whole.into_iter().chain(among).find_map(|name| match files.codes(&name) {
                Some(codes) => modules.get(files.module(&codes)?).cloned(),
                None => files.entries.contains_key(&name).then(|| vec![name]),
            });
            let held = |pieces: &Vec<String>| pieces.iter().all(|name| files.entries.contains_key(name));
            let stored = stored.or_else(|| names::joined(&weight.name, names).into_iter().find(held));
            let entries = stored.into_iter().flatten().filter_map(|name| files.entries.get(&name));
            places.extend(entries.map(|entry| (entry.path.as_path(), [entry.offset, entry.length])));
        }
        places
    }
}

impl Files {
    /// The tensors of each quantized module, by its name.
    fn modules(&self) -> HashMap<&str, Vec<String>> {
        let mut modules: HashMap<&str, Vec<String>> = HashMap::new();
        for name in self.entries.keys() {
            if let Some(module) = self.module(name) {
                modules.entry(module).or_default().push(name.clone());
            }
        }
        modules
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Map, Value as Json, json};

    use super::*;
    use crate::hub::Checkpoint;

    #[test]
    fn of_a_quantized_module_all_tensors_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let tensors = [
            ("model.a.weight_packed", "I32"),
            ("model.a.weight_scale", "F32"),
            ("model.b.weight", "F32"),
            ("model.unused", "F32"),
            ("model.fused.weight", "F32"),
        ];
        let header: Map<String, Json> = tensors
            .iter()
            .enumerate()
            .map(|(index, (name, dtype))| {
                let offsets = [8 * index, 8 * index + 8];
                ((*name).to_owned(), json!({"dtype": dtype, "shape": [2], "data_offsets": offsets}))
            })
            .collect();
        let header = Json::Object(header).to_string();
        let start = 8 + header.len() as u64;
        let file = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0; 40]].concat();
        fs::write(folder.path().join("model.safetensors"), file).unwrap();
        let config = json!({"quantization_config": {"quant_method": "compressed-tensors"}}).to_string();
        fs::write(folder.path().join("config.json"), config).unwrap();
        let checkpoint = Checkpoint::open(&folder.path().to_string_lossy()).unwrap();
        let weights = Weights::Files(Files::open(&checkpoint).unwrap());

        let names = Names {
            base_model_prefix: "model",
            fused_weights: &[("fused.weight", &["q.weight", "k.weight"])],
            ..Names::default()
        };
        let wanted =
            ["a.weight", "model.b.weight", "q.weight", "absent.weight"].map(|name| Weight::new(name, &[2]));
        let mut offsets: Vec<u64> =
            weights.places(&wanted, &names).iter().map(|(_, [offset, _])| offset - start).collect();
        offsets.sort_unstable();
        assert_eq!(offsets, [0, 8, 16, 32]);
        assert!(Weights::Rule(std::collections::BTreeMap::new()).places(&wanted, &names).is_empty());
    }
}
