//! The tensors of one quantized module: found by name, checked for dtype and shape, read.

use safetensors::Dtype as Type;

use super::Published;
use crate::Dtype;
use crate::weights::{Bytes, Files};

/// A module of a checkpoint whose weight is quantized.
pub(crate) struct Module<'a> {
    pub files: &'a Files,
    pub published: &'a Published,
    /// What its tensors' names begin with.
    pub stem: String,
    /// The name of the tensor that holds its codes.
    pub codes: String,
    /// The shape that the configuration asks for.
    pub wanted: &'a [usize],
    /// Whether that is `[in, out]` (`Conv1D` of GPT-2).
    pub transposed: bool,
}

/// One of its tensors.
pub(super) struct Tensor<'a> {
    pub name: String,
    pub shape: &'a [usize],
    pub stored: Type,
    files: &'a Files,
}

/// Scales in the type in which they are stored, where kernels read it, else in single precision.
pub(super) struct Scales {
    pub dtype: Dtype,
    pub bytes: Bytes,
    pub shape: Vec<usize>,
}

impl<'a> Module<'a> {
    /// The tensor of this suffix.
    pub(super) fn find(&self, suffix: &str) -> Option<Tensor<'a>> {
        self.named(format!("{}{suffix}", self.stem))
    }

    /// The tensor that holds the codes.
    pub(super) fn codes(&self) -> Result<Tensor<'a>, String> {
        self.named(self.codes.clone()).ok_or_else(|| format!("tensor `{}` is missing", self.codes))
    }

    /// The tensor of this suffix, which the format cannot do without.
    pub(super) fn tensor(&self, suffix: &str) -> Result<Tensor<'a>, String> {
        self.find(suffix).ok_or_else(|| {
            format!("tensor `{}{suffix}` is missing, without which `{}` means nothing", self.stem, self.codes)
        })
    }

    fn named(&self, name: String) -> Option<Tensor<'a>> {
        let (stored, shape) = self.files.header(&name)?;
        Some(Tensor { name, shape, stored, files: self.files })
    }

    /// The shape of the weight as formats store it.
    pub(super) fn stored_shape(&self) -> Vec<usize> {
        let mut shape = self.wanted.to_vec();
        if self.transposed {
            shape.reverse();
        }
        shape
    }

    /// `[out, in]` of the matrix that is quantized.
    pub(super) fn inner_shape(&self) -> Result<[usize; 2], String> {
        match *self.wanted {
            [columns, out] if self.transposed && out > 0 && columns > 0 => Ok([out, columns]),
            [out, columns] if out > 0 && columns > 0 => Ok([out, columns]),
            _ => Err(format!("tensor `{}` is quantized as a matrix, but is {:?}", self.codes, self.wanted)),
        }
    }
}

impl Tensor<'_> {
    /// Refuses another dtype.
    pub(super) fn is(self, types: &[Type]) -> Result<Self, String> {
        match types.contains(&self.stored) {
            true => Ok(self),
            false => Err(format!("tensor `{}` is {:?}; this format has {types:?}", self.name, self.stored)),
        }
    }

    /// Refuses another shape; `why` says what asks for it.
    pub(super) fn shaped(self, shape: &[usize], why: &str) -> Result<Self, String> {
        match self.shape == shape {
            true => Ok(self),
            false => Err(format!("tensor `{}` is {:?}, but {why} asks for {shape:?}", self.name, self.shape)),
        }
    }

    pub(super) fn bytes(&self) -> Result<Vec<u8>, String> {
        self.files.bytes(&self.name).map_err(|e| format!("tensor `{}` cannot be read: {e}", self.name))
    }

    /// Where its bytes are.
    pub(super) fn place(&self) -> Result<Bytes, String> {
        self.files.place_of(&self.name).map_err(|e| format!("tensor `{}` cannot be read: {e}", self.name))
    }

    /// Words of 32 bits.
    pub(super) fn words(&self) -> Result<Vec<u32>, String> {
        let bytes = self.bytes()?;
        Ok(bytes.chunks_exact(4).map(|x| u32::from_le_bytes([x[0], x[1], x[2], x[3]])).collect())
    }

    /// Whole numbers of any width.
    pub(super) fn integers(&self) -> Result<Vec<i64>, String> {
        let bytes = self.bytes()?;
        Ok(match self.stored {
            Type::U8 => bytes.iter().map(|&x| i64::from(x)).collect(),
            Type::I8 => bytes.iter().map(|&x| i64::from(x as i8)).collect(),
            Type::I32 => {
                let words = bytes.chunks_exact(4).map(|x| i32::from_le_bytes([x[0], x[1], x[2], x[3]]));
                words.map(i64::from).collect()
            }
            Type::I64 => bytes
                .chunks_exact(8)
                .map(|x| i64::from_le_bytes([x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]]))
                .collect(),
            other => return Err(format!("tensor `{}` is {other:?}, not of whole numbers", self.name)),
        })
    }

    /// Numbers with a fraction in single precision, all of them finite.
    pub(super) fn floats(&self) -> Result<Vec<f32>, String> {
        let values = self.float()?.decoded(&self.bytes()?);
        match values.iter().position(|value| !value.is_finite()) {
            Some(place) => Err(format!("tensor `{}` holds {} at {place}", self.name, values[place])),
            None => Ok(values),
        }
    }

    /// The type of numbers with a fraction.
    fn float(&self) -> Result<Dtype, String> {
        match self.stored {
            Type::F32 => Ok(Dtype::F32),
            Type::F16 => Ok(Dtype::F16),
            Type::BF16 => Ok(Dtype::Bf16),
            other => Err(format!("tensor `{}` is {other:?}, not of scales", self.name)),
        }
    }

    /// Its numbers as scales in their own type, all of them finite.
    pub(super) fn scales(&self) -> Result<Scales, String> {
        let (dtype, bytes) = (self.float()?, self.bytes()?);
        if let Some(place) = dtype.first_not_finite(&bytes) {
            let size = dtype.size();
            let value = dtype.decoded(&bytes[place * size..(place + 1) * size]);
            return Err(format!("tensor `{}` holds {} at {place}", self.name, value[0]));
        }
        Ok(Scales { dtype, bytes: self.place()?, shape: self.shape.to_vec() })
    }
}

impl Scales {
    /// In single precision.
    pub(super) fn single(&self) -> Result<Vec<f32>, String> {
        let bytes = self.bytes.read().map_err(|e| e.to_string())?;
        Ok(self.dtype.decoded(&bytes))
    }

    /// One for each of so many rows, where there is but one for all.
    pub(super) fn spread(self, rows: usize) -> Result<Self, String> {
        if self.bytes.length() as usize != self.dtype.size() {
            return Ok(self);
        }
        let bytes = self.bytes.read().map_err(|e| e.to_string())?.repeat(rows);
        Ok(Self { bytes: Bytes::memory(bytes), ..self })
    }

    /// `[columns, rows]` of `[rows, columns]`.
    pub(super) fn transposed(self, name: &str) -> Result<Self, String> {
        let &[rows, columns] = &self.shape[..] else {
            return Err(format!("tensor `{name}` is {:?}, not a matrix", self.shape));
        };
        let size = self.dtype.size();
        let bytes = self.bytes.read().map_err(|e| e.to_string())?;
        let elements = (0..rows * columns).map(|place| (place % rows * columns + place / rows) * size);
        let moved: Vec<u8> = elements.flat_map(|at| bytes[at..at + size].iter().copied()).collect();
        Ok(Self { dtype: self.dtype, bytes: Bytes::memory(moved), shape: vec![columns, rows] })
    }
}
