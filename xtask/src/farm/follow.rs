//! Following a run: what is done, what is lost and handed out again, what is given up.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::folder::{Batch, Folder};
use crate::terminal::{Progress, interrupted, note};

/// A scheduler.
pub trait Engine {
    /// Hands a batch out; its id with the scheduler.
    fn submit(&self, folder: &Folder, batch: &Batch) -> Result<String>;
    /// The tasks of these batches that wait or run.
    fn alive(&self, batches: &[Batch]) -> Result<BTreeSet<usize>>;
    /// Ends what waits or runs of these batches.
    fn cancel(&self, batches: &[Batch]) -> Result<()>;
}

/// How patient to be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How often a lost task is handed out again.
    pub retries: usize,
    /// Between two looks at the scheduler.
    pub poll: Duration,
}

/// What did not come back.
#[derive(Debug, Default)]
pub struct Lost {
    pub interrupted: bool,
    /// Tasks that were handed out as often as is allowed, and what is known of them.
    pub given_up: BTreeMap<usize, String>,
}

/// Tasks in one batch: Slurm's default for the largest index of an array.
const BATCH: usize = 1000;
/// How long a scheduler may not answer: its controller may be started again.
const PATIENCE: Duration = Duration::from_secs(600);

/// Hands out what is open until every task is done or given up.
pub fn follow(folder: &Folder, engine: &dyn Engine, limits: Limits) -> Result<Lost> {
    let total = folder.plan().tasks.len();
    let progress = Progress::new(total);
    let mut batches = folder.batches()?;
    let (mut shown, mut missing) = (BTreeSet::new(), BTreeSet::new());
    let mut lost = Lost::default();
    let mut silent: Option<Instant> = None;
    loop {
        let done = folder.done()?;
        for task in done.difference(&shown) {
            let models = folder.plan().tasks.get(*task).map(|task| task.models.join(", "));
            progress.step(&models.unwrap_or_default());
        }
        shown.clone_from(&done);
        let open: BTreeSet<_> =
            (0..total).filter(|task| !done.contains(task) && !lost.given_up.contains_key(task)).collect();
        if open.is_empty() {
            break;
        }
        if interrupted() {
            note("the scheduler goes on: the same command follows it again, `--cancel` ends it");
            lost.interrupted = true;
            break;
        }
        match engine.alive(&batches) {
            Ok(alive) => {
                silent = None;
                let gone: BTreeSet<_> = open.difference(&alive).copied().collect();
                // A result may be seen later than the end of its task: lost is what is missing twice. What was never
                // handed out cannot be late.
                let tried = tried(&batches);
                let late = |task: &usize| tried.contains_key(task) && !missing.contains(task);
                let (waited, out): (BTreeSet<_>, BTreeSet<_>) = gone.into_iter().partition(late);
                missing = waited;
                let (again, up): (Vec<_>, Vec<_>) = out
                    .into_iter()
                    .partition(|task| tried.get(task).is_none_or(|tries| *tries <= limits.retries));
                for task in up {
                    let reason =
                        format!("handed out {} times; {}", tried[&task], last_words(folder, &batches, task));
                    lost.given_up.insert(task, reason);
                }
                let lost_before = again.iter().filter(|task| tried.contains_key(task)).count();
                if lost_before > 0 {
                    progress.line(&format!("{lost_before} task(s) were lost: handed out again"));
                }
                hand_out(folder, engine, &again, &mut batches)?;
            }
            Err(error) => {
                let since = *silent.get_or_insert_with(|| {
                    progress.line(&format!("the scheduler does not answer, waiting for it: {error:#}"));
                    Instant::now()
                });
                if since.elapsed() > PATIENCE {
                    let minutes = PATIENCE.as_secs() / 60;
                    return Err(error).context(format!(
                        "the scheduler has not answered for {minutes} minutes; the same command goes on where this one ends"
                    ));
                }
            }
        }
        thread::sleep(limits.poll);
    }
    progress.finish();
    Ok(lost)
}

/// How often each task was handed out.
fn tried(batches: &[Batch]) -> BTreeMap<usize, usize> {
    let mut tried = BTreeMap::new();
    for task in batches.iter().flat_map(|batch| &batch.tasks) {
        *tried.entry(*task).or_default() += 1;
    }
    tried
}

/// Hands tasks out, in batches of one backend.
fn hand_out(folder: &Folder, engine: &dyn Engine, tasks: &[usize], batches: &mut Vec<Batch>) -> Result<()> {
    let mut by_backend: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for &task in tasks {
        by_backend.entry(&folder.plan().tasks[task].backend).or_default().push(task);
    }
    for (backend, tasks) in by_backend {
        for tasks in tasks.chunks(BATCH) {
            let number = batches.last().map_or(0, |last| last.number + 1);
            let mut batch = Batch { number, backend: backend.to_owned(), tasks: tasks.to_vec(), job: None };
            // Written down first: who is killed between the two finds it again, by its name.
            folder.keep(&batch)?;
            batch.job = Some(engine.submit(folder, &batch)?);
            folder.keep(&batch)?;
            batches.push(batch);
        }
    }
    Ok(())
}

