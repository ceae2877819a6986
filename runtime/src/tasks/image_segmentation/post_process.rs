//! How each of the reference's image processors makes segments of queries: `post_process_semantic_segmentation`,
//! `post_process_instance_segmentation` and `post_process_panoptic_segmentation`.

use ndarray::{Array2, ArrayView2, Axis};

use super::queries::{MaskQueries, OwnMask, QuerySegment, sigmoid};
use super::{SegmentationOptions, Subtask};
use crate::image::{ImageProcessor, Mask, Pixels, Size, Step};
use crate::tasks::scores::{largest, top};
use crate::{Error, Result};

/// What Mask2Former's masks become before anything else is done with them.
const MASK2FORMER: Pixels = (384, 384);

/// The rule of an image processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PostProcess {
    /// Masks as the model gives them; instances by the rule of panoptic segments (`DetrImageProcessor`).
    Detr,
    /// Masks as the model gives them (`MaskFormerImageProcessor`).
    MaskFormer,
    /// Masks of 384 x 384 pixels (`Mask2FormerImageProcessor`).
    Mask2Former,
    /// As MaskFormer, but instances by the rule of panoptic segments on logits (`OneFormerImageProcessor`).
    OneFormer,
    /// Masks of the size of the model's images, without their padding (`EomtImageProcessor`).
    Eomt {
        /// `shortest_edge` and `longest_edge`, of which images are padded to the one and the other.
        size: Pixels,
    },
}

impl PostProcess {
    /// That of a checkpoint's image processor.
    pub(super) fn of(processor: &ImageProcessor) -> Result<Self> {
        Ok(match processor.class() {
            "MaskFormer" => Self::MaskFormer,
            "Mask2Former" => Self::Mask2Former,
            "OneFormer" => Self::OneFormer,
            "Eomt" => {
                let size = processor.steps().iter().find_map(|step| match step {
                    Step::Resize { size: Size::Between { shortest, longest }, .. } => {
                        Some((*shortest, *longest))
                    }
                    _ => None,
                });
                let help = "set `do_resize` to true, as published checkpoints do";
                let missing = || Error::config(processor.file(), "`do_resize` is false", help);
                Self::Eomt { size: size.ok_or_else(missing)? }
            }
            _ => Self::Detr,
        })
    }

    /// Each pixel's most probable label, `[height, width]`.
    pub(super) fn semantic_map(self, queries: &MaskQueries, size: Pixels) -> Array2<usize> {
        match self {
            Self::Detr | Self::MaskFormer | Self::OneFormer => queries.semantic_map(size),
            Self::Mask2Former => queries.resized(MASK2FORMER, None).semantic_map(size),
            Self::Eomt { size: padded } => queries.resized(padded, None).semantic_map(size),
        }
    }

    /// The segments of an image of this size, in the order of queries or of their scores.
    pub(super) fn segments(
        self,
        queries: &MaskQueries,
        size: Pixels,
        options: &SegmentationOptions,
    ) -> Vec<QuerySegment> {
        let instances = options.subtask == Some(Subtask::Instance);
        match self {
            Self::Detr => queries.segments(size, options),
            Self::MaskFormer if instances => best_instances(queries, size, options.threshold),
            Self::OneFormer if instances => {
                let sure = |pair: &(usize, usize, f32)| pair.2 > options.threshold;
                let pairs: Vec<_> = best_pairs(queries).into_iter().filter(sure).collect();
                queries.by_logits(&pairs, size, options)
            }
            Self::MaskFormer | Self::OneFormer => queries.segments(size, options),
            Self::Mask2Former => {
                let queries = queries.resized(MASK2FORMER, None);
                match instances {
                    true => best_instances(&queries, size, options.threshold),
                    false => queries.segments(size, options),
                }
            }
            Self::Eomt { size: padded } => {
                let content = Size::Between { shortest: padded.0, longest: padded.1 }.of(size);
                let queries = queries.resized(padded, Some(content)).resized(size, None);
                match instances {
                    true => query_instances(&queries, size, options.threshold),
                    false => queries.panoptic(size, options, OwnMask::Unweighted),
                }
            }
        }
    }
}

/// Instances of the best pairs of query and label, as many as there are queries, best first.
fn best_instances(queries: &MaskQueries, size: Pixels, threshold: f32) -> Vec<QuerySegment> {
    instances(queries, size, threshold, best_pairs(queries).into_iter())
}

/// The best pairs of query and label with the label's probability, as many as there are queries, best first.
fn best_pairs(queries: &MaskQueries) -> Vec<(usize, usize, f32)> {
    let labels = queries.labels();
    let (count, classes) = (labels.nrows(), labels.ncols() - 1);
    let scores: Vec<f32> =
        labels.rows().into_iter().flat_map(|row| row.to_vec()[..classes].to_vec()).collect();
    top(&scores, count).into_iter().map(|pair| (pair / classes, pair % classes, scores[pair])).collect()
}

/// Instances of each query with its best label, in the order of queries.
fn query_instances(queries: &MaskQueries, size: Pixels, threshold: f32) -> Vec<QuerySegment> {
    let of = |(query, row): (usize, ndarray::ArrayView1<'_, f32>)| {
        let row = row.to_vec();
        let class = largest(&row[..row.len() - 1]);
        (query, class, row[class])
    };
    instances(queries, size, threshold, queries.labels().rows().into_iter().enumerate().map(of))
}

