//! Goldens with quantized weights: held to the CPU's run of the values that the weights stand for, on inputs rounded as the
//! backend's kernels round them, and measured against the reference.

use std::collections::BTreeMap;

use ndarray::{ArrayD, Axis};

use super::run::Target;
use super::subject::{Request, Subject};
use super::{BackendSuite, Tolerance};
use crate::golden::Case;
use crate::{Hardware, Precision, Result, Value, Values};

/// The precisions to test, separated by commas; the backend's own where there are none.
const ASKED: &str = "WEFT_PRECISION";

const ROUNDED: &str = "kernels round what they multiply with quantized weights to 8 bits, as the run that they are held to does; what \
                       lies between two steps may become either";
const HALF: &str = "half precision has 11 bits of mantissa";
const REORDERED: &str = "sums are formed in another order";

/// How far outputs may be off those of the values that quantized weights stand for.
const fn within(relative: f64, reason: &'static str) -> [Tolerance; 5] {
    const fn of(precision: Precision, relative: f64, reason: &'static str) -> Tolerance {
        Tolerance { precision, relative, reason, asked: true }
    }
    [
        of(Precision::Int8, relative, reason),
        of(Precision::Int4, relative, reason),
        of(Precision::Int4Mixed, relative, reason),
        of(Precision::Int3, relative, reason),
        of(Precision::Int2, relative, reason),
    ]
}

/// The quantized precisions of a backend.
const fn tolerances(hardware: Hardware) -> &'static [Tolerance] {
    match hardware {
        Hardware::Cpu | Hardware::Auto => &const { within(0.05, ROUNDED) },
        Hardware::Cuda | Hardware::Metal | Hardware::Qnn => &const { within(0.02, HALF) },
        Hardware::Openvino | Hardware::Rocm | Hardware::Webgpu | Hardware::Webnn => {
            &const { within(0.001, REORDERED) }
        }
    }
}

/// The precisions that a backend is tested in: those that are asked for, or its own that need not be.
pub(super) fn precisions(backend: &BackendSuite) -> Vec<&'static Tolerance> {
    let asked = std::env::var(ASKED).unwrap_or_default();
    let own = backend.precisions.iter();
    if asked.is_empty() {
        return own.filter(|bound| !bound.asked).collect();
    }
    let all = own.chain(tolerances(backend.declared.hardware));
    all.filter(|bound| asked.split(',').any(|name| name == bound.precision.name())).collect()
}

/// The run of the values that a target's weights stand for; only the CPU's own kernels round what they multiply.
pub(super) fn exact<'a>(target: Target<'_>, folder: &'a str) -> Request<'a> {
    Request {
        checkpoint: folder,
        hardware: Some(Hardware::Cpu),
        precision: target.precision,
        threads: Some(1),
        dequantized: true,
        exact_activations: Some(!matches!(target.hardware, Hardware::Cpu | Hardware::Auto)),
        ..Request::default()
    }
}

/// What it gives of the outputs that the reference gave.
pub(super) fn outputs(subject: Subject, request: Request<'_>, case: &Case) -> Result<Values> {
    let mut outputs = (subject.load)(request)?.run(case.inputs.clone())?;
    outputs.retain(|name, _| case.outputs.contains_key(name));
    Ok(outputs)
}

/// How near outputs are to the reference's: the relative error of each, and of logits the Kullback-Leibler divergence and
/// how often the first choice is the same.
pub(super) fn accuracy(got: &Values, want: &Values) -> BTreeMap<String, f64> {
    let mut accuracy = BTreeMap::new();
    for (name, want) in want {
        let (Some(Value::F32(got)), Value::F32(want)) = (got.get(name), want) else { continue };
        if got.shape() != want.shape() || want.is_empty() {
            continue;
        }
        accuracy.insert(format!("{name} relative"), relative(got, want));
        if name.ends_with("logits") && want.ndim() > 1 {
            let (divergence, agreement) = choices(got, want);
            accuracy.insert(format!("{name} kl"), divergence);
            accuracy.insert(format!("{name} top1"), agreement);
        }
    }
    accuracy
}

/// The size of the difference over that of what is wanted.
fn relative(got: &ArrayD<f32>, want: &ArrayD<f32>) -> f64 {
    let size = want.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
    let off = got.iter().zip(want).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum::<f64>();
    (off / size.max(f64::MIN_POSITIVE)).sqrt()
}

/// The mean divergence of the probabilities along the last axis, and the share of equal first choices.
fn choices(got: &ArrayD<f32>, want: &ArrayD<f32>) -> (f64, f64) {
    let last = Axis(want.ndim() - 1);
    let (mut divergence, mut same, mut count) = (0.0, 0, 0);
    for (got, want) in got.lanes(last).into_iter().zip(want.lanes(last)) {
        let [q, p] = [got, want].map(|row| log_probabilities(row.iter().map(|x| f64::from(*x)).collect()));
        divergence += p.iter().zip(&q).map(|(p, q)| p.exp() * (p - q)).sum::<f64>();
        same += usize::from(first(&p) == first(&q));
        count += 1;
    }
    (divergence / f64::from(count.max(1)), same as f64 / f64::from(count.max(1)))
}

fn log_probabilities(row: Vec<f64>) -> Vec<f64> {
    let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = row.iter().map(|x| (x - most).exp()).sum();
    row.into_iter().map(|x| x - most - sum.ln()).collect()
}

fn first(row: &[f64]) -> Option<usize> {
    (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b]).then(b.cmp(&a)))
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn accuracy_is_error_divergence_and_agreement() {
        let want = array![[0.0_f32, 0.0], [0.0, 3.0_f32.ln()]].into_dyn();
        let got = array![[0.0, 3.0_f32.ln()], [0.0, 3.0_f32.ln()]].into_dyn();
        let of = |x: &ArrayD<f32>| Values::from([("logits".to_owned(), Value::F32(x.clone()))]);
        let accuracy = accuracy(&of(&got), &of(&want));
        let near =
            |name: &str, want: f64| assert!((accuracy[name] - want).abs() < 1e-6, "{name}: {accuracy:?}");
        near("logits relative", 1.0);
        // Half of ln(2/3) and of ln 2 in the first row, nothing in the second.
        near("logits kl", (0.5 * (2.0_f64 / 3.0).ln() + 0.5 * 2.0_f64.ln()) / 2.0);
        near("logits top1", 0.5);
    }

    #[test]
    fn each_backend_says_how_far_its_kernels_are_off() {
        for hardware in Hardware::ALL {
            let all = tolerances(hardware);
            assert!(all.iter().all(|bound| bound.precision.is_quantized() && !bound.reason.is_empty()));
            assert_eq!(all.len(), Precision::ALL.len() - 3);
        }
    }
}
