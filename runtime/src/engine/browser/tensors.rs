//! Tensors on their way to a tab and back: a description in JSON, the elements one after the other in a body.

use std::collections::BTreeMap;

use ndarray::{ArrayD, IxDyn};
use serde_json::{Value as Json, json};

use crate::graph::Dtype;
use crate::{Error, Result, Value, Values};

/// The description and the bytes of a model's inputs, in the element types that the model takes.
pub(super) fn pack(values: &Values, types: &BTreeMap<String, Dtype>) -> Result<(Vec<Json>, Vec<u8>)> {
    let (mut described, mut bytes) = (vec![], vec![]);
    for (name, value) in values {
        let offset = bytes.len();
        let kind = match value {
            Value::F32(a) => {
                bytes.extend(a.iter().flat_map(|x| x.to_le_bytes()));
                "float32"
            }
            Value::I64(a) if types.get(name) == Some(&Dtype::I32) => {
                for n in a {
                    let n = i32::try_from(*n).map_err(|_| {
                        let help = "this backend has 32-bit integers; keep values within them";
                        Error::input(name, format!("holds {n}, which needs 64 bits"), help)
                    })?;
                    bytes.extend(n.to_le_bytes());
                }
                "int32"
            }
            Value::I64(a) if types.get(name) == Some(&Dtype::U8) => {
                bytes.extend(a.iter().map(|n| *n as u8));
                "uint8"
            }
            Value::I64(a) => {
                bytes.extend(a.iter().flat_map(|n| n.to_le_bytes()));
                "int64"
            }
            Value::Bool(a) => {
                bytes.extend(a.iter().map(|&b| u8::from(b)));
                "bool"
            }
        };
        let length = bytes.len() - offset;
        let dims = value.shape();
        described
            .push(json!({ "name": name, "type": kind, "dims": dims, "offset": offset, "length": length }));
    }
    Ok((described, bytes))
}

/// The tensors that a tab described and posted; a text says what does not fit.
pub(super) fn unpack(described: &Json, bytes: &[u8]) -> std::result::Result<Values, String> {
    let mut values = Values::new();
    let mut rest = bytes;
    for tensor in described.as_array().into_iter().flatten() {
        let name = tensor["name"].as_str().unwrap_or_default();
        let dims = tensor["dims"].as_array().into_iter().flatten();
        let dims: Option<Vec<usize>> = dims.map(|n| usize::try_from(n.as_u64()?).ok()).collect();
        let dims = dims.ok_or_else(|| format!("output {name} has no shape"))?;
        let length = tensor["length"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
        let (own, left) = rest.split_at_checked(length).ok_or_else(|| format!("output {name} is cut off"))?;
        rest = left;
        let misfit = |_| format!("output {name} has {length} bytes, which do not fit {dims:?}");
        let shape = IxDyn(&dims);
        let value = match tensor["type"].as_str() {
            Some("float32") => ArrayD::from_shape_vec(shape, words(own, f32::from_le_bytes))
                .map(Value::F32)
                .map_err(misfit)?,
            Some("int64") => ArrayD::from_shape_vec(shape, words(own, i64::from_le_bytes))
                .map(Value::I64)
                .map_err(misfit)?,
            Some("int32") => {
                let wide = words(own, |n| i64::from(i32::from_le_bytes(n)));
                ArrayD::from_shape_vec(shape, wide).map(Value::I64).map_err(misfit)?
            }
            Some("uint8") => {
                let wide = own.iter().map(|&byte| i64::from(byte)).collect();
                ArrayD::from_shape_vec(shape, wide).map(Value::I64).map_err(misfit)?
            }
            Some("bool") => {
                let truths = own.iter().map(|&b| b != 0).collect();
                ArrayD::from_shape_vec(shape, truths).map(Value::Bool).map_err(misfit)?
            }
            other => return Err(format!("output {name} is of type {}", other.unwrap_or("unknown"))),
        };
        values.insert(name.to_owned(), value);
    }
    Ok(values)
}

fn words<const N: usize, T>(bytes: &[u8], read: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|word| read(*word)).collect()
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    fn values() -> Values {
        BTreeMap::from([
            ("ids".to_owned(), Value::I64(array![[1, -2], [3, 4]].into_dyn())),
            ("mask".to_owned(), Value::Bool(array![true, false].into_dyn())),
            ("pixels".to_owned(), Value::F32(array![0.5_f32, -1.5, 2.0].into_dyn())),
        ])
    }

    #[test]
    fn tensors_come_back_as_they_were() {
        let (described, bytes) = pack(&values(), &BTreeMap::new()).unwrap();
        assert_eq!(described[1]["offset"], 32);
        assert_eq!(unpack(&Json::Array(described), &bytes).unwrap(), values());
    }

    #[test]
    fn narrow_integers_are_widened_again() {
        let types = BTreeMap::from([("ids".to_owned(), Dtype::I32)]);
        let (described, bytes) = pack(&values(), &types).unwrap();
        assert_eq!(described[0]["type"], "int32");
        assert_eq!(unpack(&Json::Array(described), &bytes).unwrap(), values());
        let wide = BTreeMap::from([("ids".to_owned(), Value::I64(array![1_i64 << 40].into_dyn()))]);
        assert!(pack(&wide, &types).unwrap_err().to_string().contains("needs 64 bits"));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let cut = json!([{"name": "logits", "type": "float32", "dims": [2], "length": 8}]);
        assert_eq!(unpack(&cut, &[0; 4]).unwrap_err(), "output logits is cut off");
        let misfit = json!([{"name": "logits", "type": "float32", "dims": [3], "length": 8}]);
        assert!(unpack(&misfit, &[0; 8]).unwrap_err().contains("do not fit [3]"));
        let half = json!([{"name": "logits", "type": "float16", "dims": [2], "length": 4}]);
        assert_eq!(unpack(&half, &[0; 4]).unwrap_err(), "output logits is of type float16");
    }
}
