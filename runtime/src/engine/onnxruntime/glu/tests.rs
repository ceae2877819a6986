use super::super::lanes::tests::drawn;
use super::*;
use crate::graph::Activation;

/// In double precision.
fn wanted(act: Activation, gate: f32, factor: f32) -> f64 {
    let (gate, factor) = (f64::from(gate), f64::from(factor));
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let activated = match act {
        Activation::Silu => gate * sigmoid(gate),
        Activation::QuickGelu => gate * sigmoid(1.702 * gate),
        _ => f64::from(gelu::<true>(gate as f32)),
    };
    activated * factor
}

/// As lowering has them.
fn unit(act: Activation, factors_first: bool) -> Glu {
    let act = match act {
        Activation::Silu => Act::Sigmoid(1.0),
        Activation::QuickGelu => Act::Sigmoid(1.702),
        _ => Act::Gelu,
    };
    Glu { act, factors_first }
}

const ACTS: [Activation; 3] = [Activation::Silu, Activation::QuickGelu, Activation::Gelu];

fn numbers(count: usize, seed: u32) -> Vec<f32> {
    drawn(count, seed).iter().map(|x| x * 8.0).collect()
}

/// As exact as single precision is near the largest of what is drawn.
fn close(found: f32, wanted: f64) -> bool {
    (f64::from(found) - wanted).abs() <= 1e-6 * wanted.abs() + 1e-7
}

#[test]
fn gates_and_factors_are_multiplied_whatever_block_they_are_in() {
    let (gates, factors) = (numbers(1003, 1), numbers(1003, 2));
    for act in ACTS {
        let given = Given::apart(unit(act, false), &gates, &factors);
        let mut found = vec![0.0; 1003];
        found.chunks_mut(100).enumerate().for_each(|(block, into)| given.compute(block * 100, into));
        for (at, found) in found.iter().enumerate() {
            let wanted = wanted(act, gates[at], factors[at]);
            assert!(close(*found, wanted), "{act:?} of {}: {found} for {wanted}", gates[at]);
        }
    }
}

#[test]
fn halves_are_read_where_they_lie() {
    let (rows, width) = (5, 37);
    let x = numbers(rows * 2 * width, 3);
    for (act, factors_first) in ACTS.into_iter().flat_map(|act| [(act, false), (act, true)]) {
        let given = Given::halves(unit(act, factors_first), &x, width);
        let mut found = vec![0.0; rows * width];
        found.chunks_mut(50).enumerate().for_each(|(block, into)| given.compute(block * 50, into));
        for (at, found) in found.iter().enumerate() {
            let first = at / width * 2 * width + at % width;
            let (gate, factor) = (x[first], x[first + width]);
            let (gate, factor) = if factors_first { (factor, gate) } else { (gate, factor) };
            assert!(close(*found, wanted(act, gate, factor)), "{act:?} {factors_first} {at}");
        }
    }
}

#[test]
fn both_roundings_agree_and_large_gates_are_themselves_or_nothing() {
    let gates = [-1e20, -200.0, -0.0, 0.0, 200.0, 1e20, 3e-39];
    for act in ACTS {
        let of = unit(act, false);
        let mut found = [[0.0; 7]; 2];
        gated::<true>(of, &gates, &[1.0; 7], &mut found[0]);
        gated::<false>(of, &gates, &[1.0; 7], &mut found[1]);
        for found in found {
            assert_eq!(found[2..6], [0.0, 0.0, 200.0, 1e20], "{act:?}");
            assert!(found[0].abs() < 1e-15 && found[1].abs() < 1e-30, "{act:?}: {found:?}");
        }
    }
}
