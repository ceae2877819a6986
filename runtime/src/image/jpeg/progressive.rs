//! Blocks of progressive files: bands of coefficients, and one more bit of those that are there.

use super::bits::Bits;
use super::frame::Frame;
use super::huffman::Huffman;
use super::markers::NATURAL_ORDER;
use super::scan::{Coding, ScanComponent};
use super::{Result, damaged};

/// What a scan holds of each block.
#[derive(Clone, Copy)]
pub(super) struct Band {
    first: usize,
    last: usize,
    /// Whether one bit is added to what earlier scans gave.
    refines: bool,
    /// By how many bits values are shifted.
    low: u32,
}

impl Band {
    pub(super) fn new(first: u8, last: u8, shifts: u8, components: usize) -> Result<Self> {
        let (high, low) = (shifts >> 4, shifts & 15);
        let band = if first == 0 { last == 0 } else { first <= last && last < 64 && components == 1 };
        if !band || low > 13 || (high != 0 && high != low + 1) {
            return damaged(format!("a scan is of coefficients {first} to {last}, bits {high} to {low}"));
        }
        Ok(Self { first: first.into(), last: last.into(), refines: high != 0, low: low.into() })
    }
}

pub(super) struct Progressive<'t> {
    band: Band,
    parts: Vec<(usize, Option<&'t Huffman>)>,
    /// Each component's last DC coefficient.
    last: Vec<i32>,
    /// How many blocks to come have no more coefficients in the band.
    ended: u32,
}

impl<'t> Progressive<'t> {
    pub(super) fn new(parts: &[ScanComponent<'t>], band: Band) -> Result<Self> {
        let table = |part: &ScanComponent<'t>| match (band.first, band.refines) {
            (0, true) => Some((part.component, None)),
            (0, false) => Some((part.component, Some(part.dc.filter(|dc| dc.is_dc())?))),
            _ => Some((part.component, Some(part.ac?))),
        };
        let last = vec![0; parts.len()];
        let Some(parts) = parts.iter().map(table).collect() else {
            return damaged("a scan names a Huffman table that is not there");
        };
        Ok(Self { band, parts, last, ended: 0 })
    }

    fn first_band(&mut self, bits: &mut Bits<'_>, table: &Huffman, block: &mut [i16]) {
        if self.ended > 0 {
            self.ended -= 1;
            return;
        }
        let mut k = self.band.first;
        while k <= self.band.last {
            let symbol = table.symbol(bits);
            let (zeros, length) = (symbol >> 4, u32::from(symbol & 15));
            if length > 0 {
                k += usize::from(zeros);
                block[usize::from(NATURAL_ORDER[k])] = (bits.signed(length) << self.band.low) as i16;
            } else if zeros == 15 {
                k += 15;
            } else {
                self.ended = run(bits, zeros) - 1;
                break;
            }
            k += 1;
        }
    }

    fn refined_band(&mut self, bits: &mut Bits<'_>, table: &Huffman, block: &mut [i16]) {
        let (one, last) = (1_i16 << self.band.low, self.band.last);
        let mut k = self.band.first;
        while self.ended == 0 && k <= last {
            let symbol = table.symbol(bits);
            let mut zeros = i32::from(symbol >> 4);
            let mut value = 0;
            if symbol & 15 != 0 {
                value = if bits.take(1) != 0 { one } else { -one };
            } else if zeros != 15 {
                self.ended = run(bits, symbol >> 4);
                break;
            }
            // Past those that are there, which get their bit, and past as many that are not.
            while k <= last {
                let coefficient = &mut block[usize::from(NATURAL_ORDER[k])];
                if *coefficient != 0 {
                    refine(bits, coefficient, one);
                } else if zeros == 0 {
                    break;
                } else {
                    zeros -= 1;
                }
                k += 1;
            }
            if value != 0 {
                block[usize::from(NATURAL_ORDER[k])] = value;
            }
            k += 1;
        }
        if self.ended > 0 {
            for place in NATURAL_ORDER.get(k..=last).unwrap_or_default() {
                let coefficient = &mut block[usize::from(*place)];
                if *coefficient != 0 {
                    refine(bits, coefficient, one);
                }
            }
            self.ended -= 1;
        }
    }
}

/// How many blocks end here, this one included.
fn run(bits: &mut Bits<'_>, length: u8) -> u32 {
    (1 << length) + bits.take(u32::from(length)) as u32
}

/// Adds one bit, away from zero, unless the coefficient has it.
fn refine(bits: &mut Bits<'_>, coefficient: &mut i16, one: i16) {
    if bits.take(1) != 0 && *coefficient & one == 0 {
        *coefficient = coefficient.wrapping_add(if *coefficient < 0 { -one } else { one });
    }
}

impl Coding for Progressive<'_> {
    fn restart(&mut self) {
        self.last.fill(0);
        self.ended = 0;
    }

    fn block(&mut self, bits: &mut Bits<'_>, frame: &mut Frame, part: usize, (x, y): (usize, usize)) {
        let (component, table) = self.parts[part];
        let component = &mut frame.components[component];
        let at = 64 * (y * component.blocks_stride + x);
        let block = &mut component.coefficients[at..at + 64];
        match table {
            None => block[0] |= (bits.take(1) << self.band.low) as i16,
            Some(table) if self.band.first > 0 && self.band.refines => self.refined_band(bits, table, block),
            Some(table) if self.band.first > 0 => self.first_band(bits, table, block),
            Some(table) => {
                let length = table.symbol(bits);
                let last = &mut self.last[part];
                *last = last.wrapping_add(bits.signed(u32::from(length)));
                block[0] = (*last << self.band.low) as i16;
            }
        }
    }
}
