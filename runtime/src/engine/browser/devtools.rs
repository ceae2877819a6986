//! The DevTools protocol: commands in, answers out, over the pipe that only this process holds. A tab is a session of it.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::shared::lock;

/// Why a browser did not do what it was told.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    /// The tab or the whole browser is gone.
    #[error("the browser {0}")]
    Gone(String),
    /// It did not answer in time.
    #[error("the browser did not {what} within {} s; WEFT_BROWSER_TIMEOUT gives it more seconds", .limit.as_secs())]
    Slow { what: String, limit: Duration },
    /// It answered with an error.
    #[error("{0}")]
    Refused(String),
}

/// Both directions of a browser's pipe; each message ends with a zero byte.
pub(super) struct Pipe {
    /// None once this process hangs up.
    commands: Mutex<Option<Box<dyn Write + Send>>>,
    waiting: Arc<Mutex<Waiting>>,
}

/// Who waits for which answer.
#[derive(Default)]
struct Waiting {
    calls: HashMap<u64, Call>,
    /// The sessions whose tabs have crashed or are closed.
    lost: HashSet<String>,
    /// Whether the browser hung up.
    over: bool,
    /// The number of the last call.
    last: u64,
}

/// Whoever waits for an answer in a session hears nothing more when this is dropped.
struct Call {
    session: Option<String>,
    answer: Sender<Json>,
}

impl Pipe {
    /// Begins to listen.
    pub(super) fn new(
        commands: impl Write + Send + 'static,
        answers: impl Read + Send + 'static,
    ) -> Arc<Self> {
        let waiting: Arc<Mutex<Waiting>> = Arc::default();
        let pipe = Self { commands: Mutex::new(Some(Box::new(commands))), waiting: Arc::clone(&waiting) };
        std::thread::spawn(move || {
            let (mut answers, mut message) = (BufReader::new(answers), vec![]);
            while answers.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                message.pop();
                if let Ok(message) = serde_json::from_slice(&message) {
                    lock(&waiting).take(message);
                }
                message.clear();
            }
            let mut waiting = lock(&waiting);
            waiting.over = true;
            waiting.calls.clear();
        });
        Arc::new(pipe)
    }

    /// Tells the browser to end.
    pub(super) fn hang_up(&self) {
        *lock(&self.commands) = None;
    }
}

impl Waiting {
    /// Gives an answer to who waits for it; ends the waiting for a tab that is gone.
    fn take(&mut self, message: Json) {
        if let Some(call) = message["id"].as_u64().and_then(|id| self.calls.remove(&id)) {
            let _ = call.answer.send(message);
            return;
        }
        let lost = match message["method"].as_str() {
            Some("Inspector.targetCrashed") => &message["sessionId"],
            Some("Target.detachedFromTarget") => &message["params"]["sessionId"],
            _ => return,
        };
        if let Some(lost) = lost.as_str() {
            self.calls.retain(|_, call| call.session.as_deref() != Some(lost));
            self.lost.insert(lost.to_owned());
        }
    }

    /// Why nothing can be asked in a session.
    fn gone(&self, session: Option<&str>) -> Option<Trouble> {
        let lost = session.is_some_and(|session| self.lost.contains(session));
        let why = if lost { "tab crashed, perhaps for lack of memory" } else { "hung up" };
        (lost || self.over).then(|| Trouble::Gone(why.to_owned()))
    }
}

/// A connection to the browser itself or to one of its tabs.
pub(super) struct Connection {
    pipe: Arc<Pipe>,
    session: Option<String>,
}

impl Connection {
    /// To the browser itself.
    pub(super) fn new(pipe: &Arc<Pipe>) -> Self {
        Self { pipe: Arc::clone(pipe), session: None }
    }

    /// To one of its tabs, by the target's id.
    pub(super) fn attach(&self, target: &Json, limit: Duration) -> Result<Self, Trouble> {
        let params = json!({ "targetId": target, "flatten": true });
        let answer = self.call("connect to a tab", "Target.attachToTarget", &params, limit)?;
        let session = answer["sessionId"].as_str().map(str::to_owned);
        let session = session.ok_or_else(|| Trouble::Refused("a tab has no session".to_owned()))?;
        Ok(Self { pipe: Arc::clone(&self.pipe), session: Some(session) })
    }

