use serde_json::json;

use super::layout::Layout;
use super::shapes::Shapes;
use super::*;

const UNET: &str = "model.diffusion_model.";

fn layout(shapes: &[(&str, &[usize])]) -> std::result::Result<Layout, String> {
    Layout::of(&Shapes::of(shapes)).map_err(|error| error.to_string())
}

/// What marks a U-Net of so many channels, whose texts have this width.
fn unet(channels: usize, width: usize) -> Vec<(String, Vec<usize>)> {
    vec![
        (format!("{UNET}input_blocks.0.0.weight"), vec![320, channels, 3, 3]),
        (format!("{UNET}middle_block.0.in_layers.0.weight"), vec![1280]),
        (format!("{UNET}input_blocks.2.1.transformer_blocks.0.attn2.to_k.weight"), vec![320, width]),
    ]
}

fn shapes(owned: &[(String, Vec<usize>)]) -> Vec<(&str, &[usize])> {
    owned.iter().map(|(name, shape)| (name.as_str(), shape.as_slice())).collect()
}

#[test]
fn layouts_are_told_by_names_and_shapes() {
    let with = |channels: usize, width: usize, more: &[&str]| {
        let mut all = unet(channels, width);
        all.extend(more.iter().map(|name| ((*name).to_owned(), vec![1280, 2816])));
        layout(&shapes(&all))
    };
    let label = &["model.diffusion_model.label_emb.0.0.weight"][..];
    assert_eq!(with(4, 768, &[]), Ok(Layout::V1));
    assert_eq!(with(9, 768, &[]), Ok(Layout::Inpainting));
    assert_eq!(with(4, 1024, &[]), Ok(Layout::V2));
    assert_eq!(with(4, 64, &["cond_stage_model.model.ln_final.weight"]), Ok(Layout::V2));
    assert_eq!(with(9, 1024, &[]), Ok(Layout::InpaintingV2));
    assert_eq!(with(4, 2048, label), Ok(Layout::Xl));
    assert_eq!(with(9, 2048, label), Ok(Layout::XlInpainting));
    let flux = "double_blocks.0.img_attn.norm.key_norm.scale";
    assert_eq!(layout(&[(flux, &[128])]), Ok(Layout::FluxSchnell));
    assert_eq!(layout(&[(flux, &[128]), ("guidance_in.in_layer.bias", &[3072])]), Ok(Layout::FluxDev));
    let joint = "model.diffusion_model.joint_blocks.0.context_block.attn.qkv.weight";
    assert_eq!(
        layout(&[(joint, &[4608, 1536]), ("model.diffusion_model.pos_embed", &[1, 36864, 1536])]),
        Ok(Layout::Sd3)
    );
    assert_eq!(
        layout(&[(joint, &[4608, 1536]), ("model.diffusion_model.pos_embed", &[1, 147_456, 1536])]),
        Ok(Layout::Sd35Medium)
    );
}

#[test]
fn what_is_no_checkpoint_says_what_it_is() {
    let problem = |shapes: &[(&str, &[usize])]| layout(shapes).unwrap_err();
    let velocity =
        problem(&[("model.diffusion_model.label_emb.0.0.weight", &[1280, 2816]), ("v_pred", &[0])]);
    assert!(velocity.contains("predicts `v`") && velocity.contains("open the folder"), "{velocity}");
    let lora = problem(&[("lora_unet_input_blocks_1_1_proj_in.lora_down.weight", &[4, 320])]);
    assert!(lora.contains("it is a LoRA") && lora.contains("--lora"), "{lora}");
    let lora = problem(&[("unet.down_blocks.0.attentions.0.proj_in.lora_A.weight", &[4, 320])]);
    assert!(lora.contains("it is a LoRA"), "{lora}");
    for (name, what) in [
        ("conditioner.embedders.0.model.transformer.resblocks.0.ln_1.weight", "the refiner"),
        ("control_model.time_embed.0.weight", "a ControlNet"),
        ("distilled_guidance_layer.in_proj.bias", "Chroma"),
        ("model.diffusion_model.distilled_guidance_layer.in_proj.bias", "Chroma"),
        ("single_stream_modulation.lin.weight", "FLUX.2"),
        ("head.modulation", "Wan"),
    ] {
        let text = problem(&[(name, &[1])]);
        assert!(text.contains(what) && text.contains("single files are not read"), "{text}");
    }
    let text = problem(&[("bert.embeddings.word_embeddings.weight", &[10, 4])]);
    assert!(
        text.contains("no checkpoint of a diffusion model") && text.contains("give the folder"),
        "{text}"
    );
    let pix = unet(8, 768);
    assert!(problem(&shapes(&pix)).contains("8 channels"));
}

