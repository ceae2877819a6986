//! What the tabs fetch: an HTTP server on loopback that knows only what was mounted, below a random path.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tiny_http::{Header, Method, Request, Response, Server as Http, StatusCode};

use crate::engine::folder::random;

/// Requests that are answered at the same time: weights must not hold up the next tab's page.
const THREADS: usize = 3;

/// Something that a tab may fetch, or may leave.
#[derive(Clone)]
pub(super) enum Resource {
    /// A file, whole or by byte range.
    File { path: PathBuf, kind: &'static str },
    /// Bytes in memory, whole or by byte range.
    Bytes { bytes: Arc<[u8]>, kind: &'static str },
    /// A place to post to; holds what was posted last.
    Inbox(Arc<Mutex<Option<Vec<u8>>>>),
}

impl Resource {
    /// The bytes that a tab fetches.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::File { path, .. } => std::fs::metadata(path).map(|file| file.len()).unwrap_or_default(),
            Self::Bytes { bytes, .. } => bytes.len() as u64,
            Self::Inbox(_) => 0,
        }
    }
}

type Mounted = Arc<Mutex<HashMap<String, Resource>>>;

/// The server; it stops when it is dropped.
pub(super) struct Server {
    http: Arc<Http>,
    mounted: Mounted,
    base: String,
}

impl Server {
    pub(super) fn start() -> io::Result<Self> {
        let http = Arc::new(Http::http("127.0.0.1:0").map_err(io::Error::other)?);
        let port = http.server_addr().to_ip().map(|address| address.port()).unwrap_or_default();
        let root = format!("/{:016x}{:016x}/", random(), random());
        let mounted = Mounted::default();
        for _ in 0..THREADS {
            let (http, mounted, root) = (Arc::clone(&http), Arc::clone(&mounted), root.clone());
            std::thread::Builder::new().name("weft-browser-files".to_owned()).spawn(move || {
                while let Ok(request) = http.recv() {
                    // A tab that went away before it had its answer is no concern of the server.
                    let _ = answer(request, &root, &mounted);
                }
            })?;
        }
        Ok(Self { http, mounted, base: format!("http://127.0.0.1:{port}{root}") })
    }

    /// Makes something available under a path; gives its address.
    pub(super) fn mount(&self, path: &str, resource: Resource) -> String {
        lock(&self.mounted).insert(path.to_owned(), resource);
        format!("{}{path}", self.base)
    }

    /// Takes away everything whose path begins so.
    pub(super) fn unmount(&self, prefix: &str) {
        lock(&self.mounted).retain(|path, _| !path.starts_with(prefix));
    }

