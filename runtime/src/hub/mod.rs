//! Where a checkpoint's files are: a folder, the Hugging Face cache, or the hub itself.

mod cache;
#[cfg(feature = "hub")]
mod download;
mod environment;
mod id;
mod open_clip;
mod pipeline;
mod single;

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

pub use environment::Environment;
pub use id::RepoId;
use pipeline::class_name;

use crate::gguf::{self, Gguf};
use crate::single_file::{self, SingleFile};
use crate::{Error, Result, files};

/// A checkpoint as it is published: `config.json`, `model.safetensors`, `tokenizer.json` and so on.
///
/// It is opened by the path of a folder, or by the id of a hub repository, `org/name` or
/// `org/name@revision`; and by a GGUF file: its path, a folder that holds it and no other weights, or `org/name:FILE.gguf`,
/// whose metadata then stand for `config.json` and the tokenizer's files; and by a `safetensors` file that holds a whole diffusion
/// checkpoint under the names of its original code, whose configurations follow from it and whose tokenizers are beside it or in the
/// repository that it was published in. Ids are looked up in the local cache of `huggingface_hub`, where files are links
/// into a folder of blobs; what is missing there is downloaded when it is asked for, unless
/// `HF_HUB_OFFLINE` is set.
///
/// ```
/// # fn main() -> weft::Result<()> {
/// # let folder = std::env::temp_dir().join("weft-doc-checkpoint");
/// # std::fs::create_dir_all(&folder).unwrap();
/// # std::fs::write(folder.join("config.json"), r#"{"model_type": "bert"}"#).unwrap();
/// # let folder = folder.to_str().unwrap();
/// let checkpoint = weft::hub::Checkpoint::open(folder)?;
/// let config = checkpoint.json("config.json")?.unwrap();
/// assert_eq!(config["model_type"], "bert");
/// assert!(checkpoint.path("tokenizer.json")?.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Checkpoint {
    id: String,
    dir: PathBuf,
    /// The folder in the repository where it is a component, with a slash.
    component: String,
    source: Source,
    gguf: Option<Arc<Gguf>>,
    single: Option<Arc<SingleFile>>,
}

/// The weight files of checkpoints of the reference, which go before a GGUF file in the same folder.
const SAFETENSORS: [&str; 4] = [
    "model.safetensors",
    "model.safetensors.index.json",
    "diffusion_pytorch_model.safetensors",
    "open_clip_model.safetensors",
];

/// The list of a pipeline's components.
const INDEX: &str = "model_index.json";

/// Where files that `dir` lacks could come from.
#[derive(Clone, Debug)]
enum Source {
    Folder,
    Snapshot { missing: MissingFiles },
}

/// What to do about a file that a snapshot lacks.
#[derive(Clone, Debug)]
enum MissingFiles {
    /// Nothing: the environment forbids the network, or this build has none.
    #[cfg_attr(not(feature = "hub"), allow(dead_code))]
    Stay { why: &'static str },
    #[cfg(feature = "hub")]
    Download(download::Remote),
}

impl Checkpoint {
    /// Opens a folder or a hub id with the environment of this process.
    ///
    /// # Errors
    /// When the folder does not exist, the id is malformed, or the repository is neither in the cache nor
    /// can be downloaded.
    pub fn open(id_or_dir: &str) -> Result<Self> {
        Self::open_in(id_or_dir, &Environment::from_process())
    }

    /// Opens a folder or a hub id with the environment given.
    ///
    /// # Errors
    /// As [`Checkpoint::open`].
    pub fn open_in(id_or_dir: &str, environment: &Environment) -> Result<Self> {
        let path = Path::new(id_or_dir);
        let folder = |dir: &Path| Self {
            id: id_or_dir.into(),
            dir: dir.into(),
            component: String::new(),
            source: Source::Folder,
            gguf: None,
            single: None,
        };
        if files::is_dir(path) {
            if cfg!(target_family = "wasm") {
                return Ok(folder(path));
            }
            let whole = SAFETENSORS.iter().any(|file| files::is_file(&path.join(file)));
            let file = if whole { None } else { gguf::only(path)? };
            return folder(path).with_gguf(file.as_deref());
        }
        if cfg!(target_family = "wasm") {
            let help = "give the URL of a folder with config.json, tokenizer.json and model.safetensors";
            return Err(Error::hub(id_or_dir, "is no URL", help));
        }
        if path.is_file() {
            let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if name.ends_with(gguf::ENDING) {
                return folder(parent).with_gguf(Some(&name));
            }
            // A file of a checkpoint's folder says nothing without it.
            if name.ends_with(single_file::ENDING) && !files::is_file(&parent.join("config.json")) {
                return Self::of_single(id_or_dir, folder(parent), SingleFile::open(path)?, environment);
            }
            return Err(Error::hub(
                id_or_dir,
                "is a file; a checkpoint is a folder",
                format!("give its folder: {}", parent.display()),
            ));
        }
        // `C:` is a drive.
        let file =
            id_or_dir.split_once(':').filter(|(repo, file)| repo.len() > 1 && file.ends_with(gguf::ENDING));
        let name = file.map_or(id_or_dir, |(repo, _)| repo);
        if id::looks_like_path(name) {
            return Err(Error::hub(
                id_or_dir,
                format!("no such folder (looked in {})", working_folder()),
                "give an existing folder, or a hub id such as `org/name` or `org/name@revision`",
            ));
        }
        let repo = RepoId::parse(name)?;
        let file = file.map(|(_, file)| file);
        Self::open_repo(id_or_dir, &repo, file, environment)?.with_gguf(file)
    }

