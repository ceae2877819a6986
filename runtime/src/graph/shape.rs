//! Rules about shapes that several operations share.

use super::{Dim, Shape};

/// The shape of two operands together, by NumPy's rules; `None` where they do not go together.
pub(crate) fn broadcast(a: &[Dim], b: &[Dim]) -> Option<Shape> {
    let rank = a.len().max(b.len());
    let at = |shape: &[Dim], axis: usize| match (axis + shape.len()).checked_sub(rank) {
        Some(axis) => shape[axis].clone(),
        None => Dim::Fixed(1),
    };
    (0..rank)
        .map(|axis| match (at(a, axis), at(b, axis)) {
            (a, b) if a == b => Some(a),
            (Dim::Fixed(1), b) => Some(b),
            (a, Dim::Fixed(1)) => Some(a),
            _ => None,
        })
        .collect()
}

/// The number of elements.
pub(crate) fn product(shape: &[Dim]) -> Dim {
    shape.iter().cloned().fold(Dim::Fixed(1), |product, dim| product * dim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims;
    use crate::graph::dims::{BATCH, SEQUENCE};

    #[test]
    fn broadcasting_follows_numpy() {
        let together = |a: Shape, b: Shape| broadcast(&a, &b);
        let scores = dims![BATCH, 4, SEQUENCE, SEQUENCE];
        assert_eq!(together(dims![BATCH, 1, 1, SEQUENCE], scores.clone()), Some(scores));
        assert_eq!(together(dims![], dims![3]), Some(dims![3]));
        assert_eq!(together(dims![BATCH], dims![SEQUENCE]), None);
        assert_eq!(together(dims![2], dims![3]), None);
    }
}
