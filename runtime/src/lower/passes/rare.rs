//! What [`crate::graph::RarePasses`] has, by who builds such operations ([`crate::builders`]).

use std::borrow::Cow;

use super::{experts, lstm, precision, recurrence, sample, select};
use crate::Result;
use crate::graph::{Graph, LstmPasses, RecurrencePasses, SamplePasses};
use crate::lower::Target;
use crate::weights::WeightData;

pub(crate) static RECURRENCE: RecurrencePasses = RecurrencePasses {
    selective_scan_by_linear_attention: recurrence::selective_scan_by_linear_attention,
    causal_conv_by_products: recurrence::causal_conv_by_products,
    linear_attention_in_single: recurrence::linear_attention_in_single,
    linear_attention_by_chunks: recurrence::linear_attention_by_chunks,
};

pub(crate) static LSTM: LstmPasses = LstmPasses { by_steps: lstm::by_steps, in_single: lstm::in_single };

pub(crate) static SAMPLES: SamplePasses =
    SamplePasses { in_single: precision::grid_sample, by_gather: sample::grid_sample_by_gather };

pub(crate) const TOP_K_MASK: crate::graph::Rule = select::top_k_mask_by_argmax;

/// What is made of mixtures of experts before anything else.
pub(crate) type ExpertsPass = fn(&mut Graph, &mut Cow<'_, [WeightData]>, &Target) -> Result<()>;

pub(crate) static EXPERTS: ExpertsPass = experts::formed;
