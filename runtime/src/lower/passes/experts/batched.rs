//! Mixtures of gated experts as products of all experts at once, in the form that OpenVINO reads as a mixture: its CPU plugin then
//! computes the selected experts alone (`GatherMatmul`), whose rows it gathers.

use std::borrow::Cow;

use super::gating::Gating;
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
        let made = match mixture.gating {
            Gating { alpha: 1.0, beta: 0.0, limit: None, .. } if !mixture.biased() => {
                by_three_products(g, &mixture, stored, kernels)?
            }
            Gating { act: Activation::Silu, limit: Some(limit), beta, .. } if beta != 0.0 => {
                by_two_products(g, &mixture, limit, stored, kernels)?
            }
            _ => None,
        };
        made.map(|h| summed(g, &mixture, &h, it.result)).transpose()
    })?;
    g.prune();
    Ok(())
}

/// What every expert gives of every row, `[experts, rows, hidden]`: gate, up and down projections without biases, in just the
/// operations that the engine looks for (`ConvertTiledMoeBlockTo3GatherMatmuls`).
fn by_three_products(
    g: &mut Graph,
    it: &Mixture,
    stored: &mut Cow<'_, [WeightData]>,
    kernels: &Kernels,
) -> Result<Option<Tensor>> {
    let Some(up) = &it.up else { return Ok(None) };
    if !matches!(it.gating.act, Activation::Silu | Activation::Gelu | Activation::GeluNew) {
        return Ok(None);
    }
    let mut weight = |projection: &Projection| projection.weight(g, stored, kernels);
    let (gate, up, down) = (weight(&it.gate)?, weight(up)?, weight(&it.down)?);
    let (Some(gate), Some(up), Some(down)) = (gate, up, down) else { return Ok(None) };
    let x = tiled(g, it)?;
    let gate = product(g, &x, &gate)?;
    let gate = g.activation(it.gating.act, &gate)?;
    let up = product(g, &x, &up)?;
    let h = g.mul(&gate, &up)?;
    product(g, &h, &down).map(Some)
}

/// The same of clamped SwiGLU with biases, gate and up projections in one product (`ConvertTiledMoeBlockTo2GatherMatmuls`).
fn by_two_products(
    g: &mut Graph,
    it: &Mixture,
    limit: f32,
    stored: &mut Cow<'_, [WeightData]>,
    kernels: &Kernels,
) -> Result<Option<Tensor>> {
    let Some((both, [gate, up])) = it.gate_and_up() else { return Ok(None) };
    let (Some(bias), Some(down_bias)) = (&both.bias, it.down.biases(g)) else { return Ok(None) };
    let mut weight = |projection: &Projection| projection.weight(g, stored, kernels);
    let (Some(first), Some(down)) = (weight(&both)?, weight(&it.down)?) else { return Ok(None) };
    let x = tiled(g, it)?;
    let h = product(g, &x, &first)?;
    let bias = g.unsqueeze(bias, 1)?;
    let h = g.add(&h, &bias)?;
    let (gate, up) = (gate.of(g, &h, 2), up.of(g, &h, 2));
    let h = it.gating.clamped(g, &gate, &up, limit)?;
    let h = product(g, &h, &down)?;
    let bias = g.unsqueeze(&down_bias, 1)?;
    g.add(&h, &bias).map(Some)
}

/// x once for each expert, `[experts, rows, hidden]`.
fn tiled(g: &mut Graph, it: &Mixture) -> Result<Tensor> {
    let x = it.rows(g)?;
    let (rows, hidden) = (x.shape()[0].clone(), x.shape()[1].clone());
    let experts = it.routing.shape()[1].clone();
    let x = g.tile(&x, vec![experts.fixed().unwrap_or_default(), 1]);
    g.reshape(&x, vec![experts, rows, hidden])
}

/// What experts give, summed by routing weights, or as it is where x has been multiplied by these. The engine looks for scattered
/// factors, though those of no selected expert are 0 already.
fn summed(g: &mut Graph, it: &Mixture, h: &Tensor, result: &Tensor) -> Result<Tensor> {
    let [experts, rows, out] = [0, 1, 2].map(|axis| h.shape()[axis].clone());
    let one = Dim::Fixed(1);
    let h = g.reshape(h, vec![experts.clone(), one.clone(), rows.clone(), out])?;
    let values = match &it.values {
        Some(values) => values.clone(),
        None => {
            let unit = g.scalar(1.0);
            g.expand(&unit, it.indices.shape().to_vec())?
        }
    };
    let factors = g.scatter_elements(&it.routing, &it.indices, &values)?;
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
