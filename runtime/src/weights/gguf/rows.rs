//! Rows of a file's tensors, put back into the checkpoint's order.

/// Where rows of the checkpoint are in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowOrder {
    /// In the checkpoint's order.
    Same,
    /// Of each head of so many rows those of its two halves in turn, where the checkpoint has one half behind the other: queries
    /// and keys of rotary position embeddings (`permute` of the converter).
    Halves(usize),
    /// Items, such as heads or experts, of which each has rows of several places.
    Items(Vec<Run>),
}

/// Rows of each item that lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Which tensor they are in.
    pub part: usize,
    /// Where those of the first item begin; those of the next follow.
    pub start: usize,
    /// How many they are of an item.
    pub rows: usize,
}

impl RowOrder {
    /// Of so many rows, in which the halves of each head take turns.
    pub fn halves(heads: usize, rows: usize) -> Option<Self> {
        let width = rows.checked_div(heads)?;
        (width.is_multiple_of(2) && width * heads == rows).then_some(Self::Halves(width))
    }

    /// Of so many rows: all query heads, then all key heads, then all value heads, where the checkpoint has those that share a key
    /// head together, `[groups, queries + 2, width]`.
    pub fn grouped(groups: usize, queries: usize, rows: usize) -> Option<Self> {
        let heads = queries.checked_add(2)?.checked_mul(groups).filter(|heads| *heads > 0)?;
        let width = rows / heads;
        let run = |start, heads| Run { part: 0, start: start * width, rows: heads * width };
        let runs = vec![run(0, queries), run(groups * queries, 1), run(groups * (queries + 1), 1)];
        (width * heads == rows).then_some(Self::Items(runs))
    }

    /// Of several tensors: all rows of an item that the first has, then those of the next.
    pub fn behind(rows: &[usize]) -> Self {
        Self::Items(rows.iter().enumerate().map(|(part, &rows)| Run { part, start: 0, rows }).collect())
    }

    /// Of so many tensors: a row of each in turn.
    pub fn in_turn(parts: usize) -> Self {
        Self::behind(&vec![1; parts])
    }

    /// The tensor, and the row in it, of a row of the checkpoint.
    fn place(&self, row: usize) -> (usize, usize) {
        match self {
            Self::Same => (0, row),
            Self::Halves(width) => {
                let (head, row) = (row / width, row % width);
                let (half, place) = (row / (width / 2), row % (width / 2));
                (0, head * width + 2 * place + half)
            }
            Self::Items(runs) => {
                let of_item = runs.iter().map(|run| run.rows).sum::<usize>();
                let (item, mut left) = (row / of_item, row % of_item);
                for run in runs {
                    match left.checked_sub(run.rows) {
                        None => return (run.part, run.start + item * run.rows + left),
                        Some(rest) => left = rest,
                    }
                }
                (0, row)
            }
        }
    }
}

/// Rows of a tensor in the checkpoint's order, where they lie in files.
pub struct Rows<'a> {
    /// The bytes of each tensor.
    pub parts: Vec<&'a [u8]>,
    /// Bytes of a row.
    pub length: usize,
    /// How the checkpoint orders them.
    pub order: &'a RowOrder,
}

impl<'a> Rows<'a> {
    /// One of them.
    pub fn row(&self, row: usize) -> &'a [u8] {
        let (part, row) = self.order.place(row);
        &self.parts[part][row * self.length..][..self.length]
    }

    /// All of them, one after the other.
    pub fn bytes(&self) -> Vec<u8> {
        let length = self.parts.iter().map(|part| part.len()).sum::<usize>();
        let mut bytes = Vec::with_capacity(length);
        (0..length / self.length.max(1)).for_each(|row| bytes.extend_from_slice(self.row(row)));
        bytes
    }
}

/// Matrices `[items, rows, columns]` of elements of so many bytes the other way, as `[items, columns, rows]`.
pub fn turned(bytes: &[u8], [rows, columns]: [usize; 2], size: usize) -> Vec<u8> {
    let mut turned = Vec::with_capacity(bytes.len());
    for matrix in bytes.chunks_exact((rows * columns * size).max(1)) {
        for column in 0..columns {
            for row in 0..rows {
                turned.extend_from_slice(&matrix[(row * columns + column) * size..][..size]);
            }
        }
    }
    turned
}

