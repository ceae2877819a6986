//! Codes in groups that share a scale, as files have them, and the blocks in which kernels run them.

use std::sync::Arc;

use super::Stored;
use super::module::{Scales, Tensor};
use crate::weights::Bytes;
use crate::weights::{BlockQuantized, Zeros};

/// A weight `[out, in]` as rows of codes of as many bits each, the first in the low bits of the first byte.
pub(super) struct Grouped {
    /// `[out, in]`.
    pub shape: [usize; 2],
    /// Bits of a code: 2, 3, 4 or 8.
    pub bits: usize,
    /// How many columns share a scale; one that is not less than a row's has one scale a row.
    pub group: usize,
    /// Rows of `stride` bytes.
    pub codes: Bytes,
    /// Bytes from one row to the next.
    pub stride: usize,
    /// `[out, groups]`.
    pub scales: Scales,
    /// `[out, groups]`.
    pub zeros: Zeros,
    /// The input column of each stored column, where these are sorted by group.
    pub order: Option<Arc<[u32]>>,
}

/// The groups that kernels run best, in the order of preference.
const RUN: [usize; 4] = [128, 64, 32, 16];

impl Grouped {
    /// Groups of a row.
    pub(super) fn groups(&self) -> usize {
        self.shape[1].div_ceil(self.group)
    }

    /// The same in blocks that kernels run; itself where no such blocks are the same.
    pub(super) fn blocks(mut self, name: &str) -> Result<Result<BlockQuantized, Self>, String> {
        self.check(name)?;
        let [out, columns] = self.shape;
        let Some(group) = run_group(columns, self.group) else { return Ok(Err(self)) };
        let blocks = columns.div_ceil(group);
        let bits = if self.bits == 3 { 4 } else { self.bits };
        let row = blocks * group * bits / 8;
        if let Zeros::Codes(codes) = &self.zeros
            && codes.iter().all(|&code| usize::from(code) == 1 << (self.bits - 1))
        {
            self.zeros = Zeros::Middle;
        }
        let codes = match bits == self.bits && self.stride == row {
            true => self.codes.clone(),
            false => Bytes::memory(self.packed(name, bits, row)?),
        };
        let (groups, of) = (self.groups(), self.group);
        let spread =
            |values: usize| (0..out * blocks).map(move |at| at / blocks * values + at % blocks * group / of);
        let same = groups == blocks;
        let zeros = match self.zeros {
            Zeros::Codes(codes) if !same => Zeros::Codes(spread(groups).map(|at| codes[at]).collect()),
            Zeros::Minimums(minimums) if !same => {
                Zeros::Minimums(spread(groups).map(|at| minimums[at]).collect())
            }
            zeros => zeros,
        };
        let scales = match same {
            true => self.scales.bytes,
            false => {
                let bytes = self.scales.bytes.read().map_err(|e| e.to_string())?;
                let size = self.scales.dtype.size();
                let places = spread(groups).map(|at| at * size);
                Bytes::memory(places.flat_map(|at| bytes[at..at + size].iter().copied()).collect())
            }
        };
        let (shape, scale_dtype, order) = (self.shape, self.scales.dtype, self.order);
        Ok(Ok(BlockQuantized {
            shape,
            batch: None,
            bits,
            group,
            codes: codes.in_huge_pages(),
            scale_dtype,
            scales: scales.in_huge_pages(),
            outer: None,
            zeros,
            order,
        }))
    }

    /// The values, row-major `[out, in]`.
    pub(super) fn dequantize(&self, name: &str) -> Result<Vec<f32>, String> {
        self.check(name)?;
        let into = |column: usize| self.order.as_ref().map_or(column, |order| order[column] as usize);
        self.values(&(0..self.shape[1]).map(|column| (into(column), column / self.group)).collect::<Vec<_>>())
    }

    /// The values, by the column that each stored one is of, and its group.
    fn values(&self, places: &[(usize, usize)]) -> Result<Vec<f32>, String> {
        let ([out, columns], groups) = (self.shape, self.groups());
        let rows = self.codes.read().map_err(|e| e.to_string())?;
        let scales = self.scales.single()?;
        let mut values = vec![0.0; out * columns];
        for (index, row) in rows.chunks_exact(self.stride).take(out).enumerate() {
            for (column, &(into, group)) in places.iter().enumerate() {
                let group = index * groups + group;
                let code = code(row, self.bits, column);
                values[index * columns + into] = self.zeros.value(code, self.bits, scales[group], group);
            }
        }
        Ok(values)
    }

    /// The same where each column's group is named (`g_idx`): sorted by group where all are of the same size, else the values.
    pub(super) fn by_index(mut self, index: &Tensor<'_>) -> Result<Stored, String> {
        self.check(&index.name)?;
        let index = group_index(&index.name, &index.integers()?, self.groups())?;
        match order(&index, self.group) {
            Order::Neighbours => Ok(Stored::Codes(self)),
            Order::Sorted(order) => {
                let rows = self.codes.read().map_err(|e| e.to_string())?;
                self.codes = Bytes::memory(reordered(&rows, self.stride, self.bits, &order));
                self.order = Some(order);
                Ok(Stored::Codes(self))
            }
            Order::Uneven => {
                let values = self.values(
                    &index.iter().enumerate().map(|(column, &of)| (column, of)).collect::<Vec<_>>(),
                )?;
                Ok(Stored::Values { shape: self.shape.to_vec(), values })
            }
        }
    }

