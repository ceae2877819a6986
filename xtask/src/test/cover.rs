//! `--cover`: few models that use every template and part between them.

use std::collections::{BTreeMap, BTreeSet};

use crate::workspace::Member;

/// Keeps, one after the other, the model that adds the most templates and parts, until none adds any.
pub fn reduce(members: &mut Vec<Member>, parts: &BTreeMap<String, BTreeSet<String>>) {
    let names: Vec<&str> = members.iter().map(|member| member.model.as_str()).collect();
    let kept = chosen(&names, parts);
    members.retain(|member| kept.contains(&member.model));
}

fn chosen(models: &[&str], parts: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let mut seen: BTreeSet<&String> = BTreeSet::new();
    let mut kept = BTreeSet::new();
    loop {
        let adds = |model: &str| {
            parts.get(model).map_or(0, |parts| parts.iter().filter(|part| !seen.contains(part)).count())
        };
        // The first of equals, so that the same specs give the same models.
        let best = models.iter().rev().max_by_key(|model| adds(model));
        let Some(best) = best.filter(|model| adds(model) > 0) else { return kept };
        seen.extend(&parts[*best]);
        kept.insert((*best).to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_kept_by_few_models() {
        let set = |parts: &[&str]| parts.iter().map(|&part| part.to_owned()).collect::<BTreeSet<_>>();
        let parts = BTreeMap::from([
            ("a".to_owned(), set(&["norm", "mlp"])),
            ("b".to_owned(), set(&["norm", "mlp"])),
            ("c".to_owned(), set(&["norm", "mlp", "rope"])),
            ("d".to_owned(), set(&["alibi"])),
        ]);
        assert_eq!(chosen(&["a", "b", "c", "d"], &parts), set(&["c", "d"]));
        assert_eq!(chosen(&["a", "b"], &parts), set(&["a"]));
        assert_eq!(chosen(&["unknown"], &parts), set(&[]));
    }
}
