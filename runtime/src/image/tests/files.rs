//! Image files: read and resized as the reference does, and refused where they are none or too large.

use std::collections::BTreeMap;

use super::*;

#[test]
fn files_are_read_as_the_reference_reads_them() {
    for (name, want) in levels("decoded.safetensors") {
        let got = Image::open(folder().join("files").join(&name)).unwrap();
        let most = most(&got, &want);
        assert_eq!(most, 0, "{name} is off by {most} levels");
    }
}

#[test]
fn every_kind_of_jpeg_is_read_as_the_reference_reads_it() {
    let images = levels("jpeg.safetensors");
    let (mut files, mut decoded) = (BTreeMap::new(), BTreeMap::new());
    for (name, tensor) in images {
        match name.strip_prefix("file.") {
            Some(name) => files.insert(name.to_owned(), tensor),
            None => decoded.insert(name, tensor),
        };
    }
    for (name, file) in &files {
        let got = Image::decode(file.as_slice().unwrap()).unwrap();
        assert_eq!(most(&got, &decoded[name]), 0, "{name}");
    }
    assert!(files.len() > 60, "only {} files were found", files.len());
}

/// Of mutated files: lengths of codes that are too many for 16 bits.
#[test]
fn a_decoder_that_fails_is_told_as_a_damaged_file() {
    let problem = Image::decode(include_bytes!("oversubscribed.webp")).unwrap_err().to_string();
    assert!(problem.contains("cannot be read") && problem.contains("fetch it again"), "{problem}");
}

#[test]
fn sizes_are_changed_as_the_reference_changes_them() {
    let image = Image::open(folder().join("files/rgb.png")).unwrap();
    for (name, want) in levels("resized.safetensors") {
        let (filter, _) = name.split_once('.').unwrap();
        let filter = *Filter::ALL.iter().find(|f| format!("{f:?}").to_lowercase() == filter).unwrap();
        let got = image.resize(want.shape()[0], want.shape()[1], filter).unwrap();
        assert_eq!(most(&got, &want), 0, "{name}");
    }
}

#[test]
fn what_is_no_picture_says_what_it_is() {
    let message = |bytes: &[u8]| Image::decode(bytes).unwrap_err().to_string();
    let text = message(b"");
    assert!(text.contains("is empty") && text.contains("give a PNG"), "{text}");
    let text = message(b"%PDF-1.7 and so on");
    assert!(text.contains("is no image that can be read"), "{text}");
    for name in ["rgb.png", "colour.jpg", "lossy.webp", "still.gif"] {
        let whole = std::fs::read(folder().join("files").join(name)).unwrap();
        let text = message(&whole[..whole.len() / 3]);
        assert!(text.contains("cannot be read") && text.contains("damaged or cut short"), "{name}: {text}");
    }
    let text = Image::open("no/such.png").unwrap_err().to_string();
    assert!(text.contains("no/such.png"), "{text}");
    let text = Image::open("https://example.org/a.png").unwrap_err().to_string();
    assert!(text.contains("download the image"), "{text}");
}

#[test]
fn a_format_without_an_encoder_is_refused_before_there_is_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let image = Image::from_pixels(&Array3::from_shape_fn((2, 3, 3), |(y, x, c)| (40 * y + 9 * x + c) as u8))
        .unwrap();
    for name in ["boxes.jpg", "boxes.txt", "boxes"] {
        let refused = image.save(folder.path().join(name)).unwrap_err().to_string();
        assert!(refused.contains(name) && refused.contains(".png"), "{refused}");
        assert!(!folder.path().join(name).exists());
    }
    let path = folder.path().join("boxes.png");
    image.save(&path).unwrap();
    assert_eq!(Image::open(path).unwrap(), image);
}

#[test]
fn a_small_file_cannot_fill_the_memory() {
    // A header that claims 60000 x 60000 pixels.
    let mut bytes = std::fs::read(folder().join("files/rgb.png")).unwrap();
    for at in [16, 20] {
        bytes[at..at + 4].copy_from_slice(&60_000_u32.to_be_bytes());
    }
    let crc = crc(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&crc.to_be_bytes());
    let text = Image::decode(&bytes).unwrap_err().to_string();
    assert!(text.contains("60000 x 60000") && text.contains("scale it down"), "{text}");
}

/// A grey JPEG file of `size` x `size` pixels with a restart after every block, and this for its data.
fn restarting_jpeg(size: u16, data: &[u8]) -> Vec<u8> {
    let mut file = vec![0xff, 0xd8, 0xff, 0xdb, 0, 67, 0];
    file.extend([1; 64]);
    file.extend([0xff, 0xc0, 0, 11, 8]);
    file.extend([size.to_be_bytes(), size.to_be_bytes()].concat());
    file.extend([1, 1, 0x11, 0, 0xff, 0xdd, 0, 4, 0, 1, 0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0]);
    file.extend(data);
    file.extend([0xff, 0xd9]);
    file
}

#[test]
fn restarts_of_a_jpeg_take_no_longer_than_its_data() {
    // Each of 22,500 restarts finds the same wrong marker, behind as many bytes.
    for fill in [0xff, 0x55] {
        let start = std::time::Instant::now();
        let image =
            Image::decode(&restarting_jpeg(1200, &[&[fill; 200_000][..], &[0xff, 0xd1]].concat())).unwrap();
        assert_eq!((image.width(), image.height()), (1200, 1200));
        assert!(start.elapsed().as_secs() < 4, "{fill:#x}: {:?}", start.elapsed());
    }
}

#[test]
fn a_jpeg_is_given_no_more_memory_than_its_bytes_can_fill() {
    let text = Image::decode(&restarting_jpeg(13_000, &[])).unwrap_err().to_string();
    assert!(text.contains("13000 x 13000 pixels, more than 102 bytes can hold"), "{text}");
    // A block takes a bit for its level at least, and 2,000 bytes may hold 10,000 of them.
    assert!(Image::decode(&restarting_jpeg(800, &[0; 2_000])).is_ok());
}

#[test]
fn a_jpeg_may_have_so_many_scans() {
    let bytes = std::fs::read(folder().join("files/progressive.jpg")).unwrap();
    let scan = bytes.windows(2).position(|pair| pair == [0xff, 0xda]).unwrap();
    let next = |from: usize| {
        let ends = |pair: &[u8]| pair[0] == 0xff && !matches!(pair[1], 0 | 0xd0..=0xd7);
        from + bytes[from..].windows(2).position(ends).unwrap()
    };
    let end = next(scan + 2);
    let repeated = |count: usize| {
        let scans = bytes[scan..end].repeat(count);
        Image::decode(&[&bytes[..scan], &scans, &bytes[end..]].concat())
    };
    assert_eq!(repeated(20).unwrap().pixels(), Image::decode(&bytes).unwrap().pixels());
    let text = repeated(120).unwrap_err().to_string();
    assert!(text.contains("more than a hundred times"), "{text}");
}

/// The checksum of a PNG chunk.
fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    };
    !bytes.iter().fold(u32::MAX, step)
}
