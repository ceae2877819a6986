//! The smallest rectangle around points, and polygons made larger.
//!
//! Reference: `cv2.minAreaRect`, `_get_mini_boxes` and `_unclip`.

/// A place, across and down.
type Point = [f32; 2];

/// Places no further apart than this are as far to the right.
const SAME: f32 = 1e-4;

/// A rectangle that may be turned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rectangle {
    corners: [[f64; 2]; 4],
    shorter: f64,
}

impl Rectangle {
    /// The smallest around points (`cv2.minAreaRect`): one of its edges lies on an edge of their convex hull.
    pub(super) fn around(points: &[Point]) -> Self {
        let hull = hull(points);
        let mut best: Option<(f64, Self)> = None;
        for (index, from) in hull.iter().enumerate() {
            let to = hull[(index + 1) % hull.len()];
            let along = [to[0] - from[0], to[1] - from[1]];
            let length = along[0].hypot(along[1]);
            // A single point has no direction.
            let unit = if length > 0.0 { along.map(|part| part / length) } else { [1.0, 0.0] };
            let across = [-unit[1], unit[0]];
            let reach = |axis: [f64; 2]| {
                let places = hull.iter().map(|point| point[0] * axis[0] + point[1] * axis[1]);
                places.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), place| {
                    (least.min(place), most.max(place))
                })
            };
            let ((left, right), (top, bottom)) = (reach(unit), reach(across));
            let area = (right - left) * (bottom - top);
            if best.is_none_or(|(least, _)| area < least) {
                let corner = |u: f64, v: f64| [u * unit[0] + v * across[0], u * unit[1] + v * across[1]];
                let corners =
                    [corner(left, top), corner(right, top), corner(right, bottom), corner(left, bottom)];
                best = Some((area, Self { corners, shorter: (right - left).min(bottom - top) }));
            }
        }
        best.map_or(Self { corners: [[0.0; 2]; 4], shorter: 0.0 }, |(_, rectangle)| rectangle)
    }

    /// The length of its shorter edge.
    pub(super) fn shorter(&self) -> f32 {
        self.shorter as f32
    }

    /// Its corners: upper left, upper right, lower right and lower left (`_get_mini_boxes`).
    pub(super) fn corners(&self) -> [Point; 4] {
        let mut corners = self.corners.map(|corner| corner.map(|place| place as f32));
        corners.sort_by(|a, b| a[0].total_cmp(&b[0]));
        // Of two that are as far to the right `cv2.boxPoints` names the lower one first.
        if (corners[2][0] - corners[1][0]).abs() < SAME && corners[1][1] < corners[2][1] {
            corners.swap(1, 2);
        }
        let [a, b, c, d] = corners;
        let (upper_left, lower_left) = if b[1] > a[1] { (a, b) } else { (b, a) };
        let (upper_right, lower_right) = if d[1] > c[1] { (c, d) } else { (d, c) };
        [upper_left, upper_right, lower_right, lower_left]
    }
}

/// The corners of the convex hull, none of them on a straight line between others.
fn hull(points: &[Point]) -> Vec<[f64; 2]> {
    let mut sorted: Vec<[f64; 2]> = points.iter().map(|point| point.map(f64::from)).collect();
    sorted.sort_by(|a, b| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])));
    sorted.dedup();
    if sorted.len() < 3 {
        return sorted;
    }
    let turn =
        |a: [f64; 2], b: [f64; 2], c: [f64; 2]| (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
    let half = |points: &mut dyn Iterator<Item = [f64; 2]>| {
        let mut chain: Vec<[f64; 2]> = vec![];
        for point in points {
            while chain.len() > 1 && turn(chain[chain.len() - 2], chain[chain.len() - 1], point) <= 0.0 {
                chain.pop();
            }
            chain.push(point);
        }
        chain.pop();
        chain
    };
    let mut all = half(&mut sorted.iter().copied());
    all.extend(half(&mut sorted.iter().rev().copied()));
    all
}

