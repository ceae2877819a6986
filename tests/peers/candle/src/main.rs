//! candle's own Llama in float32: `weft-peer-candle DIR TOKENS`; threads by `RAYON_NUM_THREADS`.
//!
//! Answers as `tests/peers/serving.py` says: ready, then for each `run N` the milliseconds of N prompts and of the mean
//! token after each.

use std::io::BufRead;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::llama::{Cache, Config, Llama, LlamaConfig};
use serde_json::json;

struct Peer {
    model: Llama,
    config: Config,
    prompt: Tensor,
    length: usize,
}

impl Peer {
    fn open(folder: &std::path::Path) -> Result<Self> {
        let text = std::fs::read_to_string(folder.join("config.json"))?;
        let mut fields: serde_json::Value = serde_json::from_str(&text)?;
        // Where today's files keep it; candle reads the older place.
        fields["rope_theta"] = fields["rope_parameters"]["rope_theta"].clone();
        let config: LlamaConfig = serde_json::from_value(fields)?;
        let config = config.into_config(false);
        let device = Device::Cpu;
        // SAFETY: nothing else writes the file while it is mapped.
        let weights = unsafe {
            VarBuilder::from_mmaped_safetensors(&[folder.join("model.safetensors")], DType::F32, &device)?
        };
        let model = Llama::load(weights, &config)?;
        let inputs = candle_core::safetensors::load(folder.join("inputs.safetensors"), &device)?;
        let prompt = inputs.get("in.input_ids").context("no in.input_ids")?.clone();
        let length = prompt.dim(1)?;
        Ok(Self { model, config, prompt, length })
    }

    /// The milliseconds of the prompt, and of one token in the mean.
    fn round(&self, tokens: usize) -> Result<(f64, f64)> {
        let mut cache = Cache::new(true, DType::F32, &self.config, &Device::Cpu)?;
        let start = Instant::now();
        let mut next = self.likeliest(&self.prompt, 0, &mut cache)?;
        let prefill = start.elapsed();
        for index in 0..tokens {
            let ids = Tensor::new(&[[next]], &Device::Cpu)?;
            next = self.likeliest(&ids, self.length + index, &mut cache)?;
        }
        let decode = start.elapsed() - prefill;
        Ok((prefill.as_secs_f64() * 1e3, decode.as_secs_f64() * 1e3 / tokens as f64))
    }

    fn likeliest(&self, ids: &Tensor, position: usize, cache: &mut Cache) -> Result<u32> {
        let logits = self.model.forward(ids, position, cache)?;
        Ok(logits.squeeze(0)?.argmax(0)?.to_scalar::<u32>()?)
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, tokens] = arguments.as_slice() else { bail!("usage: DIR TOKENS") };
    let tokens: usize = tokens.parse().context("TOKENS is no number")?;
    let start = Instant::now();
    let peer = Peer::open(&PathBuf::from(folder))?;
    let load_ms = start.elapsed().as_secs_f64() * 1e3;
    let ready = json!({"ready": true, "peer": "candle", "version": VERSION, "threads": candle_core::utils::get_num_threads(), "load_ms": load_ms});
    println!("{ready}");
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let Some(rounds) = line.strip_prefix("run ").and_then(|rounds| rounds.trim().parse().ok()) else {
            break;
        };
        let (mut prefill, mut token) = (vec![], vec![]);
        for _ in 0..rounds {
            let (first, further) = peer.round(tokens)?;
            prefill.push(first);
            token.push(further);
        }
        println!("{}", json!({"ms": {"prefill": prefill, "token": token}}));
    }
    Ok(())
}

/// As pinned in `Cargo.toml`.
const VERSION: &str = "0.11.1";
