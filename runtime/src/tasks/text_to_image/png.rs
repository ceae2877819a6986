//! PNG files with the parameters that made them, in a text chunk that image viewers and other programs read.

use std::fmt;
use std::io::Write;
use std::path::Path;

use crate::image::Image;
use crate::{Error, Result};

/// Prompt and options, written as `parameters` of AUTOMATIC1111's web interface has them.
pub(super) struct Parameters<'a> {
    pub prompt: &'a str,
    pub negative_prompt: &'a str,
    pub steps: usize,
    pub scale: f32,
    pub seed: u64,
    /// Height and width in pixels.
    pub size: [usize; 2],
}

impl fmt::Display for Parameters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { prompt, negative_prompt, steps, scale, seed, size: [height, width] } = self;
        write!(f, "{prompt}")?;
        if !negative_prompt.is_empty() {
            write!(f, "\nNegative prompt: {negative_prompt}")?;
        }
        write!(f, "\nSteps: {steps}, CFG scale: {scale}, Seed: {seed}, Size: {width}x{height}")
    }
}

/// Writes an image with a text; other formats than PNG without.
pub(super) fn save(image: &Image, text: &str, path: &Path) -> Result<()> {
    if path.extension().is_none_or(|ending| !ending.eq_ignore_ascii_case("png")) {
        return image.save(path);
    }
    let bytes = encoded(image, text).map_err(|error| {
        Error::input("image", format!("cannot be written as PNG: {error}"), "give another format")
    })?;
    atomically(&bytes, path).map_err(|error| Error::io(path, error))
}

/// The file's bytes: `tEXt` where Latin-1 has all characters, else `iTXt`, which is UTF-8.
fn encoded(image: &Image, text: &str) -> Result<Vec<u8>, png::EncodingError> {
    const KEYWORD: &str = "parameters";
    let mut bytes = vec![];
    let pixels = image.pixels();
    let (height, width, _) = pixels.dim();
    let mut encoder = png::Encoder::new(&mut bytes, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    if text.chars().all(|c| u32::from(c) < 256) {
        encoder.add_text_chunk(KEYWORD.to_owned(), text.to_owned())?;
    } else {
        encoder.add_itxt_chunk(KEYWORD.to_owned(), text.to_owned())?;
    }
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels.iter().copied().collect::<Vec<u8>>())?;
    writer.finish()?;
    Ok(bytes)
}

/// Writes a file of another name beside it, and gives it this one when it is whole.
fn atomically(bytes: &[u8], path: &Path) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = std::fs::File::create(&part)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&part, path));
    if written.is_err() {
        // What was written of it serves nobody; the error that is told is the first one.
        let _ = std::fs::remove_file(&part);
    }
    written
}

#[cfg(test)]
mod tests {
    use ndarray::Array3;

    use super::*;

    fn parameters(prompt: &str) -> String {
        let negative_prompt = "rain";
        let size = [16, 24];
        Parameters { prompt, negative_prompt, steps: 50, scale: 7.5, seed: 42, size }.to_string()
    }

    #[test]
    fn a_file_has_its_parameters_and_the_same_pixels() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image.png");
        let pixels = Array3::from_shape_fn((2, 3, 3), |(y, x, c)| (y * 90 + x * 20 + c) as u8);
        let image = Image::from_pixels(&pixels).unwrap();
        let options = "\nNegative prompt: rain\nSteps: 50, CFG scale: 7.5, Seed: 42, Size: 24x16";
        for (prompt, international) in [("Köln", false), ("織機", true)] {
            let text = parameters(prompt);
            assert_eq!(text, format!("{prompt}{options}"));
            save(&image, &text, &path).unwrap();
            assert_eq!(Image::open(&path).unwrap().pixels(), pixels);
            let reader = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(&path).unwrap()));
            let reader = reader.read_info().unwrap();
            let info = reader.info();
            let read = match international {
                true => info.utf8_text[0].get_text().unwrap(),
                false => info.uncompressed_latin1_text[0].text.clone(),
            };
            assert_eq!(read, text);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_cannot_be_written_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let image = Image::from_pixels(&Array3::zeros((1, 1, 3))).unwrap();
        std::fs::create_dir(folder.path().join("image.png")).unwrap();
        let problem = save(&image, "", &folder.path().join("image.png")).unwrap_err().to_string();
        assert!(problem.contains("image.png"), "{problem}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
