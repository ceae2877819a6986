//! Non-maximum suppression: boxes that overlap a better one.

/// The boxes left, edges `[left, top, right, bottom]`, when those are taken out that overlap a better one of the same class by more
/// than `threshold` of what both cover (`batched_nms` of torchvision); `boxes` are in the order of scores, the best first.
pub(in crate::tasks) fn suppress(boxes: &[([f32; 4], usize)], threshold: f32) -> Vec<usize> {
    let mut kept: Vec<usize> = vec![];
    for (index, (one, class)) in boxes.iter().enumerate() {
        let overlaps = |&better: &usize| {
            let (other, of) = &boxes[better];
            of == class && intersection_over_union(one, other) > threshold
        };
        if !kept.iter().any(overlaps) {
            kept.push(index);
        }
    }
    kept
}

/// What two boxes share, in parts of what they cover together.
fn intersection_over_union(one: &[f32; 4], other: &[f32; 4]) -> f32 {
    let area = |edges: &[f32; 4]| (edges[2] - edges[0]) * (edges[3] - edges[1]);
    let common = [one[0].max(other[0]), one[1].max(other[1]), one[2].min(other[2]), one[3].min(other[3])];
    let shared = (common[2] - common[0]).max(0.0) * (common[3] - common[1]).max(0.0);
    shared / (area(one) + area(other) - shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_better_of_two_boxes_of_a_class_is_left() {
        let boxes = [[0.0, 0.0, 4.0, 4.0], [0.0, 1.0, 4.0, 4.0], [0.0, 1.0, 4.0, 4.0], [3.0, 3.0, 8.0, 8.0]];
        let of = |classes: [usize; 4], threshold| {
            let boxes: Vec<_> = boxes.into_iter().zip(classes).collect();
            suppress(&boxes, threshold)
        };
        // Of the first two 12 of 16 are shared, of the first and the last 1 of 40.
        assert_eq!(of([0; 4], 0.5), [0, 3]);
        assert_eq!(of([0; 4], 0.75), [0, 1, 3]);
        assert_eq!(of([0, 1, 0, 0], 0.5), [0, 1, 3]);
        assert_eq!(of([0; 4], 0.01), [0]);
    }

    #[test]
    fn boxes_without_an_area_overlap_nothing() {
        let point = ([2.0, 2.0, 2.0, 2.0], 0);
        assert_eq!(suppress(&[point, point], 0.5), [0, 1]);
    }
}
