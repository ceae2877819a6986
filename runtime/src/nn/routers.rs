//! Routers of mixtures of experts: from router logits `[…, experts]` to routing weights, 0 for experts that are not selected.

use crate::Result;
use crate::graph::{Binary, Dtype, Graph, Reduction, Tensor, Unary, show};

/// What a router gives.
#[derive(Clone, Debug)]
pub struct Routing {
    /// Routing weights `[…, experts]`, 0 for experts that are not selected.
    pub weights: Tensor,
    /// How many experts are selected for a position.
    pub top_k: usize,
}

impl Routing {
    /// The same with routing weights times a factor (`routed_scaling_factor`).
    ///
    /// # Errors
    /// When the weights are no floating-point numbers.
    pub fn scale(self, g: &mut Graph, factor: f64) -> Result<Self> {
        Ok(Self { weights: g.scale(&self.weights, factor)?, ..self })
    }
}

/// Softmax over router logits, then top-k (`MixtralTopKRouter`, `Qwen2MoeTopKRouter`): routing weights `[…, experts]`, which
/// `norm_topk_prob` makes sum to 1.
///
/// # Errors
/// When there are fewer than `top_k` experts, or their number is not fixed.
pub fn softmax_topk(g: &mut Graph, logits: &Tensor, top_k: usize, norm_topk_prob: bool) -> Result<Routing> {
    let scores = g.softmax(logits)?;
    topk_by(g, &scores, &scores, top_k, norm_topk_prob)
}

/// Top-k of router logits, then softmax over the selected ones alone (`GptOssTopKRouter`, `GraniteMoeTopKRouter`): routing
/// weights `[…, experts]`.
///
/// # Errors
/// When there are fewer than `top_k` experts, or their number is not fixed.
pub fn softmax_after_topk(g: &mut Graph, logits: &Tensor, top_k: usize) -> Result<Routing> {
    let selected = g.top_k_mask(logits, top_k)?;
    let least = g.scalar(f32::MIN);
    let logits = g.select(&selected, logits, &least)?;
    Ok(Routing { weights: g.softmax(&logits)?, top_k })
}

/// Group-limited top-k routing (`DeepseekV3TopkRouter`; 2024, arXiv:2412.19437): groups of experts are ranked by their highest
/// scores, and a token's experts are selected from the best groups alone.
#[derive(Clone, Copy, Debug)]
pub struct GroupLimitedTopk {
    /// The number of groups; with 1 all experts compete.
    pub n_group: usize,
    /// The number of groups that are selected for a token.
    pub topk_group: usize,
    /// How many of the highest scores of a group are summed to rank it.
    pub scores_per_group: usize,
    /// The number of experts per token.
    pub top_k: usize,
    /// Whether routing weights are normalised to sum to 1.
    pub norm_topk_prob: bool,
}

impl GroupLimitedTopk {
    /// Routing weights `[batch, sequence, experts]` of scores of this shape. `e_score_correction_bias`, which broadcasts to
    /// them, takes part in the selection alone.
    ///
    /// # Errors
    /// When the experts do not divide into the groups, or there are fewer groups or experts than are selected.
    pub fn forward(
        &self,
        g: &mut Graph,
        scores: &Tensor,
        e_score_correction_bias: Option<&Tensor>,
    ) -> Result<Routing> {
        self.forward_filled(g, scores, e_score_correction_bias, f32::MIN)
    }

    /// As [`GroupLimitedTopk::forward`], but experts of groups that are not selected compete with the score `unselected`: with 0
    /// (`AXK2TopkRouter`) they are above negative ones.
    ///
    /// # Errors
    /// As [`GroupLimitedTopk::forward`].
    pub fn forward_filled(
        &self,
        g: &mut Graph,
        scores: &Tensor,
        e_score_correction_bias: Option<&Tensor>,
        unselected: f32,
    ) -> Result<Routing> {
        let choice = match e_score_correction_bias {
            Some(bias) => g.add(scores, bias)?,
            None => scores.clone(),
        };
        let choice = self.in_best_groups(g, &choice, unselected)?;
        topk_by(g, &choice, scores, self.top_k, self.norm_topk_prob)
    }

