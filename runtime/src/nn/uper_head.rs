//! The decode head of UPerNet: pyramid pooling and a feature pyramid (arXiv:1807.10221).

use super::Activation;
use super::convolution::conv_bn_at;
use crate::Result;
use crate::graph::{Binary, Conv, Dim, Dtype, Graph, Interpolation, Reduction, Scope, Tensor};

/// The epsilon of batch normalisation.
const EPSILON: f64 = 1e-5;

/// UPerNet's decode head (`BeitUperHead`, `UperNetHead`): logits of labels from feature maps, the largest first.
#[derive(Clone, Copy, Debug)]
pub struct UperHead<'a> {
    /// The channels within the head.
    pub width: usize,
    /// The edges that the last feature map is pooled to.
    pub pool_scales: &'a [usize],
    /// The number of labels.
    pub num_labels: usize,
    /// The names of a convolution and of its batch normalisation.
    pub conv: [&'a str; 2],
    /// What stands before and after the number of a pooled map's convolution.
    pub pyramid: [&'a str; 2],
    /// The convolution over all pooled maps.
    pub bottleneck: &'a str,
}

impl<'a> UperHead<'a> {
    /// The head with BEiT's names.
    pub fn new(width: usize, pool_scales: &'a [usize], num_labels: usize) -> Self {
        Self {
            width,
            pool_scales,
            num_labels,
            conv: ["convolution", "normalization"],
            pyramid: ["psp_modules.blocks", "conv"],
            bottleneck: "psp_bottleneck",
        }
    }

    /// Logits, `[batch, num_labels, rows, columns]`, with the rows and columns of the first of the feature maps
    /// `[batch, channels, rows, columns]`.
    ///
    /// # Errors
    /// When there is no map, or the last has no fixed size.
    pub fn forward(&self, g: &mut Graph, w: &Scope, maps: &[Tensor]) -> Result<Tensor> {
        let Some((last, others)) = maps.split_last() else {
            return Err(g.error("Conv", "no feature map is there to decode"));
        };
        let mut laterals = vec![];
        for (index, map) in others.iter().enumerate() {
            laterals.push(self.conv(g, &w.scope("lateral_convs").index(index), map, 1)?);
        }
        laterals.push(self.pyramid_pooling(g, w, last)?);
        for index in (1..laterals.len()).rev() {
            let size = size(&laterals[index - 1]);
            let larger = g.resize(&laterals[index], size, Interpolation::Bilinear, false)?;
            laterals[index - 1] = g.add(&laterals[index - 1], &larger)?;
        }
        let first = size(&laterals[0]);
        let mut pyramid = vec![];
        for (index, lateral) in laterals.iter().enumerate() {
            let map = match index < others.len() {
                true => self.conv(g, &w.scope("fpn_convs").index(index), lateral, 3)?,
                false => lateral.clone(),
            };
            pyramid.push(match index {
                0 => map,
                _ => g.resize(&map, first.clone(), Interpolation::Bilinear, false)?,
            });
        }
        let pyramid: Vec<_> = pyramid.iter().collect();
        let x = g.concat(&pyramid, 1)?;
        let x = self.conv(g, &w.scope("fpn_bottleneck"), &x, 3)?;
        g.conv(&w.scope("classifier"), &x, &Conv::new(self.num_labels, &[1, 1]))
    }

    /// Pyramid pooling (PSPNet, arXiv:1612.01105; `BeitPyramidPoolingModule`): the map beside its means over grids.
    fn pyramid_pooling(&self, g: &mut Graph, w: &Scope, map: &Tensor) -> Result<Tensor> {
        let [before, after] = self.pyramid;
        let mut all = vec![map.clone()];
        for (index, &scale) in self.pool_scales.iter().enumerate() {
            let pooled = adaptive_avg_pool(g, map, [scale; 2])?;
            let pooled = self.conv(g, &w.scope(before).index(index).scope(after), &pooled, 1)?;
            all.push(g.resize(&pooled, size(map), Interpolation::Bilinear, false)?);
        }
        let all: Vec<_> = all.iter().collect();
        let x = g.concat(&all, 1)?;
        self.conv(g, &w.scope(self.bottleneck), &x, 3)
    }

    /// Convolution, batch normalisation and ReLU (`BeitConvLayer`).
    fn conv(&self, g: &mut Graph, w: &Scope, x: &Tensor, kernel: usize) -> Result<Tensor> {
        let conv = Conv::new(self.width, &[kernel; 2]).half_padding().no_bias();
        let [convolution, normalization] = self.conv.map(|name| w.scope(name));
        let x = conv_bn_at(g, [&convolution, &normalization], x, &conv, EPSILON)?;
        g.activation(Activation::Relu, &x)
    }
}

/// Rows and columns of a map.
fn size(map: &Tensor) -> [Dim; 2] {
    [2, 3].map(|axis| map.shape().get(axis).cloned().unwrap_or(Dim::Fixed(0)))
}

/// The means over a grid of windows that cover x `[batch, channels, rows, columns]` and may overlap by a row or column
/// (`torch.nn.AdaptiveAvgPool2d`): `[batch, channels, grid…]`.
///
/// # Errors
/// When x has not these axes.
pub fn adaptive_avg_pool(g: &mut Graph, x: &Tensor, [rows, columns]: [usize; 2]) -> Result<Tensor> {
    if x.rank() != 4 {
        return Err(g.error("AveragePool", format!("four axes are needed, not {}", x.rank())));
    }
    let [height, width] = size(x);
    let down = window_means(g, &height, rows)?;
    let x = g.matmul(&down, x)?;
    let across = window_means(g, &width, columns)?;
    let across = g.transpose(&across, &[1, 0])?;
    g.matmul(&x, &across)
}

/// What each of `windows` takes of `length` elements: `[windows, length]`.
fn window_means(g: &mut Graph, length: &Dim, windows: usize) -> Result<Tensor> {
    if let Some(length) = length.fixed() {
        let mut means = vec![0.0; windows * length];
        for window in 0..windows {
            let (start, end) = (window * length / windows, ((window + 1) * length).div_ceil(windows));
            means[window * length + start..window * length + end].fill(1.0 / (end - start) as f32);
        }
        return g.constant(&[windows, length], means);
    }
    let places = g.arange(length);
    run_time_means(g, &places, windows)
}

/// The same of as many elements as there are `places`, which are numbered from 0.
fn run_time_means(g: &mut Graph, places: &Tensor, windows: usize) -> Result<Tensor> {
    // An element is in a window where it ends behind the window's start and starts before its end:
    // all these times the number of windows.
    let places = g.cast(places, Dtype::F32);
    let count = g.reduce(Reduction::Max, &places, &[0], true)?;
    let one = g.scalar(1.0);
    let count = g.add(&count, &one)?;
    let index: Vec<f32> = (0..windows).map(|window| window as f32).collect();
    let index = g.constant(&[windows, 1], index)?;
    let start = g.mul(&index, &count)?;
    let end = g.add(&start, &count)?;
    let first = g.scale(&places, windows as f64)?;
    let all = g.scalar(windows as f32);
    let behind = g.add(&first, &all)?;
    let begun = g.binary(Binary::Less, &start, &behind)?;
    let open = g.binary(Binary::Less, &first, &end)?;
    let both = g.binary(Binary::And, &begun, &open)?;
    let inside = g.cast(&both, Dtype::F32);
    let sum = g.reduce(Reduction::Sum, &inside, &[1], true)?;
    g.div(&inside, &sum)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{evaluate, expect, refusal};
    use super::*;

    fn map(g: &mut Graph) -> Result<Tensor> {
        g.constant(&[1, 1, 2, 5], (0..10).map(|place| place as f32).collect())
    }

    #[test]
    fn windows_overlap_where_they_do_not_divide() {
        // torch.nn.AdaptiveAvgPool2d((1, 3))(torch.arange(10.).reshape(1, 1, 2, 5)), and of (4, 2).
        expect(
            &[],
            |g| map(g).and_then(|x| adaptive_avg_pool(g, &x, [1, 3])),
            &[1, 1, 1, 3],
            &[3.0, 4.5, 6.0],
        );
        let more = [1.0, 3.0, 1.0, 3.0, 6.0, 8.0, 6.0, 8.0];
        expect(&[], |g| map(g).and_then(|x| adaptive_avg_pool(g, &x, [4, 2])), &[1, 1, 4, 2], &more);
        let text = refusal(|g| g.constant(&[2], vec![0.0; 2]).and_then(|x| adaptive_avg_pool(g, &x, [1, 1])));
        assert!(text.contains("four axes"), "{text}");
    }

    #[test]
    fn lengths_known_at_run_time_give_the_same_windows() {
        for (length, windows) in [(5_usize, 3_usize), (2, 4), (7, 7), (6, 1)] {
            let fixed = |g: &mut Graph| window_means(g, &Dim::Fixed(length), windows);
            // The same number, which the graph does not know to be one.
            let dynamic = |g: &mut Graph| {
                let length = Dim::Fixed(length);
                let places = g.arange(&length);
                run_time_means(g, &places, windows)
            };
            assert_eq!(evaluate(&[], fixed), evaluate(&[], dynamic), "{windows} windows of {length}");
        }
    }

    #[test]
    fn levels_are_added_from_the_last_to_the_first() {
        let norm: [(&str, &[f32]); 4] =
            [("weight", &[1.0]), ("bias", &[0.0]), ("running_mean", &[0.0]), ("running_var", &[1.0 - 1e-5])];
        let kernels: [(&str, &[f32]); 5] = [
            ("lateral_convs.0", &[2.0]),
            ("fpn_convs.0", &[0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]),
            ("psp_modules.blocks.0.conv", &[10.0]),
            // The map itself, and the pooled one.
            (
                "psp_bottleneck",
                &[0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
            ),
            (
                "fpn_bottleneck",
                &[0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 100.0, 0.0, 0.0, 0.0, 0.0],
            ),
        ];
        let mut weights: Vec<(String, &[f32])> = vec![];
        for (name, kernel) in kernels {
            weights.push((format!("{name}.convolution.weight"), kernel));
            weights.extend(norm.map(|(leaf, values)| (format!("{name}.normalization.{leaf}"), values)));
        }
        weights.push(("classifier.weight".to_owned(), &[1.0, -1.0]));
        weights.push(("classifier.bias".to_owned(), &[0.5, 0.0]));
        let weights: Vec<(&str, &[f32])> =
            weights.iter().map(|(name, values)| (name.as_str(), *values)).collect();
        let build = |g: &mut Graph| {
            let first = g.constant(&[1, 1, 1, 2], vec![1.0, 3.0])?;
            let last = g.constant(&[1, 1, 1, 1], vec![4.0])?;
            UperHead::new(1, &[1], 2).forward(g, &Scope::root(), &[first, last])
        };
        // The last level is 4 + 40, and the first 2 + 44 and 6 + 44; then 46 + 4400 and 50 + 4400.
        expect(&weights, build, &[1, 2, 1, 2], &[4446.5, 4450.5, -4446.0, -4450.0]);
    }
}
