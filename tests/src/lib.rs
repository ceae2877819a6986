//! A place to try the generator in: specs and templates of one's own, beside the built-in ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use weft_generator::render::Setting;
use weft_generator::spec::load::Folder;
use weft_generator::{Error, Report, Request, generate, template};

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// A temporary folder with `specs`, `specs/templates` and `out`.
#[derive(Debug)]
pub struct Workshop {
    dir: TempDir,
    /// Changes the request of the next runs.
    pub adjust: fn(&mut Request),
}

impl Default for Workshop {
    fn default() -> Self {
        Self::new()
    }
}

impl Workshop {
    /// An empty one.
    pub fn new() -> Self {
        #[allow(clippy::unwrap_used, reason = "a test that has no temporary folder cannot run")]
        let dir = tempfile::tempdir().unwrap();
        Self { dir, adjust: |_| {} }
    }

    /// One with the spec of the fixture, `minerva`.
    pub fn with_fixture() -> Self {
        let workshop = Self::new();
        workshop.spec("text-encoders/minerva.yaml", include_str!("../fixtures/text-encoders/minerva.yaml"));
        workshop
    }

    /// A path in the workshop.
    pub fn path(&self, inside: &str) -> PathBuf {
        self.dir.path().join(inside)
    }

    /// Writes a spec.
    pub fn spec(&self, path: &str, text: &str) -> &Self {
        self.write(&format!("specs/{path}"), text)
    }

    /// Writes a template; it overrides the built-in one of that path.
    pub fn template(&self, path: &str, text: &str) -> &Self {
        self.write(&format!("specs/templates/{path}"), text)
    }

    /// Writes any file.
    #[allow(clippy::unwrap_used, reason = "a test that cannot write its files cannot run")]
    pub fn write(&self, path: &str, text: &str) -> &Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// What a run is asked.
    pub fn request(&self) -> Request {
        let mut request = request(self.dir.path());
        (self.adjust)(&mut request);
        request
    }

    /// Generates.
    ///
    /// # Errors
    /// The generator's.
    pub fn run(&self) -> Result<Report, Error> {
        generate(&self.request())
    }

    /// Compares only.
    ///
    /// # Errors
    /// The generator's.
    pub fn check(&self) -> Result<Report, Error> {
        generate(&Request { check: true, ..self.request() })
    }

    /// What a run that must fail says; it must leave what is in `out` alone.
    ///
    /// # Panics
    /// When it succeeds, or writes something.
    #[allow(clippy::unwrap_used, reason = "the test fails here")]
    pub fn errors(&self) -> String {
        let before = self.files("out");
        let error = self.run().unwrap_err();
        assert_eq!(before, self.files("out"), "something was written in spite of {error}");
        error.to_string()
    }

    /// All files below a folder, by path.
    pub fn files(&self, folder: &str) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.path(folder)];
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if let (Ok(inside), Ok(bytes)) =
                    (path.strip_prefix(self.path(folder)), fs::read(&path))
                {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    files.insert(inside.to_string_lossy().replace('\\', "/"), text);
                }
            }
        }
        files
    }
}

/// What a run is asked in a folder with `specs`, `specs/templates` and `out`.
pub fn request(dir: &Path) -> Request {
    let model_specs = root().join("model_specs");
    let specs = |dir: PathBuf, label: &str, generate| Folder {
        dir,
        label: label.to_owned(),
        shown: PathBuf::from(label),
        generate,
    };
    let templates = |dir: PathBuf, label: &str| template::Folder {
        dir,
        label: label.to_owned(),
        shown: PathBuf::from(label),
    };
    let mut sources = vec![templates(root().join("templates"), "templates")];
    if dir.join("specs/templates").is_dir() {
        sources.push(templates(dir.join("specs/templates"), "specs/templates"));
    }
    Request {
        specs: vec![
            specs(model_specs.clone(), "model_specs", false),
            specs(dir.join("specs"), "specs", true),
        ],
        templates: sources,
        model_specs,
        out: dir.join("out"),
        out_shown: PathBuf::from("out"),
        categories: vec![],
        models: vec![],
        check: false,
        setting: Setting {
            weft: format!("path = {:?}", root().join("runtime")),
            member: false,
            goldens: "../../goldens".to_owned(),
            command: "cargo xtask generate --specs specs --out out".to_owned(),
        },
        cache: Some(dir.join("target/weft-generate.json")),
        staging: dir.join("target/weft-generate"),
        identity: "tests".to_owned(),
    }
}
