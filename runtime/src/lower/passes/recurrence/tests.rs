//! Chunks give what ONNX Runtime's kernels give, whatever the rule, over more positions than a chunk has.

use super::*;
use crate::graph::{Scope, SelectiveScan};
use crate::nn::testing::{evaluate, expect};

/// Numbers between -1 and 1 that follow no pattern.
fn drawn(g: &mut Graph, shape: &[usize], seed: usize) -> Tensor {
    let count = shape.iter().product();
    let numbers = (0..count).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f32 / 1001.5 - 1.0);
    g.constant(shape, numbers.collect()).unwrap()
}

struct Setting {
    decay: Option<usize>,
    delta: bool,
    query_heads: usize,
    length: usize,
    state: bool,
}

/// Two rows of 4 heads, 3 keys and 2 values each.
fn attended(g: &mut Graph, it: &Setting) -> Result<Tensor> {
    let (batch, length, heads, key, value) = (2, it.length, 4, 3, 2);
    let q = drawn(g, &[batch, length, it.query_heads * key], 1);
    let k = drawn(g, &[batch, length, heads * key], 2);
    let v = drawn(g, &[batch, length, heads * value], 3);
    let state = drawn(g, &[batch, heads, key, value], 4);
    let decay = it.decay.map(|width| {
        let x = drawn(g, &[batch, length, width], 5);
        let x = g.unary(Unary::Abs, &x);
        g.unary(Unary::Neg, &x)
    });
    let beta = it.delta.then(|| {
        let x = drawn(g, &[batch, length, heads], 6);
        g.unary(Unary::Sigmoid, &x)
    });
    let x = LinearAttention {
        q: &q,
        k: &k,
        v: &v,
        state: &state,
        decay: decay.as_ref(),
        beta: beta.as_ref(),
        heads,
        query_heads: it.query_heads,
        scale: 0.5,
    };
    let (mixed, state) = g.linear_attention(&x)?;
    Ok(if it.state { state } else { mixed })
}

#[test]
fn chunks_give_what_kernels_give() {
    for (decay, delta) in [None, Some(4), Some(12)].into_iter().flat_map(|d| [(d, false), (d, true)]) {
        for (length, query_heads, state) in [(1, 4, false), (70, 2, false), (70, 1, true), (33, 4, false)] {
            let it = Setting { decay, delta, query_heads, length, state };
            let Some((_, want)) = evaluate(&[], |g| attended(g, &it)) else { return };
            let by_chunks = |g: &mut Graph| {
                let mixed = attended(g, &it)?;
                g.output("mixed", &mixed)?;
                g.rewrite(linear_attention_by_chunks)?;
                assert!(!g.is_recurrent());
                let (_, id) = g.outputs.pop().unwrap();
                Ok(g.tensor(id).clone())
            };
            let Some((_, got)) = evaluate(&[], by_chunks) else { return };
            let most = got.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(most < 2e-5, "{decay:?} {delta} {length} {query_heads} {state}: {most}");
        }
    }
}

#[test]
fn a_selective_scan_is_linear_attention() {
    let (batch, width, states) = (2, 6, 3);
    let cases = [(1, 1, false, true), (20, 1, true, true), (20, 3, false, false), (5, 2, true, false)];
    for (length, groups, state, gated) in cases {
        let scanned = |g: &mut Graph| {
            let [u, delta] = [1, 2].map(|seed| drawn(g, &[batch, length, width], seed));
            let a = drawn(g, &[width, states], 3);
            let a = g.unary(Unary::Abs, &a);
            let a = g.unary(Unary::Neg, &a);
            let [b, c] = [4, 5].map(|seed| drawn(g, &[batch, length, groups * states], seed));
            let d = drawn(g, &[width], 6);
            let before = drawn(g, &[batch, width, states, 1], 7);
            let gate = drawn(g, &[batch, length, width], 8);
            let x = SelectiveScan {
                u: &u,
                delta: &delta,
                a: &a,
                b: &b,
                c: &c,
                d: &d,
                state: &before,
                z: gated.then_some(&gate),
                groups,
            };
            let (y, behind) = g.selective_scan(&x)?;
            Ok(if state { behind } else { y })
        };
        let Some((shape, want)) = evaluate(&[], scanned) else { return };
        let as_attention = |g: &mut Graph| {
            let y = scanned(g)?;
            g.output("y", &y)?;
            g.rewrite(selective_scan_by_linear_attention)?;
            assert!(g.nodes.iter().all(|node| !matches!(node.op, Op::SelectiveScan(_))));
            let (_, id) = g.outputs.pop().unwrap();
            Ok(g.tensor(id).clone())
        };
        let Some((same, got)) = evaluate(&[], as_attention) else { return };
        assert_eq!(same, shape);
        let most = got.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(most < 2e-6, "{length} {groups} {state}: {most}");
    }
}

