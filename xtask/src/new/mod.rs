//! `cargo xtask new`: drafts the spec of a model from its `config.json`.

mod draft;
mod fields;
mod nearest;
mod validate;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use self::nearest::Nearest;
use crate::specs::{self, Catalog};
use crate::terminal::{Usage, note, say, unknown};
use crate::workspace;

/// Draft a spec for a new model from its config.json.
///
/// Finds the known model whose configuration is nearest, writes down the differences, and marks with `# decide:` what a
/// person must decide. A draft that the generator does not accept yet is written beside, as `<name>.yaml.draft`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  cargo xtask new camembert --from ~/models/camembert-base/config.json
  cargo xtask new my-encoder --from config.json --category text-encoders --stdout")]
pub struct Args {
    /// The model's name: lower-case letters, digits, `-` and `_`.
    name: String,
    /// The config.json of a checkpoint.
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// The folder of model_specs/ that it belongs to [default: the nearest model's].
    #[arg(long)]
    category: Option<String>,
    /// Print the draft instead of writing it.
    #[arg(long)]
    stdout: bool,
}

/// Runs the verb.
pub fn run(args: &Args) -> Result<bool> {
    let catalog = Catalog::load()?;
    check_name(&args.name)?;
    if let Some(taken) = catalog.models.get(&args.name)
        && !args.stdout
    {
        let folder = taken.category.as_deref().unwrap_or_default();
        return Err(Usage(format!(
            "there is a spec of that name: model_specs/{folder}/{}.yaml; choose another, or use --stdout",
            args.name
        ))
        .into());
    }
    if let Some(category) = &args.category
        && !catalog.architectures.categories.contains_key(category)
    {
        let known = catalog.architectures.categories.keys().map(String::as_str);
        return Err(unknown("category", category, known).into());
    }
    let config = specs::config(&args.from)?;
    let nearest = nearest::find(&catalog, &config);
    let draft = draft::draft(&args.name, args.category.as_deref(), &config, nearest.as_ref());
    let problems = validate::problems(&args.name, &draft)?;
    note(heard(&nearest));
    for problem in &problems {
        note(format!("not accepted yet: {problem}"));
    }
    if args.stdout {
        say(&draft.text)?;
        return Ok(true);
    }
    let folder = workspace::root().join("model_specs").join(&draft.category);
    let spec = folder.join(format!("{}.yaml", args.name));
    let path = if problems.is_empty() { spec.clone() } else { spec.with_extension("yaml.draft") };
    if let Some(taken) = [&spec, &path].into_iter().find(|path| path.exists()) {
        return Err(Usage(format!("{} exists; remove it first, or use --stdout", taken.display())).into());
    }
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    fs::write(&path, &draft.text).with_context(|| format!("writing {}", path.display()))?;
    let shown = path.strip_prefix(workspace::root()).unwrap_or(&path).display();
    say(format!(
        "wrote {shown}: {} lines marked `# decide:`; {}",
        draft.decisions(),
        if problems.is_empty() {
            format!("then `cargo xtask generate --model {}`", args.name)
        } else {
            "then take `.draft` off its name".to_owned()
        }
    ))?;
    Ok(true)
}

fn check_name(name: &str) -> Result<()> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(fits) {
        return Ok(());
    }
    Err(Usage(format!("`{name}` is no model name: lower-case letters, digits, `-` and `_`, a letter first"))
        .into())
}

fn heard(nearest: &Option<Nearest<'_>>) -> String {
    match nearest {
        Some(near) => format!("nearest known model: {} ({})", near.spec.model, near.why()),
        None => "no known model is near: the draft names no parent".into(),
    }
}

#[cfg(test)]
mod tests {
    use weft_generator::spec::model::ModelSpec;

    use super::*;

    /// The one known model.
    const BERT: &str = "
model: bert
category: text-encoders
architecture: encoder-only
class_prefix: Bert
weights: {prefix: bert}
config:
  vocab_size: 30522
  hidden_size: {default: 768, multiple_of: num_attention_heads}
  num_hidden_layers: 12
  num_attention_heads: 12
  intermediate_size: 3072
  hidden_act: gelu
  max_position_embeddings: 512
  type_vocab_size: 2
  layer_norm_eps: 1.0e-12
  pad_token_id: 0
  is_decoder: false
graph: {template: encoder, block: post_norm, heads: {Model: base, ForMaskedLM: masked_lm}}
";

