//! Passes over operations that few models have: who builds such an operation names its passes, and a program whose models build none is
//! not linked with them.

use std::any::Any;

use super::Rule;

/// The passes over the operations of a graph that few models have; none where it has no such operations.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RarePasses {
    pub recurrence: Option<&'static RecurrencePasses>,
    pub lstm: Option<&'static LstmPasses>,
    pub samples: Option<&'static SamplePasses>,
    /// Of [`super::Op::TopKMask`], by which routers select.
    pub top_k_mask_by_argmax: Option<Rule>,
    /// Of mixtures of experts, which is told more than the graph: whoever runs it knows its type.
    pub experts: Option<&'static (dyn Any + Send + Sync)>,
}

/// Those over operations with a state of fixed size.
#[derive(Debug)]
pub(crate) struct RecurrencePasses {
    pub selective_scan_by_linear_attention: Rule,
    pub causal_conv_by_products: Rule,
    pub linear_attention_in_single: Rule,
    pub linear_attention_by_chunks: Rule,
}

/// Those over LSTMs.
#[derive(Debug)]
pub(crate) struct LstmPasses {
    pub by_steps: Rule,
    pub in_single: Rule,
}

/// Those over bilinear samples.
#[derive(Debug)]
pub(crate) struct SamplePasses {
    pub in_single: Rule,
    pub by_gather: Rule,
}