    /// Refuses scales, zeros and codes that are fewer or more than the shape asks for.
    fn check(&self, name: &str) -> Result<(), String> {
        let ([out, columns], groups) = (self.shape, self.groups());
        let lengths = match &self.zeros {
            Zeros::Middle | Zeros::Codebook(_) => out * groups,
            Zeros::Codes(zeros) => zeros.len(),
            Zeros::Minimums(minimums) => minimums.len(),
        };
        let scales = self.scales.bytes.length() as usize / self.scales.dtype.size();
        if scales != out * groups || lengths != out * groups {
            return Err(format!(
                "`{name}` has {scales} scales and {lengths} zero points for [{out}, {columns}] in groups of {}, which \
                 has {}",
                self.group,
                out * groups
            ));
        }
        let fits =
            self.codes.length() as usize == out * self.stride && self.stride * 8 >= columns * self.bits;
        match fits {
            true => Ok(()),
            false => Err(format!(
                "`{name}` is {} bytes, too few or too many for [{out}, {columns}] of {} bits",
                self.codes.length(),
                self.bits
            )),
        }
    }

    /// Rows of codes of so many bits, filled up to so many bytes; what is zero in the middle stays there.
    fn packed(&self, name: &str, bits: usize, row: usize) -> Result<Vec<u8>, String> {
        let ([out, columns], stored) = (self.shape, self.codes.read().map_err(|e| e.to_string())?);
        let more = match self.zeros {
            Zeros::Middle => (1_u8 << (bits - 1)) - (1 << (self.bits - 1)),
            _ => 0,
        };
        let per_byte = 8 / bits;
        let mut packed = vec![0; out.checked_mul(row).ok_or_else(|| format!("`{name}` is too large"))?];
        for (from, into) in stored.chunks_exact(self.stride).zip(packed.chunks_exact_mut(row)) {
            if bits == self.bits {
                let length = row.min(self.stride);
                into[..length].copy_from_slice(&from[..length]);
                continue;
            }
            for column in 0..columns {
                into[column / per_byte] |=
                    (code(from, self.bits, column) + more) << (column % per_byte * bits);
            }
        }
        Ok(packed)
    }
}

/// One code of a row.
pub(super) fn code(row: &[u8], bits: usize, column: usize) -> u8 {
    let place = column * bits;
    let high = row.get(place / 8 + 1).copied().unwrap_or_default();
    let pair = u16::from_le_bytes([row[place / 8], high]);
    (pair >> (place % 8) & ((1 << bits) - 1)) as u8
}

/// Packs codes of a row, the first in the low bits of the first byte.
pub(super) fn pack(codes: impl Iterator<Item = u8>, bits: usize, into: &mut [u8]) {
    for (column, code) in codes.enumerate() {
        let place = column * bits;
        let pair = u16::from(code) << (place % 8);
        into[place / 8] |= pair as u8;
        if place % 8 + bits > 8 {
            into[place / 8 + 1] |= (pair >> 8) as u8;
        }
    }
}

/// Rows of words of a matrix of words `[rows, columns]`, which becomes `[columns, rows]`, as bytes.
pub(super) fn transposed_words(words: &[u8], rows: usize, columns: usize) -> Vec<u8> {
    const TILE: usize = 16;
    let mut moved = vec![0; rows * columns * 4];
    for row in (0..rows).step_by(TILE) {
        for column in (0..columns).step_by(TILE) {
            for column in column..(column + TILE).min(columns) {
                for row in row..(row + TILE).min(rows) {
                    let (from, into) = ((row * columns + column) * 4, (column * rows + row) * 4);
                    moved[into..into + 4].copy_from_slice(&words[from..from + 4]);
                }
            }
        }
    }
    moved
}

/// The group in which kernels run groups of so many columns; none where their borders would not meet.
fn run_group(columns: usize, group: usize) -> Option<usize> {
    if group >= columns {
        return Some(RUN.into_iter().find(|run| columns.is_multiple_of(*run)).unwrap_or(32));
    }
    RUN.into_iter().find(|run| group.is_multiple_of(*run))
}

/// The group of each column, of those that there are.
fn group_index(name: &str, index: &[i64], groups: usize) -> Result<Vec<usize>, String> {
    let of = |group: &i64| {
        let found = usize::try_from(*group).ok().filter(|group| *group < groups);
        found.ok_or_else(|| format!("tensor `{name}` holds group {group}, but there are {groups}"))
    };
    index.iter().map(of).collect()
}

/// How columns are grouped.
#[derive(Debug, PartialEq)]
enum Order {
    /// Neighbours share a group.
    Neighbours,
    /// Each group has as many columns: the column of each place, sorted by group.
    Sorted(Arc<[u32]>),
    /// Groups differ in size.
    Uneven,
}

fn order(index: &[usize], group: usize) -> Order {
    if index.iter().enumerate().all(|(column, &of)| of == column / group) {
        return Order::Neighbours;
    }
    let mut columns: Vec<u32> = (0..index.len() as u32).collect();
    columns.sort_by_key(|&column| index[column as usize]);
    match columns.iter().enumerate().all(|(place, &column)| index[column as usize] == place / group) {
        true => Order::Sorted(columns.into()),
        false => Order::Uneven,
    }
}

/// Rows of codes whose columns are taken in this order.
fn reordered(rows: &[u8], stride: usize, bits: usize, order: &[u32]) -> Vec<u8> {
    let mut sorted = vec![0; rows.len()];
    for (from, into) in rows.chunks_exact(stride).zip(sorted.chunks_exact_mut(stride)) {
        pack(order.iter().map(|&column| code(from, bits, column as usize)), bits, into);
    }
    sorted
}
