//! The weight rule: every weight of a golden checkpoint, computed from its name and shape alone.
//!
//! `tests/reference/weft_reference/weights.py` is the specification; both agree bit for bit, which
//! `tests/goldens/weight_rule.json` proves.

/// How a tensor's values are distributed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Mean and standard deviation.
    Normal(f64, f64),
    /// The ends of the interval.
    Uniform(f64, f64),
}

#[derive(Clone, Copy)]
enum Field {
    Path,
    Leaf,
    Owner,
}

#[derive(Clone, Copy)]
enum Gives {
    Exactly(Distribution),
    /// Gain over the product of all dimensions but the first.
    FanRest(f64),
    FanFirst,
    FanLast,
    /// As `Exactly`, for tensors whose first dimension is 1 and whose leaf is not `weight`.
    LeadingOne(Distribution),
}

type Row = (Field, &'static [&'static str], (usize, usize), Gives);

const ANY: (usize, usize) = (0, 99);
const NORM: Distribution = Distribution::Normal(1.0, 0.1);
const BIAS: Distribution = Distribution::Normal(0.0, 0.05);
const EMBEDDING: Distribution = Distribution::Normal(0.0, 0.5);

const RULES: &[Row] = {
    use Distribution::{Normal, Uniform};
    use Field::{Leaf, Owner, Path};
    use Gives::{Exactly, FanFirst, FanLast, FanRest, LeadingOne};
    const TABLES: &[&str] =
        &["*relative_position_bias_table", "pos_bias_u", "pos_bias_v", "attention_biases"];
    const SCALES: &[&str] = &["*layer_scale*", "lambda", "lambda1", "lambda_1", "lambda_2", "gamma"];
    const TOKENS: &[&str] = &["*embed*", "wte", "wpe", "shared", "*_token", "*_tokens", "latents", "queries"];
    const CONV1D: &[&str] = &["*c_attn.weight", "*c_fc.weight", "*c_proj.weight", "*q_attn.weight"];
    &[
        (Leaf, &["running_var"], ANY, Exactly(Uniform(0.5, 1.5))),
        (Leaf, &["running_mean"], ANY, Exactly(Normal(0.0, 0.1))),
        (Leaf, &["weight_g", "original0"], ANY, Exactly(Uniform(0.5, 1.5))),
        (Leaf, &["a_log"], ANY, Exactly(Uniform(0.0, 2.0))),
        (Leaf, &["dt_bias"], ANY, Exactly(Uniform(-4.0, -1.0))),
        (Path, &["*.dt_proj.bias"], ANY, Exactly(Uniform(-4.0, -1.0))),
        (Leaf, &["d"], ANY, Exactly(NORM)),
        (Leaf, &["*"], (0, 0), Exactly(NORM)),
        (Leaf, &["weight"], (1, 1), Exactly(NORM)),
        (Leaf, TABLES, (2, 99), Exactly(EMBEDDING)),
        (Leaf, &["*bias*", "beta"], ANY, Exactly(BIAS)),
        (Leaf, SCALES, (1, 1), Exactly(Normal(0.7, 0.1))),
        (Leaf, &["lambda_q*", "lambda_k*"], (1, 1), Exactly(Normal(0.0, 0.1))),
        (Owner, TOKENS, (1, 3), Exactly(EMBEDDING)),
        (Owner, &["*pos_embed*", "*position_embed*"], (4, 99), Exactly(EMBEDDING)),
        (Owner, &["relative_attention_bias", "rel_pos_h", "rel_pos_w"], (2, 2), Exactly(EMBEDDING)),
        (Leaf, &["*"], (3, 3), LeadingOne(EMBEDDING)),
        (Path, &["*experts*"], (3, 3), FanLast),
        (Path, CONV1D, (2, 2), FanFirst),
        (Leaf, &["*"], (4, 4), FanRest(2.0)),
        (Leaf, &["*"], (2, 99), FanRest(1.0)),
        (Leaf, &["*"], (1, 1), Exactly(NORM)),
    ]
};

