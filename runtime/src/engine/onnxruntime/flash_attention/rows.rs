//! Rows of queries against blocks of keys, by a softmax that goes on from block to block (Milakov and Gimelshein, 2018, arXiv:1805.02867;
//! FlashAttention, arXiv:2205.14135): scores of a block stay in the second cache, and no more of them are there.

use std::ops::Range;

use super::super::panel;
use super::super::product::ask_for;
use super::Attention;
use super::given::Given;
use super::pairs;
use super::softmax::{AHEAD, dots, mixed};
use crate::graph::MASKED_SCORE;

/// Keys of a block.
pub(super) const KEYS: usize = 256;

/// From how many rows on laying keys and values out as panels is cheaper than products of rows as they lie.
const MANY: usize = 4;

/// The first query and head of rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub text: usize,
    pub query: usize,
    pub head: usize,
}

/// How products are computed: in single precision, or in bfloat16 of pairs of numbers.
#[derive(Clone, Copy)]
pub(super) struct Multiplied {
    pub kernel: panel::Kernel,
    /// Numbers of 32 bits: 1, or 2 of bfloat16.
    pub per: usize,
}

impl Multiplied {
    /// The fastest way; in bfloat16 where that is asked for and the processor has it.
    pub(super) fn new(in_bf16: bool) -> Self {
        match panel::pairs().filter(|_| in_bf16) {
            Some(kernel) => Self { kernel, per: 2 },
            None => Self { kernel: panel::kernel(), per: 1 },
        }
    }
}

/// Queries of neighbouring heads, those of a query beside each other, that read the same keys.
pub(super) struct Rows<'t> {
    by: Multiplied,
    /// `[rows, size]`, scaled; in pairs `[rows, ⌈size / 2⌉]`.
    q: Vec<f32>,
    /// What is added to the scores of each, where there is a mask.
    masks: Vec<&'t [f32]>,
    /// From the first key and value that they read on.
    keys: &'t [f32],
    values: &'t [f32],
    sizes: [usize; 2],
    /// From one position's to the next one's.
    strides: [usize; 2],
}

/// Memory for blocks of keys and values in another order.
#[derive(Default)]
pub(super) struct Panels {
    keys: Vec<f32>,
    values: Vec<f32>,
    /// Keys beside the last; in pairs all keys of a register.
    rest: Vec<f32>,
}

/// So many numbers of memory that keeps what it had.
pub(super) fn room(memory: &mut Vec<f32>, count: usize) -> &mut [f32] {
    if memory.len() < count {
        memory.resize(count, 0.0);
    }
    &mut memory[..count]
}

impl<'t> Rows<'t> {
    /// Of so many queries, and all heads that read the keys of the first one.
    pub(super) fn new(given: &Given<'t>, by: Multiplied, place: Place, queries: usize) -> Self {
        let Given { of, lengths: [_, all, _], keys, values, q, mask } = *given;
        let Attention { heads, kv_heads, scale, .. } = of;
        let (Place { text, query, head }, group) = (place, heads / kv_heads);
        // The last ones of a prompt may be few.
        let by = if queries * group < MANY { Multiplied::new(false) } else { by };
        let mut scaled = Vec::with_capacity(queries * group * keys.size);
        let mut masks = vec![];
        for query in query..query + queries {
            let first = ((text * all + query) * heads + head) * keys.size;
            scaled.extend(q[first..][..group * keys.size].iter().map(|number| number * scale));
            let each = (head..head + group).map(|head| [text, head, query]);
            masks.extend(mask.iter().flat_map(|mask| each.clone().map(|places| mask.row(places))));
        }
        if by.per == 2 {
            let depth = keys.size.div_ceil(2);
            let mut narrow = vec![0.0; queries * group * depth];
            let rows = scaled.chunks_exact(keys.size).zip(narrow.chunks_exact_mut(depth));
            rows.for_each(|(row, pairs)| pairs::of_neighbours(row, pairs));
            scaled = narrow;
        }
        Rows {
            by,
            q: scaled,
            masks,
            keys: keys.of(text, head / group),
            values: values.of(text, head / group),
            sizes: [keys.size, values.size],
            strides: [keys.apart[2], values.apart[2]],
        }
    }

    /// Whether products are of pairs in bfloat16.
    pub(super) fn in_pairs(&self) -> bool {
        self.by.per == 2
    }

