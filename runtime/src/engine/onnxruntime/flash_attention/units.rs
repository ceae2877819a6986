//! The work of attention, cut into units for threads, and put together.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::Attention;
use super::given::{Given, Laid};
use super::pairs;
use super::rows::{KEYS, Multiplied, Panels, Place, Rows, room};
use super::softmax::{Running, Softmax, softmax};

/// Rows of a unit: as many as make laying a block of keys out as panels cheap, and whose scores are in the second cache. Of 192, attention of
/// 4096 positions takes 1.06 times as long, and of 576 with half as many keys to a block 1.03 times.
const ROWS: usize = 384;

/// From so many rows of the same keys on they are a prompt's; fewer are a step's, whose time is that of reading keys and values.
const PROMPT: usize = 17;

/// The fewest keys of a run, and the most runs.
const RUN: usize = 64;
const RUNS: usize = 8;

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
    by: Multiplied,
    softmax: Softmax,
}

/// What a thread computes units in: windows of 49 positions are thousands of small units, and memory of its own for each would be cleared
/// and handed back as often.
#[derive(Default)]
struct Scratch {
    scores: Vec<f32>,
    /// Shares in pairs, where products are of such.
    shares: Vec<f32>,
    panels: Panels,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
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
        let few = queries * group < PROMPT;
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
        // Of a step, reading keys and values is what takes its time.
        let by = Multiplied::new(given.of.in_bf16 && !few);
        Self { given, queries: of_unit, heads, runs, units, by, softmax: softmax() }
    }

    /// How many units there are.
    pub(in super::super) fn units(&self) -> usize {
        self.units.len()
    }

    pub(in super::super) fn compute(&self, unit: usize) {
        SCRATCH.with_borrow_mut(|scratch| self.compute_in(unit, scratch));
    }

    fn compute_in(&self, unit: usize, scratch: &mut Scratch) {
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
            .map(|head| Rows::new(self.given, self.by, Place { text, query, head }, count))
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
        let seen =
            groups.iter().map(|rows| rows.seen(keys)).reduce(|a, b| a.start.min(b.start)..a.end.max(b.end));
        let apart = seen.as_ref().map_or(0, Range::len).min(KEYS).next_multiple_of(self.by.kernel.lanes);
        let Scratch { scores, shares, panels } = scratch;
        let (scores, shares) = (room(scores, rows * apart), room(shares, rows * apart / 2));
        for keys in blocks_of(seen.unwrap_or(0..0), run, self.runs) {
            for (place, rows) in groups.iter().enumerate() {
                let states = &mut running[place * count * group..][..count * group];
                // The first asks for all heads' keys and values at once, where these lie beside each other.
                let asked = match (self.given.keys.apart[1] == self.given.keys.size, place) {
                    (true, 0) => groups.len(),
                    (true, _) => 0,
                    (false, _) => 1,
                };
                let memory = (&mut *scores, &mut *shares, apart, &mut *panels);
                self.block(rows, keys.clone(), asked, states, memory, &mut of_groups[place]);
            }
        }
        if self.runs > 1 {
            return;
        }
        for (result, running) in of_groups.iter_mut().flatten().zip(&*running) {
            running.share_out(result);
        }
    }

    /// A block of keys, whose scores lie so far `apart`.
    fn block(
        &self,
        rows: &Rows<'_>,
        keys: Range<usize>,
        asked: usize,
        running: &mut [Running],
        (scores, shares, apart, panels): (&mut [f32], &mut [f32], usize, &mut Panels),
        results: &mut [&mut [f32]],
    ) {
        let (count, in_pairs) = (keys.len(), rows.in_pairs());
        rows.score(keys.clone(), asked, (scores, apart), panels);
        let each = scores.chunks_exact_mut(apart).zip(shares.chunks_exact_mut(apart / 2)).zip(running);
        for (row, ((scores, shares), running)) in each.enumerate() {
            let (scores, mask) = (&mut scores[..count], rows.mask(row, keys.clone()));
            (self.softmax)(scores, mask, self.given.of.softcap, running);
            if in_pairs {
                pairs::of_neighbours(scores, shares);
            }
            let factor = running.factor;
            if factor != 1.0 {
                results[row].iter_mut().for_each(|number| *number *= factor);
            }
        }
        let shares = if in_pairs { (&*shares, apart / 2) } else { (&*scores, apart) };
        rows.mix(keys, asked, shares, results, panels);
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
