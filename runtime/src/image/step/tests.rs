//! Images of hand-checked sizes and numbers through single steps and lists of them.

use image::Rgb;

use super::*;

fn image(height: u32, width: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| Rgb([x as u8, y as u8, 255]))
}

/// What becomes of images, one step after the other.
fn run<'a>(steps: &[Step], images: &'a [RgbImage]) -> Vec<Item<'a>> {
    let items = images.iter().map(Item::new).collect();
    steps.iter().try_fold(items, |items, step| step.run(items)).unwrap()
}

fn shapes(items: Vec<Item<'_>>) -> Vec<Vec<(usize, usize, usize)>> {
    let shape = |part: Part<'_>| part.numbers().unwrap().dim();
    items.into_iter().map(|item| item.parts.into_iter().map(shape).collect()).collect()
}

#[test]
fn edges_are_multiples_after_resizing() {
    let size = Size::Shortest(21);
    let step = Step::Resize { size, multiple_of: 16, resample: Filter::Bilinear };
    assert_eq!(shapes(run(&[step], &[image(10, 20)])), [[(3, 16, 32)]]);
}

#[test]
fn numbers_are_resized_without_rounding() {
    let rescale = Step::Rescale { factor: 1.0, offset: false };
    let size = Size::Exact((1, 1));
    let resize = Step::Resize { size, multiple_of: 1, resample: Filter::Box };
    let first = |steps: &[Step]| {
        let images = [image(1, 2)];
        let part = run(steps, &images).remove(0).parts.remove(0);
        part.numbers().unwrap()[(0, 0, 0)]
    };
    assert_eq!(first(&[rescale.clone(), resize.clone()]), 0.5);
    assert_eq!(first(&[resize, rescale]), 1.0);
}

#[test]
fn levels_become_numbers_once() {
    let rescale = Step::Rescale { factor: 0.5, offset: true };
    let normalize = Step::Normalize { mean: [1.0; 3], std: [2.0; 3] };
    let images = [image(1, 1)];
    let numbers = run(&[rescale.clone(), normalize], &images).remove(0).parts.remove(0).numbers().unwrap();
    assert_eq!(numbers.into_raw_vec_and_offset().0, [-1.0, -1.0, 62.75]);
    let items = vec![Item::new(&images[0])];
    let error = rescale.run(rescale.run(items).unwrap()).unwrap_err().to_string();
    assert!(error.contains("is numbers where a step takes levels"), "{error}");
}

#[test]
fn channels_are_turned_round() {
    let images = [image(1, 2)];
    let steps = [Step::Rescale { factor: 1.0, offset: false }, Step::FlipChannels];
    let numbers = run(&steps, &images).remove(0).parts.remove(0).numbers().unwrap();
    assert_eq!(numbers.into_raw_vec_and_offset().0, [255.0, 255.0, 0.0, 0.0, 0.0, 1.0]);
}

#[test]
fn the_smaller_image_is_padded_and_knows_its_size() {
    let images = [image(2, 5), image(4, 3)];
    let items = run(&[Step::Pad(None)], &images);
    assert_eq!(items.iter().map(|item| item.unpadded).collect::<Vec<_>>(), [Some((2, 5)), Some((4, 3))]);
    assert_eq!(shapes(items), [[(3, 4, 5)], [(3, 4, 5)]]);
    let step = Step::Pad(Some((2, 2)));
    let error = step.run(vec![Item::new(&image(4, 3))]).unwrap_err().to_string();
    assert!(error.contains("pad_size"), "{error}");
}

#[test]
fn an_image_stands_in_the_middle_of_its_square() {
    let images = [image(1, 3)];
    let items = run(&[Step::PadToSquare([9, 9, 9])], &images);
    let Part::Levels(square) = &items[0].parts[0] else { panic!("no levels") };
    assert_eq!((square.dimensions(), square[(2, 0)].0, square[(2, 1)].0), ((3, 3), [9; 3], [2, 0, 255]));
}

