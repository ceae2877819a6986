//! The tensors of a file that holds all components under the names of the original code.

use std::collections::HashMap;
use std::path::PathBuf;

use safetensors::Dtype as Stored;

use super::entry::{Change, Entry};
use super::files::{self, Files};
use crate::Result;
use crate::hub::Checkpoint;
use crate::single_file::{Piece, SingleFile};

/// The tensors of all components, each under its component's name: of the file, or where it lacks one of the pipeline's folder.
pub(super) fn listed(
    checkpoint: &Checkpoint,
    single: &SingleFile,
) -> Result<(PathBuf, HashMap<String, Entry>)> {
    let mut stored = HashMap::new();
    files::read(single.path(), &mut stored)?;
    let mut all = HashMap::new();
    for component in Files::components(checkpoint)? {
        let entries: Vec<(String, Entry)> = match single.tensors(&component) {
            Some(tensors) => tensors
                .iter()
                .filter_map(|tensor| {
                    Some((tensor.name.clone(), piece(stored.get(&tensor.stored)?.clone(), tensor.piece)))
                })
                .collect(),
            None => {
                let folder = checkpoint.component(&component);
                let listed = Files::listed(&folder).map_err(|error| match files::is_without(&folder) {
                    true => single.lacks(&component, checkpoint.dir()),
                    false => error,
                });
                listed?.1.into_iter().collect()
            }
        };
        all.extend(entries.into_iter().map(|(name, entry)| (format!("{component}.{name}"), entry)));
    }
    Ok((single.path().to_owned(), all))
}

/// The place of a piece of a tensor.
fn piece(mut entry: Entry, piece: Piece) -> Entry {
    let rows = entry.shape.first().copied().unwrap_or(1).max(1);
    match piece {
        Piece::Whole => {}
        Piece::Rows { first, count } => {
            let row = entry.length / rows as u64;
            entry.offset += first as u64 * row;
            entry.length = count as u64 * row;
            entry.shape[0] = count;
        }
        Piece::Squeezed => {
            while entry.shape.len() > 2 && entry.shape.last() == Some(&1) {
                entry.shape.pop();
            }
        }
        Piece::Swapped => entry.change = Some(Change::Swapped),
        Piece::Transposed => {
            entry.shape.reverse();
            entry.change = Some(Change::Transposed);
        }
        Piece::Identity(width) => {
            entry.shape = vec![width, width];
            entry.stored = Stored::F32;
            entry.length = 4 * (width * width) as u64;
            entry.change = Some(Change::Identity);
        }
    }
    entry
}
