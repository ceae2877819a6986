//! The sizes that PP-OCR's image processors resize pages and lines of text to.
//!
//! Reference: `PPOCRV5ServerDetImageProcessor.get_image_size` and `PPOCRV5ServerRecImageProcessor.get_target_size`.

use super::Pixels;

/// What pages and lines of text are resized to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextSize {
    /// A page of the form that it has, about (`get_image_size`): its edges are multiples of 32.
    Page {
        /// `limit_type`: what `limit` holds for.
        side: LimitedSide,
        /// `limit_side_len`.
        limit: usize,
        /// `max_side_limit`: the most pixels of the longer edge, whatever else is said.
        most: usize,
    },
    /// A page, whatever its form.
    Exact(Pixels),
    /// A line of text (`get_target_size`): its height, and no more columns than `most`.
    Line {
        /// `height` and `width` of `size`.
        size: Pixels,
        /// `max_image_width`.
        most: usize,
    },
}

/// `limit_type` of PP-OCR's text detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedSide {
    /// `max`: the longer edge is not longer.
    Longer,
    /// `min`: the shorter edge is not shorter.
    Shorter,
    /// `resize_long`: the longer edge is as long.
    ExactlyLonger,
}

/// What edges of pages are multiples of.
const MULTIPLE: f64 = 32.0;

impl TextSize {
    /// What an image of this height and width becomes.
    pub fn of(self, from: Pixels) -> Pixels {
        match self {
            Self::Page { side, limit, most } => page(from, side, limit, most),
            Self::Exact(size) => size,
            Self::Line { size, most } => line(from, size, most),
        }
    }
}

fn page((height, width): Pixels, side: LimitedSide, limit: usize, most: usize) -> Pixels {
    let (longer, shorter) = (height.max(width), height.min(width).max(1));
    let ratio = match side {
        LimitedSide::Longer if longer <= limit => 1.0,
        LimitedSide::Shorter if shorter >= limit => 1.0,
        LimitedSide::Longer | LimitedSide::ExactlyLonger => limit as f64 / longer.max(1) as f64,
        LimitedSide::Shorter => limit as f64 / shorter as f64,
    };
    let scaled = |edge: usize, ratio: f64| (edge as f64 * ratio) as usize;
    let mut edges = [height, width].map(|edge| scaled(edge, ratio));
    let longer = edges[0].max(edges[1]);
    if longer > most {
        edges = edges.map(|edge| scaled(edge, most as f64 / longer as f64));
    }
    let [height, width] =
        edges.map(|edge| ((edge as f64 / MULTIPLE).round_ties_even() * MULTIPLE).max(MULTIPLE) as usize);
    (height, width)
}

fn line((height, width): Pixels, size: Pixels, most: usize) -> Pixels {
    let form = width as f64 / height.max(1) as f64;
    let filled = size.0 as f64 * form.max(size.1 as f64 / size.0.max(1) as f64);
    let columns = filled as usize;
    if columns > most {
        return (size.0, most);
    }
    // A line that is shorter than `size` is padded, not stretched.
    let own = (size.0 as f64 * form).ceil() as usize;
    (size.0, columns.min(own).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_of_pages_are_multiples_within_limits() {
        let page = |side, limit, most, from| TextSize::Page { side, limit, most }.of(from);
        assert_eq!(page(LimitedSide::Longer, 960, 4000, (100, 50)), (96, 64));
        assert_eq!(page(LimitedSide::Longer, 64, 4000, (100, 50)), (64, 32));
        assert_eq!(page(LimitedSide::Shorter, 96, 4000, (100, 48)), (192, 96));
        assert_eq!(page(LimitedSide::ExactlyLonger, 320, 160, (100, 50)), (160, 64));
        assert_eq!(page(LimitedSide::Longer, 960, 4000, (3, 500)), (32, 512));
    }

    #[test]
    fn lines_have_one_height_and_are_padded_where_they_are_short() {
        let line = |from| TextSize::Line { size: (48, 320), most: 600 }.of(from);
        assert_eq!(line((24, 61)), (48, 122));
        assert_eq!(line((20, 33)), (48, 80));
        assert_eq!(line((24, 201)), (48, 402));
        assert_eq!(line((24, 2000)), (48, 600));
    }
}
