//! Against numbers that the reference gave, for heads of 16 and `max_position_embeddings` 64.

use serde_json::{Value as Json, json};

use super::*;
use crate::dims;
use crate::graph::dims::{BATCH, SEQUENCE};
use crate::graph::{Graph, Input};

fn read(config: Json) -> RopeParameters {
    let mut config = config;
    prepare(&mut config, "rope_parameters", 10_000.0);
    serde_json::from_value(config["rope_parameters"].clone()).unwrap()
}

fn holds(rope: &Json, length: Option<usize>, attention_factor: f64, inverse: &[f32]) {
    let rope = read(json!({"rope_parameters": rope}));
    let got = rope.frequencies(16, 64, length);
    assert!(
        (got.attention_factor - attention_factor).abs() < 1e-12,
        "{} {attention_factor}",
        got.attention_factor
    );
    assert_eq!(got.inverse.len(), inverse.len());
    for (got, want) in got.inverse.iter().zip(inverse) {
        assert!((got - want).abs() <= 3e-7 * want.abs(), "{rope:?}: {got} {want}");
    }
}

#[test]
fn frequencies_are_the_references() {
    let plain = [1.0, 0.316_227_76, 0.1, 0.031_622_78, 0.01, 0.003_162_277_9, 0.001, 0.000_316_227_76];
    let quarter = plain.map(|value| value / 4.0);
    holds(&json!({}), None, 1.0, &plain);
    holds(&json!({"rope_type": "linear", "factor": 4.0}), None, 1.0, &quarter);
    let dynamic = json!({"rope_type": "dynamic", "factor": 2.0});
    holds(&dynamic, None, 1.0, &plain);
    holds(
        &dynamic,
        Some(100),
        1.0,
        &[
            1.0,
            0.283_945_14,
            0.080_624_84,
            0.022_893_03,
            0.006_500_365,
            0.001_845_747,
            0.000_524_090_9,
            0.000_148_813_07,
        ],
    );
    let yarn = json!({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16});
    let mut stretched = quarter;
    stretched[0] = 1.0;
    holds(&yarn, None, 1.138_629_436_111_989, &stretched);
    let yarn = json!({"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 64, "beta_fast": 8.0,
        "beta_slow": 2.0, "mscale": 0.7, "mscale_all_dim": 1.2, "truncate": false});
    let inverse =
        [1.0, 0.113_897_56, 0.0025, 0.000_790_569_5, 0.000_25, 7.905_695e-5, 2.5e-5, 7.905_694_5e-6];
    holds(&yarn, None, 0.872_150_565_536_016_3, &inverse);
    let llama3 = json!({"rope_type": "llama3", "rope_theta": 500_000.0, "factor": 8, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 32});
    let inverse = [
        1.0,
        0.024_240_345,
        0.004_700_754,
        0.000_911_583_13,
        0.000_176_776_68,
        3.428_102_4e-5,
        6.647_87e-6,
        1.289_173_2e-6,
    ];
    holds(&llama3, None, 1.0, &inverse);
    let longrope = json!({"rope_type": "longrope", "original_max_position_embeddings": 16,
        "short_factor": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7], "long_factor": [2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5]});
    let short = [
        1.0,
        0.287_479_76,
        0.083_333_336,
        0.024_325_214,
        0.007_142_857,
        0.002_108_185_3,
        0.000_625,
        0.000_186_016_33,
    ];
    let long =
        [0.5, 0.126_491_11, 0.033_333_335, 0.009_035_079, 0.0025, 0.000_702_728_4, 0.0002, 5.749_595_6e-5];
    holds(&longrope, Some(16), 1.224_744_871_391_589, &short);
    holds(&longrope, Some(17), 1.224_744_871_391_589, &long);
    let partial = json!({"rope_type": "linear", "factor": 2.0, "partial_rotary_factor": 0.5});
    holds(&partial, None, 1.0, &[0.5, 0.05, 0.005, 0.0005]);
    let proportional = json!({"rope_type": "proportional", "factor": 2.0, "partial_rotary_factor": 0.5});
    holds(&proportional, None, 1.0, &[0.5, 0.158_113_88, 0.05, 0.015_811_39, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn older_files_say_the_same() {
    let of = RopeParameters::of;
    assert_eq!(read(json!({})), of(10_000.0));
    assert_eq!(read(json!({"rope_theta": 5000, "rope_scaling": null})), of(5000.0));
    let linear = RopeParameters { scaling: RopeScaling::Linear { factor: 2.0 }, ..of(5000.0) };
    assert_eq!(read(json!({"rope_theta": 5000.0, "rope_scaling": {"type": "linear", "factor": 2}})), linear);
    let half = RopeParameters { partial_rotary_factor: 0.5, ..of(1e6) };
    assert_eq!(read(json!({"rope_theta": 1e6, "partial_rotary_factor": 0.5})), half);
    let width = |more: Json| {
        let mut config = json!({"rope_theta": 1e6, "rotary_dim": 4, "head_dim": 8});
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        read(config).partial_rotary_factor
    };
    assert_eq!(width(json!({})), 0.5);
    assert_eq!(width(json!({"partial_rotary_factor": 0.25})), 0.25);
    assert_eq!(width(json!({"head_dim": null})), 1.0);
    let unturned = read(json!({"rope_parameters": {"rope_type": "default", "rope_theta": null}}));
    assert_eq!(unturned.scaling, RopeScaling::None);
    assert_eq!(unturned.frequencies(8, 64, None).inverse, [0.0; 4]);
    let both = json!({"rope_theta": 7.0, "rope_parameters": {"rope_type": "default", "rope_theta": 9.0}});
    assert_eq!(read(both), of(9.0));
    let both = json!({"rope_scaling": {"rope_type": "linear", "factor": 3.0}, "rope_parameters": {"rope_theta": 9.0}});
    assert_eq!(read(both), RopeParameters { scaling: RopeScaling::Linear { factor: 3.0 }, ..of(10_000.0) });
    let sections = read(json!({"rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}}));
    assert_eq!(sections, RopeParameters { mrope_section: Some(vec![2, 3, 3]), ..of(10_000.0) });
}

#[test]
fn kinds_of_layers_turn_differently() {
    let mut config = json!({"layer_types": ["full_attention", "sliding_attention"], "rope_theta": 5.0});
    prepare_layers(&mut config, "rope_parameters", 10_000.0);
    let plain = json!({"rope_type": "default", "rope_theta": 5.0});
    assert_eq!(config["rope_parameters"], json!({"full_attention": plain, "sliding_attention": plain}));
    let mut config = json!({"layer_types": ["full_attention", "sliding_attention"], "rope_theta": 5.0,
        "rope_scaling": {"type": "linear", "factor": 2}});
    prepare_layers(&mut config, "rope_parameters", 10_000.0);
    let stretched = json!({"rope_type": "linear", "type": "linear", "factor": 2, "rope_theta": 5.0});
    assert_eq!(config["rope_parameters"], json!({"full_attention": stretched, "sliding_attention": plain}));
    let mut config = json!({"rope_parameters": {"a": {"rope_theta": 2.0}, "b": {"type": "linear", "factor": 2}, "c": null}});
    prepare_layers(&mut config, "rope_parameters", 10_000.0);
    let layers = json!({"a": {"rope_type": "default", "rope_theta": 2.0},
        "b": {"rope_type": "linear", "type": "linear", "factor": 2, "rope_theta": 10_000.0}});
    assert_eq!(config["rope_parameters"], layers);
}

#[test]
fn what_cannot_be_computed_is_said() {
    let problem = |rope: Json| read(json!({"rope_parameters": rope})).check(16).unwrap_err();
    insta::assert_snapshot!(problem(json!({"rope_theta": 0.0})), @"rope_parameters.rope_theta: 0 is not a positive number");
    insta::assert_snapshot!(problem(json!({"partial_rotary_factor": 1.5})), @"rope_parameters.partial_rotary_factor: 1.5 is not above 0 and at most 1");
    insta::assert_snapshot!(problem(json!({"partial_rotary_factor": 0.0625})), @"rope_parameters.partial_rotary_factor: 0.0625 leaves 1 of a head's 16 dimensions to turn, and they turn in pairs: expected a share that is an even number of them");
    insta::assert_snapshot!(problem(json!({"partial_rotary_factor": 0.05})), @"rope_parameters.partial_rotary_factor: 0.05 leaves 0 of a head's 16 dimensions to turn, and they turn in pairs: expected a share that is an even number of them");
    insta::assert_snapshot!(problem(json!({"type": "su", "short_factor": [1.0], "long_factor": [1.0]})), @"rope_parameters.short_factor: has 1 factors, but heads of 16 have 8 pairs");
    let unknown = serde_json::from_value::<RopeParameters>(json!({"rope_type": "yarm", "rope_theta": 1.0}));
    insta::assert_snapshot!(unknown.unwrap_err(), @"unknown variant `yarm`, expected one of `default`, `none`, `linear`, `dynamic`, `yarn`, `longrope`, `llama3`, `proportional`");
}

#[test]
fn a_graph_with_one_rotary_dimension_is_refused() {
    let mut g = Graph::new();
    let positions = g.input(Input::i64("position_ids", dims![BATCH, SEQUENCE]));
    let rope = RopeParameters { partial_rotary_factor: 0.0625, ..RopeParameters::of(10_000.0) };
    let problem = rope.rotary(&mut g, &positions, 16, 64).unwrap_err();
    insta::assert_snapshot!(problem, @"RotaryEmbedding in the root: rope_parameters.partial_rotary_factor: 0.0625 leaves 1 of a head's 16 dimensions to turn, and they turn in pairs: expected a share that is an even number of them");
}

#[test]
fn what_an_architecture_rotates_as_a_standard_gives_way_to_what_a_file_says() {
    let share = |mut config: Json| {
        prepare_partial(&mut config, 0.25);
        read(config).partial_rotary_factor
    };
    assert_eq!(share(json!({})), 0.25);
    assert_eq!(share(json!({"rotary_pct": null, "rope_theta": 1e6})), 0.25);
    assert_eq!(share(json!({"rope_scaling": {"rope_type": "linear", "factor": 2.0}})), 0.25);
    assert_eq!(share(json!({"rope_parameters": {"partial_rotary_factor": 0.5}})), 0.5);
    assert_eq!(share(json!({"partial_rotary_factor": 0.5})), 0.5);
    assert_eq!(share(json!({"rotary_pct": 0.5})), 0.5);
    assert_eq!(share(json!({"rotary_dim": 8, "head_dim": 16})), 0.5);
}

#[test]
fn what_stretches_positions_as_a_standard_gives_way_to_what_a_file_says() {
    let standard = |mut config: Json| {
        let scaling = [("rope_type", "linear".into()), ("factor", 4.0.into()), ("rope_theta", 1e6.into())];
        prepare_scaling(&mut config, "rope_parameters", scaling);
        read(config)
    };
    let stretched =
        read(json!({"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e6}}));
    assert_eq!(standard(json!({})), stretched);
    assert_eq!(standard(json!({"rope_scaling": null, "rope_theta": 500.0})), stretched);
    assert_eq!(standard(json!({"rope_parameters": {"rope_theta": 500.0}})), RopeParameters::of(500.0));
    let own = json!({"rope_scaling": {"rope_type": "linear", "factor": 2.0}});
    assert_eq!(standard(own.clone()), read(own));
}

#[test]
fn a_standard_is_that_of_a_file_which_says_nothing() {
    let scaling = || [("rope_type", "linear".into()), ("factor", 4.into()), ("rope_theta", 1e6.into())];
    let mut config = json!({});
    prepare_scaling(&mut config, "rope_parameters", scaling());
    assert_eq!(RopeParameters::of(1e4).scaled(scaling()), read(config));
}