    /// Scores, `unselected` where an expert's group is not selected.
    fn in_best_groups(&self, g: &mut Graph, scores: &Tensor, unselected: f32) -> Result<Tensor> {
        if self.n_group == 1 {
            return Ok(scores.clone());
        }
        let [batch, sequence, experts] = scores.shape() else {
            return Err(g.error("GroupLimitedTopk", format!("{} in groups", show(scores.shape()))));
        };
        let size = experts.fixed().unwrap_or_default() / self.n_group.max(1);
        let grouped = g.reshape(scores, crate::dims![batch, sequence, self.n_group, size])?;
        let highest = g.top_k_mask(&grouped, self.scores_per_group)?;
        let highest = selected_scores(g, &grouped, &highest, false)?;
        let sums = g.reduce(Reduction::Sum, &highest, &[3], false)?;
        let selected = g.top_k_mask(&sums, self.topk_group)?;
        let selected = g.unsqueeze(&selected, 3)?;
        let unselected = g.scalar(unselected);
        let kept = g.select(&selected, &grouped, &unselected)?;
        g.reshape(&kept, scores.shape().to_vec())
    }
}

/// Top-k of `choice` `[…, experts]`, weighted by `scores` of this shape (`Kolibri1TopKRouter`): routing weights, which
/// `norm_topk_prob` makes sum to 1.
///
/// # Errors
/// When there are fewer than `top_k` experts, or their number is not fixed.
pub fn topk_by(
    g: &mut Graph,
    choice: &Tensor,
    scores: &Tensor,
    top_k: usize,
    norm_topk_prob: bool,
) -> Result<Routing> {
    let selected = g.top_k_mask(choice, top_k)?;
    let weights = selected_scores(g, scores, &selected, norm_topk_prob)?;
    Ok(Routing { weights, top_k })
}

/// Top-1 routing of bounded capacity (`SwitchTransformersTop1Router`; Fedus et al., 2021, arXiv:2101.03961) by router logits
/// `[batch, sequence, experts]`: the softmax of the expert with the highest, or 0 where `capacity` earlier tokens of the text have
/// the same.
///
/// # Errors
/// When the number of experts is not fixed.
pub fn top1_within_capacity(g: &mut Graph, logits: &Tensor, capacity: usize) -> Result<Routing> {
    let scores = g.softmax(logits)?;
    let selected = g.top_k_mask(&scores, 1)?;
    let taken = g.cast(&selected, Dtype::F32);
    let place = g.cumsum(&taken, 1)?;
    let beyond = g.scalar(capacity as f32 + 0.5);
    let fits = g.binary(Binary::Less, &place, &beyond)?;
    let selected = g.binary(Binary::And, &selected, &fits)?;
    Ok(Routing { weights: selected_scores(g, &scores, &selected, false)?, top_k: 1 })
}

/// Routing weights of SparseMixer-v2 (`sparsemixer` of `transformers.models.phimoe`; arXiv:2409.12136) for two experts: the
/// softmax of each over the logits that are less than `2 · jitter_noise` below it, relative to the larger magnitude.
///
/// # Errors
/// When the last axis of the logits has no fixed length, or there is one expert only.
pub fn sparse_mixer(g: &mut Graph, logits: &Tensor, jitter_noise: f64) -> Result<Routing> {
    let axis = logits.rank().saturating_sub(1);
    let (least, most) = (g.scalar(f32::MIN), g.scalar(2.0 * jitter_noise as f32));
    let magnitudes = g.unary(Unary::Abs, logits);
    let mut rest = logits.clone();
    let mut both: Option<Tensor> = None;
    for _ in 0..2 {
        let best = g.reduce(Reduction::Max, &rest, &[axis], true)?;
        let below = g.sub(&best, logits)?;
        let scale = g.binary(Binary::Max, &magnitudes, &best)?;
        let below = g.div(&below, &scale)?;
        let far = g.binary(Binary::Greater, &below, &most)?;
        let near = g.select(&far, &least, &rest)?;
        let scores = g.softmax(&near)?;
        let selected = g.top_k_mask(&rest, 1)?;
        let weight = selected_scores(g, &scores, &selected, false)?;
        rest = g.select(&selected, &least, &rest)?;
        both = Some(match both {
            Some(first) => g.add(&first, &weight)?,
            None => weight,
        });
    }
    let weights = both.ok_or_else(|| g.error("sparse_mixer", "nothing was selected"))?;
    Ok(Routing { weights, top_k: 2 })
}

/// The scores that are selected and 0 elsewhere; `normalised` to a sum of 1.
fn selected_scores(g: &mut Graph, scores: &Tensor, selected: &Tensor, normalised: bool) -> Result<Tensor> {
    let zero = g.scalar(0.0);
    let weights = g.select(selected, scores, &zero)?;
    if !normalised {
        return Ok(weights);
    }
    let sum = g.reduce(Reduction::Sum, &weights, &[scores.rank() - 1], true)?;
    g.div(&weights, &sum)
}

#[cfg(test)]
mod tests;
