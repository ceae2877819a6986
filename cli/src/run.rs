//! `weft run`: a checkpoint's task on inputs of the command line.

use std::io;

use weft::cli::{self, Arguments};
use weft::{Result, Task};

use crate::options::{self, LoadOptions};
use crate::terminal::bad_input;

/// Runs a checkpoint's task: what its class is for, found by `model_type`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  weft run sentence-transformers/all-MiniLM-L6-v2 \"A warp thread.\" --json
  weft run ./detr image.png --out boxes.png
  weft run ./stable-diffusion \"A loom at night.\" --out loom.png --set seed=42
  weft run sd-v1-5.safetensors \"A loom at night.\" --out loom.png
  weft run ./whisper --hw auto speech.wav
  weft run ./Qwen3-8B \"A warp thread\" --assistant ./Qwen3-0.6B
  weft run ./speecht5 \"Good morning.\" --vocoder ./hifigan --set speaker_embeddings=voice.npy --out speech.wav
  weft run ./bert-qa \"Who wove it?\" \"The cloth was woven by Anni.\"")]
pub struct Args {
    /// A folder, an id of the Hugging Face hub, a GGUF file, or a diffusion checkpoint in one safetensors file.
    checkpoint: String,
    /// A text, the path of an image, audio or video file, or JSON as `transformers.pipeline` takes it; without any, each line
    /// of standard input.
    #[arg(value_name = "INPUT")]
    inputs: Vec<String>,
    /// What to do; what the checkpoint's class is for where not given.
    #[arg(long, value_name = "TASK", value_parser = options::task(), hide_possible_values = true)]
    task: Option<Task>,
    #[command(flatten)]
    load: LoadOptions,
    /// Text generation: each input is what a user says, put into the checkpoint's chat template.
    #[arg(long)]
    chat: bool,
    /// Question answering: the text with the answers; inputs are the questions.
    #[arg(long, value_name = "TEXT")]
    context: Option<String>,
    /// Zero-shot tasks: a label to choose from; give it once for each.
    #[arg(long = "label", value_name = "TEXT")]
    labels: Vec<String>,
    /// Object and text detection, image segmentation, depth and pose estimation, keypoint detection and matching: the image with what was found drawn onto it;
    /// object tracking: the frames with their objects, an animated GIF or a folder;
    /// text-to-image, super-resolution, matting: the image; text-to-audio: the WAV file.
    #[arg(long, value_name = "FILE")]
    out: Option<String>,
    /// Text-to-image with a ControlNet: the image that it follows.
    #[arg(long, value_name = "FILE")]
    control_image: Option<String>,
    /// Text generation: the checkpoint of a smaller model of the same tokens that drafts (speculative decoding); the answers stay the same.
    #[arg(long, value_name = "CHECKPOINT")]
    assistant: Option<String>,
    /// Text-to-audio: the checkpoint of a vocoder, which makes waveforms of spectrograms.
    #[arg(long, value_name = "CHECKPOINT")]
    vocoder: Option<String>,
    /// A parameter of the reference's pipeline: `--set top_k=3`.
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Print one JSON document instead of plain text.
    #[arg(long)]
    json: bool,
}

/// Runs the verb; whether every input was answered.
pub fn run(args: Args) -> Result<bool> {
    let mut arguments = Arguments {
        checkpoint: args.checkpoint,
        inputs: args.inputs,
        task: args.task,
        chat: args.chat,
        context: args.context,
        labels: args.labels,
        json: args.json,
        hardware: args.load.hardware,
        precision: args.load.precision,
        precision_of: args.load.precision_of,
        kv_cache: args.load.kv_cache,
        cache: args.load.cache,
        head: args.load.class,
        threads: args.load.threads,
        lora: args.load.lora,
        assistant: args.assistant,
        vocoder: args.vocoder,
        ..Arguments::default()
    };
    for parameter in &args.set {
        let help = "write `--set top_k=3`";
        arguments.set(parameter).map_err(|problem| bad_input("--set", problem, help))?;
    }
    for (name, file) in [("out", args.out), ("control_image", args.control_image)] {
        if let Some(file) = file {
            arguments.parameters.insert(name.to_owned(), file.into());
        }
    }
    cli::run(&arguments, weft_models::loader, &mut io::stdout())
}
