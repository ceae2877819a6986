use std::f32::consts::LN_2;

use super::*;
use crate::dims;
use crate::graph::Input;
use crate::graph::dims::{BATCH, SEQUENCE};
use crate::nn::testing::{expect, refusal};

/// Logits `[1, 1, experts]` or scores of this many experts.
fn row(g: &mut Graph, of: &[f32]) -> Tensor {
    g.constant(&[1, 1, of.len()], of.to_vec()).unwrap()
}

/// Logarithms, so that the softmax of these is in eighths: 1/8, 1/2, 1/8, 1/4.
const LOGITS: [f32; 4] = [0.0, 2.0 * LN_2, 0.0, LN_2];

#[test]
fn softmax_is_before_or_after_the_selection() {
    for (normalised, want) in [(false, [0.0, 0.5, 0.0, 0.25]), (true, [0.0, 2.0 / 3.0, 0.0, 1.0 / 3.0])] {
        let build = |g: &mut Graph| {
            let logits = row(g, &LOGITS);
            Ok(softmax_topk(g, &logits, 2, normalised)?.weights)
        };
        expect(&[], build, &[1, 1, 4], &want);
    }
    // Of equal ones the first is selected.
    let three = |g: &mut Graph| {
        let logits = row(g, &LOGITS);
        Ok(softmax_after_topk(g, &logits, 3)?.weights)
    };
    expect(&[], three, &[1, 1, 4], &[1.0 / 7.0, 4.0 / 7.0, 0.0, 2.0 / 7.0]);
}

#[test]
fn every_position_selects_experts_of_its_own() {
    let build = |g: &mut Graph| {
        let logits = g.constant(&[2, 1, 2], vec![1.0, 0.0, 0.0, 1.0])?;
        Ok(softmax_after_topk(g, &logits, 1)?.weights)
    };
    expect(&[], build, &[2, 1, 2], &[1.0, 0.0, 0.0, 1.0]);
}

const ROUTER: GroupLimitedTopk =
    GroupLimitedTopk { n_group: 2, topk_group: 1, scores_per_group: 2, top_k: 2, norm_topk_prob: false };

/// The best score is in the first group, the best two in the second.
const SCORES: [f32; 6] = [0.9, 0.1, 0.2, 0.6, 0.7, 0.5];

#[test]
fn experts_are_selected_from_the_best_groups() {
    for (router, want) in [
        (ROUTER, [0.0, 0.0, 0.0, 0.6, 0.7, 0.0]),
        (GroupLimitedTopk { scores_per_group: 1, ..ROUTER }, [0.9, 0.0, 0.2, 0.0, 0.0, 0.0]),
        (GroupLimitedTopk { topk_group: 2, ..ROUTER }, [0.9, 0.0, 0.0, 0.0, 0.7, 0.0]),
        (GroupLimitedTopk { n_group: 1, top_k: 1, ..ROUTER }, [0.9, 0.0, 0.0, 0.0, 0.0, 0.0]),
        (
            GroupLimitedTopk { norm_topk_prob: true, top_k: 3, ..ROUTER },
            [0.0, 0.0, 0.0, 6. / 18., 7. / 18., 5. / 18.],
        ),
    ] {
        let build = |g: &mut Graph| {
            let scores = row(g, &SCORES);
            Ok(router.forward(g, &scores, None)?.weights)
        };
        expect(&[], build, &[1, 1, 6], &want);
    }
}

