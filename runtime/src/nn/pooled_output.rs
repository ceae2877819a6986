//! What an encoder gives beside each other: hidden states and what is pooled of them.

use crate::Result;
use crate::graph::{Graph, Tensor};

/// Hidden states after the last layer and their pooled output (`BaseModelOutputWithPooling`).
pub struct PooledOutput {
    /// The hidden states after the last layer: `[batch, positions, hidden_size]`.
    pub last_hidden_state: Tensor,
    /// What is pooled of them: `[batch, hidden_size]`.
    pub pooler_output: Tensor,
}

impl PooledOutput {
    /// Gives both as outputs of the sub-model `name`: `text_model_output.last_hidden_state`.
    ///
    /// # Errors
    /// When the graph has outputs of these names.
    pub fn output(&self, g: &mut Graph, name: &str) -> Result<()> {
        g.output(&format!("{name}.last_hidden_state"), &self.last_hidden_state)?;
        g.output(&format!("{name}.pooler_output"), &self.pooler_output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims;
    use crate::graph::Input;

    #[test]
    fn outputs_are_named_after_the_sub_model() -> Result<()> {
        let mut g = Graph::new();
        let last_hidden_state = g.input(Input::f32("states", dims![2, 3, 4]));
        let pooler_output = g.take(&last_hidden_state, 1, 0)?;
        let text = PooledOutput { last_hidden_state, pooler_output };
        text.output(&mut g, "text_model_output")?;
        let given: Vec<_> = g.outputs().map(|(name, tensor)| (name, tensor.rank())).collect();
        assert_eq!(
            given,
            [("text_model_output.last_hidden_state", 3), ("text_model_output.pooler_output", 2)]
        );
        let again = text.output(&mut g, "text_model_output").unwrap_err().to_string();
        assert!(again.contains("text_model_output.last_hidden_state"), "{again}");
        Ok(())
    }
}
