//! The sizes that images become, as processor files write them.

use serde_json::Value as Json;

use super::nearest_grid::nearest_grid;

/// Height and width in pixels.
pub type Pixels = (usize, usize);

/// `MAX_IMAGE_SIZE` of `Idefics3ImageProcessor`.
const LARGEST: usize = 4096;

/// The longest edge that is taken for one.
const MOST: usize = 1 << 16;

/// What `size` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// `height` and `width`: the proportions change.
    Exact(Pixels),
    /// `shortest_edge`: the shorter edge; the other follows.
    Shortest(usize),
    /// `shortest_edge` and `longest_edge`: the shorter edge, unless the longer one grew beyond its limit.
    Between {
        /// The shorter edge.
        shortest: usize,
        /// The most that the longer edge may have.
        longest: usize,
    },
    /// The shorter edge; both are then rounded up to a multiple (`size_divisor` of `TextNetImageProcessor`).
    ShortestMultiple {
        /// `shortest_edge`.
        edge: usize,
        /// `size_divisor`.
        multiple: usize,
    },
    /// `shortest_edge` and `longest_edge` as in [`Size::Between`]; both are then rounded up to a multiple (`size_divisor` of
    /// `MaskFormerImageProcessor`).
    BetweenMultiple {
        /// The shorter edge.
        shortest: usize,
        /// The most that the longer edge may have.
        longest: usize,
        /// `size_divisor`.
        multiple: usize,
    },
    /// `shortest_edge` and what the longer edge may have; both are rounded to whole pixels (`get_resize_output_image_size` of
    /// `ViltImageProcessor`).
    ShortestRounded {
        /// `shortest_edge`.
        edge: usize,
        /// The most that the longer edge may have.
        longest: usize,
    },
    /// `max_height` and `max_width`: as large as fits.
    Within(Pixels),
    /// `longest_edge` (`Idefics3ImageProcessor`): the longer edge; the other follows and is made even, at most 4096.
    Longest(usize),
    /// `longest_edge` (`SamImageProcessor`): the longer edge; the other follows, rounded.
    LongestRounded(usize),
    /// Smaller where an edge has more than these pixels, then each edge the next multiple of a patch's
    /// (`PixtralImageProcessor`).
    WithinPatches {
        /// The most height and width, before edges become multiples.
        most: Pixels,
        /// The edge of a patch.
        patch: usize,
    },
    /// The longer edge; the other follows, but has so many pixels at least (`JanusImageProcessor`).
    LongestAtLeast {
        /// The longer edge.
        edge: usize,
        /// `min_size`.
        least: usize,
    },
    /// The longer edge; the other follows, cut to whole pixels, but has so many at least (`AriaImageProcessor`).
    LongestCut {
        /// `max_image_size`.
        edge: usize,
        /// `min_image_size`.
        least: usize,
    },
    /// `shortest_edge` and `longest_edge` as limits of both edges: larger images become smaller, and then each edge has so many
    /// pixels at least (`Idefics2ImageProcessor`).
    Limits {
        /// The fewest pixels of an edge.
        least: usize,
        /// The most pixels of the longer edge.
        most: usize,
    },
    /// `height` and `width` as limits: larger images become as large as fits, others stay as they are (`FuyuImageProcessor`).
    AtMost(Pixels),
    /// Of the image's form, as many patches as there may be (`Pix2StructImageProcessor`).
    MostPatches {
        /// `patch_size`.
        patch: usize,
        /// `max_patches`.
        most: usize,
    },
    /// Of the image's form, as many pixels as there may be patches, edges cut to squares of patches
    /// (`get_aspect_ratio_preserving_size` of `Gemma4ImageProcessor`).
    SoftTokens {
        /// `patch_size` times `pooling_kernel_size`.
        square: usize,
        /// `max_soft_tokens`: the most squares.
        most: usize,
    },
    /// The grid of squares nearest to the image's form that has no more of them (`smart_resize` of `MuseGlimmerImageProcessor`).
    NearestGrid {
        /// `patch_size` times `merge_size`.
        square: usize,
        /// `max_image_tokens`: the most squares.
        most: usize,
    },
    /// The size that the image has.
    Own,
    /// `height` and `width` as the nearest multiples (`ensure_multiple_of`), or with `keep_aspect_ratio` that edge which changes
    /// less, and the other follows.
    Multiples {
        /// `height` and `width`.
        size: Pixels,
        /// `ensure_multiple_of`.
        multiple: usize,
        /// `keep_aspect_ratio`.
        keep_aspect_ratio: bool,
    },
}

