//! Passes over operations that few models have. Who builds such an operation names its passes, so that a program whose models build none
//! is not linked with them.

use std::borrow::Cow;

use super::{Rule, experts, lstm, precision, recurrence, sample};
use crate::Result;
use crate::graph::Graph;
use crate::lower::Target;
use crate::weights::WeightData;

/// The passes over the operations of a graph that few models have; none where it has no such operations.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RarePasses {
    pub recurrence: Option<&'static RecurrencePasses>,
    pub lstm: Option<&'static LstmPasses>,
    pub samples: Option<&'static SamplePasses>,
    pub experts: Option<ExpertsPass>,
}

/// Those over operations with a state of fixed size.
#[derive(Debug)]
pub(crate) struct RecurrencePasses {
    pub(in crate::lower) selective_scan_by_linear_attention: Rule,
    pub(in crate::lower) causal_conv_by_products: Rule,
    pub(in crate::lower) linear_attention_in_single: Rule,
    pub(in crate::lower) linear_attention_by_chunks: Rule,
}

pub(crate) static RECURRENCE: RecurrencePasses = RecurrencePasses {
    selective_scan_by_linear_attention: recurrence::selective_scan_by_linear_attention,
    causal_conv_by_products: recurrence::causal_conv_by_products,
    linear_attention_in_single: recurrence::linear_attention_in_single,
    linear_attention_by_chunks: recurrence::linear_attention_by_chunks,
};

/// Those over LSTMs.
#[derive(Debug)]
pub(crate) struct LstmPasses {
    pub(in crate::lower) by_steps: Rule,
    pub(in crate::lower) in_single: Rule,
}

pub(crate) static LSTM: LstmPasses = LstmPasses { by_steps: lstm::by_steps, in_single: lstm::in_single };

/// Those over bilinear samples.
#[derive(Debug)]
pub(crate) struct SamplePasses {
    pub(in crate::lower) in_single: Rule,
    pub(in crate::lower) by_gather: Rule,
}

pub(crate) static SAMPLES: SamplePasses =
    SamplePasses { in_single: precision::grid_sample, by_gather: sample::grid_sample_by_gather };

/// What is made of mixtures of experts before anything else.
pub(crate) type ExpertsPass = fn(&mut Graph, &mut Cow<'_, [WeightData]>, &Target) -> Result<()>;

pub(crate) const EXPERTS: ExpertsPass = experts::formed;
