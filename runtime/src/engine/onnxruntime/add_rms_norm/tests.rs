use super::super::lanes::tests::drawn;
use super::*;

#[test]
fn rows_are_added_and_normalised() {
    for (count, width) in [(1, 64), (3, 37), (2, 5), (4, 1), (0, 8)] {
        let [a, b] =
            [1, 2].map(|seed| drawn(count * width, seed).iter().map(|x| x * 3.0).collect::<Vec<_>>());
        let scale = drawn(width, 3);
        for compute in [fastest(), rows::<true>, rows::<false>] {
            let [mut normed, mut sum] = [0.0; 2].map(|zero| vec![zero; count * width]);
            compute(1e-3, &scale, [&a, &b], [&mut normed, &mut sum]);
            for row in 0..count {
                let at = row * width..(row + 1) * width;
                let sums: Vec<f32> = a[at.clone()].iter().zip(&b[at.clone()]).map(|(a, b)| a + b).collect();
                assert_eq!(sum[at.clone()], sums);
                let mean = sums.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / width as f64;
                for ((found, x), scale) in normed[at].iter().zip(&sums).zip(&scale) {
                    let wanted = f64::from(*x) / (mean + 1e-3).sqrt() * f64::from(*scale);
                    assert!((f64::from(*found) - wanted).abs() <= 4e-7 * wanted.abs(), "{found} {wanted}");
                }
            }
        }
    }
}
