//! Segments by queries: each has logits of labels, and a mask.

use ndarray::{Array2, Array3, Axis, s};

use super::SegmentationOptions;
use crate::image::{Interpolated, Interpolation, Mask, Pixels};
use crate::tasks::scores::{largest, softmax};
use crate::{Error, Result};

/// What a model's queries found in an image: of each, the probabilities of labels and a mask.
#[derive(Clone, Debug)]
pub struct MaskQueries {
    /// `[queries, num_labels + 1]`, the last of which is no object.
    labels: Array2<f32>,
    /// Their logits: `[queries, rows, columns]`.
    masks: Array3<f32>,
}

/// The segment of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct QuerySegment {
    /// The probability of its label.
    pub score: f32,
    /// The label's index.
    pub class: usize,
    /// Its pixels.
    pub mask: Mask,
}

impl MaskQueries {
    /// Queries of their logits of labels, `[queries, num_labels + 1]`, and of masks, `[queries, rows, columns]`.
    ///
    /// # Errors
    /// When there are not as many of each, or there is no label.
    pub fn new(mut logits: Array2<f32>, masks: Array3<f32>) -> Result<Self> {
        let (queries, labels) = logits.dim();
        if queries != masks.dim().0 || labels == 0 {
            let problem = format!("has shape {:?} beside {} masks", logits.shape(), masks.dim().0);
            return Err(Error::input("logits", problem, "open a model that is made for this task"));
        }
        for mut row in logits.rows_mut() {
            let probabilities = softmax(&row.to_vec());
            row.assign(&ndarray::aview1(&probabilities));
        }
        Ok(Self { labels: logits, masks })
    }

    /// The probabilities of labels, `[queries, num_labels + 1]`, the last of which is no object.
    pub(super) fn labels(&self) -> &Array2<f32> {
        &self.labels
    }

    /// The logits of masks, `[queries, rows, columns]`.
    pub(super) fn masks(&self) -> &Array3<f32> {
        &self.masks
    }

    /// The same with masks of another size, their logits interpolated; of these the upper left part, where one is given.
    pub(super) fn resized(&self, size: Pixels, part: Option<Pixels>) -> Self {
        let masks = Interpolated::new(&self.masks.view(), size, Interpolation::Bilinear).maps();
        let (rows, columns) = part.map_or(size, |(rows, columns)| (rows.min(size.0), columns.min(size.1)));
        Self { labels: self.labels.clone(), masks: masks.slice(s![.., ..rows, ..columns]).to_owned() }
    }

    /// Each pixel's most probable label, `[height, width]`: the sum of the queries' masks, each times its label's probability
    /// (`post_process_semantic_segmentation`).
    pub fn semantic_map(&self, size: Pixels) -> Array2<usize> {
        let labels = self.labels.dim().1 - 1;
        let (_, rows, columns) = self.masks.dim();
        let mut sums = Array3::<f32>::zeros((labels, rows, columns));
        let masks = self.masks.mapv(sigmoid);
        for (label, mut sum) in sums.axis_iter_mut(Axis(0)).enumerate() {
            for (mask, probabilities) in masks.axis_iter(Axis(0)).zip(self.labels.rows()) {
                sum.scaled_add(probabilities[label], &mask);
            }
        }
        super::semantic_map(&sums.view(), size)
    }

    /// The segments of an image of this size, in the order of queries: those whose label is an object and sure enough, each with
    /// the pixels where its mask times its score is the largest, if these are enough of its own mask
    /// (`post_process_panoptic_segmentation`, `compute_segments`).
    pub fn segments(&self, size: Pixels, options: &SegmentationOptions) -> Vec<QuerySegment> {
        self.panoptic(size, options, OwnMask::Weighted)
    }

    /// The same with another rule for what a query's own mask is.
    pub(super) fn panoptic(
        &self,
        size: Pixels,
        options: &SegmentationOptions,
        own_mask: OwnMask,
    ) -> Vec<QuerySegment> {
        let no_object = self.labels.dim().1 - 1;
        let best = |query: usize| {
            let row = self.labels.row(query).to_vec();
            let class = largest(&row);
            (query, class, row[class])
        };
        let kept = (0..self.labels.dim().0).map(best);
        let kept: Vec<_> =
            kept.filter(|(_, class, score)| *class != no_object && *score > options.threshold).collect();
        let chosen: Vec<usize> = kept.iter().map(|(query, ..)| *query).collect();
        let masks = self.masks.select(Axis(0), &chosen).mapv(sigmoid);
        compute_segments(&masks, &kept, size, options, own_mask)
    }

    /// The segments of these pairs of query and label, and the label's probability, by the logits of their masks and not their
    /// probabilities (`OneFormerImageProcessor.post_process_instance_segmentation`).
    pub(super) fn by_logits(
        &self,
        pairs: &[(usize, usize, f32)],
        size: Pixels,
        options: &SegmentationOptions,
    ) -> Vec<QuerySegment> {
        let chosen: Vec<usize> = pairs.iter().map(|(query, ..)| *query).collect();
        compute_segments(&self.masks.select(Axis(0), &chosen), pairs, size, options, OwnMask::Weighted)
    }
}

