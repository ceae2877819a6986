//! Planes of lower resolution, row by row in the image's.
//!
//! Half the resolution is spread by a triangle: three quarters of the nearer level and one of the farther. Rounding
//! goes up and down in turns, so that it does not drift. Other ratios, and planes of one or two columns, repeat levels.

use super::frame::{Component, Frame};
use super::{Result, unsupported};

/// How a plane becomes the image's size.
pub(super) struct Upsample<'a> {
    component: &'a Component,
    across: usize,
    down: usize,
    /// Sums of levels of two rows.
    sums: Vec<u16>,
}

impl<'a> Upsample<'a> {
    pub(super) fn new(frame: &Frame, component: &'a Component) -> Result<Self> {
        if !frame.across.is_multiple_of(component.across) || !frame.down.is_multiple_of(component.down) {
            return unsupported("has components whose resolutions are no whole multiples");
        }
        let (across, down) = (frame.across / component.across, frame.down / component.down);
        Ok(Self { component, across, down, sums: vec![0; component.width] })
    }

    /// Writes the `y`th row; `row` has a level for each of the component's times the ratio.
    pub(super) fn row(&mut self, y: usize, row: &mut [u8]) {
        let component = self.component;
        let near_row = y / self.down;
        let at = near_row * component.stride();
        let near = &component.plane[at..at + component.width];
        let fancy = component.width > 2;
        match (self.across, self.down) {
            (1, 1) => row[..near.len()].copy_from_slice(near),
            (2, 1) if fancy => wider(near, row),
            (1, 2) => {
                let up = y.is_multiple_of(2);
                let bias = if up { 1 } else { 2 };
                for (level, (near, far)) in row.iter_mut().zip(near.iter().zip(self.far(near_row, up))) {
                    *level = ((3 * u16::from(*near) + u16::from(*far) + bias) >> 2) as u8;
                }
            }
            (2, 2) if fancy => {
                let far = self.far(near_row, y.is_multiple_of(2));
                let mut sums = std::mem::take(&mut self.sums);
                for (sum, (near, far)) in sums.iter_mut().zip(near.iter().zip(far)) {
                    *sum = 3 * u16::from(*near) + u16::from(*far);
                }
                wider_sums(&sums, row);
                self.sums = sums;
            }
            (across, _) => {
                for (levels, level) in row.chunks_mut(across).zip(near) {
                    levels.fill(*level);
                }
            }
        }
    }

    /// The row above or below; at the image's edge the row itself.
    fn far(&self, row: usize, above: bool) -> &'a [u8] {
        let component = self.component;
        let row = if above { row.saturating_sub(1) } else { (row + 1).min(component.height - 1) };
        let at = row * component.stride();
        &component.plane[at..at + component.width]
    }
}

/// Twice as wide.
fn wider(near: &[u8], row: &mut [u8]) {
    let level = |x: usize| u16::from(near[x]);
    let last = near.len() - 1;
    for (x, pair) in row.as_chunks_mut::<2>().0.iter_mut().enumerate().take(near.len()) {
        let left = if x == 0 { level(0) } else { (3 * level(x) + level(x - 1) + 1) >> 2 };
        let right = if x == last { level(x) } else { (3 * level(x) + level(x + 1) + 2) >> 2 };
        *pair = [left as u8, right as u8];
    }
}

/// Twice as wide, from sums of four levels each.
fn wider_sums(sums: &[u16], row: &mut [u8]) {
    let last = sums.len() - 1;
    for (x, pair) in row.as_chunks_mut::<2>().0.iter_mut().enumerate().take(sums.len()) {
        let left = 3 * sums[x] + sums[x.saturating_sub(1)];
        let right = 3 * sums[x] + sums[(x + 1).min(last)];
        *pair = [((left + 8) >> 4) as u8, ((right + 7) >> 4) as u8];
    }
}
