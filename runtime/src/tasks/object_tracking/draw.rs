//! Masks of a frame in the video's size, and how they are drawn.

use ndarray::{Array2, Array3, ArrayView2, Axis};

use super::TrackedFrame;
use crate::image::{Image, Interpolated, Interpolation, Pixels};
use crate::{Error, Result};

/// The highest logit of an object at a pixel that belongs to another.
const SUPPRESSED: f32 = -10.0;

/// Logits of several objects' masks in the video's size, `[objects, height, width]` (`post_process_masks`); where `apart`, no pixel but
/// of the object with the highest logit there has more than -10.
pub(crate) fn video_logits(masks: &[&Array2<f32>], size: Pixels, apart: bool) -> Result<Array3<f32>> {
    let views: Vec<ArrayView2<'_, f32>> = masks.iter().map(|mask| mask.view()).collect();
    let stacked = ndarray::stack(Axis(0), &views).map_err(|error| {
        Error::input(
            "pred_masks",
            format!("do not fit together: {error}"),
            "open a model that is made for this task",
        )
    })?;
    let interpolated = Interpolated::new(&stacked.view(), size, Interpolation::Bilinear);
    let mut logits = interpolated.maps();
    if apart && masks.len() > 1 {
        let best = interpolated.argmax();
        for ((object, y, x), logit) in logits.indexed_iter_mut() {
            if best[(y, x)] != object {
                *logit = logit.min(SUPPRESSED);
            }
        }
    }
    Ok(logits)
}

/// A copy of a frame with the masks and the numbers of its objects, a colour for each.
pub fn draw_tracked(image: &Image, frame: &TrackedFrame) -> Image {
    let mut image = image.clone();
    let colour = |object_id: i64| usize::try_from(object_id.unsigned_abs()).unwrap_or_default();
    for object in &frame.objects {
        image.draw_mask(&object.mask, colour(object.object_id));
    }
    for object in &frame.objects {
        let first = object.mask.pixels().indexed_iter().find(|(_, inside)| **inside);
        if let Some(((y, x), _)) = first {
            let place = (x as i64, y as i64);
            image.draw_name(place, colour(object.object_id), &object.object_id.to_string());
        }
    }
    image
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;
    use crate::image::Mask;
    use crate::tasks::TrackedMask;

    #[test]
    fn pixels_belong_to_the_object_with_the_highest_logit() {
        let (first, second) = (array![[1.0, -2.0]], array![[3.0, -20.0]]);
        let apart = video_logits(&[&first, &second], (1, 2), true).unwrap();
        assert_eq!(apart, array![[[-10.0, -2.0]], [[3.0, -20.0]]]);
        let both = video_logits(&[&first, &second], (1, 2), false).unwrap();
        assert_eq!(both, array![[[1.0, -2.0]], [[3.0, -20.0]]]);
        assert_eq!(video_logits(&[&first], (1, 2), true).unwrap(), array![[[1.0, -2.0]]]);
    }

    #[test]
    fn objects_have_colours_of_their_own() {
        let image = Image::from_pixels(&Array3::from_elem((4, 4, 3), 255)).unwrap();
        let drawn = |object_id: i64| {
            let mask = Mask::new(Array2::from_elem((4, 4), true));
            let object = TrackedMask { object_id, object_score_logits: 1.0, mask, pred_masks: array![[1.0]] };
            draw_tracked(&image, &TrackedFrame { frame_idx: 0, objects: vec![object] })
        };
        assert_ne!(drawn(1).pixels(), drawn(2).pixels());
        assert_ne!(drawn(i64::MIN).pixels(), image.pixels());
    }
}
