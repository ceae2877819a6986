//! From labelled tokens to words and names.

use super::{Aggregation, Entity};
use crate::Result;
use crate::tasks::labels::Labels;
use crate::tasks::scores::largest;

/// A token of the text, with the scores of all labels.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) word: String,
    pub(super) scores: Vec<f32>,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) index: usize,
    /// Whether it goes on with the word of the piece before.
    pub(super) is_subword: bool,
}

/// Joins tokens to text.
type Join<'a> = &'a dyn Fn(&[String]) -> Result<String>;

/// Puts pieces together as `aggregation` says.
pub(super) fn entities(
    pieces: &[Piece],
    aggregation: Aggregation,
    labels: &Labels,
    join: Join<'_>,
) -> Result<Vec<Entity>> {
    let tokens = || pieces.iter().map(|piece| token(piece, labels)).collect::<Vec<_>>();
    match aggregation {
        Aggregation::None => Ok(tokens()),
        Aggregation::Simple => groups(&tokens(), join),
        Aggregation::First | Aggregation::Average | Aggregation::Max => {
            let words: Vec<&[Piece]> = pieces.chunk_by(|_, next| next.is_subword).collect();
            let words = words.into_iter().map(|pieces| word(pieces, aggregation, labels, join));
            groups(&words.collect::<Result<Vec<_>>>()?, join)
        }
    }
}

fn token(piece: &Piece, labels: &Labels) -> Entity {
    let best = largest(&piece.scores);
    Entity {
        label: labels.name(best),
        score: piece.scores[best],
        index: Some(piece.index),
        word: piece.word.clone(),
        start: piece.start,
        end: piece.end,
    }
}

/// One word of one or more pieces.
fn word(pieces: &[Piece], aggregation: Aggregation, labels: &Labels, join: Join<'_>) -> Result<Entity> {
    let average;
    let scores: &[f32] = match aggregation {
        Aggregation::Max => {
            let surest: Vec<f32> = pieces.iter().map(|p| p.scores[largest(&p.scores)]).collect();
            &pieces[largest(&surest)].scores
        }
        Aggregation::Average => {
            average = mean(pieces);
            &average
        }
        _ => &pieces[0].scores,
    };
    let best = largest(scores);
    let words: Vec<String> = pieces.iter().map(|piece| piece.word.clone()).collect();
    Ok(Entity {
        label: labels.name(best),
        score: scores[best],
        index: None,
        word: join(&words)?,
        start: pieces[0].start,
        end: pieces[pieces.len() - 1].end,
    })
}

fn mean(pieces: &[Piece]) -> Vec<f32> {
    let count = pieces.len() as f32;
    (0..pieces[0].scores.len()).map(|i| pieces.iter().map(|p| p.scores[i]).sum::<f32>() / count).collect()
}

/// Joins neighbours of one label; `B-` begins anew, and a label without `B-` or `I-` goes on.
fn groups(entities: &[Entity], join: Join<'_>) -> Result<Vec<Entity>> {
    let goes_on = |last: &Entity, next: &Entity| {
        let (begins, tag) = tag(&next.label);
        !begins && tag == self::tag(&last.label).1
    };
    entities.chunk_by(goes_on).map(|members| group(members, join)).collect()
}

fn group(members: &[Entity], join: Join<'_>) -> Result<Entity> {
    let words: Vec<String> = members.iter().map(|member| member.word.clone()).collect();
    let first = &members[0].label;
    Ok(Entity {
        // The reference cuts at the first dash here, whatever stands before it.
        label: first.split_once('-').map_or(first.as_str(), |(_, rest)| rest).to_string(),
        score: members.iter().map(|member| member.score).sum::<f32>() / members.len() as f32,
        index: None,
        word: join(&words)?,
        start: members[0].start,
        end: members[members.len() - 1].end,
    })
}

/// Whether a label begins an entity, and what it names.
fn tag(label: &str) -> (bool, &str) {
    match label.split_at_checked(2) {
        Some(("B-", tag)) => (true, tag),
        Some(("I-", tag)) => (false, tag),
        _ => (false, label),
    }
}

