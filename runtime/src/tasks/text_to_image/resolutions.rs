//! The resolutions that PixArt was trained on, by aspect ratio (`ASPECT_RATIO_1024_BIN` and its relatives).

/// Height over width, and height and width in pixels, of models for images of 1024 by 1024 pixels; those for other sizes have the same
/// in proportion.
const RESOLUTIONS: [(f64, [usize; 2]); 33] = [
    (0.25, [512, 2048]),
    (0.28, [512, 1856]),
    (0.32, [576, 1792]),
    (0.33, [576, 1728]),
    (0.35, [576, 1664]),
    (0.4, [640, 1600]),
    (0.42, [640, 1536]),
    (0.48, [704, 1472]),
    (0.5, [704, 1408]),
    (0.52, [704, 1344]),
    (0.57, [768, 1344]),
    (0.6, [768, 1280]),
    (0.68, [832, 1216]),
    (0.72, [832, 1152]),
    (0.78, [896, 1152]),
    (0.82, [896, 1088]),
    (0.88, [960, 1088]),
    (0.94, [960, 1024]),
    (1.0, [1024, 1024]),
    (1.07, [1024, 960]),
    (1.13, [1088, 960]),
    (1.21, [1088, 896]),
    (1.29, [1152, 896]),
    (1.38, [1152, 832]),
    (1.46, [1216, 832]),
    (1.67, [1280, 768]),
    (1.75, [1344, 768]),
    (2.0, [1408, 704]),
    (2.09, [1472, 704]),
    (2.4, [1536, 640]),
    (2.5, [1600, 640]),
    (3.0, [1728, 576]),
    (4.0, [2048, 512]),
];

/// Those that models for images of 2048 by 2048 pixels have besides (`ASPECT_RATIO_2048_BIN`).
const LARGE: [(f64, [usize; 2]); 7] = [
    (0.26, [1024, 3968]),
    (0.27, [1024, 3840]),
    (2.89, [3328, 1152]),
    (3.11, [3584, 1152]),
    (3.62, [3712, 1024]),
    (3.75, [3840, 1024]),
    (3.88, [3968, 1024]),
];

/// The resolution of the nearest aspect ratio (`classify_height_width_bin`), of a model that was trained on images of this height and
/// width; `None` for models of other sizes.
pub(super) fn trained(trained: [usize; 2], [height, width]: [usize; 2]) -> Option<[usize; 2]> {
    let [side @ (256 | 512 | 1024 | 2048), _] = trained else { return None };
    let scaled = RESOLUTIONS.iter().map(|(ratio, size)| (*ratio, size.map(|pixels| pixels * side / 1024)));
    let large = LARGE.iter().copied().filter(|_| side == 2048);
    let asked = height as f64 / width as f64;
    let distance = |(ratio, _): &(f64, [usize; 2])| (ratio - asked).abs();
    scaled.chain(large).min_by(|a, b| distance(a).total_cmp(&distance(b))).map(|(_, size)| size)
}

/// The size of Hunyuan-DiT's that is nearest in aspect ratio, and of those in area (`map_to_standard_shapes`).
pub(super) fn standard([height, width]: [usize; 2]) -> [usize; 2] {
    // Width over height, and widths and heights.
    const SHAPES: [(f64, &[[usize; 2]]); 5] = [
        (1.0, &[[1024, 1024], [1280, 1280]]),
        (4.0 / 3.0, &[[1024, 768], [1152, 864], [1280, 960]]),
        (3.0 / 4.0, &[[768, 1024], [864, 1152], [960, 1280]]),
        (16.0 / 9.0, &[[1280, 768]]),
        (9.0 / 16.0, &[[768, 1280]]),
    ];
    let size = [width, height].map(|side| side / 16 * 16);
    if SHAPES.iter().any(|(_, shapes)| shapes.contains(&size)) {
        return [size[1], size[0]];
    }
    let ratio = size[0] as f64 / size[1].max(1) as f64;
    let nearest = SHAPES.iter().min_by(|(a, _), (b, _)| (a - ratio).abs().total_cmp(&(b - ratio).abs()));
    let shapes = nearest.map_or(SHAPES[0].1, |(_, shapes)| shapes);
    let area = |[width, height]: [usize; 2]| width * height;
    let nearest = shapes.iter().min_by_key(|shape| area(**shape).abs_diff(area(size)));
    nearest.map_or([1024, 1024], |[width, height]| [*height, *width])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_aspect_ratio_is_taken() {
        assert_eq!(trained([1024; 2], [700, 1024]), Some([832, 1216]));
        assert_eq!(trained([256; 2], [80, 120]), Some([208, 304]));
        assert_eq!(trained([2048; 2], [260, 1000]), Some([1024, 3968]));
        assert_eq!(trained([512; 2], [10, 10]), Some([512, 512]));
        assert_eq!(trained([64; 2], [16, 16]), None);
    }

    #[test]
    fn sizes_become_those_of_hunyuan_dit() {
        assert_eq!(standard([1024, 768]), [1024, 768]);
        assert_eq!(standard([1030, 770]), [1024, 768]);
        assert_eq!(standard([512, 512]), [1024, 1024]);
        assert_eq!(standard([2000, 2000]), [1280, 1280]);
        assert_eq!(standard([900, 1200]), [864, 1152]);
        assert_eq!(standard([900, 300]), [1280, 768]);
    }
}
