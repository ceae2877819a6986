//! Masks of one frame beside each other: how much they overlap, which of them a pixel belongs to, and their holes.

use ndarray::{Array2, Array3, ArrayView2, Axis, Zip};

/// What a logit of a pixel is at most that belongs to another object.
const SUPPRESSED: f32 = -10.0;

/// The overlap of two masks, those pixels in both of those in either (`mask_iou`).
pub(super) fn mask_iou(one: &Array2<f32>, other: &Array2<f32>) -> f32 {
    let (mut both, mut either) = (0_u32, 0_u32);
    Zip::from(one).and(other).for_each(|one, other| {
        let (one, other) = (*one > 0.0, *other > 0.0);
        both += u32::from(one && other);
        either += u32::from(one || other);
    });
    both as f32 / either.max(1) as f32
}

/// Whether a mask has any pixel.
pub(super) fn is_nonempty(mask: &Array2<f32>) -> bool {
    mask.iter().any(|logit| *logit > 0.0)
}

/// Which of these masks are left where the surer one of two that overlap more than `most` is kept alone (`nms_masks`).
pub(super) fn non_maximum_suppression(masks: &[&Array2<f32>], scores: &[f32], most: f32) -> Vec<bool> {
    let mut order: Vec<usize> = (0..masks.len()).collect();
    order.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]));
    let mut kept: Vec<usize> = vec![];
    for index in order {
        if kept.iter().all(|surer| mask_iou(masks[*surer], masks[index]) <= most) {
            kept.push(index);
        }
    }
    (0..masks.len()).map(|index| kept.contains(&index)).collect()
}

/// Logits of masks without what they lose to others by less than a third: where pixels belong to the mask with the highest logit alone,
/// those of which less than 0.3 is left are suppressed as a whole (`_suppress_object_pw_area_shrinkage`).
pub(super) fn suppress_shrunk(masks: &mut [&mut Array2<f32>]) {
    if masks.len() <= 1 {
        return;
    }
    let best = highest(&masks.iter().map(|mask| mask.view()).collect::<Vec<_>>());
    for (index, mask) in masks.iter_mut().enumerate() {
        let (mut before, mut after) = (0_u32, 0_u32);
        Zip::from(&**mask).and(&best).for_each(|logit, best| {
            before += u32::from(*logit > 0.0);
            after += u32::from(*logit > 0.0 && *best == index);
        });
        if (after as f32 / before.max(1) as f32) < 0.3 {
            mask.mapv_inplace(|logit| logit.min(SUPPRESSED));
        }
    }
}