impl Size {
    /// Reads a number, a list `[height, width]` or an object. A number is both edges where `square`, else the
    /// shorter one, with `longest` as the limit of the other.
    pub(super) fn read(value: &Json, square: bool, longest: Option<usize>) -> Result<Self, String> {
        let number = |value: &Json| {
            let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
            number.filter(|n| (1..=MOST).contains(n)).ok_or_else(|| format!("{value} is no number of pixels"))
        };
        match value {
            Json::Number(_) if square => number(value).map(|edge| Self::Exact((edge, edge))),
            Json::Number(_) => number(value).map(|shortest| match longest {
                Some(longest) => Self::Between { shortest, longest },
                None => Self::Shortest(shortest),
            }),
            Json::Array(list) if list.len() == 2 => Ok(Self::Exact((number(&list[0])?, number(&list[1])?))),
            Json::Object(object) => {
                let mut keys: Vec<&str> = object.keys().map(String::as_str).collect();
                keys.sort_unstable();
                match keys.as_slice() {
                    ["height", "width"] => {
                        Ok(Self::Exact((number(&value["height"])?, number(&value["width"])?)))
                    }
                    ["shortest_edge"] => number(&value["shortest_edge"]).map(Self::Shortest),
                    ["longest_edge"] => number(&value["longest_edge"]).map(Self::Longest),
                    ["longest_edge", "shortest_edge"] => Ok(Self::Between {
                        shortest: number(&value["shortest_edge"])?,
                        longest: number(&value["longest_edge"])?,
                    }),
                    ["max_height", "max_width"] => {
                        Ok(Self::Within((number(&value["max_height"])?, number(&value["max_width"])?)))
                    }
                    _ => Err(format!("has the keys {}", keys.join(", "))),
                }
            }
            other => Err(format!("{other} is no size")),
        }
    }

