//! Scaled dot-product attention that appends to its cache (`torch.nn.functional.scaled_dot_product_attention`, `DynamicCache.update`).
//!
//! A cache is `[positions, batch, kv_heads, size]`: what is appended lies behind what was there, which need not move. Where the engine
//! gives the memory of the past again as that of the present, a step writes its own keys and values alone (`cache_positions.rs`).

use std::ptr;

use ort::operator::{ComputeContext, Kernel, KernelContext, Operator, OperatorInput, OperatorOutput};
use ort::value::{TensorElementType, ValueRef, ValueRefMut};

use super::flash_attention::{Attention, Given, Laid, computed};
use super::operators::missing;

/// The operator, of the runtime's own domain.
pub(super) const NAME: &str = "CachedAttention";

/// Where past keys and values are among the operands, and where all of them are among the results.
pub(super) const PAST: [usize; 2] = [3, 4];

/// Of queries `[batch, q, heads·size]`, new keys and values `[batch, q, kv_heads·size]`, past ones `[past, batch, kv_heads, size]` and a
/// mask where there is one: `[batch, q, heads·size]`, all keys and all values.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CachedAttention(Attention);

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
        Attention::of(context).map(Self)
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
            let shape = vec![length, batch as i64, self.0.kv_heads as i64, size];
            let present = context.output(1 + which, shape)?.ok_or_else(missing)?;
            let (_, new) = new.try_extract_tensor::<f32>()?;
            let lengths = [batch, queries, self.0.kv_heads * sizes[which]];
            all.push(append(present, &past, new, lengths)?);
        }
        let [keys, values] = <[_; 2]>::try_from(all).map_err(|_| missing())?;
        let [keys, values] = [keys.try_extract_tensor::<f32>()?.1, values.try_extract_tensor::<f32>()?.1];
        let count = keys.len() / (batch * self.0.kv_heads * sizes[0]).max(1);
        let laid = |numbers, size| Laid::by_position(numbers, [batch, self.0.kv_heads, count, size]);
        let given = Given {
            of: self.0,
            lengths: [batch, queries, count],
            q,
            keys: laid(keys, sizes[0]),
            values: laid(values, sizes[1]),
            mask: None,
        };
        computed(context, given, 5)
    }
}

/// All keys or values: those that were there, unless they lie where all are to be, and behind them new ones `[batch, queries, width]`.
fn append<'c>(
    mut present: ValueRefMut<'c>,
    past: &ValueRef<'_>,
    new: &[f32],
    [batch, queries, width]: [usize; 3],
) -> ort::Result<ValueRefMut<'c>> {
    let (past_at, before) = {
        let (_, past) = past.try_extract_tensor::<f32>()?;
        (past.as_ptr(), past.len())
    };
    let (_, all) = present.try_extract_tensor_mut::<f32>()?;
    if new.len() != batch * queries * width || all.len() != before + new.len() {
        return Err(ort::Error::new("attention got keys that do not fit the cache"));
    }
    let lie_there = ptr::eq(past_at, all.as_ptr());
    let (there, appended) = all.split_at_mut(before);
    if !lie_there {
        there.copy_from_slice(past.try_extract_tensor::<f32>()?.1);
    }
    for (position, all) in appended.chunks_exact_mut((batch * width).max(1)).enumerate() {
        for (text, to) in all.chunks_exact_mut(width.max(1)).enumerate() {
            to.copy_from_slice(&new[(text * queries + position) * width..][..width]);
        }
    }
    Ok(present)
}
