//! Small grids by hand; masks and padding of an odd grid.

use super::super::testing::{expect, refusal};
use super::*;
use crate::graph::Input;
use crate::graph::dims::{BATCH, WIDTH};

/// One image of patches 1, 2, 3 … row by row.
fn patches(g: &mut Graph, count: usize) -> Result<Tensor> {
    g.constant(&[1, count, 1], (1..=count).map(|n| n as f32).collect())
}

#[test]
fn every_other_layer_shifts_windows_that_are_smaller_than_the_grid() {
    let of = |index, side| {
        let windows = Windows::of_layer(index, [side; 2], 4, side);
        (windows.window, windows.shift)
    };
    assert_eq!([of(0, 8), of(1, 8), of(2, 8), of(1, 4), of(1, 3)], [(4, 0), (4, 2), (4, 0), (4, 0), (3, 0)]);
}

#[test]
fn grids_are_cut_into_windows_row_by_row() {
    let cut = |grid: [usize; 2], shift| {
        move |g: &mut Graph| {
            let x = patches(g, grid[0] * grid[1])?;
            Windows { grid, window: 2, shift }.partition(g, &x)
        }
    };
    expect(&[], cut([2, 4], 0), &[2, 4, 1], &[1.0, 2.0, 5.0, 6.0, 3.0, 4.0, 7.0, 8.0]);
    expect(&[], cut([2, 4], 1), &[2, 4, 1], &[6.0, 7.0, 2.0, 3.0, 8.0, 5.0, 4.0, 1.0]);
    expect(&[], cut([1, 3], 0), &[2, 4, 1], &[1.0, 2.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0]);
}

#[test]
fn shifted_windows_of_an_odd_grid_are_put_back() {
    let build = |g: &mut Graph| {
        let x = patches(g, 15)?;
        let windows = Windows { grid: [3, 5], window: 2, shift: 1 };
        let cut = windows.partition(g, &x)?;
        windows.reverse(g, &cut, &Dim::Fixed(1))
    };
    let want: Vec<_> = (1..=15).map(|n| n as f32).collect();
    expect(&[], build, &[1, 15, 1], &want);
}

