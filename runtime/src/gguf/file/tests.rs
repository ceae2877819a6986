//! Headers made by hand, and what is wrong with them.

use super::*;

/// A file under construction.
#[derive(Clone)]
struct Made {
    version: u32,
    tensors: u64,
    entries: u64,
    body: Vec<u8>,
    data: usize,
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}

/// A tensor's entry.
fn entry(name: &str, dims: &[u64], kind: u32, offset: u64) -> Vec<u8> {
    let dims: Vec<u8> = dims.iter().flat_map(|n| n.to_le_bytes()).collect();
    let axes = (dims.len() as u32 / 8).to_le_bytes();
    [&text(name)[..], &axes, &dims, &kind.to_le_bytes(), &offset.to_le_bytes()].concat()
}

impl Made {
    /// Metadata `general.architecture`, and two tensors of 32 values in single precision.
    fn sound() -> Self {
        let key = [&text("general.architecture")[..], &8_u32.to_le_bytes(), &text("llama")].concat();
        Self { version: 3, tensors: 0, entries: 1, body: key, data: 256 }
            .with(&entry("a", &[16, 2], 0, 0))
            .with(&entry("b", &[32], 0, 128))
    }

    fn with(mut self, entry: &[u8]) -> Self {
        self.tensors += 1;
        self.body.extend(entry);
        self
    }

    /// With one more of the metadata, before the tensors.
    fn with_key(mut self, key: &str, kind: u32, value: &[u8]) -> Self {
        self.entries += 1;
        self.body.splice(0..0, [&text(key)[..], &kind.to_le_bytes(), value].concat());
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = [&MAGIC[..], &self.version.to_le_bytes(), &self.tensors.to_le_bytes()].concat();
        bytes.extend(self.entries.to_le_bytes());
        bytes.extend(&self.body);
        bytes.resize(bytes.len().next_multiple_of(32) + self.data, 0);
        bytes
    }

    fn problem(&self) -> String {
        header(&self.bytes()).unwrap_err()
    }
}

#[test]
fn tensors_are_found_behind_the_header() {
    for version in [2, 3] {
        let made = Made { version, ..Made::sound() };
        let (metadata, tensors) = header(&made.bytes()).unwrap();
        assert_eq!(metadata["general.architecture"].text(), Some("llama"));
        // The longest axis of a row goes first in files.
        assert_eq!((tensors[0].shape.as_slice(), tensors[0].length), (&[2, 16][..], 128));
        assert_eq!(tensors[1].offset, tensors[0].offset + 128);
        assert_eq!(tensors[0].offset % 32, 0);
        assert_eq!(tensors[1].offset + 128, made.bytes().len());
    }
}

#[test]
fn an_alignment_of_its_own_holds() {
    let made = Made::sound().with_key(ALIGNMENT, 4, &64_u32.to_le_bytes());
    let mut bytes = made.bytes();
    bytes.resize(bytes.len() + 64, 0);
    assert_eq!(header(&bytes).unwrap().1[0].offset % 64, 0);
    let made = Made::sound().with_key(ALIGNMENT, 4, &48_u32.to_le_bytes());
    assert!(made.problem().contains("`general.alignment` is no power of two"));
}

#[test]
fn other_files_and_versions_are_told_apart() {
    for (version, said) in [
        (1, "version 1"),
        (4, "version 4"),
        (3_u32.swap_bytes(), "big-endian"),
        (2_u32.swap_bytes(), "big-endian"),
    ] {
        let problem = Made { version, ..Made::sound() }.problem();
        assert!(problem.contains(said), "{problem}");
    }
    assert!(header(b"PK\x03\x04").unwrap_err().contains("does not begin with `GGUF`"));
    assert!(header(b"version https://git-lfs.github.com/spec/v1").unwrap_err().contains("Git LFS"));
    assert!(header(b"GGUF").unwrap_err().contains("cut off at byte 4, within the version"));
}

