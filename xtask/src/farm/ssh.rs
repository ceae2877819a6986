//! Machines that ssh reaches: each takes one task after the other of the backends that it has.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::Host;
use super::folder::{Batch, Folder};
use super::follow::Engine;
use super::slurm::quoted;
use crate::terminal::{interrupted, note};

/// What waits, and what each machine runs: number of the task, its batch, its place, its backend.
type Entry = (usize, usize, usize, String);

#[derive(Default)]
struct Queue {
    waiting: Vec<Entry>,
    running: Vec<Entry>,
    /// The backends of each machine that is not left out, by its address.
    machines: Vec<Host>,
    cancelled: bool,
}

pub struct Ssh {
    queue: Arc<Mutex<Queue>>,
}

/// How often in a row a machine may not be reached.
const TRIES: u32 = 5;

impl Ssh {
    /// One thread a machine, which ends with this process.
    pub fn new(folder: &Folder, hosts: &[Host]) -> Self {
        let queue = Arc::new(Mutex::new(Queue { machines: hosts.to_vec(), ..Queue::default() }));
        for host in hosts {
            let machine = Machine {
                host: host.clone(),
                local: folder.path().to_owned(),
                remote: format!(".cache/weft/farm/{}", folder.plan().run),
            };
            let queue = Arc::clone(&queue);
            thread::spawn(move || machine.work(&queue));
        }
        Self { queue }
    }
}

/// Whether a machine has the backend of a task.
fn has(host: &Host, entry: &Entry) -> bool {
    host.backends.iter().any(|backend| backend.name() == entry.3)
}

fn locked(queue: &Mutex<Queue>) -> std::sync::MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engine for Ssh {
    fn submit(&self, _: &Folder, batch: &Batch) -> Result<String> {
        let mut queue = locked(&self.queue);
        // Taken from the end: the first task first.
        for (place, task) in batch.tasks.iter().enumerate().rev() {
            queue.waiting.insert(0, (*task, batch.number, place, batch.backend.clone()));
        }
        Ok(batch.number.to_string())
    }

    fn alive(&self, _: &[Batch]) -> Result<BTreeSet<usize>> {
        let mut queue = locked(&self.queue);
        let Queue { waiting, machines, .. } = &mut *queue;
        // What no machine is left for is lost.
        waiting.retain(|entry| machines.iter().any(|host| has(host, entry)));
        Ok(queue.waiting.iter().chain(&queue.running).map(|entry| entry.0).collect())
    }

    fn cancel(&self, _: &[Batch]) -> Result<()> {
        let mut queue = locked(&self.queue);
        queue.waiting.clear();
        queue.cancelled = true;
        Ok(())
    }
}

/// A machine and where the run lies on it, below the account's home.
struct Machine {
    host: Host,
    local: PathBuf,
    remote: String,
}

impl Machine {
    /// Takes tasks until there are none for longer than the run lasts; ends where the machine is not reached.
    fn work(&self, queue: &Mutex<Queue>) {
        let (mut sent, mut failures) = (false, 0);
        loop {
            let entry = {
                let mut queue = locked(queue);
                if queue.cancelled || interrupted() {
                    return;
                }
                let found = queue
                    .waiting
                    .iter()
                    .position(|entry| has(&self.host, entry))
                    .map(|at| queue.waiting.remove(at));
                queue.running.extend(found.clone());
                found
            };
            let Some(entry) = entry else {
                thread::sleep(Duration::from_millis(200));
                continue;
            };
            let reached = if sent { Ok(()) } else { self.send() };
            sent = reached.is_ok();
            let done = reached.and_then(|()| self.run(&entry));
            let mut queue = locked(queue);
            queue.running.retain(|running| running != &entry);
            if let Err(error) = done {
                failures += 1;
                sent = false;
                note(format!("{}: {error:#}", self.host.address));
                // Another machine may have it.
                queue.waiting.insert(0, entry);
                if failures >= TRIES {
                    queue.machines.retain(|host| host != &self.host);
                    note(format!("{}: not reached {TRIES} times, and left out", self.host.address));
                    return;
                }
                drop(queue);
                thread::sleep(Duration::from_secs(1 << failures));
            } else {
                failures = 0;
            }
        }
    }

    /// The pack and the plan, once.
    fn send(&self) -> Result<()> {
        let remote = quoted(&self.remote);
        let there = self.ssh(&format!("test -e {remote}/pack/.complete"), None)?;
        if there.status.code() == Some(255) {
            bail!("{}", said(&there));
        }
        if !there.status.success() {
            let tar = Command::new("tar")
                .arg("-C")
                .arg(&self.local)
                .args(["-cf", "-", "--exclude=pack/.complete", "pack", "plan.json", "task.sh"])
                .stdout(Stdio::piped())
                .spawn()
                .context("cannot run `tar`")?;
            let stdout = tar.stdout.context("tar has no output")?;
            let unpack = format!(
                "mkdir -p {remote}/results {remote}/batches && tar -C {remote} -xf - && touch {remote}/pack/.complete"
            );
            let output = self.ssh(&unpack, Some(stdout.into()))?;
            if !output.status.success() {
                bail!("the pack could not be unpacked: {}", said(&output));
            }
        }
        Ok(())
    }

    /// Runs one task, and fetches its records; one that fails there is lost, and one whose machine is gone an error.
    fn run(&self, (task, batch, place, _): &Entry) -> Result<()> {
        let remote = quoted(&self.remote);
        let text = fs::read_to_string(self.local.join(format!("batches/{batch}.json")))?;
        let script = format!(
            "cd {remote} && printf %s {text} > batches/{batch}.{place}.json && mv batches/{batch}.{place}.json batches/{batch}.json \
             && sh task.sh \"$PWD\" {batch} {place} >&2 && cat results/{task}.jsonl",
            text = quoted(&text)
        );
        let output = self.ssh(&script, None)?;
        let log = self.local.join(format!("logs/batch-{batch}-{place}.txt"));
        let _ = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)
            .and_then(|mut log| log.write_all(&output.stderr));
        match output.status.code() {
            Some(0) => {
                let records = String::from_utf8(output.stdout).context("its records are no text")?;
                crate::record::write(&self.local.join(format!("results/{task}.jsonl")), &records)
            }
            // ssh's own code, or a signal that ended it.
            Some(255) | None => bail!("{}", said(&output)),
            Some(_) => Ok(()),
        }
    }

    fn ssh(&self, script: &str, input: Option<Stdio>) -> Result<Output> {
        Command::new("ssh")
            .args(["-o", "BatchMode=yes", "-o", "ConnectTimeout=20", "-o", "ServerAliveInterval=15"])
            .args([&self.host.address, script])
            .stdin(input.unwrap_or_else(Stdio::null))
            .output()
            .context("cannot run `ssh` (Debian: `apt install openssh-client`)")
    }
}

fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").trim().to_owned()
}
