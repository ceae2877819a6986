//! Markers, and the segments that hold tables.

use super::huffman::Huffman;
use super::{Result, damaged, typical, unsupported};

pub(super) const HUFFMAN: u8 = 0xc4;
pub(super) const FIRST_RESTART: u8 = 0xd0;
pub(super) const END: u8 = 0xd9;
pub(super) const SCAN: u8 = 0xda;
const LAST_RESTART: u8 = 0xd7;
const START: u8 = 0xd8;
const QUANTIZATION: u8 = 0xdb;
const RESTART_INTERVAL: u8 = 0xdd;
const JFIF: u8 = 0xe0;
const EXIF: u8 = 0xe1;
const ADOBE: u8 = 0xee;

/// Where the coefficient that is stored at a place stands in its block, row by row.
///
/// Damaged data lead past the end: then it is the last one, as in libjpeg.
#[rustfmt::skip]
pub(super) const NATURAL_ORDER: [u8; 80] = [
     0,  1,  8, 16,  9,  2,  3, 10, 17, 24, 32, 25, 18, 11,  4,  5,
    12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13,  6,  7, 14, 21, 28,
    35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
    58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
    63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
];

/// A file's bytes, marker by marker.
pub(super) struct Markers<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Markers<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self> {
        if !bytes.starts_with(&[0xff, START]) {
            return damaged("it does not begin as JPEG does");
        }
        Ok(Self { bytes, at: 2 })
    }

    /// The next marker, past whatever stands before it.
    pub(super) fn next(&mut self) -> Result<u8> {
        let Some((kind, after)) = find(self.bytes, self.at) else { return cut_short() };
        self.at = after;
        Ok(kind)
    }

    /// What belongs to the marker just read.
    pub(super) fn segment(&mut self) -> Result<&'a [u8]> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some(length) = rest.first_chunk() else { return cut_short() };
        let length = usize::from(u16::from_be_bytes(*length));
        if length < 2 {
            return damaged("a segment is shorter than its own length");
        }
        let Some(segment) = rest.get(2..length) else { return cut_short() };
        self.at += length;
        Ok(segment)
    }
}

/// The first marker from a place on, and the place behind it.
pub(super) fn find(bytes: &[u8], from: usize) -> Option<(u8, usize)> {
    let rest = bytes.get(from..)?;
    let at = rest.windows(2).position(|pair| pair[0] == 0xff && !matches!(pair[1], 0 | 0xff))?;
    Some((rest[at + 1], from + at + 2))
}

pub(super) fn cut_short<T>() -> Result<T> {
    damaged("the JPEG data stop before their end")
}

/// What stands between frames and scans.
#[derive(Default)]
pub(super) struct Tables {
    /// Steps of quantization, row by row.
    pub(super) quantization: [Option<[u16; 64]>; 4],
    pub(super) dc: [Option<Huffman>; 4],
    pub(super) ac: [Option<Huffman>; 4],
    /// MCUs from one restart to the next; 0 where there is none.
    pub(super) restart_interval: usize,
    pub(super) jfif: bool,
    /// The colour transform that Adobe's segment names.
    pub(super) adobe: Option<u8>,
    pub(super) exif: Option<Vec<u8>>,
}

impl Tables {
    pub(super) fn read(&mut self, kind: u8, markers: &mut Markers<'_>) -> Result<()> {
        match kind {
            // Markers that stand alone.
            0x01 | FIRST_RESTART..=LAST_RESTART => return Ok(()),
            START => return damaged("it begins twice"),
            0xcc => return unsupported("has arithmetic coding"),
            // Reserved, or of kinds of JPEG that nobody reads.
            0x02..=0xbf | 0xc8 | 0xde | 0xdf | 0xf0..=0xfd => {
                return damaged(format!("its marker {kind:#04x} has no meaning"));
            }
            _ => {}
        }
        let segment = markers.segment()?;
        match kind {
            QUANTIZATION => self.quantization(segment)?,
            HUFFMAN => self.huffman(segment)?,
            RESTART_INTERVAL => {
                let Some(interval) = segment.first_chunk() else { return cut_short() };
                self.restart_interval = usize::from(u16::from_be_bytes(*interval));
            }
            JFIF if segment.len() >= 14 && segment.starts_with(b"JFIF\0") => self.jfif = true,
            EXIF if self.exif.is_none() => self.exif = segment.strip_prefix(b"Exif\0\0").map(<[u8]>::to_vec),
            ADOBE if segment.len() >= 12 && segment.starts_with(b"Adobe") => self.adobe = Some(segment[11]),
            _ => {}
        }
        Ok(())
    }

    /// Puts the typical Huffman tables where the file has given none.
    pub(super) fn complete(&mut self) -> Result<()> {
        for (tables, typical) in [(&mut self.dc, typical::DC), (&mut self.ac, typical::AC)] {
            for (table, (counts, symbols)) in tables.iter_mut().zip(typical) {
                if table.is_none() {
                    *table = Some(Huffman::new(&counts, symbols)?);
                }
            }
        }
        Ok(())
    }

    fn quantization(&mut self, mut segment: &[u8]) -> Result<()> {
        while let Some((first, rest)) = segment.split_first() {
            let width = if first >> 4 == 0 { 1 } else { 2 };
            let (Some(table), Some(steps)) =
                (self.quantization.get_mut(usize::from(first & 15)), rest.get(..64 * width))
            else {
                return damaged("a quantization table is none");
            };
            let table = table.insert([0; 64]);
            for (place, step) in NATURAL_ORDER.iter().zip(steps.chunks_exact(width)) {
                table[usize::from(*place)] = step.iter().fold(0, |sum, byte| sum << 8 | u16::from(*byte));
            }
            segment = &rest[64 * width..];
        }
        Ok(())
    }

    fn huffman(&mut self, mut segment: &[u8]) -> Result<()> {
        while let Some((first, rest)) = segment.split_first() {
            let tables = if first & 16 == 0 { &mut self.dc } else { &mut self.ac };
            let (Some(table), Some((counts, rest))) =
                (tables.get_mut(usize::from(first & !16)), rest.split_first_chunk::<16>())
            else {
                return damaged("a Huffman table is none");
            };
            let total = counts.iter().map(|count| usize::from(*count)).sum();
            let Some(symbols) = rest.get(..total) else { return damaged("a Huffman table is cut short") };
            *table = Some(Huffman::new(counts, symbols)?);
            segment = &rest[total..];
        }
        Ok(())
    }
}
