//! Boxes and their names on images.

use image::{Rgb, RgbImage};

use super::Image;

/// Colours that are told apart, for one class after another.
const COLOURS: [[u8; 3]; 8] = [
    [200, 20, 60],
    [0, 100, 180],
    [30, 130, 50],
    [190, 80, 0],
    [130, 30, 160],
    [0, 120, 120],
    [190, 0, 140],
    [110, 90, 0],
];

/// Letters three pixels wide and five high: an octal digit for each row.
const LETTERS: [(char, u16); 40] = [
    (' ', 0o00000),
    ('.', 0o00002),
    ('-', 0o00700),
    ('%', 0o51245),
    ('0', 0o75557),
    ('1', 0o26227),
    ('2', 0o71747),
    ('3', 0o71717),
    ('4', 0o55711),
    ('5', 0o74717),
    ('6', 0o74757),
    ('7', 0o71122),
    ('8', 0o75757),
    ('9', 0o75717),
    ('A', 0o25755),
    ('B', 0o65656),
    ('C', 0o34443),
    ('D', 0o65556),
    ('E', 0o74647),
    ('F', 0o74644),
    ('G', 0o34553),
    ('H', 0o55755),
    ('I', 0o72227),
    ('J', 0o11152),
    ('K', 0o55655),
    ('L', 0o44447),
    ('M', 0o57755),
    ('N', 0o65555),
    ('O', 0o25552),
    ('P', 0o65644),
    ('Q', 0o25563),
    ('R', 0o65655),
    ('S', 0o34216),
    ('T', 0o72222),
    ('U', 0o55557),
    ('V', 0o55552),
    ('W', 0o55775),
    ('X', 0o55255),
    ('Y', 0o55222),
    ('Z', 0o71247),
];

/// What stands for a letter that there is none of.
const OTHER: u16 = 0o71202;

impl Image {
    /// Draws the edges of a box, given by its first and last pixels across and down, and `name` above it, or within
    /// where there is no room above. What lies outside of the image is left out. Boxes of the same `class` have
    /// the same colour.
    pub fn draw_box(&mut self, [xmin, ymin, xmax, ymax]: [i64; 4], class: usize, name: &str) {
        let colour = colour(class);
        let (height, width) = (self.height() as i64, self.width() as i64);
        let thick = self.thick();
        let image = self.rgb_mut();
        for y in ymin.max(0)..=ymax.min(height - 1) {
            for x in xmin.max(0)..=xmax.min(width - 1) {
                let edge = (x - xmin).min(xmax - x).min(y - ymin).min(ymax - y);
                if edge < thick {
                    image.put_pixel(x as u32, y as u32, colour);
                }
            }
        }
        let above = ymin - 7 * self.dot();
        self.draw_name((xmin, if above < 0 { ymin } else { above }), class, name);
    }

    /// Draws a line between two places, across and down in pixels, in the colour of a class. What lies outside is left out.
    pub fn draw_line(&mut self, from: [f32; 2], to: [f32; 2], class: usize) {
        let (along, down) = (to[0] - from[0], to[1] - from[1]);
        let most = (self.height() + self.width()) as f32;
        // A place far outside is drawn towards, not walked to.
        let steps = (along.abs().max(down.abs()).ceil()).clamp(1.0, 2.0 * most);
        if !steps.is_finite() {
            return;
        }
        for step in 0..=steps as usize {
            let share = step as f32 / steps;
            self.draw_square([from[0] + share * along, from[1] + share * down], self.thick() / 2, class);
        }
    }

    /// Draws a disc around a place, across and down in pixels, in the colour of a class.
    pub fn draw_disc(&mut self, place: [f32; 2], class: usize) {
        let radius = 2 * self.thick();
        let colour = colour(class);
        let ([x, y], (height, width)) =
            (place.map(|at| at.round() as i64), (self.height() as i64, self.width() as i64));
        let image = self.rgb_mut();
        for row in y.saturating_sub(radius).max(0)..=y.saturating_add(radius).min(height - 1) {
            for column in x.saturating_sub(radius).max(0)..=x.saturating_add(radius).min(width - 1) {
                if (row - y).pow(2) + (column - x).pow(2) <= radius * radius {
                    image.put_pixel(column as u32, row as u32, colour);
                }
            }
        }
    }

