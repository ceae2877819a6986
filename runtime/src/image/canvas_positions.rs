//! Positions of texts whose images lie on canvases, to whose corners the markers around them are pinned (Canvas M-RoPE).
//!
//! Reference: `get_rope_index` of `MiniCPMV4_7Model`.

use ndarray::{Array1, Array3, Axis};

use super::grids::two_axes;
use super::nested_squares::sizes;
use crate::{Error, Result, Value, Values};

/// The tokens that canvases are told by, and how many patches become one token.
#[derive(Clone, Copy, Debug)]
pub struct CanvasPositions {
    /// The token of an image's features (`image_token_id`).
    pub image: usize,
    /// The markers around a thumbnail, `<image>` and `</image>`.
    pub around: [usize; 2],
    /// The markers around a slice of an image, `<slice>` and `</slice>`.
    pub slice: [usize; 2],
    /// The end of a row of slices.
    pub newline: usize,
    /// How many times squares of four patches became one: once or twice.
    pub levels: u32,
}

/// From and to: the places of tokens of one thumbnail or slice.
type Span = (usize, usize);

/// An image: its thumbnail, the slices that tile it, and the end of the markers behind it.
struct Frame {
    thumbnail: Span,
    slices: Vec<Span>,
    end: usize,
}

impl CanvasPositions {
    /// Positions along time, height and width: `[3, batch, sequence]` i64, from `input_ids` and `attention_mask`
    /// `[batch, sequence]` and `target_sizes` `[crops, 2]`.
    ///
    /// # Errors
    /// When one of them is missing, or the texts have other image tokens than there are crops.
    pub fn rope_index(self, values: &Values) -> Result<Value> {
        Ok(Value::I64(self.positions(values)?.0.into_dyn()))
    }

    /// What is added to the number of tokens before it for the position of the next token of each text: `[batch, 1]` i64.
    ///
    /// # Errors
    /// As [`CanvasPositions::rope_index`].
    pub fn rope_deltas(self, values: &Values) -> Result<Value> {
        let deltas = Array1::from_vec(self.positions(values)?.1);
        Ok(Value::I64(deltas.insert_axis(Axis(1)).into_dyn()))
    }

    fn positions(self, values: &Values) -> Result<(Array3<i64>, Vec<i64>)> {
        let (ids, seen) = (two_axes(values, "input_ids")?, two_axes(values, "attention_mask")?);
        let edge = 2_usize.pow(self.levels);
        let sizes = sizes(values, self.levels)?;
        let mut sizes =
            sizes.into_iter().map(|(height, width)| [height / edge, width / edge].map(|n| n as i64));
        let (batch, sequence) = ids.dim();
        let mut all = Array3::zeros((3, batch, sequence));
        let mut deltas = vec![];
        for (row, (ids, seen)) in ids.rows().into_iter().zip(seen.rows()).enumerate() {
            let places: Vec<usize> =
                (0..sequence).filter(|place| seen.get(*place).is_none_or(|seen| *seen != 0)).collect();
            let tokens: Vec<i64> = places.iter().map(|place| ids[*place]).collect();
            let found = self.text(&tokens, &mut sizes)?;
            for (axis, of) in found.iter().enumerate() {
                for (place, position) in places.iter().zip(of) {
                    all[(axis, row, *place)] = *position;
                }
            }
            let most = found.iter().flatten().copied().max().unwrap_or(0);
            deltas.push(most + 1 - tokens.len() as i64);
        }
        Ok((all, deltas))
    }

    /// Positions of one text without padding.
    fn text(self, ids: &[i64], sizes: &mut impl Iterator<Item = [i64; 2]>) -> Result<[Vec<i64>; 3]> {
        let counted: Vec<i64> = (0..ids.len() as i64).collect();
        let mut text = Text { all: [(); 3].map(|()| counted.clone()), at: 0, next: 0 };
        for frames in self.groups(ids) {
            for (index, frame) in frames.iter().enumerate() {
                let before = text.at;
                text.count_to(frame.thumbnail.0.saturating_sub(1));
                // Between images of a group, the halo of the next one keeps its distance.
                text.next += i64::from(index > 0 && text.at > before);
                self.place(&mut text, frame, sizes)?;
            }
        }
        text.count_to(ids.len());
        Ok(text.all)
    }

