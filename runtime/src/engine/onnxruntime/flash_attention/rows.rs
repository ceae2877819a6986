//! Rows of queries against blocks of keys, by a softmax that goes on from block to block (Milakov and Gimelshein, 2018, arXiv:1805.02867;
//! FlashAttention, arXiv:2205.14135): scores of a block stay in the second cache, and no more of them are there.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::super::panel;
use super::super::product::ask_for;
use super::Attention;
use super::softmax::{AHEAD, Running, Softmax, dots, mixed, softmax};
use crate::graph::MASKED_SCORE;

/// Keys of a block.
const KEYS: usize = 256;

/// Rows of a unit of work: as many as make laying a block of keys out as panels cheap.
const ROWS: usize = 192;

/// From how many rows on that is cheaper than products of rows as they lie.
const MANY: usize = 4;

/// Up to so many rows of the same keys are a step's, whose time is that of reading keys and values.
const FEW: usize = 17;

/// The fewest keys of a run, and the most runs.
const RUN: usize = 64;
const RUNS: usize = 8;

/// What is added to a score, `[batch, heads, queries, keys]` or 1 of each.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Mask<'a> {
    numbers: &'a [f32],
    lengths: [usize; 4],
}

impl<'a> Mask<'a> {
    /// Of up to four axes, the last ones.
    pub(in super::super) fn new(shape: &[i64], numbers: &'a [f32]) -> Result<Self, String> {
        let mut lengths = [1; 4];
        let first = 4_usize.checked_sub(shape.len());
        let first = first.ok_or_else(|| format!("attention got a mask {shape:?} of more than four axes"))?;
        for (length, given) in lengths[first..].iter_mut().zip(shape) {
            *length = given.unsigned_abs() as usize;
        }
        Ok(Self { numbers, lengths })
    }

    /// What is added to the scores of a query: one number for all keys, or one for each.
    fn row(&self, places: [usize; 3]) -> &'a [f32] {
        let places = places.iter().zip(self.lengths);
        let row = places.fold(0, |row, (&place, length)| row * length + if length == 1 { 0 } else { place });
        &self.numbers[row * self.lengths[3]..][..self.lengths[3]]
    }
}

/// Keys or values, and how they lie.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Laid<'a> {
    numbers: &'a [f32],
    /// Numbers of each.
    size: usize,
    /// From those of one text, head and position to those of the next one.
    apart: [usize; 3],
}

impl Laid<'_> {
    /// `[positions, batch, heads, size]`.
    pub(in super::super) fn by_position<'n>(
        numbers: &'n [f32],
        [batch, heads, _, size]: [usize; 4],
    ) -> Laid<'n> {
        Laid { numbers, size, apart: [heads * size, size, batch * heads * size] }
    }

    /// `[batch, positions, heads·size]`.
    pub(super) fn by_text<'n>(numbers: &'n [f32], [_, heads, positions, size]: [usize; 4]) -> Laid<'n> {
        Laid { numbers, size, apart: [positions * heads * size, size, heads * size] }
    }

    /// `[batch, heads, positions, size]`.
    pub(super) fn by_head<'n>(numbers: &'n [f32], [_, heads, positions, size]: [usize; 4]) -> Laid<'n> {
        Laid { numbers, size, apart: [heads * positions * size, positions * size, size] }
    }
}

impl<'a> Laid<'a> {
    /// From the first of a text and head on.
    fn of(&self, text: usize, head: usize) -> &'a [f32] {
        &self.numbers[text * self.apart[0] + head * self.apart[1]..]
    }
}

/// What attention is given.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Given<'a> {
    pub of: Attention,
    /// Batch, queries and keys.
    pub lengths: [usize; 3],
    /// `[batch, queries, heads·size]`.
    pub q: &'a [f32],
    pub keys: Laid<'a>,
    pub values: Laid<'a>,
    pub mask: Option<Mask<'a>>,
}

