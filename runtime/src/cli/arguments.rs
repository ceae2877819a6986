//! The command line of `examples/run.rs` and of `weft run`.

use std::path::PathBuf;
use std::str::FromStr;

use serde_json::{Map, Value as Json, json};

use crate::tasks::Task;
use crate::{Hardware, Precision};

/// What is asked of a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Arguments {
    /// A folder, a hub id or a GGUF file.
    pub checkpoint: String,
    /// Texts, paths of files, or JSON as `transformers.pipeline` takes it; each line of standard input where there is none.
    pub inputs: Vec<String>,
    /// What to do; what the checkpoint's class is for where not given.
    pub task: Option<Task>,
    /// Where to run.
    pub hardware: Hardware,
    /// What to compute in.
    pub precision: Option<Precision>,
    /// Whether quantized weights are kept for the next time.
    pub cache: bool,
    /// What modules' weights are in.
    pub precision_of: Vec<(String, Precision)>,
    /// What cached keys and values are kept in.
    pub kv_cache: Option<Precision>,
    /// The reference's class to load.
    pub head: Option<String>,
    /// Threads within an operation.
    pub threads: Option<usize>,
    /// Of question answering: the text with the answers.
    pub context: Option<String>,
    /// Whether each input is what a user says, put into the checkpoint's chat template.
    pub chat: bool,
    /// Whether the answers are one JSON document.
    pub json: bool,
    /// Whether only the text of `--help` is wanted.
    pub help: bool,
    /// Of zero-shot tasks: the labels to choose from.
    pub labels: Vec<String>,
    /// Low-rank updates to add to the checkpoint's weights, and how much of each.
    pub lora: Vec<(PathBuf, f32)>,
    /// Of text generation: the checkpoint of a smaller model that drafts.
    pub assistant: Option<String>,
    /// Of text-to-audio: the checkpoint of a vocoder.
    pub vocoder: Option<String>,
    /// Parameters of the reference's pipeline.
    pub parameters: Map<String, Json>,
}

impl Default for Arguments {
    fn default() -> Self {
        Self {
            checkpoint: String::new(),
            inputs: vec![],
            task: None,
            hardware: Hardware::Auto,
            precision: None,
            cache: false,
            precision_of: vec![],
            kv_cache: None,
            head: None,
            threads: None,
            context: None,
            chat: false,
            json: false,
            help: false,
            labels: vec![],
            lora: vec![],
            assistant: None,
            vocoder: None,
            parameters: Map::new(),
        }
    }
}

const OPTIONS: [(&str, &str, &str); 17] = [
    ("--task", "TASK", "What to do; what the checkpoint's class is for where not given"),
    ("--hw", "HW", "auto (where not given), cpu, cuda, rocm, metal, openvino, qnn, webgpu or webnn"),
    (
        "--precision",
        "P",
        "f32 (where not given, but on qnn), f16, bf16, int8, int4, int4-mixed, int3 or int2",
    ),
    (
        "--precision-of",
        "MODULE=P",
        "A module's weights, by a part of its name or a pattern with `*`, in another precision; more than once for more",
    ),
    ("--cache", "", "Keep quantized weights on disk for the next time"),
    (
        "--kv-cache",
        "P",
        "Text generation: what cached keys and values are kept in: f32 (where not given), int8 or int4",
    ),
    ("--head", "CLASS", "The reference's class to load; the one that config.json names where not given"),
    ("--threads", "N", "Threads within an operation"),
    (
        "--chat",
        "",
        "Text generation: each input is what a user says, put into the checkpoint's chat template",
    ),
    ("--context", "TEXT", "question-answering: the text with the answers; inputs are the questions"),
    ("--label", "TEXT", "zero-shot tasks: a label to choose from; give it once for each"),
    (
        "--out",
        "FILE",
        "object-detection, zero-shot-object-detection, image-segmentation, mask-generation, depth-estimation, pose-estimation, keypoint-detection, keypoint-matching, text-detection: the image with what was found; object-tracking, zero-shot-object-tracking: the frames with their objects, a .gif file or a folder; image-super-resolution, image-matting: the image that is made; text-to-audio: the WAV file",
    ),
    (
        "--assistant",
        "CHECKPOINT",
        "Text generation: a smaller model of the same tokens that drafts (speculative decoding); the answers stay the same",
    ),
    ("--vocoder", "CHECKPOINT", "text-to-audio: what makes waveforms of spectrograms"),
    ("--set", "NAME=VALUE", "A parameter of the reference's pipeline: --set top_k=3"),
    ("--json", "", "One JSON document instead of plain text"),
    ("--help", "", "This text"),
];