    /// Images in the order of the text, those between which only markers stand together.
    fn groups(self, ids: &[i64]) -> Vec<Vec<Frame>> {
        let is = |place: usize, token: usize| ids.get(place) == Some(&(token as i64));
        let [start, end] = self.around;
        let [slice, slice_end] = self.slice;
        let marker =
            |place: usize| [start, end, slice, slice_end, self.newline].iter().any(|token| is(place, *token));
        let mut groups: Vec<Vec<Frame>> = vec![];
        let (mut at, mut behind) = (0, 0);
        while let Some(first) = (at..ids.len()).find(|place| is(*place, self.image)) {
            at = (first..ids.len()).find(|place| !is(*place, self.image)).unwrap_or(ids.len());
            // The place of the marker; an image at the beginning of a text has none.
            let before = first.saturating_sub(1);
            match groups.last_mut() {
                Some(frames) if is(before, slice) => {
                    if let Some(frame) = frames.last_mut() {
                        frame.slices.push((first, at));
                    }
                }
                last => {
                    let frame = Frame { thumbnail: (first, at), slices: vec![], end: at };
                    match last {
                        Some(frames) if (behind..before).all(marker) => frames.push(frame),
                        _ => groups.push(vec![frame]),
                    }
                }
            }
            behind = at;
        }
        for frame in groups.iter_mut().flatten() {
            let last = frame.slices.last().map_or(frame.thumbnail.1, |slice| slice.1);
            frame.end = (last..ids.len()).find(|place| !marker(*place)).unwrap_or(ids.len());
        }
        groups
    }

    /// Lays an image on a canvas of its own, which begins where the text before it has ended.
    fn place(self, text: &mut Text, frame: &Frame, sizes: &mut impl Iterator<Item = [i64; 2]>) -> Result<()> {
        let ((first, behind), slices) = (frame.thumbnail, &frame.slices);
        let mut size = || {
            let problem = "has fewer rows than the texts have images and slices";
            sizes.next().ok_or_else(|| Error::input("target_sizes", problem, "make both with one processor"))
        };
        let (origin, thumbnail) = (text.next, size()?);
        let across =
            (1..slices.len()).find(|at| slices[*at].0 - slices[at - 1].1 > 2).unwrap_or(slices.len());
        let across = if across > 0 && slices.len().is_multiple_of(across) { across } else { slices.len() };
        let slice = if slices.is_empty() { thumbnail } else { size()? };
        let canvas = match slices.len().checked_div(across) {
            Some(down) => [down as i64 * slice[0], across as i64 * slice[1]],
            None => thumbnail,
        };
        // At the beginning of a text there is no marker, and the reference takes the last token for it.
        let marker = first.checked_sub(1).unwrap_or(text.all[0].len() - 1);
        for of in &mut text.all {
            of.iter_mut().take(frame.end).skip(marker).for_each(|position| *position = origin);
        }
        text.pin(marker, [(origin - 1).max(0); 2]);
        if behind < frame.end {
            text.pin(behind, canvas.map(|length| origin + length));
        }
        let stretched = [0, 1].map(|axis| stretched(thumbnail[axis], canvas[axis]));
        text.lay(frame.thumbnail, origin, &stretched)?;
        for (index, &(first, behind)) in slices.iter().enumerate() {
            let own = if index == 0 { slice } else { size()? };
            let corner = [(index / across) as i64 * slice[0], (index % across) as i64 * slice[1]];
            text.pin(first - 1, corner.map(|place| origin + place));
            if behind < frame.end {
                text.pin(behind, [0, 1].map(|axis| origin + corner[axis] + own[axis] - 1));
            }
            let lines = [0, 1].map(|axis| (0..own[axis]).map(|at| corner[axis] + at).collect::<Vec<_>>());
            text.lay((first, behind), origin, &lines)?;
        }
        for (index, pair) in slices.windows(2).enumerate().filter(|(_, pair)| pair[1].0 - pair[0].1 > 2) {
            let down = (index / across + 1) as i64 * slice[0] - 1;
            for place in pair[0].1 + 1..pair[1].0 - 1 {
                text.pin(place, [origin + down, origin + canvas[1]]);
            }
        }
        text.next = origin + canvas[0].max(canvas[1]) + 1;
        text.at = frame.end;
        Ok(())
    }
}

/// The positions of a text along each axis, the place that is reached, and the next position.
struct Text {
    all: [Vec<i64>; 3],
    at: usize,
    next: i64,
}

impl Text {
    /// Counts tokens up to a place.
    fn count_to(&mut self, end: usize) {
        for place in self.at..end {
            self.all.iter_mut().for_each(|of| of[place] = self.next);
            self.next += 1;
        }
        self.at = self.at.max(end);
    }

