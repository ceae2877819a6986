//! Logits of every label at every place of a map to the label of each pixel.

use ndarray::{Array2, ArrayView3};

use crate::image::{Interpolated, Interpolation, Pixels};

/// The most probable label of each pixel of an image of this size, `[height, width]`, of `logits`
/// `[num_labels, rows, columns]` (`post_process_semantic_segmentation`).
pub fn semantic_map(logits: &ArrayView3<'_, f32>, size: Pixels) -> Array2<usize> {
    Interpolated::new(logits, size, Interpolation::Bilinear).argmax()
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn logits_are_interpolated_before_labels_are_chosen() {
        // Between 3 and -1, the first label is better where more than a quarter of the way is left.
        let logits = array![[[3.0, -1.0]], [[0.0, 0.0]]];
        assert_eq!(semantic_map(&logits.view(), (1, 8)), array![[0, 0, 0, 0, 0, 1, 1, 1]]);
    }
}
