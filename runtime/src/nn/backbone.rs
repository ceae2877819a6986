//! Stages that a backbone gives feature maps of (`BackboneMixin`).

use crate::Result;
use crate::config::LayerIndices;
use crate::graph::Graph;

/// The stages that a backbone gives feature maps of (`BackboneConfigMixin`): `out_features` names them, `out_indices` counts
/// them; without either it is the last.
#[derive(Clone, Copy, Debug)]
pub struct BackboneStages<'a> {
    /// Their names, `stem`, `stage1`, `stage2` …, in this order.
    pub out_features: Option<&'a [String]>,
    /// Their indices, from 0, or from -1 downwards.
    pub out_indices: Option<&'a LayerIndices>,
    /// Whether the stem is the first of the stages.
    pub stem: bool,
}

impl BackboneStages<'_> {
    /// The name of a stage (`stage_names`).
    pub fn name(&self, index: usize) -> String {
        match (self.stem, index) {
            (true, 0) => "stem".to_owned(),
            (true, index) => format!("stage{index}"),
            (false, index) => format!("stage{}", index + 1),
        }
    }

    /// The indices of the selected stages out of `count`, in increasing order.
    ///
    /// # Errors
    /// When a stage is none of these, they are out of order, or `out_features` and `out_indices` select others.
    pub fn selected(&self, g: &Graph, count: usize) -> Result<Vec<usize>> {
        let named = self.out_features.map(|names| self.named(names, count)).transpose();
        let counted = self
            .out_indices
            .map(|indices| {
                indices.states(count.saturating_sub(1)).map_err(|why| format!("out_indices: {why}"))
            })
            .transpose();
        let selected = match (named, counted) {
            (Err(problem), _) | (_, Err(problem)) => Err(problem),
            (Ok(Some(named)), Ok(Some(counted))) if named != counted => {
                Err(format!("out_features selects stages {named:?}, but out_indices {counted:?}"))
            }
            (Ok(named), Ok(counted)) => {
                Ok(named.or(counted).unwrap_or_else(|| vec![count.saturating_sub(1)]))
            }
        };
        match selected {
            Ok(selected) if selected.is_sorted_by(|one, next| one < next) => Ok(selected),
            Ok(selected) => {
                Err(g.error("backbone", format!("stages {selected:?} must be in increasing order")))
            }
            Err(problem) => Err(g.error("backbone", problem)),
        }
    }

    fn named(&self, names: &[String], count: usize) -> Result<Vec<usize>, String> {
        let all: Vec<_> = (0..count).map(|index| self.name(index)).collect();
        let index = |name: &String| {
            let found = all.iter().position(|stage| stage == name);
            found.ok_or_else(|| format!("out_features: there is no `{name}`, only {}", all.join(", ")))
        };
        names.iter().map(index).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::refusal;
    use super::*;

    fn selected(names: Option<&[&str]>, indices: Option<&[i64]>, stem: bool) -> Result<Vec<usize>> {
        let names: Option<Vec<_>> =
            names.map(|names| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        let indices = indices.map(|indices| LayerIndices(indices.to_vec()));
        BackboneStages { out_features: names.as_deref(), out_indices: indices.as_ref(), stem }
            .selected(&Graph::new(), 4)
    }

    #[test]
    fn stages_are_named_or_counted() {
        assert_eq!(selected(Some(&["stem", "stage3"]), None, true).unwrap(), [0, 3]);
        assert_eq!(selected(Some(&["stage1", "stage3"]), None, false).unwrap(), [0, 2]);
        assert_eq!(selected(None, Some(&[1, -1]), true).unwrap(), [1, 3]);
        assert_eq!(selected(Some(&["stage2"]), Some(&[-2]), true).unwrap(), [2]);
        assert_eq!(selected(None, None, true).unwrap(), [3]);
    }

    #[test]
    fn stages_that_there_are_not_are_refused() {
        let message = |names, indices| refusal(|_| selected(names, indices, true));
        insta::assert_snapshot!(message(Some(&["stage4"][..]), None), @"backbone in the root: out_features: there is no `stage4`, only stem, stage1, stage2, stage3");
        insta::assert_snapshot!(message(None, Some(&[4][..])), @"backbone in the root: out_indices: it names layer 4, but there are 3 layers");
        insta::assert_snapshot!(message(Some(&["stage2", "stage1"][..]), None), @"backbone in the root: stages [2, 1] must be in increasing order");
        insta::assert_snapshot!(message(Some(&["stage2"][..]), Some(&[1][..])), @"backbone in the root: out_features selects stages [2], but out_indices [1]");
    }
}
