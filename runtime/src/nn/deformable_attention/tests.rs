//! Samples of small maps by hand.

use super::super::testing::{expect, refusal};
use super::*;

/// Two levels, 2 by 2 and 1 by 2, of one channel for each of two heads: the second head's values are ten times the first's.
fn memory(g: &mut Graph) -> Result<Tensor> {
    let first = [1.0, 2.0, 3.0, 4.0, 5.0, 7.0];
    g.constant(&[1, 6, 2], first.into_iter().flat_map(|value| [value, 10.0 * value]).collect())
}

const LEVELS: [[Dim; 2]; 2] = [[Dim::Fixed(2), Dim::Fixed(2)], [Dim::Fixed(1), Dim::Fixed(2)]];

/// Offsets by bias alone, one point in the first level and two in the second; weights are those of the first point and the last.
fn weights(offsets: &[f32; 12]) -> Vec<(&'static str, &[f32])> {
    let (zeros, low): (&[f32], f32) = (&[0.0; 24], -100.0);
    let chosen: &'static [f32] = Box::leak(Box::new([0.0, low, 0.0, 0.0, low, 0.0]));
    vec![
        ("w.sampling_offsets.weight", zeros),
        ("w.sampling_offsets.bias", offsets),
        ("w.attention_weights.weight", &zeros[..12]),
        ("w.attention_weights.bias", chosen),
    ]
}

fn attend(g: &mut Graph, reference: &[f32], discrete: bool) -> Result<Tensor> {
    let query = g.constant(&[1, 1, 2], vec![1.0, 2.0])?;
    let memory = memory(g)?;
    let reference = g.constant(&[1, 1, 1, reference.len()], reference.to_vec())?;
    let attention = DeformableAttention {
        projected: false,
        discrete,
        ..DeformableAttention::new(2, 2, &LEVELS, &[1, 2])
    };
    attention.forward(g, &Scope::root().scope("w"), &query, &memory, &reference)
}

#[test]
fn each_head_samples_each_level_at_its_own_offsets() {
    // The first head: half a column to the left of the middle, and half of one to the right; the second: a row down, and none.
    let offsets = [-0.5, 0.0, 9.0, 9.0, 0.5, 0.0, 0.0, 0.5, 9.0, 9.0, 0.0, 0.0];
    // (1 + 3) / 2 and 7; (30 + 40) / 2 and (50 + 70) / 2.
    expect(&weights(&offsets), |g| attend(g, &[0.5, 0.5], false), &[1, 1, 2], &[4.5, 47.5]);
    // Half a place on, rounded down, within the map, as the reference has it: 4 and 7; 40 and 70.
    expect(&weights(&offsets), |g| attend(g, &[0.5, 0.5], true), &[1, 1, 2], &[5.5, 55.0]);
}

#[test]
fn offsets_from_boxes_are_parts_of_them() {
    // Half a box of half the map, over one point, is a quarter of the map; over two points an eighth.
    let offsets = [-1.0, -1.0, 0.0, 0.0, 2.0, 0.0, 1.0, 1.0, 0.0, 0.0, -2.0, 0.0];
    let boxes = [0.5, 0.5, 0.5, 0.5];
    expect(&weights(&offsets), |g| attend(g, &boxes, false), &[1, 1, 2], &[4.0, 45.0]);
}

#[test]
fn values_of_padding_are_zero_and_projections_have_biases() {
    let block = |g: &mut Graph| {
        let query = g.constant(&[1, 1, 1], vec![0.0])?;
        let memory = g.constant(&[1, 2, 1], vec![4.0, 6.0])?;
        let reference = g.constant(&[1, 1, 1, 2], vec![0.5, 0.5])?;
        let mask = g.integers(&[1, 2], vec![1, 0])?;
        let mask = g.cast(&mask, Dtype::Bool);
        let levels = [[Dim::Fixed(1), Dim::Fixed(2)]];
        let attention =
            DeformableAttention { mask: Some(&mask), ..DeformableAttention::new(1, 1, &levels, &[1]) };
        attention.forward(g, &Scope::root().scope("w"), &query, &memory, &reference)
    };
    let given: [(&str, &[f32]); 8] = [
        ("w.value_proj.weight", &[2.0]),
        ("w.value_proj.bias", &[1.0]),
        ("w.sampling_offsets.weight", &[0.0, 0.0]),
        ("w.sampling_offsets.bias", &[0.0, 0.0]),
        ("w.attention_weights.weight", &[0.0]),
        ("w.attention_weights.bias", &[3.0]),
        ("w.output_proj.weight", &[10.0]),
        ("w.output_proj.bias", &[0.5]),
    ];
    // Half of 2 · 4 + 1, and nothing of what is padded.
    expect(&given, block, &[1, 1, 1], &[45.5]);
}

