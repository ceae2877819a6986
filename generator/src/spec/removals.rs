//! `remove: [is_decoder, mlp_bias]` in `config`: inherited fields that a model does not have.

use super::document::{Problem, nearest_name};
use super::yaml::{Data, Entry, Node};

const REMOVE: &str = "remove";

/// Writes `remove: [a, b]` as `a: {remove: true}, b: {remove: true}`, after the fields that the spec has.
pub fn spell_out(spec: &mut Node) -> Vec<Problem> {
    let mut problems = vec![];
    let extends = spec.get("extends").is_some();
    let Data::Map(entries) = &mut spec.data else { return problems };
    let Some(config) = entries.iter_mut().find(|entry| entry.key == "config") else { return problems };
    let Data::Map(fields) = &mut config.value.data else { return problems };
    let Some(index) = fields.iter().position(|field| field.key == REMOVE) else { return problems };
    let names = fields.remove(index).value;
    if !extends {
        let message =
            "takes inherited fields away, and this spec extends none; name the other spec under `extends`";
        problems.push(names.at.problem("config.remove", message));
    }
    let Data::List(names) = names.data else {
        let message = format!("expected a list of inherited fields, found {}", names.found());
        problems.push(names.at.problem("config.remove", message));
        return problems;
    };
    for name in names {
        let Some(key) = name.text().map(str::to_owned) else {
            let message = format!("expected names of inherited fields, found {}", name.found());
            problems.push(name.at.problem("config.remove", message));
            continue;
        };
        if fields.iter().any(|field| field.key == key) {
            let message = format!("`{key}` is given and taken away; remove one of the two");
            problems.push(name.at.problem("config.remove", message));
            continue;
        }
        let yes = Node { at: name.at.clone(), data: Data::Bool(true) };
        let entry = Entry { key: REMOVE.to_owned(), at: name.at.clone(), value: yes };
        let value = Node { at: name.at.clone(), data: Data::Map(vec![entry]) };
        fields.push(Entry { key, at: name.at, value });
    }
    problems
}

/// What `own` takes away and `parent` does not have.
pub fn check(parent: &Node, own: &Node) -> Vec<Problem> {
    let inherited = parent.get("config").map_or(&[][..], Node::entries);
    let known = || inherited.iter().map(|entry| entry.key.as_str());
    let removes = |field: &&Entry| field.value.get(REMOVE).is_some_and(|flag| flag.data == Data::Bool(true));
    let missing = |field: &&Entry| !known().any(|name| name == field.key);
    let own = own.get("config").map_or(&[][..], Node::entries).iter().filter(removes).filter(missing);
    own.map(|field| {
        let message = "is taken away, and no spec that this one extends has it; leave it out";
        let nearest = nearest_name(&field.key, known()).map(str::to_owned);
        Problem { nearest, ..field.at.problem(format!("config.{}", field.key), message) }
    })
    .collect()
}
