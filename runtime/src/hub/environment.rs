//! The environment variables of `huggingface_hub`.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where the cache is and whether, from where and as whom to download.
#[derive(Clone)]
pub struct Environment {
    /// The cache of repositories: `HF_HUB_CACHE`, else `HUGGINGFACE_HUB_CACHE`, else `$HF_HOME/hub`, else
    /// `$XDG_CACHE_HOME/huggingface/hub`, else `~/.cache/huggingface/hub`.
    pub cache: PathBuf,
    /// `HF_HUB_OFFLINE` or `TRANSFORMERS_OFFLINE`: use the cache alone.
    pub offline: bool,
    /// `HF_ENDPOINT`: the hub or a mirror of it.
    pub endpoint: String,
    /// `HF_TOKEN`, else `HUGGING_FACE_HUB_TOKEN`, else the file `HF_TOKEN_PATH` or `$HF_HOME/token`. Never printed.
    pub token: Option<String>,
}

impl Environment {
    /// The variables of this process.
    pub fn from_process() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// The variables that `get` gives.
    pub fn from_variables(get: impl Fn(&str) -> Option<String>) -> Self {
        let get = |name: &str| get(name).map(|v| v.trim().to_string()).filter(|v| !v.is_empty());
        let user =
            get("HOME").or_else(|| get("USERPROFILE")).map_or_else(|| PathBuf::from("."), PathBuf::from);
        let folder = |name: &str| get(name).map(|v| expand(&v, &user));
        let home = folder("HF_HOME").unwrap_or_else(|| {
            folder("XDG_CACHE_HOME").unwrap_or_else(|| user.join(".cache")).join("huggingface")
        });
        let cache = folder("HF_HUB_CACHE")
            .or_else(|| folder("HUGGINGFACE_HUB_CACHE"))
            .unwrap_or_else(|| home.join("hub"));
        let token = get("HF_TOKEN").or_else(|| get("HUGGING_FACE_HUB_TOKEN")).or_else(|| {
            let file = folder("HF_TOKEN_PATH").unwrap_or_else(|| home.join("token"));
            std::fs::read_to_string(file).ok().map(|t| t.trim().to_string()).filter(|t| !t.is_empty())
        });
        Self {
            cache,
            offline: ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"]
                .iter()
                .any(|n| get(n).is_some_and(|v| truth(&v))),
            endpoint: get("HF_ENDPOINT")
                .map_or_else(|| "https://huggingface.co".into(), |v| v.trim_end_matches('/').to_string()),
            token,
        }
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("cache", &self.cache)
            .field("offline", &self.offline)
            .field("endpoint", &self.endpoint)
            .field("token", &self.token.as_ref().map(|_| "…"))
            .finish()
    }
}

/// The spellings of yes that `huggingface_hub` knows.
fn truth(value: &str) -> bool {
    matches!(value.to_ascii_uppercase().as_str(), "1" | "ON" | "YES" | "TRUE")
}

fn expand(value: &str, user: &Path) -> PathBuf {
    match value.strip_prefix('~') {
        Some("") => user.into(),
        Some(rest) if rest.starts_with(['/', '\\']) => user.join(&rest[1..]),
        _ => value.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &str)]) -> Environment {
        let pairs: Vec<(String, String)> =
            pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        Environment::from_variables(|name| pairs.iter().find(|(k, _)| k == name).map(|(_, v)| v.clone()))
    }

    #[test]
    fn the_cache_follows_the_variables_in_order() {
        let cases: [(&[(&str, &str)], &str); 6] = [
            (&[("HOME", "/h")], "/h/.cache/huggingface/hub"),
            (&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")], "/x/huggingface/hub"),
            (&[("HOME", "/h"), ("HF_HOME", "/a")], "/a/hub"),
            (&[("HOME", "/h"), ("HF_HOME", "~/a")], "/h/a/hub"),
            (&[("HF_HOME", "/a"), ("HUGGINGFACE_HUB_CACHE", "/b")], "/b"),
            (&[("HUGGINGFACE_HUB_CACHE", "/b"), ("HF_HUB_CACHE", "/c")], "/c"),
        ];
        for (variables, cache) in cases {
            assert_eq!(with(variables).cache, Path::new(cache), "{variables:?}");
        }
    }

    #[test]
    fn offline_endpoint_and_token() {
        let plain = with(&[("HOME", "/nowhere")]);
        assert!(!plain.offline && plain.token.is_none());
        assert_eq!(plain.endpoint, "https://huggingface.co");
        for yes in ["1", "true", "ON", "Yes"] {
            assert!(with(&[("HF_HUB_OFFLINE", yes)]).offline);
        }
        assert!(!with(&[("HF_HUB_OFFLINE", "0")]).offline);
        assert!(with(&[("TRANSFORMERS_OFFLINE", "1")]).offline);
        assert_eq!(with(&[("HF_ENDPOINT", "https://mirror.example/")]).endpoint, "https://mirror.example");
        let secret = with(&[("HF_TOKEN", "hf_secret")]);
        assert_eq!(secret.token.as_deref(), Some("hf_secret"));
        assert!(!format!("{secret:?}").contains("secret"));
    }

    #[test]
    fn the_token_may_be_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), "hf_file\n").unwrap();
        let home = folder.path().to_str().unwrap();
        assert_eq!(with(&[("HF_HOME", home)]).token.as_deref(), Some("hf_file"));
    }
}