#[test]
fn middles_run_across_first() {
    let points = |g: &mut Graph| reference_points(g, &Dim::Fixed(2), &Dim::Fixed(4));
    let want: Vec<f32> =
        [0.25, 0.75].into_iter().flat_map(|y| [0.125, y, 0.375, y, 0.625, y, 0.875, y]).collect();
    expect(&[], points, &[1, 8, 2], &want);
}

#[test]
fn boxes_are_moved_in_logits() {
    let odds = |g: &mut Graph| {
        let x = g.constant(&[4], vec![0.5, 0.75, -3.0, 1.0])?;
        inverse_sigmoid(g, &x, 1e-5)
    };
    let most = 1e5_f32.ln();
    expect(&[], odds, &[4], &[0.0, 3.0_f32.ln(), -most, most]);
    let refined = |points: &'static [f32]| {
        move |g: &mut Graph| {
            let boxes = g.constant(&[1, points.len()], points.to_vec())?;
            let deltas = g.constant(&[1, 4], vec![3.0_f32.ln(), 0.0, 0.0, -3.0_f32.ln()])?;
            refine_boxes(g, &boxes, &deltas)
        }
    };
    expect(&[], refined(&[0.5, 0.75, 0.5, 0.5]), &[1, 4], &[0.75, 0.75, 0.5, 0.25]);
    expect(&[], refined(&[0.25, 0.75]), &[1, 4], &[0.5, 0.75, 0.5, 0.25]);
}

#[test]
fn rows_are_picked_for_each_item() {
    let picked = |g: &mut Graph| {
        let x = g.constant(&[2, 3, 1], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
        let indices = g.integers(&[2, 2], vec![2, 0, 1, 1])?;
        gather_rows(g, &x, &indices)
    };
    expect(&[], picked, &[2, 2, 1], &[3.0, 1.0, 5.0, 5.0]);
    let wrong = |g: &mut Graph| {
        let x = g.constant(&[2, 3], vec![0.0; 6])?;
        let indices = g.integers(&[2], vec![0, 1])?;
        gather_rows(g, &x, &indices)
    };
    insta::assert_snapshot!(refusal(wrong), @"gather_rows in the root: [2, 3] at [2] are not [batch, positions, width] and [batch, rows]");
}

#[test]
fn levels_need_points() {
    let wrong = |g: &mut Graph| {
        let x = g.constant(&[1, 1, 4], vec![0.0; 4])?;
        let attention = DeformableAttention::new(3, 4, &LEVELS, &[1]);
        attention.forward(g, &Scope::root().scope("w"), &x, &x, &x)
    };
    insta::assert_snapshot!(refusal(wrong), @"DeformableAttention in w: 3 heads, 2 levels, points [1] do not fit width 4");
}

#[test]
fn points_have_factors_of_their_own() {
    // The factors of the first level's point and of the second's last one: three quarters of the map to the left, and none.
    let offsets = [-1.0, 0.0, 9.0, 9.0, 2.0, 0.0, 0.0, 0.0, 9.0, 9.0, 0.0, 0.0];
    let mut given = weights(&offsets);
    given.push(("w.scale", &[0.5, 9.0, 0.0]));
    let block = |g: &mut Graph| {
        let query = g.constant(&[1, 1, 2], vec![1.0, 2.0])?;
        let memory = memory(g)?;
        let reference = g.constant(&[1, 1, 1, 4], vec![0.75, 0.25, 1.0, 1.0])?;
        let attention = DeformableAttention {
            projected: false,
            offset_scale: 1.0,
            points_scale: Some("scale"),
            ..DeformableAttention::new(2, 2, &LEVELS, &[1, 2])
        };
        attention.forward(g, &Scope::root().scope("w"), &query, &memory, &reference)
    };
    // 1 and, three quarters of a row up from its middle, three quarters of 7; twenty, and the same of 70.
    expect(&given, block, &[1, 1, 2], &[(1.0 + 5.25) / 2.0, (20.0 + 52.5) / 2.0]);
}
