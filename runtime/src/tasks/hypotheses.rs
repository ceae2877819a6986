//! Labels of the caller's own as sentences.

use crate::{Error, Result};

/// The template with each label in the place of `{}`.
pub(super) fn hypotheses(labels: &[&str], template: &str) -> Result<Vec<String>> {
    if labels.is_empty() {
        return Err(Error::input(
            "candidate_labels",
            "are none",
            "give at least one label (`--label` on the command line)",
        ));
    }
    if !template.contains("{}") {
        let problem = format!("`{template}` has no place for the label");
        return Err(Error::input("hypothesis_template", problem, "write {} where the label goes"));
    }
    Ok(labels.iter().map(|label| template.replacen("{}", label, 1)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_takes_the_place_of_the_braces() {
        let sentences = hypotheses(&["fun", "{}"], "This is {}.").unwrap();
        assert_eq!(sentences, ["This is fun.", "This is {}."]);
        for (labels, template) in [(&[][..], "{}"), (&["fun"][..], "This.")] {
            assert!(hypotheses(labels, template).is_err());
        }
    }
}