    /// What is added to the scores of a row, where there is a mask: one number for all keys of a block, or one for each.
    pub(super) fn mask(&self, row: usize, keys: Range<usize>) -> Option<&'t [f32]> {
        self.masks.get(row).map(|mask| if mask.len() == 1 { *mask } else { &mask[keys] })
    }

    /// The keys that any row sees; all where one sees none, since it gets the mean of all values.
    pub(super) fn seen(&self, keys: usize) -> Range<usize> {
        let mut all: Option<Range<usize>> = None;
        for mask in &self.masks {
            let sees = |number: &f32| *number > MASKED_SCORE / 2.0;
            let (1.., Some(first), Some(last)) =
                (mask.len(), mask.iter().position(sees), mask.iter().rposition(sees))
            else {
                return 0..keys;
            };
            if mask.len() != keys {
                return 0..keys;
            }
            let before = all.get_or_insert(first..last + 1);
            *before = before.start.min(first)..before.end.max(last + 1);
        }
        all.unwrap_or(0..keys)
    }

    /// Products of the rows with a block of keys, into rows that lie so far `apart`, while those of so many heads are asked for further on.
    pub(super) fn score(
        &self,
        keys: Range<usize>,
        asked: usize,
        (scores, apart): (&mut [f32], usize),
        panels: &mut Panels,
    ) {
        let (size, stride, count) = (self.sizes[0], self.strides[0], keys.len());
        let block = &self.keys[keys.start * stride..];
        let Multiplied { kernel, per } = self.by;
        if self.q.len() / size.div_ceil(per) < MANY {
            for (q, scores) in self.q.chunks_exact(size).zip(scores.chunks_exact_mut(apart)) {
                dots()(q, block, [stride, asked], &mut scores[..count]);
            }
            return;
        }
        let (panel::Kernel { lanes, columns, .. }, depth) = (kernel, size.div_ceil(per));
        let Panels { keys, rest, .. } = panels;
        let (laid, rest) = (room(keys, count.next_multiple_of(columns) * depth), room(rest, lanes * depth));
        for first in (0..count).step_by(lanes) {
            let panel = &mut laid[first / columns * columns * depth..];
            let (rows, at) = (&block[first * stride..], first % columns);
            for row in AHEAD..AHEAD + lanes {
                ask_for(rows.as_ptr().wrapping_add(row * stride), asked * size * size_of::<f32>());
            }
            if per == 1 && rows.len() >= lanes * stride {
                (kernel.transposed)(rows, stride, size, panel, at);
                continue;
            }
            for (rest, row) in rest.chunks_exact_mut(depth).zip(rows.chunks(stride)) {
                match per {
                    1 => rest.copy_from_slice(&row[..size]),
                    _ => pairs::of_neighbours(&row[..size], rest),
                }
            }
            (kernel.transposed)(rest, depth, depth, panel, at);
        }
        let mut scores: Vec<&mut [f32]> = scores.chunks_exact_mut(apart).collect();
        for (place, panel) in laid.chunks_exact(columns * depth).enumerate() {
            let of_panel = place * columns..count.min((place + 1) * columns);
            (kernel.products)(&self.q, depth, panel, of_panel, &mut scores);
        }
    }

    /// Adds a block of values, by the shares that rows have in them, in pairs where products are of such, while those of so many heads are
    /// asked for further on.
    pub(super) fn mix(
        &self,
        keys: Range<usize>,
        asked: usize,
        (shares, apart): (&[f32], usize),
        results: &mut [&mut [f32]],
        panels: &mut Panels,
    ) {
        let (size, stride, count) = (self.sizes[1], self.strides[1], keys.len());
        let block = &self.values[keys.start * stride..];
        if results.len() < MANY {
            for (shares, result) in shares.chunks_exact(apart).zip(results) {
                mixed()(&shares[..count], block, [stride, asked], result);
            }
            return;
        }
        let Multiplied { kernel: panel::Kernel { columns, add_products, .. }, per } = self.by;
        let depth = count.div_ceil(per);
        let laid = room(&mut panels.values, depth * columns);
        for first in (0..size).step_by(columns) {
            let taken = first..size.min(first + columns);
            if first == 0 {
                for row in block.chunks(stride).take(count) {
                    ask_for(row.as_ptr().wrapping_add(AHEAD * stride), asked * size * size_of::<f32>());
                }
            }
            if per == 1 {
                for (panel, row) in laid.chunks_exact_mut(columns).zip(block.chunks(stride)) {
                    panel[..taken.len()].copy_from_slice(&row[taken.clone()]);
                }
            } else {
                pairs::of_rows(block, [stride, count], taken.clone(), laid, columns);
            }
            add_products(shares, apart, laid, taken, results);
        }
    }
}
