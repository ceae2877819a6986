//! Boxes cut out of images for top-down pose estimation, by an affine transformation.
//!
//! Reference: `box_to_center_and_scale`, `get_warp_matrix` and `scipy_warp_affine` of `VitPoseImageProcessor`.

use image::{Rgb, RgbImage};

use super::Pixels;

/// How much wider and higher than a box what is cut out is.
const PADDING_FACTOR: f32 = 1.25;

/// What the reference's scale is in, whatever `normalize_factor` says.
const UNIT: f32 = 200.0;

/// What a box stands for: its centre across and down in pixels, and its width and height, padded, in units of 200 pixels
/// (`box_to_center_and_scale`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CenterScale {
    /// Across and down.
    pub center: [f32; 2],
    /// Width and height.
    pub scale: [f32; 2],
}

impl CenterScale {
    /// Of a box, `[left, top, width, height]`, made as wide or as high as what it fills, `(height, width)`.
    pub fn of([left, top, width, height]: [f64; 4], size: Pixels, normalize_factor: f64) -> Self {
        let form = size.1 as f64 / size.0.max(1) as f64;
        let center = [left + width * 0.5, top + height * 0.5].map(|place| place as f32);
        let (width, height) =
            if width > form * height { (width, width / form) } else { (height * form, height) };
        let scale = [width, height].map(|length| (length / normalize_factor) as f32 * PADDING_FACTOR);
        Self { center, scale }
    }

    /// A place on a map of `height` and `width` as one in the image (`transform_preds`).
    pub fn placed(&self, [x, y]: [f32; 2], (height, width): Pixels) -> [f32; 2] {
        let lengths = self.scale.map(|scale| scale * UNIT);
        let steps = [width, height].map(|length| length as f32 - 1.0);
        let place = |axis: usize, at: f32| {
            at * (lengths[axis] / steps[axis]) + self.center[axis] - lengths[axis] * 0.5
        };
        [place(0, x), place(1, y)]
    }

    /// What is cut out of an image, by bilinear interpolation, black beyond its edges.
    pub(super) fn cut(&self, image: &RgbImage, (height, width): Pixels) -> RgbImage {
        let across = self.back(0, width);
        let down = self.back(1, height);
        RgbImage::from_fn(width as u32, height as u32, |x, y| {
            let at = |step: u32, (scale, shift): (f64, f64)| f64::from(step) * scale + shift;
            sampled(image, at(x, across), at(y, down))
        })
    }

    /// What leads from what is cut out back to the image along an axis: a factor and a shift (`get_warp_matrix`, inverted).
    fn back(&self, axis: usize, length: usize) -> (f64, f64) {
        let target = self.scale[axis] * UNIT;
        let factor = (length as f64 - 1.0) / f64::from(target);
        let shift = (factor * f64::from(-0.5 * (self.center[axis] * 2.0) + 0.5 * target)) as f32;
        let factor = f64::from(factor as f32);
        (1.0 / factor, -f64::from(shift) / factor)
    }
}

/// The levels at a place between pixels; black outside.
fn sampled(image: &RgbImage, x: f64, y: f64) -> Rgb<u8> {
    let (last_x, last_y) = (f64::from(image.width()) - 1.0, f64::from(image.height()) - 1.0);
    let inside = (0.0..=last_x).contains(&x) && (0.0..=last_y).contains(&y);
    if !inside {
        return Rgb([0; 3]);
    }
    let (left, top) = (x.floor(), y.floor());
    let (right, below) = ((left + 1.0).min(last_x), (top + 1.0).min(last_y));
    let (across, down) = (x - left, y - top);
    let pixel = |x: f64, y: f64| image.get_pixel(x as u32, y as u32).0;
    let [a, b, c, d] = [pixel(left, top), pixel(right, top), pixel(left, below), pixel(right, below)];
    let level = |channel: usize| {
        let mixed = |first: u8, second: u8| f64::from(first) * (1.0 - across) + f64::from(second) * across;
        let value = mixed(a[channel], b[channel]) * (1.0 - down) + mixed(c[channel], d[channel]) * down;
        (value + 0.5) as u8
    };
    Rgb([level(0), level(1), level(2)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_is_made_as_high_as_what_it_fills_and_padded() {
        // box_to_center_and_scale((10, 20, 40, 30), image_width=3, image_height=4)
        let made = CenterScale::of([10.0, 20.0, 40.0, 30.0], (4, 3), 200.0);
        assert_eq!((made.center, made.scale), ([30.0, 35.0], [0.25, 1.0 / 3.0]));
        let wide = CenterScale::of([0.0, 0.0, 2.0, 30.0], (1, 1), 100.0);
        assert_eq!(wide.scale, [0.375, 0.375]);
    }

    #[test]
    fn what_is_cut_out_lies_between_pixels_and_leads_back() {
        let image = RgbImage::from_fn(8, 8, |x, y| Rgb([(10 * x) as u8, (10 * y) as u8, 50]));
        let place = CenterScale { center: [4.0, 3.0], scale: [0.02, 0.02] };
        let cut = place.cut(&image, (5, 5));
        // Four pixels across, from 2 to 6 and from 1 to 5.
        assert_eq!(cut.get_pixel(0, 0).0, [20, 10, 50]);
        assert_eq!(cut.get_pixel(3, 1).0, [50, 20, 50]);
        let back = place.placed([3.0, 1.0], (5, 5));
        assert!((back[0] - 5.0).abs() < 1e-5 && (back[1] - 2.0).abs() < 1e-5, "{back:?}");
        let beyond = CenterScale { center: [0.0, 0.0], scale: [0.02, 0.02] }.cut(&image, (5, 5));
        assert_eq!((beyond.get_pixel(0, 0).0, beyond.get_pixel(2, 2).0), ([0; 3], [0, 0, 50]));
    }
}
