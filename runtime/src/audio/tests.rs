//! Against the goldens of `tests/goldens/processors/audio`, which the reference made.

use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use serde_json::Value as Json;

use super::*;
use crate::Value;
use crate::hub::Checkpoint;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens/processors/audio")
}

/// The tensors of a file as numbers, by name.
fn tensors(path: &Path) -> Vec<(String, Vec<f64>)> {
    let bytes = std::fs::read(path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let numbers = |view: safetensors::tensor::TensorView<'_>| {
        let data = view.data();
        match view.dtype() {
            safetensors::Dtype::F32 => {
                data.as_chunks().0.iter().map(|b| f64::from(f32::from_le_bytes(*b))).collect()
            }
            safetensors::Dtype::F64 => data.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect(),
            safetensors::Dtype::I32 => {
                data.as_chunks().0.iter().map(|b| f64::from(i32::from_le_bytes(*b))).collect()
            }
            safetensors::Dtype::I64 => {
                data.as_chunks().0.iter().map(|b| i64::from_le_bytes(*b) as f64).collect()
            }
            _ => data.iter().map(|b| f64::from(*b)).collect(),
        }
    };
    file.iter().map(|(name, view)| (name.to_owned(), numbers(view))).collect()
}

fn largest_difference(got: impl ExactSizeIterator<Item = f64>, want: &[f64]) -> f64 {
    assert_eq!(got.len(), want.len());
    got.zip(want).map(|(got, want)| (got - want).abs()).fold(0.0, f64::max)
}

#[test]
fn a_rate_of_zero_is_refused() {
    let mut bytes = std::fs::read(folder().join("files/speech.wav")).unwrap();
    let at = bytes.windows(4).position(|name| name == b"fmt ").unwrap();
    bytes[at + 12..at + 16].fill(0);
    let said = decode::decode(bytes, Some("wav"), "speech.wav").unwrap_err().to_string();
    assert!(said.contains("speech.wav: says that it has 0 samples a second"), "{said}");
}

#[test]
fn a_rate_of_zero_is_refused_behind_other_bytes() {
    let mut bytes = b"junk".to_vec();
    bytes.extend(std::fs::read(folder().join("files/speech.wav")).unwrap());
    let at = bytes.windows(4).position(|name| name == b"fmt ").unwrap();
    bytes[at + 12..at + 16].fill(0);
    let said = decode::decode(bytes, Some("wav"), "speech.wav").unwrap_err().to_string();
    assert!(said.contains("speech.wav: says that it has 0 samples a second"), "{said}");
}

/// What the definition gives at `n`: all samples, each weighted by the window.
fn by_definition(samples: &[f32], from: u32, to: u32, n: usize) -> f64 {
    use std::f64::consts::PI;
    let cutoff = f64::from(from.min(to)) * 0.99;
    let weight = |index: usize| {
        let at = index as f64 / f64::from(from) - n as f64 / f64::from(to);
        let t = at * cutoff;
        let window = if t.abs() < 6.0 { (t * PI / 12.0).cos().powi(2) } else { 0.0 };
        let sinc = if t == 0.0 { 1.0 } else { (t * PI).sin() / (t * PI) };
        window * sinc * cutoff / f64::from(from)
    };
    samples.iter().enumerate().map(|(index, x)| weight(index) * f64::from(*x)).sum()
}

#[test]
fn odd_rates_are_resampled_by_the_definition_at_once() {
    let samples: Vec<f32> = (0..3000).map(|n| ((n * n % 97) as f32 / 97.0) - 0.5).collect();
    // Rates without a common divisor, to fewer samples than phases and to more; and a very high one.
    for (from, to) in [(44_101, 16_000), (16_001, 44_100), (999, 1_000), (7, 5), (2_000_003, 16_000)] {
        let start = std::time::Instant::now();
        let audio = Audio { samples: samples.clone(), sampling_rate: from };
        let got = audio.resample(to).unwrap();
        assert!(start.elapsed().as_secs() < 1, "{from} to {to}: {:?}", start.elapsed());
        let length = (3000 * to as usize).div_ceil(from as usize);
        assert_eq!(got.samples.len(), length, "{from} to {to}");
        for n in [0, 1, length / 3, length / 2, length - 1] {
            let n = n.min(length - 1);
            let want = by_definition(&samples, from, to, n);
            assert!((f64::from(got.samples[n]) - want).abs() < 2e-6, "{from} to {to} at {n}: {want}");
        }
    }
}

#[test]
fn rates_that_fill_the_memory_are_refused() {
    let refusal = |count: usize, from, to| {
        let audio = Audio { samples: vec![0.5; count], sampling_rate: from };
        audio.resample(to).unwrap_err().to_string()
    };
    let text = refusal(20_000, 1, 16_000);
    assert!(
        text.contains("320000000 samples, 20000 of 1 Hz") && text.contains("resample it first"),
        "{text}"
    );
    for (from, to) in [(u32::MAX, 16_000), (16_000, u32::MAX)] {
        assert!(refusal(2, from, to).contains("4294967295 Hz is no sampling rate"));
    }
}

