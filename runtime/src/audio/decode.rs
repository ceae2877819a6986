//! Audio files to samples: WAV, FLAC, MP3 and OGG Vorbis.

use std::io::{Cursor, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};

use symphonia::core::audio::SampleBuffer;
use symphonia::core::codecs::{CODEC_TYPE_NULL, DecoderOptions};
use symphonia::core::errors::Error as Symphonia;
use symphonia::core::formats::FormatOptions;
use symphonia::core::io::MediaSourceStream;
use symphonia::core::meta::MetadataOptions;
use symphonia::core::probe::Hint;

use super::{Audio, refused};
use crate::Result;

const FORMATS: &str = "give a WAV, FLAC, MP3 or OGG Vorbis file";

/// Programs that write to a pipe cannot know the length, and declare the largest that fits the header.
const UNKNOWN: u64 = u32::MAX as u64 / 16;

/// How many samples a file of this length may hold: three minutes of silence take hardly a byte, but all that is heard
/// takes one for a few samples.
fn most_samples(bytes: usize) -> usize {
    (64 * bytes).saturating_add(1 << 23)
}

/// All samples of the first track, channels mixed down; `name` is what errors call the file.
pub(super) fn decode(bytes: Vec<u8>, ending: Option<&str>, name: &str) -> Result<Audio> {
    // The decoders are others' and index what damaged files say; a file must not end the program.
    catch_unwind(AssertUnwindSafe(|| read(bytes, ending, name))).unwrap_or_else(|_| {
        let problem = format!("{name}: is damaged: its decoder cannot go on");
        Err(refused(problem, "fetch or make the file again"))
    })
}

fn read(bytes: Vec<u8>, ending: Option<&str>, name: &str) -> Result<Audio> {
    if bytes.is_empty() {
        return Err(refused(format!("{name}: is empty"), FORMATS));
    }
    if rate_is_zero(&bytes) {
        return Err(refused(format!("{name}: says that it has 0 samples a second"), "make the file again"));
    }
    let most = most_samples(bytes.len());
    let mut hint = Hint::new();
    if let Some(ending) = ending {
        hint.with_extension(ending);
    }
    let stream = MediaSourceStream::new(Box::new(Cursor::new(bytes)), Default::default());
    // Encoders of lossy formats add samples before and after, which are not part of the audio.
    let options = FormatOptions { enable_gapless: true, ..Default::default() };
    let mut format = symphonia::default::get_probe()
        .format(&hint, stream, &options, &MetadataOptions::default())
        .map_err(|e| refused(format!("{name}: no audio was recognised ({e})"), FORMATS))?
        .format;
    let track = format.tracks().iter().find(|track| track.codec_params.codec != CODEC_TYPE_NULL);
    let Some(track) = track else {
        return Err(refused(format!("{name}: has no audio track of a known coding"), FORMATS));
    };
    let id = track.id;
    let mut decoder = symphonia::default::get_codecs()
        .make(&track.codec_params, &DecoderOptions::default())
        .map_err(|e| refused(format!("{name}: its coding is not supported ({e})"), FORMATS))?;

    let declared = track.codec_params.n_frames.filter(|&frames| frames < UNKNOWN);
    let mut samples = vec![];
    let mut rate = track.codec_params.sample_rate;
    let damaged = |e: &Symphonia, at: usize, rate: Option<u32>| {
        let seconds = at as f64 / f64::from(rate.unwrap_or(1).max(1));
        refused(format!("{name}: is damaged after {seconds:.3} s ({e})"), "fetch or make the file again")
    };
    loop {
        let packet = match format.next_packet() {
            Ok(packet) => packet,
            Err(Symphonia::IoError(e)) if e.kind() == ErrorKind::UnexpectedEof => break,
            Err(e) => return Err(damaged(&e, samples.len(), rate)),
        };
        if packet.track_id() != id {
            continue;
        }
        let decoded = match decoder.decode(&packet) {
            Ok(decoded) => decoded,
            Err(Symphonia::IoError(e)) if e.kind() == ErrorKind::UnexpectedEof => break,
            Err(e) => return Err(damaged(&e, samples.len(), rate)),
        };
        let spec = *decoded.spec();
        if rate.is_some_and(|rate| rate != spec.rate) && !samples.is_empty() {
            let help = "split the file where the rate changes";
            return Err(refused(format!("{name}: changes its sampling rate midway"), help));
        }
        rate = Some(spec.rate);
        let channels = spec.channels.count().max(1);
        let mut buffer = SampleBuffer::<f32>::new(decoded.capacity() as u64, spec);
        buffer.copy_interleaved_ref(decoded);
        let mean = |frame: &[f32]| frame.iter().sum::<f32>() / channels as f32;
        samples.extend(buffer.samples().chunks_exact(channels).map(mean));
        if samples.len() > most {
            let problem = format!("{name}: holds more than {most} samples, far more than its bytes could be");
            return Err(refused(problem, "split it, or save it as WAV"));
        }
    }
    // The last packet of a lossy format may reach beyond the end.
    samples.truncate(declared.map_or(usize::MAX, |frames| frames as usize));
    if let Some(declared) = declared.filter(|&frames| (samples.len() as u64) < frames) {
        let problem =
            format!("{name}: is damaged or cut short: {} of {declared} samples are there", samples.len());
        return Err(refused(problem, "fetch or make the file again"));
    }
    match rate {
        Some(sampling_rate) if sampling_rate > 0 && !samples.is_empty() => {
            Ok(Audio { samples, sampling_rate })
        }
        Some(_) => Err(refused(format!("{name}: holds no samples"), "give a file with audio in it")),
        None => Err(refused(format!("{name}: does not say its sampling rate"), FORMATS)),
    }
}

/// How far into a file its header is looked for.
const SEARCHED: usize = 1 << 20;

/// Whether the header of a WAV file or of Vorbis, wherever it begins, gives a sampling rate of 0, on which the decoder
/// would panic.
fn rate_is_zero(bytes: &[u8]) -> bool {
    let rate = |at: usize| bytes.get(at..at + 4) == Some(&[0; 4]);
    let head = &bytes[..bytes.len().min(SEARCHED)];
    if let Some(riff) = head.windows(4).position(|name| name == b"RIFF") {
        let mut at = riff + 12;
        while let Some((name, length)) = bytes.get(at..).and_then(|chunk| chunk.split_first_chunk::<4>()) {
            if name == b"fmt " {
                return rate(at + 12);
            }
            let Some(length) = length.first_chunk().map(|length| u32::from_le_bytes(*length) as usize) else {
                break;
            };
            at = at.saturating_add(8 + length + length % 2);
        }
    }
    if bytes.starts_with(b"RIFF") {
        return false;
    }
    let header = head.windows(7).position(|name| name == b"\x01vorbis");
    header.is_some_and(|at| rate(at + 12))
}
