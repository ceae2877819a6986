//! Resizing as Pillow 13 does it, bit for bit: separable filters that widen as the image shrinks, in fixed-point
//! arithmetic with 22 fractional bits, with 8 bits between the two passes.
//!
//! Libraries that round their weights to 16 bits come to within a few levels only, which normalising multiplies.

use std::f64::consts::PI;

use image::RgbImage;
use serde::Deserialize;

use super::read::MAX_PIXELS;
use crate::{Error, Result};

/// How pixels are weighed: Pillow's filters, by its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u64")]
pub enum Filter {
    /// The pixel that lies nearest: 0.
    Nearest,
    /// A sinc that is cut off at three pixels: 1.
    Lanczos,
    /// A triangle: 2.
    Bilinear,
    /// Cubics with a = -0.5: 3.
    Bicubic,
    /// Equal weights: 4.
    Box,
    /// A cosine bell on a pedestal: 5.
    Hamming,
}

impl Filter {
    /// All of them, by Pillow's numbers.
    pub const ALL: [Self; 6] =
        [Self::Nearest, Self::Lanczos, Self::Bilinear, Self::Bicubic, Self::Box, Self::Hamming];

    /// How far from its middle the filter weighs anything, in pixels.
    fn support(self) -> f64 {
        match self {
            Self::Nearest | Self::Box => 0.5,
            Self::Bilinear | Self::Hamming => 1.0,
            Self::Bicubic => 2.0,
            Self::Lanczos => 3.0,
        }
    }

    /// What a pixel at this distance from its middle weighs.
    pub(super) fn weight(self, x: f64) -> f64 {
        let distance = x.abs();
        let sinc = |x: f64| if x == 0.0 { 1.0 } else { (x * PI).sin() / (x * PI) };
        match self {
            Self::Nearest | Self::Box => f64::from(u8::from(x > -0.5 && x <= 0.5)),
            Self::Bilinear => (1.0 - distance).max(0.0),
            Self::Hamming if distance >= 1.0 => 0.0,
            Self::Hamming => sinc(distance) * (0.54 + 0.46 * (distance * PI).cos()),
            Self::Bicubic if distance < 1.0 => (1.5 * distance - 2.5) * distance * distance + 1.0,
            Self::Bicubic if distance < 2.0 => (((distance - 5.0) * distance + 8.0) * distance - 4.0) * -0.5,
            Self::Lanczos if (-3.0..3.0).contains(&x) => sinc(x) * sinc(x / 3.0),
            Self::Bicubic | Self::Lanczos => 0.0,
        }
    }
}

impl TryFrom<u64> for Filter {
    type Error = String;

    fn try_from(number: u64) -> std::result::Result<Self, String> {
        let filter = usize::try_from(number).ok().and_then(|number| Self::ALL.get(number));
        filter.copied().ok_or_else(|| format!("{number} is no filter; they are 0 (nearest) to 5 (hamming)"))
    }
}

pub(super) fn resize(image: &RgbImage, height: usize, width: usize, filter: Filter) -> Result<RgbImage> {
    let pixels = height as u64 * width as u64;
    let (Ok(rows), Ok(columns), 1..=MAX_PIXELS) = (u32::try_from(height), u32::try_from(width), pixels)
    else {
        let problem = format!("cannot be resized to {height} x {width} pixels");
        return Err(Error::input("image", problem, format!("choose a size of 1 to {MAX_PIXELS} pixels")));
    };
    if filter == Filter::Nearest {
        return Ok(nearest(image, rows, columns));
    }
    let across = |image: RgbImage| {
        if columns == image.width() { image } else { along_rows(&image, columns, filter) }
    };
    let down =
        |image: RgbImage| if rows == image.height() { image } else { along_columns(&image, rows, filter) };
    let image = image.clone();
    Ok(if columns_first(&image, rows, columns) { across(down(image)) } else { down(across(image)) })
}

