//! Worked examples of every format, bit by bit.

use serde_json::{Value as Json, json};

use super::testing::{Tensor, singles, values, words};

fn gptq(more: &Json) -> Json {
    let mut config = json!({"quant_method": "gptq", "bits": 4, "group_size": -1});
    more.as_object().unwrap().iter().for_each(|(name, value)| config[name] = value.clone());
    config
}

/// Eight outputs of eight inputs, whose codes are 0 to 7.
fn words_of_codes() -> Vec<Tensor<'static>> {
    vec![
        ("x.qweight", "I32", &[1, 8], words(&[0x7654_3210; 8])),
        ("x.qzeros", "I32", &[1, 1], words(&[0x7777_7777])),
        ("x.scales", "F32", &[1, 8], singles(&[0.5; 8])),
    ]
}

#[test]
fn gptq_stores_one_less_than_the_zero_point_in_its_first_version() {
    let read =
        |config: &Json| values(config, &words_of_codes(), "x.weight", &[8, 8]).unwrap()[8..16].to_vec();
    assert_eq!(read(&gptq(&json!({}))), [-4.0, -3.5, -3.0, -2.5, -2.0, -1.5, -1.0, -0.5]);
    let second = gptq(&json!({"checkpoint_format": "gptq_v2"}));
    assert_eq!(read(&second), [-3.5, -3.0, -2.5, -2.0, -1.5, -1.0, -0.5, 0.0]);
}

#[test]
fn gptq_has_32_codes_of_three_bits_in_three_words() {
    // Of 32 outputs; each word of the codes stands 32 times beside itself.
    let rows = [0x88fa_c688_u32, 0xc688_fac6, 0xfac6_88fa].map(|word| words(&[word; 32])).concat();
    let tensors = [
        ("x.qweight", "I32", &[3, 32][..], rows),
        ("x.qzeros", "I32", &[1, 3], words(&[0; 3])),
        ("x.scales", "F32", &[1, 32], singles(&[1.0; 32])),
    ];
    let config = gptq(&json!({"bits": 3, "checkpoint_format": "gptq_v2"}));
    let read = values(&config, &tensors, "x.weight", &[32, 32]).unwrap();
    assert!(read.iter().enumerate().all(|(at, value)| *value == (at % 8) as f32), "{read:?}");
}

#[test]
fn gptq_finds_the_group_of_each_column() {
    let groups = [0_u32, 1, 0, 1, 0, 1, 1, 0];
    let mut tensors = words_of_codes();
    tensors[1] = ("x.qzeros", "I32", &[2, 1], words(&[0; 2]));
    tensors[2] = ("x.scales", "F32", &[2, 8], singles(&[[1.0; 8], [10.0; 8]].concat()));
    tensors.push(("x.g_idx", "I32", &[8], words(&groups)));
    let config = gptq(&json!({"group_size": 4, "checkpoint_format": "gptq_v2"}));
    let read = values(&config, &tensors, "x.weight", &[8, 8]).unwrap();
    assert_eq!(read[..8], [0.0, 10.0, 2.0, 30.0, 4.0, 50.0, 60.0, 7.0]);
}

#[test]
fn awq_has_outputs_in_an_order_of_its_own() {
    let tensors = [
        ("x.qweight", "I32", &[8, 1][..], words(&[0x7531_6420; 8])),
        ("x.qzeros", "I32", &[1, 1], words(&[0x1111_1111])),
        ("x.scales", "F32", &[1, 8], singles(&[0.5; 8])),
    ];
    let config = json!({"quant_method": "awq", "bits": 4, "group_size": 8});
    let read = values(&config, &tensors, "x.weight", &[8, 8]).unwrap();
    assert!(read.iter().enumerate().all(|(at, value)| *value == ((at / 8) as f32 - 1.0) / 2.0), "{read:?}");
}

