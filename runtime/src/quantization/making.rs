//! Weights of floating-point numbers as block-quantized ones, a few rows at a time on all cores.

use std::sync::{Mutex, PoisonError};

use super::rounding::{MOST, Rounding};
use super::{BlockQuantized, Quantization, Zeros};
use crate::weights::{Buffer, Bytes, WeightData, pages};
use crate::{Dtype, Error, Result};

/// Bytes of a weight that a thread reads at a time.
const STEP: usize = 1 << 20;

/// Quantizes a weight `[out, in]` into codes of `bits`.
///
/// # Errors
/// When its file cannot be read, the settings ask for codes or blocks that there are not, or it holds what is no finite number.
pub(crate) fn quantize(weight: &WeightData, bits: usize, settings: &Quantization) -> Result<BlockQuantized> {
    let &[out, columns] = weight.shape.as_slice() else {
        return Err(refused(weight, "is no matrix"));
    };
    let stored = match bits {
        2 | 4 | 8 => bits,
        3 => 4,
        _ => {
            let help = "choose 2, 3, 4 or 8";
            return Err(Error::input("quantization", format!("there are no codes of {bits} bits"), help));
        }
    };
    let group = group(columns, settings.group)?;
    let Quantization { symmetric, search, .. } = *settings;
    let rounding = Rounding { bits, stored, group, symmetric, search, scales: Dtype::F16 };
    let made = match rows(weight, [out, columns], rounding)? {
        Some(made) => made,
        // A scale that half precision does not hold.
        None => rows(weight, [out, columns], Rounding { scales: Dtype::F32, ..rounding })?
            .ok_or_else(|| refused(weight, "holds what is no finite number"))?,
    };
    Ok(BlockQuantized {
        shape: [out, columns],
        batch: None,
        bits: stored,
        group,
        codes: made.codes.into(),
        scale_dtype: made.scale_dtype,
        scales: Bytes::memory(made.scale_dtype.encoded(&made.scales)).in_huge_pages(),
        outer: None,
        zeros: if symmetric { Zeros::Middle } else { Zeros::Codes(made.zeros.into()) },
        order: None,
    })
}

/// The block for rows of so many columns: what is asked for, or a smaller one that divides them, or one that ends within.
fn group(columns: usize, asked: usize) -> Result<usize> {
    if ![16, 32, 64, 128, 256].contains(&asked) {
        let help = "choose 16, 32, 64, 128 or 256";
        return Err(Error::input("quantization", format!("there are no blocks of {asked}"), help));
    }
    let halves = std::iter::successors(Some(asked), |group| Some(group / 2).filter(|&half| half >= 16));
    let dividing = halves.clone().find(|&group| columns.is_multiple_of(group));
    Ok(dividing.unwrap_or(if columns < asked { 16 } else { asked }))
}

/// Codes, scales and zero points, by row.
struct Made {
    codes: Buffer,
    scales: Vec<f32>,
    zeros: Vec<u8>,
    scale_dtype: Dtype,
}

/// All rows; none where a scale is no normal number of its type.
fn rows(weight: &WeightData, [out, columns]: [usize; 2], rounding: Rounding) -> Result<Option<Made>> {
    let blocks = columns.div_ceil(rounding.group);
    let row_codes = blocks * rounding.code_bytes();
    let mut made = Made {
        codes: pages::zeros(out * row_codes),
        scales: vec![0.0; out * blocks],
        zeros: vec![0; out * blocks],
        scale_dtype: rounding.scales,
    };
    let row_bytes = columns * weight.dtype.size();
    let step = (STEP / row_bytes.max(1)).clamp(1, out.max(1));
    let parts =
        made.codes.chunks_mut((step * row_codes).max(1)).zip(made.scales.chunks_mut((step * blocks).max(1)));
    let parts = Mutex::new(parts.zip(made.zeros.chunks_mut((step * blocks).max(1))).enumerate());
    let work = || -> Result<bool> {
        let mut fits = true;
        loop {
            let next = parts.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((index, ((codes, scales), zeros))) = next else { return Ok(fits) };
            let values = numbers(weight, index * step * row_bytes, scales.len() / blocks * row_bytes)?;
            let all = values.chunks(columns).flat_map(|row| row.chunks(rounding.group));
            let places = codes.chunks_mut(rounding.code_bytes()).zip(scales).zip(zeros);
            for (block, ((codes, scale), zero)) in all.zip(places) {
                (*scale, *zero) = rounding.block(block, codes);
                // A sum is no finite number where one of its parts is none.
                let size = sum(block);
                fits &= scale.is_finite()
                    && size.is_finite()
                    && (rounding.scales != Dtype::F16 || is_half(*scale, size));
            }
        }
    };
    if cfg!(target_family = "wasm") {
        return Ok(work()?.then_some(made));
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(out.div_ceil(step)).max(1);
    let fits = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let own = work();
        let crashed = || Error::input("quantization", "a thread ended early", "try again");
        others
            .into_iter()
            .map(|other| other.join().map_err(|_| crashed())?)
            .chain([own])
            .collect::<Result<Vec<_>>>()
    })?;
    Ok(fits.into_iter().all(|fits| fits).then_some(made))
}

/// The sum of absolute values.
fn sum(block: &[f32]) -> f32 {
    #[cfg(target_arch = "wasm32")]
    let (first, block) = {
        let (all, rest) = block.as_chunks();
        (super::rounding::wasm::sum(all), rest)
    };
    #[cfg(not(target_arch = "wasm32"))]
    let first = 0.0;
    block.iter().fold(first, |sum, x| sum + x.abs())
}

/// Whether half precision holds a scale to a part in 256 or better: a block of zeros has none.
fn is_half(scale: f32, size: f32) -> bool {
    const LEAST: f32 = 1.0 / (1 << 17) as f32;
    scale.abs() >= LEAST || size == 0.0
}

/// A range of a weight's bytes as numbers in single precision.
pub(super) fn numbers(weight: &WeightData, start: usize, length: usize) -> Result<Vec<f32>> {
    if !weight.dtype.is_float() {
        return Err(refused(weight, &format!("is {}, which is no floating point", weight.dtype)));
    }
    let piece = match &weight.bytes {
        Bytes::File { path, offset, .. } => {
            Bytes::File { path: path.clone(), offset: offset + start as u64, length: length as u64 }
        }
        other => other.clone(),
    };
    let read = piece.read()?;
    let bytes = if matches!(piece, Bytes::File { .. }) { &read[..] } else { &read[start..start + length] };
    #[cfg(target_arch = "wasm32")]
    if weight.dtype == Dtype::Bf16 {
        let mut wide = vec![0.0; bytes.len() / 2];
        let done = super::rounding::wasm::widened(bytes, &mut wide);
        wide.truncate(done / 2);
        wide.extend(weight.dtype.decoded(&bytes[done..]));
        return Ok(wide);
    }
    Ok(weight.dtype.decoded(bytes))
}

pub(super) fn refused(weight: &WeightData, problem: &str) -> Error {
    let name = &weight.stored_as;
    let place = match &weight.bytes {
        Bytes::File { path, .. } => path.clone(),
        Bytes::Memory(_) | Bytes::Quantized(_) => "weights".into(),
    };
    Error::weights(
        place,
        format!("tensor `{name}` {problem}, so it is not quantized"),
        "leave it out by an exception",
    )
}

const _: () = assert!(MOST == 256, "the largest block that `group` allows");

#[cfg(test)]
mod tests;