#[cfg(test)]
mod tests {
    use super::super::blocks::tests::{HALF, blocks};
    use super::*;
    use crate::gguf::types::Kind;

    fn places(order: &RowOrder, rows: usize) -> Vec<(usize, usize)> {
        (0..rows).map(|row| order.place(row)).collect()
    }

    fn of_one(places: Vec<(usize, usize)>) -> Vec<usize> {
        places.into_iter().map(|(part, row)| if part == 0 { row } else { usize::MAX }).collect()
    }

    #[test]
    fn rows_come_back_in_the_checkpoints_order() {
        // Two heads of four rows: pairs of neighbours in the file, halves in the checkpoint.
        let halves = RowOrder::halves(2, 8).unwrap();
        assert_eq!(of_one(places(&halves, 8)), [0, 2, 1, 3, 4, 6, 5, 7]);
        // Two heads of one row: q0 q1 k0 k1 v0 v1 in the file, q0 k0 v0 q1 k1 v1 in the checkpoint.
        let split = RowOrder::grouped(2, 1, 6).unwrap();
        assert_eq!(of_one(places(&split, 6)), [0, 2, 4, 1, 3, 5]);
        let bytes = Rows { parts: vec![&[0, 1, 2, 3, 4, 5]], length: 1, order: &split }.bytes();
        assert_eq!(bytes, [0, 2, 4, 1, 3, 5]);
        // Two groups of two query heads of two rows: q0 q1 q2 q3 k0 k1 v0 v1 in the file.
        let grouped = RowOrder::grouped(2, 2, 16).unwrap();
        let stored: Vec<usize> = of_one(places(&grouped, 16)).into_iter().step_by(2).collect();
        assert_eq!(stored, [0, 2, 8, 12, 4, 6, 10, 14]);
        for misfit in [RowOrder::halves(2, 7), RowOrder::halves(0, 8), RowOrder::halves(usize::MAX, 8)] {
            assert_eq!(misfit, None);
        }
        assert_eq!((RowOrder::grouped(2, 1, 7), RowOrder::grouped(0, 1, 6)), (None, None));
        let kind = Kind::of(8).unwrap();
        let rows: Vec<u8> = (0..8).flat_map(|row| [&HALF[..], &[row; 32]].concat()).collect();
        let values = blocks(kind, &[&rows], [8, 32], &halves).unwrap().dequantize().unwrap();
        let first: Vec<usize> = values.chunks(32).map(|row| (row[0] * 2.0) as usize).collect();
        assert_eq!(first, [0, 2, 1, 3, 4, 6, 5, 7]);
    }

    #[test]
    fn rows_of_several_tensors_become_one() {
        let expected = [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2), (0, 3), (1, 3)];
        assert_eq!(places(&RowOrder::in_turn(2), 8), expected);
        // Two items: a row of the first tensor, then two of the second.
        let behind = RowOrder::behind(&[1, 2]);
        assert_eq!(places(&behind, 6), [(0, 0), (1, 0), (1, 1), (0, 1), (1, 2), (1, 3)]);
        let kind = Kind::of(8).unwrap();
        let [first, second] = [[0, 3].as_slice(), &[1, 2, 4, 5]]
            .map(|rows| rows.iter().flat_map(|row| [&HALF[..], &[*row; 32]].concat()).collect::<Vec<u8>>());
        let values = blocks(kind, &[&first, &second], [6, 32], &behind).unwrap().dequantize().unwrap();
        assert_eq!(values.chunks(32).map(|row| row[0]).collect::<Vec<_>>(), [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]);
    }

    #[test]
    fn matrices_are_turned_one_by_one() {
        // Two matrices [2, 3] of elements of one byte, and one of two bytes.
        assert_eq!(
            turned(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], [2, 3], 1),
            [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]
        );
        assert_eq!(turned(&[0, 1, 2, 3, 4, 5, 6, 7], [2, 2], 2), [0, 1, 4, 5, 2, 3, 6, 7]);
    }
}
