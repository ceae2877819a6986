//! Which names split how.

use super::Split;
use super::Step::{Digits, Punctuation, Regex, Starts};
use super::expressions::*;

const GPT2: Split = Split {
    names: &[],
    before: &[],
    words: true,
    after: &[],
    ignore_merges: false,
    nfc: false,
    begins: false,
};
const REGEX: Split = Split { words: false, ..GPT2 };

/// Where llama.cpp departs from a published tokenizer, the latter is followed:
///
/// | split | published | llama.cpp |
/// |---|---|---|
/// | Cohere 2 MoE, Kimi, Youtu | capitals behind small letters begin a piece | they do not |
/// | GPT-4o, MiniMax M2, Mistral Nemo, Kimi | marks belong to letters | they do not |
/// | Cohere 2 MoE | digits before letters are by three from the left | from the right |
/// | Cohere 2 MoE, Trinity | digits are apart from what is before them | one or two are not |
/// | Trinity | Thai, Lao, Chinese and so on are apart | they are one; Thai's consonants are none of them |
/// | Laguna | breaks of lines may be of two characters | they are of one |
/// | DeepSeek LLM | digits are one by one | in runs |
/// | SuperBPE | digits of all scripts are by three | those of ASCII are |
/// | Kimi, MiniCPM 5 | pieces that are tokens are looked up first, or not | the other way |
pub const SPLITS: &[Split] = &[
    Split {
        names: &[
            "gpt-2",
            "phi-2",
            "exaone4",
            "a.x-4.0",
            "jais",
            "mellum",
            "gigachat",
            "granite-docling",
            "roberta-bpe",
        ],
        ..GPT2
    },
    Split { names: &["olmo", "mpt", "trillion", "modern-bert"], nfc: true, ..GPT2 },
    Split {
        names: &["starcoder", "refact", "smollm", "codeshell", "exaone", "mellum2", "minerva-7b"],
        before: &[Digits(true)],
        ..GPT2
    },
    Split { names: &["command-r"], before: &[Digits(true)], nfc: true, ..GPT2 },
    Split {
        names: &[
            "llama3",
            "llama-v3",
            "llama-bpe",
            "falcon3",
            "falcon-h1",
            "pixtral",
            "midm-2.0",
            "lfm2",
            "jina-v5-nano",
        ],
        before: &[Regex(LLAMA3)],
        ignore_merges: true,
        begins: true,
        ..REGEX
    },
    Split { names: &["dbrx", "smaug-bpe", "chatglm-bpe"], before: &[Regex(LLAMA3)], ..REGEX },
    Split { names: &["glm4"], before: &[Regex(LLAMA3)], ignore_merges: true, ..REGEX },
    Split { names: &["minicpm5"], before: &[Regex(DIGITS), Regex(MINICPM5)], ..REGEX },
    Split { names: &["jais-2"], before: &[Regex(JAIS2)], ..REGEX },
    Split {
        names: &["qwen2", "deepseek-r1-qwen", "megrez", "stablelm2", "hunyuan", "f2llmv2"],
        before: &[Regex(QWEN2)],
        nfc: true,
        ..REGEX
    },
    Split { names: &["solar-open", "kormo"], before: &[Regex(QWEN2)], ..REGEX },
    Split { names: &["laguna"], before: &[Starts(LINES), Regex(QWEN2)], ..REGEX },
    Split { names: &["qwen35"], before: &[Regex(QWEN35)], nfc: true, ..REGEX },
    Split { names: &["bailingmoe", "bailingmoe2"], before: &[Regex(BAILING)], nfc: true, ..REGEX },
    Split { names: &["seed-coder"], before: &[Regex(SEED)], nfc: true, ..REGEX },
    Split { names: &["exaone-moe"], before: &[Regex(EXAONE_MOE)], nfc: true, ..REGEX },
    Split { names: &["tekken"], before: &[Regex(TEKKEN)], ignore_merges: true, begins: true, ..REGEX },
    Split { names: &["gpt-4o", "llama4", "kanana2"], before: &[Regex(GPT4O)], ..REGEX },
    Split { names: &["granite-embed-multi-97m"], before: &[Regex(GPT4O)], ignore_merges: true, ..REGEX },
    Split { names: &["minimax-m2"], before: &[Regex(GPT4O)], nfc: true, ..REGEX },
    Split { names: &["tiny_aya", "cohere2moe"], before: &[Regex(COHERE_DIGITS), Regex(GPT4O)], ..REGEX },
    Split { names: &["youtu"], before: &[Regex(YOUTU_SCRIPTS), Regex(YOUTU)], ignore_merges: true, ..REGEX },
    Split { names: &["kimi-k2"], before: &[Regex(KIMI)], ignore_merges: true, ..REGEX },
    Split {
        names: &["deepseek-v3", "hunyuan-dense", "hy_v4", "joyai-llm"],
        before: &[Regex(DIGITS), Regex(KANA), Regex(DEEPSEEK3)],
        ..REGEX
    },
    Split {
        names: &["afmoe"],
        before: &[Regex(AFMOE_DIGITS), Regex(AFMOE_SCRIPTS), Regex(DEEPSEEK3)],
        ..REGEX
    },
    Split {
        names: &["deepseek-llm"],
        before: &[
            Regex(r"[\r\n]"),
            Regex(CASED),
            Regex(WIDE_PUNCTUATION),
            Regex(r"\s+$"),
            Regex(CJK),
            Digits(true),
        ],
        ..REGEX
    },
    Split {
        names: &["deepseek-coder"],
        before: &[Regex(r"[\r\n]"), Regex(r"\s?\p{L}+"), Regex(r"\s?\p{P}+"), Regex(CJK), Digits(true)],
        ..REGEX
    },
    Split {
        names: &["falcon"],
        before: &[Punctuation],
        after: &[Digits(false), Regex("[0-9][0-9][0-9]")],
        ..GPT2
    },
    Split { names: &["superbpe"], before: &[Regex(r"\p{N}+"), Regex(SUPERBPE_DIGITS)], ..REGEX },
    Split { names: &["bloom", "poro-chat", "gpt3-finnish"], before: &[Regex(BLOOM)], ..REGEX },
    Split { names: &["viking"], before: &[Regex(BLOOM), Digits(true)], ..REGEX },
];