impl Given<'_> {
    /// The width of the result.
    pub(in super::super) fn check(&self) -> Result<usize, String> {
        let ([batch, queries, keys], [key, value]) = (self.lengths, [self.keys.size, self.values.size]);
        let most = [batch, self.of.heads, queries, keys];
        let seen = |mask: &Mask<'_>| {
            let lengths = mask.lengths.iter().zip(most);
            let fits = lengths.clone().all(|(&length, most)| [1, most].contains(&length));
            fits && mask.numbers.len() == mask.lengths.iter().product::<usize>()
        };
        let fits = key * value > 0
            && self.q.len() == batch * queries * self.of.heads * key
            && self.keys.numbers.len() == keys * batch * self.of.kv_heads * key
            && self.values.numbers.len() == keys * batch * self.of.kv_heads * value
            && self.mask.as_ref().is_none_or(seen);
        let misfit = || {
            format!(
                "attention got lengths that do not fit {most:?}, mask {:?}",
                self.mask.map(|mask| mask.lengths)
            )
        };
        if fits { Ok(self.of.heads * value) } else { Err(misfit()) }
    }
}

/// The work, cut into units that threads take in any order: of many rows neighbouring queries and heads that read the same keys, of a
/// step's few rows a run of keys, which all heads read together as it lies in memory.
pub(in super::super) struct Task<'a> {
    given: &'a Given<'a>,
    /// Queries and heads of a unit.
    queries: usize,
    heads: usize,
    /// Runs of keys that units share; where there are several, their results are added up at the end.
    runs: usize,
    units: Vec<Mutex<Unit<'a>>>,
    kernel: panel::Kernel,
    softmax: Softmax,
}

/// The results of a unit, one for each query: its part of them all, or where keys are several units' its own.
struct Unit<'a> {
    results: Vec<&'a mut [f32]>,
    own: Vec<f32>,
    running: Vec<Running>,
}

