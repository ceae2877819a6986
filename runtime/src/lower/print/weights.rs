//! Parameters as initializers: from their files, from memory, or within the model.

use std::path::Path;
use std::sync::Arc;

use super::{Printer, cast, integers};
use crate::graph::{Dtype, Node, Op};
use crate::lower::IN_MEMORY;
use crate::onnx::{self, Attribute};
use crate::weights::{Buffer, Bytes};
use crate::{Error, Result};

/// Up to so many bytes, weights in memory stand in the model itself.
const INLINE: usize = 1 << 16;

impl Printer<'_> {
    /// A parameter as it is stored, converted where it is computed with in another type.
    pub(super) fn weight(&mut self, index: usize, dtype: Dtype) -> Result<String> {
        let (weight, located) = (&self.graph.weights[index], &self.weights[index]);
        if located.dtype == Dtype::I64 && dtype == Dtype::I32 {
            return self.narrowed(index);
        }
        let stored = self.stored(index, &located.shape)?;
        if !located.dtype.is_float() || located.dtype == dtype {
            return Ok(stored);
        }
        let name = format!("{}/Cast", weight.name);
        self.write("", "Cast", &[&stored], vec![cast(dtype)], name.clone(), name.clone());
        Ok(name)
    }

    /// Rows of a table in the type in which it is stored, where the target looks them up so and that is another one.
    pub(super) fn rows_as_stored(&mut self, node: &Node) -> Result<Option<String>> {
        let (Op::Gather { axis: 0 }, [table, ids]) = (&node.op, node.inputs.as_slice()) else {
            return Ok(None);
        };
        let index = self.graph.weight_index(self.graph.tensor(*table));
        let Some(index) = index.filter(|_| self.target.rows_as_stored) else { return Ok(None) };
        let located = &self.weights[index];
        let differs = located.dtype.is_float() && located.dtype != self.tensor(*table).dtype();
        if !differs || matches!(located.bytes, Bytes::Quantized(_)) {
            return Ok(None);
        }
        let (stored, ids) = (self.stored(index, &located.shape)?, self.operand(*ids)?);
        let name = format!("{}/Rows", node.name);
        let axis = vec![Attribute::int("axis", 0)];
        self.write("", "Gather", &[&stored, &ids], axis, name.clone(), name.clone());
        Ok(Some(name))
    }

    /// A table of 64-bit integers in 32 bits, which is in memory then.
    fn narrowed(&mut self, index: usize) -> Result<String> {
        let (weight, located) = (&self.graph.weights[index], &self.weights[index]);
        let wide = located.bytes.read()?;
        let values: Vec<i64> =
            wide.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect();
        let (name, narrow) = (format!("{}/Cast", weight.name), integers(Dtype::I32, &values));
        let tensor = self.in_memory(&name, Dtype::I32, &located.shape, &Arc::new(narrow.into()));
        self.out.initializer.push(tensor);
        Ok(name)
    }

    /// A parameter whose bytes are in memory: within the model where they are few.
    pub(super) fn in_memory(
        &mut self,
        name: &str,
        dtype: Dtype,
        shape: &[usize],
        bytes: &Arc<Buffer>,
    ) -> onnx::Tensor {
        if bytes.len() <= INLINE {
            return onnx::Tensor::inline(name, dtype, shape, bytes.to_vec());
        }
        let location = format!("{IN_MEMORY}{}", self.memory.len());
        self.memory.insert(location.clone(), Arc::clone(bytes));
        onnx::Tensor::external(name, dtype, shape, &location, 0, bytes.len() as u64)
    }

    /// A parameter as it is stored, in the shape that is asked for; written once.
    pub(super) fn stored(&mut self, index: usize, shape: &[usize]) -> Result<String> {
        let (weight, located) = (&self.graph.weights[index], &self.weights[index]);
        // An output may have the name of a weight, which it need not be (`logit_scale`).
        let taken = self.graph.outputs.iter().any(|(output, _)| *output == weight.name);
        let name = match shape == located.shape {
            true if !taken => weight.name.clone(),
            _ => format!("{}/{shape:?}", weight.name),
        };
        if !self.written.insert(name.clone()) {
            return Ok(name);
        }
        let tensor = match &located.bytes {
            Bytes::Memory(bytes) => self.in_memory(&name, located.dtype, shape, bytes),
            Bytes::Quantized(_) => {
                let bytes = located.bytes.read()?.into_owned();
                onnx::Tensor::inline(&name, located.dtype, shape, bytes)
            }
            Bytes::File { path, offset, length } => {
                let folder = self.folder.unwrap_or(Path::new(""));
                let relative = path.strip_prefix(folder).unwrap_or(path);
                let location = relative.to_str().map(|path| path.replace('\\', "/")).ok_or_else(|| {
                    let help = "move the checkpoint to a folder whose path is valid UTF-8";
                    Error::weights(path, "has a path that is not UTF-8", help)
                })?;
                onnx::Tensor::external(&name, located.dtype, shape, &location, *offset, *length)
            }
        };
        self.out.initializer.push(tensor);
        Ok(name)
    }
}
