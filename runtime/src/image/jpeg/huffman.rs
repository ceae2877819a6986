//! Huffman codes.

use super::bits::Bits;
use super::{Result, damaged};

/// Codes of up to this many bits are looked up.
const LOOKED_UP: u32 = 8;

/// A code's symbols by its bits.
#[derive(Clone)]
pub(super) struct Huffman {
    /// By the next eight bits: the length of the code that they begin with, 0 where it is longer, and its symbol.
    short: [(u8, u8); 1 << LOOKED_UP],
    /// By length: the first code above those of this length, and what to add to a code for its symbol's place.
    above: [(i32, i32); 17],
    symbols: Vec<u8>,
}

impl Huffman {
    /// From how many codes there are of each length, and their symbols in order.
    pub(super) fn new(counts: &[u8; 16], symbols: &[u8]) -> Result<Self> {
        let mut made = Self { short: [(0, 0); 256], above: [(0, 0); 17], symbols: symbols.to_vec() };
        let (mut code, mut place) = (0_i32, 0_usize);
        for (length, count) in (1_u32..).zip(counts) {
            let first = code;
            for _ in 0..*count {
                if code >= 1 << length || symbols.len() > 256 {
                    return damaged("a Huffman table has more codes than fit");
                }
                if length <= LOOKED_UP {
                    let free = LOOKED_UP - length;
                    let from = (code as usize) << free;
                    made.short[from..from + (1 << free)].fill((length as u8, symbols[place]));
                }
                code += 1;
                place += 1;
            }
            made.above[length as usize] = (code, place as i32 - (first + i32::from(*count)));
            code <<= 1;
        }
        Ok(made)
    }

    /// Whether all symbols count bits of a difference, as those of a DC table must.
    pub(super) fn is_dc(&self) -> bool {
        self.symbols.iter().all(|symbol| *symbol < 16)
    }

    /// The next symbol; 0 where the bits are no code.
    pub(super) fn symbol(&self, bits: &mut Bits<'_>) -> u8 {
        let next = bits.peek();
        let (length, symbol) = self.short[(next >> 8) as usize];
        if length > 0 {
            bits.skip(u32::from(length));
            return symbol;
        }
        for length in LOOKED_UP + 1..=16 {
            let code = (next >> (16 - length)) as i32;
            let (above, offset) = self.above[length as usize];
            if code < above {
                bits.skip(length);
                return self.symbols.get((code + offset) as usize).copied().unwrap_or(0);
            }
        }
        bits.skip(17);
        0
    }
}