#[test]
fn the_correction_bias_selects_and_does_not_weigh() {
    let build = |g: &mut Graph| {
        let scores = row(g, &SCORES);
        let bias = g.weight("e_score_correction_bias", &[6])?;
        Ok(ROUTER.forward(g, &scores, Some(&bias))?.weights)
    };
    let bias: (&str, &[f32]) = ("e_score_correction_bias", &[1.0, 2.0, 0.0, 0.0, 0.0, 0.0]);
    expect(&[bias], build, &[1, 1, 6], &[0.9, 0.1, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn other_groups_are_above_negative_scores_where_they_compete_with_0() {
    for (unselected, want) in
        [(f32::MIN, [0.0, 0.0, 0.0, 0.6, 0.7, 0.0]), (0.0, [0.9, 0.0, 0.0, 0.6, 0.0, 0.0])]
    {
        let build = |g: &mut Graph| {
            let (scores, bias) = (row(g, &SCORES), row(g, &[-5.0, -5.0, -5.0, 1.0, -0.8, -0.8]));
            Ok(ROUTER.forward_filled(g, &scores, Some(&bias), unselected)?.weights)
        };
        expect(&[], build, &[1, 1, 6], &want);
    }
}

#[test]
fn an_expert_takes_as_many_tokens_of_a_text_as_it_holds() {
    // Probabilities are 3/4 and 1/4; the first expert is the first text's three times, the second text's once.
    let high = 3.0_f32.ln();
    let build = |g: &mut Graph| {
        let logits = [high, 0.0, high, 0.0, 0.0, high, high, 0.0];
        let logits = [logits, [0.0, high, 0.0, high, high, 0.0, 0.0, high]].concat();
        let logits = g.constant(&[2, 4, 2], logits)?;
        Ok(top1_within_capacity(g, &logits, 2)?.weights)
    };
    let first = [0.75, 0.0, 0.75, 0.0, 0.0, 0.75, 0.0, 0.0];
    let second = [0.0, 0.75, 0.0, 0.75, 0.75, 0.0, 0.0, 0.0];
    expect(&[], build, &[2, 4, 2], &[first, second].concat());
}

#[test]
fn one_order_selects_and_other_scores_weigh() {
    for (normalised, want) in [(false, [0.5, 0.0, 0.25]), (true, [2.0 / 3.0, 0.0, 1.0 / 3.0])] {
        let build = |g: &mut Graph| {
            let (choice, scores) = (row(g, &[3.0, -1.0, 2.0]), row(g, &[0.5, 0.9, 0.25]));
            Ok(topk_by(g, &choice, &scores, 2, normalised)?.weights)
        };
        expect(&[], build, &[1, 1, 3], &want);
    }
}

#[test]
fn sparse_mixer_weighs_each_expert_among_those_near_it() {
    // With a noise of 0.1 what is more than a fifth below, relative to the larger magnitude, does not compete: 10 competes
    // with 9 alone, 9 with nothing.
    let build = |g: &mut Graph| {
        let logits = row(g, &[9.0, 10.0, 1.0]);
        Ok(sparse_mixer(g, &logits, 0.1)?.weights)
    };
    expect(&[], build, &[1, 1, 3], &[1.0, 0.731_058_6, 0.0]);
}

#[test]
fn more_experts_than_there_are_cannot_be_selected() {
    let many = refusal(|g| {
        let logits = row(g, &LOGITS);
        softmax_topk(g, &logits, 5, true)
    });
    insta::assert_snapshot!(many, @"top_k in the root: [1, 1, 4] has no 5 largest along its last axis");
    let unknown = refusal(|g| {
        let logits = g.input(Input::f32("logits", dims![BATCH, 1, SEQUENCE]));
        Ok(softmax_after_topk(g, &logits, 1)?.weights)
    });
    insta::assert_snapshot!(unknown, @"top_k in the root: [batch, 1, sequence] has no 1 largest along its last axis");
    let groups = refusal(|g| {
        let scores = row(g, &SCORES);
        GroupLimitedTopk { n_group: 4, ..ROUTER }.forward(g, &scores, None)
    });
    insta::assert_snapshot!(groups, @"Reshape in the root: [1, 1, 6] does not hold as many elements as [1, 1, 4, 1]");
    let flat = refusal(|g| {
        let scores = g.constant(&[6], SCORES.to_vec())?;
        ROUTER.forward(g, &scores, None)
    });
    insta::assert_snapshot!(flat, @"GroupLimitedTopk in the root: [6] in groups");
}
