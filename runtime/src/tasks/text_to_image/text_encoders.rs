//! The text encoders of pipelines: what becomes of prompts before they are tokenized, and what of their hidden states.

use crate::GraphKind;

/// A text encoder and its tokenizer.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextEncoder {
    pub name: &'static str,
    pub tokenizer: &'static str,
    pub kind: GraphKind,
    /// `max_sequence_length` where it is not given; of CLIP as many tokens as it has positions.
    pub length: Option<usize>,
    /// Whether pipelines are published without it.
    pub optional: bool,
    /// Whether prompts are messages of a chat.
    pub chat: Option<Chat>,
    /// What stands before prompts and behind them.
    pub around: [&'static str; 2],
    /// Whether negative prompts stand there too.
    pub around_negatives: bool,
    /// Whether prompts lose capitals, and spaces around them.
    pub lowercase: bool,
    /// Whether texts are padded to the longest of them, and not to the length.
    pub longest: bool,
    pub padding: Padding,
    pub mask: Mask,
    pub kept: Kept,
}

/// A chat that prompts are messages of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chat {
    /// The user's, before an answer that is thought about or not (`enable_thinking`).
    Answered { thinking: bool },
    /// The user's, behind this message of the system; both are lists of parts.
    Instructed(&'static str),
}

/// Where texts are padded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Padding {
    /// Behind them.
    Right,
    /// Where the tokenizer's configuration says.
    Tokenizer,
    /// The same, then before them, to a multiple of so many tokens.
    Multiple(usize),
}

/// Who sees which tokens are padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mask {
    /// Nobody.
    None,
    /// The text encoder.
    Encoder,
    /// The text encoder, and its hidden states of padding are zeros.
    Zeros,
    /// The text encoder and the denoiser, under this name.
    Denoiser(&'static str),
    /// The text encoder, and the denoiser is told how many tokens are none, under this name.
    Lengths(&'static str),
    /// The text encoder, and with the first token of padding the denoiser, before the image's tokens (`attention_mask`).
    Joint,
}

/// The tokens whose hidden states the denoiser sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    All,
    /// Those behind so many.
    Behind(usize),
    /// The first, and the last ones of which, where nothing stands before a prompt, there would be as many.
    FirstAndLast,
}

pub(super) const CLIP: TextEncoder = TextEncoder {
    name: "text_encoder",
    tokenizer: "tokenizer",
    kind: GraphKind::TextEncoder,
    length: None,
    optional: false,
    chat: None,
    around: ["", ""],
    around_negatives: false,
    lowercase: false,
    longest: false,
    padding: Padding::Right,
    mask: Mask::None,
    kept: Kept::All,
};
pub(super) const CLIP_2: TextEncoder =
    TextEncoder { name: "text_encoder_2", tokenizer: "tokenizer_2", kind: GraphKind::TextEncoder2, ..CLIP };