/// The index of the first of the highest values of each pixel.
pub(super) fn highest(maps: &[ArrayView2<'_, f32>]) -> Array2<usize> {
    let shape = maps.first().map_or((0, 0), ArrayView2::dim);
    Array2::from_shape_fn(shape, |place| {
        let mut best = 0;
        for (index, map) in maps.iter().enumerate() {
            if map[place] > maps[best][place] {
                best = index;
            }
        }
        best
    })
}

/// Logits without small holes, which become 0.1, and without small specks, which become -0.1: connected pixels, by edges or corners, of no
/// more than `most`; specks, of no more than half of all pixels of the mask, too (`fill_holes_in_mask_scores`).
pub(super) fn fill_holes(mask: &Array2<f32>, most: usize) -> Array2<f32> {
    if most == 0 {
        return mask.clone();
    }
    let mut filled = mask.clone();
    let holes = areas(&mask.mapv(|logit| logit <= 0.0));
    Zip::from(&mut filled).and(&holes).for_each(|logit, area| {
        if (1..=most).contains(area) {
            *logit = 0.1;
        }
    });
    let inside = filled.mapv(|logit| logit > 0.0);
    let most = most.min(inside.iter().filter(|inside| **inside).count() / 2);
    let specks = areas(&inside);
    Zip::from(&mut filled).and(&specks).for_each(|logit, area| {
        if (1..=most).contains(area) {
            *logit = -0.1;
        }
    });
    filled
}

/// Of each pixel that is set, how many it is connected with, itself among them; 0 of others.
fn areas(set: &Array2<bool>) -> Array2<usize> {
    let (rows, columns) = set.dim();
    let mut areas = Array2::zeros((rows, columns));
    let mut seen = Array2::from_elem((rows, columns), false);
    for (start, _) in set.indexed_iter().filter(|(_, set)| **set) {
        if seen[start] {
            continue;
        }
        let mut found = vec![start];
        seen[start] = true;
        let mut next = 0;
        while let Some(&(row, column)) = found.get(next) {
            next += 1;
            for row in row.saturating_sub(1)..(row + 2).min(rows) {
                for column in column.saturating_sub(1)..(column + 2).min(columns) {
                    if set[(row, column)] && !seen[(row, column)] {
                        seen[(row, column)] = true;
                        found.push((row, column));
                    }
                }
            }
        }
        for place in &found {
            areas[*place] = found.len();
        }
    }
    areas
}

/// Masks of which each pixel belongs to the object with the highest score among those of one text
/// (`_apply_object_wise_non_overlapping_constraints`); an object whose score is not above 0 has none.
pub(super) fn apart(masks: &mut Array3<bool>, scores: &[f32], texts: &[usize]) {
    let of_text = |text: usize| (0..texts.len()).filter(move |index| texts[*index] == text);
    for text in texts.iter().copied().collect::<std::collections::BTreeSet<_>>() {
        let objects: Vec<usize> = of_text(text).collect();
        let scored: Vec<Array2<f32>> = objects
            .iter()
            .map(|index| {
                masks.index_axis(Axis(0), *index).mapv(|inside| if inside { scores[*index] } else { 0.0 })
            })
            .collect();
        let best = highest(&scored.iter().map(|map| map.view()).collect::<Vec<_>>());
        for (place, index) in objects.iter().enumerate() {
            let mut mask = masks.index_axis_mut(Axis(0), *index);
            Zip::from(&mut mask).and(&scored[place]).and(&best).for_each(|inside, score, best| {
                *inside &= *score > 0.0 && *best == place;
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn the_surer_of_two_masks_that_overlap_is_kept() {
        let (one, other, apart) =
            (array![[1.0, 1.0, -1.0]], array![[1.0, 1.0, 1.0]], array![[-1.0, -1.0, 1.0]]);
        assert!((mask_iou(&one, &other) - 2.0 / 3.0).abs() < 1e-6 && mask_iou(&one, &apart) == 0.0);
        let kept = non_maximum_suppression(&[&one, &other, &apart], &[0.6, 0.9, 0.7], 0.5);
        assert_eq!(kept, [false, true, true]);
        let empty = array![[-1.0]];
        assert!(mask_iou(&empty, &empty) == 0.0 && !is_nonempty(&empty));
    }

    #[test]
    fn masks_that_lose_most_to_others_are_suppressed() {
        let (mut small, mut large) = (array![[1.0, 1.0, 1.0, 1.0]], array![[2.0, 2.0, 2.0, -5.0]]);
        suppress_shrunk(&mut [&mut small, &mut large]);
        assert_eq!((small, large), (array![[-10.0; 4]], array![[2.0, 2.0, 2.0, -5.0]]));
        let mut alone = array![[1.0]];
        suppress_shrunk(&mut [&mut alone]);
        assert_eq!(alone, array![[1.0]]);
    }

    #[test]
    fn small_holes_are_filled_and_small_specks_removed() {
        let mask = array![
            [3.0, 3.0, 3.0, 3.0, -2.0, 4.0],
            [3.0, -1.0, 3.0, 3.0, -2.0, -2.0],
            [3.0, 3.0, 3.0, 3.0, -2.0, -2.0],
        ];
        let mut expected = mask.clone();
        (expected[(1, 1)], expected[(0, 5)]) = (0.1, -0.1);
        assert_eq!(fill_holes(&mask, 2), expected);
        assert_eq!(fill_holes(&mask, 0), mask);
        // Half of a mask is no speck of it.
        let halves = array![[1.0, -1.0, 1.0]];
        assert_eq!(fill_holes(&array![[1.0, -9.0, -9.0, -9.0]], 2), array![[1.0, -9.0, -9.0, -9.0]]);
        assert_eq!(fill_holes(&halves, 1), array![[1.0, 0.1, 1.0]]);
        // Corners connect.
        assert_eq!(areas(&array![[true, false], [false, true]]), array![[2, 0], [0, 2]]);
    }

    #[test]
    fn pixels_belong_to_the_surest_object_of_a_text() {
        let mut masks = array![[[true, true]], [[false, true]], [[true, true]], [[true, false]]];
        apart(&mut masks, &[0.5, 0.9, 0.1, 0.0], &[0, 0, 1, 2]);
        assert_eq!(masks, array![[[true, false]], [[false, true]], [[true, true]], [[false, false]]]);
    }
}
