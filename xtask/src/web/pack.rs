//! The npm package of a category: WebAssembly, what it is called by, types, and ONNX Runtime Web beside them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::toolchain::{TARGET, Toolchain};
use super::tools;
use crate::setup;
use crate::terminal::{note, say};
use crate::workspace::{Member, root, target_dir};

/// The crate of what a worker calls, and the file that it is compiled to.
pub const PACKAGE: &str = "weft-web";
const FILE: &str = "weft_web";

/// What is put beside the WebAssembly as it is.
const SCRIPTS: [&str; 13] = [
    "index.js",
    "devices.js",
    "inputs.js",
    "worker.js",
    "host.js",
    "encode.js",
    "waiting.js",
    "host_worker.js",
    "files.js",
    "blobs.js",
    "caches.js",
    "store.js",
    "engine.js",
];

/// The types of options, those of all tasks, and the line that offers tasks.
const TYPES: &str = "index.d.ts";
const TASKS: &str = "tasks.d.ts";
const OFFERED: &str = "export type Task = keyof Tasks;";

/// Of ONNX Runtime Web, the build that waits for promises, and the one for browsers that cannot.
const ENGINE: [&str; 4] = [
    "ort.jspi.bundle.min.mjs",
    "ort-wasm-simd-threaded.jspi.wasm",
    "ort.wasm.bundle.min.mjs",
    "ort-wasm-simd-threaded.wasm",
];

/// What browsers have that can wait for promises at all; `wasm-opt` writes nothing else.
const FEATURES: [&str; 8] = [
    "--enable-bulk-memory",
    "--enable-bulk-memory-opt",
    "--enable-mutable-globals",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-sign-ext",
    "--enable-multivalue",
    "--enable-exception-handling",
];

/// A package that is to be made.
pub struct Packing<'a> {
    pub toolchain: Toolchain,
    /// Of `@weft/NAME`.
    pub name: &'a str,
    pub categories: &'a [String],
    pub members: &'a [Member],
    /// The only tasks that it is for; all that these models serve where there are none.
    pub tasks: &'a [String],
    /// Whether these are all models of the category.
    pub whole: bool,
    pub quick: bool,
    pub out: &'a Path,
}

