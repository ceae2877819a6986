//! Similarity of embeddings (`similarity_fn_name`).

use ndarray::{Array1, Array2, ArrayView1, Axis, Zip};
use serde_json::Value as Json;

use crate::hub::Checkpoint;
use crate::{Error, Result};

/// A measure of closeness; larger is closer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Similarity {
    /// The cosine of the angle.
    #[default]
    Cosine,
    /// The dot product.
    Dot,
    /// The distance, negated.
    Euclidean,
    /// The sum of the differences, negated.
    Manhattan,
}

impl Similarity {
    pub(super) fn read(checkpoint: &Checkpoint, name: &Json) -> Result<Self> {
        match name.as_str() {
            None | Some("cosine") => Ok(Self::Cosine),
            Some("dot") => Ok(Self::Dot),
            Some("euclidean") => Ok(Self::Euclidean),
            Some("manhattan") => Ok(Self::Manhattan),
            Some(other) => Err(Error::config(
                checkpoint.dir().join("config_sentence_transformers.json"),
                format!("`similarity_fn_name` is `{other}`"),
                "one of cosine, dot, euclidean, manhattan",
            )),
        }
    }

    /// Of each vector of `a`, `[n, dimension]`, with each of `b`, `[m, dimension]`: `[n, m]`.
    pub fn between(self, a: &Array2<f32>, b: &Array2<f32>) -> Array2<f32> {
        let pairs = |of: fn(&ArrayView1<'_, f32>, &ArrayView1<'_, f32>) -> f32| {
            Array2::from_shape_fn((a.nrows(), b.nrows()), |(i, j)| of(&a.row(i), &b.row(j)))
        };
        match self {
            Self::Cosine => rows_normalized(a).dot(&rows_normalized(b).t()),
            Self::Dot => a.dot(&b.t()),
            Self::Euclidean => pairs(|x, y| -sum_of(x, y, |d| d * d).sqrt()),
            Self::Manhattan => pairs(|x, y| -sum_of(x, y, f32::abs)),
        }
    }
}

fn sum_of(x: &ArrayView1<'_, f32>, y: &ArrayView1<'_, f32>, of: fn(f32) -> f32) -> f32 {
    Zip::from(x).and(y).fold(0.0, |sum, x, y| sum + of(x - y))
}

fn rows_normalized(vectors: &Array2<f32>) -> Array2<f32> {
    let mut vectors = vectors.clone();
    for mut row in vectors.axis_iter_mut(Axis(0)) {
        let length = length(&row.view());
        row /= length;
    }
    vectors
}

/// The vector brought to length 1; zeros stay zeros.
pub(super) fn normalized(vector: Array1<f32>) -> Array1<f32> {
    let length = length(&vector.view());
    vector / length
}

fn length(vector: &ArrayView1<'_, f32>) -> f32 {
    vector.dot(vector).sqrt().max(1e-12)
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn each_measure() {
        let a = array![[3.0f32, 4.0]];
        let b = array![[6.0f32, 8.0], [-4.0, 3.0]];
        let cosine = Similarity::Cosine.between(&a, &b);
        assert!((cosine[[0, 0]] - 1.0).abs() < 1e-6 && cosine[[0, 1]].abs() < 1e-6);
        assert_eq!(Similarity::Dot.between(&a, &b), array![[50.0, 0.0]]);
        assert_eq!(Similarity::Euclidean.between(&a, &b)[[0, 0]], -5.0);
        assert_eq!(Similarity::Manhattan.between(&a, &b), array![[-7.0, -8.0]]);
        assert_eq!(normalized(array![0.0, 0.0]), array![0.0, 0.0]);
    }
}
