//! Video files through `ffmpeg`, which makes them too. Without it the tests are ignored, with the reason.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use weft::video::Video;

fn main() -> ExitCode {
    libtest_mimic::run(&Arguments::from_args(), trials()).exit_code()
}

fn trials() -> Vec<Trial> {
    let here = |name: &str, test: fn() -> Result<(), Failed>| {
        Trial::ignorable_test(name, move || match Command::new("ffmpeg").arg("-version").output() {
            Ok(_) => test().map(|()| Completion::Completed),
            Err(e) => Ok(Completion::ignored_with(format!("ffmpeg cannot be started: {e}"))),
        })
    };
    vec![
        here("frames_are_those_that_went_in", lossless),
        here("an_mp4_gives_the_frames_that_ffmpeg_writes_to_a_folder", mp4),
        here("a_file_cut_short_is_refused", cut_short),
    ]
}

fn animation() -> PathBuf {
    PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/goldens/processors/image/files/animated.gif"
    ))
}

fn ffmpeg(arguments: &[&str], from: &Path, to: &Path) -> Result<(), Failed> {
    let made = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-i"])
        .arg(from)
        .args(arguments)
        .arg(to)
        .output()?;
    if made.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&made.stderr).into_owned().into())
    }
}

fn same(got: &Video, want: &Video) -> Result<(), Failed> {
    if got == want {
        return Ok(());
    }
    Err(format!("{} and {} frames, or their levels, differ", got.frames().len(), want.frames().len()).into())
}

fn lossless() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let clip = folder.path().join("clip.mkv");
    ffmpeg(&["-fps_mode", "passthrough", "-c:v", "ffv1", "-pix_fmt", "bgr0"], &animation(), &clip)?;
    same(&Video::open(&clip)?, &Video::open(animation())?)
}

fn mp4() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let (clip, written) = (folder.path().join("clip.mp4"), folder.path().join("frames"));
    std::fs::create_dir(&written)?;
    ffmpeg(&["-r", "25", "-c:v", "mpeg4", "-pix_fmt", "yuv420p", "-q:v", "2"], &animation(), &clip)?;
    ffmpeg(&["-fps_mode", "passthrough", "-pix_fmt", "rgb24"], &clip, &written.join("%05d.png"))?;
    same(&Video::open(&clip)?, &Video::open(&written)?)
}

fn cut_short() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let clip = folder.path().join("clip.mp4");
    ffmpeg(&["-r", "25", "-c:v", "mpeg4", "-pix_fmt", "yuv420p"], &animation(), &clip)?;
    let whole = std::fs::read(&clip)?;
    std::fs::write(&clip, &whole[..whole.len() / 2])?;
    let said = Video::open(&clip).map_or_else(|e| e.to_string(), |_| "it was read".to_owned());
    if said.contains("clip.mp4") && said.contains("fetch it again") { Ok(()) } else { Err(said.into()) }
}
