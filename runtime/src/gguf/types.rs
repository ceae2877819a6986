//! The element types of GGUF files: how many elements a block holds, in how many bytes, and what reads it.

use super::unpack::{self, Unpack};
pub use super::unpack::{Repack, neighbours};
use crate::Dtype;
use crate::codebook::Codebook;

/// An element type (`ggml_type`).
#[derive(Debug)]
pub struct Kind {
    /// Its id in files.
    pub id: u32,
    /// Its name in `llama.cpp`.
    pub name: &'static str,
    /// Elements of a block.
    pub elements: usize,
    /// Bytes of a block.
    pub bytes: usize,
    /// How its blocks are read.
    pub form: Form,
}

/// How blocks of an element type are read.
#[derive(Debug)]
pub enum Form {
    /// As they are.
    Plain(Dtype),
    /// Unpacked into codes of so many bits, which share scales in groups.
    Blocks {
        /// Bits of a code.
        bits: usize,
        /// Codes that share a scale.
        group: usize,
        /// The type that holds every scale exactly.
        scales: Dtype,
        /// Whether a group has a minimum besides its scale.
        minimums: bool,
        /// What codes are places in, where they are no numbers.
        codebook: Option<Codebook>,
        /// Where in a block the scale of its scales is, in half precision, of types whose scales are whole numbers.
        outer: Option<usize>,
        /// Reads one block.
        unpack: Unpack,
        /// Where a block is one group, with a scale that is stored as it runs and codes that only change places: does that.
        repack: Option<Repack>,
    },
    /// Not at all: no weights are of such a type, or no kernel runs them.
    Refused,
}

const fn plain(id: u32, name: &'static str, bytes: usize, dtype: Dtype) -> Kind {
    Kind { id, name, elements: 1, bytes, form: Form::Plain(dtype) }
}

const fn refused(id: u32, name: &'static str, elements: usize, bytes: usize) -> Kind {
    Kind { id, name, elements, bytes, form: Form::Refused }
}