impl Packing<'_> {
    /// Builds it and writes it down; whether it compiled.
    pub fn run(&self) -> Result<bool> {
        let manifest = read(&root().join("web/Cargo.toml"))?;
        let known =
            |category: &&String| manifest.lines().any(|line| line.starts_with(&format!("{category} = ")));
        if let Some(category) = self.categories.iter().find(|category| !known(category)) {
            bail!("web/Cargo.toml has no feature `{category}`: there is no package of it yet");
        }
        let sources = self.members.iter().map(|member| read(&member.dir.join("src/model.rs")));
        let tasks = chosen(tasks(&sources.collect::<Result<Vec<_>>>()?), self.tasks)?;
        let bindgen = tools::wasm_bindgen()?;
        let bundle = setup::ensure_package("onnxruntime-web")?;
        let engine = bundle.parent().context("ONNX Runtime Web is in no folder")?;
        let categories = self.categories.join(", ");
        note(format!("{} models of {categories}, by {}", self.members.len(), self.toolchain));
        if !self.build(&tasks)? {
            return Ok(false);
        }
        let wasm = target_dir().join("wasm").join(TARGET).join("web").join(format!("{FILE}.wasm"));
        let folder = self.out.join("wasm");
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        let mut command = Command::new(&bindgen);
        command.args(["--target", "web", "--out-dir"]).arg(&folder).arg(&wasm);
        if !command.status().context("starting wasm-bindgen")?.success() {
            return Ok(false);
        }
        let bound = folder.join(format!("{FILE}_bg.wasm"));
        if !self.quick {
            match tools::wasm_opt(&FEATURES) {
                Ok(program) => {
                    let mut command = Command::new(program);
                    command.arg("-Oz").args(FEATURES).arg(&bound).arg("-o").arg(&bound);
                    if !command.status().context("starting wasm-opt")?.success() {
                        return Ok(false);
                    }
                }
                Err(why) => note(why),
            }
        }
        let scripts = root().join("web/npm");
        for script in SCRIPTS {
            copy(&scripts.join(script), &self.out.join(script))?;
        }
        let types = read(&scripts.join(TYPES))?;
        let typed = read(&scripts.join(TASKS))?;
        write(&self.out.join(TYPES), &offering(&types, &typed, &tasks)?)?;
        write(&self.out.join(TASKS), &typed)?;
        for file in ENGINE {
            copy(&engine.join(file), &self.out.join("ort").join(file))?;
        }
        for license in ["LICENSE-MIT", "LICENSE-APACHE"] {
            copy(&root().join(license), &self.out.join(license))?;
        }
        write(&self.out.join("package.json"), &self.manifest()?)?;
        write(&self.out.join("README.md"), &self.readme())?;
        self.tell(&bound)?;
        Ok(true)
    }

    fn build(&self, tasks: &BTreeSet<String>) -> Result<bool> {
        let mut command = self.toolchain.cargo("build");
        command.args(["--profile", "web", "--package", PACKAGE]);
        let mut features: Vec<String> =
            self.categories.iter().map(|category| format!("{PACKAGE}/{category}")).collect();
        features.extend(match self.whole {
            true => self.categories.iter().map(|category| format!("weft-{category}/all")).collect::<Vec<_>>(),
            false => self
                .members
                .iter()
                .map(|member| format!("weft-{}/{}", member.category, member.model))
                .collect(),
        });
        command.arg("--features").arg(features.join(","));
        let tasks: Vec<String> = tasks.iter().map(|task| camel(task)).collect();
        command.env("WEFT_WEB_TASKS", tasks.join(","));
        if let Some(linker) = tools::linker(self.toolchain)? {
            command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
        if self.quick {
            let quick = [("LTO", "off"), ("CODEGEN_UNITS", "16"), ("OPT_LEVEL", "0")];
            command.envs(quick.map(|(option, value)| (format!("CARGO_PROFILE_WEB_{option}"), value)));
        }
        Ok(command.status().with_context(|| format!("starting {}", self.toolchain))?.success())
    }

    /// `package.json`.
    fn manifest(&self) -> Result<String> {
        let workspace = read(&root().join("Cargo.toml"))?;
        let version =
            workspace.lines().find_map(|line| line.strip_prefix("version = ")).unwrap_or("\"0.0.0\"");
        let manifest = json!({
            "name": format!("@weft/{}", self.name),
            "version": version.trim_matches('"'),
            "description": format!("Hugging Face checkpoints in a page, as they are published: {}.", self.categories.join(", ")),
            "license": "MIT OR Apache-2.0",
            "type": "module",
            "exports": { ".": { "types": "./index.d.ts", "default": "./index.js" } },
            "types": "./index.d.ts",
            "sideEffects": false,
            "files": ["*.js", "*.d.ts", "wasm", "ort", "LICENSE-*"],
        });
        Ok(serde_json::to_string_pretty(&manifest)? + "\n")
    }

    fn readme(&self) -> String {
        let models: Vec<&str> = self.members.iter().map(|member| member.model.as_str()).collect();
        format!(
            "# @weft/{}\n\nHugging Face checkpoints in a page, as they are published: no server, no Python, no converted \
             weights.\n\n```js\nimport {{ pipeline }} from '@weft/{}';\n\nconst embed = await pipeline('sentence-embedding', \
             'sentence-transformers/all-MiniLM-L6-v2', {{\n  device: 'wasm',\n  progress: ({{ loaded, total }}) => \
             console.log(loaded, total),\n}});\nconst vectors = await embed(['A warp thread.', 'A weft thread.']);\n\
             await embed.dispose();\n```\n\nModels: {}.\n\nONNX Runtime Web, which computes, is in `ort/`; it is Microsoft's, \
             under the MIT license.\n",
            self.name,
            self.name,
            models.join(", ")
        )
    }

    fn tell(&self, wasm: &Path) -> Result<()> {
        let bytes = fs::metadata(wasm).with_context(|| format!("looking at {}", wasm.display()))?.len();
        say(format!("{}: {:.0} kB of WebAssembly", self.out.display(), bytes as f64 / 1e3))
    }
}