    fn draw_square(&mut self, place: [f32; 2], reach: i64, class: usize) {
        let [x, y] = place.map(|at| at.round() as i64);
        let (height, width) = (self.height() as i64, self.width() as i64);
        let image = self.rgb_mut();
        for row in y.saturating_sub(reach).max(0)..=y.saturating_add(reach).min(height - 1) {
            for column in x.saturating_sub(reach).max(0)..=x.saturating_add(reach).min(width - 1) {
                image.put_pixel(column as u32, row as u32, colour(class));
            }
        }
    }

    /// How thick lines are.
    fn thick(&self) -> i64 {
        (self.height().min(self.width()) as i64 / 200).max(1)
    }

    /// Writes a name on a ground of its class's colour, its upper left corner at `x` and `y`.
    pub fn draw_name(&mut self, (x, y): (i64, i64), class: usize, name: &str) {
        let dot = self.dot();
        write(self.rgb_mut(), name, (x, y), dot, colour(class));
    }

    /// The edge of a letter's dot.
    fn dot(&self) -> i64 {
        (self.height().min(self.width()) as i64 / 150).max(1)
    }
}

/// The colour of a class.
pub(super) fn colour(class: usize) -> Rgb<u8> {
    Rgb(COLOURS[class % COLOURS.len()])
}

/// Writes a line of text in white on a coloured ground, each dot of a letter a square of `dot` pixels.
fn write(image: &mut RgbImage, text: &str, (left, top): (i64, i64), dot: i64, ground: Rgb<u8>) {
    let mut put = |x: i64, y: i64, colour: Rgb<u8>| {
        if (0..i64::from(image.width())).contains(&x) && (0..i64::from(image.height())).contains(&y) {
            image.put_pixel(x as u32, y as u32, colour);
        }
    };
    let letters: Vec<u16> = text.chars().map(letter).collect();
    let across = if letters.is_empty() { 0 } else { 4 * letters.len() as i64 + 1 };
    for y in 0..7 * dot {
        for x in 0..across * dot {
            let (column, row) = (x / dot - 1, y / dot - 1);
            let drawn = usize::try_from(column / 4).ok().and_then(|at| letters.get(at));
            let inside = column >= 0 && column % 4 < 3 && (0..5).contains(&row);
            let white = inside && drawn.is_some_and(|rows| rows >> (14 - 3 * row - column % 4) & 1 == 1);
            put(left + x, top + y, if white { Rgb([255; 3]) } else { ground });
        }
    }
}

fn letter(of: char) -> u16 {
    let upper = of.to_ascii_uppercase();
    LETTERS.iter().find(|(known, _)| *known == upper).map_or(OTHER, |(_, rows)| *rows)
}

#[cfg(test)]
mod tests {
    use ndarray::Array3;

    use super::*;

    fn drawn(height: usize, width: usize, corners: [i64; 4], name: &str) -> String {
        let mut image = Image::from_pixels(&Array3::zeros((height, width, 3))).unwrap();
        image.draw_box(corners, 0, name);
        let mark = |y: usize, x: usize| match image.pixels()[[y, x, 0]] {
            0 => '.',
            255 => '#',
            _ => '+',
        };
        (0..height).map(|y| (0..width).map(|x| mark(y, x)).chain(['\n']).collect::<String>()).collect()
    }

    #[test]
    fn a_box_is_its_edges_within_the_picture() {
        insta::assert_snapshot!(drawn(5, 6, [1, -2, 4, 2], ""), @r"
        .+..+.
        .+..+.
        .++++.
        ......
        ......
        ");
    }

    #[test]
    fn a_name_stands_above_its_box() {
        insta::assert_snapshot!(drawn(11, 20, [1, 8, 17, 12], "cat é"), @r"
        ....................
        .+++++++++++++++++++
        .++##++#++###+++++##
        .+#+++#+#++#++++++++
        .+#+++###++#+++++++#
        .+#+++#+#++#++++++++
        .++##+#+#++#+++++++#
        .+++++++++++++++++++
        .+++++++++++++++++..
        .+...............+..
        .+...............+..
        ");
    }
}
