//! Beam search (`GenerationMixin._beam_search`).
//!
//! Reference: `GenerationMixin._beam_search`, whose vectorised steps these are, with its sentinels: scores of -1e9
//! stand for what must not be taken, and are added up as there so that ties fall alike.

use super::distribution::{log_softmax, softmax, top};
use super::{Decoding, EarlyStopping, Generated, Stop, Watch};
use crate::Result;
use crate::generation::decoder::Decoder;

/// What must not be taken.
const NEVER: f32 = -1.0e9;

/// One text: its tokens, and the row that it continues.
#[derive(Clone, Debug)]
struct Beam {
    ids: Vec<i64>,
    score: f32,
    parent: usize,
    stop: Option<Stop>,
}

/// The texts of one prompt.
struct Search {
    running: Vec<Beam>,
    finished: Vec<Beam>,
    improvable: bool,
}

/// What is the same at every step.
struct Rules {
    beams: usize,
    keep: usize,
    early: EarlyStopping,
    penalty: f64,
    prompt: usize,
    most: usize,
}

pub(super) fn search(
    mut d: Decoding<'_>,
    decoder: &mut dyn Decoder,
    watch: &mut Watch<'_>,
) -> Result<Generated> {
    let beams = d.config.num_beams();
    let rules = Rules {
        beams,
        // Enough that as many go on as there are beams, should the best all end.
        keep: (1 + d.config.eos_token_ids().len()).max(2) * beams,
        early: d.config.early_stopping.unwrap_or_default(),
        penalty: d.config.length_penalty.unwrap_or(1.0),
        prompt: d.lengths.prompt,
        most: d.lengths.most,
    };
    let mut searches: Vec<Search> = d.prompt.rows().into_iter().map(|ids| Search::new(&ids, beams)).collect();
    let mut logits = decoder.prefill(d.prompt)?;
    // All beams of a prompt begin with its scores and its caches.
    let mut from: Vec<usize> = (0..searches.len() * beams).map(|row| row / beams).collect();
    let mut first = true;
    loop {
        let vocab = logits.ncols();
        let mut all_stop = true;
        for (prompt, search) in searches.iter_mut().enumerate() {
            let mut scores = Vec::with_capacity(beams * vocab);
            for (beam, running) in search.running.iter().enumerate() {
                let row = if first { from[prompt * beams + beam] } else { prompt * beams + beam };
                let mut own = logits.row(row).to_vec();
                log_softmax(&mut own);
                d.process(prompt, &running.ids, &mut own);
                scores.extend(own.iter().map(|score| score + running.score));
            }
            let picked = if d.config.do_sample() {
                d.draws.several(&softmax(&scores), rules.keep, prompt, search.running[0].ids.len())
            } else {
                top(&scores, rules.keep)
            };
            let mut candidates = Vec::with_capacity(picked.len());
            for index in picked {
                let mut ids = search.running[index / vocab].ids.clone();
                ids.push((index % vocab) as i64);
                let stop = d.stopping.check(&ids)?;
                all_stop &= stop.is_some();
                candidates.push(Beam {
                    ids,
                    score: scores[index],
                    parent: prompt * beams + index / vocab,
                    stop,
                });
            }
            search.advance(&rules, &candidates);
        }
        let cancelled = watch(&[]).is_break();
        let improvable = searches.iter().any(|search| search.improvable);
        let enough = rules.early == EarlyStopping::Enough && searches.iter().all(Search::full);
        if cancelled {
            searches.iter_mut().for_each(Search::give_up);
        }
        if cancelled || !improvable || enough || all_stop {
            break;
        }
        let running = || searches.iter().flat_map(|search| &search.running);
        let ids: Vec<i64> = running().filter_map(|beam| beam.ids.last().copied()).collect();
        // Of the first scores, which are one row a prompt, the parents are those rows.
        let parents: Vec<usize> =
            running().map(|beam| if first { from[beam.parent] } else { beam.parent }).collect();
        let unmoved = !first && parents.iter().enumerate().all(|(row, parent)| row == *parent);
        logits = decoder.decode(&ids, (!unmoved).then_some(parents.as_slice()))?;
        first = false;
        from.clear();
    }
    Ok(finish(&d, searches))
}

