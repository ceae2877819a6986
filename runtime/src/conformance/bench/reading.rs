//! What bounds single tokens: reading every weight once.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use memmap2::Mmap;

use crate::Result;
use crate::hub::Checkpoint;
use crate::loaded::millis;
use crate::weights::Files;

/// Bytes that a thread takes at a time.
const BLOCK: usize = 256 * 1024;

/// The weight files of a checkpoint, to be read and nothing else.
pub(super) struct Reading {
    maps: Vec<Mmap>,
    threads: usize,
}

impl Reading {
    pub(super) fn of(checkpoint: &str, threads: usize) -> Result<Self> {
        let files = Files::open(&Checkpoint::open(checkpoint)?)?;
        Ok(Self { maps: files.maps()?, threads: threads.max(1) })
    }

    /// The milliseconds in which the threads read all bytes.
    pub(super) fn round(&self) -> f64 {
        let start = Instant::now();
        for map in &self.maps {
            let blocks = Mutex::new(map.chunks(BLOCK));
            let next = || blocks.lock().unwrap_or_else(PoisonError::into_inner).next();
            std::thread::scope(|scope| {
                for _ in 0..self.threads {
                    scope.spawn(|| {
                        while let Some(block) = next() {
                            std::hint::black_box(sum(block));
                        }
                    });
                }
            });
        }
        millis(start)
    }
}

/// Cheap enough that memory alone takes the time.
fn sum(bytes: &[u8]) -> u64 {
    let mut sums = [0_u64; 16];
    for line in bytes.as_chunks::<128>().0 {
        for (sum, word) in sums.iter_mut().zip(line.as_chunks().0) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*word));
        }
    }
    sums.iter().fold(0, |all, sum| all.wrapping_add(*sum))
}