#[test]
fn images_are_cut_into_tiles_and_have_as_many() {
    let whole = (4, 4);
    let grid = vec![(4, 8), (8, 8)];
    let step = Step::AnyResTiles { grid, whole, tile: 4, resample: Filter::Bicubic };
    let images = [image(4, 8), image(9, 9)];
    let counts = |items: &[Item<'_>]| items.iter().map(|item| item.parts.len()).collect::<Vec<_>>();
    assert_eq!(counts(&run(std::slice::from_ref(&step), &images)), [3, 5]);
    assert_eq!(counts(&run(&[step, Step::PadTiles], &images)), [5, 5]);
    let step = Step::CropToPatches {
        size: whole,
        limits: (1, 4),
        canvas: Canvas::NearestRatio,
        resample: Filter::Bicubic,
    };
    assert_eq!(counts(&run(&[step], &[image(4, 8), image(4, 4)])), [3, 1]);
}

#[test]
fn sizes_that_no_model_reads_are_refused() {
    let (large, resample) = ((4096, 4097), Filter::Bilinear);
    let grid = vec![(9, 9)];
    let resize = |size| Step::Resize { size, multiple_of: 1, resample };
    let long = [image(1, 9000)];
    for (step, images) in [
        (resize(Size::Exact(large)), &[image(1, 2)]),
        (resize(Size::Shortest(60_000)), &[image(1, 1)]),
        (resize(Size::Shortest(1000)), &long),
        (Step::CenterCrop((2147, 65_535)), &[image(1, 1)]),
        (Step::PadToSquare([0; 3]), &long),
        (Step::Pad(Some(large)), &long),
        (Step::AnyResTiles { grid, whole: large, tile: 1, resample }, &long),
        (
            Step::CropToPatches {
                size: (4000, 4000),
                limits: (1, 2),
                canvas: Canvas::NearestRatio,
                resample,
            },
            &long,
        ),
    ] {
        let error = step.run(vec![Item::new(&images[0])]).unwrap_err().to_string();
        assert!(error.contains("at most 16777216 are made") && error.contains("help: "), "{step:?}: {error}");
    }
    let wide = image(1024, 1024);
    let patched = |frames| Step::PatchifySquares { patch_size: 8, merge_size: 1, frames };
    let two = patched(2).run(vec![Item::new(&wide)]).unwrap();
    assert!(patched(34).run(vec![Item::new(&wide)]).unwrap_err().to_string().contains("17825792 pixels"));
    // Patches of two frames, so many times again.
    assert!(Step::RepeatFrames(18).run(two).unwrap_err().to_string().contains("18874368 pixels"));
    let tiles = Step::AnyResTiles { grid: vec![(40, 40)], whole: (1, 1), tile: 1, resample };
    let many = tiles.run(vec![Item::new(&long[0])]).unwrap();
    assert!(Step::CenterCrop((12, 1024)).run(many).is_err(), "1601 tiles of 12288 pixels");
    let turned = [image(9000, 1), image(1, 9000)];
    let error = Step::Pad(None).run(turned.iter().map(Item::new).collect()).unwrap_err().to_string();
    assert!(error.contains("of 1 x 9000 would become 81000000 pixels"), "{error}");
    let pair = [image(3000, 4100), image(4100, 3000)];
    assert!(Step::Pad(None).run(pair.iter().map(Item::new).collect()).is_ok());
}

#[test]
fn patches_are_filled_up() {
    let (patch_size, max_num_patches) = (2, 8);
    let resize = Step::ResizeToPatches { patch_size, max_num_patches, resample: Filter::Bilinear };
    let images = [image(10, 20)];
    let items = run(&[resize, Step::Patchify { patch_size, max_num_patches }], &images);
    let Part::Patches(patches) = &items[0].parts[0] else { panic!("no patches") };
    assert_eq!((patches.rows, patches.columns, patches.values.dim()), (2, 4, (8, 12)));
}
