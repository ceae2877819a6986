//! Texts whose layers attend to images: where images stand in them, and which each token attends to.
//!
//! Reference: `MllamaProcessor`, `get_cross_attention_token_mask`; `IdeficsProcessor`,
//! `image_attention_mask_for_packed_input_ids`.

use ndarray::{Array3, Array4, ArrayD};

use crate::Values;
use crate::graph::Input;

/// A text with the token that begins texts, behind images that begin it (`build_string_from_input`).
pub(super) fn begun(text: &str, begin: &str, image: Option<&String>) -> String {
    if text.contains(begin) {
        return text.to_owned();
    }
    let rest = image.map_or(text, |image| text.trim_start_matches(image.as_str()));
    format!("{}{begin}{rest}", &text[..text.len() - rest.len()])
}

/// A text in which each image stands between two tokens, one of which neighbours share; the texts between lose the spaces
/// around them.
pub(super) fn interleaved(text: &str, begin: &str, token: &str, around: &str) -> String {
    let mut all = begin.to_owned();
    let mut after_image = false;
    for (index, part) in text.split(token).enumerate() {
        if index > 0 {
            all += if after_image { "" } else { around };
            all += token;
            all += around;
            after_image = true;
        }
        if !part.is_empty() {
            all += part.trim_matches(' ');
            after_image = false;
        }
    }
    all
}

/// `cross_attention_mask` `[1, sequence, images, tiles]`: from its image's token on, a token attends to that image's tiles up to the
/// next image; images side by side are attended to together.
pub(super) fn mark_following(ids: &[i64], image: i64, processed: &mut Values) {
    let Some(Ok(tiles)) = processed.get("aspect_ratio_mask").map(|mask| mask.i64("aspect_ratio_mask")) else {
        return;
    };
    let (images, most) = (tiles.shape()[1], tiles.shape()[2]);
    let starts: Vec<usize> = (0..ids.len()).filter(|place| ids[*place] == image).collect();
    let mut ends: Vec<usize> = starts.iter().copied().skip(1).chain([ids.len()]).collect();
    for index in (0..starts.len().saturating_sub(1)).rev() {
        if starts[index] + 1 == ends[index] {
            ends[index] = ends[index + 1];
        }
    }
    let seen = Array4::from_shape_fn((1, ids.len(), images, most), |(_, place, image, tile)| {
        let sees = starts.get(image).is_some_and(|start| *start <= place) && place < ends[image];
        if sees { tiles[[0, image, tile]] } else { 0 }
    });
    processed.insert("cross_attention_mask".to_owned(), seen.into_dyn().into());
}

/// `image_attention_mask` `[1, sequence, images]`: a token attends to the last image before it, unless a text ended between.
pub(super) fn mark_last(ids: &[i64], image: i64, end: i64, processed: &mut Values) {
    let images = processed.get("pixel_values").map_or(1, |pixels| pixels.shape()[1]);
    let (mut count, mut ended) = (0, false);
    let mut seen = Array3::<i64>::zeros((1, ids.len(), images));
    for (place, id) in ids.iter().enumerate() {
        if *id == image {
            (count, ended) = (count + 1, false);
        }
        if !ended && (1..=images).contains(&count) {
            seen[(0, place, count - 1)] = 1;
        }
        ended |= *id == end;
    }
    processed.insert("image_attention_mask".to_owned(), seen.into_dyn().into());
}

/// One image of zeros, which no token attends to.
pub(super) fn no_image(inputs: &[Input]) -> Values {
    let pixels = inputs.iter().find(|input| input.name == "pixel_values");
    let shape: Vec<usize> =
        pixels.iter().flat_map(|input| &input.shape).map(|dim| dim.fixed().unwrap_or(1)).collect();
    Values::from([("pixel_values".to_owned(), ArrayD::<f32>::zeros(shape).into())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_that_begins_texts_stands_behind_images() {
        let image = "<i>".to_owned();
        assert_eq!(begun("<i><i>and <i>", "<s>", Some(&image)), "<i><i><s>and <i>");
        assert_eq!(begun("a", "<s>", None), "<s>a");
        assert_eq!(begun("a<s>", "<s>", Some(&image)), "a<s>");
    }

    #[test]
    fn neighbours_share_the_token_around_them() {
        assert_eq!(interleaved(" a <i> b<i><i>", "<s>", "<i>", "|"), "<s>a|<i>|b|<i>|<i>|");
        assert_eq!(interleaved("a", "<s>", "<i>", "|"), "<s>a");
    }

    #[test]
    fn tokens_attend_to_the_images_before_them() {
        let tiles = ndarray::array![[[1_i64, 0], [1, 1], [1, 1]]].into_dyn();
        let mut values = Values::from([("aspect_ratio_mask".to_owned(), tiles.into())]);
        mark_following(&[7, 9, 7, 9, 9, 7], 9, &mut values);
        let seen = values["cross_attention_mask"].i64("").unwrap();
        let of =
            |image: usize, tile: usize| (0..6).map(|place| seen[[0, place, image, tile]]).collect::<Vec<_>>();
        assert_eq!((of(0, 0), of(0, 1)), (vec![0, 1, 1, 0, 0, 0], vec![0; 6]));
        assert_eq!((of(1, 1), of(2, 1)), (vec![0, 0, 0, 1, 1, 1], vec![0, 0, 0, 0, 1, 1]));
    }

    #[test]
    fn tokens_attend_to_the_last_image_of_their_text() {
        let pixels = ArrayD::<f32>::zeros(vec![1, 2, 3, 1, 1]);
        let mut values = Values::from([("pixel_values".to_owned(), pixels.into())]);
        mark_last(&[7, 9, 2, 7, 9, 7, 9], 9, 2, &mut values);
        let seen = values["image_attention_mask"].i64("").unwrap();
        let of = |image: usize| (0..7).map(|place| seen[[0, place, image]]).collect::<Vec<_>>();
        assert_eq!((of(0), of(1)), (vec![0, 1, 1, 0, 0, 0, 0], vec![0, 0, 0, 0, 1, 1, 0]));
    }
}
