//! The bits of compressed data, up to the next marker.

use super::markers::{self, FIRST_RESTART};

/// Bits that a marker cuts short are padded with zeros to this many at a time, as libjpeg does.
const FILLED: u32 = 57;

pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The next bits, from the highest on; those below `count` are 0.
    buffer: u64,
    count: u32,
    /// A marker ended the data too early, and zeros stand for what is missing.
    pub(super) starved: bool,
    /// The file ended too early.
    pub(super) cut_short: bool,
}

impl<'a> Bits<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at, buffer: 0, count: 0, starved: false, cut_short: false }
    }

    /// The place of the first byte that was not taken; that of a marker, where there is one.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn fill(&mut self) {
        while self.count <= 56 {
            let Some(byte) = self.bytes.get(self.at) else { return };
            if *byte == 0xff {
                // Any number of 0xff may stand before a marker; before a 0 they are one byte of data.
                let rest = &self.bytes[self.at..];
                let after = rest.iter().position(|byte| *byte != 0xff);
                // The last of them stands for all: they are not gone through again.
                self.at += after.unwrap_or(rest.len()) - 1;
                if after.is_none_or(|after| rest[after] != 0) {
                    return;
                }
                self.at += 1;
            }
            self.at += 1;
            self.buffer |= u64::from(*byte) << (56 - self.count);
            self.count += 8;
        }
    }

    /// The next 16 bits, zeros where there are no more.
    pub(super) fn peek(&mut self) -> u32 {
        if self.count < 16 {
            self.fill();
        }
        (self.buffer >> 48) as u32
    }

    /// Takes bits, at most 17.
    pub(super) fn skip(&mut self, length: u32) {
        if self.count < length {
            self.fill();
            if self.count < length {
                self.starve();
            }
        }
        self.buffer <<= length;
        self.count -= length;
    }

    fn starve(&mut self) {
        self.cut_short |= markers::find(self.bytes, self.at).is_none();
        self.starved = true;
        self.count = FILLED;
    }

    /// A number of up to 16 bits.
    pub(super) fn take(&mut self, length: u32) -> i32 {
        if length == 0 {
            return 0;
        }
        let value = self.peek() >> (16 - length);
        self.skip(length);
        value as i32
    }

    /// A signed number of up to 15 bits, the negative ones below half.
    pub(super) fn signed(&mut self, length: u32) -> i32 {
        let value = self.take(length);
        if length > 0 && value < 1 << (length - 1) { value + 1 - (1 << length) } else { value }
    }

    /// Goes on behind a restart marker, the `number`th of eight.
    ///
    /// Where another marker stands, libjpeg's rule decides whether to look further, to take it for the one that was
    /// expected, or to leave the data up to it empty.
    pub(super) fn restart(&mut self, number: u8) {
        self.buffer = 0;
        self.count = 0;
        loop {
            let Some((marker, after)) = markers::find(self.bytes, self.at) else {
                self.cut_short = true;
                return;
            };
            let ahead = marker.wrapping_sub(FIRST_RESTART);
            // What stands before the marker is passed over, whatever becomes of it.
            self.at = after - 2;
            let skipped = match marker {
                0..0xc0 => true,
                _ if ahead > 7 => break,
                _ => match ahead.wrapping_sub(number) & 7 {
                    1 | 2 => break,
                    6 | 7 => true,
                    _ => false,
                },
            };
            self.at = after;
            if !skipped {
                self.starved = false;
                return;
            }
        }
    }
}