/// A quadrilateral whose edges are moved outwards by its area over its perimeter, times a ratio (`_unclip`).
pub(super) fn unclipped(corners: &[Point; 4], ratio: f32) -> Vec<Point> {
    let next = |index: usize| corners[(index + 1) % 4];
    let length = |edge: Point| f64::from(edge[0]).hypot(f64::from(edge[1]));
    let edges =
        [0, 1, 2, 3].map(|index| [next(index)[0] - corners[index][0], next(index)[1] - corners[index][1]]);
    let perimeter: f64 = edges.iter().map(|edge| length(*edge)).sum();
    let cross = |a: Point, b: Point| f64::from(a[0]) * f64::from(b[1]) - f64::from(a[1]) * f64::from(b[0]);
    let doubled: f64 = (0..4).map(|index| cross(corners[index], next(index))).sum();
    let distance = (doubled.abs() / 2.0 * f64::from(ratio) / perimeter) as f32;
    let directions = edges.map(|edge| edge.map(|part| part / (length(edge) as f32).max(1e-6)));
    let outwards = if doubled > 0.0 { 1.0 } else { -1.0 };
    let normals = directions.map(|[x, y]| [outwards * y, -outwards * x]);
    let moved = |index: usize, by: Point| [0, 1].map(|axis| corners[index][axis] + distance * by[axis]);
    let corner = |index: usize| {
        let before = (index + 3) % 4;
        let turn =
            directions[before][0] * directions[index][1] - directions[before][1] * directions[index][0];
        if turn.abs() < 1e-6 {
            return moved(index, [0, 1].map(|axis| 0.5 * (normals[before][axis] + normals[index][axis])));
        }
        let (from, to) = (moved(before, normals[before]), moved(index, normals[index]));
        let way = [to[0] - from[0], to[1] - from[1]];
        let share = (way[0] * directions[index][1] - way[1] * directions[index][0]) / turn;
        [0, 1].map(|axis| from[axis] + directions[before][axis] * share)
    };
    (0..4).map(corner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: &[Point], want: &[Point]) -> bool {
        got.iter().flatten().zip(want.iter().flatten()).all(|(got, want)| (got - want).abs() < 1e-4)
    }

    #[test]
    fn a_turned_rectangle_is_found() {
        // cv2.minAreaRect of [[0, 2], [4, 0], [5, 2], [1, 4], [2, 2]]
        let found = Rectangle::around(&[[0.0, 2.0], [4.0, 0.0], [5.0, 2.0], [1.0, 4.0], [2.0, 2.0]]);
        assert!(near(&found.corners(), &[[0.0, 2.0], [4.0, 0.0], [5.0, 2.0], [1.0, 4.0]]), "{found:?}");
        assert!((found.shorter() - 5.0_f32.sqrt()).abs() < 1e-5);
    }

    #[test]
    fn the_lower_of_two_corners_above_each_other_is_a_left_one() {
        let found = Rectangle::around(&[[0.0, 3.0], [8.0, 0.0], [16.0, 3.0], [8.0, 6.0]]);
        let corners = found.corners();
        assert!(corners[3][1] > corners[1][1] && corners[3][0] <= corners[1][0] + SAME, "{corners:?}");
    }

    #[test]
    fn a_point_and_a_line_have_no_area() {
        assert_eq!(Rectangle::around(&[[3.0, 4.0]]).corners(), [[3.0, 4.0]; 4]);
        assert_eq!(Rectangle::around(&[[3.0, 4.0], [9.0, 4.0]]).shorter(), 0.0);
        assert_eq!(Rectangle::around(&[]).shorter(), 0.0);
    }

    #[test]
    fn edges_are_moved_outwards() {
        let corners = [[0.0, 0.0], [8.0, 0.0], [8.0, 4.0], [0.0, 4.0]];
        // 32 * 1.5 / 24
        let want = [[-2.0, -2.0], [10.0, -2.0], [10.0, 6.0], [-2.0, 6.0]];
        assert!(near(&unclipped(&corners, 1.5), &want));
        let mut turned = corners;
        turned.reverse();
        let mut back = unclipped(&turned, 1.5);
        back.reverse();
        assert!(near(&back, &want));
    }
}
