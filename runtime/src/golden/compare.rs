//! Two tensors that should be equal: how far they are apart, and whether that is close enough.

use serde::{Deserialize, Serialize};

use crate::{Value, Values};

/// How one output compares with the reference's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputReport {
    /// The output, by the reference's name.
    pub name: String,
    /// The reference's shape.
    pub shape: Vec<usize>,
    /// The largest difference; none where there was nothing to subtract.
    pub max_abs: Option<f64>,
    /// The largest difference relative to `max(1, max|want|)`, which the tolerance applies to.
    pub max_rel: Option<f64>,
    /// The largest relative difference allowed.
    pub tolerance: f64,
    /// Whether it is close enough.
    pub passed: bool,
    /// What is wrong besides the difference.
    pub problem: Option<String>,
}

impl OutputReport {
    /// Of what holds or does not, with no numbers to compare.
    pub(crate) fn claim(name: String, problem: Option<String>) -> Self {
        let passed = problem.is_none();
        Self { name, shape: vec![], max_abs: None, max_rel: None, tolerance: 0.0, passed, problem }
    }
}

/// Compares every output that the reference gave.
pub fn compare(got: &Values, want: &Values, tolerance: f64) -> Vec<OutputReport> {
    want.iter().map(|(name, want)| one(name, got.get(name), want, tolerance)).collect()
}

fn one(name: &str, got: Option<&Value>, want: &Value, tolerance: f64) -> OutputReport {
    let blank = OutputReport {
        name: name.to_owned(),
        shape: want.shape().to_vec(),
        max_abs: None,
        max_rel: None,
        tolerance,
        passed: false,
        problem: None,
    };
    let problem = |problem: String| OutputReport { problem: Some(problem), ..blank.clone() };
    let Some(got) = got else {
        return problem("the model has no such output".to_owned());
    };
    if got.shape() != want.shape() {
        return problem(format!("shape {:?}, the reference has {:?}", got.shape(), want.shape()));
    }
    let (got, want) = (numbers(got), numbers(want));
    let scale = want.iter().fold(1.0, |most: f64, x| if x.is_finite() { most.max(x.abs()) } else { most });
    let mut most = 0.0;
    for (index, (g, w)) in got.iter().zip(&want).enumerate() {
        let same = g == w || (g.is_nan() && w.is_nan());
        if !same && !(g - w).is_finite() {
            return problem(format!("element {index} is {g}, the reference has {w}"));
        }
        most = if same { most } else { f64::max(most, (g - w).abs()) };
    }
    let relative = most / scale;
    OutputReport { max_abs: Some(most), max_rel: Some(relative), passed: relative <= tolerance, ..blank }
}

fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::F32(a) => a.iter().map(|&x| f64::from(x)).collect(),
        Value::I64(a) => a.iter().map(|&x| x as f64).collect(),
        Value::Bool(a) => a.iter().map(|&x| f64::from(u8::from(x))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use ndarray::arr1;

    use super::*;

    fn values(numbers: &[f32]) -> Values {
        Values::from([("logits".to_owned(), Value::F32(arr1(numbers).into_dyn()))])
    }

    #[test]
    fn a_wrong_number_a_missing_output_and_a_wrong_shape_fail() {
        let want = values(&[1.0, -20.0]);
        assert!(compare(&values(&[1.0, -20.001]), &want, 1e-4)[0].passed);
        assert!(!compare(&values(&[1.0, -20.003]), &want, 1e-4)[0].passed);
        assert!(!compare(&values(&[f32::NAN, -20.0]), &want, 1e-4)[0].passed);
        assert!(!compare(&values(&[f32::INFINITY, -20.0]), &want, 1e-4)[0].passed);
        assert!(!compare(&values(&[1.0]), &want, 1e-4)[0].passed);
        assert!(!compare(&Values::new(), &want, 1e-4)[0].passed);
    }

    #[test]
    fn infinities_that_agree_are_equal() {
        let want = values(&[f32::NEG_INFINITY, 2.0]);
        let report = &compare(&values(&[f32::NEG_INFINITY, 2.0]), &want, 1e-4)[0];
        assert!(report.passed);
        assert_eq!(report.max_abs, Some(0.0));
    }
}
