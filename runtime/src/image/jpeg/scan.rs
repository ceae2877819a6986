//! A scan: the blocks of one or more components, in the order in which they are stored.

use super::bits::Bits;
use super::frame::Frame;
use super::huffman::Huffman;
use super::markers::{Markers, Tables, cut_short};
use super::progressive::{Band, Progressive};
use super::sequential::Sequential;
use super::{Result, damaged};

/// A component in a scan, with its tables.
#[derive(Clone, Copy)]
pub(super) struct ScanComponent<'t> {
    pub(super) component: usize,
    pub(super) dc: Option<&'t Huffman>,
    pub(super) ac: Option<&'t Huffman>,
}

/// How a block is read from its bits.
pub(super) trait Coding {
    /// Forgets what carries over from block to block.
    fn restart(&mut self);
    /// Reads the block at a place of a component.
    fn block(&mut self, bits: &mut Bits<'_>, frame: &mut Frame, part: usize, place: (usize, usize));
}

/// Reads a scan and stands behind it; tells whether it held the whole image.
pub(super) fn read(markers: &mut Markers<'_>, tables: &Tables, frame: &mut Frame) -> Result<bool> {
    let segment = markers.segment()?;
    let Some((count, rest)) = segment.split_first() else { return damaged("a scan's header is cut short") };
    let count = usize::from(*count);
    if !(1..=frame.components.len()).contains(&count) || rest.len() != 2 * count + 3 {
        return damaged("a scan's header has a wrong length");
    }
    let mut parts: Vec<ScanComponent<'_>> = Vec::with_capacity(count);
    for [id, of] in rest[..2 * count].as_chunks::<2>().0 {
        let fits =
            |i: &usize| frame.components[*i].id == *id && parts.iter().all(|part| part.component != *i);
        let Some(component) = (0..frame.components.len()).find(fits) else {
            return damaged(format!("a scan is of component {id}, which the image has not"));
        };
        frame.components[component].keep_steps(&tables.quantization)?;
        let (dc, ac) = (table(&tables.dc, of >> 4), table(&tables.ac, of & 15));
        parts.push(ScanComponent { component, dc, ac });
    }
    let [first, last, shifts] = [rest[2 * count], rest[2 * count + 1], rest[2 * count + 2]];
    let mut bits = Bits::new(markers.bytes, markers.at);
    let whole = if frame.progressive {
        let band = Band::new(first, last, shifts, count)?;
        blocks(&mut bits, tables.restart_interval, frame, &parts, &mut Progressive::new(&parts, band)?)?;
        false
    } else {
        blocks(&mut bits, tables.restart_interval, frame, &parts, &mut Sequential::new(&parts)?)?;
        count == frame.components.len()
    };
    markers.at = bits.at();
    Ok(whole)
}

fn table(tables: &[Option<Huffman>; 4], number: u8) -> Option<&Huffman> {
    tables.get(usize::from(number))?.as_ref()
}

/// Goes through the blocks: MCU by MCU, or row by row where there is one component.
fn blocks(
    bits: &mut Bits<'_>,
    interval: usize,
    frame: &mut Frame,
    parts: &[ScanComponent<'_>],
    coding: &mut impl Coding,
) -> Result<()> {
    let alone = parts.len() == 1;
    let (wide, high) = if alone {
        let component = &frame.components[parts[0].component];
        (component.blocks_wide, component.blocks_high)
    } else {
        (frame.width.div_ceil(8 * frame.across), frame.height.div_ceil(8 * frame.down))
    };
    let size = |frame: &Frame, part: &ScanComponent<'_>| {
        let component = &frame.components[part.component];
        if alone { (1, 1) } else { (component.across, component.down) }
    };
    let in_mcu: usize = parts.iter().map(|part| size(frame, part)).map(|(h, v)| h * v).sum();
    // The standard's limit, which libjpeg keeps.
    if in_mcu > 10 {
        return damaged("an MCU has more than 10 blocks");
    }
    let Some(left) = frame.blocks_left.checked_sub(wide * high * in_mcu) else {
        return damaged("its scans go through it more than a hundred times");
    };
    frame.blocks_left = left;
    for index in 0..wide * high {
        if interval > 0 && index > 0 && index % interval == 0 {
            bits.restart(((index / interval - 1) % 8) as u8);
            coding.restart();
        }
        // Nothing more comes before the next restart.
        if !bits.starved {
            for (number, part) in parts.iter().enumerate() {
                let (across, down) = size(frame, part);
                let corner = (index % wide * across, index / wide * down);
                for block in 0..across * down {
                    let place = (corner.0 + block % across, corner.1 + block / across);
                    coding.block(bits, frame, number, place);
                }
            }
        }
        if bits.cut_short {
            return cut_short();
        }
    }
    Ok(())
}
