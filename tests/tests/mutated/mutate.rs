//! Mutations by a counter-based generator: the same number gives the same input everywhere.

/// What a target reads, which decides what is likely to reach far into it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Binary,
    Text,
}

/// Numbers at which lengths, counts and signs turn.
const NUMBERS: [u64; 16] = [
    0,
    1,
    2,
    7,
    255,
    256,
    32_767,
    32_768,
    65_535,
    65_536,
    44_101,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 50,
    u64::MAX,
];

/// What nests or repeats in the texts that are read.
const PIECES: [&str; 24] = [
    "{",
    "}",
    "[",
    "]",
    "(",
    "\"",
    ",",
    "{% for a in range(99999) %}",
    "{% endfor %}",
    "{{ messages }}",
    "{% if 1 %}",
    "null",
    "-1",
    "1e999",
    "~",
    "\\u0000",
    "{% set ns = namespace(x='aaaaaaaa') %}",
    "{% set ns.x = ns.x ~ ns.x %}",
    "{% set ns.x = [ns.x, ns.x] %}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    " * 99999999",
    " | list",
    " | join(ns.x)",
    ".replace('', ns.x)",
];

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// The input of a number: a file of the corpus with one to eight changes.
pub fn input(corpus: &[Vec<u8>], kind: Kind, number: u64) -> Vec<u8> {
    let mut random = Random(number.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let mut bytes = corpus[random.below(corpus.len())].clone();
    for _ in 0..=random.below(8) {
        let at = random.below(bytes.len());
        let length = match random.below(4) {
            0 => random.below(bytes.len() / 2),
            _ => random.below(32),
        };
        let end = (at + length).min(bytes.len());
        match random.below(9) {
            0 | 1 if kind == Kind::Text => number_in(&mut bytes, at, &mut random),
            0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            1 if !bytes.is_empty() => bytes[at] = random.next() as u8,
            2 => {
                let width = [1, 2, 4, 8][random.below(4)];
                let number = NUMBERS[random.below(NUMBERS.len())];
                let all = if random.below(2) == 0 {
                    number.to_le_bytes().to_vec()
                } else {
                    number.to_be_bytes()[8 - width..].to_vec()
                };
                bytes.iter_mut().skip(at).zip(&all[..width]).for_each(|(byte, new)| *byte = *new);
            }
            3 => drop(bytes.drain(at..end)),
            4 => {
                let part = bytes[at..end].to_vec();
                let times = [1, 1, 2, 20, 200][random.below(5)];
                bytes.splice(at..at, part.repeat(if part.len() * times > 1 << 17 { 1 } else { times }));
            }
            5 => {
                let other = &corpus[random.below(corpus.len())];
                let from = random.below(other.len());
                let part = &other[from..(from + length).min(other.len())];
                bytes.splice(at..end, part.iter().copied());
            }
            6 if kind == Kind::Text => {
                let piece = PIECES[random.below(PIECES.len())];
                bytes.splice(at..at, piece.repeat([1, 1, 3, 300, 3000][random.below(5)]).into_bytes());
            }
            7 => bytes.truncate(at.max(1)),
            _ => {
                let new: Vec<u8> = (0..random.below(16)).map(|_| random.next() as u8).collect();
                bytes.splice(at..at, new);
            }
        }
        bytes.truncate(1 << 18);
    }
    bytes
}

/// Puts another number for the first one from a place on.
fn number_in(bytes: &mut Vec<u8>, at: usize, random: &mut Random) {
    let Some(from) = bytes[at..].iter().position(u8::is_ascii_digit).map(|found| at + found) else { return };
    let length = bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = NUMBERS[random.below(NUMBERS.len())].to_string();
    bytes.splice(from..from + length, number.into_bytes());
}