/// Blocks whose groups have a scale alone.
const fn scaled(
    (id, name): (u32, &'static str),
    (elements, bytes): (usize, usize),
    (bits, group, scales): (usize, usize, Dtype),
    unpack: Unpack,
) -> Kind {
    Kind {
        id,
        name,
        elements,
        bytes,
        form: Form::Blocks {
            bits,
            group,
            scales,
            minimums: false,
            codebook: None,
            outer: None,
            unpack,
            repack: None,
        },
    }
}

/// The same, faster.
const fn repacked(kind: Kind, fast: Repack) -> Kind {
    let Form::Blocks { bits, group, scales, minimums, codebook, outer, unpack, .. } = kind.form else {
        return kind;
    };
    let repack = Some(fast);
    Kind { form: Form::Blocks { bits, group, scales, minimums, codebook, outer, unpack, repack }, ..kind }
}

/// The same, with codes that are places in a codebook.
const fn in_codebook(kind: Kind, book: Codebook) -> Kind {
    let Form::Blocks { bits, group, scales, minimums, outer, unpack, repack, .. } = kind.form else {
        return kind;
    };
    let codebook = Some(book);
    Kind { form: Form::Blocks { bits, group, scales, minimums, codebook, outer, unpack, repack }, ..kind }
}

/// The same, with scales that are whole numbers, and what they are multiplied with at this place of a block.
const fn nested(kind: Kind, place: usize) -> Kind {
    let Form::Blocks { bits, group, scales, minimums, codebook, unpack, repack, .. } = kind.form else {
        return kind;
    };
    let outer = Some(place);
    Kind { form: Form::Blocks { bits, group, scales, minimums, codebook, outer, unpack, repack }, ..kind }
}

/// Blocks whose groups have a scale and a minimum.
const fn with_minimums(
    (id, name): (u32, &'static str),
    (elements, bytes): (usize, usize),
    (bits, group, scales): (usize, usize, Dtype),
    unpack: Unpack,
) -> Kind {
    Kind {
        id,
        name,
        elements,
        bytes,
        form: Form::Blocks {
            bits,
            group,
            scales,
            minimums: true,
            codebook: None,
            outer: None,
            unpack,
            repack: None,
        },
    }
}

use Codebook::{E2m1, Iq4Nl};
use Dtype::{Bf16, F16, F32, U8};

/// All types with an id today; those of 4, 5, 31 to 33 and 36 to 38 were removed.
const KINDS: &[Kind] = &[
    plain(0, "F32", 4, F32),
    plain(1, "F16", 2, F16),
    plain(30, "BF16", 2, Bf16),
    repacked(scaled((2, "Q4_0"), (32, 18), (4, 32, F16), unpack::q4_0), unpack::repack_q4_0),
    with_minimums((3, "Q4_1"), (32, 20), (4, 32, F16), unpack::q4_1),
    scaled((6, "Q5_0"), (32, 22), (8, 32, F16), unpack::q5_0),
    with_minimums((7, "Q5_1"), (32, 24), (8, 32, F16), unpack::q5_1),
    repacked(scaled((8, "Q8_0"), (32, 34), (8, 32, F16), unpack::q8_0), unpack::repack_q8_0),
    with_minimums((10, "Q2_K"), (256, 84), (4, 16, F32), unpack::q2_k),
    scaled((11, "Q3_K"), (256, 110), (4, 16, F32), unpack::q3_k),
    with_minimums((12, "Q4_K"), (256, 144), (4, 32, F32), unpack::q4_k),
    with_minimums((13, "Q5_K"), (256, 176), (8, 32, F32), unpack::q5_k),
    scaled((14, "Q6_K"), (256, 210), (8, 16, F32), unpack::q6_k),
    in_codebook(
        repacked(scaled((20, "IQ4_NL"), (32, 18), (4, 32, F16), unpack::q4_0), unpack::repack_q4_0),
        Iq4Nl,
    ),
    nested(in_codebook(scaled((23, "IQ4_XS"), (256, 136), (4, 32, F16), unpack::iq4_xs), Iq4Nl), 0),
    scaled((34, "TQ1_0"), (256, 54), (2, 128, F16), unpack::tq1_0),
    with_minimums((35, "TQ2_0"), (256, 66), (2, 128, F16), unpack::tq2_0),
    in_codebook(
        repacked(scaled((39, "MXFP4"), (32, 17), (4, 32, U8), unpack::mxfp4), unpack::repack_mxfp4),
        E2m1,
    ),
    with_minimums((42, "Q2_0"), (64, 18), (2, 64, F16), unpack::q2_0),
    refused(9, "Q8_1", 32, 40),
    refused(15, "Q8_K", 256, 292),
    refused(16, "IQ2_XXS", 256, 66),
    refused(17, "IQ2_XS", 256, 74),
    refused(18, "IQ3_XXS", 256, 98),
    refused(19, "IQ1_S", 256, 50),
    refused(21, "IQ3_S", 256, 110),
    refused(22, "IQ2_S", 256, 82),
    refused(29, "IQ1_M", 256, 56),
    refused(24, "I8", 1, 1),
    refused(25, "I16", 1, 2),
    refused(26, "I32", 1, 4),
    refused(27, "I64", 1, 8),
    refused(28, "F64", 1, 8),
    refused(40, "NVFP4", 64, 36),
    refused(41, "Q1_0", 128, 18),
];

impl Kind {
    /// The type of an id, or why there is none.
    pub fn of(id: u32) -> Result<&'static Self, String> {
        match id {
            4 | 5 | 31..=33 | 36..=38 => {
                Err(format!("is of type {id}, which was taken out of the format: such files are not read"))
            }
            _ => KINDS
                .iter()
                .find(|kind| kind.id == id)
                .ok_or_else(|| format!("is of type {id}, which no release of the format knows")),
        }
    }

    /// The types whose blocks are unpacked.
    #[cfg(test)]
    pub fn quantized() -> impl Iterator<Item = &'static Self> {
        KINDS.iter().filter(|kind| matches!(kind.form, Form::Blocks { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_groups_divide_blocks() {
        for (index, kind) in KINDS.iter().enumerate() {
            assert!(KINDS[..index].iter().all(|other| other.id != kind.id && other.name != kind.name));
            if let Form::Blocks { bits, group, .. } = kind.form {
                assert!(kind.elements % group == 0 && [2, 4, 8].contains(&bits), "{}", kind.name);
            }
        }
    }

    #[test]
    fn removed_and_unknown_types_are_refused() {
        for id in [4, 5, 31, 33, 36, 38] {
            assert!(Kind::of(id).unwrap_err().contains("taken out of the format"));
        }
        assert!(Kind::of(77).unwrap_err().contains("no release"));
        assert_eq!(Kind::of(12).unwrap().name, "Q4_K");
    }
}
