//! Small images by hand; interpolated positions are `torch.nn.functional.interpolate`'s.

use super::super::testing::{expect, refusal};
use super::*;
use crate::graph::Dtype;
use crate::graph::dims::BATCH;

/// 1, 2, 3 … in a shape.
fn counting(g: &mut Graph, shape: &[usize]) -> Result<Tensor> {
    let count = shape.iter().product::<usize>();
    g.constant(shape, (1..=count).map(|n| n as f32).collect())
}

#[test]
fn positions_are_weighed_by_rows_and_columns() {
    let found = |g: &mut Graph| {
        let positions = g.constant(&[1, 4, 1], vec![1.0, 2.0, 3.0, 4.0])?;
        let down = g.constant(&[1, 2], vec![0.25, 0.75])?;
        let across = g.constant(&[3, 2], vec![1.0, 0.0, 0.5, 0.5, 0.0, 1.0])?;
        interpolate_by_weights(g, &positions, [2, 2], [&down, &across])
    };
    // A quarter of the row above and three of that below: 2.5 and 3.5.
    expect(&[], found, &[1, 3, 1], &[2.5, 3.0, 3.5]);
}

#[test]
fn patches_are_embedded_row_by_row() {
    // The sum of a patch, and its upper right pixel plus 100.
    let weight = [1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0];
    let weights: [(&str, &[f32]); 2] = [("patch.weight", &weight), ("patch.bias", &[0.0, 100.0])];
    let build = |g: &mut Graph| {
        let pixels = counting(g, &[1, 1, 4, 6])?;
        let (x, grid) = patch_embedding(g, &Scope::root().scope("patch"), &pixels, &Conv::patches(2, 2))?;
        assert_eq!(grid, [2, 3].map(Dim::Fixed));
        Ok(x)
    };
    let want = [18.0, 102.0, 26.0, 104.0, 34.0, 106.0, 66.0, 114.0, 74.0, 116.0, 82.0, 118.0];
    expect(&weights, build, &[1, 6, 2], &want);
}

#[test]
fn feature_maps_are_flattened_row_by_row_and_come_back() {
    let flat = |g: &mut Graph| {
        let map = counting(g, &[1, 2, 2, 3])?;
        flatten_feature_map(g, &map)
    };
    let want = [1.0, 7.0, 2.0, 8.0, 3.0, 9.0, 4.0, 10.0, 5.0, 11.0, 6.0, 12.0];
    expect(&[], flat, &[1, 6, 2], &want);
    let back = |g: &mut Graph| {
        let x = flat(g)?;
        unflatten_feature_map(g, &x, &[2, 3].map(Dim::Fixed))
    };
    let want: Vec<_> = (1..=12).map(|n| n as f32).collect();
    expect(&[], back, &[1, 2, 2, 3], &want);
}

#[test]
fn tokens_stand_before_the_patches_of_each_image_in_order() {
    let weights: [(&str, &[f32]); 2] = [("class", &[5.0, 6.0]), ("registers", &[7.0, 8.0, 9.0, 10.0])];
    let build = |g: &mut Graph| {
        let x = counting(g, &[2, 1, 2])?;
        let class = g.weight("class", &[2])?;
        let registers = g.weight("registers", &[1, 2, 2])?;
        prepend_tokens(g, &[&class, &registers], &x)
    };
    let want = [5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 1.0, 2.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 3.0, 4.0];
    expect(&weights, build, &[2, 4, 2], &want);
}

/// What bicubic interpolation makes of 1, 2, 4, 8, 16, 32 in two rows of three at three rows of two.
const INTERPOLATED: [f32; 6] = [0.453_667_46, 1.405_449_7, 5.203_125, 16.119_14, 9.952_581, 30.832_83];

#[test]
fn positions_of_patches_are_interpolated_between_those_of_tokens() {
    let weights: [(&str, &[f32]); 1] = [("positions", &[100.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 200.0])];
    let at = |grid: [usize; 2]| {
        move |g: &mut Graph| {
            let positions = g.weight("positions", &[8, 1])?;
            interpolate_pos_encoding(g, &positions, 1, [2, 3], grid.map(Dim::Fixed))
        }
    };
    let want = [&[100.0], INTERPOLATED.as_slice(), &[200.0]].concat();
    expect(&weights, at([3, 2]), &[1, 8, 1], &want);
    expect(&weights, at([2, 3]), &[8, 1], weights[0].1);
}

#[test]
fn positions_of_several_layers_are_interpolated_at_once() {
    let first = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
    let both = [first, first.map(|x: f32| -x)].concat();
    let build = |g: &mut Graph| {
        let positions = g.weight("positions", &[2, 6, 1])?;
        interpolate_pos_encoding(g, &positions, 0, [2, 3], [3, 2].map(Dim::Fixed))
    };
    let want = [INTERPOLATED, INTERPOLATED.map(|x| -x)].concat();
    expect(&[("positions", &both)], build, &[2, 6, 1], &want);
}

#[test]
fn mask_tokens_replace_masked_patches() {
    let build = |g: &mut Graph| {
        let x = counting(g, &[1, 3, 2])?;
        let masked = g.integers(&[1, 3], vec![0, 1, 0])?;
        let masked = g.cast(&masked, Dtype::Bool);
        mask_patches(g, "mask_token", &x, &masked)
    };
    expect(&[("mask_token", &[-1.0, -2.0])], build, &[1, 3, 2], &[1.0, 2.0, -1.0, -2.0, 5.0, 6.0]);
}