/// Of entities that overlap, from windows of one text, keeps the longer one, or else the surer.
pub(super) fn without_overlaps(mut entities: Vec<Entity>) -> Vec<Entity> {
    entities.sort_by_key(|entity| entity.start);
    let mut kept: Vec<Entity> = Vec::with_capacity(entities.len());
    for entity in entities {
        match kept.last_mut() {
            Some(last) if (last.start..last.end).contains(&entity.start) => {
                let length = |e: &Entity| e.end - e.start;
                let longer = length(&entity) > length(last);
                if longer || length(&entity) == length(last) && entity.score > last.score {
                    *last = entity;
                }
            }
            _ => kept.push(entity),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels() -> Labels {
        let names = serde_json::json!({"id2label": {"0": "O", "1": "B-PER", "2": "I-PER", "3": "B-LOC"}});
        Labels::read(&names)
    }

    /// Pieces with their best label and its score; the rest is shared among the others.
    fn pieces(of: &[(&str, usize, f32)]) -> Vec<Piece> {
        let mut at = 0;
        let make = |(index, (word, best, score)): (usize, &(&str, usize, f32))| {
            let mut scores = vec![(1.0 - score) / 3.0; 4];
            scores[*best] = *score;
            let is_subword = word.starts_with("##");
            let length = word.trim_start_matches("##").len();
            let start = if is_subword || index == 0 { at } else { at + 1 };
            at = start + length;
            Piece { word: (*word).to_string(), scores, start, end: at, index: index + 1, is_subword }
        };
        of.iter().enumerate().map(make).collect()
    }

    fn run(of: &[(&str, usize, f32)], aggregation: Aggregation) -> Vec<(String, String, usize, usize)> {
        let join = |tokens: &[String]| Ok(tokens.join(" ").replace(" ##", ""));
        let entities = entities(&pieces(of), aggregation, &labels(), &join).unwrap();
        entities.into_iter().map(|e| (e.label, e.word, e.start, e.end)).collect()
    }

    fn entity(label: &str, word: &str, start: usize, end: usize) -> (String, String, usize, usize) {
        (label.into(), word.into(), start, end)
    }

    const NAME: [(&str, usize, f32); 4] =
        [("ada", 1, 0.9), ("love", 2, 0.6), ("##lace", 3, 0.8), ("spoke", 0, 0.9)];

    #[test]
    fn simple_joins_what_goes_on_and_may_split_words() {
        let want =
            [entity("PER", "ada love", 0, 8), entity("LOC", "##lace", 8, 12), entity("O", "spoke", 13, 18)];
        assert_eq!(run(&NAME, Aggregation::Simple), want);
    }

    #[test]
    fn words_stay_whole_by_first_max_and_average() {
        let person = [entity("PER", "ada lovelace", 0, 12), entity("O", "spoke", 13, 18)];
        assert_eq!(run(&NAME, Aggregation::First), person);
        let place =
            [entity("PER", "ada", 0, 3), entity("LOC", "lovelace", 4, 12), entity("O", "spoke", 13, 18)];
        assert_eq!(run(&NAME, Aggregation::Max), place);
        assert_eq!(run(&NAME, Aggregation::Average), place);
    }

    #[test]
    fn two_beginnings_are_two_entities() {
        let want = [entity("PER", "ada", 0, 3), entity("PER", "bob", 4, 7)];
        assert_eq!(run(&[("ada", 1, 0.9), ("bob", 1, 0.9)], Aggregation::Simple), want);
    }

    #[test]
    fn of_overlapping_entities_the_longer_or_surer_stays() {
        let make = |start, end, score| Entity {
            label: "X".into(),
            score,
            index: None,
            word: String::new(),
            start,
            end,
        };
        let spans = |of: Vec<Entity>| {
            without_overlaps(of).iter().map(|e| (e.start, e.end, e.score)).collect::<Vec<_>>()
        };
        let longer = vec![make(8, 12, 0.5), make(0, 5, 0.5), make(3, 9, 0.1), make(12, 13, 0.2)];
        assert_eq!(spans(longer), [(3, 9, 0.1), (12, 13, 0.2)]);
        assert_eq!(spans(vec![make(0, 4, 0.5), make(0, 4, 0.6), make(1, 5, 0.4)]), [(0, 4, 0.6)]);
    }

    #[test]
    fn keys_follow_the_reference() {
        let group =
            Entity { label: "PER".into(), score: 0.5, index: None, word: "ada".into(), start: 0, end: 3 };
        let keys = |e: &Entity| {
            serde_json::to_value(e).unwrap().as_object().unwrap().keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(keys(&group), ["entity_group", "score", "word", "start", "end"]);
        let token = Entity { index: Some(1), ..group };
        assert_eq!(keys(&token), ["entity", "score", "index", "word", "start", "end"]);
    }
}
