//! The grid of squares nearest to an image's form (`smart_resize` of `MuseGlimmerImageProcessor`).

use super::Pixels;

/// Rows and columns of squares of this edge, rounded up or down to the grid nearest to the image's form, of which there are no more than
/// `most`.
pub(super) fn nearest_grid((height, width): Pixels, square: usize, most: usize) -> (usize, usize) {
    let (mut rows, mut columns) = (height as f64 / square as f64, width as f64 / square as f64);
    let ratio = columns / rows;
    if rows * columns > most as f64 {
        rows = (most as f64 / ratio).powf(0.5);
        columns = rows * ratio;
    }
    let sides = |length: f64| [length.floor() as usize, length.ceil() as usize];
    let all = sides(rows).into_iter().flat_map(|row| sides(columns).map(|column| (row, column)));
    let fits = |(rows, columns): &(usize, usize)| (1..=most).contains(&rows.saturating_mul(*columns));
    let form = height as f64 / width as f64;
    let off = |(rows, columns): (usize, usize)| (rows as f64 / columns as f64 - form).abs();
    let nearest = in_set_order(all).into_iter().filter(fits).reduce(|best, next| {
        // The first of several that are as near.
        if off(next) < off(best) { next } else { best }
    });
    let rounded = |length: f64| (length.round_ties_even() as usize).max(1);
    nearest.unwrap_or((rounded(rows), rounded(columns)))
}

/// Up to four pairs in the order in which Python iterates over a set of them, by which the reference chooses among those that are as near:
/// a table of eight places by the hashes of the pairs.
fn in_set_order(pairs: impl Iterator<Item = (usize, usize)>) -> Vec<(usize, usize)> {
    let mut table = [None; 8];
    for pair in pairs {
        let mut perturb = tuple_hash(pair);
        let mut place = perturb % 8;
        while table[place as usize].is_some_and(|there| there != pair) {
            perturb >>= 5;
            place = (place * 5 + 1 + perturb % 8) % 8;
        }
        table[place as usize] = Some(pair);
    }
    table.into_iter().flatten().collect()
}

/// CPython's hash of a tuple of two whole numbers (xxHash).
fn tuple_hash((first, second): (usize, usize)) -> u64 {
    const PRIMES: [u64; 3] =
        [11_400_714_785_074_694_791, 14_029_467_366_897_019_727, 2_870_177_450_012_600_261];
    let mix = |hash: u64, number: usize| {
        let lane = (number as u64).wrapping_mul(PRIMES[1]);
        hash.wrapping_add(lane).rotate_left(31).wrapping_mul(PRIMES[0])
    };
    mix(mix(PRIMES[2], first), second).wrapping_add(2 ^ PRIMES[2] ^ 3_527_539)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_have_about_the_form_of_the_image() {
        let grid = |size| nearest_grid(size, 28, 4096);
        assert_eq!(grid((480, 640)), (17, 23));
        assert_eq!(grid((2000, 3000)), (52, 78));
        assert_eq!(grid((28, 14)), (1, 1));
        assert_eq!(grid((3, 900)), (1, 33));
        assert_eq!(nearest_grid((34, 46), 8, 12), (3, 4));
        // More squares in a row than there may be: none fits.
        assert_eq!(nearest_grid((900, 3), 28, 64), (33, 1));
    }

    #[test]
    fn of_squares_as_near_as_others_the_first_of_the_set_is_taken() {
        // What `smart_resize` of the reference gives, in squares of 28 pixels.
        let grid = |edge| nearest_grid((edge, edge), 28, 4096);
        assert_eq!([500, 70, 130, 1000, 5000].map(grid), [(17, 17), (3, 3), (4, 4), (36, 36), (64, 64)]);
        let order = in_set_order([(2, 2), (2, 3), (3, 2), (3, 3)].into_iter());
        assert_eq!(order, [(2, 3), (3, 2), (3, 3), (2, 2)]);
    }
}