/// Segments of query, label and the label's probability: where the mask's logit is above 0, if its mean probability there times the
/// label's is large enough. Of pixels that several have, the last one's.
fn instances(
    queries: &MaskQueries,
    size: Pixels,
    threshold: f32,
    pairs: impl Iterator<Item = (usize, usize, f32)>,
) -> Vec<QuerySegment> {
    let mut map = Array2::from_elem(size, usize::MAX);
    let mut found = vec![];
    for (query, class, label) in pairs {
        let logits = queries.masks().index_axis(Axis(0), query);
        let inside = logits.iter().filter(|logit| **logit > 0.0);
        let (sum, area) =
            inside.fold((0.0, 0.0), |(sum, area), logit| (sum + f64::from(sigmoid(*logit)), area + 1.0));
        let score = label * (sum / (area + 1e-6)) as f32;
        let mask = nearest(&logits, size);
        if score >= threshold && mask.iter().any(|inside| *inside) {
            map.zip_mut_with(&mask, |segment, inside| {
                if *inside {
                    *segment = found.len();
                }
            });
            found.push((score, class));
        }
    }
    let segment = |(index, (score, class))| {
        let mask = Mask::new(map.mapv(|segment| segment == index));
        QuerySegment { score, class, mask }
    };
    found.into_iter().enumerate().map(segment).collect()
}

/// Where logits are above 0, in another size (`interpolate` with the mode `nearest`).
fn nearest(logits: &ArrayView2<'_, f32>, (height, width): Pixels) -> Array2<bool> {
    let (rows, columns) = logits.dim();
    let from = |place: usize, from: usize, to: usize| {
        ((place as f32 * (from as f32 / to as f32)) as usize).min(from - 1)
    };
    Array2::from_shape_fn((height, width), |(y, x)| {
        logits[[from(y, rows, height), from(x, columns, width)]] > 0.0
    })
}

#[cfg(test)]
mod tests {
    use ndarray::{Array3, array};

    use super::*;

    /// Two queries of two labels and none: 0.8 and 0.1, 0.3 and 0.6; masks of the left half and of all.
    fn queries() -> MaskQueries {
        let labels = array![[0.8_f32, 0.1, 0.1], [0.3, 0.6, 0.1]];
        let masks = array![[[2.0, -1.0]], [[0.5, 0.5]]];
        MaskQueries::new(labels.mapv(f32::ln), masks).unwrap()
    }

    fn found(found: Vec<QuerySegment>) -> Vec<(usize, Vec<bool>)> {
        found.into_iter().map(|found| (found.class, found.mask.pixels().iter().copied().collect())).collect()
    }

    #[test]
    fn instances_are_the_best_pairs_and_the_last_has_the_pixel() {
        // 0.8 times 0.88, then 0.6 times 0.62, which is behind and has all pixels.
        let (t, f) = (true, false);
        let best = best_instances(&queries(), (1, 4), 0.5);
        assert!((best[0].score - 0.704_638).abs() < 1e-5);
        assert_eq!(found(best), [(0, vec![t, t, f, f])]);
        assert_eq!(found(best_instances(&queries(), (1, 4), 0.3)), [(0, vec![f; 4]), (1, vec![t; 4])]);
        assert_eq!(found(query_instances(&queries(), (1, 2), 0.3)), [(0, vec![f; 2]), (1, vec![t; 2])]);
    }

    #[test]
    fn instances_by_logits_count_where_these_are_large() {
        let instances = |mask_threshold, subtask| {
            let subtask = Some(subtask);
            let options = SegmentationOptions {
                threshold: 0.5,
                mask_threshold,
                subtask,
                ..SegmentationOptions::default()
            };
            found(PostProcess::OneFormer.segments(&queries(), (1, 2), &options))
        };
        // 0.8 times 2 and -1, 0.6 times 0.5: of the second mask no place reaches 0.5.
        let (t, f) = (true, false);
        assert_eq!(instances(0.5, Subtask::Instance), [(0, vec![t, f])]);
        assert_eq!(instances(1.7, Subtask::Instance), []);
        // Of probabilities 0.7 and 0.21, and 0.37 twice, of which no more than a half is left.
        assert_eq!(instances(0.3, Subtask::Panoptic), [(0, vec![t, f])]);
    }

    #[test]
    fn padding_is_left_out_before_masks_become_as_large_as_the_image() {
        // The image is the left half of what the model saw.
        let labels = array![[0.9_f32, 0.1], [0.8, 0.2]];
        let mut masks = Array3::from_elem((2, 4, 4), 4.0);
        masks.slice_mut(ndarray::s![0, .., 2..]).fill(-4.0);
        masks.slice_mut(ndarray::s![1, .., ..2]).fill(-4.0);
        let queries = MaskQueries::new(labels.mapv(f32::ln), masks).unwrap();
        let options = SegmentationOptions { threshold: 0.5, ..SegmentationOptions::default() };
        let segments = PostProcess::Eomt { size: (4, 4) }.segments(&queries, (8, 4), &options);
        assert_eq!(found(segments), [(0, vec![true; 32])]);
        let map = PostProcess::Eomt { size: (4, 4) }.semantic_map(&queries, (8, 4));
        assert_eq!(map, Array2::<usize>::zeros((8, 4)));
    }
}
