//! Weights that were made from quantized ones, shared by all graphs that use them for as long as one does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::{Buffer, Bytes, WeightData};
use crate::weights::BlockQuantized;

/// What is in memory by the tensor that it was made from; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Decoded(Arc<Mutex<HashMap<String, (WeightData, Held)>>>);

/// Bytes that live as long as somebody else holds them.
#[derive(Debug)]
enum Held {
    Memory(Weak<Buffer>),
    Quantized(Weak<BlockQuantized>),
}

impl Decoded {
    /// What was made of a tensor, or is made now.
    pub(super) fn get(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<WeightData, String>,
    ) -> Result<WeightData, String> {
        if let Some((data, held)) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name)
            && let Some(bytes) = held.bytes()
        {
            return Ok(WeightData { bytes, ..data.clone() });
        }
        let made = make()?;
        let held = match &made.bytes {
            Bytes::Memory(bytes) => Held::Memory(Arc::downgrade(bytes)),
            Bytes::Quantized(blocks) => Held::Quantized(Arc::downgrade(blocks)),
            Bytes::File { .. } => return Ok(made),
        };
        let data = WeightData { bytes: Bytes::memory(vec![]), ..made.clone() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), (data, held));
        Ok(made)
    }
}

impl Held {
    fn bytes(&self) -> Option<Bytes> {
        match self {
            Self::Memory(bytes) => bytes.upgrade().map(Bytes::Memory),
            Self::Quantized(blocks) => blocks.upgrade().map(Bytes::Quantized),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype;

    #[test]
    fn what_was_made_is_shared_while_it_is_held() {
        let decoded = Decoded::default();
        let make = |byte: u8| {
            let (dtype, shape, stored_as) = (Dtype::F32, vec![1], "x.qweight".to_owned());
            move || Ok(WeightData { dtype, shape, stored_as, bytes: Bytes::memory(vec![byte; 4]) })
        };
        let first = decoded.get("x.qweight", make(1)).unwrap();
        assert_eq!(decoded.clone().get("x.qweight", make(2)).unwrap(), first);
        drop(first);
        assert_eq!(decoded.get("x.qweight", make(3)).unwrap().bytes, Bytes::memory(vec![3; 4]));
    }
}
