//! Blocks of baseline and extended sequential files.

use super::bits::Bits;
use super::frame::Frame;
use super::huffman::Huffman;
use super::markers::NATURAL_ORDER;
use super::scan::{Coding, ScanComponent};
use super::{Result, damaged};

pub(super) struct Sequential<'t> {
    parts: Vec<(usize, &'t Huffman, &'t Huffman)>,
    /// Each component's last DC coefficient.
    last: Vec<i32>,
}

impl<'t> Sequential<'t> {
    pub(super) fn new(parts: &[ScanComponent<'t>]) -> Result<Self> {
        let last = vec![0; parts.len()];
        let tables =
            |part: &ScanComponent<'t>| Some((part.component, part.dc.filter(|dc| dc.is_dc())?, part.ac?));
        let Some(parts) = parts.iter().map(tables).collect() else {
            return damaged("a scan names a Huffman table that is not there");
        };
        Ok(Self { parts, last })
    }
}

impl Coding for Sequential<'_> {
    fn restart(&mut self) {
        self.last.fill(0);
    }

    fn block(&mut self, bits: &mut Bits<'_>, frame: &mut Frame, part: usize, (x, y): (usize, usize)) {
        let (component, dc, ac) = self.parts[part];
        let mut block = [0_i16; 64];
        let length = dc.symbol(bits);
        let last = &mut self.last[part];
        *last = last.wrapping_add(bits.signed(u32::from(length)));
        block[0] = *last as i16;
        let mut k = 1;
        while k < 64 {
            let symbol = ac.symbol(bits);
            let (zeros, length) = (usize::from(symbol >> 4), u32::from(symbol & 15));
            if length > 0 {
                k += zeros;
                block[usize::from(NATURAL_ORDER[k])] = bits.signed(length) as i16;
            } else if zeros == 15 {
                k += 15;
            } else {
                break;
            }
            k += 1;
        }
        frame.components[component].transform(x, y, &block);
    }
}
