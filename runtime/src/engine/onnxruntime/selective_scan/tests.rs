//! Against its definition, number by number.

use super::positions::positions;
use super::*;
use crate::engine::onnxruntime::lanes::tests::drawn;

/// Results and states by the definition, in double precision.
fn defined(given: &Given<'_>) -> (Vec<f64>, Vec<f64>) {
    let [batch, positions, width, states] = given.lengths;
    let mut state: Vec<f64> = given.state.iter().map(|x| f64::from(*x)).collect();
    let mut result = vec![];
    for row in 0..batch * positions {
        for channel in 0..width {
            let at = row * width + channel;
            let (u, delta) = (f64::from(given.u[at]), f64::from(given.delta[at]).exp().ln_1p());
            let of_group = (row * given.groups + channel / (width / given.groups)) * states;
            let mut sum = f64::from(given.d[channel]) * u;
            for index in 0..states {
                let state = &mut state[(row / positions * width + channel) * states + index];
                let kept = (delta * f64::from(given.a[channel * states + index])).exp();
                *state = kept * *state + delta * u * f64::from(given.b[of_group + index]);
                sum += *state * f64::from(given.c[of_group + index]);
            }
            let gate = given.z.map_or(1.0, |z| {
                let z = f64::from(z[at]);
                z / (1.0 + (-z).exp())
            });
            result.push(sum * gate);
        }
    }
    (result, state)
}

fn departure(found: &[f32], wanted: &[f64]) -> f64 {
    found.iter().zip(wanted).map(|(found, wanted)| (f64::from(*found) - wanted).abs()).fold(0.0, f64::max)
}

#[test]
fn it_is_what_its_definition_says() {
    for (index, (width, groups, states)) in
        [(40, 1, 16), (6, 2, 19), (3, 3, 1), (34, 2, 32), (1, 1, 5)].into_iter().enumerate()
    {
        for (batch, length) in [(1, 1), (2, 7)] {
            let (rows, seed) = (batch * length, index as u32 * 10);
            let positive = |count, seed| drawn(count, seed).into_iter().map(f32::abs).collect::<Vec<_>>();
            let a: Vec<_> = positive(width * states, seed + 3).into_iter().map(|x| -4.0 * x).collect();
            let gate: Vec<_> = drawn(rows * width, seed + 8).into_iter().map(|x| 9.0 * x).collect();
            let given = Given {
                groups,
                lengths: [batch, length, width, states],
                u: &drawn(rows * width, seed + 1),
                delta: &drawn(rows * width, seed + 2),
                a: &a,
                b: &drawn(rows * groups * states, seed + 4),
                c: &drawn(rows * groups * states, seed + 5),
                d: &drawn(width, seed + 6),
                state: &drawn(batch * width * states, seed + 7),
                z: (index % 2 == 0).then_some(&gate),
            };
            given.check().unwrap();
            let (wanted, wanted_state) = defined(&given);
            for kernel in [fastest(), positions::<false>, positions::<true>] {
                let (mut result, mut left) = (vec![9.0; wanted.len()], vec![9.0; given.state.len()]);
                let task = Task { positions: kernel, ..Task::new(&given, &mut result, &mut left) };
                (0..task.blocks()).for_each(|block| task.compute(block));
                drop(task);
                let place = format!("case {index} of {batch} texts");
                // Gates multiply results, and differences with them.
                let most = wanted.iter().fold(1.0_f64, |most, x| most.max(x.abs()));
                assert!(departure(&result, &wanted) < 2e-6 * most, "{place}");
                assert!(departure(&left, &wanted_state) < 2e-6, "{place}");
            }
        }
    }
}

#[test]
fn lengths_that_do_not_fit_are_refused() {
    let (two, four) = ([0.0; 2], [0.0; 4]);
    let given = Given {
        groups: 1,
        lengths: [1, 1, 2, 2],
        u: &two,
        delta: &two,
        a: &four,
        b: &two,
        c: &two,
        d: &two,
        state: &four,
        z: None,
    };
    assert!(given.check().is_ok());
    assert!(Given { a: &two, ..given }.check().is_err());
    assert!(Given { z: Some(&four), ..given }.check().is_err());
    assert!(Given { b: &four, ..given }.check().is_err());
    assert!(Given { groups: 2, b: &four, c: &four, ..given }.check().is_ok());
    assert!(Given { groups: 3, ..given }.check().is_err());
    assert!(Given { lengths: [1, 1, 2, 0], a: &[], b: &[], c: &[], state: &[], ..given }.check().is_err());
}
