//! Values between inputs and outputs that another model may ask for (`output_hidden_states`).

use std::collections::BTreeSet;

use super::{Graph, Origin, Tensor};
use crate::{Error, Result};

impl Graph {
    /// Names a value that is an output only where it is asked for: `inputs_embeds`, what stands for tokens before the first layer, and
    /// `last_hidden_state`, hidden states behind the last norm, which drafters read of the model that they draft for.
    pub fn intermediate(&mut self, name: &str, x: &Tensor) {
        self.intermediates.push((name.to_owned(), x.id));
    }

    /// Makes named values outputs.
    ///
    /// # Errors
    /// When there is none of a name.
    pub(crate) fn output_intermediates(&mut self, names: &[String]) -> Result<()> {
        for name in names {
            let id = self.intermediate_id(name)?;
            self.outputs.push((name.clone(), id));
        }
        Ok(())
    }

    /// Leaves the graph of one named value, with the inputs that it hangs on.
    ///
    /// # Errors
    /// When there is none of the name.
    pub(crate) fn only_intermediate(&mut self, name: &str) -> Result<()> {
        let id = self.intermediate_id(name)?;
        self.outputs = vec![(name.to_owned(), id)];
        self.prune();
        let read: BTreeSet<usize> = self.nodes.iter().flat_map(|node| &node.inputs).copied().collect();
        let all = std::mem::take(&mut self.inputs);
        let mut places = vec![None; all.len()];
        for value in self.values.iter().filter(|value| read.contains(&value.tensor.id)) {
            if let Origin::Input(place) = value.origin {
                places[place] = Some(0);
            }
        }
        for (place, input) in all.into_iter().enumerate() {
            if let Some(new) = &mut places[place] {
                *new = self.inputs.len();
                self.inputs.push(input);
            }
        }
        for value in &mut self.values {
            if let Origin::Input(place) = &mut value.origin {
                *place = places[*place].unwrap_or_default();
            }
        }
        Ok(())
    }

    fn intermediate_id(&self, name: &str) -> Result<usize> {
        let found = self.intermediates.iter().find(|(found, _)| found == name);
        found.map(|(_, id)| *id).ok_or_else(|| {
            let problem = format!("the model does not give its `{name}`");
            Error::input(
                "assistant_model",
                problem,
                "choose a drafter that reads tokens alone, such as a smaller model of the family",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::{Graph, Input};
    use crate::{Result, dims};

    fn graph() -> Result<Graph> {
        let mut g = Graph::new();
        let unread = g.input(Input::f32("unread", dims![2]));
        let x = g.input(Input::f32("x", dims![2]));
        let h = g.scale(&x, 3.0)?;
        g.intermediate("inputs_embeds", &h);
        let y = g.add(&h, &unread)?;
        g.output("y", &y)?;
        Ok(g)
    }

    #[test]
    fn a_named_value_is_an_output_where_it_is_asked_for() -> Result<()> {
        let mut g = graph()?;
        assert_eq!(g.outputs().count(), 1);
        g.output_intermediates(&["inputs_embeds".to_owned()])?;
        assert_eq!(g.outputs().map(|(name, _)| name).collect::<Vec<_>>(), ["y", "inputs_embeds"]);
        let problem = g.output_intermediates(&["last_hidden_state".to_owned()]).unwrap_err().to_string();
        assert!(problem.contains("`last_hidden_state`"), "{problem}");
        Ok(())
    }

    #[test]
    fn what_a_value_alone_hangs_on_stays() -> Result<()> {
        let mut g = graph()?;
        g.only_intermediate("inputs_embeds")?;
        assert_eq!(g.inputs().iter().map(|input| input.name.as_str()).collect::<Vec<_>>(), ["x"]);
        assert_eq!(g.outputs().map(|(name, _)| name).collect::<Vec<_>>(), ["inputs_embeds"]);
        Ok(())
    }
}
