//! The names under which a checkpoint may hold a weight.

use std::collections::HashMap;

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
    /// in today's name stands for the number of an expert, by which the file's tensor has a first axis. Several names in the
    /// file, with ` + ` between them, are tensors whose rows are one weight.
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

/// The shapes of the weights that a graph reads, by today's names.
pub(super) type Shapes<'a> = HashMap<&'a str, &'a [usize]>;

/// What stands between the names of tensors whose rows are one weight.
const JOINED: &str = " + ";

/// A run of the rows of a tensor, in units of as many rows as divide all runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The first unit.
    pub first: usize,
    /// How many units it has.
    pub length: usize,
    /// How many units the tensor has.
    pub of: usize,
}

impl Run {
    /// All rows.
    pub const WHOLE: Self = Self { first: 0, length: 1, of: 1 };

    /// The elements of a tensor that has this many, of which the run is.
    pub fn within(self, elements: usize) -> std::ops::Range<usize> {
        let unit = elements / self.of.max(1);
        self.first * unit..(self.first + self.length) * unit
    }
}

/// A tensor that may hold a weight among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fused {
    /// Its name.
    pub name: String,
    /// Today's names of the weights that its rows are, of the same expert if it has an axis of experts.
    parts: Vec<String>,
    /// Which of these the weight is.
    part: usize,
    /// The expert that the weight is of, if there is an axis of experts.
    expert: Option<usize>,
}

impl Fused {
    /// Which rows of the tensor `stored` the weight `wanted` is, beside others of these shapes; none where it does not fit.
    pub fn run(&self, stored: &[usize], wanted: &[usize], shapes: &Shapes<'_>) -> Option<Run> {
        let (&own, rest) = wanted.split_first()?;
        let run = self.among(own, shapes)?;
        let rows = (own / run.length.max(1)).checked_mul(run.of)?;
        match self.expert {
            None => (stored.first() == Some(&rows) && stored.get(1..) == Some(rest)).then_some(run),
            Some(expert) => {
                let fits =
                    stored.get(1) == Some(&rows) && stored.get(2..) == Some(rest) && expert < stored[0];
                fits.then(|| Run { first: expert * run.of + run.first, of: stored[0] * run.of, ..run })
            }
        }
    }

    /// Which rows of a tensor the weight is that has `own` of them, where there is no axis of experts.
    pub fn rows(&self, own: usize, shapes: &Shapes<'_>) -> Option<Run> {
        self.among(own, shapes).filter(|_| self.expert.is_none())
    }

