//! The names under which a checkpoint may hold a weight.

/// How tensors are named in checkpoints, where that differs from the graph's names.
#[derive(Clone, Copy, Debug, Default)]
pub struct Names {
    /// The prefix that head classes put before the base model's names (`bert`), absent in checkpoints of
    /// the base model alone.
    pub base_model_prefix: &'static str,
    /// Suffixes of older releases' names, such as `LayerNorm.gamma`: (old suffix, today's suffix).
    pub legacy_suffixes: &'static [(&'static str, &'static str)],
    /// Substrings by which published checkpoints' names differ (`key_mapping` of `from_pretrained`): each list, replaced in
    /// order, turns today's name into one that a file may have. The pairs are (in the file, today's).
    pub key_mapping: &'static [&'static [(&'static str, &'static str)]],
    /// Weights that published checkpoints hold fused into one tensor, concatenated along its rows: (in the file, today's).
    pub fused_weights: &'static [(&'static str, &'static [&'static str])],
    /// Names of tensors that checkpoints hold and the reference does not read either
    /// (`_keys_to_ignore_on_load_unexpected`), with `*` for any piece.
    pub ignore_unexpected: &'static [&'static str],
}

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
            names.legacy_suffixes.iter().filter_map(of).collect::<Vec<_>>()
        })
        .collect();
    let published: Vec<_> =
        names.key_mapping.iter().flat_map(|pieces| all.iter().map(|name| rename(name, pieces))).collect();
    all.extend(published);
    all.extend(legacy);
    all
}

/// All names of tensors that may hold a weight among others, with how many they are and which of them it is.
pub(super) fn fused(name: &str, names: &Names) -> Vec<(String, usize, usize)> {
    let of = |(file, parts): &(&str, &[&str])| {
        let part = parts.iter().position(|part| name.contains(part))?;
        let count = parts.len();
        let whole = candidates(&name.replace(parts[part], file), names);
        Some(whole.into_iter().map(move |name| (name, count, part)).collect::<Vec<_>>())
    };
    names.fused_weights.iter().filter_map(of).flatten().collect()
}

/// The name in a file whose names differ in these pieces.
fn rename(name: &str, pieces: &[(&str, &str)]) -> String {
    pieces.iter().fold(name.to_owned(), |name, (published, today)| name.replace(today, published))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_and_legacy_names_are_tried() {
        let legacy_suffixes = &[("LayerNorm.gamma", "LayerNorm.weight")];
        let names = Names { base_model_prefix: "bert", legacy_suffixes, ..Names::default() };
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

    #[test]
    fn fused_weights_are_found_by_their_part() {
        let fused_weights: &[(&str, &[&str])] = &[("attn.qkv", &["attn.q", "attn.k", "attn.v"])];
        let names = Names { fused_weights, ..Names::default() };
        let found = fused("layers.0.attn.k.weight", &names);
        assert_eq!(found, [("layers.0.attn.qkv.weight".to_owned(), 3, 1)]);
        assert!(fused("layers.0.attn.out.weight", &names).is_empty());
    }

    #[test]
    fn published_names_differ_in_pieces() {
        const PIECES: &[(&str, &str)] =
            &[("encoder.layer.", "layers."), ("intermediate.dense", "mlp.fc1"), ("output.dense", "mlp.fc2")];
        let names = Names { base_model_prefix: "vit", key_mapping: &[PIECES], ..Names::default() };
        let found = candidates("vit.layers.0.mlp.fc1.weight", &names);
        let expected = [
            "vit.layers.0.mlp.fc1.weight",
            "layers.0.mlp.fc1.weight",
            "vit.encoder.layer.0.intermediate.dense.weight",
            "encoder.layer.0.intermediate.dense.weight",
        ];
        assert_eq!(found, expected);
    }
}
