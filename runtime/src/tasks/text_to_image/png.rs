//! PNG files with the parameters that made them, in a `tEXt` chunk that image viewers and other programs read.

use std::io::Cursor;
use std::path::Path;

use super::TextToImageOptions;
use crate::image::Image;
use crate::{Error, Result};

/// The signature and the `IHDR` chunk, behind which others may stand.
const HEADER: usize = 8 + 25;

/// Prompt and options, as `parameters` of AUTOMATIC1111's web interface has them.
pub(super) fn parameters(
    prompt: &str,
    options: &TextToImageOptions,
    seed: u64,
    [height, width]: [usize; 2],
) -> String {
    let negative = options.negative_prompt.as_deref().filter(|text| !text.is_empty());
    let negative = negative.map_or_else(String::new, |text| format!("\nNegative prompt: {text}"));
    let TextToImageOptions { num_inference_steps: steps, guidance_scale: scale, .. } = options;
    format!("{prompt}{negative}\nSteps: {steps}, CFG scale: {scale}, Seed: {seed}, Size: {width}x{height}")
}

/// Writes an image with a text; other formats than PNG without.
pub(super) fn save(image: &Image, text: &str, path: &Path) -> Result<()> {
    if path.extension().is_none_or(|ending| !ending.eq_ignore_ascii_case("png")) {
        return image.save(path);
    }
    let bytes = with_text(&encoded(image)?, text);
    std::fs::write(path, bytes).map_err(|e| Error::io(path, e))
}

fn encoded(image: &Image) -> Result<Vec<u8>> {
    let mut bytes = Cursor::new(vec![]);
    let pixels = image.pixels();
    let (height, width, _) = pixels.dim();
    let levels: Vec<u8> = pixels.iter().copied().collect();
    let buffer = image::RgbImage::from_raw(width as u32, height as u32, levels);
    let written = buffer.map(|buffer| buffer.write_to(&mut bytes, image::ImageFormat::Png));
    match written {
        Some(Ok(())) => Ok(bytes.into_inner()),
        _ => Err(Error::input("image", "cannot be written as PNG", "give another format")),
    }
}

/// A PNG file with a text chunk, Latin-1: other characters become question marks.
fn with_text(png: &[u8], text: &str) -> Vec<u8> {
    let latin = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?'));
    let chunk: Vec<u8> = b"tEXtparameters\0".iter().copied().chain(latin).collect();
    let (header, rest) = png.split_at(HEADER.min(png.len()));
    let length = (chunk.len() - 4) as u32;
    [header, &length.to_be_bytes(), &chunk, &checksum(&chunk).to_be_bytes(), rest].concat()
}

/// The CRC-32 of a chunk's type and data.
fn checksum(bytes: &[u8]) -> u32 {
    let bit = |c: u32| if c & 1 == 1 { 0xedb8_8320 ^ (c >> 1) } else { c >> 1 };
    let step = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), |c, _| bit(c));
    !bytes.iter().fold(u32::MAX, step)
}

#[cfg(test)]
mod tests {
    use ndarray::Array3;

    use super::*;

    #[test]
    fn a_file_has_its_parameters_and_the_same_pixels() {
        assert_eq!(checksum(b"IEND"), 0xae42_6082);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image.png");
        let pixels = Array3::from_shape_fn((2, 3, 3), |(y, x, c)| (y * 90 + x * 20 + c) as u8);
        let image = Image::from_pixels(&pixels).unwrap();
        let options = TextToImageOptions { negative_prompt: Some("rain".into()), ..Default::default() };
        let text = parameters("Köln", &options, 42, [16, 24]);
        assert_eq!(text, "Köln\nNegative prompt: rain\nSteps: 50, CFG scale: 7.5, Seed: 42, Size: 24x16");
        save(&image, &text, &path).unwrap();
        assert_eq!(Image::open(&path).unwrap().pixels(), pixels);
        let bytes = std::fs::read(&path).unwrap();
        let place = bytes.windows(14).position(|window| window == b"tEXtparameters").unwrap();
        assert_eq!(place, HEADER + 4);
        assert_eq!(bytes[place + 15..place + 19], [b'K', 0xf6, b'l', b'n']);
    }
}
