//! What a model was trained with that its graph cannot say: how pipelines are to fill its inputs and read its outputs.

use super::{Dim, Graph};

/// What pipelines are to keep to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Convention {
    /// Axes that are filled up to a length, by symbol.
    pub filled: Vec<(String, usize)>,
    /// Whether texts are of small letters.
    pub lower_case: bool,
    /// Outputs whose numbers are each for itself.
    pub independent: Vec<String>,
}

impl Convention {
    pub(crate) fn filled(&self, symbol: &str) -> Option<usize> {
        self.filled.iter().find(|(known, _)| known == symbol).map(|(_, length)| *length)
    }

    pub(crate) fn is_independent(&self, output: &str) -> bool {
        self.independent.iter().any(|known| known == output)
    }
}

impl Graph {
    /// Says that the model was trained on rows that were all cut or filled up to one length.
    pub fn fills(&mut self, symbol: &Dim, length: usize) {
        if let Dim::Symbol(name) = symbol {
            self.convention.filled.push((name.to_string(), length));
        }
    }

    /// Says that the model was trained on texts of small letters alone.
    pub fn lower_case(&mut self) {
        self.convention.lower_case = true;
    }

    /// Says that the logits of an output are each for itself: a sigmoid makes scores of them, and no softmax.
    pub fn independent(&mut self, output: &str) {
        self.convention.independent.push(output.to_owned());
    }
}