#[test]
fn patches_are_averaged_without_the_tokens_before_them() {
    let mean = |prefix| {
        move |g: &mut Graph| {
            let x = g.constant(&[1, 3, 2], vec![9.0, -9.0, 1.0, 2.0, 3.0, 6.0])?;
            mean_patches(g, &x, prefix)
        }
    };
    expect(&[], mean(1), &[1, 2], &[2.0, 4.0]);
    expect(&[], mean(0), &[1, 2], &[13.0 / 3.0, -1.0 / 3.0]);
}

#[test]
fn features_take_the_places_of_placeholders() {
    let build = |g: &mut Graph| {
        let x = counting(g, &[2, 2, 1])?;
        let features = g.constant(&[2, 1], vec![-1.0, -2.0])?;
        // The second token of the first text, and the first of the second.
        let indices = g.integers(&[2, 2], vec![0, 4, 5, 3])?;
        merge_features(g, &x, &features, &indices)
    };
    expect(&[], build, &[2, 2, 1], &[1.0, -1.0, -2.0, 4.0]);
}

#[test]
fn channels_become_squares_of_pixels() {
    let build = |g: &mut Graph| {
        let x = counting(g, &[1, 8, 1, 2])?;
        pixel_shuffle(g, &x, 2)
    };
    let want = [1.0, 3.0, 2.0, 4.0, 5.0, 7.0, 6.0, 8.0, 9.0, 11.0, 10.0, 12.0, 13.0, 15.0, 14.0, 16.0];
    expect(&[], build, &[1, 2, 2, 4], &want);
}

#[test]
fn images_have_one_size_unless_interpolation_is_asked_for() {
    let mut g = Graph::new();
    assert_eq!(interpolable_pixel_values(&mut g, BATCH, 3, 224).shape(), dims![BATCH, 3, 224, 224]);
    g.interpolate = true;
    assert_eq!(interpolable_pixel_values(&mut g, BATCH, 3, 224).shape(), dims![BATCH, 3, HEIGHT, WIDTH]);
    assert!(g.can_interpolate);
}

#[test]
fn what_does_not_fit_is_refused() {
    let sequence = |g: &mut Graph| g.input(Input::f32("x", dims![BATCH, 4, 2]));
    let map = |g: &mut Graph| g.input(Input::f32("x", dims![BATCH, 6, 2, 2]));
    let flat = |g: &mut Graph| {
        let x = sequence(g);
        flatten_feature_map(g, &x)
    };
    insta::assert_snapshot!(refusal(flat), @"flatten_feature_map in the root: [batch, 4, 2] is not [batch, channels, rows, columns]");
    let back = |g: &mut Graph| {
        let x = map(g);
        unflatten_feature_map(g, &x, &[2, 2].map(Dim::Fixed))
    };
    insta::assert_snapshot!(refusal(back), @"unflatten_feature_map in the root: [batch, 6, 2, 2] is not [batch, positions, channels]");
    let tokens = |g: &mut Graph| {
        let (x, token) = (sequence(g), g.weight("token", &[1, 1, 3])?);
        prepend_tokens(g, &[&token], &x)
    };
    insta::assert_snapshot!(refusal(tokens), @"Concat in the root: [batch, 1, 3], [batch, 4, 2] differ elsewhere than in axis 1, or in type");
    let tokens = |g: &mut Graph| {
        let (x, token) = (map(g), g.weight("token", &[1, 1, 2])?);
        prepend_tokens(g, &[&token], &x)
    };
    insta::assert_snapshot!(refusal(tokens), @"prepend_tokens in the root: [batch, 6, 2, 2] is not [batch, positions, width]");
    let positions = |g: &mut Graph| {
        let positions = g.weight("positions", &[1, 4, 2])?;
        interpolate_pos_encoding(g, &positions, 1, [2, 2], [HEIGHT, WIDTH])
    };
    insta::assert_snapshot!(refusal(positions), @"Slice in the root: 1..5 does not lie in axis 1 of [1, 4, 2], whose length must be fixed");
    let shuffle = |g: &mut Graph| {
        let x = map(g);
        pixel_shuffle(g, &x, 2)
    };
    insta::assert_snapshot!(refusal(shuffle), @"pixel_shuffle in the root: 6 channels are not a multiple of 4, the pixels of a square");
}

#[test]
fn squares_of_patches_become_channels_columns_within_rows() {
    let build = |g: &mut Graph| {
        let x = counting(g, &[1, 16, 1])?;
        pixel_unshuffle(g, &x, 2)
    };
    let want = [1.0, 2.0, 5.0, 6.0, 3.0, 4.0, 7.0, 8.0, 9.0, 10.0, 13.0, 14.0, 11.0, 12.0, 15.0, 16.0];
    expect(&[], build, &[1, 4, 4], &want);
    let error = refusal(|g| {
        let x = counting(g, &[1, 9, 1])?;
        pixel_unshuffle(g, &x, 2)
    });
    assert!(error.contains("9 patches are no square whose side is a multiple of 2"), "{error}");
}