    /// Puts a token at a row and a column.
    fn pin(&mut self, place: usize, at: [i64; 2]) {
        for (of, position) in self.all[1..].iter_mut().zip(at) {
            of[place] = position;
        }
    }

    /// Puts tokens at these rows and columns, row after row.
    fn lay(&mut self, (first, behind): Span, origin: i64, [rows, columns]: &[Vec<i64>; 2]) -> Result<()> {
        if rows.len() * columns.len() != behind - first {
            let (tokens, features) = (behind - first, rows.len() * columns.len());
            let problem = format!("has {tokens} tokens for an image or slice of {features} features");
            return Err(Error::input("input_ids", problem, "make texts with the checkpoint's processor"));
        }
        let places = rows.iter().flat_map(|row| columns.iter().map(move |column| [*row, *column]));
        for (place, [row, column]) in (first..).zip(places) {
            self.all[0][place] = origin;
            self.pin(place, [origin + row, origin + column]);
        }
        Ok(())
    }
}

/// So many lines, spread evenly over a canvas (`torch.linspace`, rounded): from both ends to the middle, in single precision.
fn stretched(count: i64, length: i64) -> Vec<i64> {
    let last = (length - 1) as f32;
    let step = last / (count - 1).max(1) as f32;
    let line = |at: i64| match at < count / 2 {
        true => step * at as f32,
        false => last - step * (count - 1 - at) as f32,
    };
    let line = |at| if count == 1 { 0.0 } else { line(at) };
    (0..count).map(|at| line(at).round_ties_even() as i64).collect()
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, ArrayD};

    use super::*;

    const CANVAS: CanvasPositions =
        CanvasPositions { image: 9, around: [1, 2], slice: [3, 4], newline: 5, levels: 1 };

    fn given(ids: &[i64], sizes: &[[i64; 2]]) -> Values {
        let sizes = ArrayD::from_shape_vec(vec![sizes.len(), 2], sizes.concat()).unwrap();
        let ids = Array2::from_shape_vec((1, ids.len()), ids.to_vec()).unwrap();
        Values::from([
            ("attention_mask".to_owned(), Array2::<i64>::ones(ids.dim()).into_dyn().into()),
            ("input_ids".to_owned(), ids.into_dyn().into()),
            ("target_sizes".to_owned(), sizes.into()),
        ])
    }

    fn axes(values: &Values) -> Vec<Vec<i64>> {
        let found = CANVAS.rope_index(values).unwrap();
        let found = found.i64("positions").unwrap();
        found.axis_iter(Axis(0)).map(|axis| axis.iter().copied().collect()).collect()
    }

    #[test]
    fn an_image_counts_rows_and_columns_from_the_text_before() {
        let values = given(&[7, 7, 1, 9, 9, 2, 7], &[[2, 4]]);
        let want = [[0, 1, 2, 2, 2, 2, 5], [0, 1, 1, 2, 2, 3, 5], [0, 1, 1, 2, 3, 4, 5]];
        assert_eq!(axes(&values), want);
        let deltas = CANVAS.rope_deltas(&values).unwrap();
        assert_eq!(deltas.i64("deltas").unwrap().iter().copied().collect::<Vec<_>>(), [-1]);
    }

    #[test]
    fn an_image_without_a_marker_before_it_leaves_the_one_behind_it_its_time() {
        let values = given(&[9, 2, 7, 7], &[[2, 2]]);
        assert_eq!(axes(&values), [[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]]);
    }

    #[test]
    fn slices_lie_in_rows_below_a_stretched_thumbnail() {
        let values = given(&[1, 9, 2, 3, 9, 4, 5, 3, 9, 4, 7], &[[2, 2], [2, 2], [2, 2]]);
        let want = [
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3],
            [0, 0, 2, 0, 0, 0, 0, 1, 1, 1, 3],
            [0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 3],
        ];
        assert_eq!(axes(&values), want);
        assert_eq!(stretched(3, 6), [0, 2, 5]);
        assert_eq!(stretched(4, 2), [0, 0, 1, 1]);
    }

    #[test]
    fn images_of_other_sizes_are_refused() {
        let problem =
            |ids: &[i64], sizes: &[[i64; 2]]| CANVAS.rope_index(&given(ids, sizes)).unwrap_err().to_string();
        assert!(problem(&[1, 9, 2], &[[2, 4]]).contains("1 tokens for an image or slice of 2 features"));
        assert!(problem(&[1, 9, 2, 7, 1, 9, 2], &[[2, 2]]).contains("fewer rows"));
    }
}
