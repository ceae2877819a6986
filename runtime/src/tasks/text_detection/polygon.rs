//! The mean of a map within a polygon.
//!
//! Reference: `_get_box_score`, with `cv2.fillPoly` and `cv2.mean`.

use ndarray::{Array2, ArrayView2};

/// The mean of the numbers within a quadrilateral whose corners are cut off to whole pixels.
pub(super) fn mean_within(map: &ArrayView2<'_, f32>, corners: &[[f32; 2]; 4]) -> f32 {
    let (rows, columns) = map.dim();
    if rows == 0 || columns == 0 {
        return 0.0;
    }
    let reach = |axis: usize, length: usize| {
        let places = corners.map(|corner| corner[axis]);
        let (least, most) = places.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(least, most), place| {
            (least.min(*place), most.max(*place))
        });
        let within = |place: f32| (place as i64).clamp(0, length as i64 - 1);
        (within(least.floor()), within(most.ceil()))
    };
    let ((left, right), (top, bottom)) = (reach(0, columns), reach(1, rows));
    let placed = corners.map(|[x, y]| [(x - left as f32) as i64, (y - top as f32) as i64]);
    let mask = filled(&placed, ((bottom - top + 1) as usize, (right - left + 1) as usize));
    let (mut sum, mut count) = (0.0_f64, 0_u32);
    for ((y, x), inside) in mask.indexed_iter() {
        if *inside {
            sum += f64::from(map[(top as usize + y, left as usize + x)]);
            count += 1;
        }
    }
    (sum / f64::from(count.max(1))) as f32
}

/// The pixels of a polygon, its edges among them.
fn filled(corners: &[[i64; 2]], size: (usize, usize)) -> Array2<bool> {
    let mut mask = Array2::from_elem(size, false);
    let mut put = |x: i64, y: i64| {
        let place = usize::try_from(y).ok().zip(usize::try_from(x).ok());
        if let Some(pixel) = place.and_then(|place| mask.get_mut(place)) {
            *pixel = true;
        }
    };
    let edges: Vec<_> =
        (0..corners.len()).map(|index| (corners[index], corners[(index + 1) % corners.len()])).collect();
    for (from, to) in &edges {
        line(*from, *to, &mut put);
    }
    for y in 0..size.0 as i64 {
        // Where edges cross the middle of a row, in fractions of 65536 as there.
        let mut crossed: Vec<i64> = vec![];
        for (from, to) in &edges {
            let (upper, lower) = if from[1] < to[1] { (from, to) } else { (to, from) };
            if upper[1] <= y && y < lower[1] {
                let slope = ((lower[0] - upper[0]) << 16) / (lower[1] - upper[1]);
                crossed.push((upper[0] << 16) + (y - upper[1]) * slope);
            }
        }
        crossed.sort_unstable();
        for pair in crossed.chunks_exact(2) {
            for x in (pair[0] + 0xffff) >> 16..=pair[1] >> 16 {
                put(x, y);
            }
        }
    }
    mask
}

/// The pixels of a line (Bresenham), from left to right as `cv2.LineIterator` goes.
fn line(from: [i64; 2], to: [i64; 2], put: &mut dyn FnMut(i64, i64)) {
    let (from, to) = if to[0] < from[0] { (to, from) } else { (from, to) };
    let way = [to[0] - from[0], to[1] - from[1]];
    let main = usize::from(way[1].abs() > way[0].abs());
    let (long, short) = (way[main].abs(), way[1 - main].abs());
    let mut error = long - 2 * short;
    let mut place = from;
    for _ in 0..=long {
        put(place[0], place[1]);
        if error < 0 {
            place[1 - main] += way[1 - main].signum();
            error += 2 * long;
        }
        error -= 2 * short;
        place[main] += way[main].signum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_polygon_has_its_edges() {
        let drawn = |corners: &[[i64; 2]], size: (usize, usize)| {
            let mask = filled(corners, size);
            let row = |row: ndarray::ArrayView1<'_, bool>| {
                row.iter().map(|inside| if *inside { '#' } else { '.' }).collect()
            };
            mask.outer_iter().map(row).collect::<Vec<String>>()
        };
        assert_eq!(drawn(&[[1, 0], [3, 0], [3, 1], [1, 1]], (3, 5)), [".###.", ".###.", "....."]);
        let turned = drawn(&[[0, 2], [4, 0], [5, 2], [1, 4]], (5, 6));
        // cv2.fillPoly
        assert_eq!(turned, ["....#.", "..###.", "######", "#####.", ".##..."]);
    }

    #[test]
    fn the_mean_is_of_what_lies_within() {
        let map = Array2::from_shape_fn((4, 6), |(y, x)| (6 * y + x) as f32);
        let mean = mean_within(&map.view(), &[[1.0, 1.0], [3.0, 1.0], [3.0, 2.0], [1.0, 2.0]]);
        assert_eq!(mean, 11.0);
        let beyond = mean_within(&map.view(), &[[-4.0, -4.0], [9.0, -4.0], [9.0, 9.0], [-4.0, 9.0]]);
        assert_eq!(beyond, 11.5);
    }
}
