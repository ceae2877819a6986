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
        let got = audio.resample(rates[1]);
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
    assert!(refusal(r#"{"padding_side": "left"}"#).contains("only \"right\""));
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = Checkpoint::open(folder.path().to_str().unwrap()).unwrap();
    assert!(
        FeatureExtractor::read(&checkpoint).unwrap_err().to_string().contains("preprocessor_config.json")
    );
}