/// A FLAC file of silence: each frame of 4096 equal samples takes 15 bytes or fewer.
#[test]
fn silence_cannot_fill_the_memory() {
    let text = Audio::decode(silent_flac(4000)).unwrap_err().to_string();
    assert!(text.contains("far more than its bytes could be"), "{text}");
    assert_eq!(Audio::decode(silent_flac(3)).unwrap().samples, vec![0.0; 3 * 65_535]);
}

fn silent_flac(frames: u64) -> Vec<u8> {
    let crc = |bytes: &[u8], width: u32, polynomial: u32| {
        bytes.iter().fold(0_u32, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte) << (width - 8), |crc, _| {
                let out = crc >> (width - 1) & 1;
                ((crc << 1) ^ (out * polynomial)) & ((1_u64 << width) - 1) as u32
            })
        })
    };
    let samples = frames * 65_535;
    let mut file = b"fLaC\x80\0\0\x22".to_vec();
    file.extend([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0]);
    // 16 kHz in 20 bits, 1 channel in 3, 16 bits a sample in 5, the number of samples in 36.
    file.extend((16_000_u64 << 44 | 15 << 36 | samples).to_be_bytes());
    file.extend([0; 16]);
    for number in 0..frames as u32 {
        // A fixed block size that 16 bits give, the rate and the depth from the header, one channel.
        let mut frame = vec![0xff, 0xf8, 0x70, 0x00];
        match number {
            0..0x80 => frame.push(number as u8),
            0x80..0x800 => frame.extend([0xc0 | (number >> 6) as u8, 0x80 | (number & 63) as u8]),
            _ => frame.extend([
                0xe0 | (number >> 12) as u8,
                0x80 | (number >> 6 & 63) as u8,
                0x80 | (number & 63) as u8,
            ]),
        }
        frame.extend(65_534_u16.to_be_bytes());
        frame.push(crc(&frame, 8, 0x07) as u8);
        // One constant subframe of a sample.
        frame.extend([0, 0, 0]);
        let check = crc(&frame, 16, 0x8005) as u16;
        frame.extend(check.to_be_bytes());
        file.extend(frame);
    }
    file
}

#[test]
fn files_decode_as_elsewhere() {
    let decoded = tensors(&folder().join("decoded.safetensors"));
    let mut seen = 0;
    for (name, want) in decoded.iter().filter(|(name, _)| name.starts_with("out.")) {
        let name = name.trim_start_matches("out.");
        let audio = Audio::open(folder().join("files").join(name)).unwrap();
        let (_, length) = decoded.iter().find(|(other, _)| *other == format!("length.{name}")).unwrap();
        assert_eq!([audio.samples.len() as f64, f64::from(audio.sampling_rate)], length[..], "{name}");
        let got: Vec<f64> = audio.samples.iter().step_by(11).map(|x| f64::from(*x)).collect();
        let lossy = name.ends_with(".mp3") || name.ends_with(".ogg");
        let difference = largest_difference(got.into_iter(), want);
        assert!(difference <= if lossy { 1e-4 } else { 1e-7 }, "{name}: off by {difference:e}");
        seen += 1;
    }
    assert_eq!(seen, 12);
}

#[test]
fn resampling_follows_its_definition() {
    let tensors = tensors(&folder().join("resampled.safetensors"));
    let (_, sweep) = tensors.iter().find(|(name, _)| name == "in.sweep").unwrap();
    for (name, want) in tensors.iter().filter(|(name, _)| name.starts_with("out.")) {
        let rates: Vec<u32> = name.split('.').skip(1).map(|rate| rate.parse().unwrap()).collect();
        let audio = Audio { samples: sweep.iter().map(|x| *x as f32).collect(), sampling_rate: rates[0] };
        let got = audio.resample(rates[1]).unwrap();
        assert_eq!(got.sampling_rate, rates[1]);
        let difference = largest_difference(got.samples.iter().map(|x| f64::from(*x)), want);
        assert!(difference <= 2e-6, "{name}: off by {difference:e}");
    }
}

fn options(json: &Json) -> ExtractOptions {
    let length = |name: &str| json[name].as_u64().map(|n| n as usize);
    ExtractOptions {
        padding: json["padding"].as_str().map(|name| match name {
            "longest" => Padding::Longest,
            "max_length" => Padding::MaxLength,
            other => panic!("no padding {other}"),
        }),
        max_length: length("max_length"),
        truncation: json["truncation"].as_bool(),
        pad_to_multiple_of: length("pad_to_multiple_of"),
        attention_mask: json["return_attention_mask"].as_bool(),
    }
}