    /// The address of the root, where the page is.
    pub(super) fn base(&self) -> &str {
        &self.base
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for _ in 0..THREADS {
            self.http.unblock();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that is held under these locks can be left half-changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(mut request: Request, root: &str, mounted: &Mounted) -> io::Result<()> {
    let found = request.url().strip_prefix(root).and_then(|path| lock(mounted).get(path).cloned());
    match (found, request.method()) {
        (Some(Resource::Inbox(inbox)), Method::Post) => {
            let mut body = vec![];
            request.as_reader().read_to_end(&mut body)?;
            *lock(&inbox) = Some(body);
            request.respond(Response::empty(204))
        }
        (Some(Resource::Bytes { bytes, kind }), Method::Get) => {
            let length = bytes.len() as u64;
            send(request, Cursor::new(bytes), length, kind)
        }
        (Some(Resource::File { path, kind }), Method::Get) => match File::open(path) {
            Ok(file) => {
                let length = file.metadata()?.len();
                send(request, file, length, kind)
            }
            Err(_) => request.respond(Response::empty(404)),
        },
        _ => request.respond(Response::empty(404)),
    }
}

/// Sends all of it, or the range that was asked for.
fn send(request: Request, mut from: impl Read + Seek, length: u64, kind: &str) -> io::Result<()> {
    let asked = request.headers().iter().find(|header| header.field.equiv("Range"));
    let asked = asked.map(|header| range(header.value.as_str(), length));
    let mut headers = vec![header("Content-Type", kind)];
    // Everything stays as it is for as long as it is mounted, and the engine is needed by every tab.
    headers.push(header(
        "Cache-Control",
        if kind == WASM || kind == SCRIPT { "max-age=86400" } else { "no-store" },
    ));
    let (status, start, end) = match asked {
        None => (200, 0, length),
        Some(Some((start, end))) => {
            headers.push(header("Content-Range", &format!("bytes {start}-{}/{length}", end - 1)));
            (206, start, end)
        }
        Some(None) => return request.respond(Response::empty(416)),
    };
    from.seek(SeekFrom::Start(start))?;
    let body = from.take(end - start);
    let size = usize::try_from(end - start).ok();
    request.respond(Response::new(
        StatusCode(status),
        headers.into_iter().flatten().collect(),
        body,
        size,
        None,
    ))
}

/// The media type of scripts.
pub(super) const SCRIPT: &str = "text/javascript";
/// The media type of WebAssembly, which browsers compile while it arrives.
pub(super) const WASM: &str = "application/wasm";
/// The media type of the page.
pub(super) const PAGE: &str = "text/html";
/// The media type of models and tensors.
pub(super) const BINARY: &str = "application/octet-stream";

fn header(name: &str, value: &str) -> Option<Header> {
    Header::from_bytes(name, value).ok()
}

/// The first byte and the one after the last, of `bytes=0-99`, `bytes=100-` or `bytes=-100`.
fn range(asked: &str, length: u64) -> Option<(u64, u64)> {
    let (first, last) = asked.strip_prefix("bytes=")?.split_once('-')?;
    let (start, end) = match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) => (first, last.checked_add(1)?.min(length)),
        (Ok(first), Err(_)) if last.is_empty() => (first, length),
        (Err(_), Ok(count)) if first.is_empty() => (length.saturating_sub(count), length),
        _ => return None,
    };
    (start < end).then_some((start, end))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpStream;

    use super::*;

    fn fetch(server: &Server, path: &str, head: &str, body: &[u8]) -> (u16, String) {
        let rest = server.base().strip_prefix("http://").unwrap();
        let (host, root) = rest.split_once('/').unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        let path = path.replace("ROOT", &format!("/{root}"));
        let (method, path) = path.split_once(' ').unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n{head}\r\n"
        )
        .unwrap();
        stream.write_all(body).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    #[test]
    fn only_what_is_mounted_is_served() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        std::fs::write(&path, "0123456789").unwrap();
        let server = Server::start().unwrap();
        server.mount("1/data/0", Resource::File { path, kind: BINARY });
        server.mount("1/model.onnx", Resource::Bytes { bytes: Arc::from(*b"onnx"), kind: BINARY });
        assert_eq!(fetch(&server, "GET ROOT1/data/0", "", b""), (200, "0123456789".to_owned()));
        assert_eq!(fetch(&server, "GET ROOT1/data/0", "Range: bytes=2-4\r\n", b""), (206, "234".to_owned()));
        assert_eq!(fetch(&server, "GET ROOT1/data/0", "Range: bytes=99-\r\n", b"").0, 416);
        assert_eq!(fetch(&server, "GET ROOT1/model.onnx", "", b""), (200, "onnx".to_owned()));
        for refused in
            ["GET /1/data/0", "GET ROOT1/data/../data/0", "GET ROOT../1/data/0", "GET ROOT1/data/1"]
        {
            assert_eq!(fetch(&server, refused, "", b"").0, 404, "{refused}");
        }
        assert_eq!(fetch(&server, "POST ROOT1/data/0", "", b"x").0, 404);
        server.unmount("1/");
        assert_eq!(fetch(&server, "GET ROOT1/data/0", "", b"").0, 404);
    }

    #[test]
    fn what_is_posted_arrives() {
        let server = Server::start().unwrap();
        let inbox = Arc::default();
        server.mount("2/outputs", Resource::Inbox(Arc::clone(&inbox)));
        assert_eq!(fetch(&server, "POST ROOT2/outputs", "", b"tensors").0, 204);
        assert_eq!(lock(&inbox).take(), Some(b"tensors".to_vec()));
        assert_eq!(fetch(&server, "GET ROOT2/outputs", "", b"").0, 404);
    }

    #[test]
    fn ranges_stay_within_the_file() {
        assert_eq!(range("bytes=0-99", 10), Some((0, 10)));
        assert_eq!(range("bytes=-3", 10), Some((7, 10)));
        assert_eq!(range("bytes=10-", 10), None);
        assert_eq!(range("bytes=5-2", 10), None);
        assert_eq!(range("bytes=0-1,4-5", 10), None);
        assert_ne!(random(), random());
    }
}
