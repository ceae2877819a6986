//! `--sparse CONFIG OUT`: a checkpoint of the configuration's size whose files take no room. Its tensors have the names, shapes
//! and dtype of a published one; their values are zeros that no disk stores.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Map, Value as Json, json};

use super::arguments::Arguments;
use super::subject::{Request, Subject};
use crate::graph::Weight;
use crate::hub::with_infinity;
use crate::{Error, Result};

/// The most bytes of one file; a larger checkpoint is published in shards.
const SHARD: u64 = 5_000_000_000;

/// More bytes than a checkpoint has: sums of these and of headers do not overflow.
const MOST: u64 = 1 << 60;

/// How many tensors were written, into how many files, and their bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub tensors: usize,
    pub files: usize,
    pub bytes: u64,
}

pub(super) fn main(subject: Subject, arguments: &[String]) -> Result<ExitCode> {
    let arguments = Arguments::parse(arguments)?;
    let [config, out] = arguments.alone.as_slice() else {
        return Err(Error::input(
            "--sparse",
            "needs a configuration and a folder",
            "write `--sparse CONFIG OUT`",
        ));
    };
    let (config, out) = (Path::new(config), Path::new(out));
    let text = fs::read(config).map_err(|e| Error::io(config, e))?;
    let json: Json = serde_json::from_slice(&text)
        .or_else(|error| with_infinity(&text).ok_or(error))
        .map_err(|e| Error::config(config, e.to_string(), "compare the file with the published one"))?;
    fs::create_dir_all(out).map_err(|e| Error::io(out, e))?;
    let Written { tensors, files, bytes } = write(subject, &json, out)?;
    println!("{}: {tensors} tensors of {:.2} GB in {files} file(s)", out.display(), bytes as f64 / 1e9);
    Ok(ExitCode::SUCCESS)
}

/// Writes `config.json` and the weights of the class that it names into a folder; of a pipeline `model_index.json`, and both for each of
/// its components in a folder of its own.
pub(super) fn write(subject: Subject, config: &Json, out: &Path) -> Result<Written> {
    let put = |name: &str, text: String| {
        let path = out.join(name);
        fs::write(&path, text).map_err(|e| Error::io(path, e))
    };
    put("config.json", format!("{config:#}\n"))?;
    let stored = Stored::of(config)?;
    let folder = out.to_string_lossy();
    let mut weights = (subject.parameters)(Request { checkpoint: &folder, ..Request::default() })?;
    let named = config["architectures"][0].as_str().or(config["_class_name"].as_str());
    let kinds = (subject.graph_kinds)(named.unwrap_or_else(|| (subject.class)()));
    for &kind in kinds.iter().filter(|kind| kind.is_component()) {
        let others = (subject.parameters)(Request { checkpoint: &folder, kind, ..Request::default() })?;
        let known: BTreeSet<_> = weights.iter().map(|weight| weight.name.clone()).collect();
        weights.extend(others.into_iter().filter(|weight| !known.contains(&weight.name)));
    }
    let bytes = total(&weights, stored.bytes)?;
    let (tensors, files) = match components(config, named, &weights) {
        Some((index, components)) => {
            let mut files = 0;
            for (name, weights) in components {
                let folder = out.join(name);
                fs::create_dir_all(&folder).map_err(|e| Error::io(&folder, e))?;
                put(&format!("{name}/config.json"), format!("{:#}\n", config[name]))?;
                files += stored.write(&weights, &folder)?;
            }
            put("model_index.json", format!("{index:#}\n"))?;
            let path = out.join("config.json");
            fs::remove_file(&path).map_err(|e| Error::io(path, e))?;
            (weights.len(), files)
        }
        None => (weights.len(), stored.write(&weights, out)?),
    };
    Ok(Written { tensors, files, bytes })
}

