//! Builders of operations that few models have, each with the passes over it: a program is linked with those that its models build.

use crate::Result;
use crate::graph::{Graph, LinearAttention, LstmLayer, LstmOutput, SelectiveScan, Tensor};
use crate::lower::rare;

impl Graph {
    /// Selective scan (`selective_scan_fn`; Gu and Dao, 2023, arXiv:2312.00752): `[batch, sequence, width]`, and the state behind
    /// the last position `[batch, width, state, 1]`, in single precision.
    ///
    /// Of each channel `S = exp(∆·A)·S + ∆·u·B` with the softplus of what is given as ∆, of which the result is `Sᵀ·C + D·u`, times
    /// `SiLU(z)` where there is a gate.
    ///
    /// # Errors
    /// When the shapes do not go together.
    pub fn selective_scan(&mut self, x: &SelectiveScan<'_>) -> Result<(Tensor, Tensor)> {
        self.rare.recurrence = Some(&rare::RECURRENCE);
        self.selective_scan_node(x)
    }

    /// Linear attention (`com.microsoft.LinearAttention`): a state that keys and values are added to and queries read, position by position:
    /// `[batch, sequence, heads·value]`, and the state behind the last position `[batch, heads, key, value]`.
    ///
    /// With decay g and delta rule β: `S = exp(g)·S + k ⊗ β(v − exp(g)·Sᵀk)`, of which the result is `scale·Sᵀq`.
    ///
    /// # Errors
    /// When the shapes do not go together.
    pub fn linear_attention(&mut self, x: &LinearAttention<'_>) -> Result<(Tensor, Tensor)> {
        self.rare.recurrence = Some(&rare::RECURRENCE);
        self.linear_attention_node(x)
    }

    /// Causal depthwise convolution (`causal_conv1d`): x `[batch, sequence, channels]` behind `past`
    /// `[batch, (kernel − 1)·dilation, channels]`, weight `[channels, 1, kernel]` and optional bias `[channels]`, to the shape of x, with
    /// SiLU applied where that is asked for; and what comes before the next positions, of the shape of `past`.
    ///
    /// # Errors
    /// When the shapes do not go together.
    pub fn causal_conv(
        &mut self,
        x: &Tensor,
        past: &Tensor,
        weight: &Tensor,
        bias: Option<&Tensor>,
        dilation: usize,
        silu: bool,
    ) -> Result<(Tensor, Tensor)> {
        self.rare.recurrence = Some(&rare::RECURRENCE);
        self.causal_conv_node(x, past, weight, bias, dilation, silu)
    }

    /// A layer of long short-term memory (ONNX's `LSTM`): `i, o, f = σ(…)`, `c = f·c + i·tanh(…)`, `h = o·tanh(c)`. The second of two
    /// directions goes from the last position to the first.
    ///
    /// # Errors
    /// When the shapes do not go together.
    pub fn lstm(&mut self, layer: &LstmLayer<'_>) -> Result<LstmOutput> {
        self.rare.lstm = Some(&rare::LSTM);
        self.lstm_node(layer)
    }

    /// Bilinear samples of a feature map (`torch.nn.functional.grid_sample`): x `[batch, channels, height, width]` f32 at `grid`
    /// `[batch, rows, columns, 2]` f32, across and down, from -1 to 1, to `[batch, channels, rows, columns]`. Beyond the edge are
    /// zeros. -1 and 1 are the corners' centres where `align_corners` says so, or else the corners.
    ///
    /// # Errors
    /// When x and the grid have other axes, other batches or are not f32.
    pub fn grid_sample(&mut self, x: &Tensor, grid: &Tensor, align_corners: bool) -> Result<Tensor> {
        self.rare.samples = Some(&rare::SAMPLES);
        self.grid_sample_node(x, grid, align_corners)
    }

    /// Linear layers of selected experts (`grouped_mm` of `transformers.integrations.moe`): x `[rows, selected, in]`, or
    /// `[rows, 1, in]` for all that are selected, by the weights of the experts `indices` `[rows, selected]`; to
    /// `[rows, selected, out]`. Weights are a tensor `[out, in]` for each expert, or one `[experts, out, in]`; `transposed` ones
    /// lie the other way.
    ///
    /// # Errors
    /// When the shapes do not go together, or no weights are given.
    pub fn expert_linear(
        &mut self,
        x: &Tensor,
        indices: &Tensor,
        weights: &[Tensor],
        transposed: bool,
    ) -> Result<Tensor> {
        self.rare.experts = Some(&rare::EXPERTS);
        self.expert_linear_node(x, indices, weights, transposed)
    }
}
