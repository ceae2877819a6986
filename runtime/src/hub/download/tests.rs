//! Against a server of this machine that answers as the hub does.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;

use super::*;
use crate::hub::Checkpoint;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const CONFIG: &str = r#"{"model_type": "bert"}"#;

/// A hub with `org/open` and `org/closed`; remembers what it was asked for.
fn hub() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            answer(stream.unwrap(), &seen);
        }
    });
    (address, asked)
}

fn answer(mut stream: TcpStream, asked: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
    let request = lines.next().unwrap();
    let headers: Vec<String> =
        lines.take_while(|line| !line.is_empty()).map(|line| line.to_lowercase()).collect();
    let path = request.split(' ').nth(1).unwrap().to_string();
    let only_first = headers.iter().any(|line| line == "range: bytes=0-0");
    let authorized = headers.iter().any(|line| line == "authorization: bearer hf_fake");
    asked.lock().unwrap().push(path.clone());
    let response = if path.starts_with("/org/closed") && !authorized {
        "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_string()
    } else if path.ends_with("/config.json") && !path.contains("/absent/") {
        let body = if only_first { &CONFIG[..1] } else { CONFIG };
        format!(
            "HTTP/1.1 206 Partial Content\r\nx-repo-commit: {COMMIT}\r\netag: \"e1\"\r\ncontent-length: {}\r\n\
             content-range: bytes 0-{}/{}\r\nconnection: close\r\n\r\n{body}",
            body.len(),
            body.len() - 1,
            CONFIG.len()
        )
    } else {
        "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_string()
    };
    let _ = stream.write_all(response.as_bytes());
}

fn environment(cache: &Path, endpoint: &str, token: Option<&str>) -> Environment {
    Environment {
        cache: cache.into(),
        offline: false,
        endpoint: endpoint.into(),
        token: token.map(str::to_string),
    }
}

#[test]
fn what_is_missing_is_downloaded_once() {
    let (endpoint, asked) = hub();
    let folder = tempfile::tempdir().unwrap();
    let online = environment(folder.path(), &endpoint, None);
    let checkpoint = Checkpoint::open_in("org/open", &online).unwrap();
    assert!(checkpoint.dir().ends_with(format!("models--org--open/snapshots/{COMMIT}")));
    assert_eq!(checkpoint.json("config.json").unwrap().unwrap()["model_type"], "bert");
    assert!(checkpoint.path("tokenizer.json").unwrap().is_none());
    assert!(checkpoint.path("1_Pooling/config.json").unwrap().is_some());
    let pinned = format!("/org/open/resolve/{COMMIT}/tokenizer.json");
    assert!(asked.lock().unwrap().contains(&pinned), "files are asked for by commit");

    asked.lock().unwrap().clear();
    let again = Checkpoint::open_in("org/open", &online).unwrap();
    assert!(again.path("config.json").unwrap().is_some() && again.path("tokenizer.json").unwrap().is_none());
    assert!(asked.lock().unwrap().is_empty(), "the cache remembers files and their absence");

    let offline = Environment { offline: true, ..online };
    assert!(Checkpoint::open_in("org/open", &offline).unwrap().path("config.json").unwrap().is_some());
}

#[test]
fn a_private_repository_asks_for_a_token() {
    let (endpoint, _) = hub();
    let folder = tempfile::tempdir().unwrap();
    let closed = environment(folder.path(), &endpoint, None);
    let text = Checkpoint::open_in("org/closed", &closed).unwrap_err().to_string();
    assert!(text.contains("HF_TOKEN") && text.contains("401"), "{text}");
    let opened = environment(folder.path(), &endpoint, Some("hf_fake"));
    assert!(Checkpoint::open_in("org/closed", &opened).is_ok());
}

#[test]
fn an_unknown_repository_names_the_cache_and_the_hub() {
    let (endpoint, _) = hub();
    let folder = tempfile::tempdir().unwrap();
    let online = environment(folder.path(), &endpoint, None);
    let text = Checkpoint::open_in("org/absent@absent", &online).unwrap_err().to_string();
    assert!(text.contains(&endpoint) && text.contains("not in the cache"), "{text}");
}

#[test]
fn a_cached_snapshot_opens_without_a_network() {
    let (endpoint, _) = hub();
    let folder = tempfile::tempdir().unwrap();
    Checkpoint::open_in("org/open", &environment(folder.path(), &endpoint, None)).unwrap();
    // Nothing listens there.
    let cut_off = environment(folder.path(), "http://127.0.0.1:9", None);
    let checkpoint = Checkpoint::open_in("org/open", &cut_off).unwrap();
    assert!(checkpoint.path("config.json").unwrap().is_some());
    assert!(checkpoint.path("special_tokens_map.json").unwrap().is_none());
    let text = checkpoint.require("model.safetensors").unwrap_err().to_string();
    assert!(text.contains("no model.safetensors") && text.contains("could not be reached"), "{text}");
    let text = Checkpoint::open_in("org/other", &cut_off).unwrap_err().to_string();
    assert!(text.contains("could not be fetched") && text.contains("check the network"), "{text}");
}
