//! The DevTools protocol: commands in, answers out, over one web socket per target.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use tungstenite::{Message, WebSocket};

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

/// A connection to the browser itself or to one of its tabs.
pub(super) struct Connection {
    socket: WebSocket<TcpStream>,
    last: u64,
}

impl Connection {
    /// Connects to a target: `/devtools/browser/…` or `/devtools/page/…`.
    pub(super) fn open(port: u16, path: &str) -> Result<Self, Trouble> {
        let gone =
            |e: &dyn std::fmt::Display| Trouble::Gone(format!("cannot be reached on port {port}: {e}"));
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map_err(|e| gone(&e))?;
        // Commands are small and wait for their answers.
        stream.set_nodelay(true).map_err(|e| gone(&e))?;
        stream.set_read_timeout(Some(Duration::from_secs(30))).map_err(|e| gone(&e))?;
        let url = format!("ws://127.0.0.1:{port}{path}");
        let (socket, _) = tungstenite::client(url, stream).map_err(|e| gone(&e))?;
        Ok(Self { socket, last: 0 })
    }

    /// Sends a command and waits for its answer; `what` completes "did not …".
    pub(super) fn call(
        &mut self,
        what: &str,
        method: &str,
        params: &Json,
        limit: Duration,
    ) -> Result<Json, Trouble> {
        self.last += 1;
        let id = self.last;
        let command = json!({ "id": id, "method": method, "params": params }).to_string();
        self.socket.send(Message::text(command)).map_err(|e| Trouble::Gone(format!("hung up: {e}")))?;
        let deadline = Instant::now() + limit;
        loop {
            let message = self.receive(what, deadline, limit)?;
            if message["method"] == "Inspector.targetCrashed" {
                return Err(Trouble::Gone("tab crashed, perhaps for lack of memory".to_owned()));
            }
            if message["id"] == id {
                return match message.get("error") {
                    Some(error) => Err(Trouble::Refused(format!("{method}: {}", text(&error["message"])))),
                    None => Ok(message["result"].clone()),
                };
            }
        }
    }

    /// Evaluates an expression that gives a promise; gives what it resolves to.
    pub(super) fn evaluate(
        &mut self,
        what: &str,
        expression: &str,
        limit: Duration,
    ) -> Result<Json, Trouble> {
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

    /// The next message, waiting until the deadline.
    fn receive(&mut self, what: &str, deadline: Instant, limit: Duration) -> Result<Json, Trouble> {
        let slow = || Trouble::Slow { what: what.to_owned(), limit };
        loop {
            let left = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
            let set = self.socket.get_ref().set_read_timeout(Some(left.ok_or_else(slow)?));
            set.map_err(|e| Trouble::Gone(format!("hung up: {e}")))?;
            match self.socket.read() {
                Ok(Message::Text(message)) => {
                    let read = serde_json::from_str(message.as_str());
                    return read.map_err(|e| Trouble::Refused(format!("sent what is no JSON: {e}")));
                }
                Ok(Message::Close(_)) => return Err(Trouble::Gone("closed the tab".to_owned())),
                Ok(_) => {}
                Err(tungstenite::Error::Io(e))
                    if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return Err(slow());
                }
                Err(e) => return Err(Trouble::Gone(format!("hung up: {e}"))),
            }
        }
    }
}

fn text(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// A browser of one connection that answers each command with the next of these messages.
    fn played(answers: Vec<Vec<String>>) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let mut socket = tungstenite::accept(listener.accept().unwrap().0).unwrap();
            for messages in answers {
                socket.read().unwrap();
                for message in messages {
                    socket.send(Message::text(message)).unwrap();
                }
            }
            // Stay open until the other side hangs up.
            while socket.read().is_ok() {}
        });
        port
    }

    #[test]
    fn answers_are_matched_by_their_ids() {
        let event = json!({"method": "Page.loaded"}).to_string();
        let answer = json!({"id": 1, "result": {"product": "HeadlessChrome/153"}}).to_string();
        let refused = json!({"id": 2, "error": {"message": "no such target"}}).to_string();
        let port = played(vec![vec![event, answer], vec![refused]]);
        let mut connection = Connection::open(port, "/devtools/browser/1").unwrap();
        let limit = Duration::from_secs(5);
        let version = connection.call("tell its version", "Browser.getVersion", &json!({}), limit).unwrap();
        assert_eq!(version["product"], "HeadlessChrome/153");
        let error = connection.call("open a tab", "Target.createTarget", &json!({}), limit).unwrap_err();
        assert_eq!(error.to_string(), "Target.createTarget: no such target");
    }

    #[test]
    fn silence_and_crashes_are_told_apart() {
        let crash = json!({"method": "Inspector.targetCrashed"}).to_string();
        let port = played(vec![vec![], vec![crash]]);
        let mut connection = Connection::open(port, "/devtools/page/1").unwrap();
        let error = connection.evaluate("run the model", "run()", Duration::from_millis(50)).unwrap_err();
        assert!(matches!(error, Trouble::Slow { .. }), "{error}");
        assert!(error.to_string().contains("did not run the model within"), "{error}");
        let error = connection.evaluate("run the model", "run()", Duration::from_secs(5)).unwrap_err();
        assert!(matches!(error, Trouble::Gone(_)), "{error}");
    }
}