/// The distribution of the tensor of this name and shape.
pub fn distribution(name: &str, shape: &[usize]) -> Distribution {
    let path = format!(".{}", name.to_ascii_lowercase());
    let (leaf, owner) = leaf_and_owner(&path);
    let row = RULES.iter().find(|(field, patterns, ndim, gives)| {
        let text = match field {
            Field::Path => &path,
            Field::Leaf => leaf,
            Field::Owner => owner,
        };
        let leading = !matches!(gives, Gives::LeadingOne(_)) || (shape[0] == 1 && leaf != "weight");
        (ndim.0..=ndim.1).contains(&shape.len()) && leading && patterns.iter().any(|p| matches(p, text))
    });
    let fan = |gain: f64, over: usize| Distribution::Normal(0.0, (gain / over.max(1) as f64).sqrt());
    match row.map(|row| row.3) {
        Some(Gives::Exactly(distribution) | Gives::LeadingOne(distribution)) => distribution,
        Some(Gives::FanRest(gain)) => fan(gain, shape[1..].iter().product()),
        Some(Gives::FanFirst) => fan(1.0, shape[0]),
        Some(Gives::FanLast) => fan(1.0, shape[shape.len() - 1]),
        None => NORM,
    }
}

/// The text after the last dot; and the segment that names the module, without `weight` and a list index.
fn leaf_and_owner(path: &str) -> (&str, &str) {
    let leaf = path.rsplit_once('.').map_or(path, |(_, leaf)| leaf);
    let mut segments: Vec<&str> = path.split('.').collect();
    segments.pop_if(|last| *last == "weight");
    segments.pop_if(|last| !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit()));
    (leaf, segments.last().copied().unwrap_or_default())
}

/// Whether a text fits a pattern with `*` at its ends only.
fn matches(pattern: &str, text: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(""), _) => true,
        (Some(rest), Some(_)) => text.contains(rest.trim_end_matches('*')),
        (Some(end), None) => text.ends_with(end),
        (None, Some(start)) => text.starts_with(start),
        (None, None) => text == pattern,
    }
}

/// The values of the tensor of this name and shape, row-major.
pub fn generate(name: &str, shape: &[usize]) -> Vec<f32> {
    let seed = fnv1a64(name.as_bytes());
    let count = shape.iter().product::<usize>() as u64;
    match distribution(name, shape) {
        Distribution::Normal(mean, std) => {
            let (scale, mean) = ((std / 1_431_655_765.0_f64.sqrt()) as f32, mean as f32);
            let value = |i| {
                let z = bits(seed, i);
                let limbs = (z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48);
                (limbs as i64 - 131_070) as f32 * scale + mean
            };
            (0..count).map(value).collect()
        }
        Distribution::Uniform(low, high) => {
            let (width, low) = ((high - low) as f32, low as f32);
            let unit = |i| (bits(seed, i) >> 40) as f32 * 2.0_f32.powi(-24);
            (0..count).map(|i| unit(i) * width + low).collect()
        }
    }
}

fn fnv1a64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

/// SplitMix64 of the element at row-major index `i`.
fn bits(seed: u64, i: u64) -> u64 {
    let z = seed.wrapping_add((i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde::Deserialize;
    use sha2::{Digest, Sha256};

    use super::*;

    #[derive(Deserialize)]
    struct Specimens {
        tensors: Vec<Specimen>,
    }

    #[derive(Deserialize)]
    struct Specimen {
        name: String,
        shape: Vec<usize>,
        kind: String,
        a: f64,
        b: f64,
        first: Vec<String>,
        sha256: String,
    }

    #[test]
    fn agrees_with_the_reference_bit_for_bit() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens/weight_rule.json");
        let specimens: Specimens = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        assert!(specimens.tensors.len() > 40);
        for Specimen { name, shape, kind, a, b, first, sha256 } in specimens.tensors {
            let wanted = match kind.as_str() {
                "normal" => Distribution::Normal(a, b),
                "uniform" => Distribution::Uniform(a, b),
                other => panic!("{name}: {other} is no distribution"),
            };
            assert_eq!(distribution(&name, &shape), wanted, "{name}");
            let values = generate(&name, &shape);
            assert_eq!(values.len(), shape.iter().product::<usize>(), "{name}");
            let bits: Vec<_> =
                values.iter().take(first.len()).map(|x| format!("{:08x}", x.to_bits())).collect();
            assert_eq!(bits, first, "{name}");
            let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
            assert_eq!(format!("{:x}", Sha256::digest(&bytes)), sha256, "{name}");
        }
    }

    #[test]
    fn names_and_places_change_the_values() {
        let [a, b] = ["layer.0.weight", "layer.1.weight"].map(|name| generate(name, &[4, 4]));
        assert_ne!(a, b);
        assert_ne!(a[0], a[1]);
    }
}
