//! How often each expert of a mixture of experts is selected.

use std::sync::{Arc, Mutex, PoisonError};

use crate::graph::Graph;
use crate::{Result, Value, Values};

/// What the names of the outputs that count experts begin with.
const OUTPUT: &str = "expert_usage/";

/// The name of a layer in the checkpoint, and how often each of its experts was selected.
pub type LayerUsage = (String, Vec<u64>);

/// How often each expert was selected, by layer, over all runs of the models that count for it; clones share the counts.
///
/// Positions of padding select experts too, and are counted.
#[derive(Clone, Debug, Default)]
pub struct ExpertUsage(Arc<Mutex<Vec<LayerUsage>>>);

impl ExpertUsage {
    /// The counts of each layer, in the order that they run in, by its name in the checkpoint (`model.layers.0`); none of a model
    /// without experts, or one that did not run. The counts begin anew.
    pub fn take(&self) -> Vec<LayerUsage> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Has a graph give the counts as outputs.
    pub(super) fn ask(graph: &mut Graph) -> Result<()> {
        for (layer, counts) in std::mem::take(&mut graph.expert_counts) {
            graph.output(&format!("{OUTPUT}{layer}"), &counts)?;
        }
        Ok(())
    }

    /// Adds the counts of a run, which are taken out of its outputs.
    pub(super) fn add(&self, layers: &[String], outputs: &mut Values) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for output in layers {
            let Some(Value::F32(counts)) = outputs.remove(output) else { continue };
            let layer = output.trim_start_matches(OUTPUT);
            let place = all.iter().position(|(known, _)| known == layer).unwrap_or_else(|| {
                all.push((layer.to_owned(), vec![0; counts.len()]));
                all.len() - 1
            });
            all[place].1.iter_mut().zip(&counts).for_each(|(sum, count)| *sum += count.round() as u64);
        }
    }

    /// The outputs of a graph that count experts.
    pub(super) fn outputs(graph: &Graph) -> Vec<String> {
        let names = graph.outputs().map(|(name, _)| name.to_owned());
        names.filter(|name| name.starts_with(OUTPUT)).collect()
    }
}

#[cfg(test)]
mod tests {
    use ndarray::ArrayD;

    use super::*;

    #[test]
    fn counts_of_runs_are_added_up_and_begin_anew() {
        let usage = ExpertUsage::default();
        let names = [format!("{OUTPUT}layers.0"), format!("{OUTPUT}layers.10")];
        for counts in [[1.0, 0.0], [2.0, 5.0]] {
            let value = Value::F32(ArrayD::from_shape_vec(vec![2], counts.to_vec()).unwrap());
            let mut outputs: Values = names.iter().map(|name| (name.clone(), value.clone())).collect();
            outputs.insert("logits".to_owned(), value);
            usage.clone().add(&names, &mut outputs);
            assert_eq!(outputs.keys().collect::<Vec<_>>(), ["logits"]);
        }
        let counted = |layer: &str| (layer.to_owned(), vec![3, 5]);
        assert_eq!(usage.take(), [counted("layers.0"), counted("layers.10")]);
        assert!(usage.take().is_empty());
    }
}
