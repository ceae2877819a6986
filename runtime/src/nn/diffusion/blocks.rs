//! What configurations say of each block of a U-Net or an autoencoder.

use crate::Result;
use crate::config::PerLayer;
use crate::graph::Graph;

/// One number for each block, of a field that may hold one for all (`attention_head_dim`, `layers_per_block`).
///
/// # Errors
/// When the field holds several, and not as many as there are blocks.
pub fn per_block(g: &Graph, field: &str, sizes: &PerLayer, blocks: usize) -> Result<Vec<usize>> {
    sizes.of_layers(blocks).map_err(|problem| g.error("UNet", format!("`{field}` {problem}")))
}

/// Refuses fields that hold one entry for each block, and not as many as the first of them.
///
/// # Errors
/// Names the field.
pub fn same_lengths(g: &Graph, fields: &[(&str, usize)]) -> Result<()> {
    let [(first, blocks), rest @ ..] = fields else { return Ok(()) };
    match rest.iter().find(|(_, length)| length != blocks).or(fields.first().filter(|_| *blocks == 0)) {
        Some((name, length)) => Err(g.error(
            "UNet",
            format!(
                "`{name}` has {length} entries and `{first}` {blocks}; as many, and one at least, are needed"
            ),
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_an_entry_for_each_block() {
        let g = Graph::new();
        assert_eq!(per_block(&g, "layers_per_block", &PerLayer(vec![2]), 3).unwrap(), [2, 2, 2]);
        let problem = per_block(&g, "layers_per_block", &PerLayer(vec![2, 1]), 3).unwrap_err().to_string();
        assert_eq!(problem, "UNet in the root: `layers_per_block` has 2 entries, but there are 3 layers");
        assert!(same_lengths(&g, &[("up", 2), ("down", 2)]).is_ok());
        for (up, down, named) in [(2, 3, "`down` has 3"), (0, 0, "`up` has 0")] {
            let problem = same_lengths(&g, &[("up", up), ("down", down)]).unwrap_err().to_string();
            assert!(problem.contains(named), "{problem}");
        }
    }
}
