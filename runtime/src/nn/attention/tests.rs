//! Masks of a few positions by hand.

use super::super::testing::expect;
use super::*;
use crate::graph::Dtype;

#[test]
fn pairs_are_seen_whatever_the_window_is_and_padding_never() {
    let build = |g: &mut Graph| {
        let attention_mask = g.integers(&[1, 4], vec![0, 1, 1, 1])?;
        let segments = g.integers(&[1, 4], vec![0, 0, -1, 0])?;
        let pairs = same_segment_mask(g, &segments, &Dim::Fixed(0))?;
        let mask = decoder_mask(g, &attention_mask, &Dim::Fixed(0), true, Some(2))?;
        let mask = or_mask(g, &mask, &attention_mask, Some(&pairs))?;
        Ok(g.cast(&mask, Dtype::F32))
    };
    // The first is padding; the second and the last see each other, the third only itself and the one before it.
    let want = [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0];
    expect(&[], build, &[1, 1, 4, 4], &want);
}

#[test]
fn windows_over_another_models_keys_are_counted_from_their_end() {
    let mask = |sequence: usize, window: usize| {
        move |g: &mut Graph| {
            let attention_mask = g.integers(&[1, 5], vec![1, 1, 1, 0, 1])?;
            let mask = trailing_window_mask(g, &attention_mask, &Dim::Fixed(sequence), window)?;
            Ok(g.cast(&mask, Dtype::F32))
        }
    };
    // A window of one: the first query sees the last two keys, each other query one key earlier, up to one behind where it stands.
    let want = [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0];
    expect(&[], mask(3, 1), &[1, 1, 3, 5], &want);
    // A longer window leaves padding out alone.
    expect(&[], mask(1, 7), &[1, 1, 1, 5], &[1.0, 1.0, 1.0, 0.0, 1.0]);
}

#[test]
fn queries_that_see_nothing_give_zeros() {
    let build = |g: &mut Graph| {
        let attention_mask = g.integers(&[2, 3], vec![0, 1, 1, 1, 1, 0])?;
        let mask = decoder_mask(g, &attention_mask, &Dim::Fixed(0), true, None)?;
        let x = g.constant(&[2, 3, 1], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
        zero_unseeing(g, &x, &mask)
    };
    // Padding before a text sees nothing, behind it the text.
    expect(&[], build, &[2, 3, 1], &[0.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
}
