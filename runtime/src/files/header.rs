//! The header of a `safetensors` file, checked: names, element types, shapes and places of its tensors.

use std::path::Path;

use safetensors::SafeTensorError;
#[cfg(not(target_family = "wasm"))]
use safetensors::tensor::SafeTensors;
use safetensors::tensor::{Metadata, TensorInfo};

use crate::{Error, Result};

/// The header of the file whose real place is `real`, and where its data begins.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn read(real: &Path, path: &Path) -> Result<(usize, Metadata)> {
    let file = std::fs::File::open(real).map_err(|e| Error::io(path, e))?;
    let length = file.metadata().map_err(|e| Error::io(path, e))?.len();
    if length == 0 {
        return Err(damaged(path, "is empty".to_owned()));
    }
    let map = map(&file).map_err(|e| Error::io(path, e))?;
    if map.starts_with(LFS) {
        return Err(pointer(path));
    }
    let (size, metadata) = SafeTensors::read_metadata(&map).map_err(|e| damaged(path, explain(&e, &map)))?;
    Ok((size + 8, metadata))
}

/// The header of a file that a page fetches in ranges: the library wants all of a file, and these are its own checks.
#[cfg(target_family = "wasm")]
pub(crate) fn read(real: &Path, path: &Path) -> Result<(usize, Metadata)> {
    use crate::files;

    let length = files::length(real).map_err(|e| Error::io(path, e))?;
    let range = |offset, wanted: u64| files::range(real, offset, wanted).map_err(|e| Error::io(path, e));
    let first = range(0, length.min(LFS.len() as u64))?;
    let refused = |error: &SafeTensorError| damaged(path, explain(error, &first));
    if first.is_empty() {
        return Err(damaged(path, "is empty".to_owned()));
    }
    if first == LFS {
        return Err(pointer(path));
    }
    let Some((size, _)) = first.split_first_chunk::<8>() else {
        return Err(refused(&SafeTensorError::HeaderTooSmall));
    };
    let size = u64::from_le_bytes(*size);
    if size > MOST_HEADER {
        return Err(refused(&SafeTensorError::HeaderTooLarge));
    }
    if size + 8 > length {
        return Err(damaged(path, format!("is cut off within its header, at {length} bytes")));
    }
    let metadata: Metadata = serde_json::from_slice(&range(8, size)?)
        .map_err(|e| damaged(path, format!("has a header that cannot be right: {e}")))?;
    let end = metadata.tensors().values().map(|tensor| tensor.data_offsets.1 as u64).max().unwrap_or(0);
    if size + 8 + end != length {
        let listed = size + 8 + end;
        return Err(damaged(path, format!("has {length} bytes where its header lists {listed}")));
    }
    Ok((size as usize + 8, metadata))
}

/// How a file begins that Git LFS left in place of the weights.
const LFS: &[u8] = b"version https://git-lfs";

/// The longest header, as the library has it.
#[cfg(target_family = "wasm")]
const MOST_HEADER: u64 = 100_000_000;

fn pointer(path: &Path) -> Error {
    let help = "fetch the files themselves: `git lfs pull` in the folder, or `hf download`";
    Error::weights(path, "is a pointer of Git LFS, not the weights", help)
}

#[cfg(not(target_family = "wasm"))]
fn map(file: &std::fs::File) -> std::io::Result<memmap2::Mmap> {
    // SAFETY: the map is read-only; a file that another program truncates meanwhile is the one risk, as for every
    // reader of mapped weights.
    #[allow(unsafe_code)]
    unsafe {
        memmap2::Mmap::map(file)
    }
}

pub(crate) fn damaged(path: &Path, problem: String) -> Error {
    Error::weights(path, problem, "download the file again and compare its size with the published one")
}

/// The library's reasons, in words that tell what to look at.
pub(crate) fn explain(error: &SafeTensorError, file: &[u8]) -> String {
    let length = file.len();
    match error {
        SafeTensorError::HeaderTooSmall => format!("is not a safetensors file: only {length} bytes"),
        SafeTensorError::HeaderTooLarge => {
            "is not a safetensors file: its header claims to be over 100 MB".to_owned()
        }
        SafeTensorError::InvalidHeaderLength => format!("is cut off within its header, at {length} bytes"),
        SafeTensorError::MetadataIncompleteBuffer => {
            format!(
                "does not hold the data its header lists: it is cut off or has bytes too many, at {length} bytes"
            )
        }
        SafeTensorError::InvalidOffset(name) => {
            format!("tensor `{name}` overlaps another one, or leaves a gap: the header's offsets are wrong")
        }
        SafeTensorError::TensorInvalidInfo | SafeTensorError::ValidationOverflow => {
            let tensor =
                misfit(file).map_or_else(|| "a tensor".to_owned(), |name| format!("tensor `{name}`"));
            format!("{tensor} has a shape and a dtype that do not fit the number of its bytes")
        }
        other => format!("is not a valid safetensors file: {other}"),
    }
}

/// The first tensor whose bytes are not as many as its shape and dtype say.
fn misfit(file: &[u8]) -> Option<String> {
    let (size, rest) = file.split_first_chunk::<8>()?;
    let header = rest.get(..usize::try_from(u64::from_le_bytes(*size)).ok()?)?;
    let header: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(header).ok()?;
    let fits = |info: &TensorInfo| {
        let elements = info.shape.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
        let bits = elements.and_then(|n| n.checked_mul(info.dtype.bitsize()));
        let bytes = info.data_offsets.1.checked_sub(info.data_offsets.0);
        bits.is_some() && bits == bytes.and_then(|bytes| bytes.checked_mul(8))
    };
    let mut tensors =
        header.into_iter().filter_map(|(name, info)| Some((name, serde_json::from_value(info).ok()?)));
    tensors.find(|(_, info)| !fits(info)).map(|(name, _)| name)
}
