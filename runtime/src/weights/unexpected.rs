//! Tensors that a checkpoint holds and a graph does not read (`unexpected_keys` of the reference's loading).

use std::collections::HashSet;

use super::{Names, WeightData};

/// Buffers that older releases of the reference stored, and newer ones compute: of every architecture.
const BUFFERS: &[&str] =
    &["position_ids", "inv_freq", "masked_bias", "num_batches_tracked", "relative_position_index"];

/// Whether the reference ignores a tensor of this name as well, or it is one of the `unused`.
pub(super) fn is_ignored(name: &str, unused: &[String], names: &Names) -> bool {
    let parameter = name.rsplit_once('.').map_or(name, |(_, parameter)| parameter);
    let mut patterns = names.ignore_unexpected.iter().copied().chain(unused.iter().map(String::as_str));
    BUFFERS.contains(&parameter) || patterns.any(|pattern| matches(pattern, name))
}

/// The unread tensors of a module that has others which are read, or of a list of layers of which others are read.
pub(super) fn beside<'a>(unread: &'a [String], read: &[WeightData]) -> Vec<&'a str> {
    let names = || read.iter().map(|weight| weight.stored_as.as_str());
    let modules: HashSet<&str> = names().filter_map(module).collect();
    let lists: HashSet<&str> = names().flat_map(lists).collect();
    let is_beside = |name: &&str| {
        module(name).is_some_and(|module| modules.contains(module))
            || self::lists(name).any(|list| lists.contains(list))
    };
    unread.iter().map(String::as_str).filter(is_beside).collect()
}

/// The module of a parameter; none of one that stands alone.
fn module(name: &str) -> Option<&str> {
    name.rsplit_once('.').map(|(module, _)| module)
}

/// The lists of modules that a name passes through: `encoder.layer` of `encoder.layer.0.output.dense.weight`.
fn lists(name: &str) -> impl Iterator<Item = &str> {
    let ends = name.match_indices('.').map(|(end, _)| end);
    ends.filter(|end| {
        let next = name[end + 1..].split('.').next().unwrap_or_default();
        !next.is_empty() && next.bytes().all(|byte| byte.is_ascii_digit())
    })
    .map(|end| &name[..end])
}

/// Whether a name fits a pattern in which `*` stands for any piece.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut left) = name.strip_prefix(start) else {
        return false;
    };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let end = pieces.pop().unwrap_or_default();
    for piece in pieces {
        match left.find(piece) {
            Some(at) => left = &left[at + piece.len()..],
            None => return false,
        }
    }
    left.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Dtype;
    use crate::weights::Bytes;

    fn read(names: &[&str]) -> Vec<WeightData> {
        let located = |name: &&str| WeightData {
            dtype: Dtype::F32,
            shape: vec![],
            stored_as: (*name).to_owned(),
            bytes: Bytes::memory(vec![]),
        };
        names.iter().map(located).collect()
    }

    #[test]
    fn what_stands_beside_read_tensors_is_found() {
        let read = read(&[
            "model.layers.0.self_attn.q_proj.weight",
            "model.layers.1.mlp.weight",
            "model.norm.weight",
        ]);
        let unread = [
            "model.layers.0.self_attn.q_proj.bias",
            "model.layers.0.self_attn.q_norm.weight",
            "model.layers.2.mlp.weight",
            "model.norm.bias",
            "model.embed.weight",
            "lm_head.weight",
            "mtp.layers.0.weight",
        ]
        .map(str::to_owned);
        assert_eq!(beside(&unread, &read), &unread.each_ref().map(String::as_str)[..4]);
    }

    #[test]
    fn names_fit_patterns() {
        assert!(matches("*.attn.bias", "h.0.attn.bias") && !matches("*.attn.bias", "h.0.attn.c_attn.bias"));
        assert!(matches("model.layers.61.*", "model.layers.61.mlp.weight"));
        assert!(!matches("model.layers.61.*", "model.layers.6.mlp.weight"));
        assert!(matches("*.layer.*.EncDec*.weight", "decoder.block.0.layer.1.EncDecAttention.x.weight"));
        assert!(matches("a.b", "a.b") && !matches("a.b", "a.bc"));
    }

    #[test]
    fn stored_buffers_are_ignored() {
        let names = Names { ignore_unexpected: &["*.attn.bias"], ..Names::default() };
        for name in
            ["embeddings.position_ids", "h.0.attn.bias", "model.layers.0.self_attn.rotary_emb.inv_freq"]
        {
            assert!(is_ignored(name, &[], &names), "{name}");
        }
        let name = "model.vision_tower.layers.1.norm.bias";
        assert!(is_ignored(name, &["model.vision_tower.layers.1.*".to_owned()], &names));
        assert!(!is_ignored(name, &["model.vision_tower.layers.0.*".to_owned()], &names));
        assert!(!is_ignored("h.0.attn.c_attn.bias", &[], &names));
    }
}