/// `model_index.json` and the tensors of each component of a pipeline, under the names that they have there.
fn components<'a>(
    config: &'a Json,
    class: Option<&str>,
    weights: &[Weight],
) -> Option<(Json, BTreeMap<&'a str, Vec<Weight>>)> {
    let kind = class.map(|class| format!("diffusers:{class}"))?;
    if config["_class_name"].as_str() != class && config["model_type"].as_str() != Some(&kind) {
        return None;
    }
    let mut components: BTreeMap<&str, Vec<Weight>> = BTreeMap::new();
    for weight in weights {
        let (component, name) = weight.name.split_once('.')?;
        let (component, own) = config.as_object()?.get_key_value(component)?;
        own.as_object()?;
        components.entry(component).or_default().push(Weight { name: name.to_owned(), ..weight.clone() });
    }
    let settings = config.as_object()?.iter().filter(|(_, value)| !value.is_object() && !value.is_array());
    let mut index: Map<String, Json> = settings.map(|(name, value)| (name.clone(), value.clone())).collect();
    index.insert("_class_name".to_owned(), class.into());
    index.extend(components.keys().map(|name| ((*name).to_owned(), json!(["diffusers", "ModelMixin"]))));
    index.remove("model_type");
    Some((index.into(), components))
}

fn size(weight: &Weight, bytes: u64) -> u64 {
    weight.shape.iter().fold(bytes, |size, &n| size.saturating_mul(n as u64))
}

/// The bytes of all tensors.
fn total(weights: &[Weight], bytes: u64) -> Result<u64> {
    let total = weights.iter().fold(0, |sum: u64, weight| sum.saturating_add(size(weight, bytes)));
    if total < MOST {
        return Ok(total);
    }
    let problem = "asks for more bytes of weights than any disk could say";
    Err(Error::config("config.json", problem, "compare its sizes with those of a published checkpoint"))
}

/// The tensors of each file, in order.
fn shards(weights: &[Weight], bytes: u64) -> Vec<&[Weight]> {
    let (mut shards, mut start, mut sum) = (vec![], 0, 0);
    for (index, weight) in weights.iter().enumerate() {
        let size = size(weight, bytes);
        if index > start && sum + size > SHARD {
            shards.push(&weights[start..index]);
            (start, sum) = (index, 0);
        }
        sum += size;
    }
    shards.push(&weights[start..]);
    shards
}

/// The dtype that a checkpoint stores.
#[derive(Clone, Copy)]
struct Stored {
    name: &'static str,
    bytes: u64,
}

impl Stored {
    /// The one that `dtype` names, which older files call `torch_dtype`; float32 where there is none.
    fn of(config: &Json) -> Result<Self> {
        let places = [config, &config["text_config"]];
        let named = places.iter().find_map(|json| json["dtype"].as_str().or(json["torch_dtype"].as_str()));
        match named {
            None | Some("float32") => Ok(Self { name: "F32", bytes: 4 }),
            Some("float16") => Ok(Self { name: "F16", bytes: 2 }),
            Some("bfloat16") => Ok(Self { name: "BF16", bytes: 2 }),
            Some(other) => {
                let help = "write float32, float16 or bfloat16";
                Err(Error::config("config.json", format!("dtype: `{other}` is not read"), help))
            }
        }
    }

    /// The files of tensors, and the index of several; how many files.
    fn write(self, weights: &[Weight], out: &Path) -> Result<usize> {
        let shards = shards(weights, self.bytes);
        let mut map = Map::new();
        for (index, shard) in shards.iter().enumerate() {
            let name = match shards.len() {
                1 => "model.safetensors".to_owned(),
                count => format!("model-{:05}-of-{count:05}.safetensors", index + 1),
            };
            let path = out.join(&name);
            self.file(&path, shard).map_err(|e| Error::io(path, e))?;
            map.extend(shard.iter().map(|weight| (weight.name.clone(), name.clone().into())));
        }
        if shards.len() > 1 {
            let bytes = total(weights, self.bytes)?;
            let index = json!({"metadata": {"total_size": bytes}, "weight_map": map});
            let path = out.join("model.safetensors.index.json");
            fs::write(&path, format!("{index:#}\n")).map_err(|e| Error::io(path, e))?;
        }
        Ok(shards.len())
    }

