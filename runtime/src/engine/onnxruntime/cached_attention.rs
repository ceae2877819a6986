//! Scaled dot-product attention that appends to its cache (`torch.nn.functional.scaled_dot_product_attention`, `DynamicCache.update`).
//!
//! A cache is `[positions, batch, kv_heads, size]`: what is appended lies behind what was there, which need not move. Where the engine
//! gives the memory of the past again as that of the present, a step writes its own keys and values alone (`cache_positions.rs`).

mod rows;
mod softmax;

use std::ptr;

use ort::operator::{ComputeContext, Kernel, KernelContext, Operator, OperatorInput, OperatorOutput};
use ort::value::{TensorElementType, ValueRef, ValueRefMut};

use self::rows::{Given, Mask, Task};
use super::operators::missing;

/// The operator, of the runtime's own domain.
pub(super) const NAME: &str = "CachedAttention";

/// Where past keys and values are among the operands, and where all of them are among the results.
pub(super) const PAST: [usize; 2] = [3, 4];

/// Attention of heads to keys and values that neighbours share.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CachedAttention {
    heads: usize,
    kv_heads: usize,
    scale: f32,
    /// `c · tanh(score / c)` before the mask, where not zero.
    softcap: f32,
}

impl Operator for CachedAttention {
    type Kernel<'attr> = Self;

    fn name(&self) -> &str {
        NAME
    }

    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        let number = TensorElementType::Float32;
        (0..5).map(move |_| OperatorInput::required(number)).chain([OperatorInput::optional(number)])
    }

    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        [TensorElementType::Float32; 3].map(OperatorOutput::required)
    }

    fn create_kernel<'attr>(&self, context: &KernelContext<'attr>) -> ort::Result<Self> {
        let heads =
            |name| context.get::<i64>(name).and_then(|heads| usize::try_from(heads).ok()).unwrap_or(0);
        let (heads, kv_heads) = (heads("q_num_heads"), heads("kv_num_heads"));
        if kv_heads == 0 || heads == 0 || !heads.is_multiple_of(kv_heads) {
            return Err(ort::Error::new(format!("attention has {heads} heads for {kv_heads} of keys")));
        }
        let number = |name| context.get::<f32>(name).unwrap_or(0.0);
        Ok(Self { heads, kv_heads, scale: number("scale"), softcap: number("softcap") })
    }
}

impl Kernel for CachedAttention {
    fn compute(&mut self, context: &ComputeContext) -> ort::Result<()> {
        let input = |place: usize| context.input(place)?.ok_or_else(missing);
        let (q, k, v) = (input(0)?, input(1)?, input(2)?);
        let (shape, q) = q.try_extract_tensor::<f32>()?;
        let &[batch, queries, _] = &**shape else {
            return Err(ort::Error::new(format!("attention got queries {shape:?}")));
        };
        let [batch, queries] = [batch, queries].map(|n| n.unsigned_abs() as usize);
        let (mut all, mut sizes) = (vec![], [0; 2]);
        for (which, new) in [k, v].iter().enumerate() {
            let past = input(PAST[which])?;
            let &[positions, _, _, size] = &**past.shape() else {
                return Err(ort::Error::new(format!("attention got a cache {:?}", past.shape())));
            };
            sizes[which] = size.unsigned_abs() as usize;
            let length = positions + queries as i64;
            let present =
                context.output(1 + which, vec![length, batch as i64, self.kv_heads as i64, size])?;
            let (_, new) = new.try_extract_tensor::<f32>()?;
            let lengths = [batch, queries, self.kv_heads * sizes[which]];
            all.push(append(present.ok_or_else(missing)?, &past, new, lengths)?);
        }
        let [keys, values] = <[_; 2]>::try_from(all).map_err(|_| missing())?;
        let (_, keys) = keys.try_extract_tensor::<f32>()?;
        let (_, values) = values.try_extract_tensor::<f32>()?;
        let mask = if context.num_inputs()? > 5 { context.input(5)? } else { None };
        let mask = mask.as_ref().map(|mask| mask.try_extract_tensor::<f32>()).transpose()?;
        let given = Given {
            heads: self.heads,
            kv_heads: self.kv_heads,
            scale: self.scale,
            softcap: self.softcap,
            lengths: [batch, queries, keys.len() / (batch * self.kv_heads * sizes[0]).max(1)],
            sizes,
            q,
            keys,
            values,
            mask: mask
                .map(|(shape, numbers)| Mask::new(shape, numbers))
                .transpose()
                .map_err(ort::Error::new)?,
        };
        given.check().map_err(ort::Error::new)?;
        let result = vec![batch as i64, queries as i64, (self.heads * sizes[1]) as i64];
        let mut result = context.output(0, result)?.ok_or_else(missing)?;
        let (_, result) = result.try_extract_tensor_mut::<f32>()?;
        let task = Task::new(&given, result);
        context.par_for(task.units(), task.units(), |unit| task.compute(unit))?;
        task.finish();
        Ok(())
    }
}

/// All keys or values: those that were there, unless they lie where all are to be, and behind them new ones `[batch, queries, width]`.
fn append<'c>(
    mut present: ValueRefMut<'c>,
    past: &ValueRef<'_>,
    new: &[f32],
    [batch, queries, width]: [usize; 3],
) -> ort::Result<ValueRefMut<'c>> {
    let past_at = past.try_extract_tensor::<f32>()?.1.as_ptr();
    let (_, all) = present.try_extract_tensor_mut::<f32>()?;
    let lie_there = ptr::eq(past_at, all.as_ptr());
    let before = all.len().checked_sub(new.len()).filter(|_| new.len() == batch * queries * width);
    let before = before.ok_or_else(|| ort::Error::new("attention got keys that do not fit the cache"))?;
    let (there, appended) = all.split_at_mut(before);
    if !lie_there {
        there.copy_from_slice(past.try_extract_tensor::<f32>()?.1);
    }
    for (position, all) in appended.chunks_exact_mut((batch * width).max(1)).enumerate() {
        for (text, to) in all.chunks_exact_mut(width).enumerate() {
            to.copy_from_slice(&new[(text * queries + position) * width..][..width]);
        }
    }
    Ok(present)
}

#[cfg(test)]
mod tests;