#[test]
fn a_state_decays_and_is_corrected() {
    // One key and one value: 2, halved and 3·5 added is 16; then the delta rule with β 0.5 pulls what the key 2 finds to 8.
    let rule = |delta: bool| {
        move |g: &mut Graph| {
            let [q, k, v] = [1.0, if delta { 2.0 } else { 3.0 }, if delta { 8.0 } else { 5.0 }]
                .map(|x| g.constant(&[1, 1, 1], vec![x]).unwrap());
            let state = g.constant(&[1, 1, 1, 1], vec![2.0])?;
            let decay = g.constant(&[1, 1, 1], vec![0.5_f32.ln()])?;
            let beta = g.constant(&[1, 1, 1], vec![0.5])?;
            let (decay, beta) = if delta { (None, Some(&beta)) } else { (Some(&decay), None) };
            let x = LinearAttention {
                q: &q,
                k: &k,
                v: &v,
                state: &state,
                decay,
                beta,
                heads: 1,
                query_heads: 1,
                scale: 1.0,
            };
            g.linear_attention(&x).map(|(mixed, _)| mixed)
        }
    };
    expect(&[], rule(false), &[1, 1, 1], &[16.0]);
    // 2 + 2·0.5·(8 − 2·2)
    expect(&[], rule(true), &[1, 1, 1], &[6.0]);
}

#[test]
fn convolutions_see_what_came_before() {
    let convolved = |by_products: bool, bias: bool, silu: bool, state: bool| {
        move |g: &mut Graph| {
            let x = g.constant(&[1, 2, 2], vec![1.0, 10.0, 2.0, 20.0])?;
            let past = g.constant(&[1, 2, 2], vec![3.0, 30.0, 4.0, 40.0])?;
            g.enter(&Scope::root());
            let weight = g.weight("weight", &[2, 1, 3])?;
            let bias = bias.then(|| g.constant(&[2], vec![0.5, 0.0])).transpose()?;
            let (y, last) = g.causal_conv(&x, &past, &weight, bias.as_ref(), 1, silu)?;
            let y = if state { last } else { y };
            if !by_products {
                return Ok(y);
            }
            g.output("y", &y)?;
            g.rewrite(causal_conv_by_products)?;
            let (_, id) = g.outputs.pop().unwrap();
            Ok(g.tensor(id).clone())
        }
    };
    let weight: (&str, &[f32]) = ("weight", &[1.0, 2.0, 3.0, 0.0, 0.0, 1.0]);
    for by_products in [false, true] {
        // 3 + 2·4 + 3·1, and 4 + 2·1 + 3·2.
        let whole = [1, 2, 2];
        expect(&[weight], convolved(by_products, false, false, false), &whole, &[14.0, 10.0, 12.0, 20.0]);
        expect(&[weight], convolved(by_products, true, false, false), &whole, &[14.5, 10.0, 12.5, 20.0]);
        // 14 / (1 + e⁻¹⁴), and so on.
        let silu = [13.999_988, 9.999_546, 11.999_926, 20.0];
        expect(&[weight], convolved(by_products, false, true, false), &whole, &silu);
        expect(&[weight], convolved(by_products, false, true, true), &whole, &[1.0, 10.0, 2.0, 20.0]);
    }
}

#[test]
fn what_is_in_half_precision_adds_up_in_single() {
    use crate::lower::passes::{Pass, testing};
    let mut g = Graph::new();
    let [q, k, v] = [1, 2, 3].map(|seed| drawn(&mut g, &[1, 2, 4], seed));
    let state = drawn(&mut g, &[1, 2, 2, 2], 4);
    let [q, k, v, state] = [q, k, v, state].map(|x| g.cast(&x, Dtype::F16));
    let of = LinearAttention {
        q: &q,
        k: &k,
        v: &v,
        state: &state,
        decay: None,
        beta: None,
        heads: 2,
        query_heads: 2,
        scale: 0.5,
    };
    let (mixed, _) = g.linear_attention(&of).unwrap();
    let lines = testing::after(Pass::each("single", linear_attention_in_single), &mut g, &[&mixed]);
    let types: Vec<_> = lines.iter().map(|line| line.split('(').next().unwrap()).collect();
    let narrowed = ["f16 Cast"; 4];
    let wide = ["f32 Cast"; 4];
    assert_eq!(types, [&narrowed[..], &wide, &["f32 LinearAttention", "f16 Cast"]].concat());
}
