//! Bytes of weights in memory, in huge pages where Linux gives them (`MADV_HUGEPAGE`).
//!
//! A step reads every weight once, and of pages of 4 KiB a processor looks up where each lies: on a virtual machine with a Zen 4
//! one thread reads 16 GB/s of those and 28 of pages of 2 MiB, two 27 and 35. They are written to sooner, too: 640 MB in 0.09
//! seconds and 0.4.

#![cfg_attr(target_os = "linux", allow(unsafe_code))]

use std::ops::{Deref, DerefMut};

/// Bytes in memory.
pub struct Buffer(Place);

enum Place {
    Own(Vec<u8>),
    #[cfg(target_os = "linux")]
    Huge(huge::Range),
}

/// As many zeros, in huge pages where the system has some to give: for what lives as long as a model does.
pub fn zeros(length: usize) -> Buffer {
    #[cfg(target_os = "linux")]
    if let Some(range) = huge::zeros(length) {
        return Buffer(Place::Huge(range));
    }
    Buffer(Place::Own(vec![0; length]))
}

impl Buffer {
    /// The same bytes as [`zeros`] places them.
    pub fn in_huge_pages(&self) -> Self {
        let mut moved = zeros(self.len());
        moved.copy_from_slice(self);
        moved
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Place::Own(bytes))
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Place::Own(bytes) => bytes,
            #[cfg(target_os = "linux")]
            Place::Huge(range) => range.bytes(),
        }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Place::Own(bytes) => bytes,
            #[cfg(target_os = "linux")]
            Place::Huge(range) => range.bytes_mut(),
        }
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

#[cfg(target_os = "linux")]
mod huge {
    use std::sync::{Arc, Mutex, PoisonError, Weak};

    use memmap2::{Advice, MmapRaw, UncheckedAdvice};

    /// The bytes of a huge page.
    const PAGE: usize = 2 << 20;
    /// The bytes of a page that is not huge, at least.
    const SMALL: usize = 4 << 10;
    /// Ranges begin at lines of the caches.
    const LINE: usize = 64;
    /// Below this many bytes, they stay in the caches, or are too few to tell.
    const FEW: usize = 64 << 10;
    /// The bytes of a piece that ranges share, of which those that are not written to take no memory; a larger range has one for
    /// itself.
    const PIECE: usize = 1 << 30;

    /// Memory from the system.
    struct Piece {
        memory: MmapRaw,
        /// The first byte that a huge page begins with.
        start: usize,
    }

    impl Piece {
        fn new(length: usize) -> Option<Self> {
            // One page more than is needed, since the system may begin anywhere; what is not written to is in no page.
            let memory: MmapRaw = memmap2::MmapMut::map_anon(length + PAGE).ok()?.into();
            memory.advise(Advice::HugePage).ok()?;
            let start = memory.as_ptr().addr().next_multiple_of(PAGE) - memory.as_ptr().addr();
            Some(Self { memory, start })
        }
    }

    /// Bytes of a piece that nobody else has.
    pub(super) struct Range {
        piece: Arc<Piece>,
        start: usize,
        length: usize,
    }

    /// The piece that ranges come from, and how much of it is taken.
    static LAST: Mutex<(Weak<Piece>, usize)> = Mutex::new((Weak::new(), 0));

    /// As many zeros; none where they are few, or the system has none to give.
    pub(super) fn zeros(length: usize) -> Option<Range> {
        if length < FEW {
            return None;
        }
        if length > PIECE / 2 {
            return Some(Range { piece: Arc::new(Piece::new(length)?), start: 0, length });
        }
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        let (piece, start) = match last.0.upgrade() {
            Some(piece) if last.1 + length <= PIECE => (piece, last.1),
            _ => (Arc::new(Piece::new(PIECE)?), 0),
        };
        *last = (Arc::downgrade(&piece), (start + length).next_multiple_of(LINE));
        Some(Range { piece, start, length })
    }

    impl Drop for Range {
        /// Gives back the pages that are the range's alone: its neighbours may live for long.
        fn drop(&mut self) {
            let start = (self.piece.start + self.start).next_multiple_of(SMALL);
            let end = (self.piece.start + self.start + self.length) / SMALL * SMALL;
            if start < end {
                // SAFETY: nobody reads them any more. Where pages are larger, it is refused, and they go with the piece.
                let given = unsafe {
                    self.piece.memory.unchecked_advise_range(UncheckedAdvice::DontNeed, start, end - start)
                };
                given.unwrap_or_default();
            }
        }
    }

    impl Range {
        fn first(&self) -> *mut u8 {
            self.piece.memory.as_mut_ptr().wrapping_add(self.piece.start + self.start)
        }

        pub(super) fn bytes(&self) -> &[u8] {
            // SAFETY: the piece has them, and lives as long as the range; who writes to them has the range for itself.
            unsafe { std::slice::from_raw_parts(self.first(), self.length) }
        }

        pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
            // SAFETY: as above; no other range has any of them.
            unsafe { std::slice::from_raw_parts_mut(self.first(), self.length) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_zero_and_apart() {
        let lengths = [10, 64 << 10, (64 << 10) + 1, 3 << 20, 20 << 20, 15 << 20, 15 << 20, 7 << 20];
        let mut buffers: Vec<Buffer> = lengths.map(zeros).into();
        for (index, (buffer, length)) in buffers.iter_mut().zip(lengths).enumerate() {
            assert_eq!(buffer.len(), length);
            assert!(buffer.iter().all(|byte| *byte == 0));
            buffer.fill(index as u8 + 1);
        }
        for (index, buffer) in buffers.iter().enumerate() {
            assert!(buffer.iter().all(|byte| *byte == index as u8 + 1));
            assert_eq!(buffer.in_huge_pages(), *buffer);
        }
        drop(buffers);
        assert!(zeros(1 << 20).iter().all(|byte| *byte == 0));
    }
}