    /// Which rows the weight is among those of its expert; a weight that the graph does not read has as many as this one.
    fn among(&self, own: usize, shapes: &Shapes<'_>) -> Option<Run> {
        let rows = |(part, name): (usize, &String)| match shapes.get(name.as_str()) {
            Some([rows, ..]) if part != self.part => *rows,
            _ => own,
        };
        let rows: Vec<usize> = self.parts.iter().enumerate().map(rows).collect();
        let unit = rows.iter().copied().fold(0, greatest_common_divisor).max(1);
        let sum = |rows: &[usize]| rows.iter().try_fold(0_usize, |sum, rows| sum.checked_add(rows / unit));
        Some(Run { first: sum(rows.get(..self.part)?)?, length: own / unit, of: sum(&rows)? })
    }
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// All tensors that may hold a weight among others.
pub(super) fn fused(name: &str, names: &Names) -> Vec<Fused> {
    let of = |(file, parts): &(&str, &[&str])| {
        let (part, (found, expert)) =
            parts.iter().enumerate().find_map(|(part, pattern)| Some((part, piece(name, pattern)?)))?;
        let number = expert.map(|expert| expert.to_string()).unwrap_or_default();
        let today = |pattern: &&str| name.replacen(&found, &pattern.replacen('*', &number, 1), 1);
        let parts: Vec<String> = parts.iter().map(today).collect();
        let whole = candidates(&name.replacen(&found, file, 1), names).into_iter();
        Some(whole.map(move |name| Fused { name, parts: parts.clone(), part, expert }).collect::<Vec<_>>())
    };
    let one = names.fused_weights.iter().filter(|(file, _)| !file.contains(JOINED));
    one.filter_map(of).flatten().collect()
}

/// All lists of tensors whose rows, one behind the other, may be a weight.
pub(super) fn joined(name: &str, names: &Names) -> Vec<Vec<String>> {
    let of = |(file, today): &(&str, &[&str])| {
        let today = today.first().filter(|today| file.contains(JOINED) && name.contains(**today))?;
        let named: Vec<_> =
            file.split(JOINED).map(|piece| candidates(&name.replacen(today, piece, 1), names)).collect();
        let counted = 0..named.first().map_or(0, Vec::len);
        Some(counted.map(move |index| named.iter().filter_map(|names| names.get(index).cloned()).collect()))
    };
    names.fused_weights.iter().filter_map(of).flatten().collect()
}

/// The tensors that are one weight with the one that is stored under a name, where that is the first of them.
pub(super) fn joined_behind(stored: &str, names: &Names) -> Vec<String> {
    let of = |(file, _): &(&str, &[&str])| {
        let (first, behind) = file.split_once(JOINED).filter(|(first, _)| stored.contains(first))?;
        Some(behind.split(JOINED).map(|piece| stored.replacen(first, piece, 1)).collect::<Vec<_>>())
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
        let parts = ["q", "k", "v"].map(|part| format!("layers.0.attn.{part}.weight")).to_vec();
        assert_eq!(found, [Fused { name, parts: parts.clone(), part: 1, expert: None }]);
        let run =
            |stored: &[usize], wanted: &[usize], shapes: &Shapes<'_>| found[0].run(stored, wanted, shapes);
        let none = Shapes::new();
        assert_eq!(run(&[12, 5], &[4, 5], &none), Some(Run { first: 1, length: 1, of: 3 }));
        assert_eq!((run(&[12, 5], &[5, 5], &none), run(&[], &[4], &none)), (None, None));
        // Of 6 query heads and 4 of keys and values.
        let grouped =
            Shapes::from([(parts[0].as_str(), &[6, 5][..]), (&parts[1], &[4, 5]), (&parts[2], &[4, 5])]);
        let found = run(&[14, 5], &[4, 5], &grouped).unwrap();
        assert_eq!(found, Run { first: 3, length: 2, of: 7 });
        assert_eq!(found.within(70), 30..50);
        assert_eq!(run(&[12, 5], &[4, 5], &grouped), None);
        assert!(fused("layers.0.attn.out.weight", &names).is_empty());
    }

    #[test]
    fn rows_of_several_tensors_are_one_weight() {
        const PIECES: &[(&str, &str)] = &[("transformer.", "text.")];
        let names = Names {
            base_model_prefix: "model",
            key_mapping: &[PIECES],
            fused_weights: &[("wte.a + wte.b", &["embed_tokens.weight"])],
            ..Names::default()
        };
        let found = joined("model.text.embed_tokens.weight", &names);
        assert_eq!(found[2], ["model.transformer.wte.a", "model.transformer.wte.b"]);
        assert!(fused("model.text.embed_tokens.weight", &names).is_empty());
        assert!(joined("model.text.norm.weight", &names).is_empty());
        assert_eq!(joined_behind("transformer.wte.a", &names), ["transformer.wte.b"]);
        assert!(joined_behind("transformer.wte.b", &names).is_empty());
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
        let none = Shapes::new();
        assert_eq!(found[0].run(&[32, 8, 5], &[4, 5], &none), Some(Run { first: 35, length: 1, of: 64 }));
        for other in [&[17, 8, 5][..], &[32, 8, 6], &[32, 4, 5], &[32, 8], &[32], &[]] {
            assert_eq!(found[0].run(other, &[4, 5], &none), None, "{other:?}");
        }
        let found = fused("layers.3.mlp.experts.1.down_proj.weight", &names);
        assert_eq!(
            (found[0].name.as_str(), found[0].run(&[2, 4, 5], &[4, 5], &none)),
            ("layers.3.mlp.experts.down_proj", Some(Run { first: 1, length: 1, of: 2 }))
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