impl Search {
    fn new(ids: &[i64], beams: usize) -> Self {
        let beam = |score| Beam { ids: ids.to_vec(), score, parent: 0, stop: None };
        // Equal beams would all go the same way: at first only one counts.
        let running = (0..beams).map(|index| beam(if index == 0 { 0.0 } else { NEVER })).collect();
        Self { running, finished: vec![beam(NEVER); beams], improvable: true }
    }

    /// Takes the running texts for those that are not finished.
    fn give_up(&mut self) {
        let beams = self.finished.len();
        self.finished.retain(|beam| beam.stop.is_some());
        self.finished.append(&mut self.running);
        self.finished.truncate(beams);
    }

    fn full(&self) -> bool {
        self.finished.iter().all(|beam| beam.stop.is_some())
    }

    /// From the best continuations to those that go on and those that are finished.
    fn advance(&mut self, rules: &Rules, candidates: &[Beam]) {
        let going: Vec<f32> = candidates
            .iter()
            .map(|beam| beam.score + if beam.stop.is_some() { NEVER } else { 0.0 })
            .collect();
        let running = top(&going, rules.beams).into_iter().map(|index| {
            let beam = &candidates[index];
            Beam { ids: beam.ids.clone(), score: going[index], parent: beam.parent, stop: None }
        });
        self.running = running.collect();

        let length = self.running.first().map_or(0, |beam| beam.ids.len());
        let divisor = power(length - rules.prompt, rules.penalty);
        let closed = rules.early == EarlyStopping::Enough && self.full();
        let mut merged = std::mem::take(&mut self.finished);
        for (index, beam) in candidates.iter().enumerate() {
            let ended = beam.stop.filter(|_| index < rules.beams);
            let mut score = beam.score / divisor;
            score += if closed { NEVER } else { 0.0 };
            score += if self.improvable { 0.0 } else { NEVER };
            score += if ended.is_some() { 0.0 } else { NEVER };
            merged.push(Beam { ids: beam.ids.clone(), score, parent: beam.parent, stop: ended });
        }
        let scores: Vec<f32> = merged.iter().map(|beam| beam.score).collect();
        self.finished = top(&scores, rules.beams).into_iter().map(|index| merged[index].clone()).collect();
        self.improvable &= self.could_improve(rules, length);
    }

    /// Whether the best running text could become better than the worst finished one.
    fn could_improve(&self, rules: &Rules, length: usize) -> bool {
        let long = rules.early == EarlyStopping::Never && rules.penalty > 0.0;
        let hypothetical = if long { rules.most } else { length } - rules.prompt;
        let best = self.running.first().map_or(NEVER, |beam| beam.score) / power(hypothetical, rules.penalty);
        let worst = self.finished.iter().map(|beam| beam.score).fold(f32::INFINITY, f32::min);
        self.finished.iter().any(|beam| best > if beam.stop.is_some() { worst } else { NEVER })
    }
}

fn power(length: usize, penalty: f64) -> f32 {
    (length as f64).powf(penalty) as f32
}

/// The best finished texts of each prompt, filled to one length as the reference fills them.
fn finish(d: &Decoding<'_>, searches: Vec<Search>) -> Generated {
    // The reference takes a padding token of 0 for none.
    let fill = match d.config.eos_token_ids().first() {
        Some(end) => d.config.pad_token_id.filter(|pad| *pad != 0).unwrap_or(*end),
        None => -1,
    };
    let per_prompt = d.config.num_return_sequences();
    let best: Vec<Beam> =
        searches.into_iter().flat_map(|search| search.finished.into_iter().take(per_prompt)).collect();
    let length = best.iter().map(|beam| beam.ids.len()).max().unwrap_or(0);
    let mut generated = Generated {
        sequences: Vec::new(),
        prompt_length: d.lengths.prompt,
        ends: best.iter().map(|beam| beam.ids.len()).collect(),
        stops: best.iter().map(|beam| beam.stop.unwrap_or(Stop::Cancelled)).collect(),
        scores: Some(best.iter().map(|beam| beam.score).collect()),
        acceptance: None,
    };
    for mut beam in best {
        beam.ids.resize(length, fill);
        generated.sequences.push(beam.ids);
    }
    generated
}
