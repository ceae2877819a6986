//! Tokens of a page among the patches of its image: which patch each token lies on, which patches hold none, and where all are.
//!
//! Reference: `combine_image_text_embeddings`, `UdopCellEmbeddings` and `RelativePositionBiasBase.get_relative_position`.

use ndarray::{Array2, Array3, ArrayView3, Ix3};

use crate::{Error, Result, Value, Values};

const BOXES: &str = "bbox";
const PATCH_BOXES: &str = "visual_bbox";
const PAGES: &str = "pixel_values";
const MASK: &str = "attention_mask";

/// A page as a square of patches, whose tokens have boxes (`combine_image_text_embeddings` of UDOP).
///
/// Its positions are tokens, then patches on which no token lies, then as many empty ones as make up for the other patches:
/// `text_sequence + side²`; of pages without an image tokens alone. All is computed from `bbox` f32 `[batch, text_sequence, 4]`,
/// left, upper, right and lower edge as fractions of the page, in the precision of the reference: double where there are images.
#[derive(Clone, Copy, Debug)]
pub struct PageLayout {
    /// Patches on a side of the page.
    pub side: usize,
}

/// An axis of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageAxis {
    /// Across the page: left and right edges.
    Horizontal,
    /// Down the page: upper and lower edges.
    Vertical,
}

impl PageLayout {
    /// The box of each patch (`get_visual_bbox`): `[batch, side², 4]` f32.
    ///
    /// # Errors
    /// When there are no boxes of tokens.
    pub fn patch_boxes(self, values: &Values) -> Result<Value> {
        let side = self.side.max(1);
        let edge = |index: usize| index as f32 / side as f32;
        let boxes = Array3::from_shape_fn((tokens(values)?.dim().0, side * side, 4), |(_, patch, of)| {
            let place = if of % 2 == 0 { patch % side } else { patch / side };
            edge(place + of / 2)
        });
        Ok(Value::F32(boxes.into_dyn()))
    }

    /// The patch that each token lies on: `[batch, text_sequence]` i64, 1 and on for patches of all pages, one page after the
    /// other; 0 for tokens without a box, whose edges are 0 or 1 on average.
    ///
    /// # Errors
    /// When there are no boxes of tokens.
    pub fn token_patches(self, values: &Values) -> Result<Value> {
        let (boxes, pages) = (tokens(values)?, self.patches());
        let (batch, sequence, _) = boxes.dim();
        let of = |(row, token)| {
            let edges = [0, 1, 2, 3].map(|edge| boxes[(row, token, edge)]);
            let mean = edges.map(f64::from).iter().sum::<f64>() / 4.0;
            if mean == 0.0 || mean == 1.0 { 0 } else { (1 + row * pages + self.patch(edges)) as i64 }
        };
        Ok(Value::I64(Array2::from_shape_fn((batch, sequence), of).into_dyn()))
    }

    /// The patches on which no token lies (`input_vision_patches`), in the order of the page: `[batch, side²]` i64, counted as in
    /// [`token_patches`](Self::token_patches); 0 behind the last of them.
    ///
    /// # Errors
    /// When there are no boxes of tokens.
    pub fn vision_patches(self, values: &Values) -> Result<Value> {
        let (boxes, pages) = (tokens(values)?, self.patches());
        let mut all = Array2::zeros((boxes.dim().0, pages));
        for (row, mut patches) in all.rows_mut().into_iter().enumerate() {
            for (place, patch) in patches.iter_mut().zip(self.without_tokens(&boxes, row)) {
                *place = (1 + row * pages + patch) as i64;
            }
        }
        Ok(Value::I64(all.into_dyn()))
    }

    /// 1 for tokens and patches, 0 for padding and empty positions: `[batch, positions]` i64. Where `attention_mask` is not given all
    /// is 1, empty positions too.
    ///
    /// # Errors
    /// When there are no boxes of tokens.
    pub fn attention_mask(self, values: &Values) -> Result<Value> {
        let boxes = tokens(values)?;
        let (batch, sequence, _) = boxes.dim();
        let positions = sequence + if values.contains_key(PAGES) { self.patches() } else { 0 };
        let mut mask = Array2::ones((batch, positions));
        if let Some(given) = values.get(MASK) {
            let given = given.i64(MASK)?;
            for (row, mut mask) in mask.rows_mut().into_iter().enumerate() {
                let patches = self.without_tokens(&boxes, row).len();
                for (position, seen) in mask.iter_mut().enumerate() {
                    *seen = match given.get([row, position]) {
                        Some(given) if position < sequence => *given,
                        _ => i64::from(position < sequence + patches),
                    };
                }
            }
        }
        Ok(Value::I64(mask.into_dyn()))
    }

