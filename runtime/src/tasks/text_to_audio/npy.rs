//! Numbers of a `.npy` file, as speaker embeddings are published.

use std::path::Path;

use crate::{Error, Result, files};

const MAGIC: &[u8] = b"\x93NUMPY";

/// Reads speaker embeddings: the float32 or float64 numbers of a `.npy` file (`numpy.save`), in their order.
///
/// # Errors
/// When it cannot be read or is no such file.
pub fn read_speaker_embeddings(path: impl AsRef<Path>) -> Result<Vec<f32>> {
    let path = path.as_ref();
    let bytes = files::read(path).map_err(|e| Error::io(path, e))?;
    numbers(&bytes).ok_or_else(|| {
        let problem = format!("{} holds no float32 or float64 numbers in C order", path.display());
        Error::input("speaker_embeddings", problem, "write it with `numpy.save` of a float32 vector")
    })
}

fn numbers(bytes: &[u8]) -> Option<Vec<f32>> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (version, rest) = rest.split_at_checked(2)?;
    let width = if version[0] == 1 { 2 } else { 4 };
    let (length, rest) = rest.split_at_checked(width)?;
    let length = length.iter().rev().fold(0_usize, |all, byte| all << 8 | usize::from(*byte));
    let (header, data) = rest.split_at_checked(length)?;
    let header = std::str::from_utf8(header).ok()?;
    if header.contains("'fortran_order': True") {
        return None;
    }
    if header.contains("'<f4'") {
        let number = |four: &[u8]| Some(f32::from_le_bytes(four.try_into().ok()?));
        return data.chunks_exact(4).map(number).collect();
    }
    let number = |eight: &[u8]| Some(f64::from_le_bytes(eight.try_into().ok()?) as f32);
    header.contains("'<f8'").then(|| data.chunks_exact(8).map(number).collect())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(kind: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': (1, 2), }}\n");
        let length = (header.len() as u16).to_le_bytes();
        [MAGIC, &[1, 0], &length, header.as_bytes(), data].concat()
    }

    #[test]
    fn numbers_of_both_widths_are_read() {
        let single: Vec<u8> = [0.5_f32, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!(numbers(&file("<f4", &single)).unwrap(), [0.5, -2.0]);
        let double: Vec<u8> = [0.25_f64, 3.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!(numbers(&file("<f8", &double)).unwrap(), [0.25, 3.0]);
    }

    #[test]
    fn what_is_no_such_file_is_refused() {
        assert!(numbers(&file("<i8", &[0; 16])).is_none());
        assert!(numbers(b"\x93NUMPY\x01\x00\xff\xff{}").is_none());
        assert!(numbers(b"RIFF").is_none());
    }
}
