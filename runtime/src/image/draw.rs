//! Boxes on pictures.

use image::Rgb;

use super::Image;

/// Colours that are told apart, for one class after another.
const COLOURS: [[u8; 3]; 8] = [
    [230, 25, 75],
    [0, 130, 200],
    [60, 180, 75],
    [245, 130, 48],
    [145, 30, 180],
    [70, 240, 240],
    [240, 50, 230],
    [255, 225, 25],
];

impl Image {
    /// Draws the edges of a box, given by its first and last pixels across and down. What lies outside of the
    /// picture is left out. Boxes of the same `class` have the same colour.
    pub fn draw_box(&mut self, [xmin, ymin, xmax, ymax]: [i64; 4], class: usize) {
        let colour = Rgb(COLOURS[class % COLOURS.len()]);
        let (height, width) = (self.height() as i64, self.width() as i64);
        let thick = (height.min(width) / 200).max(1);
        let image = self.rgb_mut();
        for y in ymin.max(0)..=ymax.min(height - 1) {
            for x in xmin.max(0)..=xmax.min(width - 1) {
                let edge = (x - xmin).min(xmax - x).min(y - ymin).min(ymax - y);
                if edge < thick {
                    image.put_pixel(x as u32, y as u32, colour);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array3;

    use super::*;

    #[test]
    fn a_box_is_its_edges_within_the_picture() {
        let mut image = Image::from_pixels(&Array3::zeros((5, 6, 3))).unwrap();
        image.draw_box([1, -2, 4, 2], 0);
        let drawn = |y: usize, x: usize| image.pixels()[[y, x, 0]] == 230;
        let rows: Vec<String> =
            (0..5).map(|y| (0..6).map(|x| if drawn(y, x) { '#' } else { '.' }).collect()).collect();
        assert_eq!(rows, [".#..#.", ".#..#.", ".####.", "......", "......"]);
    }
}