/// The tasks that crates are for, by the names of `transformers.pipeline`.
fn tasks(sources: &[String]) -> BTreeSet<String> {
    let served = sources.iter().flat_map(|source| source.split("TaskHeads::new(Task::").skip(1));
    served.filter_map(|rest| Some(kebab(rest.split(',').next()?))).collect()
}

/// Those of the tasks that a package is asked for.
fn chosen(served: BTreeSet<String>, asked: &[String]) -> Result<BTreeSet<String>> {
    if let Some(none) = asked.iter().find(|task| !served.contains(*task)) {
        let served: Vec<&str> = served.iter().map(String::as_str).collect();
        bail!("no model of the package serves `{none}`; they serve {}", served.join(", "));
    }
    Ok(if asked.is_empty() { served } else { asked.iter().cloned().collect() })
}

/// `text2text-generation` as `Text2TextGeneration`.
pub fn camel(name: &str) -> String {
    let mut camel = String::new();
    for word in name.split('-') {
        camel.extend(word.chars().take(1).flat_map(char::to_uppercase));
        camel.extend(word.chars().skip(1));
    }
    // A number ends one word and begins another.
    camel.replace("Text2text", "Text2Text")
}

/// `Text2TextGeneration` as `text2text-generation`.
pub fn kebab(name: &str) -> String {
    let mut kebab = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && kebab.ends_with(char::is_alphabetic) {
            kebab.push('-');
        }
        kebab.extend(letter.to_lowercase());
    }
    kebab
}

/// The types with those tasks alone that a package has.
fn offering(types: &str, typed: &str, tasks: &BTreeSet<String>) -> Result<String> {
    let offered: Vec<String> = tasks
        .iter()
        .map(|task| format!("'{task}'"))
        .filter(|task| typed.contains(&format!("  {task}: {{")))
        .collect();
    if offered.is_empty() || !types.contains(OFFERED) {
        bail!("web/npm/{TASKS} has no types of {}", tasks.iter().cloned().collect::<Vec<_>>().join(", "));
    }
    Ok(types.replace(OFFERED, &format!("export type Task = {};", offered.join(" | "))))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    fs::copy(from, to).with_context(|| format!("copying {}", from.display()))?;
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_offers_the_tasks_of_its_crates() {
        let source = "TaskHeads::new(Task::FillMask, &[Head::A]).also_from(&[]),\n\
                      TaskHeads::new(Task::Text2TextGeneration, &[Head::B]),";
        let tasks = tasks(&[source.to_owned(), source.to_owned()]);
        assert_eq!(tasks.iter().collect::<Vec<_>>(), ["fill-mask", "text2text-generation"]);
        let typed = "interface Tasks {\n  'fill-mask': {};\n  'other': {};\n}\n";
        assert_eq!(offering(OFFERED, typed, &tasks).unwrap(), "export type Task = 'fill-mask';");
        assert!(
            offering(OFFERED, "", &tasks)
                .unwrap_err()
                .to_string()
                .contains("no types of fill-mask, text2text")
        );
    }

    #[test]
    fn names_of_tasks_are_those_of_the_runtime() {
        for (name, kebabbed) in [("Text2TextGeneration", "text2text-generation"), ("FillMask", "fill-mask")] {
            assert_eq!((kebab(name).as_str(), camel(kebabbed).as_str()), (kebabbed, name));
        }
        let served = BTreeSet::from(["fill-mask".to_owned()]);
        assert_eq!(chosen(served.clone(), &[]).unwrap(), served);
        assert!(
            chosen(served, &["text-generation".to_owned()])
                .unwrap_err()
                .to_string()
                .contains("they serve fill-mask")
        );
    }

    #[test]
    fn every_task_of_texts_has_types() {
        let types = read(&root().join("web/npm").join(TYPES)).unwrap();
        let typed = read(&root().join("web/npm").join(TASKS)).unwrap();
        let bert = read(&root().join("generated/text-encoders/bert/src/model.rs")).unwrap();
        let tasks = tasks(&[bert]);
        let offered = offering(&types, &typed, &tasks).unwrap();
        assert!(
            tasks.len() > 5
                && tasks.iter().all(|task| offered.contains(&format!("'{task}' |"))
                    || offered.contains(&format!("'{task}';")))
        );
    }
}