impl<'a> Task<'a> {
    /// Into `result` `[batch, queries, heads·size]`.
    pub(in super::super) fn new(given: &'a Given<'a>, result: &'a mut [f32]) -> Self {
        let ([batch, queries, keys], size) = (given.lengths, given.values.size);
        let group = given.of.heads / given.of.kv_heads;
        let few = queries * group < FEW;
        let (heads, runs) = if few { (given.of.heads, (keys / RUN).clamp(1, RUNS)) } else { (group, 1) };
        let of_unit = (ROWS / group).max(1);
        let (blocks, parts) = (queries.div_ceil(of_unit), given.of.heads / heads);
        let mut units = vec![];
        units.resize_with(batch * blocks * parts, Vec::new);
        for (row, result) in result.chunks_mut((given.of.heads * size).max(1)).enumerate() {
            let block = row / queries * blocks + row % queries / of_unit;
            for (part, result) in result.chunks_mut(heads * size).enumerate() {
                units[block * parts + part].push(result);
            }
        }
        let unit = |results: Vec<&'a mut [f32]>| {
            // The others' results are added to those of the first.
            let rows = results.len();
            let others = (1..runs).map(move |_| Unit {
                results: vec![],
                own: vec![0.0; rows * heads * size],
                running: vec![],
            });
            [Unit { results, own: vec![], running: vec![] }].into_iter().chain(others)
        };
        let units = units.into_iter().flat_map(unit).map(Mutex::new).collect();
        Self { given, queries: of_unit, heads, runs, units, kernel: panel::kernel(), softmax: softmax() }
    }

    /// How many units there are.
    pub(in super::super) fn units(&self) -> usize {
        self.units.len()
    }

    pub(in super::super) fn compute(&self, unit: usize) {
        let (place, run) = (unit / self.runs, unit % self.runs);
        let mut unit = self.units[unit].lock().unwrap_or_else(PoisonError::into_inner);
        let Unit { results, own, running } = &mut *unit;
        let Given { of, lengths: [_, queries, keys], values: Laid { size, .. }, .. } = *self.given;
        let Attention { heads, kv_heads, .. } = of;
        let (block, head) = (place / (heads / self.heads), place % (heads / self.heads) * self.heads);
        let blocks = queries.div_ceil(self.queries);
        let (text, query) = (block / blocks, block % blocks * self.queries);
        let count = self.queries.min(queries - query);
        let group = heads / kv_heads;
        let groups: Vec<Rows<'_>> = (head..head + self.heads)
            .step_by(group)
            .map(|head| Of { text, query, head, heads: group }.rows(self, count))
            .collect();
        // By heads that read the same keys, and of these by query.
        let whole: Vec<&mut [f32]> = match own.is_empty() {
            true => results.iter_mut().map(|result| &mut **result).collect(),
            false => own.chunks_exact_mut(self.heads * size).collect(),
        };
        let mut of_groups: Vec<Vec<&mut [f32]>> = vec![];
        of_groups.resize_with(groups.len(), Vec::new);
        for result in whole {
            for (results, result) in of_groups.iter_mut().zip(result.chunks_exact_mut(group * size)) {
                results.extend(result.chunks_exact_mut(size));
            }
        }
        of_groups.iter_mut().flatten().for_each(|result| result.fill(0.0));
        let rows = count * group;
        *running = vec![Running::default(); groups.len() * rows];
        let (mut scores, mut panels) = (vec![0.0; rows * KEYS], Panels::default());
        let seen =
            groups.iter().map(|rows| rows.seen(keys)).reduce(|a, b| a.start.min(b.start)..a.end.max(b.end));
        for keys in blocks_of(seen.unwrap_or(0..0), run, self.runs) {
            for (place, rows) in groups.iter().enumerate() {
                let states = &mut running[place * count * group..][..count * group];
                // The first asks for all heads' keys and values at once, where these lie beside each other.
                let asked = match (self.given.keys.apart[1] == self.given.keys.size, place) {
                    (true, 0) => groups.len(),
                    (true, _) => 0,
                    (false, _) => 1,
                };
                self.block(
                    rows,
                    keys.clone(),
                    asked,
                    states,
                    (&mut scores, &mut of_groups[place], &mut panels),
                );
            }
        }
        if self.runs > 1 {
            return;
        }
        for (result, running) in of_groups.iter_mut().flatten().zip(&*running) {
            running.share_out(result);
        }
    }

    /// A block of keys.
    fn block(
        &self,
        rows: &Rows<'_>,
        keys: Range<usize>,
        asked: usize,
        running: &mut [Running],
        (scores, results, panels): (&mut [f32], &mut [&mut [f32]], &mut Panels),
    ) {
        rows.score(keys.clone(), asked, scores, panels);
        for (row, (scores, running)) in scores.chunks_exact_mut(KEYS).zip(running).enumerate() {
            let mask = rows.masks.get(row);
            let mask = mask.map(|mask| if mask.len() == 1 { *mask } else { &mask[keys.clone()] });
            (self.softmax)(&mut scores[..keys.len()], mask, self.given.of.softcap, running);
            let factor = running.factor;
            if factor != 1.0 {
                results[row].iter_mut().for_each(|number| *number *= factor);
            }
        }
        rows.mix(keys, asked, scores, results, panels);
    }

    /// Adds up what units of different keys have, once all are computed.
    pub(in super::super) fn finish(self) {
        let (size, runs) = (self.given.values.size, self.runs);
        if runs == 1 {
            return;
        }
        let units =
            self.units.into_iter().map(|unit| unit.into_inner().unwrap_or_else(PoisonError::into_inner));
        let mut units: Vec<Unit<'_>> = units.collect();
        let (group, kv_heads) = (self.given.of.heads / self.given.of.kv_heads, self.given.of.kv_heads);
        for of_text in units.chunks_exact_mut(runs) {
            let Some((first, others)) = of_text.split_first_mut() else { continue };
            let count = first.results.len();
            for (query, result) in first.results.iter_mut().enumerate() {
                for (head, result) in result.chunks_exact_mut(size).enumerate().take(kv_heads * group) {
                    let state = head / group * count * group + query * group + head % group;
                    let mut total = first.running[state];
                    for other in &*others {
                        let row = &other.own[(query * kv_heads * group + head) * size..][..size];
                        total.add(&other.running[state], result, row);
                    }
                    total.share_out(result);
                }
            }
        }
    }
}

/// The blocks of one of so many runs of keys.
fn blocks_of(seen: Range<usize>, run: usize, runs: usize) -> impl Iterator<Item = Range<usize>> {
    let each = seen.len().div_ceil(runs).max(1);
    let start = seen.end.min(seen.start + run * each);
    let end = seen.end.min(start + each);
    (start..end).step_by(KEYS).map(move |start| start..end.min(start + KEYS))
}

/// Where rows begin, and how many heads they are of.
#[derive(Clone, Copy, Debug)]
struct Of {
    text: usize,
    query: usize,
    head: usize,
    heads: usize,
}