/// The end of what a task printed.
fn last_words(folder: &Folder, batches: &[Batch], task: usize) -> String {
    let place =
        |batch: &Batch| batch.tasks.iter().position(|own| *own == task).map(|place| (batch.number, place));
    let (batch, place) = batches.iter().rev().find_map(place).unwrap_or_default();
    let log = folder.logs().join(format!("batch-{batch}-{place}.txt"));
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    match text.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => format!("it said last: {line}"),
        None => format!("it said nothing ({})", log.display()),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::fs;

    use super::super::folder::{Plan, Task};
    use super::*;

    /// A scheduler that runs some tasks at each look, loses some, and does not answer now and then.
    #[derive(Default)]
    struct Fake {
        waiting: RefCell<BTreeSet<usize>>,
        /// Tasks that are lost however often they are handed out.
        hopeless: BTreeSet<usize>,
        /// Every so many tasks, one is lost the first time.
        every: usize,
        lost: RefCell<BTreeSet<usize>>,
        looks: Cell<usize>,
        submitted: Cell<usize>,
    }

    struct Running<'a>(&'a Fake, &'a Folder);

    impl Engine for Running<'_> {
        fn submit(&self, _: &Folder, batch: &Batch) -> Result<String> {
            self.0.waiting.borrow_mut().extend(&batch.tasks);
            self.0.submitted.set(self.0.submitted.get() + batch.tasks.len());
            Ok(batch.number.to_string())
        }

        fn alive(&self, _: &[Batch]) -> Result<BTreeSet<usize>> {
            self.0.looks.set(self.0.looks.get() + 1);
            if self.0.looks.get().is_multiple_of(3) {
                anyhow::bail!("connection refused");
            }
            let mut waiting = self.0.waiting.borrow_mut();
            let now: Vec<_> = waiting.iter().take(2000).copied().collect();
            for task in now {
                waiting.remove(&task);
                let first = self.0.every > 0
                    && task.is_multiple_of(self.0.every)
                    && self.0.lost.borrow_mut().insert(task);
                if !first && !self.0.hopeless.contains(&task) {
                    fs::write(self.1.result(task), "")?;
                }
            }
            Ok(waiting.clone())
        }

        fn cancel(&self, _: &[Batch]) -> Result<()> {
            Ok(())
        }
    }

    fn plan(tasks: usize) -> Plan {
        let task =
            |task: usize| Task { backend: ["cpu", "qnn"][task % 2].into(), models: vec!["bert".into()] };
        Plan { run: "r".into(), precisions: String::new(), timeout: 1, tasks: (0..tasks).map(task).collect() }
    }

    /// The most memory that this process had, where the system tells.
    fn most_bytes() -> u64 {
        let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
        1024 * line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0)
    }

    const LIMITS: Limits = Limits { retries: 2, poll: Duration::from_millis(1) };

    #[test]
    fn ten_thousand_tasks_come_back_though_some_are_lost() {
        let dir = tempfile::tempdir().unwrap();
        let start = Instant::now();
        let folder = Folder::open(dir.path(), &plan(10_000), false).unwrap();
        let fake = Fake { every: 100, hopeless: [7].into(), ..Fake::default() };
        let lost = follow(&folder, &Running(&fake, &folder), LIMITS).unwrap();
        assert_eq!(lost.given_up.keys().collect::<Vec<_>>(), [&7]);
        assert!(lost.given_up[&7].starts_with("handed out 3 times; it said nothing"), "{lost:?}");
        assert_eq!(folder.done().unwrap().len(), 9_999);
        // Each once, a hundred twice, the hopeless one three times.
        assert_eq!(fake.submitted.get(), 10_000 + 100 + 2);
        // What the driver takes for them; other tests of this process run beside it.
        let (taken, most) = (start.elapsed(), most_bytes());
        eprintln!("10,000 tasks: {:.1} s, at most {:.0} MB", taken.as_secs_f64(), most as f64 / 1e6);
        assert!(taken < Duration::from_secs(120) && most < 1 << 30, "{taken:?}, {most} bytes");
    }

    #[test]
    fn a_killed_driver_hands_nothing_out_twice() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path(), &plan(4), false).unwrap();
        let fake = Fake::default();
        let engine = Running(&fake, &folder);
        hand_out(&folder, &engine, &[0, 1, 2, 3], &mut Vec::new()).unwrap();
        // The next driver knows what waits.
        let again = Folder::open(dir.path(), &plan(4), false).unwrap();
        assert_eq!(again.batches().unwrap().len(), 2);
        follow(&again, &engine, LIMITS).unwrap();
        assert_eq!((fake.submitted.get(), again.done().unwrap().len()), (4, 4));
    }

    #[test]
    fn a_folder_of_another_run_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        Folder::open(dir.path(), &plan(4), false).unwrap();
        let error = Folder::open(dir.path(), &plan(5), false).unwrap_err().to_string();
        assert!(error.contains("holds a run of other tasks"), "{error}");
    }
}
