use std::collections::HashMap;

use safetensors::tensor::{TensorView, serialize_to_file};

use super::*;
use crate::graph::Weight;
use crate::weights::Weights;

/// A file of tensors in single precision.
fn file(
    tensors: &[(&str, &[usize], &[f32])],
    metadata: Option<HashMap<String, String>>,
) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let bytes: Vec<Vec<u8>> =
        tensors.iter().map(|(_, _, values)| values.iter().flat_map(|x| x.to_le_bytes()).collect()).collect();
    let views = tensors.iter().zip(&bytes).map(|((name, shape, _), bytes)| {
        ((*name).to_owned(), TensorView::new(Stored::F32, shape.to_vec(), bytes).unwrap())
    });
    serialize_to_file(views, metadata, &folder.path().join("lora.safetensors")).unwrap();
    folder
}

fn opened(
    tensors: &[(&str, &[usize], &[f32])],
    metadata: Option<HashMap<String, String>>,
    scale: f32,
    weight: (&str, &[usize]),
) -> Result<Lora> {
    let folder = file(tensors, metadata);
    let name = weight.0.to_owned();
    Lora::open(
        &folder.path().join("lora.safetensors"),
        scale,
        [(&name, weight.1)].into_iter(),
        &Names::default(),
    )
}

fn merged(lora: &Lora, name: &str, shape: &[usize]) -> Vec<f32> {
    let bytes = Bytes::memory(vec![0; 4 * shape.iter().product::<usize>()]);
    let weight = WeightData { dtype: Dtype::F32, shape: shape.to_vec(), stored_as: name.to_owned(), bytes };
    let merged = lora.merged(weight, Run::WHOLE).unwrap();
    floats(&merged.bytes.read().unwrap(), Stored::F32).unwrap()
}

const DOWN: (&[usize], &[f32]) = (&[2, 3], &[1.0, 2.0, 3.0, 10.0, 20.0, 30.0]);
const UP: (&[usize], &[f32]) = (&[1, 2], &[1.0, -0.5]);

#[test]
fn updates_are_found_under_all_names() {
    let attention = "unet.up_blocks.1.attentions.0.transformer_blocks.0.attn1";
    let (query, out) = (format!("{attention}.to_q.weight"), format!("{attention}.to_out.0.weight"));
    let kohya = "lora_unet_up_blocks_1_attentions_0_transformer_blocks_0_attn1_to_q";
    let published = "lora_unet_output_blocks_3_1_transformer_blocks_0_attn1_to_q";
    for (down, up, weight) in [
        (format!("{attention}.to_q.lora_A.weight"), format!("{attention}.to_q.lora_B.weight"), &query),
        (format!("{attention}.to_q.lora.down.weight"), format!("{attention}.to_q.lora.up.weight"), &query),
        (
            format!("{attention}.processor.to_q_lora.down.weight"),
            format!("{attention}.processor.to_q_lora.up.weight"),
            &query,
        ),
        (
            format!("{attention}.processor.to_out_lora.down.weight"),
            format!("{attention}.processor.to_out_lora.up.weight"),
            &out,
        ),
        (format!("{kohya}.lora_down.weight"), format!("{kohya}.lora_up.weight"), &query),
        (format!("{published}.lora_down.weight"), format!("{published}.lora_up.weight"), &query),
    ] {
        let tensors = [(&*down, DOWN.0, DOWN.1), (&*up, UP.0, UP.1)];
        let lora = opened(&tensors, None, 1.0, (weight, &[1, 3])).unwrap();
        assert_eq!(merged(&lora, weight, &[1, 3]), [-4.0, -8.0, -12.0], "{down}");
    }
    let text = "text_encoder.encoder.layers.0.self_attn.q_proj.weight";
    let kohya = "lora_te1_text_model_encoder_layers_0_self_attn_q_proj";
    let (down, up) = (format!("{kohya}.lora_down.weight"), format!("{kohya}.lora_up.weight"));
    let lora = opened(&[(&down, DOWN.0, DOWN.1), (&up, UP.0, UP.1)], None, 1.0, (text, &[1, 3])).unwrap();
    assert!(lora.updates(text));
}

