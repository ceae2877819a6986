//! One browser for the whole process, started when it is first needed, and its tabs.
//!
//! Loading the engine into a fresh tab takes most of a second, opening a small model in it some hundredths. So
//! models share a tab as long as nobody waits for it, nothing has failed in it and it has not grown large.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use prost::Message;
use serde_json::{Value as Json, json};

use super::devtools::{Connection, Trouble};
use super::process::Process;
use super::programs::{self, Programs};
use super::server::{BINARY, PAGE, Resource, SCRIPT, Server, WASM};
use crate::graph::{Dim, Dtype};
use crate::{Error, Hardware, Result, onnx};

/// What opening and preparing a tab may take.
const TAB: Duration = Duration::from_secs(60);

/// What closing one may take; the browser's end closes the rest.
const CLOSE: Duration = Duration::from_secs(5);

/// Models that one tab opens.
const USES: usize = 100;

/// Bytes of models that one tab opens: its memory grows and never shrinks.
const BYTES: u64 = 256 << 20;

/// A browser with what it serves to its tabs.
pub(super) struct Browser {
    pub(super) server: Server,
    main: Connection,
    process: Mutex<Process>,
    /// The tabs that take further models.
    tabs: Mutex<Vec<Arc<Tab>>>,
    programs: Programs,
    numbers: AtomicU64,
}

/// A tab with the engine in it; it is closed when its last model is dropped and it takes no more.
pub(super) struct Tab {
    page: Mutex<Page>,
    lost: AtomicBool,
}

/// What only one thread does at a time with a tab.
struct Page {
    connection: Connection,
    uses: usize,
    bytes: u64,
}

static BROWSERS: Mutex<BTreeMap<Hardware, Arc<Browser>>> = Mutex::new(BTreeMap::new());

impl Browser {
    /// The process's browser for a backend; another one after a crash.
    pub(super) fn of(hardware: Hardware) -> Result<Arc<Self>> {
        let programs = programs::find(hardware)?;
        let mut browsers = lock(&BROWSERS);
        if let Some(browser) = browsers.get(&hardware)
            && browser.programs == programs
            && lock(&browser.process).runs()
        {
            return Ok(Arc::clone(browser));
        }
        let browser = Arc::new(Self::start(hardware, programs)?);
        browsers.insert(hardware, Arc::clone(&browser));
        Ok(browser)
    }

    fn start(hardware: Hardware, programs: Programs) -> Result<Self> {
        let failed = |e: &dyn std::fmt::Display| Error::engine(hardware, format!("{}: {e}", programs.name));
        let server = Server::start().map_err(|e| failed(&e))?;
        let text = |text: &str, kind| Resource::Bytes { bytes: text.as_bytes().into(), kind };
        server.mount("", text(include_str!("page.html"), PAGE));
        server.mount("page.js", text(include_str!("page.js"), SCRIPT));
        server.mount("kept.onnx", Resource::Bytes { bytes: smallest().encode_to_vec().into(), kind: BINARY });
        for (file, kind) in [(programs::BUNDLE, SCRIPT), (programs::WASM, WASM)] {
            server.mount(&format!("ort/{file}"), Resource::File { path: programs.web.join(file), kind });
        }
        let process = Process::start(hardware, &programs)?;
        let main = Connection::new(&process.pipe);
        Ok(Self {
            server,
            main,
            process: Mutex::new(process),
            tabs: Mutex::default(),
            programs,
            numbers: AtomicU64::new(1),
        })
    }

    /// A number that no other model of this browser has.
    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// A tab for a model of this size: one that nobody waits for, or a fresh one.
    pub(super) fn tab(&self, bytes: u64) -> Result<Arc<Tab>, Trouble> {
        let mut tabs = lock(&self.tabs);
        tabs.retain(|tab| !tab.is_lost() && tab.page.try_lock().map_or(true, |page| !page.is_full()));
        for tab in &*tabs {
            if let Ok(mut page) = tab.page.try_lock()
                && page.bytes + bytes <= BYTES
            {
                page.uses += 1;
                page.bytes += bytes;
                return Ok(Arc::clone(tab));
            }
        }
        let connection = self.fresh()?;
        let tab = Arc::new(Tab {
            page: Mutex::new(Page { connection, uses: 1, bytes }),
            lost: AtomicBool::new(false),
        });
        tabs.push(Arc::clone(&tab));
        Ok(tab)
    }

    /// Opens a tab and waits for its page.
    fn fresh(&self) -> Result<Connection, Trouble> {
        let url = json!({ "url": self.server.base() });
        let answer = self.main.call("open a tab", "Target.createTarget", &url, TAB)?;
        let connection = self.main.attach(&answer["targetId"], TAB)?;
        connection.call("watch a tab", "Inspector.enable", &json!({}), TAB)?;
        let deadline = Instant::now() + TAB;
        let ready = "document.readyState === 'complete' && typeof weft === 'object'";
        while connection.evaluate("load its page", ready, TAB)? != Json::Bool(true) {
            if Instant::now() > deadline {
                return Err(Trouble::Slow { what: "load its page".to_owned(), limit: TAB });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(connection)
    }

    /// Has no further models opened in a tab in which one failed; those that are open stay.
    pub(super) fn retire(&self, tab: &Arc<Tab>) {
        lock(&self.tabs).retain(|other| !Arc::ptr_eq(other, tab));
    }
}

impl Tab {
    /// Calls one of the page's functions. After a crash or a timeout the tab and its models are lost.
    pub(super) fn call(&self, what: &str, function: &str, argument: &Json) -> Result<Json, Trouble> {
        let page = lock(&self.page);
        if self.is_lost() {
            return Err(Trouble::Gone("tab of this model has failed; load the model again".to_owned()));
        }
        let answer = page.connection.evaluate(what, &format!("weft.{function}({argument})"), limit());
        if matches!(answer, Err(Trouble::Gone(_) | Trouble::Slow { .. })) {
            self.lost.store(true, Ordering::Relaxed);
        }
        answer
    }

    fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Page {
    fn is_full(&self) -> bool {
        self.uses >= USES || self.bytes >= BYTES
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        let page = self.page.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Err(trouble) = page.connection.call("close a tab", "Page.close", &json!({}), CLOSE) {
            tracing::debug!(%trouble, "a tab was not closed");
        }
    }
}

/// `y = |x|`, of one number: a session that a tab keeps.
fn smallest() -> onnx::Model {
    let value = |name| onnx::ValueInfo::new(name, Dtype::F32, &[Dim::Fixed(1)]);
    let node = onnx::Node {
        input: vec!["x".to_owned()],
        output: vec!["y".to_owned()],
        op_type: "Abs".to_owned(),
        ..onnx::Node::default()
    };
    let graph = onnx::Graph {
        name: "kept".to_owned(),
        node: vec![node],
        input: vec![value("x")],
        output: vec![value("y")],
        ..onnx::Graph::default()
    };
    let version = onnx::OperatorSet { domain: String::new(), version: Some(21) };
    onnx::Model {
        ir_version: Some(10),
        graph: Some(graph),
        opset_import: vec![version],
        ..onnx::Model::default()
    }
}

/// How long a model may take to open or to run.
fn limit() -> Duration {
    let asked = std::env::var("WEFT_BROWSER_TIMEOUT").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(asked.unwrap_or(600))
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a panic interrupts is a browser's answer, and the next command has an id of its own.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
