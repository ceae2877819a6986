//! Videos of a page that are no animated images: the frames that a call was given, of which the file is a list of names as JSON.

use std::path::Path;

use crate::image::Image;
use crate::{Error, Result, files};

/// All frames.
pub(super) fn frames(path: &Path) -> Result<Vec<Image>> {
    let bytes = files::read(path).map_err(|e| Error::io(path, e))?;
    let names: Vec<String> = serde_json::from_slice(&bytes).map_err(|_| {
        let problem = "is no animated GIF or WebP image, which are the videos that are read in a page";
        Error::input(path.display().to_string(), problem, "give the video's frames: {frames: [image, …]}")
    })?;
    names.iter().map(Image::open).collect()
}
