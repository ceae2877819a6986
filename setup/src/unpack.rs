//! Unpacks wheels and npm archives, never outside the folder they are unpacked to.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Component, Path, PathBuf};

use crate::packages::{Artifact, Index};
use anyhow::{Context, Result, bail};

/// Unpacks a package's file into a folder, and what is packed inside it.
pub fn unpack(artifact: &Artifact<'_>, file: &Path, into: &Path) -> Result<()> {
    fs::create_dir_all(into)?;
    match artifact.package.index {
        Index::Pypi => wheel(file, into),
        Index::Npm => tarball(file, into),
    }
    .with_context(|| format!("cannot unpack {}", file.display()))?;
    for (member, to) in &artifact.pin.brotli {
        brotli(&into.join(member), &into.join(to)).with_context(|| format!("cannot unpack {member}"))?;
    }
    for (link, target) in &artifact.pin.links {
        make_link(&into.join(link), target).with_context(|| format!("cannot make the link {link}"))?;
    }
    let library = into.join(artifact.library);
    if library.is_file() { make_executable(&library) } else { Ok(()) }
}

/// A wheel is a zip file; the modules for Python itself are left out.
fn wheel(file: &Path, into: &Path) -> Result<()> {
    let mut archive = zip::ZipArchive::new(BufReader::new(File::open(file)?))?;
    for index in 0..archive.len() {
        let mut member = archive.by_index(index)?;
        let name = PathBuf::from(member.name()?.as_ref());
        if !name.components().all(|part| matches!(part, Component::Normal(_))) {
            bail!("`{}` leads out of the package", name.display());
        }
        if !member.is_file() || for_python(&name) {
            continue;
        }
        let to = into.join(name);
        write(&mut member, &to)?;
        if member.unix_mode().is_some_and(|mode| mode & 0o111 != 0) {
            make_executable(&to)?;
        }
    }
    Ok(())
}

/// Modules that only Python loads: they are often as large as the library itself.
fn for_python(name: &Path) -> bool {
    let file = name.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    [".py", ".pyi", ".pyd"].iter().any(|end| file.ends_with(end)) || file.contains(".cpython-")
}

/// An npm package is a gzipped tar file with everything under `package/`.
fn tarball(file: &Path, into: &Path) -> Result<()> {
    let unpacked = flate2::read::GzDecoder::new(BufReader::new(File::open(file)?));
    tar_into(unpacked, into, 1)
}

/// Unpacks regular files and links within the folder; `strip` leading folders are dropped from each name.
fn tar_into(archive: impl Read, into: &Path, strip: usize) -> Result<()> {
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let name = entry.path()?.into_owned();
        let plain: Vec<_> = name.components().filter(|part| *part != Component::CurDir).collect();
        if !plain.iter().all(|part| matches!(part, Component::Normal(_))) {
            bail!("`{}` leads out of the package", name.display());
        }
        let kept: PathBuf = plain.into_iter().skip(strip).collect();
        if kept.as_os_str().is_empty() || !entry.header().entry_type().is_file() {
            continue;
        }
        let to = into.join(kept);
        let executable = entry.header().mode().is_ok_and(|mode| mode & 0o111 != 0);
        write(&mut entry, &to)?;
        if executable {
            make_executable(&to)?;
        }
    }
    Ok(())
}

/// A brotli-compressed tar file becomes a folder, any other brotli-compressed file a file; the original goes.
fn brotli(member: &Path, to: &Path) -> Result<()> {
    let mut unpacked = brotli_decompressor::Decompressor::new(BufReader::new(File::open(member)?), 1 << 16);
    if member.to_string_lossy().ends_with(".tar.br") {
        tar_into(unpacked, to, 0)?;
    } else {
        write(&mut unpacked, to)?;
    }
    Ok(fs::remove_file(member)?)
}

fn write(from: &mut impl Read, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = File::create(to)?;
    io::copy(from, &mut file).with_context(|| format!("cannot write {}", to.display()))?;
    Ok(())
}

#[cfg(unix)]
fn make_executable(file: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::set_permissions(file, fs::Permissions::from_mode(0o755))?)
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<()> {
    Ok(())
}

#[cfg(unix)]
fn make_link(link: &Path, target: &str) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(not(unix))]
fn make_link(link: &Path, target: &str) -> io::Result<()> {
    fs::copy(link.with_file_name(target), link).map(drop)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn zip_with(name: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.whl");
        let mut zip = zip::ZipWriter::new(File::create(&path).unwrap());
        zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(b"content").unwrap();
        zip.finish().unwrap();
        (dir, path)
    }

    #[test]
    fn nothing_is_written_outside() {
        let (dir, path) = zip_with("../escaped");
        let error = wheel(&path, &dir.path().join("into")).unwrap_err();
        assert_eq!(error.to_string(), "`../escaped` leads out of the package");
        assert!(!dir.path().join("escaped").exists());
    }

    #[test]
    fn modules_for_python_are_left_out() {
        assert!(for_python(Path::new("a/b_state.cpython-313-x86_64-linux-gnu.so")));
        assert!(for_python(Path::new("a/__init__.py")));
        assert!(!for_python(Path::new("a/libonnxruntime.so.1")));
        let (dir, path) = zip_with("a/__init__.py");
        wheel(&path, &dir.path().join("into")).unwrap();
        assert!(!dir.path().join("into/a").exists());
    }

    #[test]
    fn npm_archives_lose_their_first_folder() {
        let dir = tempfile::tempdir().unwrap();
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(2);
        header.set_mode(0o644);
        tar.append_data(&mut header, "package/dist/ort.mjs", &b"hi"[..]).unwrap();
        tar_into(tar.into_inner().unwrap().as_slice(), dir.path(), 1).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("dist/ort.mjs")).unwrap(), "hi");
    }
}