    /// Sends a command and waits for its answer; `what` completes "did not …".
    pub(super) fn call(
        &self,
        what: &str,
        method: &str,
        params: &Json,
        limit: Duration,
    ) -> Result<Json, Trouble> {
        let (sender, answer) = mpsc::channel();
        let session = self.session.as_deref();
        let id = {
            let mut waiting = lock(&self.pipe.waiting);
            if let Some(gone) = waiting.gone(session) {
                return Err(gone);
            }
            waiting.last += 1;
            let id = waiting.last;
            waiting.calls.insert(id, Call { session: self.session.clone(), answer: sender });
            id
        };
        let mut command = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = session {
            command["sessionId"] = session.into();
        }
        let command = [command.to_string().as_bytes(), &[0]].concat();
        let sent = match &mut *lock(&self.pipe.commands) {
            Some(commands) => commands.write_all(&command).and_then(|()| commands.flush()).is_ok(),
            None => false,
        };
        if !sent {
            return Err(Trouble::Gone("hung up".to_owned()));
        }
        let answer = answer.recv_timeout(limit).map_err(|ended| {
            let mut waiting = lock(&self.pipe.waiting);
            waiting.calls.remove(&id);
            match (ended, waiting.gone(session)) {
                (RecvTimeoutError::Disconnected, Some(gone)) => gone,
                _ => Trouble::Slow { what: what.to_owned(), limit },
            }
        })?;
        match answer.get("error") {
            Some(error) => Err(Trouble::Refused(format!("{method}: {}", text(&error["message"])))),
            None => Ok(answer["result"].clone()),
        }
    }

    /// Evaluates an expression that gives a promise; gives what it resolves to.
    pub(super) fn evaluate(&self, what: &str, expression: &str, limit: Duration) -> Result<Json, Trouble> {
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.call(what, "Runtime.evaluate", &params, limit)?;
        match answer.get("exceptionDetails") {
            Some(details) => {
                let said = [&details["exception"]["description"], &details["text"]];
                let said = said.into_iter().find(|said| said.is_string()).unwrap_or(details);
                Err(Trouble::Refused(text(said)))
            }
            None => Ok(answer["result"]["value"].clone()),
        }
    }
}

fn text(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A browser that answers each command with the next of these messages, and hangs up after the last.
    fn played(answers: Vec<Vec<Json>>) -> Connection {
        let (commands, to_browser) = std::io::pipe().unwrap();
        let (from_browser, mut messages) = std::io::pipe().unwrap();
        std::thread::spawn(move || {
            let mut commands = BufReader::new(commands);
            for answer in answers {
                commands.read_until(0, &mut vec![]).unwrap();
                for message in answer {
                    messages.write_all(&[message.to_string().as_bytes(), &[0]].concat()).unwrap();
                }
            }
            commands.read_until(0, &mut vec![]).unwrap();
        });
        Connection::new(&Pipe::new(to_browser, from_browser))
    }

    const LIMIT: Duration = Duration::from_secs(5);

    #[test]
    fn answers_are_matched_by_their_ids() {
        let event = json!({"method": "Page.loaded"});
        let answer = json!({"id": 1, "result": {"product": "HeadlessChrome/153"}});
        let refused = json!({"id": 2, "error": {"message": "no such target"}});
        let connection = played(vec![vec![event, answer], vec![refused]]);
        let version = connection.call("tell its version", "Browser.getVersion", &json!({}), LIMIT).unwrap();
        assert_eq!(version["product"], "HeadlessChrome/153");
        let error = connection.call("open a tab", "Target.createTarget", &json!({}), LIMIT).unwrap_err();
        assert_eq!(error.to_string(), "Target.createTarget: no such target");
        let error = connection.call("open a tab", "Target.createTarget", &json!({}), LIMIT).unwrap_err();
        assert_eq!(error.to_string(), "the browser hung up");
    }

    #[test]
    fn silence_and_crashes_are_told_apart() {
        let attached = json!({"id": 1, "result": {"sessionId": "A"}});
        let other = json!({"method": "Inspector.targetCrashed", "sessionId": "B"});
        let crash = json!({"method": "Inspector.targetCrashed", "sessionId": "A"});
        let still = json!({"id": 4, "result": {}});
        let connection = played(vec![vec![attached], vec![other], vec![crash], vec![still]]);
        let tab = connection.attach(&json!("T"), LIMIT).unwrap();
        let error = tab.evaluate("run the model", "run()", Duration::from_millis(50)).unwrap_err();
        assert!(matches!(error, Trouble::Slow { .. }), "{error}");
        assert!(error.to_string().contains("did not run the model within"), "{error}");
        for _ in 0..2 {
            let error = tab.evaluate("run the model", "run()", LIMIT).unwrap_err();
            assert!(matches!(&error, Trouble::Gone(why) if why.contains("tab crashed")), "{error}");
        }
        connection.call("close a tab", "Target.closeTarget", &json!({}), LIMIT).unwrap();
    }
}