#[test]
fn counts_that_no_file_could_hold_are_refused_before_anything_is_made() {
    let sound = Made::sound();
    for count in [1 << 20, u64::MAX] {
        let problem = Made { tensors: count, ..sound.clone() }.problem();
        assert!(problem.contains(&format!("claims {count} tensors")), "{problem}");
        let problem = Made { entries: count, ..sound.clone() }.problem();
        assert!(problem.contains(&format!("claims {count} metadata entries")), "{problem}");
    }
    // A text, a list and an axis that are as long.
    let long = u64::MAX.to_le_bytes();
    assert!(Made::sound().with_key("x", 8, &long).problem().contains("within the metadata `x`"));
    for element in [0_u32, 8, 12] {
        let list = [&element.to_le_bytes()[..], &long].concat();
        assert!(Made::sound().with_key("x", 9, &list).problem().contains("within the metadata `x`"));
    }
    for dims in [&[u64::MAX][..], &[1 << 32, 1 << 32], &[0], &[16, 0]] {
        let problem = sound.clone().with(&entry("c", dims, 0, 256)).problem();
        assert!(
            problem.contains("tensor `c` has an axis of") || problem.contains("larger than any file"),
            "{problem}"
        );
    }
}

#[test]
fn damaged_metadata_are_named() {
    let list = [&9_u32.to_le_bytes()[..], &1_u64.to_le_bytes(), &[0; 12]].concat();
    assert!(Made::sound().with_key("x", 9, &list).problem().contains("`x` is a list of lists"));
    assert!(Made::sound().with_key("x", 13, &[]).problem().contains("`x` is of type 13"));
    let twice = Made::sound().with_key("general.architecture", 7, &[1]);
    assert!(twice.problem().contains("`general.architecture` twice"));
    let wrong = [&1_u64.to_le_bytes()[..], &[0xff]].concat();
    assert!(Made::sound().with_key("x", 8, &wrong).problem().contains("not UTF-8"));
}

#[test]
fn tensors_that_do_not_fit_are_named() {
    let sound = Made::sound();
    for (made, said) in [
        (entry("c", &[32], 0, 256), "tensor `c` lies outside of the file"),
        (entry("c", &[32], 0, u64::MAX - 31), "tensor `c` lies outside of the file"),
        (entry("c", &[8], 0, 8), "tensor `c` begins at byte 8, no multiple of 32"),
        (entry("c", &[8], 0, 96), "`a` and `c` lie over each other"),
        (entry("a", &[8], 0, 0), "tensor `a` twice"),
        (
            entry("c", &[16], 2, 0),
            "tensor `c` has rows of 16, no multiple of the 32 elements in a block of Q4_0",
        ),
        (entry("c", &[32], 99, 0), "tensor `c` is of type 99, which no release"),
        (entry("c", &[32], 4, 0), "tensor `c` is of type 4, which was taken out"),
        (entry("c", &[1, 1, 1, 1, 1], 0, 0), "tensor `c` has 5 axes"),
        (entry("c", &[], 0, 0), "tensor `c` has 0 axes"),
    ] {
        let problem = sound.clone().with(&made).problem();
        assert!(problem.contains(said), "{problem}");
    }
    let bytes = sound.bytes();
    let problem = header(&bytes[..bytes.len() - 1]).unwrap_err();
    assert!(problem.contains("tensor `b` lies outside of the file"), "{problem}");
}

#[test]
fn no_beginning_of_a_file_is_taken_for_a_file() {
    let bytes = Made::sound()
        .with_key("list", 9, &[&5_u32.to_le_bytes()[..], &1_u64.to_le_bytes(), &[7; 4]].concat())
        .bytes();
    for length in 0..bytes.len() {
        assert!(header(&bytes[..length]).is_err(), "{length}");
    }
}

#[test]
fn lists_and_numbers_are_read_from_the_file() {
    let texts = [&8_u32.to_le_bytes()[..], &2_u64.to_le_bytes(), &text("one"), &text("")].concat();
    let numbers =
        [&5_u32.to_le_bytes()[..], &2_u64.to_le_bytes(), &(-3_i32).to_le_bytes(), &4_i32.to_le_bytes()]
            .concat();
    let made = Made::sound()
        .with_key("texts", 9, &texts)
        .with_key("numbers", 9, &numbers)
        .with_key("small", 1, &[0xfe])
        .with_key("epsilon", 6, &1e-5_f32.to_le_bytes());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    fs::write(&path, made.bytes()).unwrap();
    let file = File::open(&path).unwrap();
    assert_eq!(file.texts("texts").unwrap(), ["one", ""]);
    assert_eq!(file.numbers("numbers").unwrap(), [-3.0, 4.0]);
    assert_eq!(file.metadata["small"], Value::Signed(-2));
    assert_eq!(file.metadata["epsilon"].json().unwrap(), 1e-5);
    assert_eq!((file.texts("numbers"), file.numbers("absent")), (None, None));
}
