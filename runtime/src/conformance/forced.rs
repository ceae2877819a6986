//! Teacher forcing: where a task's answer hung on less than the precision's tolerance, every run of the model that led to
//! it is done again on the backend with the reference's own tokens, and its logits are compared.
//!
//! The runs come from a pipeline in single precision on the CPU, which must give the reference's answer. The backend's
//! pipeline then makes the same runs: each is compared, and the pipeline goes on from what the teacher's gave, so that it
//! chooses the same tokens while its cache stays the backend's own.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value as Json;

use super::run::Target;
use super::subject::{Request, Subject};
use super::tasks::{self, Call, TaskCase};
use crate::any_model::described;
use crate::engine::Placement;
use crate::golden::{OutputReport, TOLERANCE, compare, rule};
use crate::graph::Input;
use crate::hub::Checkpoint;
use crate::session::Lowering;
use crate::tasks::{JsonPipeline, Task, json_pipeline};
use crate::{
    AnyModel, Cache, DynModel, Error, GraphKind, Hardware, Precision, Processing, Result, Timings, Values,
};

/// One run of a model.
struct Run {
    kind: Option<GraphKind>,
    inputs: Values,
    outputs: Values,
}

#[derive(Default)]
enum State {
    #[default]
    Idle,
    Recording(Vec<Run>),
    Forcing {
        runs: VecDeque<Run>,
        tolerance: f64,
        reports: Vec<OutputReport>,
    },
}

/// What a pipeline's model is to do with its runs; copies share it.
#[derive(Clone, Default)]
pub(super) struct Tape(Arc<Mutex<State>>);

impl Tape {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: State) -> State {
        std::mem::replace(&mut self.state(), state)
    }
}

/// A model whose runs go over a tape.
struct Taped {
    model: DynModel,
    tape: Tape,
}

impl Taped {
    fn through(
        &self,
        kind: Option<GraphKind>,
        inputs: Values,
        run: impl FnOnce(Values) -> Result<Values>,
    ) -> Result<Values> {
        let mut state = self.tape.state();
        match &mut *state {
            State::Idle => run(inputs),
            State::Recording(runs) => {
                let outputs = run(inputs.clone())?;
                runs.push(Run { kind, inputs, outputs: outputs.clone() });
                Ok(outputs)
            }
            State::Forcing { runs, tolerance, reports } => {
                let same = |next: &mut Run| {
                    next.kind == kind
                        && next.inputs.len() == inputs.len()
                        && compare(&inputs, &next.inputs, 0.0).iter().all(|input| input.passed)
                };
                let next = runs.pop_front().and_then(|mut next| same(&mut next).then_some(next));
                let Some(next) = next else {
                    let help = "look for what the pipeline makes of the backend or of the precision";
                    return Err(Error::input(
                        "inputs",
                        "the backend's pipeline runs the model on others",
                        help,
                    ));
                };
                reports.extend(compare(&run(inputs)?, &next.outputs, *tolerance));
                Ok(next.outputs)
            }
        }
    }
}

impl AnyModel for Taped {
    fn run(&self, inputs: Values) -> Result<Values> {
        self.through(None, inputs, |inputs| self.model.run(inputs))
    }

    fn run_graph(&self, kind: GraphKind, inputs: Values) -> Result<Values> {
        self.through(Some(kind), inputs, |inputs| self.model.run_graph(kind, inputs))
    }

    fn run_cached(&self, kind: GraphKind, inputs: Values, cache: &mut Cache) -> Result<Values> {
        self.through(Some(kind), inputs, |inputs| self.model.run_cached(kind, inputs, cache))
    }

    described!(self => self.model);
}

/// A task's pipeline whose runs go over a tape.
pub(super) fn pipeline(
    subject: Subject,
    task: &str,
    request: Request<'_>,
    tape: &Tape,
) -> Result<Box<dyn JsonPipeline>> {
    let task: Task = task.parse()?;
    let model = (subject.load_for)(task, request)?;
    json_pipeline(task, Box::new(Taped { model, tape: tape.clone() }))
}

/// Whether a call's answer hung on less than what results may be off, and there is a teacher that is another.
pub(super) fn is_near_tie(call: &Call, target: Target<'_>, tolerance: f64) -> bool {
    let teacher =
        target.absent.is_none() && target.hardware == Hardware::Cpu && target.precision == Precision::F32;
    !teacher && call.margin.is_some_and(|margin| margin < tolerance)
}

/// The teacher of a task case.
pub(super) struct Teacher {
    pipeline: Box<dyn JsonPipeline>,
    tape: Tape,
    tolerance: f64,
    dir: PathBuf,
}

impl Teacher {
    /// Where the backend is not here, the teacher has its form of the graph as well: its library is the one at hand, and not
    /// every release runs the CPU's.
    pub(super) fn of(subject: Subject, dir: &Path, case: &TaskCase, target: Target<'_>) -> Result<Self> {
        let folder = dir.to_string_lossy();
        let request = Request {
            checkpoint: &folder,
            hardware: Some(Hardware::Cpu),
            precision: Precision::F32,
            threads: Some(1),
            weights: rule(dir, &case.meta)?,
            lowering: target.absent.map(|_| Lowering::to(target.hardware)),
            ..Request::default()
        };
        let tape = Tape::default();
        let pipeline = pipeline(subject, &case.task, request, &tape)?;
        Ok(Self { pipeline, tape, tolerance: case.meta.tolerance(TOLERANCE), dir: dir.to_path_buf() })
    }

    /// How far the backend's runs are off when it is given the reference's own tokens: the worst output of all.
    pub(super) fn force(
        &self,
        pupil: &dyn JsonPipeline,
        tape: &Tape,
        (index, call): (usize, &Call),
        (inputs, tolerance): (&Json, f64),
    ) -> OutputReport {
        let failed = |problem: String| OutputReport {
            name: format!("calls[{index}], forced"),
            shape: vec![],
            max_abs: None,
            max_rel: None,
            tolerance,
            passed: false,
            problem: Some(problem),
        };
        self.tape.set(State::Recording(vec![]));
        let answer = self.pipeline.run_json(inputs, &call.parameters);
        let answer = answer.map(|answer| tasks::out_of_folder(&self.dir, &answer));
        let State::Recording(runs) = self.tape.set(State::Idle) else {
            return failed("was not taped".into());
        };
        let own = tasks::report(index, answer, &call.output, self.tolerance);
        if !own.passed {
            let problem = own.problem.unwrap_or_else(|| "too far off".into());
            return failed(format!(
                "single precision on the CPU has another answer than the reference: {problem}"
            ));
        }
        tape.set(State::Forcing { runs: runs.into(), tolerance, reports: vec![] });
        let answer = pupil.run_json(inputs, &call.parameters);
        let State::Forcing { runs, reports, .. } = tape.set(State::Idle) else {
            return failed("was not taped".into());
        };
        if let Err(error) = answer {
            return failed(error.to_string());
        }
        if !runs.is_empty() || reports.is_empty() {
            return failed(format!("{} runs of the reference were not made", runs.len()));
        }
        let problem = reports.iter().find_map(|report| {
            let problem = report.problem.as_ref()?;
            Some(format!("{}: {problem}", report.name))
        });
        let most = |of: fn(&OutputReport) -> Option<f64>| reports.iter().filter_map(of).reduce(f64::max);
        OutputReport {
            max_abs: most(|report| report.max_abs),
            max_rel: most(|report| report.max_rel),
            passed: reports.iter().all(|report| report.passed),
            problem,
            ..failed(String::new())
        }
    }
}
