//! Sound checkpoints in unusual places: the hub's cache, where every file is a link into a folder of blobs.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use weft::Hardware;
use weft::golden::{Case, compare};
use weft::hub::{Checkpoint, Environment};
use weft_bert::Model;

use crate::checkpoint::runs;

const COMMIT: &str = "86b5e0934494bd15c9632b12f734a8a67f723594";

fn golden(name: &str) -> Case {
    Case::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/bert").join(name)).unwrap()
}

/// Lays the golden's files out as `huggingface_hub` does, and gives what `org/name` leads to.
fn cached(golden: &Case, cache: &Path, blobs: &Path) -> PathBuf {
    let repo = cache.join("models--org--name");
    let snapshot = repo.join("snapshots").join(COMMIT);
    for folder in [&snapshot, &repo.join("refs"), blobs] {
        fs::create_dir_all(folder).unwrap();
    }
    fs::write(repo.join("refs/main"), COMMIT).unwrap();
    for (index, entry) in fs::read_dir(&golden.dir).unwrap().enumerate() {
        let file = entry.unwrap().path();
        let blob = blobs.join(format!("{index:064x}"));
        fs::copy(&file, &blob).unwrap();
        let target = match blobs.strip_prefix(&repo) {
            Ok(inside) => Path::new("../..").join(inside).join(blob.file_name().unwrap()),
            Err(_) => blob,
        };
        symlink(target, snapshot.join(file.file_name().unwrap())).unwrap();
    }
    let offline = Environment::from_variables(|name| match name {
        "HF_HUB_CACHE" => Some(cache.to_str().unwrap().to_owned()),
        "HF_HUB_OFFLINE" => Some("1".to_owned()),
        _ => None,
    });
    Checkpoint::open_in("org/name", &offline).unwrap().dir().to_path_buf()
}

/// The model in this folder gives the golden's outputs.
fn equals(golden: &Case, dir: &Path) {
    let model =
        Model::open(dir.to_str().unwrap()).unwrap().hardware(Hardware::Cpu).threads(1).load().unwrap();
    let outputs = model.run(golden.inputs.clone()).unwrap();
    let reports = compare(&outputs, &golden.outputs, 1e-4);
    assert!(reports.iter().all(|report| report.passed), "{reports:?}");
}

#[test]
fn links_into_the_blobs_of_the_cache() {
    if !runs() {
        return;
    }
    for name in ["file", "file-sharded"] {
        let (folder, golden) = (tempfile::tempdir().unwrap(), golden(name));
        let dir = cached(&golden, folder.path(), &folder.path().join("models--org--name/blobs"));
        equals(&golden, &dir);
    }
}

#[test]
fn links_to_another_disk() {
    if !runs() {
        return;
    }
    let (cache, blobs, golden) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), golden("file-sharded"));
    equals(&golden, &cached(&golden, cache.path(), blobs.path()));
}

#[test]
fn a_folder_reached_by_a_link_and_with_spaces_in_its_name() {
    if !runs() {
        return;
    }
    let (folder, golden) = (tempfile::tempdir().unwrap(), golden("file"));
    let real = folder.path().join("my modèles, élève's #1 %41");
    fs::create_dir(&real).unwrap();
    for file in ["config.json", "model.safetensors"] {
        fs::copy(golden.dir.join(file), real.join(file)).unwrap();
    }
    let link = folder.path().join("link");
    symlink(&real, &link).unwrap();
    equals(&golden, &real);
    equals(&golden, &link);
}

#[test]
fn a_link_that_leads_nowhere() {
    let (folder, golden) = (tempfile::tempdir().unwrap(), golden("file"));
    let dir = cached(&golden, folder.path(), &folder.path().join("models--org--name/blobs"));
    fs::remove_dir_all(folder.path().join("models--org--name/blobs")).unwrap();
    let refusal = Model::open(dir.to_str().unwrap()).unwrap().load().unwrap_err().to_string();
    let refusal = refusal.replace(folder.path().to_str().unwrap(), "CACHE");
    let blob = refusal.find("blobs/").map(|at| &refusal[at..at + 70]).unwrap().to_owned();
    insta::assert_snapshot!(refusal.replace(&blob, "blobs/HASH"), @r"
        CACHE/models--org--name/snapshots/86b5e0934494bd15c9632b12f734a8a67f723594: CACHE/models--org--name/snapshots/86b5e0934494bd15c9632b12f734a8a67f723594/config.json is a link to ../../blobs/HASH, which does not exist
          help: the cache is damaged or the link was copied without its target: remove the link and download the file again
        ");
}
