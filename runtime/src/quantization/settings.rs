//! What is quantized, into how many bits: the presets of [`Precision`], and settings in full.

use crate::Precision;

/// How weights are quantized when a checkpoint of floating-point numbers opens.
///
/// Linear layers and embeddings are quantized, of which weights are nearly all there is, and in 8 bits convolutions; all else stays as
/// it is stored. A layer that is not within a list of layers is a head: `lm_head`, a classifier, a pooler. A weight that is both an embedding
/// and a head takes the wider codes of the two.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantization {
    /// Bits of the linear layers' codes: 2, 3, 4 or 8. Those of 3 run as codes of 4.
    pub bits: usize,
    /// How many elements of a row share a scale: 16, 32, 64, 128 or 256. Rows that it does not divide take a smaller one that
    /// does, where there is one.
    pub group: usize,
    /// Whether `2^(bits − 1)` is zero in all blocks; each has a zero point of its own otherwise.
    pub symmetric: bool,
    /// Whether each block's scale is the best of 23 in squared error, which pays at 3 and 2 bits.
    pub search: bool,
    /// Bits of embeddings; none where they stay as they are stored.
    pub embedding: Option<usize>,
    /// Bits of heads; none where they stay as they are stored.
    pub head: Option<usize>,
    /// Whether convolutions are quantized, to 8 bits with a scale for each channel of the result, where a backend has kernels for
    /// that; with fewer than 16 channels of a group, as depthwise ones have, and elsewhere they stay as they are stored.
    pub convolutions: bool,
    /// Bits of the attention's values and of the MLP's down projections in the first and the last eighth of the layers, and in
    /// every third between: `use_more_bits` of llama.cpp, and onnxruntime-genai's `k_quant_mixed`.
    pub important: Option<usize>,
    /// Bits of a decoder's cached keys and values: 8 or 4; none where they stay floating point
    /// ([`Loader::kv_cache`](crate::Loader::kv_cache)).
    pub kv_cache: Option<usize>,
    /// Bits of weights by a piece of their names, or by a pattern with `*`, the first that fits; none where they stay as they
    /// are stored.
    pub exceptions: Vec<(String, Option<usize>)>,
}

/// Names of layers that give the attention's values, alone or with queries and keys.
const VALUES: [&str; 7] = ["v_proj", "value", "qkv", "qkv_proj", "query_key_value", "Wqkv", "wv"];

/// Names of layers that lead out of an MLP.
const DOWN: [&str; 5] = ["down_proj", "fc2", "w2", "dense_4h_to_h", "lin2"];

impl Quantization {
    /// The preset of a precision; none where it is of floating point.
    ///
    /// Blocks are of 32 elements, as onnxruntime-genai's, and symmetric, embeddings and heads have 8 bits, as NNCF's.
    pub fn of(precision: Precision) -> Option<Self> {
        let preset = |bits| Self {
            bits,
            group: 32,
            symmetric: true,
            search: bits < 4,
            embedding: Some(8),
            head: Some(8),
            convolutions: bits == 8,
            important: None,
            kv_cache: None,
            exceptions: vec![],
        };
        match precision {
            Precision::F32 | Precision::F16 | Precision::Bf16 => None,
            Precision::Int8 => Some(preset(8)),
            Precision::Int4 => Some(preset(4)),
            Precision::Int4Mixed => Some(Self { important: Some(8), ..preset(4) }),
            Precision::Int3 => Some(preset(3)),
            Precision::Int2 => Some(preset(2)),
        }
    }

    /// With weights of a module in another precision, floating point as they are stored.
    #[must_use]
    pub(crate) fn with_module(mut self, module: &str, precision: Precision) -> Self {
        let bits = Self::of(precision).map(|preset| preset.bits);
        self.exceptions.insert(0, (module.to_owned(), bits));
        self
    }

    /// The bits of a weight's codes; none where it stays as it is stored. `layers` is how many its list has.
    pub(crate) fn bits_of(&self, name: &str, role: Role, layers: usize) -> Option<usize> {
        if let Some((_, bits)) = self.exceptions.iter().find(|(pattern, _)| fits(pattern, name)) {
            return bits.filter(|bits| role != Role::Convolution || *bits == 8);
        }
        let linear = match layer_index(name) {
            Some((_, index)) if self.important.is_some() && is_important(name, index, layers) => {
                self.important
            }
            Some(_) => Some(self.bits),
            None => self.head,
        };
        match role {
            Role::Linear => linear,
            Role::Embedding => self.embedding,
            Role::Convolution => self.convolutions.then_some(8),
            Role::Tied => self.embedding.zip(self.head).map(|(embedding, head)| embedding.max(head)),
        }
    }
}

