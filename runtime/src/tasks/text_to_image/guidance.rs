//! Classifier-free guidance (arXiv:2207.12598), its rescaling, and the embedding of its scale for models distilled for it.

use ndarray::Array2;

/// What is predicted for the prompt, moved away from what is predicted for the negative one.
pub(super) fn moved(away: &[f32], towards: &[f32], scale: f32) -> Vec<f32> {
    away.iter().zip(towards).map(|(away, towards)| away + scale * (towards - away)).collect()
}

/// The same of what is predicted for an image and the prompt, for the image, and without it: both differences by their scales
/// (`StableDiffusionInstructPix2PixPipeline`).
pub(super) fn edited([none, image, prompt]: [&[f32]; 3], scale: f32, image_scale: f32) -> Vec<f32> {
    let all = none.iter().zip(image).zip(prompt);
    all.map(|((none, image), prompt)| none + scale * (prompt - image) + image_scale * (image - none))
        .collect()
}

/// Makes each row of what moved, of so many numbers, as long as what was predicted for the prompt.
pub(super) fn normalize(moved: &mut [f32], towards: &[f32], width: usize) {
    let norm = |row: &[f32]| row.iter().map(|x| x * x).sum::<f32>().sqrt();
    for (moved, towards) in moved.chunks_exact_mut(width.max(1)).zip(towards.chunks_exact(width.max(1))) {
        let factor = norm(towards) / norm(moved);
        moved.iter_mut().for_each(|x| *x *= factor);
    }
}

/// Takes back a share of the contrast that guidance adds to each image (`rescale_noise_cfg`).
pub(super) fn rescale(moved: &mut [f32], towards: &[f32], images: usize, share: f32) {
    let length = moved.len() / images.max(1);
    for (moved, towards) in moved.chunks_exact_mut(length.max(1)).zip(towards.chunks_exact(length.max(1))) {
        let factor = (deviation(towards) / deviation(moved)) as f32;
        moved.iter_mut().for_each(|x| *x = share * (*x * factor) + (1.0 - share) * *x);
    }
}

/// The standard deviation of a sample.
fn deviation(values: &[f32]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
    (values.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / (count - 1.0)).sqrt()
}

/// Sinusoidal embeddings of a guidance scale less 1 (`get_guidance_scale_embedding`): `[rows, width]`.
pub(super) fn embedding(scale: f32, width: usize, rows: usize) -> Array2<f32> {
    let half = width / 2;
    let step = 10_000_f64.ln() / half.saturating_sub(1).max(1) as f64;
    let angle = |index: usize| scale * 1000.0 * (-(index as f32) * step as f32).exp();
    Array2::from_shape_fn((rows, width), |(_, column)| match column {
        column if column < half => angle(column).sin(),
        column if column < 2 * half => angle(column - half).cos(),
        _ => 0.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_predicted_moves_away_and_its_contrast_is_taken_back() {
        assert_eq!(moved(&[1.0, 2.0], &[2.0, 0.0], 3.0), [4.0, -4.0]);
        // Deviations 1 and 4 of one image: half of what remains is a quarter of it.
        let mut moved = vec![4.0, -4.0];
        rescale(&mut moved, &[1.0, -1.0], 1, 0.5);
        assert_eq!(moved, [2.5, -2.5]);
    }

    #[test]
    fn an_image_and_a_prompt_move_by_scales_of_their_own() {
        assert_eq!(edited([&[1.0, 0.0], &[2.0, 1.0], &[4.0, 0.0]], 3.0, 10.0), [17.0, 7.0]);
    }

    #[test]
    fn rows_become_as_long_as_those_of_the_prompt() {
        let mut moved = vec![3.0, 4.0, 0.0, 2.0];
        normalize(&mut moved, &[0.0, 10.0, 1.0, 0.0], 2);
        assert_eq!(moved, [6.0, 8.0, 0.0, 1.0]);
    }

    #[test]
    fn sines_come_before_cosines_of_the_scale() {
        let embedded = embedding(0.002, 5, 2);
        let want = [2.0_f32.sin(), 2e-4_f32.sin(), 2.0_f32.cos(), 2e-4_f32.cos(), 0.0];
        for (got, want) in embedded.row(1).iter().zip(want) {
            assert!((got - want).abs() < 1e-6, "{embedded}");
        }
    }
}