    /// The size that an image becomes. Never less than a pixel.
    pub fn of(self, (height, width): Pixels) -> Pixels {
        let (short, long) = (height.min(width), height.max(width));
        let upright = |short: usize, long: usize| {
            let (short, long) = (short.max(1), long.max(1));
            if width <= height { (long, short) } else { (short, long) }
        };
        match self {
            Self::Exact(size) => size,
            Self::Shortest(edge) => upright(edge, quotient(edge * long, short)),
            Self::Between { shortest, longest } => {
                let (min, max) = (short as f64, long as f64);
                // Where the longer edge is the limit, it follows from the shorter one before that is rounded.
                let (edge, exact) = if max / min * shortest as f64 > longest as f64 {
                    let exact = longest as f64 * min / max;
                    (exact.round_ties_even() as usize, exact)
                } else {
                    (shortest, shortest as f64)
                };
                if short == edge { (height, width) } else { upright(edge, (exact * max / min) as usize) }
            }
            Self::ShortestMultiple { edge, multiple } => {
                let (height, width) = Self::Shortest(edge).of((height, width));
                (height.next_multiple_of(multiple), width.next_multiple_of(multiple))
            }
            Self::BetweenMultiple { shortest, longest, multiple } => {
                let (height, width) = Self::Between { shortest, longest }.of((height, width));
                (height.next_multiple_of(multiple), width.next_multiple_of(multiple))
            }
            Self::ShortestRounded { edge, longest } => {
                let scale = edge as f64 / short as f64;
                let scaled =
                    |length: usize| if length == short { edge as f64 } else { scale * length as f64 };
                let (height, width) = (scaled(height), scaled(width));
                let most = height.max(width);
                let less = if most > longest as f64 { longest as f64 / most } else { 1.0 };
                let rounded = |length: f64| ((less * length + 0.5) as usize).max(1);
                (rounded(height), rounded(width))
            }
            Self::Within((most_height, most_width)) => {
                let scale = (most_height as f64 / height as f64).min(most_width as f64 / width as f64);
                let scaled = |edge: usize| ((edge as f64 * scale) as usize).max(1);
                (scaled(height), scaled(width))
            }
            Self::Longest(edge) => {
                let (height, width) = along((height, width), edge);
                let even = |length: usize| if length == edge { length } else { (length + length % 2).max(1) };
                let size = (even(height), even(width));
                let (height, width) = if size.0.max(size.1) > LARGEST { along(size, LARGEST) } else { size };
                (height.max(1), width.max(1))
            }
            Self::LongestRounded(edge) => {
                let scale = edge as f64 / long as f64;
                let scaled = |length: usize| ((length as f64 * scale + 0.5) as usize).max(1);
                (scaled(height), scaled(width))
            }
            Self::WithinPatches { most, patch } => {
                let ratio = (height as f64 / most.0 as f64).max(width as f64 / most.1 as f64).max(1.0);
                let multiple = |edge: usize| {
                    let edge = (edge as f64 / ratio).floor() as usize;
                    edge.max(1).div_ceil(patch.max(1)) * patch.max(1)
                };
                (multiple(height), multiple(width))
            }
            Self::LongestAtLeast { edge, least } => {
                let scale = edge as f64 / long as f64;
                let scaled = |edge: usize| ((edge as f64 * scale).round_ties_even() as usize).max(least);
                (scaled(height), scaled(width))
            }
            Self::LongestCut { edge, least } => {
                let scale = edge as f64 / long as f64;
                let other = ((short as f64 * scale) as usize).max(least);
                if width >= height { (other, edge) } else { (edge, other) }
            }
            Self::Limits { least, most } => {
                let ratio = width as f64 / height as f64;
                let (height, width) = match (width >= height, long > most) {
                    (_, false) => (height, width),
                    (true, true) => ((most as f64 / ratio) as usize, most),
                    (false, true) => (most, (most as f64 * ratio) as usize),
                };
                (height.max(least).max(1), width.max(least).max(1))
            }
            Self::AtMost((most_height, most_width)) if height <= most_height && width <= most_width => {
                (height, width)
            }
            Self::AtMost(most) => Self::Within(most).of((height, width)),
            Self::MostPatches { patch, most } => {
                let edge = patch as f64;
                let scale = (most as f64 * (edge / height as f64) * (edge / width as f64)).sqrt();
                let count = |length: usize| ((scale * length as f64 / edge) as usize).min(most).max(1);
                (count(height) * patch, count(width) * patch)
            }
            Self::SoftTokens { square, most } => {
                let scale = ((most * square * square) as f64 / (height * width) as f64).sqrt();
                let count = |length: usize| (scale * length as f64 / square as f64).floor() as usize;
                let (rows, columns) = match (count(height), count(width)) {
                    (0, _) => (1, (width / height).clamp(1, most)),
                    (_, 0) => ((height / width).clamp(1, most), 1),
                    counts => counts,
                };
                (rows * square, columns * square)
            }
            Self::NearestGrid { square, most } => {
                let (rows, columns) = nearest_grid((height, width), square, most);
                (rows.saturating_mul(square), columns.saturating_mul(square))
            }
            Self::Own => (height, width),
            Self::Multiples { size, multiple, keep_aspect_ratio } => {
                let [mut down, mut across] = [size.0 as f64 / height as f64, size.1 as f64 / width as f64];
                if keep_aspect_ratio && (1.0 - across).abs() < (1.0 - down).abs() {
                    down = across;
                } else if keep_aspect_ratio {
                    across = down;
                }
                let nearest = |length: f64| {
                    let count = (length / multiple.max(1) as f64).round_ties_even() as usize;
                    count.saturating_mul(multiple).max(1)
                };
                (nearest(down * height as f64), nearest(across * width as f64))
            }
        }
    }
}

/// An image's size with this longer edge.
fn along((height, width): Pixels, edge: usize) -> Pixels {
    let ratio = width as f64 / height as f64;
    if width >= height {
        ((edge as f64 / ratio) as usize, edge)
    } else {
        (edge, (edge as f64 * ratio) as usize)
    }
}