impl Of {
    /// The rows of so many queries, those of the heads of a query beside each other.
    fn rows<'t>(self, task: &'t Task<'_>, queries: usize) -> Rows<'t> {
        let Given { of, lengths: [_, all, _], keys, values, q, mask } = *task.given;
        let Attention { heads, kv_heads, scale, .. } = of;
        let mut scaled = Vec::with_capacity(queries * self.heads * keys.size);
        let mut masks = vec![];
        for query in self.query..self.query + queries {
            let first = ((self.text * all + query) * heads + self.head) * keys.size;
            scaled.extend(q[first..][..self.heads * keys.size].iter().map(|number| number * scale));
            let each = (self.head..self.head + self.heads).map(|head| [self.text, head, query]);
            masks.extend(mask.iter().flat_map(|mask| each.clone().map(|places| mask.row(places))));
        }
        let kv_head = self.head / (heads / kv_heads);
        Rows {
            kernel: task.kernel,
            q: scaled,
            masks,
            keys: keys.of(self.text, kv_head),
            values: values.of(self.text, kv_head),
            sizes: [keys.size, values.size],
            strides: [keys.apart[2], values.apart[2]],
        }
    }
}

/// Queries that read the same keys.
struct Rows<'t> {
    kernel: panel::Kernel,
    /// `[rows, size]`, scaled.
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
struct Panels {
    keys: Vec<f32>,
    values: Vec<f32>,
    /// Keys beside the last.
    rest: Vec<f32>,
}

impl Rows<'_> {
    /// The keys that any row sees; all where one sees none, since it gets the mean of all values.
    fn seen(&self, keys: usize) -> Range<usize> {
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

    /// Products of the rows with a block of keys, into `[rows, KEYS]`, while those of so many heads are asked for further on.
    fn score(&self, keys: Range<usize>, asked: usize, scores: &mut [f32], panels: &mut Panels) {
        let (size, stride, count) = (self.sizes[0], self.strides[0], keys.len());
        let block = &self.keys[keys.start * stride..];
        if self.q.len() / size < MANY {
            for (q, scores) in self.q.chunks_exact(size).zip(scores.chunks_exact_mut(KEYS)) {
                dots()(q, block, [stride, asked], &mut scores[..count]);
            }
            return;
        }
        let panel::Kernel { lanes, columns, .. } = self.kernel;
        panels.keys.resize(KEYS.next_multiple_of(columns) * size, 0.0);
        panels.rest.resize(lanes * size, 0.0);
        for first in (0..count).step_by(lanes) {
            let panel = &mut panels.keys[first / columns * columns * size..];
            let (rows, at) = (&block[first * stride..], first % columns);
            for row in AHEAD..AHEAD + lanes {
                ask_for(rows.as_ptr().wrapping_add(row * stride), asked * size * size_of::<f32>());
            }
            if rows.len() >= lanes * stride {
                (self.kernel.transposed)(rows, stride, size, panel, at);
                continue;
            }
            for (rest, row) in panels.rest.chunks_exact_mut(size).zip(rows.chunks(stride)) {
                rest.copy_from_slice(&row[..size]);
            }
            (self.kernel.transposed)(&panels.rest, size, size, panel, at);
        }
        let mut scores: Vec<&mut [f32]> = scores.chunks_exact_mut(KEYS).collect();
        for (place, panel) in panels.keys.chunks_exact(columns * size).enumerate() {
            let of_panel = place * columns..count.min((place + 1) * columns);
            if of_panel.is_empty() {
                break;
            }
            (self.kernel.products)(&self.q, size, panel, of_panel, &mut scores);
        }
    }

    /// Adds a block of values, by the shares that rows have in them, while those of so many heads are asked for further on.
    fn mix(
        &self,
        keys: Range<usize>,
        asked: usize,
        shares: &[f32],
        results: &mut [&mut [f32]],
        panels: &mut Panels,
    ) {
        let (size, stride, count) = (self.sizes[1], self.strides[1], keys.len());
        let block = &self.values[keys.start * stride..];
        if results.len() < MANY {
            for (shares, result) in shares.chunks_exact(KEYS).zip(results) {
                mixed()(&shares[..count], block, [stride, asked], result);
            }
            return;
        }
        let columns = self.kernel.columns;
        panels.values.resize(KEYS * columns, 0.0);
        for first in (0..size).step_by(columns) {
            let taken = first..size.min(first + columns);
            for (panel, row) in panels.values.chunks_exact_mut(columns).zip(block.chunks(stride)).take(count)
            {
                if first == 0 {
                    ask_for(row.as_ptr().wrapping_add(AHEAD * stride), asked * size * size_of::<f32>());
                }
                panel[..taken.len()].copy_from_slice(&row[taken.clone()]);
            }
            (self.kernel.add_products)(shares, KEYS, &panels.values[..count * columns], taken, results);
        }
    }
}