    /// Rows of tables of `rows` position embeddings for the edges of each box (`UdopCellEmbeddings`): `[batch, positions, 4]` i64.
    ///
    /// # Errors
    /// When there are no boxes of tokens.
    pub fn box_ids(self, values: &Values, rows: usize) -> Result<Value> {
        let (boxes, single) = (self.boxes(values)?, !values.contains_key(PAGES));
        let last = rows.saturating_sub(1) as f64;
        let id = |edge: &f32| {
            let place = f64::from(edge.clamp(0.0, 1.0)) * last;
            let place = if single { f64::from(place as f32) } else { place };
            (place as i64).clamp(0, last as i64)
        };
        Ok(Value::I64(boxes.map(id).into_dyn()))
    }

    /// How far each key is after its query on the page, from middle to middle, times `factor`, without fraction
    /// (`get_relative_position`): `[batch, positions, positions]` i64, queries then keys.
    ///
    /// # Errors
    /// When there are no boxes of tokens.
    pub fn distances(self, values: &Values, axis: PageAxis, factor: f64) -> Result<Value> {
        let (boxes, single) = (self.boxes(values)?, !values.contains_key(PAGES));
        let first = usize::from(axis == PageAxis::Vertical);
        let (batch, positions, _) = boxes.dim();
        let middles = Array2::from_shape_fn((batch, positions), |(row, position)| {
            let [before, after] = [first, first + 2].map(|edge| f64::from(boxes[(row, position, edge)]));
            let middle = (before + after) / 2.0;
            if single { f64::from(middle as f32) } else { middle }
        });
        let distances = Array3::from_shape_fn((batch, positions, positions), |(row, query, key)| {
            let distance = (middles[(row, key)] - middles[(row, query)]) as f32;
            (distance * factor as f32) as i64
        });
        Ok(Value::I64(distances.into_dyn()))
    }

    fn patches(self) -> usize {
        self.side * self.side
    }

    /// The patch in which the middle of a box lies.
    fn patch(self, [left, upper, right, lower]: [f32; 4]) -> usize {
        let place = |before: f32, after: f32| {
            let place = ((before + after) / 2.0 * self.side as f32).floor() as i64;
            place.clamp(0, self.side.saturating_sub(1) as i64) as usize
        };
        place(left, right) + place(upper, lower) * self.side
    }

    /// The patches of a page on which no token lies, padding included.
    fn without_tokens(self, boxes: &ArrayView3<'_, f32>, row: usize) -> Vec<usize> {
        let mut empty = vec![true; self.patches()];
        for token in 0..boxes.dim().1 {
            let patch = self.patch([0, 1, 2, 3].map(|edge| boxes[(row, token, edge)]));
            if let Some(empty) = empty.get_mut(patch) {
                *empty = false;
            }
        }
        (0..empty.len()).filter(|patch| empty[*patch]).collect()
    }

    /// The box of each position: `[batch, positions, 4]`, zeros for empty ones.
    fn boxes(self, values: &Values) -> Result<Array3<f32>> {
        let of_tokens = tokens(values)?;
        if !values.contains_key(PAGES) {
            return Ok(of_tokens.to_owned());
        }
        let of_patches = boxes(values, PATCH_BOXES)?;
        let (batch, sequence, _) = of_tokens.dim();
        let mut all = Array3::zeros((batch, sequence + self.patches(), 4));
        for row in 0..batch {
            let patches = self.without_tokens(&of_tokens, row);
            for edge in 0..4 {
                for token in 0..sequence {
                    all[(row, token, edge)] = of_tokens[(row, token, edge)];
                }
                for (index, patch) in patches.iter().enumerate() {
                    let place = of_patches.get((row, *patch, edge));
                    all[(row, sequence + index, edge)] = place.copied().unwrap_or_default();
                }
            }
        }
        Ok(all)
    }
}

/// The boxes of tokens: `[batch, text_sequence, 4]`.
fn tokens(values: &Values) -> Result<ArrayView3<'_, f32>> {
    boxes(values, BOXES)
}