/// What reads a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Linear,
    Embedding,
    /// An embedding and a head.
    Tied,
    Convolution,
}

/// The list of layers that a weight's name is within, and the index: of `model.layers.3.mlp.fc2.weight`, `model.layers` and 3.
pub(crate) fn layer_index(name: &str) -> Option<(String, usize)> {
    let pieces: Vec<&str> = name.split('.').collect();
    let place = pieces.iter().position(|piece| piece.parse::<usize>().is_ok())?;
    Some((pieces[..place].join("."), pieces[place].parse().ok()?))
}

/// Whether llama.cpp's `use_more_bits` holds of a layer, and the weight is one of those that it is asked for.
fn is_important(name: &str, index: usize, layers: usize) -> bool {
    let eighth = layers / 8;
    let more = index < eighth || index >= 7 * layers / 8 || (index - eighth) % 3 == 2;
    more && name.split('.').any(|piece| VALUES.contains(&piece) || DOWN.contains(&piece))
}

/// Whether a name holds a piece, or is of a pattern with `*`.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return name.contains(pattern) };
    let Some(mut left) = name.strip_prefix(start) else { return false };
    let pieces: Vec<&str> = rest.split('*').collect();
    let Some((end, between)) = pieces.split_last() else { return false };
    for piece in between {
        match left.find(piece) {
            Some(place) => left = &left[place + piece.len()..],
            None => return false,
        }
    }
    left.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_give_heads_and_embeddings_8_bits() {
        let int4 = Quantization::of(Precision::Int4).unwrap();
        let bits = |name, role| int4.bits_of(name, role, 16);
        assert_eq!(bits("model.layers.0.mlp.down_proj.weight", Role::Linear), Some(4));
        assert_eq!(bits("lm_head.weight", Role::Linear), Some(8));
        assert_eq!(bits("model.embed_tokens.weight", Role::Embedding), Some(8));
        assert_eq!(bits("model.conv.weight", Role::Convolution), None);
        assert_eq!(Quantization::of(Precision::Bf16), None);
        assert!(Quantization::of(Precision::Int2).unwrap().search && !int4.search);
    }

    #[test]
    fn convolutions_have_8_bits_or_none() {
        let mut int8 = Quantization::of(Precision::Int8).unwrap();
        int8.exceptions = vec![("stem".to_owned(), None), ("*.1.conv.weight".to_owned(), Some(4))];
        let bits = |name| int8.bits_of(name, Role::Convolution, 2);
        assert_eq!(bits("stages.0.conv.weight"), Some(8));
        assert_eq!(bits("stem.conv.weight"), None);
        assert_eq!(bits("stages.1.conv.weight"), None);
    }

    #[test]
    fn mixed_takes_more_bits_where_llama_cpp_does() {
        let mixed = Quantization::of(Precision::Int4Mixed).unwrap();
        let of = |layer: &str| {
            let bits =
                |i: usize| mixed.bits_of(&format!("model.layers.{i}.{layer}.weight"), Role::Linear, 16);
            (0..16).filter(|&index| bits(index) == Some(8)).collect::<Vec<_>>()
        };
        assert_eq!(of("mlp.down_proj"), [0, 1, 4, 7, 10, 13, 14, 15]);
        assert_eq!(of("self_attn.v_proj"), of("mlp.down_proj"));
        assert_eq!(of("mlp.up_proj"), [] as [usize; 0]);
    }

    #[test]
    fn exceptions_are_pieces_or_patterns_and_the_first_counts() {
        let mut settings = Quantization::of(Precision::Int4).unwrap().with_module("vision", Precision::F16);
        settings.exceptions.push(("*.0.*o_proj.weight".to_owned(), Some(8)));
        let bits = |name| settings.bits_of(name, Role::Linear, 2);
        assert_eq!(bits("model.vision_tower.layers.0.o_proj.weight"), None);
        assert_eq!(bits("model.layers.0.self_attn.o_proj.weight"), Some(8));
        assert_eq!(bits("model.layers.1.self_attn.o_proj.weight"), Some(4));
        assert_eq!(layer_index("a.b.12.c.0.weight"), Some(("a.b".to_owned(), 12)));
        assert_eq!(layer_index("lm_head.weight"), None);
    }
}
