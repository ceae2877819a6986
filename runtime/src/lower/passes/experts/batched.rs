//! Mixtures of gated experts as products of all experts at once, in the form that OpenVINO reads as a mixture: its CPU plugin then
//! computes the selected experts alone (`GatherMatmul`), whose rows it gathers.

use std::borrow::Cow;

use super::mixture::{Mixture, Projection};
use crate::Result;
use crate::graph::{Activation, Dim, Graph, Reduction, Tensor};
use crate::lower::Kernels;
use crate::weights::WeightData;

/// Sums over selected experts by products of all of them. Mixtures of another form stay.
pub(in crate::lower) fn batched(
    g: &mut Graph,
    stored: &mut Cow<'_, [WeightData]>,
    kernels: &Kernels,
) -> Result<()> {
    g.rewrite(|g, it| {
        let Some(mixture) = Mixture::of(g, it) else { return Ok(None) };
        let Some(up) = &mixture.up else { return Ok(None) };
        if !matches!(mixture.act, Activation::Silu | Activation::Gelu | Activation::GeluNew) {
            return Ok(None);
        }
        let mut weight = |projection: &Projection| projection.weight(g, stored, kernels);
        let (gate, up, down) = (weight(&mixture.gate)?, weight(up)?, weight(&mixture.down)?);
        let (Some(gate), Some(up), Some(down)) = (gate, up, down) else { return Ok(None) };
        by_products(g, &mixture, [&gate, &up, &down], it.result).map(Some)
    })?;
    g.prune();
    Ok(())
}

/// Every expert of every row, `[experts, rows, hidden]`, summed by routing weights. The engine looks for just these operations
/// (`ConvertTiledMoeBlockTo3GatherMatmuls`), though routing weights are 0 already where the scattered ones are.
fn by_products(
    g: &mut Graph,
    it: &Mixture,
    [gate, up, down]: [&Tensor; 3],
    result: &Tensor,
) -> Result<Tensor> {
    let (rows, hidden) = (it.x.shape()[0].clone(), it.x.shape()[1].clone());
    let experts = it.routing.shape()[1].clone();
    let x = g.tile(&it.x, vec![experts.fixed().unwrap_or_default(), 1]);
    let x = g.reshape(&x, vec![experts.clone(), rows.clone(), hidden])?;
    let gate = product(g, &x, gate)?;
    let gate = g.activation(it.act, &gate)?;
    let up = product(g, &x, up)?;
    let h = g.mul(&gate, &up)?;
    let h = product(g, &h, down)?;
    let one = Dim::Fixed(1);
    let out = h.shape()[2].clone();
    let h = g.reshape(&h, vec![experts.clone(), one.clone(), rows.clone(), out])?;
    let factors = g.scatter_elements(&it.routing, &it.indices, &it.values)?;
    let factors = g.transpose(&factors, &[1, 0])?;
    let factors = g.reshape(&factors, vec![experts, one.clone(), rows, one])?;
    let h = g.mul(&h, &factors)?;
    let sum = g.reduce(Reduction::Sum, &h, &[0], false)?;
    g.reshape(&sum, result.shape().to_vec())
}

/// x `[experts, rows, in]` by each expert's weight `[experts, out, in]`.
fn product(g: &mut Graph, x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let weight = g.transpose(weight, &[0, 2, 1])?;
    g.matmul(x, &weight)
}
