use super::marked;

fn places(x: &[f32], count: usize) -> Vec<usize> {
    let mut mask = vec![true; x.len()];
    marked(x, count, &mut mask);
    (0..x.len()).filter(|place| mask[*place]).collect()
}

#[test]
fn the_largest_are_marked_and_of_equal_ones_the_first() {
    assert_eq!(places(&[0.1, 0.4, -0.2, 0.3], 2), [1, 3]);
    assert_eq!(places(&[0.5, 0.7, 0.5, 0.5], 3), [0, 1, 2]);
    assert_eq!(places(&[-1.0, -3.0, -2.0], 1), [0]);
}

#[test]
fn what_is_as_low_as_numbers_go_is_not_marked() {
    assert_eq!(places(&[f32::MIN, 0.0, f32::NEG_INFINITY, f32::MIN], 3), [1]);
    assert_eq!(places(&[f32::NAN, 1.0, f32::NAN], 2), [1]);
}