impl Arguments {
    /// Takes the words apart; the error is for people.
    pub(super) fn parse(words: &[String]) -> Result<Self, String> {
        let mut parsed = Self::default();
        let mut alone = vec![];
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            if word == "--" {
                alone.extend(rest.by_ref().cloned());
                break;
            }
            if !word.starts_with('-') || word.len() == 1 {
                alone.push(word.clone());
                continue;
            }
            let (name, attached) = match word.split_once('=').filter(|_| word.starts_with("--")) {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (word.as_str(), None),
            };
            let name = if name == "-h" { "--help" } else { name };
            let Some((_, value, _)) = OPTIONS.iter().find(|(known, ..)| *known == name) else {
                return Err(format!("`{name}` is no option; an input that begins with `-` goes after `--`"));
            };
            if value.is_empty() {
                parsed.chat |= name == "--chat";
                parsed.json |= name == "--json";
                parsed.cache |= name == "--cache";
                parsed.help |= name == "--help";
                continue;
            }
            let given = attached.or_else(|| rest.next().cloned());
            let given = given.ok_or_else(|| format!("`{name}` needs a value: `{name} {value}`"))?;
            parsed.put(name, given)?;
        }
        let mut alone = alone.into_iter();
        match alone.next() {
            Some(checkpoint) => parsed.checkpoint = checkpoint,
            None if parsed.help => {}
            None => {
                return Err("CHECKPOINT is missing: a folder, or an id of the Hugging Face hub".to_owned());
            }
        }
        parsed.inputs = alone.collect();
        Ok(parsed)
    }

    fn put(&mut self, name: &str, value: String) -> Result<(), String> {
        let shown = |error: crate::Error| error.to_string();
        match name {
            "--task" => self.task = Some(value.parse().map_err(shown)?),
            "--hw" => self.hardware = Hardware::from_str(&value).map_err(shown)?,
            "--precision" => {
                self.precision = Some(Precision::from_str(&value).map_err(shown)?);
            }
            "--precision-of" => {
                let (module, precision) = value
                    .split_once('=')
                    .filter(|(module, _)| !module.is_empty())
                    .ok_or_else(|| format!("--precision-of: `{value}` is not MODULE=P"))?;
                self.precision_of.push((module.to_owned(), precision.parse().map_err(shown)?));
            }
            "--kv-cache" => {
                self.kv_cache = Some(Precision::from_str(&value).map_err(shown)?);
            }
            "--head" => self.head = Some(value),
            "--threads" => {
                self.threads =
                    Some(value.parse().map_err(|_| format!("--threads: `{value}` is no whole number"))?);
            }
            "--context" => self.context = Some(value),
            "--label" => self.labels.push(value),
            "--assistant" => self.assistant = Some(value),
            "--vocoder" => self.vocoder = Some(value),
            "--out" => _ = self.parameters.insert("out".to_owned(), value.into()),
            _ => self.set(&value)?,
        }
        Ok(())
    }

    /// Takes a parameter of the reference's pipeline: `top_k=3`.
    ///
    /// # Errors
    /// When there is no `=` in it; the error is for people.
    pub fn set(&mut self, parameter: &str) -> Result<(), String> {
        let (name, value) =
            parameter.split_once('=').ok_or_else(|| format!("--set: `{parameter}` is not NAME=VALUE"))?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        self.parameters.insert(name.to_owned(), value);
        Ok(())
    }

    /// The parameters of the pipeline.
    pub(super) fn all_parameters(&self) -> Json {
        let mut parameters = self.parameters.clone();
        if !self.labels.is_empty() {
            parameters.insert("candidate_labels".to_owned(), json!(self.labels));
        }
        if parameters.is_empty() { Json::Null } else { Json::Object(parameters) }
    }
}

