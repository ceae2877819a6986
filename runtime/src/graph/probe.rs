//! Outputs added for a look inside: what each part of the model computed last.

use std::collections::{BTreeMap, HashMap};

use super::Graph;

impl Graph {
    /// Makes the last value of each of these parts (`encoder.layer.0`) an output; the parts in the order in which the
    /// graph is done with them, each with its output's name. Parts that compute nothing are left out.
    pub(crate) fn probe(&mut self, parts: &[String]) -> Vec<(String, String)> {
        let mut last: BTreeMap<&str, usize> = BTreeMap::new();
        let wanted: HashMap<&str, &str> = parts.iter().map(|part| (part.as_str(), part.as_str())).collect();
        for (index, node) in self.nodes.iter().enumerate() {
            let place = node.name.rsplit_once('/').map_or("", |(place, _)| place);
            let place = place.trim_start_matches('/').replace('/', ".");
            let ends = place.match_indices('.').map(|(at, _)| at).chain([place.len()]);
            for part in ends.filter_map(|end| wanted.get(&place[..end])) {
                last.insert(part, index);
            }
        }
        let mut ordered: Vec<_> = last.into_iter().map(|(part, index)| (index, part.to_owned())).collect();
        // Of parts that end together the inner one is done first.
        ordered.sort_by_key(|(index, part)| (*index, std::cmp::Reverse(part.len())));
        let mut named: HashMap<usize, String> =
            self.outputs.iter().map(|(name, id)| (*id, name.clone())).collect();
        let mut probes = Vec::with_capacity(ordered.len());
        for (index, part) in ordered {
            let id = self.nodes[index].output;
            let name = named.entry(id).or_insert_with(|| {
                let name = format!("probe.{part}");
                self.outputs.push((name.clone(), id));
                name
            });
            probes.push((part, name.clone()));
        }
        probes
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::{Graph, Input};
    use crate::{Result, dims};

    #[test]
    fn the_last_value_of_each_part_becomes_an_output() -> Result<()> {
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
        let named: Vec<_> = probes.iter().map(|(part, name)| format!("{part}: {name}")).collect();
        assert_eq!(
            named,
            [
                "encoder.layer.0.first: probe.encoder.layer.0.first",
                "encoder.layer.0.second: probe.encoder.layer.0.second",
                "encoder.layer.0: probe.encoder.layer.0.second",
                "head: logits",
            ]
        );
        assert_eq!(g.outputs().count(), 3);
        Ok(())
    }
}