    /// A file whose header is written, and whose data is a hole.
    fn file(self, path: &Path, weights: &[Weight]) -> std::io::Result<()> {
        let (mut header, mut end) = (Map::new(), 0);
        header.insert("__metadata__".to_owned(), json!({"format": "pt"}));
        for weight in weights {
            let start = end;
            end += size(weight, self.bytes);
            let tensor = json!({"dtype": self.name, "shape": weight.shape, "data_offsets": [start, end]});
            header.insert(weight.name.clone(), tensor);
        }
        let mut header = Json::Object(header).to_string();
        // Tensors begin where eight bytes are aligned.
        header.extend(std::iter::repeat_n(' ', header.len().next_multiple_of(8) - header.len()));
        let mut file = File::create(path)?;
        file.write_all(&(header.len() as u64).to_le_bytes())?;
        file.write_all(header.as_bytes())?;
        file.set_len(8 + header.len() as u64 + end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::Checkpoint;
    use crate::weights::{Files, Names, Weights};

    fn weight(name: &str, shape: &[usize]) -> Weight {
        Weight::new(name, shape)
    }

    #[test]
    fn a_file_of_zeros_opens_like_a_published_one() {
        let folder = tempfile::tempdir().unwrap();
        let weights = [weight("a", &[1_000_000, 1000]), weight("b.weight", &[3])];
        let stored = Stored::of(&json!({"text_config": {"dtype": "bfloat16"}})).unwrap();
        stored.file(&folder.path().join("model.safetensors"), &weights).unwrap();
        let checkpoint = Checkpoint::open(folder.path().to_str().unwrap()).unwrap();
        let files = Weights::Files(Files::open(&checkpoint).unwrap());
        assert_eq!(files.size(), 2_000_000_006);
        let located = files.locate(&weights, &Names::default()).unwrap();
        assert_eq!(located[0].dtype, crate::Dtype::Bf16);
        #[cfg(target_os = "linux")]
        {
            let blocks = std::os::unix::fs::MetadataExt::blocks(
                &fs::metadata(folder.path().join("model.safetensors")).unwrap(),
            );
            assert!(blocks < 100, "{blocks} blocks");
        }
    }

    #[test]
    fn components_of_a_pipeline_have_folders_of_their_own() {
        let config =
            json!({"_class_name": "APipeline", "vae": {"a": 1}, "unet": {}, "scale": 2, "tokenizer": {}});
        let weights = [weight("unet.b.c", &[1]), weight("vae.d", &[2]), weight("unet.e", &[3])];
        let (index, components) = components(&config, Some("APipeline"), &weights).unwrap();
        let own = json!(["diffusers", "ModelMixin"]);
        assert_eq!(index, json!({"_class_name": "APipeline", "vae": own, "unet": own, "scale": 2}));
        let names: Vec<&str> = components["unet"].iter().map(|weight| &*weight.name).collect();
        assert_eq!((components.len(), names), (2, vec!["b.c", "e"]));
        assert!(super::components(&json!({"model_type": "bert"}), Some("BertModel"), &weights).is_none());
        assert!(super::components(&config, Some("APipeline"), &[weight("a", &[1])]).is_none());
    }

    #[test]
    fn large_checkpoints_are_cut_between_tensors() {
        let weights =
            [weight("a", &[600_000_000]), weight("b", &[600_000_000]), weight("c", &[2_000_000_000])];
        let lengths: Vec<usize> = shards(&weights, 4).iter().map(|shard| shard.len()).collect();
        assert_eq!(lengths, [2, 1], "the second would just fit, the third never does");
        assert_eq!(shards(&weights, 2).len(), 2);
        assert_eq!(shards(&weights[..1], 2).len(), 1);
    }

    #[test]
    fn more_bytes_than_a_number_holds_are_refused() {
        let vast = weight("a", &[usize::MAX, 1 << 20]);
        for weights in [&[vast.clone()][..], &[weight("b", &[3]), vast]] {
            let text = total(weights, 4).err().unwrap().to_string();
            assert!(text.contains("more bytes") && text.contains("\n  help: "), "{text}");
        }
        assert_eq!(total(&[weight("a", &[1000, 1000]), weight("b", &[])], 2).unwrap(), 2_000_002);
    }

    #[test]
    fn dtypes_that_are_not_read_are_refused() {
        let text = Stored::of(&json!({"dtype": "float8_e4m3fn"})).err().unwrap().to_string();
        assert!(text.contains("float8_e4m3fn") && text.contains("bfloat16"), "{text}");
        assert_eq!(Stored::of(&json!({"torch_dtype": "float16"})).unwrap().name, "F16");
        assert_eq!(Stored::of(&json!({})).unwrap().name, "F32");
    }
}
