//! Published operator tables, for backends that cannot be tried where the graph is made.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A published operator table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Operators {
    /// The document, and the release it belongs to.
    pub source: String,
    /// How to read the entries.
    pub legend: String,
    /// Names for lists of element types that entries share.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub groups: IndexMap<String, Vec<String>>,
    /// Operators of the standard domain.
    pub standard: IndexMap<String, Operator>,
    /// ONNX Runtime's contributed operators.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub contrib: IndexMap<String, Operator>,
}

/// `hardware/onnx.yaml`: the operator versions of the standard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Standard {
    /// The document, and the release it belongs to.
    pub source: String,
    /// The versions at which each operator was defined or revised, oldest first.
    pub operators: IndexMap<String, Vec<u16>>,
}

/// An operator of a published table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Operator {
    /// The operator's versions at which kernels start, newest first; empty where the document gives none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<u16>,
    /// Element types or groups of them; empty where the document gives none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    /// The operands that must be constants, from 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constant: Vec<u8>,
    /// Conditions, in the document's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Operator {
    /// Whether there is a kernel for the version of the operator that a graph's operator set means.
    ///
    /// The newest kernel is for exactly its version: nobody has said yet that it computes a later one.
    pub fn has_version(&self, version: u16) -> bool {
        let newest = self.versions.first();
        newest.is_none_or(|newest| {
            version == *newest || (version < *newest && self.versions.iter().any(|v| *v <= version))
        })
    }
}

impl Operators {
    /// The element types of an operator, with groups written out; empty where the document gives none.
    pub fn types<'a>(&'a self, operator: &'a Operator) -> Vec<&'a str> {
        let written = operator.types.iter().flat_map(|name| match self.groups.get(name) {
            Some(group) => group.iter().map(String::as_str).collect(),
            None => vec![name.as_str()],
        });
        written.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::spec::hardware::{Hardware, HardwareSpecs};

    #[test]
    fn a_kernel_is_for_its_versions_of_an_operator() {
        let hardware =
            HardwareSpecs::load(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../model_specs"))).unwrap();
        let table = hardware.get(Hardware::Cuda).and_then(|spec| spec.operators.as_ref()).unwrap();
        let cos = &table.standard["Cos"];
        assert!(cos.has_version(7) && !cos.has_version(22), "revised in operator set 22, not in the table");
        let add = &table.standard["Add"];
        assert!(add.has_version(14) && add.has_version(13) && add.has_version(7) && !add.has_version(6));
        assert_eq!(table.types(&table.contrib["GroupQueryAttention"]), ["bf16", "f16"]);
        assert!(table.types(add).contains(&"i64"));
    }
}
