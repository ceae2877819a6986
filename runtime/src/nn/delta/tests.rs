//! The gated delta rule over two positions, by hand.

use super::*;
use crate::nn::testing::{expect, refusal};

const RULE: DeltaRule = DeltaRule { heads: 2, key_heads: 1, key: 2, value: 1 };

/// Two positions; the second head of values has twice the first one's values.
fn attended(g: &mut Graph, keeps_state: bool) -> Result<Tensor> {
    let q = g.constant(&[1, 2, 2], vec![3.0, 4.0, 5.0, 0.0])?;
    let k = g.constant(&[1, 2, 2], vec![3.0, 4.0, 0.0, 2.0])?;
    let v = g.constant(&[1, 2, 2], vec![10.0, 20.0, 6.0, 12.0])?;
    let decay = g.constant(&[1, 2, 2], vec![-7.0, -7.0, 0.5_f32.ln(), 0.5_f32.ln()])?;
    let beta = g.constant(&[1, 2, 2], vec![0.5, 0.5, 1.0, 1.0])?;
    let state = g.constant(&[1, 2, 2, 1], vec![0.0; 4])?;
    let x = DeltaInputs { q: &q, k: &k, v: &v, decay: &decay, beta: &beta };
    let (y, state) = RULE.attend(g, &x, &state)?;
    Ok(if keeps_state { state } else { y })
}

#[test]
fn states_are_corrected_for_keys_of_length_1() {
    // The key (0.6, 0.8) gets 0.5·10: (3, 4), of which the same query reads 5. Halved, (1.5, 2), the key (0, 1) finds 2 of 6 and
    // adds 4: (1.5, 6), of which the query (1, 0) reads 1.5. Results are divided by √2.
    let root = 2.0_f32.sqrt();
    let want = [5.0 / root, 10.0 / root, 1.5 / root, 3.0 / root];
    expect(&[], |g| attended(g, false), &[1, 2, 2], &want);
    expect(&[], |g| attended(g, true), &[1, 2, 2, 1], &[1.5, 6.0, 3.0, 12.0]);
}

#[test]
fn decays_are_by_head_or_by_key() {
    // softplus(0) is ln 2; A is -2 and -1.
    let ln2 = 2.0_f32.ln();
    let of = |width: usize| {
        move |g: &mut Graph| {
            let a = g.constant(&[1, 1, width], vec![1.0; width])?;
            RULE.decay(g, &Scope::root(), &a, &[2])
        }
    };
    let a_log: (&str, &[f32]) = ("A_log", &[ln2, 0.0]);
    expect(&[("dt_bias", &[-1.0, -1.0]), a_log], of(2), &[1, 1, 2], &[-2.0 * ln2, -ln2]);
    let want = [-2.0 * ln2, -2.0 * ln2, -ln2, -(1.0 + 1.0_f32.exp()).ln()];
    expect(&[("dt_bias", &[-1.0, -1.0, -1.0, 0.0]), a_log], of(4), &[1, 1, 4], &want);
}

#[test]
fn norms_of_heads_are_gated() {
    let rule = DeltaRule { value: 2, ..RULE };
    let build = |g: &mut Graph| {
        let x = g.constant(&[1, 1, 4], vec![3.0, 3.0, 0.0, 8.0])?;
        let gate = g.constant(&[1, 1, 4], vec![-1.0, 2.0, 3.0, 0.5])?;
        rule.gated_norm(g, &Scope::root(), [&x, &gate], Activation::Relu, 0.0)
    };
    let root = 2.0_f32.sqrt();
    expect(&[("weight", &[1.0, 10.0])], build, &[1, 1, 4], &[0.0, 20.0, 0.0, 5.0 * root]);
}

#[test]
fn heads_are_repeated_one_by_one() {
    let repeated = |from: usize, to: usize| {
        move |g: &mut Graph| {
            let x = g.constant(&[1, 1, 4], vec![1.0, 2.0, 3.0, 4.0])?;
            repeat_heads(g, &x, from, to)
        }
    };
    expect(&[], repeated(2, 4), &[1, 1, 8], &[1.0, 2.0, 1.0, 2.0, 3.0, 4.0, 3.0, 4.0]);
    insta::assert_snapshot!(refusal(repeated(2, 3)), @"repeat_heads in the root: 2 heads are not shared by 3");
}

#[test]
fn decays_have_a_lower_bound() {
    // Heads of one key, with the rates 1 and 2: σ(0) is a half, and σ(2·ln 3) is 0.9.
    let rule = DeltaRule { heads: 2, key_heads: 2, key: 1, value: 1 };
    let weights: [(&str, &[f32]); 2] = [("dt_bias", &[1.0, 0.0]), ("A_log", &[0.0, 2.0_f32.ln()])];
    let build = |g: &mut Graph| {
        let a = g.constant(&[1, 1, 2], vec![-1.0, 3.0_f32.ln()])?;
        rule.bounded_decay(g, &Scope::root(), &a, -5.0)
    };
    expect(&weights, build, &[1, 1, 2], &[-2.5, -4.5]);
}
