//! What is measured: models at the shapes of published checkpoints, and what each measure is to reach.

/// A model with its inputs, as `tests/peers/published` describes them.
pub struct Work {
    /// The name there, and of its folder.
    pub name: &'static str,
    /// A quantized file within the checkpoint that is opened in its place.
    pub gguf: Option<&'static str>,
    /// What weft is told to compute in; the peers compute in what the checkpoint is stored in.
    pub precision: Option<Precision>,
    /// The generated crate.
    pub model: &'static str,
    pub title: &'static str,
    /// Tokens to generate; 0 for a forward pass.
    pub tokens: usize,
    pub measures: &'static [Measure],
    /// Peers beside PyTorch.
    pub peers: &'static [Peer],
    /// Whether opening is held to limits of its own.
    pub opens_at_once: bool,
}

/// A precision that is asked for.
#[derive(Clone, Copy)]
pub struct Precision {
    /// Its name on the command line.
    pub name: &'static str,
    /// Bytes of its weights for one of the checkpoint's.
    pub share: f64,
}

/// Whole numbers in groups of 32, with a scale of 16 bits for each.
const fn whole(name: &'static str, bits: f64, stored: f64) -> Option<Precision> {
    Some(Precision { name, share: (bits + 0.5) / stored })
}

const INT4: Option<Precision> = whole("int4", 4.0, 16.0);
const INT8: Option<Precision> = whole("int8", 8.0, 32.0);
const BF16: Option<Precision> = Some(Precision { name: "bf16", share: 1.0 });

/// One row of the table.
pub struct Measure {
    /// What contenders call it: `run`, `prefill` or `token`.
    pub key: &'static str,
    pub what: &'static str,
    /// The most that the time may be of a peer's, to be met.
    pub goals: &'static [(&'static str, f64)],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    LlamaCpp,
    /// The same of a file in bfloat16; it rounds what it multiplies with to bfloat16 too.
    LlamaCppBf16,
    /// llama.cpp in 4 bits, blocks of 32.
    LlamaCppQ4_0,
    /// llama.cpp in 4 bits, blocks of 256, with some layers in 6 bits.
    LlamaCppQ4KM,
    /// llama.cpp in 8 bits, blocks of 32.
    LlamaCppQ8_0,
    Candle,
}

pub const PYTORCH: &str = "pytorch";
pub const LLAMA_CPP: &str = "llama.cpp";
pub const LLAMA_CPP_BF16: &str = "llama.cpp bf16";
pub const LLAMA_CPP_Q4_0: &str = "llama.cpp Q4_0";
pub const LLAMA_CPP_Q4_K_M: &str = "llama.cpp Q4_K_M";
pub const LLAMA_CPP_Q8_0: &str = "llama.cpp Q8_0";
pub const CANDLE: &str = "candle";

impl Peer {
    pub fn name(self) -> &'static str {
        match self {
            Self::LlamaCpp => LLAMA_CPP,
            Self::LlamaCppBf16 => LLAMA_CPP_BF16,
            Self::LlamaCppQ4_0 => LLAMA_CPP_Q4_0,
            Self::LlamaCppQ4KM => LLAMA_CPP_Q4_K_M,
            Self::LlamaCppQ8_0 => LLAMA_CPP_Q8_0,
            Self::Candle => CANDLE,
        }
    }
}

/// The file of a checkpoint that llama.cpp reads under one of these names.
pub fn gguf(peer: &str) -> Option<&'static str> {
    Some(match peer {
        LLAMA_CPP => "model.gguf",
        LLAMA_CPP_BF16 => "model-bf16.gguf",
        LLAMA_CPP_Q4_0 => Q4_0,
        LLAMA_CPP_Q4_K_M => "model-q4_k_m.gguf",
        LLAMA_CPP_Q8_0 => Q8_0,
        _ => return None,
    })
}

const Q4_0: &str = "model-q4_0.gguf";
const Q8_0: &str = "model-q8_0.gguf";

/// The most of PyTorch's time where a row has no goal of its own.
const USUAL: &[(&str, f64)] = &[(PYTORCH, 0.75)];

