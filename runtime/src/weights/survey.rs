//! Which tensors a graph would read, which it misses and which nothing reads, by the headers of weight files alone.

use std::collections::BTreeMap;

use super::{Bytes, Names, Shapes, WeightData, Weights, names};
use crate::graph::{Dtype, Weight};

/// What a checkpoint's files hold of a graph's weights.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Survey {
    /// The weights that are missing or have another shape, each with what is wrong.
    pub missing: Vec<String>,
    /// The stored tensors that the graph does not read, but for those that the reference ignores as well.
    pub unused: Vec<String>,
}

impl Weights {
    /// What is missing of a graph's weights, and what nothing reads; `unused` are the names that the graph says it leaves.
    pub(crate) fn survey(&self, wanted: &[Weight], unused: &[String], names: &Names) -> Survey {
        let mut read = vec![];
        let mut missing = vec![];
        let shapes: Shapes<'_> =
            wanted.iter().map(|weight| (weight.name.as_str(), weight.shape.as_slice())).collect();
        for weight in wanted {
            match self.holder(weight, names, &shapes) {
                Ok(stored_as) => read.push(WeightData {
                    dtype: Dtype::F32,
                    shape: vec![],
                    stored_as,
                    bytes: Bytes::memory(vec![]),
                }),
                Err(problem) => missing.push(problem),
            }
        }
        Survey { missing, unused: self.unread(&read, unused, names) }
    }

    /// The tensor that holds a weight, alone or among others.
    fn holder(&self, weight: &Weight, names: &Names, shapes: &Shapes<'_>) -> Result<String, String> {
        match self.stored_as(&weight.name, names) {
            // The codes of a quantized weight have a shape of their own.
            Some(name) if matches!(self, Self::Files(files) if files.codes(&name).is_some()) => Ok(name),
            Some(name) if self.shape(&name) == Some(weight.shape.as_slice()) => Ok(name),
            Some(name) => {
                let stored = self.shape(&name).unwrap_or_default();
                Err(format!("`{name}` is {stored:?}, but config.json asks for {:?}", weight.shape))
            }
            None => {
                let mut fused = names::fused(&weight.name, names).into_iter();
                let fits = |fused: &names::Fused| fused.run(self.shape(&fused.name)?, &weight.shape, shapes);
                let found = fused.find(|fused| fits(fused).is_some());
                let joined = || self.joined(weight, names)?.into_iter().next();
                found.map(|fused| fused.name).or_else(joined).ok_or_else(|| format!("`{}`", weight.name))
            }
        }
    }

    /// The bytes of the stored tensors by element type, as the files call it.
    pub(crate) fn stored_types(&self) -> BTreeMap<String, u64> {
        match self {
            Self::Files(files) => files.stored_types(),
            Self::Gguf(tensors) => tensors.stored_types(),
            Self::Rule(_) => BTreeMap::from([("F32".to_owned(), self.size())]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weight(name: &str, shape: &[usize]) -> Weight {
        Weight::new(name, shape)
    }

    #[test]
    fn missing_misfitting_and_unused_tensors_are_named() {
        let stored =
            [("a.weight", vec![2, 3]), ("b.weight", vec![2]), ("c.weight", vec![6]), ("qkv", vec![6, 4])];
        let weights = Weights::Rule(stored.map(|(name, shape)| (name.to_owned(), shape)).into());
        let names = Names { fused_weights: &[("qkv", &["q", "k", "v"])], ..Names::default() };
        let wanted =
            [weight("a.weight", &[2, 3]), weight("b.weight", &[3]), weight("x", &[1]), weight("k", &[2, 4])];
        let survey = weights.survey(&wanted, &[], &names);
        assert_eq!(survey.missing, ["`b.weight` is [2], but config.json asks for [3]", "`x`"]);
        assert_eq!(survey.unused, ["b.weight", "c.weight"]);
        assert_eq!(weights.survey(&[], &["*".to_owned()], &names).unused, [""; 0]);
        assert_eq!(weights.stored_types(), BTreeMap::from([("F32".to_owned(), 4 * (6 + 2 + 6 + 24))]));
    }
}
