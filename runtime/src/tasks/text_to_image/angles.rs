//! Timesteps that are angles between image and noise (`SanaSprintPipeline`), for a denoiser that was trained on shares of noise.

/// A timestep, and what latents are divided by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Angle {
    /// The share of noise, which the denoiser is told.
    pub noise: f32,
    /// How long the vector of both shares is.
    length: f32,
    data: f32,
}

impl Angle {
    /// Of a timestep and the standard deviation of the data (`sigma_data`).
    pub(super) fn new(timestep: f32, data: f32) -> Self {
        let (sine, cosine) = timestep.sin_cos();
        let noise = sine / (cosine + sine);
        Self { noise, length: (noise * noise + (1.0 - noise) * (1.0 - noise)).sqrt(), data }
    }

    /// What the denoiser sees of a latent.
    pub(super) fn seen(self, latent: f32) -> f32 {
        latent / self.data * self.length
    }

    /// The velocity along the circle that the scheduler takes, of what the denoiser sees and what it predicts.
    pub(super) fn velocity(self, seen: f32, predicted: f32) -> f32 {
        let noise = self.noise;
        let both = (1.0 - 2.0 * noise) * seen + (1.0 - 2.0 * noise + 2.0 * noise * noise) * predicted;
        both / self.length * self.data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_half_the_right_angle_image_and_noise_have_equal_shares() {
        let angle = Angle::new(std::f32::consts::FRAC_PI_4, 0.5);
        assert!((angle.noise - 0.5).abs() < 1e-6);
        // Both shares are a half, whose vector is as long as the root of a half; what is seen falls out.
        let root = 0.5_f32.sqrt();
        assert!((angle.seen(1.0) - 2.0 * root).abs() < 1e-6);
        assert!((angle.velocity(7.0, 4.0) - 0.5 * 4.0 / root * 0.5).abs() < 1e-5);
    }

    #[test]
    fn what_is_seen_of_noise_is_added_and_of_the_image_taken_away() {
        let angle = Angle::new(0.0, 1.0);
        assert_eq!((angle.noise, angle.seen(3.0), angle.velocity(3.0, 4.0)), (0.0, 3.0, 7.0));
        let angle = Angle::new(std::f32::consts::FRAC_PI_2, 1.0);
        assert!((angle.velocity(3.0, 4.0) - 1.0).abs() < 1e-5);
    }
}
