//! JPEG files, bit for bit as libjpeg-turbo decodes them by default, through which the reference reads them.
//!
//! The standard leaves open how the inverse transform is rounded and how colour of lower resolution is spread. Here are
//! libjpeg-turbo's ways: its accurate integer transform, its triangle filter, its colour conversion in fixed point.
//! Damage within the data is passed over as there: what is missing is grey. Read are 8-bit baseline, extended and
//! progressive files with Huffman codes.

mod bits;
mod colour;
mod frame;
mod huffman;
mod idct;
mod markers;
mod progressive;
mod scan;
mod sequential;
mod typical;
mod upsample;

use self::frame::Frame;
use self::markers::{Markers, Tables};

/// Why a file is not read.
#[derive(Debug)]
pub(super) enum Problem {
    /// What it says contradicts itself, or ends early.
    Damaged(String),
    /// A kind of JPEG that is not decoded.
    Unsupported(String),
    /// Its width and height are more than was allowed.
    TooLarge((u32, u32)),
}

type Result<T> = std::result::Result<T, Problem>;

/// An image as it is stored, not yet turned upright.
pub(super) struct Decoded {
    pub(super) width: u32,
    pub(super) height: u32,
    /// Red, green and blue, a byte each.
    pub(super) levels: Vec<u8>,
    /// Its EXIF data, from the byte order on.
    pub(super) exif: Option<Vec<u8>>,
}

fn damaged<T>(what: impl Into<String>) -> Result<T> {
    Err(Problem::Damaged(what.into()))
}

fn unsupported<T>(what: impl Into<String>) -> Result<T> {
    Err(Problem::Unsupported(what.into()))
}

/// Decodes a file of at most `most` pixels.
pub(super) fn decode(bytes: &[u8], most: u64) -> Result<Decoded> {
    let mut markers = Markers::new(bytes)?;
    let mut tables = Tables::default();
    let mut frame: Option<Frame> = None;
    let mut scanned = false;
    loop {
        match markers.next()? {
            markers::END => break,
            kind @ 0xc0..=0xcf if !matches!(kind, markers::HUFFMAN | 0xc8 | 0xcc) => {
                if frame.is_some() {
                    return damaged("it has two frames");
                }
                frame = Some(Frame::read(kind, markers.segment()?, bytes.len(), most)?);
            }
            markers::SCAN => {
                let Some(frame) = &mut frame else {
                    return damaged("its data begin before its size is said");
                };
                // As libjpeg, which knows no typical tables for progressive files.
                if !frame.progressive {
                    tables.complete()?;
                }
                let whole = scan::read(&mut markers, &tables, frame)?;
                scanned = true;
                if whole {
                    pass_over(&mut markers)?;
                    break;
                }
            }
            kind => tables.read(kind, &mut markers)?,
        }
    }
    let Some(mut frame) = frame.filter(|_| scanned) else { return damaged("it has no image data") };
    frame.transform();
    let levels = colour::levels(&frame, &tables)?;
    Ok(Decoded { width: frame.width as u32, height: frame.height as u32, levels, exif: tables.exif })
}

/// What stands between the data of a whole image and its end: as libjpeg, which minds only what it cannot pass over.
/// The reference refuses what has no end.
fn pass_over(markers: &mut Markers<'_>) -> Result<()> {
    let mut kind = markers.next()?;
    let mut tables = Tables::default();
    while kind != markers::END {
        if kind == markers::SCAN || matches!(kind, 0xc0..=0xcf) && kind != markers::HUFFMAN {
            return damaged("its data are followed by others");
        }
        tables.read(kind, markers)?;
        match markers.next() {
            Ok(next) => kind = next,
            Err(_) => break,
        }
    }
    Ok(())
}
