//! What a generated crate provides for its architecture.

use super::Session;
use crate::graph::{Graph, GraphKind};
use crate::hardware::Declared;
use crate::model::{Configuration, Head, TaskHeads};
use crate::weights::Names;
use crate::{Hardware, Processing, Result, Values};

/// A model architecture: implemented by the `Model` type of each generated crate.
pub trait Architecture: Sized + Send + Sync + 'static {
    /// `config.json`, typed.
    type Config: Configuration;
    /// The reference's classes for this architecture: the base model and its heads.
    type Head: Head;

    /// The crate's name in the specs, such as `bert`.
    const NAME: &'static str;
    /// The values of `model_type` in `config.json` that this crate opens.
    const MODEL_TYPES: &'static [&'static str];
    /// The values of `model_type` in the configurations that `config.json` holds, such as `text_config`: by field, of a
    /// configuration within one `text_config.audio_config`.
    const MODULE_TYPES: &'static [(&'static str, &'static [&'static str])] = &[];
    /// How the checkpoint's tensor names may differ from the graph's.
    const NAMES: Names;
    /// The declared matrix.
    const DECLARED: &'static [Declared];
    /// The order in which [`Hardware::Auto`] tries backends.
    const ROUTE: &'static [Hardware];

    /// The tasks that its checkpoints are for, each with the classes that serve it.
    const TASKS: &'static [TaskHeads<Self::Head>] = &[];

    /// What pipelines know of the model that neither its graph nor its checkpoints say.
    fn processing(config: &Self::Config) -> Processing {
        let _ = config;
        Processing::default()
    }
    /// The graphs that a head can be run by.
    fn graph_kinds(head: Self::Head) -> &'static [GraphKind] {
        let _ = head;
        &[GraphKind::Forward]
    }
    /// Builds one of a head's graphs.
    fn build(g: &mut Graph, config: &Self::Config, head: Self::Head, kind: GraphKind) -> Result<()>;
    /// Takes a head's outputs as the type that the crate has for them, and says what does not fit.
    #[doc(hidden)]
    fn check_outputs(head: Self::Head, outputs: &mut Values) -> Result<()> {
        let _ = (head, outputs);
        Ok(())
    }
    /// Wraps a session.
    fn from_session(session: Session<Self>) -> Self;
    /// The session that runs it.
    fn session(&self) -> &Session<Self>;
}
