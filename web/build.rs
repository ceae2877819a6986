//! Gives the WebAssembly the stack that deep graphs and JSON take, and the tasks that the package is for.

use std::{env, fs, path::PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=WEFT_WEB_TASKS");
    if env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family == "wasm") {
        println!("cargo::rustc-link-arg-cdylib=-zstack-size=4194304");
    }
    // `FillMask,SentenceEmbedding`; all of them where it is not set.
    let tasks = match env::var("WEFT_WEB_TASKS") {
        Ok(tasks) if !tasks.is_empty() => {
            let tasks: Vec<String> = tasks.split(',').map(|task| format!("Task::{task}")).collect();
            format!("&[{}]", tasks.join(", "))
        }
        _ => "&Task::ALL".to_owned(),
    };
    let file = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("tasks.rs");
    if let Err(error) = fs::write(&file, tasks) {
        println!("cargo::error=writing {}: {error}", file.display());
    }
}
