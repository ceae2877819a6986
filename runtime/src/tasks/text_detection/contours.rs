//! The borders of regions of a binary map.
//!
//! Reference: `cv2.findContours` with `RETR_LIST` (Suzuki and Abe, 1985).

use std::collections::BTreeMap;

use ndarray::{Array2, ArrayView2};

/// Row and column of a pixel.
type Place = (usize, usize);

/// The pixels of each border: around each region whose pixels touch by edges or corners, and around each hole of one. The border that
/// begins furthest down comes first, as there.
pub(super) fn contours(inside: &ArrayView2<'_, bool>) -> Vec<Vec<Place>> {
    let (rows, columns) = inside.dim();
    let regions = labelled(inside, true);
    let grounds = labelled(inside, false);
    // What touches the edge of the map is no hole.
    let mut open = vec![false; rows * columns + 1];
    for ((y, x), ground) in grounds.indexed_iter() {
        if y == 0 || x == 0 || y + 1 == rows || x + 1 == columns {
            open[*ground] = true;
        }
    }
    // By whether it is a hole, and its label.
    let mut borders: BTreeMap<(bool, usize), Vec<Place>> = BTreeMap::new();
    for ((y, x), region) in regions.indexed_iter() {
        if *region == 0 {
            continue;
        }
        let edge = y == 0 || x == 0 || y + 1 == rows || x + 1 == columns;
        let mut around: Vec<usize> = neighbours((y, x), (rows, columns), false)
            .map(|place| grounds[place])
            .filter(|ground| *ground != 0)
            .collect();
        around.sort_unstable();
        around.dedup();
        if edge || !around.is_empty() {
            borders.entry((false, *region)).or_default().push((y, x));
        }
        for hole in around.into_iter().filter(|ground| !open[*ground]) {
            borders.entry((true, hole)).or_default().push((y, x));
        }
    }
    let mut begun: Vec<(Place, Vec<Place>)> =
        borders.into_iter().map(|((hole, _), border)| (begin(&border, hole), border)).collect();
    begun.sort_by_key(|(begin, _)| std::cmp::Reverse(*begin));
    begun.into_iter().map(|(_, border)| border).collect()
}

/// Where a scan of rows meets a border: at its first pixel, of a hole at the one left of the hole's first.
fn begin(border: &[Place], hole: bool) -> Place {
    let first = border.first().copied().unwrap_or_default();
    // The first pixels of a hole's border are those above it.
    if hole { (first.0 + 1, first.1.saturating_sub(1)) } else { first }
}

/// The number of each region, from 1, of pixels that are `inside`, or of those that are not; 0 elsewhere. Pixels inside touch by
/// corners too.
fn labelled(map: &ArrayView2<'_, bool>, inside: bool) -> Array2<usize> {
    let mut labels = Array2::zeros(map.dim());
    let mut count = 0;
    for (start, pixel) in map.indexed_iter() {
        if *pixel != inside || labels[start] != 0 {
            continue;
        }
        count += 1;
        labels[start] = count;
        let mut waiting = vec![start];
        while let Some(place) = waiting.pop() {
            for next in neighbours(place, map.dim(), inside) {
                if map[next] == inside && labels[next] == 0 {
                    labels[next] = count;
                    waiting.push(next);
                }
            }
        }
    }
    labels
}

/// The pixels beside one, and those at its corners.
fn neighbours((y, x): Place, (rows, columns): (usize, usize), corners: bool) -> impl Iterator<Item = Place> {
    let steps: [(i64, i64); 8] = [(-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)];
    let steps = steps.into_iter().take(if corners { 8 } else { 4 });
    let places = steps.map(move |(down, across)| (y as i64 + down, x as i64 + across));
    let within = move |(y, x): &(i64, i64)| (0..rows as i64).contains(y) && (0..columns as i64).contains(x);
    places.filter(within).map(|(y, x)| (y as usize, x as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(rows: &[&str]) -> Array2<bool> {
        Array2::from_shape_fn((rows.len(), rows[0].len()), |(y, x)| rows[y].as_bytes()[x] == b'#')
    }

    #[test]
    fn regions_and_holes_have_borders() {
        let found = contours(&map(&["####..", "#..#..", "#..#.#", "####..", "....#."]).view());
        // The pixel alone begins furthest down but for the hole; that at a corner is part of the ring.
        let firsts: Vec<_> = found.iter().map(|border| (border[0], border.len())).collect();
        assert_eq!(firsts, [((2, 5), 1), ((0, 1), 8), ((0, 0), 13)]);
    }

    #[test]
    fn what_lies_within_is_no_border() {
        let found = contours(&map(&["...", "###", "###", "###"]).view());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].len(), 8);
        assert!(contours(&map(&["..."]).view()).is_empty());
    }
}