    fn drafted(name: &str, config: &serde_json::Value) -> String {
        let spec: ModelSpec = serde_yaml::from_str(BERT).unwrap();
        let mut catalog = Catalog::load().unwrap();
        catalog.models = [("bert".to_owned(), spec)].into();
        let config = config.as_object().unwrap().clone();
        let nearest = nearest::find(&catalog, &config);
        draft::draft(name, None, &config, nearest.as_ref()).text
    }

    #[test]
    fn a_relative_of_bert_extends_it() {
        let config = serde_json::json!({
                "architectures": ["RobertaForMaskedLM"],
                "attention_probs_dropout_prob": 0.1, "bos_token_id": 0, "eos_token_id": 2, "hidden_act": "gelu",
                "hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072,
                "layer_norm_eps": 1e-5, "max_position_embeddings": 514, "model_type": "roberta",
                "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 1, "type_vocab_size": 1,
                "position_embedding_type": "absolute", "rope_scaling": {"factor": 2}, "vocab_size": 50265
        });
        insta::assert_snapshot!(drafted("relative", &config));
    }

    #[test]
    fn a_stranger_has_no_parent() {
        let config = serde_json::json!({
            "architectures": ["ViTForImageClassification"], "model_type": "vit", "image_size": 224, "patch_size": 16,
            "num_channels": 3, "qkv_bias": true, "depths": [2, 2, 6], "encoder_stride": 16
        });
        insta::assert_snapshot!(drafted("vit", &config));
    }

    #[test]
    fn configurations_within_the_configuration() {
        let config = serde_json::json!({
            "architectures": ["LlavaForConditionalGeneration"], "model_type": "llava", "projector_hidden_act": "gelu",
            "text_config": {"model_type": "llama", "hidden_size": 64, "rope_theta": 10000.0, "rope_scaling": null},
            "vision_config": {"image_size": 224, "patch_size": 14}
        });
        insta::assert_snapshot!(drafted("llava", &config), @r"
        # Drafted from a config.json of LlavaForConditionalGeneration. Every line with `decide:` waits for a person; remove the mark then.
        title: Llava  # decide: its name in prose
        architecture: multimodal  # decide: one of the types in model_specs/architectures.yaml
        category: vision-language
        # decide: a sentence or two that opens the documentation, with the paper.
        summary: The Llava architecture.
        # decide: published checkpoints, the best known first.
        checkpoints: []
        class_prefix: Llava

        # decide: these are one checkpoint's values; a spec holds the architecture's own defaults.
        config:
          projector_hidden_act: gelu  # decide: whether the graph depends on it
          text_config:
            rope_parameters: 10000.0  # decide: whether the graph depends on it
            hidden_size: 64  # decide: whether the graph depends on it
          vision_config:
            image_size: 224  # decide: whether the graph depends on it
            patch_size: 14  # decide: whether the graph depends on it

        # decide: the graph template and its parts (templates/graph/); an architecture that no template describes
        # needs one of its own, see CONTRIBUTING.md.
        graph:
          template: decide
        ");
    }

    #[test]
    fn a_draft_with_a_parent_is_accepted() {
        let name = "no-such-model";
        let config = serde_json::json!({
            "architectures": ["FreshForMaskedLM"], "model_type": "fresh", "vocab_size": 100, "hidden_size": 64,
            "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "hidden_act": "relu",
            "layer_norm_eps": 1e-7, "max_position_embeddings": 40, "type_vocab_size": 1, "pad_token_id": 3
        });
        let draft = draft::Draft { category: "text-encoders".into(), text: drafted(name, &config) };
        assert_eq!(validate::problems(name, &draft).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn names_are_checked() {
        assert!(check_name("xlm-roberta").is_ok());
        for wrong in ["BERT", "3d", "a/b", "", "-x"] {
            assert!(check_name(wrong).is_err(), "{wrong}");
        }
    }
}