fn boxes<'a>(values: &'a Values, name: &str) -> Result<ArrayView3<'a, f32>> {
    let missing = || {
        let help = "give left, upper, right and lower edge as f32 [batch, text_sequence, 4]";
        Error::input(name, "must be boxes of four edges", help)
    };
    let boxes = values.get(name).ok_or_else(missing)?.f32(name)?.view();
    boxes.into_dimensionality::<Ix3>().ok().filter(|boxes| boxes.dim().2 == 4).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use ndarray::{ArrayD, IxDyn, array};

    use super::*;

    const PAGE: PageLayout = PageLayout { side: 2 };

    /// Two pages of four patches: tokens on the second, the first by its zeros, and padding; one token on the last patch twice.
    fn values(image: bool) -> Values {
        let boxes = array![
            [[0.6_f32, 0.1, 0.8, 0.3], [0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]],
            [[0.7, 0.7, 0.9, 0.9], [0.75, 0.5, 1.0, 0.75], [0.7, 0.9, 0.7, 0.9]]
        ];
        let mut values = Values::from([(BOXES.to_owned(), Value::F32(boxes.into_dyn()))]);
        if image {
            values.insert(PAGES.to_owned(), Value::F32(ArrayD::zeros(IxDyn(&[2, 3, 4, 4]))));
            let patches = PAGE.patch_boxes(&values).unwrap();
            values.insert(PATCH_BOXES.to_owned(), patches);
        }
        values
    }

    fn integers(value: &Value) -> (Vec<usize>, Vec<i64>) {
        let numbers = value.i64("numbers").unwrap();
        (numbers.shape().to_vec(), numbers.iter().copied().collect())
    }

    #[test]
    fn patches_stand_row_after_row() {
        let boxes = PAGE.patch_boxes(&values(false)).unwrap();
        let boxes = boxes.f32("boxes").unwrap();
        assert_eq!(boxes.shape(), [2, 4, 4]);
        let second: Vec<f32> = boxes.iter().skip(4).take(8).copied().collect();
        assert_eq!(second, [0.5, 0.0, 1.0, 0.5, 0.0, 0.5, 0.5, 1.0]);
    }

    #[test]
    fn tokens_lie_on_patches_and_what_is_left_follows() {
        let values = values(true);
        // The second token has no box and takes a patch away nevertheless, and so does the third.
        assert_eq!(integers(&PAGE.token_patches(&values).unwrap()), (vec![2, 3], vec![2, 0, 0, 8, 8, 8]));
        assert_eq!(
            integers(&PAGE.vision_patches(&values).unwrap()),
            (vec![2, 4], vec![3, 0, 0, 0, 5, 6, 7, 0])
        );
    }

    #[test]
    fn masks_go_on_over_patches_and_without_one_over_all() {
        let mut values = values(true);
        let all = integers(&PAGE.attention_mask(&values).unwrap());
        assert_eq!(all, (vec![2, 7], vec![1; 14]));
        values.insert(MASK.to_owned(), Value::I64(array![[1, 1, 0], [0, 1, 1]].into_dyn()));
        let mask = integers(&PAGE.attention_mask(&values).unwrap()).1;
        assert_eq!(mask, [1, 1, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0]);
        values.remove(PAGES);
        assert_eq!(integers(&PAGE.attention_mask(&values).unwrap()), (vec![2, 3], vec![1, 1, 0, 0, 1, 1]));
    }

    #[test]
    fn edges_are_rows_of_tables() {
        let ids = integers(&PAGE.box_ids(&values(true), 101).unwrap());
        assert_eq!(ids.0, [2, 7, 4]);
        // A token, none, none, the third patch, and nothing. 0.6 is a little more in single precision, 0.8 too, 0.3 too.
        assert_eq!(ids.1[..8], [60, 10, 80, 30, 0, 0, 0, 0]);
        assert_eq!(ids.1[8..20], [100, 100, 100, 100, 0, 50, 50, 100, 0, 0, 0, 0]);
        // 0.7 is a little less in single precision, which its product is rounded to where there is no image.
        assert_eq!(ids.1[28..32], [69, 69, 89, 89]);
        let text = integers(&PAGE.box_ids(&values(false), 101).unwrap());
        assert_eq!((text.0, text.1[12..16].to_vec()), (vec![2, 3, 4], vec![70, 70, 90, 90]));
        let outside = array![[[-1.0_f32, 2.0, 0.5, 1.0]]].into_dyn();
        let outside = Values::from([(BOXES.to_owned(), Value::F32(outside))]);
        assert_eq!(integers(&PAGE.box_ids(&outside, 5).unwrap()).1, [0, 4, 2, 4]);
    }

    #[test]
    fn distances_are_from_middle_to_middle() {
        let across = integers(&PAGE.distances(&values(true), PageAxis::Horizontal, 100.0).unwrap());
        assert_eq!(across.0, [2, 7, 7]);
        // Of the first token, 0.7 across: none at 0, none at 1, the third patch at 0.25, and nothing at 0. What is a little less
        // than 30 in single precision counts as 29.
        assert_eq!(across.1[..7], [0, -70, 29, -45, -70, -70, -70]);
        // Of the second.
        assert_eq!(across.1[7..11], [70, 0, 100, 25]);
        let down = integers(&PAGE.distances(&values(false), PageAxis::Vertical, 10.0).unwrap());
        // The first token is 0.2 down.
        assert_eq!((down.0, down.1[..3].to_vec()), (vec![2, 3, 3], vec![0, -2, 8]));
    }

    #[test]
    fn boxes_have_four_edges() {
        let wrong = Values::from([(BOXES.to_owned(), Value::F32(ArrayD::zeros(IxDyn(&[1, 2, 3]))))]);
        let problem = PAGE.token_patches(&wrong).unwrap_err().to_string();
        assert!(problem.contains("bbox") && problem.contains("four edges"), "{problem}");
        assert!(PAGE.token_patches(&Values::new()).is_err());
    }
}
