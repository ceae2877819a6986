//! Against a cache laid out as `huggingface_hub` does, with links into `blobs`.

use super::*;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// A cache with `org/name` at `main` and `v1`; offline.
fn cached() -> (tempfile::TempDir, Environment) {
    let folder = tempfile::tempdir().unwrap();
    let repo = folder.path().join("hub/models--org--name");
    for part in ["refs", "blobs", &format!("snapshots/{COMMIT}/1_Pooling")] {
        std::fs::create_dir_all(repo.join(part)).unwrap();
    }
    std::fs::write(repo.join("refs/main"), COMMIT).unwrap();
    std::fs::write(repo.join("refs/v1"), format!("{COMMIT}\n")).unwrap();
    std::fs::write(repo.join("blobs/aa"), r#"{"model_type": "bert"}"#).unwrap();
    std::fs::write(repo.join("blobs/bb"), "{").unwrap();
    let snapshot = repo.join("snapshots").join(COMMIT);
    link("../../blobs/aa", &snapshot.join("config.json"));
    link("../../blobs/bb", &snapshot.join("broken.json"));
    link("../../../blobs/aa", &snapshot.join("1_Pooling/config.json"));
    link("../../blobs/gone", &snapshot.join("dangling.json"));
    let home = folder.path().to_str().unwrap().to_string();
    let environment = Environment::from_variables(move |name| match name {
        "HF_HOME" => Some(home.clone()),
        "HF_HUB_OFFLINE" => Some("1".into()),
        _ => None,
    });
    (folder, environment)
}

#[cfg(unix)]
fn link(target: &str, path: &Path) {
    std::os::unix::fs::symlink(target, path).unwrap();
}

#[cfg(windows)]
fn link(target: &str, path: &Path) {
    // Links need a privilege there; the cache then holds copies.
    let _ = std::fs::copy(path.parent().unwrap().join(target), path);
}

fn message(result: Result<impl std::fmt::Debug>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_cached_id_opens_at_a_branch_a_tag_and_a_commit() {
    let (_folder, environment) = cached();
    for id in ["org/name".to_string(), "org/name@v1".into(), format!("org/name@{COMMIT}")] {
        let checkpoint = Checkpoint::open_in(&id, &environment).unwrap();
        assert_eq!(checkpoint.id(), id);
        assert!(checkpoint.dir().ends_with(COMMIT));
        assert_eq!(checkpoint.json("config.json").unwrap().unwrap()["model_type"], "bert");
        assert!(checkpoint.path("1_Pooling/config.json").unwrap().is_some());
        assert!(checkpoint.path("tokenizer.json").unwrap().is_none());
    }
}

#[test]
fn an_id_that_is_not_cached_says_where_it_was_looked_for() {
    let (_folder, environment) = cached();
    let text = message(Checkpoint::open_in("org/other", &environment));
    assert!(text.contains("models--org--other") && text.contains("refs/main"), "{text}");
    assert!(text.contains("HF_HUB_OFFLINE is set") && text.contains("hf download org/other"), "{text}");
    let text = message(Checkpoint::open_in("org/name@v2", &environment));
    assert!(text.contains("refs/v2"), "{text}");
}

#[test]
fn a_path_that_does_not_exist_is_not_taken_for_an_id() {
    let (folder, environment) = cached();
    let missing = folder.path().join("nothing");
    let text = message(Checkpoint::open_in(missing.to_str().unwrap(), &environment));
    assert!(text.contains("no such folder"), "{text}");
    let text = message(Checkpoint::open_in("../etc", &environment));
    assert!(text.contains("no such folder"), "{text}");
    let text = message(Checkpoint::open_in("org name", &environment));
    assert!(text.contains("not a hub id"), "{text}");
    let file = folder.path().join("file.json");
    std::fs::write(&file, "{}").unwrap();
    let text = message(Checkpoint::open_in(file.to_str().unwrap(), &environment));
    assert!(text.contains("is a file") && text.contains("give its folder"), "{text}");
}

#[test]
fn names_that_lead_out_are_refused() {
    let (_folder, environment) = cached();
    let checkpoint = Checkpoint::open_in("org/name", &environment).unwrap();
    for name in ["../../refs/main", "/etc/passwd", "a/../../b", "", "..", "a\\b"] {
        assert!(message(checkpoint.path(name)).contains("inside the checkpoint"), "{name}");
    }
}

#[test]
fn missing_broken_and_dangling_files_are_told_apart() {
    let (_folder, environment) = cached();
    let checkpoint = Checkpoint::open_in("org/name", &environment).unwrap();
    let text = message(checkpoint.require("model.safetensors"));
    assert!(text.contains("no model.safetensors in") && text.contains("HF_HUB_OFFLINE"), "{text}");
    let text = message(checkpoint.json("broken.json"));
    assert!(text.contains("not JSON"), "{text}");
    if cfg!(unix) {
        let text = message(checkpoint.path("dangling.json"));
        assert!(text.contains("does not exist"), "{text}");
    }
}

#[test]
fn a_damaged_reference_is_an_error() {
    let (folder, environment) = cached();
    std::fs::write(folder.path().join("hub/models--org--name/refs/main"), "../../../etc").unwrap();
    let text = message(Checkpoint::open_in("org/name", &environment));
    assert!(text.contains("does not hold the name of a commit"), "{text}");
}

#[test]
fn a_pipeline_has_the_configurations_of_its_components() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put(
        "model_index.json",
        r#"{"_class_name": "StableDiffusionPipeline", "unet": ["diffusers", "UNet2DConditionModel"],
            "scheduler": ["diffusers", "DDIMScheduler"], "image_encoder": [null, null], "zeros": true}"#,
    );
    put("unet/config.json", r#"{"_class_name": "UNet2DConditionModel", "in_channels": 9}"#);
    let checkpoint = Checkpoint::open(folder.path().to_str().unwrap()).unwrap();
    let json = checkpoint.json("config.json").unwrap().unwrap();
    assert_eq!(json["model_type"], "diffusers:StableDiffusionPipeline");
    assert_eq!((&json["unet"]["in_channels"], &json["zeros"]), (&9.into(), &true.into()));
    assert_eq!(json["unet"]["model_type"], "diffusers:UNet2DConditionModel");
    assert!(json.get("scheduler").is_none() && json.get("image_encoder").is_none());
    assert!(checkpoint.require("config.json").unwrap().ends_with("model_index.json"));
    let unet = checkpoint.component("unet");
    assert!(
        unet.require("config.json").unwrap().ends_with("unet/config.json") && unet.dir().ends_with("unet")
    );
    assert!(unet.path("../model_index.json").is_err());
}

#[test]
fn a_class_of_diffusers_names_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let config = |text: &str| {
        std::fs::write(folder.path().join("config.json"), text).unwrap();
        let checkpoint = Checkpoint::open(folder.path().to_str().unwrap()).unwrap();
        checkpoint.json("config.json").unwrap().unwrap()
    };
    let json = config(r#"{"_class_name": "AutoencoderKL", "sample_size": 8}"#);
    assert_eq!(json["model_type"], "diffusers:AutoencoderKL");
    assert_eq!((&json["architectures"][0], &json["sample_size"]), (&"AutoencoderKL".into(), &8.into()));
    let json = config(r#"{"_class_name": "Other", "model_type": "bert"}"#);
    assert_eq!((&json["model_type"], json.get("architectures")), (&"bert".into(), None));
}
