//! Outputs added for a look inside: what each part of the model computes.

use std::collections::{BTreeMap, HashMap};

use super::{Dtype, Graph};

/// A part of the model and the outputs that hold what is computed in it, in order.
pub(crate) type Probe = (String, Vec<String>);

impl Graph {
    /// Makes the floating-point values of each of these parts (`encoder.layer.0`) outputs; the parts in the order in
    /// which the graph is done with them. Parts that compute nothing are left out.
    pub(crate) fn probe(&mut self, parts: &[String]) -> Vec<Probe> {
        let wanted: HashMap<&str, &str> = parts.iter().map(|part| (part.as_str(), part.as_str())).collect();
        let mut inside: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, node) in self.nodes.iter().enumerate() {
            if self.values[node.output].tensor.dtype() != Dtype::F32 {
                continue;
            }
            let place = node.name.rsplit_once('/').map_or("", |(place, _)| place);
            let place = place.trim_start_matches('/').replace('/', ".");
            let ends = place.match_indices('.').map(|(at, _)| at).chain([place.len()]);
            for part in ends.filter_map(|end| wanted.get(&place[..end])) {
                inside.entry(part).or_default().push(index);
            }
        }
        let mut ordered: Vec<_> = inside.into_iter().collect();
        // Of parts that end together the inner one is done first.
        ordered.sort_by_key(|(part, nodes)| (nodes.last().copied(), std::cmp::Reverse(part.len())));
        let mut named: HashMap<usize, String> =
            self.outputs.iter().map(|(name, id)| (*id, name.clone())).collect();
        let mut output = |index: usize| {
            let id = self.nodes[index].output;
            let name = named.entry(id).or_insert_with(|| {
                let name = format!("probe.{index}");
                self.outputs.push((name.clone(), id));
                name
            });
            name.clone()
        };
        let probe = |(part, nodes): (&str, Vec<usize>)| {
            (part.to_owned(), nodes.into_iter().map(&mut output).collect())
        };
        ordered.into_iter().map(probe).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::{Graph, Input};
    use crate::{Result, dims};

    #[test]
    fn the_values_of_each_part_become_outputs() -> Result<()> {
        let mut g = Graph::new();
        let x = g.input(Input::f32("x", dims![2, 3]));
        let layer = g.scope("encoder").scope("layer").index(0);
        let h = g.linear(&layer.scope("first"), &x, 3)?;
        let h = g.linear(&layer.scope("second"), &h, 3)?;
        let y = g.linear(&g.scope("head"), &h, 3)?;
        g.output("logits", &y)?;
        let parts =
            ["encoder.layer.0", "encoder.layer.0.first", "encoder.layer.0.second", "head", "encoder.lay"];
        let probes = g.probe(&parts.map(str::to_owned));
        let named: Vec<_> =
            probes.iter().map(|(part, names)| format!("{part}: {}", names.join(" "))).collect();
        assert_eq!(
            named,
            [
                "encoder.layer.0.first: probe.0",
                "encoder.layer.0.second: probe.1",
                "encoder.layer.0: probe.0 probe.1",
                "head: logits",
            ]
        );
        assert_eq!(g.outputs().count(), 3);
        Ok(())
    }
}
