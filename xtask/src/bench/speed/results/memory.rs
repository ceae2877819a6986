//! The most memory that contenders had in use.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::super::super::peer::Served;
use super::super::MACHINE;
use super::PYTORCH;

/// The most that each contender had in use while it was measured, in megabytes: its resident pages, mapped files' too.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Memory {
    pub model: String,
    pub peak_mb: BTreeMap<String, f64>,
}

impl Memory {
    pub fn of(model: &str, contenders: &[(&'static str, Served)]) -> Self {
        let own = contenders.iter().filter(|(name, _)| *name != MACHINE);
        let peak = own.filter_map(|(name, served)| Some(((*name).to_owned(), served.peak_memory_mb()?)));
        Self { model: model.to_owned(), peak_mb: peak.collect() }
    }

    /// What stands below the table; nothing where the system did not tell.
    pub fn text(&self) -> Option<String> {
        let weft = self.peak_mb.get("weft")?;
        let each =
            self.peak_mb.iter().map(|(name, mb)| format!("{name} {mb:.0}")).collect::<Vec<_>>().join(", ");
        let of_pytorch =
            self.peak_mb.get(PYTORCH).map(|pytorch| format!("; {:.2} of PyTorch's", weft / pytorch));
        Some(format!("{}, most memory in use, MB: {each}{}", self.model, of_pytorch.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_stands_beside_the_peers() {
        let peak_mb = [("weft", 50.4), (PYTORCH, 100.8)].map(|(name, mb)| (name.to_owned(), mb)).into();
        let memory = Memory { model: "ViT-base".into(), peak_mb };
        assert_eq!(
            memory.text().unwrap(),
            "ViT-base, most memory in use, MB: pytorch 101, weft 50; 0.50 of PyTorch's"
        );
        assert!(Memory { model: "ViT-base".into(), peak_mb: BTreeMap::new() }.text().is_none());
    }
}