#[test]
fn incomplete_files_name_what_is_missing() {
    let own = Shapes::of(&[("decoder.up.0.block.0.conv1.weight", &[8, 8, 3, 3])]);
    let text = vae::config(&own, Layout::V1).unwrap_err().to_string();
    assert!(text.contains("lacks `encoder.down.0`") && text.contains("incomplete"), "{text}");
    let text = vae::tensors(&Shapes::of(&[("decoder.up.0.x.weight", &[8])])).unwrap_err().to_string();
    assert!(text.contains("`decoder.up.0.x.weight`"), "{text}");
    let text = flux::tensors(&Shapes::of(&[("img_in.weight", &[8, 4]), ("img_out.weight", &[8])]));
    assert!(text.unwrap_err().to_string().contains("`img_out.weight`, which this layout does not have"));
}

/// The tensors that the configuration of Stable Diffusion XL's U-Net follows from.
fn xl() -> Vec<(String, Vec<usize>)> {
    let mut all = vec![
        ("input_blocks.0.0.weight".to_owned(), vec![320, 4, 3, 3]),
        ("out.2.weight".to_owned(), vec![4, 320, 3, 3]),
        ("label_emb.0.0.weight".to_owned(), vec![1280, 2816]),
        ("middle_block.1.proj_in.weight".to_owned(), vec![1280, 1280]),
    ];
    let mut attend = |place: &str, depth: usize, width: usize| {
        for layer in 0..depth {
            all.push((format!("{place}.transformer_blocks.{layer}.attn2.to_k.weight"), vec![width, 2048]));
        }
    };
    for (block, depth, width) in [(4, 2, 640), (5, 2, 640), (7, 10, 1280), (8, 10, 1280)] {
        attend(&format!("input_blocks.{block}.1"), depth, width);
    }
    attend("middle_block.1", 10, 1280);
    for (block, depth, width) in
        [(0, 10, 1280), (1, 10, 1280), (2, 10, 1280), (3, 2, 640), (4, 2, 640), (5, 2, 640)]
    {
        attend(&format!("output_blocks.{block}.1"), depth, width);
    }
    for (block, width) in [(1, 320), (2, 320), (4, 640), (5, 640), (7, 1280), (8, 1280)] {
        all.push((format!("input_blocks.{block}.0.out_layers.3.weight"), vec![width, width, 3, 3]));
    }
    all.extend([3, 6].map(|block| (format!("input_blocks.{block}.0.op.weight"), vec![320, 320, 3, 3])));
    all
}

#[test]
fn the_configuration_of_the_published_u_net_follows_from_its_shapes() {
    let config = unet::config(&Shapes::of(&shapes(&xl())), Layout::Xl).unwrap();
    let published = json!({
        "_class_name": "UNet2DConditionModel",
        "addition_embed_type": "text_time",
        "addition_time_embed_dim": 256,
        "attention_head_dim": [5, 10, 20],
        "block_out_channels": [320, 640, 1280],
        "cross_attention_dim": 2048,
        "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
        "in_channels": 4,
        "layers_per_block": 2,
        "out_channels": 4,
        "projection_class_embeddings_input_dim": 2816,
        "sample_size": 128,
        "transformer_layers_per_block": [1, 2, 10],
        "up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"],
        "upcast_attention": false,
        "use_linear_projection": true,
    });
    assert_eq!(config, published);
}

#[test]
fn pieces_of_tensors_have_their_rows() {
    let own = Shapes::of(&[
        ("img_in.weight", &[8, 4]),
        ("single_blocks.3.linear1.bias", &[56]),
        ("final_layer.adaLN_modulation.1.weight", &[16, 8]),
        ("double_blocks.11.txt_attn.qkv.weight", &[24, 8]),
    ]);
    let tensors = flux::tensors(&own).unwrap();
    let piece = |name: &str| tensors.iter().find(|tensor| tensor.name == name).map(|tensor| tensor.piece);
    assert_eq!(
        piece("single_transformer_blocks.3.attn.to_v.bias"),
        Some(Piece::Rows { first: 16, count: 8 })
    );
    assert_eq!(
        piece("single_transformer_blocks.3.proj_mlp.bias"),
        Some(Piece::Rows { first: 24, count: 32 })
    );
    assert_eq!(
        piece("transformer_blocks.11.attn.add_k_proj.weight"),
        Some(Piece::Rows { first: 8, count: 8 })
    );
    assert_eq!(piece("norm_out.linear.weight"), Some(Piece::Swapped));
    assert_eq!(piece("x_embedder.weight"), Some(Piece::Whole));
}