/// The segments of masks `[pairs, rows, columns]` of these queries and labels with the labels' probabilities (`compute_segments`).
fn compute_segments(
    masks: &Array3<f32>,
    kept: &[(usize, usize, f32)],
    size: Pixels,
    options: &SegmentationOptions,
    own_mask: OwnMask,
) -> Vec<QuerySegment> {
    let masks = Interpolated::new(&masks.view(), size, Interpolation::Bilinear).maps();
    let mut weighted = masks.clone();
    for (mut mask, (_, _, score)) in weighted.axis_iter_mut(Axis(0)).zip(kept) {
        mask.mapv_inplace(|probability| probability * score);
    }
    let winners: Array2<usize> = weighted.map_axis(Axis(0), |pixel| largest(&pixel.to_vec()));
    let own_masks = if own_mask == OwnMask::Weighted { weighted } else { masks };
    let mut found = vec![];
    for (index, &(_, class, score)) in kept.iter().enumerate() {
        let own = own_masks.index_axis(Axis(0), index);
        let own = own.mapv(|probability| probability >= options.mask_threshold);
        let mut mask = winners.mapv(|winner| winner == index);
        let [area, own_area] = [&mask, &own].map(|mask| mask.iter().filter(|inside| **inside).count());
        if own_mask == OwnMask::Unweighted {
            mask.zip_mut_with(&own, |inside, own| *inside = *inside && *own);
        }
        let mask = Mask::new(mask);
        let part = area as f32 / own_area as f32;
        if own_area > 0 && mask.area() > 0 && part > options.overlap_mask_area_threshold {
            found.push(QuerySegment { score, class, mask });
        }
    }
    found
}

/// What a query's own mask is, of which a segment must be a part that is large enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnMask {
    /// Where the mask's probability times the label's is above the threshold (DETR, MaskFormer).
    Weighted,
    /// Where the mask's probability is, and the segment lies within it (EoMT).
    Unweighted,
}

pub(super) fn sigmoid(logit: f32) -> f32 {
    1.0 / (1.0 + (-logit).exp())
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    /// The logit of a probability.
    fn logit(probability: f32) -> f32 {
        (probability / (1.0 - probability)).ln()
    }

    fn queries() -> MaskQueries {
        // Of no object, of the first label with 0.9, of the second with 0.8 and with 0.4.
        let labels = array![[0.05, 0.05, 0.9], [0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.3, 0.4, 0.3]];
        let masks = array![
            [[0.99, 0.99, 0.99, 0.99]],
            [[0.8, 0.8, 0.1, 0.1]],
            [[0.7, 0.95, 0.9, 0.1]],
            [[0.1, 0.1, 0.1, 0.9]]
        ];
        MaskQueries::new(labels.mapv(f32::ln), masks.mapv(logit)).unwrap()
    }

    fn found(options: &SegmentationOptions) -> Vec<(usize, Vec<bool>)> {
        let found = queries().segments((1, 4), options);
        found.into_iter().map(|found| (found.class, found.mask.pixels().iter().copied().collect())).collect()
    }

    #[test]
    fn pixels_go_to_the_query_that_is_surest() {
        let options = SegmentationOptions { threshold: 0.5, ..SegmentationOptions::default() };
        // 0.72 against 0.56, 0.72 against 0.76, 0.09 against 0.72, 0.09 against 0.08: of the first label's own mask, two
        // pixels, two are left, and of the second's three of at least a half two.
        let (t, f) = (true, false);
        assert_eq!(found(&options), [(0, vec![t, f, f, t]), (1, vec![f, t, t, f])]);
        let surer = SegmentationOptions { threshold: 0.85, ..options.clone() };
        assert_eq!(found(&surer), [(0, vec![t; 4])]);
        // More than what is left of the second is asked for.
        let whole = SegmentationOptions { overlap_mask_area_threshold: 0.7, ..options };
        assert_eq!(found(&whole), [(0, vec![t, f, f, t])]);
    }

    #[test]
    fn labels_are_summed_over_queries() {
        // At the second pixel, 0.0495 + 0.72 + 0.095 + 0.03 against 0.0495 + 0.04 + 0.76 + 0.04.
        assert_eq!(queries().semantic_map((1, 4)), array![[0, 0, 1, 1]]);
    }

    #[test]
    fn masks_of_other_queries_are_refused() {
        let wrong = MaskQueries::new(Array2::zeros((2, 3)), Array3::zeros((1, 1, 1)));
        let text = wrong.unwrap_err().to_string();
        assert!(text.contains("[2, 3] beside 1 masks"), "{text}");
    }
}
