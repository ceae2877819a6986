//! The names of low-rank updates: which matrix of which module a tensor is, and the modules' names in other files.

use crate::weights::names::{self as weights, Names};

/// A module's name as a file has it.
pub(super) type Stem = String;

/// Which part of an update a tensor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The matrix from the inputs (A).
    Down,
    /// The matrix to the outputs (B).
    Up,
    Alpha,
}

/// What tensors' names end in: PEFT, kohya-ss, `diffusers` and its older attention processors.
const ENDINGS: [(&str, Part); 13] = [
    (".lora_A.weight", Part::Down),
    (".lora_B.weight", Part::Up),
    (".lora_A.default.weight", Part::Down),
    (".lora_B.default.weight", Part::Up),
    (".lora_down.weight", Part::Down),
    (".lora_up.weight", Part::Up),
    (".lora.down.weight", Part::Down),
    (".lora.up.weight", Part::Up),
    (".lora_linear_layer.down.weight", Part::Down),
    (".lora_linear_layer.up.weight", Part::Up),
    ("_lora.down.weight", Part::Down),
    ("_lora.up.weight", Part::Up),
    (".alpha", Part::Alpha),
];

/// The module that a tensor belongs to, and what it is of its update.
pub(super) fn part(name: &str) -> Option<(Stem, Part)> {
    let name = name.strip_prefix("base_model.model.").unwrap_or(name);
    let (stem, part) = ENDINGS.iter().find_map(|(ending, part)| Some((name.strip_suffix(ending)?, *part)))?;
    Some((stem.replace(".processor.", "."), part))
}

/// The names that files may have for a module, which begins with its component's.
pub(super) fn candidates(module: &str, layers: usize) -> Vec<Stem> {
    let Some((component, inner)) = module.split_once('.') else { return vec![] };
    let text = component.starts_with("text_encoder");
    let mut inners = vec![inner.to_owned()];
    if text {
        let base = "text_model.";
        inners.push(inner.strip_prefix(base).map_or_else(|| format!("{base}{inner}"), str::to_owned));
    }
    let mut names = vec![];
    for inner in inners {
        names.push(format!("{component}.{inner}"));
        // Older files have `to_out` for the first of its modules.
        names.extend(inner.strip_suffix(".to_out.0").map(|stem| format!("{component}.{stem}.to_out")));
        if !text {
            names.push(inner.clone());
            names.extend(inner.strip_suffix(".to_out.0").map(|stem| format!("{stem}.to_out")));
        }
        let prefixes: &[&str] = match component {
            "unet" | "transformer" => &["lora_unet", "lora_transformer"],
            "text_encoder" => &["lora_te", "lora_te1"],
            "text_encoder_2" => &["lora_te2"],
            "text_encoder_3" => &["lora_te3"],
            _ => &[],
        };
        let published = if component == "unet" { latent_diffusion(&inner, layers) } else { vec![] };
        for name in published.into_iter().chain([inner]) {
            let name = name.replace('.', "_");
            names.extend(prefixes.iter().map(|prefix| format!("{prefix}_{name}")));
        }
    }
    names
}

/// The tensors that may hold the weight of a module that goes by today's name, and its own.
pub(super) fn stored(stem: &str, names: &Names) -> Vec<(String, Stem)> {
    let weight = format!("{stem}.weight");
    weights::candidates(&weight, names).into_iter().map(|name| (name, stem.to_owned())).collect()
}

/// The residual blocks of each block of a U-Net on the way down, of which the pieces of CompVis's release are counted.
pub(super) fn layers_per_block<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    let layer = |name: &str| {
        let rest = name.strip_prefix("unet.down_blocks.0.resnets.")?;
        rest.split('.').next()?.parse::<usize>().ok()
    };
    names.filter_map(layer).max().map_or(2, |last| last + 1)
}

/// The names of a U-Net's module in CompVis's release (`input_blocks`, `middle_block`, `output_blocks`).
fn latent_diffusion(module: &str, layers: usize) -> Vec<String> {
    const PLAIN: [(&str, &str); 6] = [
        ("time_embedding.linear_1", "time_embed.0"),
        ("time_embedding.linear_2", "time_embed.2"),
        ("add_embedding.linear_1", "label_emb.0.0"),
        ("add_embedding.linear_2", "label_emb.0.2"),
        ("conv_in", "input_blocks.0.0"),
        ("conv_out", "out.2"),
    ];
    if let Some((_, published)) = PLAIN.iter().find(|(today, _)| *today == module) {
        return vec![(*published).to_owned()];
    }
    let pieces: Vec<&str> = module.split('.').collect();
    let (way, block, kind, layer, rest) = match pieces[..] {
        ["mid_block", kind, layer, ref rest @ ..] => ("middle_block", "0", kind, layer, rest),
        ["down_blocks", block, kind, layer, ref rest @ ..] => ("input_blocks", block, kind, layer, rest),
        ["up_blocks", block, kind, layer, ref rest @ ..] => ("output_blocks", block, kind, layer, rest),
        _ => return vec![],
    };
    let (Ok(block), Ok(layer)) = (block.parse::<usize>(), layer.parse::<usize>()) else { return vec![] };
    let first = block * (layers + 1) + usize::from(way == "input_blocks");
    let places: Vec<String> = match (way, kind) {
        ("middle_block", "resnets") => vec![format!("{}", 2 * layer)],
        ("middle_block", "attentions") => vec!["1".to_owned()],
        (_, "resnets") => vec![format!("{}.0", first + layer)],
        (_, "attentions") => vec![format!("{}.1", first + layer)],
        ("input_blocks", "downsamplers") => vec![format!("{}.0", first + layers)],
        // Behind a transformer where the block has some.
        ("output_blocks", "upsamplers") => {
            (1..3).map(|place| format!("{}.{place}", first + layers)).collect()
        }
        _ => vec![],
    };
    let inner = |piece: &str| match (kind, piece) {
        ("resnets", "norm1") => "in_layers.0".to_owned(),
        ("resnets", "conv1") => "in_layers.2".to_owned(),
        ("resnets", "time_emb_proj") => "emb_layers.1".to_owned(),
        ("resnets", "norm2") => "out_layers.0".to_owned(),
        ("resnets", "conv2") => "out_layers.3".to_owned(),
        ("resnets", "conv_shortcut") => "skip_connection".to_owned(),
        ("downsamplers", "conv") => "op".to_owned(),
        (_, piece) => piece.to_owned(),
    };
    let rest: Vec<String> = rest.iter().map(|piece| inner(piece)).collect();
    places.into_iter().map(|place| format!("{way}.{place}.{}", rest.join("."))).collect()
}