/// The text of `--help`.
pub(super) fn help(name: &str, tasks: &[Task]) -> String {
    let mut text = format!(
        "Runs {name} checkpoints.\n\nUsage: run CHECKPOINT [INPUT]... [options]\n\n  \
         CHECKPOINT  a folder, or an id of the Hugging Face hub\n  \
         INPUT       a text, the path of an image, audio or video file, or JSON as `transformers.pipeline` takes it;\n              \
         without any, each line of standard input\n\nOptions:\n"
    );
    for (option, value, what) in OPTIONS {
        text.push_str(&format!("  {:<25}{what}\n", format!("{option} {value}")));
    }
    let names: Vec<_> = tasks.iter().map(|task| task.name()).collect();
    if !names.is_empty() {
        text.push_str(&format!("\nTasks: {}\n", names.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Arguments, String> {
        Arguments::parse(&text.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_stand_anywhere() {
        let arguments = parse("--hw cpu dir one --set top_k=3 --label a --label=b -- -two").unwrap();
        assert_eq!((arguments.checkpoint.as_str(), arguments.hardware), ("dir", Hardware::Cpu));
        assert_eq!(arguments.inputs, ["one", "-two"]);
        assert_eq!(arguments.all_parameters(), json!({"top_k": 3, "candidate_labels": ["a", "b"]}));
        assert_eq!(parse("dir").unwrap().all_parameters(), Json::Null);
        let modules =
            parse("dir --precision int4 --precision-of vision_tower=f32 --precision-of *.v_proj=int8")
                .unwrap();
        let named = |name: &str, precision| (name.to_owned(), precision);
        assert_eq!(
            modules.precision_of,
            [named("vision_tower", Precision::F32), named("*.v_proj", Precision::Int8)]
        );
        assert!(parse("-h").unwrap().help && parse("dir --json").unwrap().json);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let problem = |text: &str| parse(text).unwrap_err();
        insta::assert_snapshot!(problem("--json"), @"CHECKPOINT is missing: a folder, or an id of the Hugging Face hub");
        insta::assert_snapshot!(problem("dir --hw"), @"`--hw` needs a value: `--hw HW`");
        insta::assert_snapshot!(problem("dir -x"), @"`-x` is no option; an input that begins with `-` goes after `--`");
        insta::assert_snapshot!(problem("dir --threads two"), @"--threads: `two` is no whole number");
        insta::assert_snapshot!(problem("dir --set top_k"), @"--set: `top_k` is not NAME=VALUE");
        insta::assert_snapshot!(problem("dir --precision-of int8"), @"--precision-of: `int8` is not MODULE=P");
        let precision = problem("dir --precision f8");
        assert!(
            precision.contains("`f8` is no precision") && precision.contains("int4-mixed"),
            "{precision}"
        );
        assert!(problem("dir --hw gpu").contains("unknown backend `gpu`"));
        assert!(problem("dir --task x").contains("unknown task `x`"));
    }

    #[test]
    fn help_lists_options_and_tasks() {
        insta::assert_snapshot!(help("bert", &[Task::FillMask, Task::QuestionAnswering]), @r"
        Runs bert checkpoints.

        Usage: run CHECKPOINT [INPUT]... [options]

          CHECKPOINT  a folder, or an id of the Hugging Face hub
          INPUT       a text, the path of an image, audio or video file, or JSON as `transformers.pipeline` takes it;
                      without any, each line of standard input

        Options:
          --task TASK              What to do; what the checkpoint's class is for where not given
          --hw HW                  auto (where not given), cpu, cuda, rocm, metal, openvino, qnn, webgpu or webnn
          --precision P            f32 (where not given, but on qnn), f16, bf16, int8, int4, int4-mixed, int3 or int2
          --precision-of MODULE=P  A module's weights, by a part of its name or a pattern with `*`, in another precision; more than once for more
          --cache                  Keep quantized weights on disk for the next time
          --kv-cache P             Text generation: what cached keys and values are kept in: f32 (where not given), int8 or int4
          --head CLASS             The reference's class to load; the one that config.json names where not given
          --threads N              Threads within an operation
          --chat                   Text generation: each input is what a user says, put into the checkpoint's chat template
          --context TEXT           question-answering: the text with the answers; inputs are the questions
          --label TEXT             zero-shot tasks: a label to choose from; give it once for each
          --out FILE               object-detection, zero-shot-object-detection, image-segmentation, mask-generation, depth-estimation, pose-estimation, keypoint-detection, keypoint-matching, text-detection: the image with what was found; object-tracking, zero-shot-object-tracking: the frames with their objects, a .gif file or a folder; image-super-resolution, image-matting: the image that is made; text-to-audio: the WAV file
          --assistant CHECKPOINT   Text generation: a smaller model of the same tokens that drafts (speculative decoding); the answers stay the same
          --vocoder CHECKPOINT     text-to-audio: what makes waveforms of spectrograms
          --set NAME=VALUE         A parameter of the reference's pipeline: --set top_k=3
          --json                   One JSON document instead of plain text
          --help                   This text

        Tasks: fill-mask, question-answering
        ");
    }
}