/// Pillow goes along rows first, unless the height shrinks by more than twice what the width does.
fn columns_first(image: &RgbImage, height: u32, width: u32) -> bool {
    let lost = |from: u32, to: u32| i64::from(from) - i64::from(to);
    let (rows, columns) = (lost(image.height(), height), lost(image.width(), width));
    rows > 0 && 2 * columns < rows
}

const CHANNELS: usize = 3;
const FRACTION_BITS: u32 = 22;
const HALF: i32 = 1 << (FRACTION_BITS - 1);

/// The pixels that make up one pixel of the result: the first of them, and their weights.
struct Taps {
    first: usize,
    weights: Vec<i32>,
}

fn taps(from: u32, to: u32, filter: Filter) -> Vec<Taps> {
    let scale = f64::from(from) / f64::from(to);
    let stretch = scale.max(1.0);
    let support = filter.support() * stretch;
    let at = |index: u32| {
        let middle = (f64::from(index) + 0.5) * scale;
        let first = (middle - support + 0.5).max(0.0) as usize;
        let end = ((middle + support + 0.5) as usize).min(from as usize);
        let offset = |x: usize| (x as f64 - middle + 0.5) * (1.0 / stretch);
        let weights: Vec<f64> = (first..end).map(|x| filter.weight(offset(x))).collect();
        let sum: f64 = weights.iter().sum();
        let fixed = |weight: f64| {
            let weight = if sum == 0.0 { weight } else { weight / sum } * f64::from(1 << FRACTION_BITS);
            (weight + 0.5_f64.copysign(weight)) as i32
        };
        Taps { first, weights: weights.into_iter().map(fixed).collect() }
    };
    (0..to).map(at).collect()
}

fn level(sum: i32) -> u8 {
    (sum >> FRACTION_BITS).clamp(0, 255) as u8
}

fn along_rows(image: &RgbImage, width: u32, filter: Filter) -> RgbImage {
    let taps = taps(image.width(), width, filter);
    let mut target = RgbImage::new(width, image.height());
    let rows = image.as_raw().chunks_exact(image.width() as usize * CHANNELS);
    for (row, target) in rows.zip(target.chunks_exact_mut(width as usize * CHANNELS)) {
        for (pixel, taps) in target.chunks_exact_mut(CHANNELS).zip(&taps) {
            let mut sums = [HALF; CHANNELS];
            for (pixel, weight) in row[taps.first * CHANNELS..].chunks_exact(CHANNELS).zip(&taps.weights) {
                for (sum, level) in sums.iter_mut().zip(pixel) {
                    *sum += i32::from(*level) * weight;
                }
            }
            pixel.copy_from_slice(&sums.map(level));
        }
    }
    target
}

fn along_columns(image: &RgbImage, height: u32, filter: Filter) -> RgbImage {
    let taps = taps(image.height(), height, filter);
    let mut target = RgbImage::new(image.width(), height);
    let length = image.width() as usize * CHANNELS;
    let mut sums = vec![HALF; length];
    for (target, taps) in target.chunks_exact_mut(length).zip(&taps) {
        sums.fill(HALF);
        for (row, weight) in image.as_raw()[taps.first * length..].chunks_exact(length).zip(&taps.weights) {
            for (sum, level) in sums.iter_mut().zip(row) {
                *sum += i32::from(*level) * weight;
            }
        }
        for (target, sum) in target.iter_mut().zip(&sums) {
            *target = level(*sum);
        }
    }
    target
}

/// Positions are summed up step by step, as Pillow does, whose rounding decides between neighbours.
fn nearest(image: &RgbImage, height: u32, width: u32) -> RgbImage {
    let places = |from: u32, to: u32| -> Vec<u32> {
        let step = f64::from(from) / f64::from(to);
        let place = |at: &mut f64| {
            let place = *at as u32;
            *at += step;
            Some(place.min(from - 1))
        };
        (0..to).scan(step * 0.5, |at, _| place(at)).collect()
    };
    let (rows, columns) = (places(image.height(), height), places(image.width(), width));
    RgbImage::from_fn(width, height, |x, y| *image.get_pixel(columns[x as usize], rows[y as usize]))
}