#[test]
fn grids_that_are_rolled_first_are_padded_behind_what_came_around() {
    let windows = Windows { grid: [1, 3], window: 2, shift: 1 };
    let cut = move |g: &mut Graph| {
        let x = patches(g, 3)?;
        windows.partition_rolled(g, &x)
    };
    expect(&[], cut, &[2, 4, 1], &[2.0, 3.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
    let back = move |g: &mut Graph| {
        let cut = cut(g)?;
        windows.reverse_rolled(g, &cut, &Dim::Fixed(1))
    };
    expect(&[], back, &[1, 3, 1], &[1.0, 2.0, 3.0]);
}

#[test]
fn bias_is_by_head_and_distance() {
    let table: Vec<f32> = (0..9).flat_map(|row| [row as f32, -(row as f32)]).collect();
    let build = |g: &mut Graph| {
        let table = g.weight("table", &[9, 2])?;
        Windows { grid: [4, 4], window: 2, shift: 0 }.bias(g, &table)
    };
    let first = [4.0, 3.0, 1.0, 0.0, 5.0, 4.0, 2.0, 1.0, 7.0, 6.0, 4.0, 3.0, 8.0, 7.0, 5.0, 4.0];
    let want = [first, first.map(|row: f32| -row)].concat();
    expect(&[("table", &table)], build, &[1, 2, 4, 4], &want);
}

#[test]
fn bias_of_the_class_token_has_rows_of_its_own() {
    let build = |g: &mut Graph| {
        let table = g.weight("table", &[4, 1])?;
        let index = relative_position_index_with_cls(g, 1)?;
        relative_bias_with_cls(g, &table, &index)
    };
    // Class token to itself and to the patch, then the patch to it and to itself.
    expect(&[("table", &[10.0, 11.0, 12.0, 13.0])], build, &[1, 1, 2, 2], &[13.0, 11.0, 12.0, 10.0]);
}

#[test]
fn tables_of_bias_are_interpolated_but_for_the_class_token() {
    let table: Vec<f32> = (0..12).map(|row| row as f32).collect();
    let build = |g: &mut Graph| {
        let table = g.weight("table", &[12, 1])?;
        interpolate_relative_bias_with_cls(g, &table, 2, &[1, 2].map(Dim::Fixed))
    };
    // The middle of three rows.
    expect(&[("table", &table)], build, &[6, 1], &[3.0, 4.0, 5.0, 9.0, 10.0, 11.0]);
}

#[test]
fn patches_that_the_shift_brought_together_are_masked() {
    let build = |g: &mut Graph| {
        let bias = g.constant(&[1, 1, 4, 4], vec![0.5; 16])?;
        Windows { grid: [2, 2], window: 2, shift: 1 }.mask(g, &bias, &Dim::Fixed(2), -100.0)
    };
    let want: Vec<_> = (0..32).map(|pair| if pair % 16 % 5 == 0 { 0.5 } else { -99.5 }).collect();
    expect(&[], build, &[2, 1, 4, 4], &want);
}

#[test]
fn only_windows_at_the_far_edges_are_masked() {
    let apart = Windows { grid: [4, 4], window: 2, shift: 1 }.apart(-1.0);
    let tile = |index: usize| &apart[16 * index..16 * (index + 1)];
    assert!(tile(0).iter().all(|&x| x == 0.0));
    assert_eq!(tile(1)[..4], [0.0, -1.0, 0.0, -1.0]);
    assert_eq!(tile(2)[..4], [0.0, 0.0, -1.0, -1.0]);
    assert_eq!(tile(3)[..4], [0.0, -1.0, -1.0, -1.0]);
}

#[test]
fn squares_of_patches_are_merged_by_column_then_by_row() {
    let build = |g: &mut Graph| {
        let x = patches(g, 6)?;
        patch_merge(g, &x, [3, 2])
    };
    expect(&[], build, &[1, 2, 4], &[1.0, 3.0, 2.0, 4.0, 5.0, 0.0, 6.0, 0.0]);
}

#[test]
fn a_batch_of_any_size_keeps_its_axis() -> Result<()> {
    let mut g = Graph::new();
    let windows = Windows { grid: [5, 3], window: 2, shift: 1 };
    let x = g.input(Input::f32("x", dims![BATCH, 15, 6]));
    let cut = windows.partition(&mut g, &x)?;
    assert_eq!(cut.shape(), dims![BATCH * Dim::from(6), 4, 6]);
    assert_eq!(windows.reverse(&mut g, &cut, &BATCH)?.shape(), dims![BATCH, 15, 6]);
    let bias = g.weight("bias", &[1, 2, 4, 4])?;
    let mask = windows.mask(&mut g, &bias, &BATCH, -100.0)?;
    assert_eq!(mask.shape(), dims![BATCH * Dim::from(6), 2, 4, 4]);
    assert_eq!(patch_merge(&mut g, &x, [5, 3])?.shape(), dims![BATCH, 6, 24]);
    Ok(())
}

#[test]
fn other_grids_are_refused() {
    let windows = Windows { grid: [2, 2], window: 2, shift: 0 };
    let count = |g: &mut Graph| {
        let x = g.input(Input::f32("x", dims![BATCH, 5, 6]));
        windows.partition(g, &x)
    };
    insta::assert_snapshot!(refusal(count), @"Reshape in the root: [batch, 5, 6] does not hold as many elements as [batch, 2, 2, 6]");
    let width = |g: &mut Graph| {
        let x = g.input(Input::f32("x", dims![BATCH, 4, WIDTH]));
        patch_merge(g, &x, [2, 2])
    };
    insta::assert_snapshot!(refusal(width), @"Windows in the root: the last axis of [batch, 4, width] must have a fixed length");
}
