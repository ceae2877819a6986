//! Literal numbers.

use super::{Constant, Dim, Dtype, Graph, Origin, Tensor};
use crate::Result;

/// The most numbers of one literal.
const MOST: usize = 1 << 26;

impl Graph {
    /// Refuses the shape of a literal that no model has, before its numbers are computed.
    ///
    /// # Errors
    /// When it has more than 64 million.
    pub fn table(&self, shape: &[usize]) -> Result<()> {
        match shape.iter().fold(1_usize, |product, n| product.saturating_mul(*n)) {
            ..=MOST => Ok(()),
            _ => Err(self.error("Constant", format!("{shape:?} has more than {MOST} numbers"))),
        }
    }

    /// A literal number; it broadcasts.
    pub fn scalar(&mut self, value: f32) -> Tensor {
        let name = self.fresh("Constant");
        self.value(name, Dtype::F32, vec![], Origin::Constant(Constant::F32(vec![value])))
    }

    /// A literal number of a floating-point type; it broadcasts.
    pub(crate) fn number(&mut self, dtype: Dtype, value: f32) -> Tensor {
        let name = self.fresh("Constant");
        self.value(name, dtype, vec![], Origin::Constant(Constant::F32(vec![value])))
    }

    /// A literal integer; it broadcasts.
    pub fn integer(&mut self, value: i64) -> Tensor {
        let name = self.fresh("Constant");
        self.value(name, Dtype::I64, vec![], Origin::Constant(Constant::I64(vec![value])))
    }

    /// Literal numbers, row by row.
    ///
    /// # Errors
    /// When there are more or fewer than the shape holds.
    pub fn constant(&mut self, shape: &[usize], values: Vec<f32>) -> Result<Tensor> {
        self.counted(shape, values.len())?;
        let name = self.fresh("Constant");
        let shape = shape.iter().map(|&n| Dim::Fixed(n)).collect();
        Ok(self.value(name, Dtype::F32, shape, Origin::Constant(Constant::F32(values))))
    }

    /// Literal integers, row by row.
    ///
    /// # Errors
    /// When there are more or fewer than the shape holds.
    pub fn integers(&mut self, shape: &[usize], values: Vec<i64>) -> Result<Tensor> {
        self.counted(shape, values.len())?;
        let name = self.fresh("Constant");
        let shape = shape.iter().map(|&n| Dim::Fixed(n)).collect();
        Ok(self.value(name, Dtype::I64, shape, Origin::Constant(Constant::I64(values))))
    }

    /// One number everywhere.
    ///
    /// # Errors
    /// Never; as [`Graph::expand`].
    pub fn full(&mut self, shape: Vec<Dim>, value: f32) -> Result<Tensor> {
        let value = self.scalar(value);
        self.expand(&value, shape)
    }

    fn counted(&self, shape: &[usize], count: usize) -> Result<()> {
        let wanted = shape.iter().fold(1_usize, |product, n| product.saturating_mul(*n));
        if wanted == count {
            return Ok(());
        }
        Err(self.error("Constant", format!("{shape:?} holds {wanted} numbers, not {count}")))
    }
}
