//! Against its definition, number by number.

use super::positions::positions;
use super::*;
use crate::engine::onnxruntime::lanes::tests::drawn;

/// Results and states by the definition, in double precision.
fn defined(given: &Given<'_>) -> (Vec<f64>, Vec<f64>) {
    let [batch, positions, key, value] = given.lengths;
    let LinearAttention { heads, query_heads, scale } = given.of;
    let mut state: Vec<f64> = given.state.iter().map(|x| f64::from(*x)).collect();
    let mut result = vec![0.0; batch * positions * heads * value];
    for (b, t, h) in (0..batch)
        .flat_map(|b| (0..positions).map(move |t| (b, t)))
        .flat_map(|(b, t)| (0..heads).map(move |h| (b, t, h)))
    {
        let at = (b * positions + t) * heads + h;
        let q = &given.q[((b * positions + t) * query_heads + h / (heads / query_heads)) * key..][..key];
        let kept = |i: usize| match given.decay {
            Some(decay) if decay.len() == batch * positions * heads * key => {
                f64::from(decay[at * key + i]).exp()
            }
            Some(decay) => f64::from(decay[at]).exp(),
            None => 1.0,
        };
        let state = &mut state[(b * heads + h) * key * value..][..key * value];
        (0..key * value).for_each(|i| state[i] *= kept(i / value));
        for j in 0..value {
            let k = |i: usize| f64::from(given.k[at * key + i]);
            let mut added = f64::from(given.v[at * value + j]);
            if let Some(beta) = given.beta {
                added = f64::from(beta[at])
                    * (added - (0..key).map(|i| state[i * value + j] * k(i)).sum::<f64>());
            }
            (0..key).for_each(|i| state[i * value + j] += k(i) * added);
            let read: f64 = (0..key).map(|i| state[i * value + j] * f64::from(q[i])).sum();
            result[at * value + j] = f64::from(scale) * read;
        }
    }
    (result, state)
}

fn departure(found: &[f32], wanted: &[f64]) -> f64 {
    found.iter().zip(wanted).map(|(found, wanted)| (f64::from(*found) - wanted).abs()).fold(0.0, f64::max)
}

#[test]
fn it_is_what_its_definition_says() {
    // Heads, of queries, keys, values, decays for each head or key, the delta rule.
    let cases = [
        (40, 1, 16, 1, 2, false),
        (3, 3, 19, 1, 2, false),
        (3, 1, 5, 1, 1, false),
        (2, 2, 1, 1, 1, false),
        (4, 2, 3, 8, 1, false),
        (4, 2, 3, 8, 2, true),
        (2, 1, 64, 96, 1, true),
        (2, 2, 4, 5, 0, true),
        (2, 2, 4, 5, 0, false),
        (17, 17, 4, 1, 1, true),
    ];
    for (index, (heads, query_heads, key, value, decays, delta)) in cases.into_iter().enumerate() {
        for (batch, length) in [(1, 1), (2, 7)] {
            let (rows, seed) = (batch * length, index as u32 * 10);
            let q = drawn(rows * query_heads * key, seed + 1);
            let k = drawn(rows * heads * key, seed + 2);
            let v = drawn(rows * heads * value, seed + 3);
            let state = drawn(batch * heads * key * value, seed + 4);
            let mut decay = drawn(rows * heads * if decays == 2 { key } else { 1 }, seed + 5);
            decay.iter_mut().for_each(|x| *x = -3.0 * x.abs());
            let beta = drawn(rows * heads, seed + 6);
            let of = LinearAttention { query_heads, heads, scale: 0.7 };
            let given = Given {
                of,
                lengths: [batch, length, key, value],
                q: &q,
                k: &k,
                v: &v,
                state: &state,
                decay: (decays > 0).then_some(&decay),
                beta: delta.then_some(&beta),
            };
            given.check().unwrap();
            let (wanted, wanted_state) = defined(&given);
            for kernel in [fastest(), positions::<false>, positions::<true>] {
                let mut result = vec![9.0; wanted.len()];
                let mut states = vec![9.0; state.len()];
                let task = Task { positions: kernel, ..Task::new(&given, &mut result, &mut states) };
                (0..task.blocks()).for_each(|block| task.compute(block));
                drop(task);
                let places = format!("case {index} of {batch} texts");
                // Keys of some length in the delta rule grow the state, and differences with it.
                let most = wanted.iter().chain(&wanted_state).fold(1.0_f64, |most, x| most.max(x.abs()));
                assert!(departure(&result, &wanted) < 2e-6 * most, "{places}");
                assert!(departure(&states, &wanted_state) < 2e-6 * most, "{places}");
            }
        }
    }
}

#[test]
fn lengths_that_do_not_fit_are_refused() {
    let of = LinearAttention { query_heads: 1, heads: 2, scale: 1.0 };
    let (two, four) = ([0.0; 2], [0.0; 4]);
    let given = Given {
        of,
        lengths: [1, 1, 2, 1],
        q: &two,
        k: &four,
        v: &two,
        state: &four,
        decay: Some(&four),
        beta: None,
    };
    assert!(given.check().is_ok() && given.by_key());
    assert!(Given { decay: Some(&[0.0; 3]), ..given }.check().is_err());
    assert!(Given { q: &four, ..given }.check().is_err());
    let nothing = Given { lengths: [1, 1, 0, 1], q: &[], k: &[], state: &[], decay: None, ..given };
    assert!(nothing.check().is_err());
}