const fn forward(
    name: &'static str,
    model: &'static str,
    title: &'static str,
    measures: &'static [Measure],
) -> Work {
    Work {
        name,
        gguf: None,
        precision: None,
        model,
        title,
        tokens: 0,
        measures,
        peers: &[],
        opens_at_once: false,
    }
}

/// In bfloat16, as PyTorch too computes where the checkpoint is stored in it.
const fn in_bf16(work: &Work) -> Work {
    Work { precision: BF16, ..*work }
}

/// Vision models in a forward pass of an image or a video.
const fn vision(name: &'static str, title: &'static str, measures: &'static [Measure]) -> Work {
    forward(name, name, title, measures)
}

/// What vision models are to reach.
const fn seen(what: &'static str) -> Measure {
    Measure { key: "run", what, goals: &[(PYTORCH, 0.6)] }
}

/// Vision models whose weights and inputs of layers are rounded to 8 bits; PyTorch computes in float32.
const fn in_8_bits(name: &'static str, title: &'static str, measures: &'static [Measure]) -> Work {
    Work { precision: INT8, ..vision(name, title, measures) }
}

/// What these are to reach.
const fn seen_in_8_bits(what: &'static str) -> Measure {
    Measure { key: "run", what, goals: &[(PYTORCH, 0.4)] }
}

const fn state_space(name: &'static str, model: &'static str, title: &'static str) -> Work {
    Work {
        // Steps behind a prompt grow shorter over the first sixteen (Mamba-130M: 13.2 to 10.8 ms), so that fewer say little of those
        // that follow. Why they do, and whether the peers' do, was not measured.
        tokens: 64,
        peers: &[Peer::LlamaCpp],
        measures: &[
            Measure { key: "prefill", what: "prompt of 512 tokens", goals: &[(PYTORCH, 0.5)] },
            Measure {
                key: "token",
                what: "a token after it",
                goals: &[(PYTORCH, 1.0 / 3.0), (LLAMA_CPP, 1.0)],
            },
        ],
        ..forward(name, model, title, &[])
    }
}

/// What denoisers of diffusion are to reach.
const fn denoised(what: &'static str) -> Measure {
    Measure { key: "run", what, goals: &[(PYTORCH, 0.7)] }
}

const fn run(what: &'static str) -> Measure {
    Measure { key: "run", what, goals: USUAL }
}

/// A decoder behind a prompt, which is to take so much of PyTorch's time.
const fn decoder(name: &'static str, title: &'static str, measures: &'static [Measure]) -> Work {
    Work { tokens: 16, ..forward(name, name, title, measures) }
}

/// The prompt of a vision-language model, which is to take half of PyTorch's time.
const fn prefill(what: &'static str) -> Measure {
    Measure { key: "prefill", what, goals: &[(PYTORCH, 0.5)] }
}

const TOKEN: Measure = Measure { key: "token", what: "a token after it", goals: &[(PYTORCH, 0.5)] };

const SMOLVLM: &[Measure] = &[prefill("1 image of 512 px, 64 tokens"), TOKEN];
const QWEN2_VL: &[Measure] = &[prefill("1 image of 448 px, 64 tokens"), TOKEN];
const LLAVA: &[Measure] = &[prefill("1 image of 336 px, 64 tokens"), TOKEN];

const fn llama(name: &'static str, title: &'static str) -> Work {
    Work {
        name,
        gguf: None,
        precision: None,
        model: "llama",
        title,
        tokens: 16,
        measures: &[
            Measure { key: "prefill", what: "prompt of 128 tokens", goals: USUAL },
            Measure {
                key: "token",
                what: "a token after it",
                goals: &[(PYTORCH, 0.5), (LLAMA_CPP, 1.0 / 1.2), (CANDLE, 1.0)],
            },
        ],
        peers: &[],
        opens_at_once: true,
    }
}

/// The checkpoint in bfloat16, quantized by llama.cpp: both read the same file, and llama.cpp others beside it.
const fn quantized(
    gguf: &'static str,
    title: &'static str,
    peers: &'static [Peer],
    measures: &'static [Measure],
) -> Work {
    Work { gguf: Some(gguf), peers, measures, ..llama("llama-bf16", title) }
}

