//! The names under which a checkpoint may hold a weight.

use crate::model::Names;

/// All names to look for, today's own first.
pub(super) fn candidates(name: &str, names: &Names) -> Vec<String> {
    let prefix = format!("{}.", names.base_model_prefix);
    let mut all = vec![name.to_owned()];
    if !names.base_model_prefix.is_empty() {
        all.push(match name.strip_prefix(&prefix) {
            Some(bare) => bare.to_owned(),
            None => format!("{prefix}{name}"),
        });
    }
    let legacy: Vec<_> = all
        .iter()
        .flat_map(|name| {
            let of =
                |(old, today): &(&str, &str)| name.strip_suffix(today).map(|stem| format!("{stem}{old}"));
            names.legacy.iter().filter_map(of).collect::<Vec<_>>()
        })
        .collect();
    all.extend(legacy);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_and_legacy_names_are_tried() {
        let names = Names { base_model_prefix: "bert", legacy: &[("LayerNorm.gamma", "LayerNorm.weight")] };
        let found = candidates("bert.embeddings.LayerNorm.weight", &names);
        let expected = [
            "bert.embeddings.LayerNorm.weight",
            "embeddings.LayerNorm.weight",
            "bert.embeddings.LayerNorm.gamma",
            "embeddings.LayerNorm.gamma",
        ];
        assert_eq!(found, expected);
        assert_eq!(candidates("pooler.dense.bias", &names)[1], "bert.pooler.dense.bias");
    }
}