#[test]
fn features_are_the_references() {
    let mut seen = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let dir = entry.unwrap().path();
        let Ok(case) = std::fs::read(dir.join("case.json")) else { continue };
        let case: Json = serde_json::from_slice(&case).unwrap();
        let name = dir.file_name().unwrap().to_string_lossy().into_owned();
        let extractor = FeatureExtractor::read(&Checkpoint::open(dir.to_str().unwrap()).unwrap()).unwrap();
        let cut = case["cut"].as_u64().map_or(usize::MAX, |cut| cut as usize);
        let waves: Vec<Vec<f32>> = case["files"]
            .as_array()
            .unwrap()
            .iter()
            .map(|file| Audio::open(folder().join("files").join(file.as_str().unwrap())).unwrap().samples)
            .map(|samples| samples.into_iter().take(cut).collect())
            .collect();
        let waves: Vec<&[f32]> = waves.iter().map(Vec::as_slice).collect();
        let got = extractor.extract(&waves, &options(&case["options"])).unwrap();
        let every = case["every"].as_u64().unwrap() as usize;
        let want = tensors(&dir.join("out.safetensors"));
        assert_eq!(got.len(), want.len(), "{name}: {:?}", got.keys());
        for (output, want) in want {
            let output = output.trim_start_matches("out.");
            let value = &got[output];
            let shape: Vec<u64> = value.shape().iter().map(|n| *n as u64).collect();
            assert_eq!(serde_json::json!(shape), case["shapes"][output], "{name}: {output}");
            let numbers: Vec<f64> = match value {
                Value::F32(a) => a.iter().map(|x| f64::from(*x)).collect(),
                Value::I64(a) => a.iter().map(|x| *x as f64).collect(),
                Value::Bool(a) => a.iter().map(|x| f64::from(u8::from(*x))).collect(),
            };
            let kept: Vec<f64> = numbers.into_iter().step_by(every).collect();
            let scale = want.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
            let difference = largest_difference(kept.into_iter(), &want) / scale;
            println!("{name} {output} {difference:.1e}");
            assert!(difference <= 1e-5, "{name}: {output} is off by {difference:e}");
        }
        seen += 1;
    }
    assert!(seen >= 20, "{seen} cases");
}

#[test]
fn what_is_no_sound_is_refused() {
    let refusal = |bytes: &[u8]| Audio::decode(bytes).err().unwrap().to_string();
    assert!(refusal(b"").contains("is empty"));
    let text = refusal(b"This is a text, and no audio at all, however long one makes it.");
    assert!(text.contains("no audio was recognised") && text.contains("WAV, FLAC, MP3 or OGG"), "{text}");
    let mut wav = std::fs::read(folder().join("files/sweep.wav")).unwrap();
    wav.truncate(44);
    let text = refusal(&wav);
    assert!(text.contains("0 of 11200 samples"), "{text}");
    let mut flac = std::fs::read(folder().join("files/stereo.flac")).unwrap();
    let middle = flac.len() / 2;
    flac[middle..middle + 3000].fill(0x55);
    let text = refusal(&flac);
    assert!(text.contains("is damaged or cut short"), "{text}");
    let text = Audio::open("/no/such/file.wav").unwrap_err().to_string();
    assert!(text.contains("/no/such/file.wav"), "{text}");
}

#[test]
fn what_no_model_can_take_is_refused() {
    let folder = folder().join("waveform-one");
    let extractor = FeatureExtractor::read(&Checkpoint::open(folder.to_str().unwrap()).unwrap()).unwrap();
    let refusal =
        |waves: &[&[f32]]| extractor.extract(waves, &ExtractOptions::default()).unwrap_err().to_string();
    assert!(refusal(&[]).contains("there is none"));
    assert!(refusal(&[&[0.0], &[]]).contains("waveform 1 has no samples"));
    assert!(refusal(&[&[0.0, f32::NAN]]).contains("sample 1 is NaN"));
    assert!(refusal(&[&[0.0], &[0.0, 0.1]]).contains("do not make one batch"));
}

#[test]
fn settings_that_do_not_fit_name_the_file() {
    let refusal = |json: &str| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("preprocessor_config.json"), json).unwrap();
        let checkpoint = Checkpoint::open(folder.path().to_str().unwrap()).unwrap();
        FeatureExtractor::read(&checkpoint).unwrap_err().to_string()
    };
    let text = refusal(r#"{"feature_extractor_type": "BarkFeatureExtractor"}"#);
    assert!(text.contains("preprocessor_config.json") && text.contains("BarkFeatureExtractor"), "{text}");
    assert!(refusal(r#"{"sampling_rate": "fast"}"#).contains("sampling_rate"));
    assert!(refusal(r#"{"sampling_rate": 0}"#).contains("must be at least 1"));
    let whisper = |field: &str| {
        refusal(&format!(r#"{{"feature_extractor_type": "WhisperFeatureExtractor", {field}}}"#))
    };
    assert!(whisper(r#""feature_size": 1125899906842624"#).contains("must be at most 16384"));
    assert!(whisper(r#""n_fft": 18446744073709551614"#).contains("`n_fft` is"));
    assert!(whisper(r#""chunk_length": 9000"#).contains("144000000 samples at 16000 Hz, too many"));
    assert!(whisper(r#""hop_length": 1"#).contains("too many for frames 1 apart"));
    assert!(refusal(r#"{"padding_side": "left"}"#).contains("only \"right\""));
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = Checkpoint::open(folder.path().to_str().unwrap()).unwrap();
    assert!(
        FeatureExtractor::read(&checkpoint).unwrap_err().to_string().contains("preprocessor_config.json")
    );
}
