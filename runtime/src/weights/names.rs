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
    /// Weights that published checkpoints hold fused into one tensor, concatenated along its rows: (in the file, today's). `*`
    /// in today's name stands for the number of an expert, by which the file's tensor has a first axis.
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

/// A tensor that may hold a weight among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fused {
    /// Its name.
    pub name: String,
    /// How many weights its rows are, of each expert if it has an axis of experts.
    parts: usize,
    /// Which of these the weight is.
    part: usize,
    /// The expert that the weight is of, if there is an axis of experts.
    expert: Option<usize>,
}

impl Fused {
    /// Which of how many equal runs of bytes of the tensor `stored` the weight `wanted` is; none where it does not fit.
    pub fn run(&self, stored: &[usize], wanted: &[usize]) -> Option<(usize, usize)> {
        let (rows, rest) = wanted.split_first()?;
        let rows = rows.checked_mul(self.parts)?;
        match self.expert {
            None => (stored.first() == Some(&rows) && stored.get(1..) == Some(rest))
                .then_some((self.part, self.parts)),
            Some(expert) => {
                let fits =
                    stored.get(1) == Some(&rows) && stored.get(2..) == Some(rest) && expert < stored[0];
                fits.then(|| (expert * self.parts + self.part, stored[0] * self.parts))
            }
        }
    }

    /// Which of how many runs of a tensor's rows the weight is, where there is no axis of experts.
    pub fn rows(&self) -> Option<(usize, usize)> {
        self.expert.is_none().then_some((self.part, self.parts))
    }
}

/// All tensors that may hold a weight among others.
pub(super) fn fused(name: &str, names: &Names) -> Vec<Fused> {
    let of = |(file, parts): &(&str, &[&str])| {
        let (part, (found, expert)) =
            parts.iter().enumerate().find_map(|(part, pattern)| Some((part, piece(name, pattern)?)))?;
        let whole = candidates(&name.replacen(&found, file, 1), names).into_iter();
        let parts = parts.len();
        Some(whole.map(move |name| Fused { name, parts, part, expert }).collect::<Vec<_>>())
    };
    names.fused_weights.iter().filter_map(of).flatten().collect()
}

/// What of a name a pattern is, in which `*` stands for the number of an expert, and that number.
fn piece(name: &str, pattern: &str) -> Option<(String, Option<usize>)> {
    let Some((before, after)) = pattern.split_once('*') else {
        return name.contains(pattern).then(|| (pattern.to_owned(), None));
    };
    let rest = &name[name.find(before)? + before.len()..];
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (number, rest) = rest.split_at(digits);
    rest.starts_with(after).then(|| Some((format!("{before}{number}{after}"), Some(number.parse().ok()?))))?
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
        let name = "layers.0.attn.qkv.weight".to_owned();
        assert_eq!(found, [Fused { name, parts: 3, part: 1, expert: None }]);
        assert_eq!(found[0].run(&[12, 5], &[4, 5]), Some((1, 3)));
        assert_eq!((found[0].run(&[12, 5], &[5, 5]), found[0].run(&[], &[4])), (None, None));
        assert!(fused("layers.0.attn.out.weight", &names).is_empty());
    }

    #[test]
    fn experts_are_found_in_one_tensor_of_all() {
        let fused_weights: &[(&str, &[&str])] = &[
            ("experts.gate_up_proj", &["experts.*.gate_proj.weight", "experts.*.up_proj.weight"]),
            ("experts.down_proj", &["experts.*.down_proj.weight"]),
        ];
        let names = Names { fused_weights, ..Names::default() };
        let found = fused("layers.3.mlp.experts.17.up_proj.weight", &names);
        assert_eq!(found[0].name, "layers.3.mlp.experts.gate_up_proj");
        // Of 32 experts, gate and up, each 4 rows of 5.
        assert_eq!(found[0].run(&[32, 8, 5], &[4, 5]), Some((35, 64)));
        for other in [&[17, 8, 5][..], &[32, 8, 6], &[32, 4, 5], &[32, 8], &[32], &[]] {
            assert_eq!(found[0].run(other, &[4, 5]), None, "{other:?}");
        }
        let found = fused("layers.3.mlp.experts.1.down_proj.weight", &names);
        assert_eq!(
            (found[0].name.as_str(), found[0].run(&[2, 4, 5], &[4, 5])),
            ("layers.3.mlp.experts.down_proj", Some((1, 2)))
        );
        assert!(fused("layers.3.mlp.experts.down_proj.weight", &names).is_empty());
        assert!(fused("layers.3.mlp.shared_expert.up_proj.weight", &names).is_empty());
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
