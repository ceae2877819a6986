//! Codes, scales and zeros of a quantized weight as weights of the graph.

use std::sync::Arc;

use super::Kernels;
use crate::Result;
use crate::graph::{BlockOp, Dtype, Graph, Tensor};
use crate::weights::{BlockQuantized, Bytes, OUTER, WeightData, Zeros};

/// The operands of a quantized weight.
pub(super) struct Parts {
    pub blocks: BlockOp,
    pub codes: Tensor,
    pub scales: Tensor,
    pub zeros: Option<Tensor>,
    /// What minimums add to each block's sum, `[out, blocks]`; where graphs dequantize by casts, the minimums.
    pub offsets: Option<Tensor>,
    pub order: Option<Arc<[u32]>>,
    /// What scales of a codebook's codes are multiplied with, `[out, ⌈blocks / OUTER⌉]`.
    pub outer: Option<Tensor>,
    /// How many matrices it holds, where it is a batch of them.
    pub batch: Option<usize>,
    /// What the codes stand for, without offsets, in the order of the codes: `[out, in]`; where kernels are emulated.
    pub values: Option<Tensor>,
}

/// Where parts become weights.
pub(in crate::lower) struct Weights<'a> {
    pub(in crate::lower) graph: &'a mut Graph,
    pub(in crate::lower) located: &'a mut Vec<WeightData>,
}

impl Weights<'_> {
    /// A part that is stored in one type and computed with in another.
    pub(in crate::lower) fn add(
        &mut self,
        name: &str,
        stored: Dtype,
        shape: &[usize],
        bytes: Bytes,
    ) -> Tensor {
        let computed = if stored == Dtype::U8 { stored } else { Dtype::F32 };
        let tensor = self.graph.stored_weight(name, computed, shape);
        if self.graph.weights.len() > self.located.len() {
            let stored_as = name.to_owned();
            self.located.push(WeightData { dtype: stored, shape: shape.to_vec(), stored_as, bytes });
        }
        tensor
    }
}

impl Parts {
    /// Those of a linear layer.
    pub(super) fn of_linear(
        graph: &mut Graph,
        located: &mut Vec<WeightData>,
        name: &str,
        form: &BlockQuantized,
        kernels: &Kernels,
    ) -> Result<Self> {
        let codes = [form.shape[0], form.blocks(), form.group * form.bits / 8];
        let (weights, codes_name) = (Weights { graph, located }, format!("{name}.codes"));
        let mut parts = Self::of(weights, &codes_name, &codes, name, form, Some(kernels))?;
        if kernels.emulated {
            let bytes = form.without_offsets()?.iter().flat_map(|x| x.to_le_bytes()).collect();
            let values = format!("{name}.{}x{}.values", form.bits, form.group);
            let mut weights = Weights { graph, located };
            parts.values = Some(weights.add(&values, Dtype::F32, &form.shape, Bytes::memory(bytes)));
        }
        Ok(parts)
    }

    /// Those of an embedding, which share scales and zeros with a linear layer's of the same form.
    pub(super) fn of_embedding(
        graph: &mut Graph,
        located: &mut Vec<WeightData>,
        name: &str,
        form: &BlockQuantized,
    ) -> Result<Self> {
        let codes = [form.shape[0], form.blocks() * form.group * form.bits / 8];
        Self::of(Weights { graph, located }, &format!("{name}.rows"), &codes, name, form, None)
    }

    fn of(
        mut weights: Weights<'_>,
        codes_name: &str,
        codes: &[usize],
        name: &str,
        form: &BlockQuantized,
        kernels: Option<&Kernels>,
    ) -> Result<Self> {
        let flat = kernels.is_some_and(|kernels| kernels.flat_scales);
        let by_casts = kernels.is_some_and(|kernels| kernels.by_casts);
        let (rows, blocks) = (form.shape[0], form.blocks());
        let shape = |width: usize| if flat { vec![rows * width] } else { vec![rows, width] };
        // Forms of one weight differ by these.
        let name = format!("{name}.{}x{}", form.bits, form.group);
        let codes = weights.add(codes_name, Dtype::U8, codes, form.codes.clone());
        let scales =
            weights.add(&format!("{name}.scales"), form.scale_dtype, &shape(blocks), form.scales.clone());
        let zeros = form.packed_zeros().map(|packed| {
            let width = (blocks * form.bits).div_ceil(8);
            weights.add(&format!("{name}.zeros"), Dtype::U8, &shape(width), Bytes::memory(packed))
        });
        let added = match &form.zeros {
            Zeros::Minimums(minimums) if by_casts => Some(minimums.to_vec()),
            _ => form.offsets()?,
        };
        let offsets = added.map(|offsets| {
            let bytes = offsets.iter().flat_map(|x| x.to_le_bytes()).collect();
            weights.add(&format!("{name}.offsets"), Dtype::F32, &[rows, blocks], Bytes::memory(bytes))
        });
        let outer = form.outer.clone().map(|bytes| {
            let shape = [rows, blocks.div_ceil(OUTER)];
            weights.add(&format!("{name}.outer"), Dtype::F16, &shape, bytes)
        });
        let (bits, group, codebook) = (form.bits, form.group, form.codebook());
        let blocks = BlockOp { bits, group, codebook, outer: outer.is_some() };
        let (order, batch) = (form.order.clone(), form.batch);
        Ok(Self { blocks, codes, scales, zeros, offsets, order, outer, batch, values: None })
    }
}
