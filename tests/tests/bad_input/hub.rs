//! Checkpoints that are nowhere.

use insta::assert_snapshot;
use weft::hub::{Checkpoint, Environment};

fn refusal(id: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().to_str().unwrap();
    let offline = Environment::from_variables(|name| match name {
        "HF_HUB_CACHE" => Some(cache.to_owned()),
        "HF_HUB_OFFLINE" => Some("1".to_owned()),
        _ => None,
    });
    let here = std::env::current_dir().unwrap();
    let text = Checkpoint::open_in(id, &offline).unwrap_err().to_string();
    text.replace(cache, "CACHE").replace(here.to_str().unwrap(), "HERE")
}

#[test]
fn no_such_folder() {
    assert_snapshot!(refusal("./checkpoints/of-mine"), @r"
        ./checkpoints/of-mine: no such folder (looked in HERE)
          help: give an existing folder, or a hub id such as `org/name` or `org/name@revision`
        ");
    assert_snapshot!(refusal("/nowhere/at/all"), @r"
        /nowhere/at/all: no such folder (looked in HERE)
          help: give an existing folder, or a hub id such as `org/name` or `org/name@revision`
        ");
}

#[test]
fn not_in_the_cache_and_offline() {
    assert_snapshot!(refusal("google-bert/bert-base-uncased"), @r"
        google-bert/bert-base-uncased: no folder of that name, and not in the cache: looked for refs/main or snapshots/main in CACHE/models--google-bert--bert-base-uncased (HF_HUB_OFFLINE is set)
          help: fetch it where there is a network (`hf download google-bert/bert-base-uncased`) and point HF_HOME or HF_HUB_CACHE there; or give a folder
        ");
    assert_snapshot!(refusal("google-bert/bert-base-uncased@refs/pr/7"), @r"
        google-bert/bert-base-uncased@refs/pr/7: no folder of that name, and not in the cache: looked for refs/refs/pr/7 or snapshots/refs/pr/7 in CACHE/models--google-bert--bert-base-uncased (HF_HUB_OFFLINE is set)
          help: fetch it where there is a network (`hf download google-bert/bert-base-uncased`) and point HF_HOME or HF_HUB_CACHE there; or give a folder
        ");
}

#[test]
fn not_an_id() {
    assert_snapshot!(refusal(""), @r"
        : no folder of that name, and not a hub id: it is empty
          help: give an existing folder, or a hub id such as `org/name` or `org/name@revision`
        ");
    assert_snapshot!(refusal("google-bert/bert base"), @r"
        google-bert/bert base: no folder of that name, and not a hub id: ` ` may not be part of an id
          help: give an existing folder, or a hub id such as `org/name` or `org/name@revision`
        ");
    assert_snapshot!(refusal("google-bert/bert@../../etc"), @r"
        google-bert/bert@../../etc: no folder of that name, and not a hub id: `../../etc` is not the name of a branch, a tag or a commit
          help: give an existing folder, or a hub id such as `org/name` or `org/name@revision`
        ");
}
