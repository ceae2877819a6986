//! The steps of image processors that pad images by rules of their own.

use super::Steps;
use super::steps::{numbers, standard, unpadded};
use crate::image::settings::Settings;
use crate::image::{Size, Step};

/// Edges are rounded up to multiples of `size_divisor`, and all images are padded to the largest.
pub(super) fn maskformer(settings: &Settings) -> Steps {
    let multiple = settings.size_divisor.max(1);
    let mut steps = unpadded(settings);
    if let Some(Step::Resize { size, .. }) = steps.first_mut() {
        *size = match *size {
            Size::Between { shortest, longest } => Size::BetweenMultiple { shortest, longest, multiple },
            Size::Exact((height, width)) => {
                Size::Exact((height.next_multiple_of(multiple), width.next_multiple_of(multiple)))
            }
            size => return Err(format!("`size`: {size:?} has no two edges")),
        };
    }
    steps.push(Step::Pad(settings.pad_size));
    Ok(steps)
}

/// The shorter edge, the longer one within `MAX_LONGER_EDGE / MAX_SHORTER_EDGE` of it, both rounded down to multiples of
/// `size_divisor`; images are padded to the largest.
pub(super) fn vilt(settings: &Settings) -> Steps {
    let mut steps = standard(settings)?;
    for step in &mut steps {
        let Step::Resize { size, multiple_of, .. } = step else { continue };
        let (Size::Shortest(edge) | Size::Between { shortest: edge, .. }) = *size else {
            return Err("`size`: must have shortest_edge".to_owned());
        };
        let longest = (1333.0 / 800.0 * edge as f64) as usize;
        (*size, *multiple_of) = (Size::ShortestRounded { edge, longest }, settings.size_divisor.max(1));
    }
    Ok(steps)
}

/// `do_pad` makes images as large as `size` says of both edges.
pub(super) fn eomt(settings: &Settings) -> Steps {
    if settings.do_split_image {
        return Err("`do_split_image`: crops of an image are not supported; set it to false".to_owned());
    }
    let mut steps = unpadded(settings);
    match settings.size {
        Size::Between { shortest, longest } if settings.do_pad => {
            // What is padded is black, so that it is normalised too.
            let behind = steps.iter().take_while(|step| !matches!(step, Step::Normalize { .. })).count();
            steps.insert(behind, Step::Pad(Some((shortest, longest))));
        }
        Size::Between { .. } => {}
        size => return Err(format!("`size`: {size:?} has no shortest_edge and longest_edge")),
    }
    Ok(steps)
}

/// Numbers are padded to a square before they are resized.
pub(super) fn owlv2(settings: &Settings) -> Steps {
    let rescale = settings.rescale.unwrap_or(1.0);
    let mut steps = vec![Step::Rescale { factor: rescale, offset: false }];
    steps.extend(settings.do_pad.then_some(Step::PadBelow));
    match settings.resize {
        Some(Size::Exact(size)) => steps.push(Step::ResizeAntialiased(size)),
        Some(_) => return Err("`size`: must have height and width".to_owned()),
        None => {}
    }
    steps.extend(numbers(settings).into_iter().filter(|step| matches!(step, Step::Normalize { .. })));
    Ok(steps)
}

/// Images as they are, mirrored at the right and lower edge up to the next multiples of `size_divisor`, which older files call
/// `pad_size`; nothing is normalised.
pub(super) fn swin2sr(settings: &Settings) -> Steps {
    let multiple = match (settings.size_divisor, settings.pad_size) {
        (0, Some((edge, _))) => edge,
        (0, None) => 8,
        (multiple, _) => multiple,
    };
    let rescale = settings.rescale.map(|factor| Step::Rescale { factor, offset: false });
    Ok(rescale.into_iter().chain(settings.do_pad.then_some(Step::PadSymmetric(multiple))).collect())
}

/// Zeros to the right and below, up to multiples of `size_divisor`; a trimap is a channel before that.
pub(super) fn vitmatte(settings: &Settings) -> Steps {
    let mut steps = numbers(settings);
    steps.extend(settings.do_pad.then_some(Step::PadToMultiple(settings.size_divisor)));
    Ok(steps)
}