    /// With a GGUF file of it, which stands for all others.
    fn with_gguf(mut self, file: Option<&str>) -> Result<Self> {
        if let Some(file) = file {
            let shards = gguf::shards(file);
            let found = |shard: &String| match self.path(shard)? {
                Some(path) => Ok(path),
                None if shards.len() > 1 => {
                    let problem = format!("has no {shard}, one of {} shards", shards.len());
                    Err(Error::weights(self.dir(), problem, "fetch that file as well"))
                }
                None => self.require(shard),
            };
            let paths = shards.iter().map(found).collect::<Result<Vec<_>>>()?;
            self.gguf = Some(Arc::new(Gguf::open(&paths)?));
        }
        Ok(self)
    }

    /// A repository; `file` is known to be in it.
    fn open_repo(id: &str, repo: &RepoId, file: Option<&str>, environment: &Environment) -> Result<Self> {
        #[cfg(not(feature = "hub"))]
        let _ = file;
        let checkpoint = |dir, missing| Self {
            id: id.into(),
            dir,
            component: String::new(),
            source: Source::Snapshot { missing },
            gguf: None,
            single: None,
        };
        match (cache::snapshot(&environment.cache, repo)?, offline_reason(environment)) {
            (Some(dir), Some(why)) => Ok(checkpoint(dir, MissingFiles::Stay { why })),
            (None, Some(why)) => Err(not_cached(id, repo, environment, why)),
            #[cfg(feature = "hub")]
            (Some(dir), None) => {
                let remote = download::Remote::pinned(repo, &dir, environment);
                Ok(checkpoint(dir, MissingFiles::Download(remote)))
            }
            #[cfg(feature = "hub")]
            (None, None) => {
                let (dir, remote) = download::Remote::connect(id, repo, file, environment)?;
                Ok(checkpoint(dir, MissingFiles::Download(remote)))
            }
            #[cfg(not(feature = "hub"))]
            (_, None) => Err(not_cached(id, repo, environment, NO_NETWORK)),
        }
    }

    /// The id or path it was opened by.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The folder that holds its files: as given, or the snapshot in the cache.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The GGUF file that it was opened by; in a page none is.
    pub fn gguf(&self) -> Option<&Gguf> {
        self.gguf.as_deref().filter(|_| cfg!(not(target_family = "wasm")))
    }

    /// The path of one of its files (`1_Pooling/config.json`), downloaded if need be; `None` when the
    /// checkpoint has no such file.
    ///
    /// # Errors
    /// When the name leads out of the checkpoint, a link points nowhere, or a download fails.
    pub fn path(&self, file: &str) -> Result<Option<PathBuf>> {
        self.check_name(file)?;
        let path = self.dir.join(file);
        if files::is_file(&path) {
            return Ok(Some(path));
        }
        if cfg!(not(target_family = "wasm")) && path.symlink_metadata().is_ok_and(|m| m.is_symlink()) {
            let target = std::fs::read_link(&path).unwrap_or_default();
            return Err(Error::hub(
                &self.id,
                format!("{} is a link to {}, which does not exist", path.display(), target.display()),
                "the cache is damaged or the link was copied without its target: remove the link and download \
                 the file again",
            ));
        }
        match &self.source {
            Source::Folder | Source::Snapshot { missing: MissingFiles::Stay { .. } } => Ok(None),
            #[cfg(feature = "hub")]
            Source::Snapshot { missing: MissingFiles::Download(remote) } => {
                remote.get(&self.id, &format!("{}{file}", self.component))
            }
        }
    }

    /// One component of a pipeline, such as `tokenizer`: the files of its folder.
    #[must_use]
    pub fn component(&self, name: &str) -> Self {
        let component = format!("{}{name}/", self.component);
        Self { dir: self.dir.join(name), component, gguf: None, ..self.clone() }
    }

