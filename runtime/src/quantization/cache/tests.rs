//! What is kept is found again, and nothing else is.

use super::*;
use crate::Precision;
use crate::quantization::quantize;
use crate::weights::rule;

/// A weight of 40 rows of 64 in a file of its own, after 16 other bytes.
fn stored(folder: &Path, seed: &str) -> WeightData {
    let path = folder.join("weights");
    let values = rule::generate(seed, &[40, 64]);
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    fs::write(&path, [&[0; 16][..], &bytes].concat()).unwrap();
    WeightData {
        dtype: Dtype::F32,
        shape: vec![40, 64],
        stored_as: "w".to_owned(),
        bytes: Bytes::File { path, offset: 16, length: bytes.len() as u64 },
    }
}

fn cache(folder: &Path) -> WeightCache {
    WeightCache::new(folder.join("quantized"))
}

/// The files of the cache, which there must be one of.
fn file(cache: &WeightCache) -> PathBuf {
    let files = cache.files().unwrap();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].0.clone()
}

#[test]
fn what_is_kept_is_found_again_and_mapped() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, weight) = (cache(folder.path()), stored(folder.path(), "w"));
    let int4 = Quantization::of(Precision::Int4).unwrap();
    for settings in [int4.clone(), Quantization { symmetric: false, ..int4.clone() }] {
        assert_eq!(cache.get(&weight, 4, &settings), None);
        let made = quantize(&weight, 4, &settings).unwrap();
        cache.put(&weight, 4, &settings, &made).unwrap();
        let found = cache.get(&weight, 4, &settings).unwrap();
        assert!(matches!(&found.codes, Bytes::File { offset, .. } if offset % ALIGNMENT == 0));
        assert_eq!(found.dequantize().unwrap(), made.dequantize().unwrap());
        assert_eq!((found.zeros == Zeros::Middle, found.scale_dtype), (settings.symmetric, made.scale_dtype));
    }
    // Settings that make other codes are another key.
    let others = [Quantization { group: 64, ..int4.clone() }, Quantization { search: true, ..int4.clone() }];
    assert!(others.iter().all(|settings| cache.get(&weight, 4, settings).is_none()));
    assert_eq!(cache.get(&weight, 8, &int4), None);
}

#[test]
fn a_checkpoint_that_changed_is_quantized_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, weight) = (cache(folder.path()), stored(folder.path(), "w"));
    let int4 = Quantization::of(Precision::Int4).unwrap();
    cache.put(&weight, 4, &int4, &quantize(&weight, 4, &int4).unwrap()).unwrap();
    assert!(cache.get(&weight, 4, &int4).is_some());
    let weight = stored(folder.path(), "other numbers");
    let Bytes::File { path, .. } = &weight.bytes else { panic!() };
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
    File::options().append(true).open(path).unwrap().set_modified(later).unwrap();
    assert_eq!(cache.get(&weight, 4, &int4), None);
    // Under the name of another key, a file is of its own key still.
    let stale = file(&cache);
    let key = Key::of(&weight, 4, &int4).unwrap();
    fs::rename(stale, cache.path(&key)).unwrap();
    assert_eq!(cache.get(&weight, 4, &int4), None);
}

#[test]
fn half_written_and_spoilt_files_are_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, weight) = (cache(folder.path()), stored(folder.path(), "w"));
    let int4 = Quantization::of(Precision::Int4).unwrap();
    let made = quantize(&weight, 4, &int4).unwrap();
    cache.put(&weight, 4, &int4, &made).unwrap();
    let path = file(&cache);
    let whole = fs::read(&path).unwrap();
    let mut huge = whole.clone();
    huge[8..16].fill(0xff);
    let spoilt: [&[u8]; 6] =
        [&[], &whole[..7], &whole[..whole.len() - 1], &whole[..200], &[&whole[..], &[0]].concat(), &huge];
    for bytes in spoilt {
        fs::write(&path, bytes).unwrap();
        assert_eq!(cache.get(&weight, 4, &int4), None, "{} of {} bytes", bytes.len(), whole.len());
    }
    // It is written over.
    cache.put(&weight, 4, &int4, &made).unwrap();
    assert!(cache.get(&weight, 4, &int4).is_some());
}

#[test]
fn its_size_is_known_and_it_is_removed_with_what_a_crash_left() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, weight) = (cache(folder.path()), stored(folder.path(), "w"));
    assert_eq!((cache.size().unwrap(), cache.remove().unwrap()), Default::default());
    let int8 = Quantization::of(Precision::Int8).unwrap();
    cache.put(&weight, 8, &int8, &quantize(&weight, 8, &int8).unwrap()).unwrap();
    let bytes = fs::metadata(file(&cache)).unwrap().len();
    assert_eq!(cache.size().unwrap(), CacheSize { weights: 1, bytes });
    assert!((2560 + 160..4096).contains(&bytes), "{bytes}");
    fs::write(cache.folder.join("0.partial-1"), [0; 10]).unwrap();
    fs::write(cache.folder.join("precious"), "").unwrap();
    assert_eq!(cache.remove().unwrap(), CacheSize { weights: 1, bytes: bytes + 10 });
    assert_eq!(cache.size().unwrap(), CacheSize::default());
    assert!(cache.folder.join("precious").is_file());
    assert_eq!(cache.get(&weight, 8, &int8), None);
    // What lies in no file is not kept.
    let values = Bytes::memory(weight.bytes.read().unwrap()[..].to_vec());
    let loose = WeightData { bytes: values, ..weight };
    cache.put(&loose, 8, &int8, &quantize(&loose, 8, &int8).unwrap()).unwrap();
    assert_eq!(cache.size().unwrap(), CacheSize::default());
}
