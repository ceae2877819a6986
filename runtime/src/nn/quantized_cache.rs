//! Cached keys and values in 8 or 4 bits (`QuantizedCache`): codes, and a scale for each group of a position's elements.

use crate::Result;
use crate::graph::{
    BYTES_OF_A_FLOAT, Binary, CacheBits, CacheCodes, Dim, Dtype, Graph, Reduction, Tensor, Unary,
};

/// The elements of a position that share a scale, where they divide the head's size; all of them otherwise.
const GROUP: usize = 32;

/// Least scale: nothing is divided by zero, in half precision too.
const LEAST: f32 = 1e-6;

/// The scales of a position of a head of this size.
pub(crate) fn groups(size: usize) -> usize {
    if size.is_multiple_of(GROUP) { size / GROUP } else { 1 }
}

/// Keys or values `[batch, kv_heads, length, size]` as codes `[batch, kv_heads, length, bytes]`, unsigned bytes or a third as many
/// numbers, and scales `[batch, kv_heads, length, groups]`: the largest element of a group has the largest code.
///
/// # Errors
/// When x has not four axes, of which the last is of fixed length.
pub(crate) fn quantize(g: &mut Graph, x: &Tensor, stored: CacheCodes) -> Result<(Tensor, Tensor)> {
    let bits = stored.bits;
    let grouped = grouped(g, x)?;
    let magnitude = g.unary(Unary::Abs, &grouped);
    let largest = g.reduce(Reduction::Max, &magnitude, &[4], true)?;
    let step = g.scalar(1.0 / bits.most());
    let scale = g.mul(&largest, &step)?;
    let least = g.scalar(LEAST);
    let scale = g.binary(Binary::Max, &scale, &least)?;
    let codes = g.div(&grouped, &scale)?;
    let codes = g.unary(Unary::Round, &codes);
    let zero = g.scalar(bits.most() + 1.0);
    let codes = g.add(&codes, &zero)?;
    let codes = g.flatten(&codes, 3..5)?;
    let codes = match bits {
        CacheBits::Eight => codes,
        CacheBits::Four => {
            let half = size(x) / 2;
            let (low, high) = (g.slice(&codes, 3, 0..half)?, g.slice(&codes, 3, half..2 * half)?);
            let sixteen = g.scalar(16.0);
            let high = g.mul(&high, &sixteen)?;
            g.add(&low, &high)?
        }
    };
    let codes = match stored.as_floats {
        true => g.in_single(|g| as_floats(g, &codes))?,
        false => g.cast(&codes, Dtype::U8),
    };
    Ok((codes, g.squeeze(&scale, 4)?))
}

/// Bytes as a third as many numbers: the first third of them in the low bits, the last in the high ones.
fn as_floats(g: &mut Graph, bytes: &Tensor) -> Result<Tensor> {
    let count = size(bytes);
    let third = count.div_ceil(BYTES_OF_A_FLOAT);
    let mut low = g.slice(bytes, 3, 0..third)?;
    for part in 1..BYTES_OF_A_FLOAT {
        let range = (part * third).min(count)..((part + 1) * third).min(count);
        if range.is_empty() {
            continue;
        }
        let short = third - range.len();
        let mut high = g.slice(bytes, 3, range)?;
        if short > 0 {
            let none = g.slice(bytes, 3, 0..short)?;
            let zero = g.scalar(0.0);
            let none = g.mul(&none, &zero)?;
            high = g.concat(&[&high, &none], 3)?;
        }
        let place = g.scalar(256_f32.powi(part as i32));
        let high = g.mul(&high, &place)?;
        low = g.add(&low, &high)?;
    }
    Ok(low)
}

/// The bytes that [`as_floats`] made numbers of.
fn from_floats(g: &mut Graph, x: &Tensor, count: usize) -> Result<Tensor> {
    let (mut rest, mut parts) = (x.clone(), vec![]);
    for part in (1..BYTES_OF_A_FLOAT).rev() {
        let (place, inverse) = (256_f32.powi(part as i32), 256_f32.powi(-(part as i32)));
        let (place, inverse) = (g.scalar(place), g.scalar(inverse));
        let high = g.mul(&rest, &inverse)?;
        let high = g.unary(Unary::Floor, &high);
        let taken = g.mul(&high, &place)?;
        rest = g.sub(&rest, &taken)?;
        parts.insert(0, high);
    }
    parts.insert(0, rest);
    let all = g.concat(&parts.iter().collect::<Vec<_>>(), 3)?;
    g.slice(&all, 3, 0..count)
}