#[test]
fn scale_and_alpha_over_rank_are_factors() {
    let (down, up, alpha) = ("unet.x.lora_down.weight", "unet.x.lora_up.weight", "unet.x.alpha");
    let update = [(down, DOWN.0, DOWN.1), (up, UP.0, UP.1)];
    let weight: (&str, &[usize]) = ("unet.x.weight", &[1, 3]);
    let with_alpha = [update[0], update[1], (alpha, &[], &[4.0])];
    let lora = opened(&with_alpha, None, 0.25, weight).unwrap();
    assert_eq!(merged(&lora, weight.0, weight.1), [-2.0, -4.0, -6.0]);
    let adapter =
        HashMap::from([("lora_adapter_metadata".to_owned(), r#"{"unet.lora_alpha": 6}"#.to_owned())]);
    let lora = opened(&update, Some(adapter), 1.0, weight).unwrap();
    assert_eq!(merged(&lora, weight.0, weight.1), [-12.0, -24.0, -36.0]);
    assert_eq!(merged(&lora, "unet.y.weight", &[1, 1]), [0.0]);
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let (down, up) = (("unet.x.lora_A.weight", DOWN.0, DOWN.1), ("unet.x.lora_B.weight", UP.0, UP.1));
    let problem = |tensors: &[(&str, &[usize], &[f32])], weight: (&str, &[usize])| {
        opened(tensors, None, 1.0, weight).unwrap_err().to_string()
    };
    assert!(problem(&[down, up], ("unet.y.weight", &[1, 3])).contains("`unet.x`, which the model has not"));
    assert!(problem(&[down, up], ("unet.x.weight", &[3, 1])).contains("1 by 3 of rank 2"));
    assert!(problem(&[down], ("unet.x.weight", &[1, 3])).contains("one of its two matrices"));
    let other = [down, up, ("unet.x.dora_scale", &[1_usize][..], &[1.0_f32][..])];
    assert!(problem(&other, ("unet.x.weight", &[1, 3])).contains("`unet.x.dora_scale`"));
}

/// A folder of PEFT: this configuration, and an update of `model.x`.
fn peft(config: &str, weight: (&str, &[usize])) -> Result<Lora> {
    let [down, up] = ["A", "B"].map(|part| format!("base_model.model.model.x.lora_{part}.weight"));
    let folder = file(&[(&down, DOWN.0, DOWN.1), (&up, UP.0, UP.1)], None);
    let model = folder.path().join("adapter_model.safetensors");
    std::fs::rename(folder.path().join("lora.safetensors"), model).unwrap();
    if !config.is_empty() {
        std::fs::write(folder.path().join("adapter_config.json"), config).unwrap();
    }
    let names = Names { base_model_prefix: "model", ..Names::default() };
    let name = weight.0.to_owned();
    Lora::open(folder.path(), 1.0, [(&name, weight.1)].into_iter(), &names)
}

#[test]
fn folders_of_peft_say_their_factors() {
    // The product is [-4, -8, -12], of rank 2.
    for (config, factor) in [
        (r#"{"peft_type": "LORA", "r": 2, "lora_alpha": 4}"#, 2.0),
        (r#"{"r": 2, "lora_alpha": 1, "alpha_pattern": {"y": 9, "x": 6}}"#, 3.0),
        (r#"{"r": 2, "lora_alpha": 1, "alpha_pattern": {"^x": 9, "^model\\.x": 6}}"#, 3.0),
        (r#"{"r": 8, "rank_pattern": {"model.x": 2}, "lora_alpha": 1}"#, 0.5),
        (r#"{"r": 2}"#, 4.0),
        (r#"{"r": 2, "lora_alpha": 4, "use_rslora": true, "bias": "none"}"#, 4.0 / 2.0_f32.sqrt()),
    ] {
        // Checkpoints of the base model alone have no prefix.
        for name in ["model.x.weight", "x.weight"] {
            let lora = peft(config, (name, &[1, 3])).unwrap();
            let values = merged(&lora, name, &[1, 3]);
            for (value, product) in values.iter().zip([-4.0, -8.0, -12.0]) {
                assert!((value - factor * product).abs() < 1e-4, "{config}: {values:?}");
            }
        }
    }
    // Of weights that are stored by their inputs.
    let lora = peft(r#"{"r": 2, "lora_alpha": 2, "fan_in_fan_out": true}"#, ("x.weight", &[3, 1])).unwrap();
    assert_eq!(merged(&lora, "x.weight", &[3, 1]), [-4.0, -8.0, -12.0]);
}

#[test]
fn what_is_not_read_of_peft_is_refused_by_name() {
    for (config, word) in [
        ("", "has no adapter_config.json"),
        ("{", "is not valid JSON"),
        (r#"{"peft_type": "LOHA"}"#, "`peft_type` is \"LOHA\""),
        (r#"{"use_dora": true}"#, "`use_dora` is true"),
        (r#"{"modules_to_save": ["lm_head"]}"#, "`modules_to_save`"),
        (r#"{"bias": "all"}"#, "`bias`"),
        (r#"{"init_lora_weights": "pissa_niter_4"}"#, "`init_lora_weights`"),
        (r#"{"alpha_pattern": {".*x": 2}}"#, "`.*x`, a regular expression"),
        (r#"{"lora_alpha": "much"}"#, "`lora_alpha` is \"much\""),
        (r#"{"r": 3}"#, "has rank 2, its configuration 3"),
    ] {
        let problem = peft(config, ("x.weight", &[1, 3])).unwrap_err().to_string();
        assert!(problem.contains(word), "{config}: {problem}");
    }
    let problem = Lora::open(Path::new("x"), f32::NAN, [].into_iter(), &Names::default()).unwrap_err();
    assert!(problem.to_string().contains("NaN times"));
}

#[test]
fn files_and_scales_are_told_apart_and_parts_are_merged_alone() {
    let [down, up] = ["A", "B"].map(|part| format!("x.lora_{part}.weight"));
    let updates = [
        file(&[(&down, &[1, 2], &[1.0, 2.0]), (&up, &[2, 1], &[1.0, 10.0])], None),
        file(&[(&down, &[1, 2], &[5.0, 6.0]), (&up, &[2, 1], &[1.0, 1.0])], None),
    ];
    let [first, second] = updates.each_ref().map(|folder| folder.path().join("lora.safetensors"));
    let model = file(&[("x.weight", &[2, 2], &[100.0; 4])], None);
    std::fs::rename(model.path().join("lora.safetensors"), model.path().join("model.safetensors")).unwrap();
    let checkpoint = crate::hub::Checkpoint::open(model.path().to_str().unwrap()).unwrap();
    let weights = Weights::open(&checkpoint).unwrap();
    let names = Names { fused_weights: &[("x", &["q", "k"])], ..Names::default() };
    let values = |weights: &Weights, names: &[&str], shape: &[usize], renamed: &Names| {
        let weight = |name: &&str| Weight::new(name, shape);
        let wanted: Vec<Weight> = names.iter().map(weight).collect();
        weights.locate(&wanted, renamed).unwrap()
    };
    let floats = |data: &WeightData| floats(&data.bytes.read().unwrap(), Stored::F32).unwrap();
    let add = |path: &Path, scale: f32| weights.clone().with_lora(path, scale, &names).unwrap();
    let all = [
        add(&first, 1.0),
        add(&first, 0.5),
        add(&second, 1.0),
        add(&first, 1.0).with_lora(&second, 1.0, &names).unwrap(),
    ];
    // All are held at once, as by sessions of one checkpoint.
    let held: Vec<Vec<WeightData>> =
        all.iter().map(|weights| values(weights, &["x.weight"], &[2, 2], &names)).collect();
    let expected = [
        [101.0, 102.0, 110.0, 120.0],
        [100.5, 101.0, 105.0, 110.0],
        [105.0, 106.0, 105.0, 106.0],
        [106.0, 108.0, 115.0, 126.0],
    ];
    for (held, expected) in held.iter().zip(expected) {
        assert_eq!(floats(&held[0]), expected);
    }
    // The rows of a tensor that holds two weights.
    let parts = values(&all[0], &["q.weight", "k.weight"], &[1, 2], &names);
    assert_eq!([floats(&parts[0]), floats(&parts[1])], [[101.0, 102.0], [110.0, 120.0]]);
}

#[test]
fn modules_have_other_names_in_the_first_release() {
    for (module, published) in [
        ("down_blocks.1.resnets.0.conv1", "input_blocks_4_0_in_layers_2"),
        ("down_blocks.0.downsamplers.0.conv", "input_blocks_3_0_op"),
        ("mid_block.resnets.1.time_emb_proj", "middle_block_2_emb_layers_1"),
        ("mid_block.attentions.0.proj_in", "middle_block_1_proj_in"),
        ("up_blocks.1.upsamplers.0.conv", "output_blocks_5_2_conv"),
        ("time_embedding.linear_2", "time_embed_2"),
    ] {
        let all = candidates(&format!("unet.{module}"), 2);
        assert!(all.contains(&format!("lora_unet_{published}")), "{module}: {all:?}");
    }
    assert_eq!(names::layers_per_block(["unet.down_blocks.0.resnets.2.conv1.weight"].into_iter()), 3);
}