fn compressed(weights: &Json) -> Json {
    json!({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": weights}}})
}

#[test]
fn compressed_tensors_has_values_from_the_middle_and_zero_points_along_the_outputs() {
    let mut tensors = vec![
        ("x.weight_packed", "I32", &[3, 1][..], words(&[0x7654_3210; 3])),
        ("x.weight_scale", "F32", &[3, 1], singles(&[1.0, 2.0, 0.5])),
        ("x.weight_shape", "I64", &[2], [3_i64, 8].iter().flat_map(|n| n.to_le_bytes()).collect()),
    ];
    let config = compressed(&json!({"num_bits": 4, "group_size": null}));
    let read = values(&config, &tensors, "x.weight", &[3, 8]).unwrap();
    assert_eq!(read[..8], [-8.0, -7.0, -6.0, -5.0, -4.0, -3.0, -2.0, -1.0]);
    assert_eq!(read[16..18], [-4.0, -3.5]);
    tensors.push(("x.weight_zero_point", "I32", &[1, 1], words(&[0x8888_88f0])));
    let read = values(&config, &tensors, "x.weight", &[3, 8]).unwrap();
    assert_eq!((read[0], read[8], read[16]), (0.0, -30.0, -4.0));
}

#[test]
fn compressed_tensors_has_fp4_with_a_scale_for_all() {
    let codes = [[0x10, 0x32, 0x54, 0xf7, 0, 0, 0, 0], [0; 8]].concat();
    let tensors = [
        ("x.weight_packed", "U8", &[1, 16][..], codes),
        ("x.weight_scale", "F8_E4M3", &[1, 2], vec![0x40, 0x38]),
        ("x.weight_global_scale", "F32", &[1], singles(&[4.0])),
    ];
    let config = compressed(&json!({"num_bits": 4, "type": "float", "group_size": 16}));
    let read = values(&config, &tensors, "x.weight", &[1, 32]).unwrap();
    assert_eq!(read[..8], [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 3.0, -3.0]);
}

#[test]
fn fp8_blocks_at_the_edges_are_partial() {
    let tensors = [
        ("x.weight", "F8_E4M3", &[3, 2][..], vec![0x38, 0xc0, 0x30, 0x7e, 0x38, 0x38]),
        ("x.weight_scale_inv", "F32", &[2, 1], singles(&[1.0, 3.0])),
    ];
    let config = json!({"quant_method": "fp8", "weight_block_size": [2, 128]});
    let read = values(&config, &tensors, "x.weight", &[3, 2]).unwrap();
    assert_eq!(read, [1.0, -2.0, 0.5, 448.0, 3.0, 3.0]);
    // A scale that is a power of two, of all.
    let mut one = tensors.clone();
    one[1] = ("x.scale", "F8_E8M0", &[1], vec![128]);
    let config = json!({"quant_method": "fp8"});
    assert_eq!(values(&config, &one, "x.weight", &[3, 2]).unwrap()[..2], [2.0, -4.0]);
}

#[test]
fn mxfp4_experts_lie_the_other_way() {
    let mut blocks = vec![0; 64];
    blocks[..4].copy_from_slice(&[0x10, 0x32, 0x54, 0xf7]);
    blocks[16] = 0x02;
    let tensors = [
        ("e.gate_up_proj_blocks", "U8", &[2, 2, 1, 16][..], blocks),
        ("e.gate_up_proj_scales", "U8", &[2, 2, 1], vec![128, 127, 127, 127]),
    ];
    let config = json!({"quant_method": "mxfp4"});
    let read = values(&config, &tensors, "e.gate_up_proj", &[2, 32, 2]).unwrap();
    let row: Vec<f32> = (0..8).map(|column| read[column * 2]).collect();
    assert_eq!(row, [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 12.0, -12.0]);
    assert_eq!(read[1], 1.0);
    let said = |place: usize, shape: &'static [usize], bytes: Vec<u8>| {
        let mut spoilt = tensors.clone();
        spoilt[place] = (spoilt[place].0, "U8", shape, bytes);
        values(&config, &spoilt, "e.gate_up_proj", &[2, 32, 2]).unwrap_err()
    };
    let misshapen = said(1, &[2, 1, 2], vec![127; 4]);
    assert!(
        misshapen.contains("`e.gate_up_proj_scales` is [2, 1, 2]") && misshapen.contains("[2, 2, 1]"),
        "{misshapen}"
    );
    let no_number = said(1, &[2, 2, 1], vec![127, 127, 255, 127]);
    assert!(no_number.contains("`e.gate_up_proj_scales` holds NaN at 2"), "{no_number}");
    let beyond = said(1, &[2, 2, 1], vec![127, 254, 127, 127]);
    assert!(beyond.contains("holds 2^127 at 1: it stands for values that are not finite"), "{beyond}");
    let few = said(0, &[2, 2, 2, 8], vec![0; 64]);
    assert!(few.contains("`e.gate_up_proj_blocks` is [2, 2, 2, 8], not [experts"), "{few}");
}

#[test]
fn bitsandbytes_has_the_first_code_in_the_high_bits() {
    let mut table = [0.5_f32; 16];
    (table[0], table[7], table[8], table[15]) = (-1.0, 0.0, 0.0796, 1.0);
    let state = json!({"quant_type": "nf4", "blocksize": 2, "shape": [2, 2], "dtype": "float32"}).to_string();
    let state = state.into_bytes();
    let length = [state.len()];
    let tensors = [
        ("x.weight", "U8", &[2, 1][..], vec![0x0f, 0x78]),
        ("x.weight.absmax", "F32", &[2], singles(&[1.0, 1.0])),
        ("x.weight.quant_map", "F32", &[16], singles(&table)),
        ("x.weight.quant_state.bitsandbytes__nf4", "U8", &length, state),
    ];
    let config = json!({"quant_method": "bitsandbytes", "load_in_4bit": true});
    assert_eq!(values(&config, &tensors, "x.weight", &[2, 2]).unwrap(), [-1.0, 1.0, 0.0, 0.0796]);
    let mut nested = tensors.to_vec();
    nested[1] = ("x.weight.absmax", "U8", &[2], vec![0, 255]);
    let steps: Vec<f32> = (0..256).map(|step| step as f32 / 255.0).collect();
    nested.push(("x.weight.nested_absmax", "F32", &[1], singles(&[2.0])));
    nested.push(("x.weight.nested_quant_map", "F32", &[256], singles(&steps)));
    assert_eq!(values(&config, &nested, "x.weight", &[2, 2]).unwrap(), [0.0, 0.0, 0.0, 0.1592]);
}

#[test]
fn hqq_and_quanto_cut_rows_into_halves_the_other_way_round() {
    let want = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
    let hqq = [
        ("x.W_q", "U8", &[2, 2][..], vec![0x04, 0x15, 0x26, 0x37]),
        ("x.scale", "F32", &[4, 1], singles(&[1.0; 4])),
        ("x.zero", "F32", &[4, 1], singles(&[0.0; 4])),
    ];
    assert_eq!(values(&json!({"quant_method": "hqq"}), &hqq, "x.weight", &[4, 2]).unwrap(), want);
    let mut halves = hqq.clone();
    halves[2].3 = singles(&[0.5; 4]);
    let read = values(&json!({"quant_method": "hqq"}), &halves, "x.weight", &[4, 2]).unwrap();
    assert_eq!(read, want.map(|value| value - 0.5));
    let quanto = [
        ("x.weight._data._data", "U8", &[2, 2][..], vec![0x40, 0x51, 0x62, 0x73]),
        ("x.weight._scale", "F32", &[4, 1], singles(&[2.0; 4])),
        ("x.weight._shift", "F32", &[4, 1], singles(&[1.0; 4])),
    ];
    let read = values(&json!({"quant_method": "quanto"}), &quanto, "x.weight", &[4, 2]).unwrap();
    assert_eq!(read, want.map(|value| 2.0 * value - 1.0));
}

#[test]
fn bitnet_has_quarters_of_the_rows_in_a_byte() {
    let tensors =
        [("x.weight", "U8", &[1, 2][..], vec![100, 73]), ("x.weight_scale", "F32", &[1], singles(&[2.0]))];
    let read = |class: &str| {
        values(&json!({"quant_method": "bitnet", "linear_class": class}), &tensors, "x.weight", &[4, 2])
            .unwrap()
    };
    assert_eq!(read("bitlinear"), [-0.5, 0.0, 0.0, 0.5, 0.5, -0.5, 0.0, 0.0]);
    assert_eq!(read("autobitlinear")[..4], [-2.0, 0.0, 0.0, 2.0]);
}

#[test]
fn torchao_has_signed_codes() {
    let tensors = [
        ("x._weight_qdata", "I8", &[1, 2][..], vec![0x8f, 0x70]),
        ("x._weight_scale", "F32", &[1, 1], singles(&[2.0])),
        ("x._weight_zero_point", "F32", &[1, 1], singles(&[0.5])),
    ];
    let read = values(&json!({"quant_method": "torchao"}), &tensors, "x.weight", &[1, 4]).unwrap();
    assert_eq!(read, [-1.5, -15.5, 0.5, 14.5]);
}

/// What is said of the tensors when one of them is another.
fn spoilt(index: usize, tensor: Tensor<'static>) -> String {
    let mut tensors = words_of_codes();
    tensors[index] = tensor;
    values(&gptq(&json!({})), &tensors, "x.weight", &[8, 8]).unwrap_err()
}

#[test]
fn what_does_not_fit_is_named() {
    let help = "`quantization_config` and the weights must be of one checkpoint";
    for (index, tensor, named) in [
        (2, ("x.scales", "F32", &[2, 8][..], singles(&[0.5; 16])), "tensor `x.scales` is [2, 8]"),
        (2, ("x.scales", "F32", &[8], singles(&[0.5; 8])), "tensor `x.scales` is [8]"),
        (2, ("x.scales", "F32", &[1, 8], singles(&[f32::NAN; 8])), "tensor `x.scales` holds NaN at 0"),
        (2, ("x.scales", "F32", &[1, 8], singles(&[f32::INFINITY; 8])), "tensor `x.scales` holds inf at 0"),
        (2, ("x.scales", "I32", &[1, 8], words(&[1; 8])), "tensor `x.scales` is I32"),
        (2, ("x.other", "F32", &[1, 8], singles(&[1.0; 8])), "tensor `x.scales` is missing"),
        (1, ("x.qzeros", "I32", &[1, 2], words(&[0; 2])), "tensor `x.qzeros` is [1, 2]"),
        (0, ("x.qweight", "I32", &[2, 8], words(&[0; 16])), "tensor `x.qweight` is [2, 8]"),
        (0, ("x.qweight", "I64", &[1, 4], vec![0; 32]), "tensor `x.qweight` is I64"),
    ] {
        let said = spoilt(index, tensor);
        assert!(said.contains(named) && said.contains(help), "{named}: {said}");
    }
}

#[test]
fn a_configuration_that_says_otherwise_is_refused() {
    let said = |config: &Json| values(config, &words_of_codes(), "x.weight", &[8, 8]).unwrap_err();
    assert!(said(&gptq(&json!({"bits": 8}))).contains("`bits` 8"));
    assert!(said(&gptq(&json!({"bits": 0}))).contains("`bits` 0"));
    assert!(said(&gptq(&json!({"group_size": 4}))).contains("in groups of 4"));
    assert!(said(&gptq(&json!({"group_size": 0}))).contains("`group_size`"));
    assert!(
        said(&json!({"quant_method": "awq", "bits": 4, "group_size": 8}))
            .contains("tensor `x.qweight` is [1, 8]")
    );
    assert!(said(&json!({"quant_method": "mxfp4"})).contains("holds no quantized tensor"));
    assert!(said(&Json::Null).contains("`x.qweight`, which is quantized"));
    let mut tensors = words_of_codes();
    tensors.push(("x.g_idx", "I32", &[8], words(&[9; 8])));
    let said = values(&gptq(&json!({})), &tensors, "x.weight", &[8, 8]).unwrap_err();
    assert!(said.contains("`x.g_idx` holds group 9, but there are 1"), "{said}");
}

#[test]
fn methods_that_are_not_read_are_refused_by_name() {
    for (config, named) in [
        (json!({"quant_method": "aqlm"}), "`aqlm`"),
        (json!({"quant_method": "spqr"}), "`spqr`"),
        (json!({"quant_method": "fbgemm_fp8"}), "`fbgemm_fp8`"),
        (json!({"quant_method": "awq", "version": "gemv"}), "`version` `gemv`"),
        (json!({"quant_method": "awq", "zero_point": false}), "`zero_point`"),
        (gptq(&json!({"checkpoint_format": "marlin"})), "`checkpoint_format` `marlin`"),
        (json!({"quant_method": "compressed-tensors", "format": "marlin-24"}), "`format` `marlin-24`"),
        (json!({"quant_method": "bitnet", "use_rms_norm": true}), "`use_rms_norm`"),
        (json!({"bits": 4}), "no `quant_method`"),
    ] {
        let said = values(&config, &words_of_codes(), "x.weight", &[8, 8]).unwrap_err();
        assert!(said.contains(named) && said.contains("help: "), "{named}: {said}");
    }
}