/// What codes and scales stand for, `[batch, kv_heads, length, size]`, of heads of this size.
///
/// # Errors
/// When they are not of [`quantize`]'s shapes.
pub(crate) fn dequantize(
    g: &mut Graph,
    codes: &Tensor,
    scale: &Tensor,
    stored: CacheCodes,
    size: usize,
) -> Result<Tensor> {
    let bits = stored.bits;
    let codes = match stored.as_floats {
        true => g.in_single(|g| from_floats(g, codes, bits.bytes(size)))?,
        false => g.cast(codes, Dtype::F32),
    };
    let codes = match bits {
        CacheBits::Eight => codes,
        CacheBits::Four => {
            let (sixteenth, sixteen) = (g.scalar(1.0 / 16.0), g.scalar(16.0));
            let high = g.mul(&codes, &sixteenth)?;
            let high = g.unary(Unary::Floor, &high);
            let taken = g.mul(&high, &sixteen)?;
            let low = g.sub(&codes, &taken)?;
            g.concat(&[&low, &high], 3)?
        }
    };
    let zero = g.scalar(bits.most() + 1.0);
    let codes = g.sub(&codes, &zero)?;
    let grouped = grouped(g, &codes)?;
    let scale = g.unsqueeze(scale, 4)?;
    let x = g.mul(&grouped, &scale)?;
    g.flatten(&x, 3..5)
}

/// `[batch, kv_heads, length, groups, elements]`.
fn grouped(g: &mut Graph, x: &Tensor) -> Result<Tensor> {
    let size = size(x);
    let groups = groups(size);
    let mut shape = x.shape()[..x.rank() - 1].to_vec();
    shape.extend([Dim::Fixed(groups), Dim::Fixed(size / groups)]);
    g.reshape(x, shape)
}

fn size(x: &Tensor) -> usize {
    x.shape().last().and_then(Dim::fixed).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::expect;

    fn round_trip(
        numbers: &'static [f32],
        bits: CacheBits,
        as_floats: bool,
    ) -> impl FnOnce(&mut Graph) -> Result<Tensor> {
        move |g| {
            let stored = CacheCodes { bits, as_floats };
            let x = g.constant(&[1, 1, 1, numbers.len()], numbers.to_vec())?;
            let (codes, scale) = quantize(g, &x, stored)?;
            assert_eq!(codes.shape().last().and_then(Dim::fixed), Some(stored.stored(numbers.len())));
            dequantize(g, &codes, &scale, stored, numbers.len())
        }
    }

    #[test]
    fn codes_are_the_nearest_of_as_many_as_there_are_bits() {
        for as_floats in [false, true] {
            let numbers = &[12.7, -0.14, 3.0, 0.0];
            let got = round_trip(numbers, CacheBits::Eight, as_floats);
            expect(&[], got, &[1, 1, 1, 4], &[12.7, -0.1, 3.0, 0.0]);
            let numbers = &[-7.0, 3.4, 6.6, 0.2];
            expect(
                &[],
                round_trip(numbers, CacheBits::Four, as_floats),
                &[1, 1, 1, 4],
                &[-7.0, 3.0, 7.0, 0.0],
            );
        }
    }

    #[test]
    fn nothing_but_zeros_stays_so() {
        expect(&[], round_trip(&[0.0; 4], CacheBits::Four, false), &[1, 1, 1, 4], &[0.0; 4]);
    }

    #[test]
    fn each_group_has_its_own_scale() {
        static NUMBERS: [f32; 64] = {
            let mut numbers = [0.5; 64];
            numbers[0] = 1000.0;
            numbers
        };
        let mut want = NUMBERS;
        // A half is nothing beside a thousand in 4 bits, in its own group alone.
        want[1..32].fill(0.0);
        for as_floats in [false, true] {
            expect(&[], round_trip(&NUMBERS, CacheBits::Four, as_floats), &[1, 1, 1, 64], &want);
        }
        assert_eq!([groups(64), groups(40), groups(32)], [2, 1, 1]);
    }
}