/// Layers of OLMoE with more or fewer experts: a token's time grows with those that it uses.
const fn experts(name: &'static str, title: &'static str) -> Work {
    Work {
        name,
        precision: BF16,
        ..decoder("olmoe", title, &[Measure { key: "token", what: "a token behind 128", goals: &[] }])
    }
}

pub const WORKS: [Work; 47] = [
    forward("vit", "vit", "ViT-base", &[run("1 image, 224 px")]),
    forward("vit-8", "vit", "ViT-base", &[run("8 images, 224 px")]),
    forward("clip", "clip", "CLIP-base (ViT-B/32)", &[run("1 image, 2 texts of 16 tokens")]),
    Work { tokens: 64, ..forward("whisper", "whisper", "Whisper-tiny", &[run("30 s of sound, 64 tokens")]) },
    forward("wav2vec2", "wav2vec2", "wav2vec2-base", &[run("10 s of sound")]),
    Work { tokens: 32, ..forward("t5", "t5", "T5-small", &[run("32 tokens in, 32 out")]) },
    forward("detr", "detr", "DETR-R50", &[run("1 image, 800 x 1066 px")]),
    vision("segformer", "SegFormer-B0", &[seen("1 image, 512 px")]),
    in_8_bits("segformer", "SegFormer-B0 in 8 bits", &[seen_in_8_bits("1 image, 512 px")]),
    vision("rt_detr", "RT-DETR-R18", &[seen("1 image, 640 px")]),
    in_8_bits("rt_detr", "RT-DETR-R18 in 8 bits", &[seen_in_8_bits("1 image, 640 px")]),
    vision("sam", "SAM ViT-B", &[seen("1 image, 1024 px, 1 point")]),
    vision("depth_anything", "Depth-Anything-S", &[seen("1 image, 518 px")]),
    vision("videomae", "VideoMAE-B", &[seen("16 frames, 224 px")]),
    vision("mobilevit", "MobileViT-S", &[seen("1 image, 256 px")]),
    in_8_bits("mobilevit", "MobileViT-S in 8 bits", &[seen_in_8_bits("1 image, 256 px")]),
    vision("convnext", "ConvNeXT-T", &[seen("1 image, 224 px")]),
    in_8_bits("convnext", "ConvNeXT-T in 8 bits", &[seen_in_8_bits("1 image, 224 px")]),
    vision("swin", "Swin-T", &[seen("1 image, 224 px")]),
    forward("bert", "bert", "BERT-base", &[run("1 text of 128 tokens")]),
    forward("perceiver", "perceiver", "Perceiver (language)", &[run("1 text of 2048 bytes")]),
    forward("patchtst", "patchtst", "PatchTST", &[run("7 series of 512 steps")]),
    forward("unet", "unet-2d-condition", "UNet of Stable Diffusion 1.5", &[denoised("2 latents of 64 x 64")]),
    in_bf16(&forward(
        "sdxl_unet",
        "unet-2d-condition",
        "UNet of Stable Diffusion XL in bfloat16",
        &[denoised("1 latent of 128 x 128")],
    )),
    in_bf16(&forward(
        "z_image",
        "z-image-transformer-2d",
        "Transformer of Z-Image in bfloat16, 8 of 30 layers",
        &[denoised("1 latent of 64 x 64, 64 tokens")],
    )),
    forward(
        "vae",
        "autoencoder-kl",
        "Autoencoder of Stable Diffusion 1.5",
        &[denoised("1 image of 512 px, there and back")],
    ),
    in_bf16(&decoder("smolvlm", "SmolVLM-500M in bfloat16", SMOLVLM)),
    Work { precision: INT4, ..decoder("smolvlm", "SmolVLM-500M in 4 bits", SMOLVLM) },
    in_bf16(&decoder("qwen2_vl", "Qwen2-VL-2B in bfloat16", QWEN2_VL)),
    Work { precision: INT4, ..decoder("qwen2_vl", "Qwen2-VL-2B in 4 bits", QWEN2_VL) },
    in_bf16(&decoder("llava", "LLaVA-1.5-7B in bfloat16, 8 of 32 layers", LLAVA)),
    Work { precision: INT4, ..decoder("llava", "LLaVA-1.5-7B in 4 bits, 8 of 32 layers", LLAVA) },
    in_bf16(&decoder(
        "granitemoe",
        "Granite MoE 1B-A400M in bfloat16",
        &[
            Measure { key: "prefill", what: "prompt of 128 tokens", goals: USUAL },
            Measure { key: "token", what: "a token after it", goals: USUAL },
        ],
    )),
    Work {
        precision: BF16,
        peers: &[Peer::LlamaCppBf16],
        ..decoder(
            "olmoe",
            "OLMoE-1B-7B in bfloat16, 4 of 16 layers",
            &[
                Measure { key: "prefill", what: "prompt of 128 tokens", goals: USUAL },
                Measure {
                    key: "token",
                    what: "a token after it",
                    goals: &[(PYTORCH, 0.75), (LLAMA_CPP_BF16, 1.0)],
                },
            ],
        )
    },
    experts("experts-2-of-64", "2 of 64 experts in bfloat16, 2 layers of OLMoE"),
    experts("experts-8-of-8", "8 of 8 experts in bfloat16, 2 layers of OLMoE"),
    experts("experts-8-of-64", "8 of 64 experts in bfloat16, 2 layers of OLMoE"),
    experts("experts-8-of-256", "8 of 256 experts in bfloat16, 2 layers of OLMoE"),
    experts("experts-32-of-64", "32 of 64 experts in bfloat16, 2 layers of OLMoE"),
    state_space("mamba", "mamba", "Mamba-130M"),
    Work {
        precision: BF16,
        peers: &[Peer::LlamaCpp, Peer::LlamaCppBf16],
        ..state_space("mamba-bf16", "mamba", "Mamba-130M in bfloat16")
    },
    state_space("mamba2", "mamba2", "Mamba2-130M"),
    Work {
        precision: BF16,
        peers: &[Peer::LlamaCpp, Peer::LlamaCppBf16],
        ..state_space("mamba2-bf16", "mamba2", "Mamba2-130M in bfloat16")
    },
    Work { peers: &[Peer::LlamaCpp, Peer::Candle], ..llama("llama", "Llama 1.1B") },
    Work {
        precision: BF16,
        peers: &[Peer::LlamaCpp, Peer::Candle, Peer::LlamaCppBf16],
        ..llama("llama-bf16", "Llama 1.1B in bfloat16")
    },
    quantized(
        Q4_0,
        "Llama 1.1B in 4 bits (Q4_0)",
        &[Peer::LlamaCppQ4_0, Peer::LlamaCppQ4KM],
        &[
            Measure {
                key: "prefill",
                what: "prompt of 128 tokens",
                goals: &[(LLAMA_CPP_Q4_0, 0.5), (LLAMA_CPP_Q4_K_M, 0.5)],
            },
            Measure {
                key: "token",
                what: "a token after it",
                goals: &[(LLAMA_CPP_Q4_0, 1.0 / 1.1), (LLAMA_CPP_Q4_K_M, 1.0 / 1.1)],
            },
        ],
    ),
    quantized(
        Q8_0,
        "Llama 1.1B in 8 bits (Q8_0)",
        &[Peer::LlamaCppQ8_0],
        &[
            Measure { key: "prefill", what: "prompt of 128 tokens", goals: &[(LLAMA_CPP_Q8_0, 0.5)] },
            Measure { key: "token", what: "a token after it", goals: &[(LLAMA_CPP_Q8_0, 1.0 / 1.1)] },
        ],
    ),
];

/// The rows of these models, or of these titles; all where none is named.
pub fn selected(named: &[String]) -> Vec<&'static Work> {
    WORKS.iter().filter(|work| named.is_empty() || named.iter().any(|name| work.is_named(name))).collect()
}

impl Work {
    /// Whether it is of this model, or has this title.
    pub fn is_named(&self, name: &str) -> bool {
        self.model == name || self.title.eq_ignore_ascii_case(name)
    }
}
