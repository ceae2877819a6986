//! The factor `R` of `H = R · Rᵀ` that is upper triangular: Cholesky's, from the last row on.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayViewMut2, s};

/// Rows that are factored together; all else is products of matrices.
const BLOCK: usize = 32;

/// The factor of a symmetric matrix, of which the lower triangle is not read; none where it is not positive definite.
pub(super) fn upper_factor(mut matrix: Array2<f32>) -> Option<Array2<f32>> {
    let mut end = matrix.nrows();
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        within(matrix.slice_mut(s![start..end, start..end]))?;
        let block = matrix.slice(s![start..end, start..end]).to_owned();
        let mut above = matrix.slice_mut(s![..start, start..end]);
        for mut row in above.rows_mut() {
            for j in (0..end - start).rev() {
                let known = (j + 1..end - start).map(|k| row[k] * block[[j, k]]).sum::<f32>();
                row[j] = (row[j] - known) / block[[j, j]];
            }
        }
        let above = above.to_owned();
        general_mat_mul(-1.0, &above, &above.t(), 1.0, &mut matrix.slice_mut(s![..start, ..start]));
        end = start;
    }
    for (index, mut row) in matrix.rows_mut().into_iter().enumerate() {
        row.slice_mut(s![..index]).fill(0.0);
    }
    Some(matrix)
}

/// The factor of a block on the diagonal, in its place.
fn within(mut block: ArrayViewMut2<'_, f32>) -> Option<()> {
    for j in (0..block.nrows()).rev() {
        let pivot = block[[j, j]].sqrt();
        // Also of what is no number.
        if !pivot.is_normal() {
            return None;
        }
        block[[j, j]] = pivot;
        for i in 0..j {
            block[[i, j]] /= pivot;
        }
        for i in 0..j {
            let factor = block[[i, j]];
            for k in i..j {
                block[[i, k]] -= factor * block[[k, j]];
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_is_the_product_of_its_factor_and_its_transpose() {
        // R = [1 2; 0 3]: R Rᵀ = [5 6; 6 9].
        let factor = upper_factor(ndarray::array![[5.0, 6.0], [6.0, 9.0]]).unwrap();
        assert_eq!(factor, ndarray::array![[1.0, 2.0], [0.0, 3.0]]);
        // More rows than two blocks have, and no whole number of them.
        let x = Array2::from_shape_fn((300, 150), |(i, j)| ((i * 31 + j * 17) % 23) as f32 / 23.0 - 0.5);
        let matrix = x.t().dot(&x) + Array2::<f32>::eye(150);
        let factor = upper_factor(matrix.clone()).unwrap();
        let off = (factor.dot(&factor.t()) - &matrix).mapv(f32::abs);
        assert!(off.iter().all(|off| *off < 1e-4), "{:?}", off.iter().copied().fold(0.0, f32::max));
    }

    #[test]
    fn what_is_not_positive_definite_has_none() {
        assert_eq!(upper_factor(ndarray::array![[1.0, 2.0], [2.0, 1.0]]), None);
        assert_eq!(upper_factor(ndarray::array![[f32::NAN, 0.0], [0.0, 1.0]]), None);
    }
}