/// BERT, and T5 beside it.
pub(super) const HUNYUAN_DIT: [TextEncoder; 2] = [
    TextEncoder { length: Some(77), mask: Mask::Denoiser("text_embedding_mask"), ..CLIP },
    TextEncoder { length: Some(256), mask: Mask::Denoiser("text_embedding_mask_t5"), ..CLIP_2 },
];
/// T5 behind two others, which may be left out.
pub(super) const T5_3: TextEncoder = TextEncoder {
    name: "text_encoder_3",
    tokenizer: "tokenizer_3",
    kind: GraphKind::TextEncoder3,
    length: Some(256),
    optional: true,
    ..CLIP
};
pub(super) const PIXART_ALPHA: TextEncoder = TextEncoder {
    length: Some(120),
    lowercase: true,
    mask: Mask::Denoiser("encoder_attention_mask"),
    ..CLIP
};
pub(super) const CHROMA: TextEncoder = TextEncoder { length: Some(512), mask: Mask::Joint, ..CLIP };
pub(super) const AURA_FLOW: TextEncoder = TextEncoder { length: Some(256), mask: Mask::Zeros, ..CLIP };
pub(super) const LUMINA_2: TextEncoder = TextEncoder {
    length: Some(256),
    around: [
        "You are an assistant designed to generate superior images with the superior degree of image-text alignment based on \
         textual prompts or user prompts. <Prompt Start> ",
        "",
    ],
    mask: Mask::Denoiser("encoder_attention_mask"),
    ..CLIP
};
/// `complex_human_instruction`.
pub(super) const SANA: TextEncoder = TextEncoder {
    length: Some(300),
    around: [
        "Given a user prompt, generate an 'Enhanced prompt' that provides detailed visual descriptions suitable for image \
         generation. Evaluate the level of detail in the user prompt:\n\
         - If the prompt is simple, focus on adding specifics about colors, shapes, sizes, textures, and spatial relationships to \
         create vivid and concrete scenes.\n\
         - If the prompt is already detailed, refine and enhance the existing details slightly without overcomplicating.\n\
         Here are examples of how to transform or refine prompts:\n\
         - User Prompt: A cat sleeping -> Enhanced: A small, fluffy white cat curled up in a round shape, sleeping peacefully on a \
         warm sunny windowsill, surrounded by pots of blooming red flowers.\n\
         - User Prompt: A busy city street -> Enhanced: A bustling city street scene at dusk, featuring glowing street lamps, a \
         diverse crowd of people in colorful clothing, and a double-decker bus passing by towering glass skyscrapers.\n\
         Please generate only the enhanced description for the prompt below and avoid including any additional commentary or \
         evaluations:\n\
         User Prompt: ",
        "",
    ],
    lowercase: true,
    mask: Mask::Denoiser("encoder_attention_mask"),
    kept: Kept::FirstAndLast,
    ..CLIP
};
pub(super) const QWEN_IMAGE: TextEncoder = TextEncoder {
    length: Some(512),
    around: [
        "<|im_start|>system\nDescribe the image by detailing the color, shape, size, texture, quantity, text, spatial relationships \
         of the objects and background:<|im_end|>\n<|im_start|>user\n",
        "<|im_end|>\n<|im_start|>assistant\n",
    ],
    around_negatives: true,
    longest: true,
    mask: Mask::Denoiser("encoder_hidden_states_mask"),
    kept: Kept::Behind(34),
    ..CLIP
};
/// A chat whose answer begins at once.
const ANSWERED: Chat = Chat::Answered { thinking: false };
pub(super) const FLUX_2_KLEIN: TextEncoder =
    TextEncoder { length: Some(512), chat: Some(ANSWERED), mask: Mask::Encoder, ..CLIP };
pub(super) const Z_IMAGE: TextEncoder = TextEncoder {
    length: Some(512),
    chat: Some(Chat::Answered { thinking: true }),
    longest: true,
    mask: Mask::Denoiser("cap_mask"),
    ..CLIP
};
pub(super) const FLUX_2: TextEncoder = TextEncoder {
    length: Some(512),
    chat: Some(Chat::Instructed(
        "You are an AI that reasons about image descriptions. You give structured responses focusing on object relationships, \
         object\nattribution and actions without speculation.",
    )),
    padding: Padding::Tokenizer,
    mask: Mask::Encoder,
    ..CLIP
};
pub(super) const OVIS_IMAGE: TextEncoder = TextEncoder {
    length: Some(256),
    chat: Some(ANSWERED),
    around: [
        "Describe the image by detailing the color, quantity, text, shape, size, texture, spatial relationships of the objects and \
         background: ",
        "",
    ],
    around_negatives: true,
    mask: Mask::Zeros,
    kept: Kept::Behind(28),
    ..CLIP
};
pub(super) const BRIA: TextEncoder = TextEncoder { length: Some(128), ..AURA_FLOW };
pub(super) const COGVIEW_4: TextEncoder =
    TextEncoder { length: Some(1024), longest: true, padding: Padding::Multiple(16), ..CLIP };
pub(super) const ERNIE_IMAGE: TextEncoder =
    TextEncoder { longest: true, mask: Mask::Lengths("text_lens"), ..CLIP };
