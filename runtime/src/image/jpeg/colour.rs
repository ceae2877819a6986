//! Components to red, green and blue, in 16-bit fixed point.

use super::Result;
use super::frame::Frame;
use super::markers::Tables;
use super::upsample::Upsample;

/// What the components are.
#[derive(Clone, Copy)]
enum Space {
    Grey,
    Rgb,
    /// Luminance and two differences.
    YCbCr,
    /// Inks, stored as what they leave of the light.
    Cmyk,
    /// Inks as luminance and differences of what they leave, and black.
    Ycck,
}

impl Space {
    /// libjpeg's guess: JFIF has differences; Adobe's segment tells; then the components' names.
    fn of(frame: &Frame, tables: &Tables) -> Self {
        let names: Vec<u8> = frame.components.iter().map(|component| component.id).collect();
        match (names.as_slice(), tables.adobe) {
            ([_], _) => Self::Grey,
            ([_, _, _, _], Some(0) | None) => Self::Cmyk,
            ([_, _, _, _], _) => Self::Ycck,
            _ if tables.jfif => Self::YCbCr,
            (_, Some(0)) | (b"RGB", None) => Self::Rgb,
            _ => Self::YCbCr,
        }
    }
}

/// The image's pixels, three bytes each.
pub(super) fn levels(frame: &Frame, tables: &Tables) -> Result<Vec<u8>> {
    let space = Space::of(frame, tables);
    let upsamples: Result<Vec<_>> = frame.components.iter().map(|c| Upsample::new(frame, c)).collect();
    let mut upsamples = upsamples?;
    let room = frame.components.iter().map(|c| c.width * (frame.across / c.across)).max().unwrap_or(0);
    let mut rows = vec![vec![0; room.max(frame.width)]; upsamples.len()];
    let mut levels = Vec::with_capacity(3 * frame.width * frame.height);
    for y in 0..frame.height {
        for (upsample, row) in upsamples.iter_mut().zip(&mut rows) {
            upsample.row(y, row);
        }
        levels.extend((0..frame.width).flat_map(|x| {
            let at = |component: usize| rows[component][x];
            match space {
                Space::Grey => [at(0); 3],
                Space::Rgb => [at(0), at(1), at(2)],
                Space::YCbCr => rgb(at(0), at(1), at(2)),
                Space::Cmyk => inked([at(0), at(1), at(2)], at(3)),
                Space::Ycck => inked(rgb(at(0), at(1), at(2)).map(|level| 255 - level), at(3)),
            }
        }));
    }
    Ok(levels)
}

/// ITU-R BT.601 over the whole range.
fn rgb(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    /// A factor with 16 fractional bits.
    const fn fixed(factor: f64) -> i32 {
        (factor * 65536.0 + 0.5) as i32
    }
    const HALF: i32 = 1 << 15;
    let (y, cb, cr) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
    let red = y + ((fixed(1.402) * cr + HALF) >> 16);
    let green = y + ((-fixed(0.34414) * cb - fixed(0.71414) * cr + HALF) >> 16);
    let blue = y + ((fixed(1.772) * cb + HALF) >> 16);
    [red, green, blue].map(|level| level.clamp(0, 255) as u8)
}

/// Inks over white, as Pillow puts them: it takes all files for inverted, as Adobe's are.
fn inked(light: [u8; 3], black: u8) -> [u8; 3] {
    light.map(|light| {
        let product = (255 - u32::from(light)) * u32::from(black) + 128;
        black.saturating_sub(((product + (product >> 8)) >> 8) as u8)
    })
}