    /// The path of a file that the checkpoint must have. A pipeline has its `model_index.json` in place of a `config.json`, and a model
    /// of `open_clip` its `open_clip_config.json`.
    ///
    /// # Errors
    /// As [`Checkpoint::path`], and when there is no such file.
    pub fn require(&self, file: &str) -> Result<PathBuf> {
        if file == "config.json" && self.path(file)?.is_none() {
            for instead in [INDEX, open_clip::CONFIG] {
                if let Some(path) = self.path(instead)? {
                    return Ok(path);
                }
            }
        }
        if let Some(single) = self.whole()
            && (self.implied(file)?.is_some() || (file == "config.json" && self.component.is_empty()))
        {
            return Ok(single.path().to_owned());
        }
        if let Some(path) = self.path(file)? {
            return Ok(path);
        }
        let help = match &self.source {
            Source::Folder => format!("put {file} into that folder, or give the folder that has it"),
            Source::Snapshot { missing: MissingFiles::Stay { why } } => {
                format!("{why}; fetch the file where there is a network: `hf download {} {file}`", self.id)
            }
            #[cfg(feature = "hub")]
            Source::Snapshot { missing: MissingFiles::Download(remote) } => remote.why_missing(),
        };
        Err(Error::hub(&self.id, format!("no {file} in {}", self.dir.display()), help))
    }

    /// One of its JSON files, parsed, or what its GGUF file has in place of it; `None` when the checkpoint has no such file. The
    /// `_class_name` of a `config.json` of `diffusers` also stands in its `model_type`, as `diffusers:UNet2DConditionModel`, and in
    /// its `architectures`; what `open_clip` has in place of a `config.json` says `open_clip:CoCa` there.
    ///
    /// # Errors
    /// As [`Checkpoint::path`], and when the file cannot be read or is not JSON.
    pub fn json(&self, file: &str) -> Result<Option<serde_json::Value>> {
        if let Some(gguf) = self.gguf()
            && let Some(json) = gguf.json(file)?
        {
            return Ok(Some(json));
        }
        if let Some(mut implied) = self.implied(file)? {
            if file == "config.json" {
                class_name(&mut implied);
            }
            return Ok(Some(implied));
        }
        let Some(path) = self.path(file)? else {
            if file != "config.json" {
                return Ok(None);
            }
            let mut pipeline = self.pipeline()?;
            pipeline.iter_mut().for_each(class_name);
            return if pipeline.is_some() { Ok(pipeline) } else { self.open_clip() };
        };
        let bytes = files::read(&path).map_err(|e| Error::io(&path, e))?;
        let mut json =
            serde_json::from_slice(&bytes).or_else(|e| with_infinity(&bytes).ok_or(e)).map_err(|e| {
                Error::config(
                    &path,
                    format!("not JSON: {e}"),
                    "the file is damaged or cut short: fetch it again",
                )
            })?;
        if file == "config.json" {
            class_name(&mut json);
        }
        Ok(Some(json))
    }

    /// Only names below the folder: `..`, absolute paths and drive letters lead out of it.
    fn check_name(&self, file: &str) -> Result<()> {
        let inside = !file.is_empty()
            && !file.contains('\\')
            && Path::new(file).components().all(|c| matches!(c, Component::Normal(_)));
        if inside {
            return Ok(());
        }
        Err(Error::hub(
            &self.id,
            format!("`{file}` is not a name of a file inside the checkpoint"),
            "use names relative to the checkpoint's folder, without `..`",
        ))
    }
}

/// Why a build without the feature `hub` downloads nothing.
const NO_NETWORK: &str = "this build cannot download: the feature `hub` is off";

/// Why nothing can be downloaded, if so.
fn offline_reason(environment: &Environment) -> Option<&'static str> {
    if environment.offline {
        Some("HF_HUB_OFFLINE is set")
    } else if cfg!(feature = "hub") {
        None
    } else {
        Some(NO_NETWORK)
    }
}

fn not_cached(id: &str, repo: &RepoId, environment: &Environment, why: &str) -> Error {
    let folder = environment.cache.join(cache::folder_name(repo));
    Error::hub(
        id,
        format!(
            "no folder of that name, and not in the cache: looked for {} in {} ({why})",
            cache::wanted(repo),
            folder.display(),
        ),
        format!(
            "fetch it where there is a network (`hf download {}`) and point HF_HOME or HF_HUB_CACHE there; or \
             give a folder",
            repo.name()
        ),
    )
}

fn working_folder() -> String {
    std::env::current_dir().map_or_else(|_| "the working folder".into(), |d| d.display().to_string())
}

/// JSON with Python's `Infinity` as a bare word, which older files hold, by what the reference writes in its place today.
pub(crate) fn with_infinity(bytes: &[u8]) -> Option<serde_json::Value> {
    let text = std::str::from_utf8(bytes).ok()?;
    // Every other piece between quotation marks lies in a string; files with escaped ones stay as they are.
    if !text.contains("Infinity") || text.contains("\\\"") {
        return None;
    }
    let pieces = text.split('"').enumerate().map(|(index, piece)| match index % 2 {
        0 => piece
            .replace("-Infinity", r#"{"__float__": "-\u0049nfinity"}"#)
            .replace("Infinity", r#"{"__float__": "Infinity"}"#),
        _ => piece.to_owned(),
    });
    serde_json::from_slice(pieces.collect::<Vec<_>>().join("\"").as_bytes()).ok()
}

#[cfg(test)]
mod tests;
