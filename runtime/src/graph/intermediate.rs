//! Values between inputs and outputs that another model may ask for (`output_hidden_states`).

use std::collections::BTreeSet;

use super::{Graph, Input, Origin, Tensor};
use crate::{Error, Result};

impl Graph {
    /// Names a value that is an output only where it is asked for, which drafters read of the model that they draft for: `token_embeds`,
    /// what a table holds for tokens, `inputs_embeds`, what stands for them before the first layer, `hidden_states.{i}` behind so many
    /// layers, and `last_hidden_state` behind the last norm.
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

    /// Leaves the part of the graph that leads to a named value or an output, from the inputs that it hangs on; where `from` names a value,
    /// that is an input too.
    ///
    /// # Errors
    /// When there is none of a name.
    pub(crate) fn keep_part(&mut self, from: Option<&str>, to: &str) -> Result<()> {
        let end = match self.outputs.iter().find(|(name, _)| name == to) {
            Some((_, id)) => *id,
            None => self.intermediate_id(to)?,
        };
        if let Some(name) = from {
            let id = self.intermediate_id(name)?;
            self.nodes.retain(|node| node.output != id);
            let value = &mut self.values[id];
            (value.name, value.origin) = (name.to_owned(), Origin::Input(self.inputs.len()));
            self.inputs.push(Input::f32(name, value.tensor.shape().to_vec()));
        }
        self.outputs = vec![(to.to_owned(), end)];
        self.prune();
        self.leave_out_unread_inputs();
        Ok(())
    }

    fn leave_out_unread_inputs(&mut self) {
        let read: BTreeSet<usize> = self.nodes.iter().flat_map(|node| &node.inputs).copied().collect();
        let mut places = vec![None; self.inputs.len()];
        for value in self.values.iter().filter(|value| read.contains(&value.tensor.id)) {
            if let Origin::Input(place) = value.origin {
                places[place] = Some(0);
            }
        }
        for (place, input) in std::mem::take(&mut self.inputs).into_iter().enumerate() {
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
        let inputs = |g: &Graph| g.inputs().iter().map(|input| input.name.clone()).collect::<Vec<_>>();
        let mut g = graph()?;
        g.keep_part(None, "inputs_embeds")?;
        assert_eq!(inputs(&g), ["x"]);
        assert_eq!(g.outputs().map(|(name, _)| name).collect::<Vec<_>>(), ["inputs_embeds"]);
        let mut g = graph()?;
        g.keep_part(Some("inputs_embeds"), "y")?;
        assert_eq!(inputs(&g), ["unread", "inputs_embeds"]);
        assert_eq!(g.outputs().map(|(name, _)| name).collect::<Vec<_>>(), ["y"]);
        assert!(graph()?.keep_part(None, "z").is_err());
        Ok(())
    }
}