fn quotient(dividend: usize, divisor: usize) -> usize {
    (dividend as f64 / divisor as f64) as usize
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_spellings_are_read() {
        let read = |value: Json, square| Size::read(&value, square, None);
        assert_eq!(read(json!(224), true), Ok(Size::Exact((224, 224))));
        assert_eq!(read(json!(224), false), Ok(Size::Shortest(224)));
        assert_eq!(read(json!([3, 4]), false), Ok(Size::Exact((3, 4))));
        assert_eq!(read(json!({"width": 4, "height": 3}), false), Ok(Size::Exact((3, 4))));
        assert_eq!(read(json!({"max_width": 4, "max_height": 3}), false), Ok(Size::Within((3, 4))));
        assert_eq!(
            Size::read(&json!(800), false, Some(1333)),
            Ok(Size::Between { shortest: 800, longest: 1333 })
        );
        assert_eq!(read(json!({"longest_edge": 3}), false), Ok(Size::Longest(3)));
        assert!(read(json!({"edge": 3}), false).unwrap_err().contains("edge"));
        assert!(read(json!(0), true).is_err() && read(json!(-3), true).is_err());
        assert!(read(json!("224"), true).is_err());
    }

    #[test]
    fn edges_follow_each_other() {
        assert_eq!(Size::Shortest(224).of((480, 640)), (224, 298));
        assert_eq!(Size::Shortest(224).of((640, 480)), (298, 224));
        let detr = Size::Between { shortest: 800, longest: 1333 };
        assert_eq!(detr.of((480, 640)), (800, 1066));
        assert_eq!(detr.of((400, 1200)), (444, 1333));
        assert_eq!(detr.of((800, 1000)), (800, 1000));
        let maskformer = Size::BetweenMultiple { shortest: 800, longest: 1333, multiple: 32 };
        assert_eq!(maskformer.of((480, 640)), (800, 1088));
        assert_eq!(Size::Within((50, 50)).of((100, 200)), (25, 50));
        assert_eq!(Size::Own.of((3, 4)), (3, 4));
        // `get_aspect_ratio_preserving_size(height, width, 16, 70 * 9, 3)`.
        let soft = Size::SoftTokens { square: 48, most: 70 };
        assert_eq!((soft.of((480, 640)), soft.of((3, 900))), ((336, 432), (48, 3360)));
        assert_eq!(soft.of((900, 4)), (3360, 48));
        let vilt = Size::ShortestRounded { edge: 384, longest: 639 };
        // 384 of 480 is 0.8; three times as long as wide is more than the limit.
        assert_eq!(vilt.of((480, 641)), (384, 513));
        assert_eq!(vilt.of((300, 100)), (639, 213));
        let multiples =
            |keep_aspect_ratio| Size::Multiples { size: (50, 30), multiple: 14, keep_aspect_ratio };
        assert_eq!(multiples(false).of((480, 640)), (56, 28));
        // The height changes less: 50 of 480, and 66.7 of 640.
        assert_eq!(multiples(true).of((480, 640)), (56, 70));
        assert_eq!(multiples(true).of((40, 31)), (42, 28));
        assert_eq!(Size::Shortest(2).of((1, 9000)), (2, 18000));
        assert_eq!(Size::Within((4, 4)).of((1, 9000)), (1, 4));
        assert_eq!(Size::Longest(100).of((30, 77)), (38, 100));
        assert_eq!(Size::Longest(100).of((77, 31)), (100, 40));
        assert_eq!(Size::Longest(5000).of((1000, 2000)), (2048, 4096));
        assert_eq!(Size::Longest(9).of((1, 900)), (1, 9));
        // 12.8 and 12.4.
        assert_eq!(Size::LongestRounded(32).of((40, 100)), (13, 32));
        assert_eq!(Size::LongestRounded(31).of((100, 40)), (31, 12));
        let patches = Size::WithinPatches { most: (100, 100), patch: 16 };
        assert_eq!(patches.of((30, 77)), (32, 80));
        assert_eq!(patches.of((300, 150)), (112, 64));
        assert_eq!(Size::LongestAtLeast { edge: 100, least: 14 }.of((50, 20)), (100, 40));
        assert_eq!(Size::LongestAtLeast { edge: 100, least: 14 }.of((400, 20)), (100, 14));
        // 49.5 and 10 of 99 and 20.
        assert_eq!(Size::LongestCut { edge: 50, least: 12 }.of((99, 200)), (24, 50));
        assert_eq!(Size::LongestCut { edge: 50, least: 12 }.of((100, 20)), (50, 12));
        let limits = Size::Limits { least: 10, most: 40 };
        assert_eq!(limits.of((30, 20)), (30, 20));
        assert_eq!(limits.of((30, 81)), (14, 40));
        assert_eq!(limits.of((80, 10)), (40, 10));
        assert_eq!(Size::AtMost((50, 40)).of((50, 40)), (50, 40));
        assert_eq!(Size::AtMost((50, 40)).of((25, 80)), (12, 40));
        assert_eq!(Size::MostPatches { patch: 4, most: 6 }.of((20, 30)), (8, 12));
        assert_eq!(Size::MostPatches { patch: 4, most: 6 }.of((1, 900)), (4, 24));
    }
}
