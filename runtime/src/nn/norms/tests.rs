use super::*;
use crate::dims;
use crate::graph::Input;
use crate::graph::dims::{BATCH, SEQUENCE};
use crate::nn::testing::{expect, refusal};

/// Mean 2 and variance 1.
fn one_three(g: &mut Graph) -> Tensor {
    g.constant(&[1, 2], vec![1.0, 3.0]).unwrap()
}

/// Two heads `[1, 1, 2, 2]`: layer norm gives `[-1, 1]` and `[1, -1]`.
fn two_heads(g: &mut Graph) -> Tensor {
    g.constant(&[1, 1, 2, 2], vec![1.0, 3.0, 10.0, 6.0]).unwrap()
}

#[test]
fn rms_norms_divide_by_the_root_of_the_mean_square() {
    let x = |g: &mut Graph| g.constant(&[1, 2], vec![3.0, 4.0]);
    let plain = |g: &mut Graph| {
        let x = x(g)?;
        rms_norm_no_affine(g, &x, 0.0)
    };
    expect(&[], plain, &[1, 2], &[0.848_528_15, 1.131_370_9]);
    let epsilon = |g: &mut Graph| {
        let x = x(g)?;
        rms_norm_no_affine(g, &x, 12.5)
    };
    expect(&[], epsilon, &[1, 2], &[0.6, 0.8]);
    let offset = |g: &mut Graph| {
        let x = x(g)?;
        rms_norm_offset(g, &g.scope("norm"), &x, 12.5)
    };
    expect(&[("norm.weight", &[1.0, -0.5])], offset, &[1, 2], &[1.2, 0.4]);
}

#[test]
fn an_epsilon_makes_it_an_rms_norm() {
    let w = Scope::root().scope("norm");
    for (epsilon, want) in [(None, [-1.0, 2.0]), (Some(4.0), [1.0 / 3.0, 2.0])] {
        let build = |g: &mut Graph| {
            let x = one_three(g);
            rms_or_layer_norm(g, &w, &x, epsilon, 0.0)
        };
        expect(&[("norm.weight", &[1.0, 2.0])], build, &[1, 2], &want);
    }
}

#[test]
fn layer_norms_differ_by_their_weights() {
    let w = Scope::root().scope("norm");
    let plain = |g: &mut Graph| {
        let x = one_three(g);
        layer_norm_no_affine(g, &x, 0.0)
    };
    expect(&[], plain, &[1, 2], &[-1.0, 1.0]);
    let epsilon = |g: &mut Graph| {
        let x = one_three(g);
        layer_norm_no_affine(g, &x, 3.0)
    };
    expect(&[], epsilon, &[1, 2], &[-0.5, 0.5]);
    let offset = |g: &mut Graph| {
        let x = one_three(g);
        layer_norm_offset(g, &w, &x, 0.0)
    };
    let weights: [(&str, &[f32]); 2] = [("norm.weight", &[1.0, -0.5]), ("norm.bias", &[0.25, 1.0])];
    expect(&weights, offset, &[1, 2], &[-1.75, 1.5]);
    for (affine, weights, want) in [(true, &weights[..], [-0.75, 0.5]), (false, &[], [-1.0, 1.0])] {
        let optional = |g: &mut Graph| {
            let x = one_three(g);
            layer_norm_optional_affine(g, affine, &w, &x, 0.0)
        };
        expect(weights, optional, &[1, 2], &want);
    }
}

#[test]
fn norms_of_heads_have_a_weight_for_each() {
    let w = Scope::root().scope("q_norm");
    let want = [-2.0, 3.0, 4.0, -5.0];
    let by_head = |g: &mut Graph| {
        let x = two_heads(g);
        layer_norm_by_head(g, &w, &x, 0.0)
    };
    expect(&[("q_norm.weight", &[2.0, 3.0, 4.0, 5.0])], by_head, &[1, 1, 2, 2], &want);
    let biased = |g: &mut Graph| {
        let x = two_heads(g);
        layer_norm_by_head_biased(g, &w, &x, 0.0)
    };
    let weights: [(&str, &[f32]); 2] =
        [("q_norm.weight", &[2.0, 3.0, 4.0, 5.0]), ("q_norm.bias", &[1.0, 0.0, -1.0, 2.0])];
    expect(&weights, biased, &[1, 1, 2, 2], &[-1.0, 3.0, 3.0, -3.0]);
    let per_head = |g: &mut Graph| {
        let x = two_heads(g);
        layer_norm_per_head(g, &w, &x, 0.0)
    };
    let weights: [(&str, &[f32]); 2] =
        [("q_norm.norms.0.weight", &[2.0, 3.0]), ("q_norm.norms.1.weight", &[4.0, 5.0])];
    expect(&weights, per_head, &[1, 1, 2, 2], &want);
}

#[test]
fn axes_of_unknown_length_are_refused() {
    let w = Scope::root().scope("norm");
    let x = |g: &mut Graph| g.input(Input::f32("x", dims![BATCH, SEQUENCE]));
    let offset = refusal(|g| {
        let x = x(g);
        rms_norm_offset(g, &w, &x, 1e-6)
    });
    insta::assert_snapshot!(offset, @"norm in norm: the last axis of [batch, sequence] must have a fixed length");
    let heads = refusal(|g| {
        let x = x(g);
        layer_norm_per_head(g, &w, &x, 1e-6)
    });
    insta::assert_snapshot!(heads, @"norm in norm: [batch, sequence] has no heads");
}
