//! Scaled dot-product attention block by block (`torch.nn.functional.scaled_dot_product_attention`; FlashAttention, Dao et al., 2022,
//! arXiv:2205.14135): scores of a block of keys are all that is ever there, where ONNX Runtime's kernel writes those of all
//! queries and keys to memory, 1 GB of Stable Diffusion's largest at 512 pixels.

mod given;
mod pairs;
mod rows;
mod softmax;
mod units;

use ort::operator::{ComputeContext, Kernel, KernelContext, Operator, OperatorInput, OperatorOutput};
use ort::value::TensorElementType;

use self::given::Mask;
pub(super) use self::given::{Given, Laid};
use self::units::Task;
use super::operators::{IN_BF16, missing};

/// Heads of queries, and those of keys and values that neighbours share.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attention {
    pub heads: usize,
    pub kv_heads: usize,
    /// Multiplies the scores.
    pub scale: f32,
    /// `c · tanh(score / c)` before the mask, where not zero.
    pub softcap: f32,
    /// Whether queries, keys, shares and values of a prompt are multiplied in bfloat16.
    pub in_bf16: bool,
}

impl Attention {
    /// As a node says.
    pub(super) fn of(context: &KernelContext<'_>) -> ort::Result<Self> {
        let heads =
            |name| context.get::<i64>(name).and_then(|heads| usize::try_from(heads).ok()).unwrap_or(0);
        let (heads, kv_heads) = (heads("q_num_heads"), heads("kv_num_heads"));
        if kv_heads == 0 || heads == 0 || !heads.is_multiple_of(kv_heads) {
            return Err(ort::Error::new(format!("attention has {heads} heads for {kv_heads} of keys")));
        }
        let number = |name| context.get::<f32>(name).unwrap_or(0.0);
        let in_bf16 = context.get::<i64>(IN_BF16) == Some(1);
        Ok(Self { heads, kv_heads, scale: number("scale"), softcap: number("softcap"), in_bf16 })
    }
}

/// The first result of a node: what the queries read, with the mask that the operand at this place is, where there is one.
pub(super) fn computed(context: &ComputeContext, given: Given<'_>, mask: usize) -> ort::Result<()> {
    let mask = if context.num_inputs()? > mask { context.input(mask)? } else { None };
    let mask = mask.as_ref().map(|mask| mask.try_extract_tensor::<f32>()).transpose()?;
    let mask = mask.map(|(shape, numbers)| Mask::new(shape, numbers)).transpose().map_err(ort::Error::new)?;
    let given = Given { mask, ..given };
    let width = given.check().map_err(ort::Error::new)?;
    let [batch, queries, _] = given.lengths.map(|length| length as i64);
    let mut result = context.output(0, vec![batch, queries, width as i64])?.ok_or_else(missing)?;
    let (_, result) = result.try_extract_tensor_mut::<f32>()?;
    let task = Task::new(&given, result);
    context.par_for(task.units(), task.units(), |unit| task.compute(unit))?;
    task.finish();
    Ok(())
}

/// The operator, of the runtime's own domain.
pub(super) const NAME: &str = "FlashAttention";

/// Of queries `[batch, q, heads·size]`, keys and values `[batch, k, kv_heads·size]` or `[batch, kv_heads, k, size]`, and a mask where there
/// is one: `[batch, q, heads·size]`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FlashAttention(Attention);

impl Operator for FlashAttention {
    type Kernel<'attr> = Self;

    fn name(&self) -> &str {
        NAME
    }

    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        let number = TensorElementType::Float32;
        (0..3).map(move |_| OperatorInput::required(number)).chain([OperatorInput::optional(number)])
    }

    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        [OperatorOutput::required(TensorElementType::Float32)]
    }

    fn create_kernel<'attr>(&self, context: &KernelContext<'attr>) -> ort::Result<Self> {
        Attention::of(context).map(Self)
    }
}

impl Kernel for FlashAttention {
    fn compute(&mut self, context: &ComputeContext) -> ort::Result<()> {
        let input = |place: usize| context.input(place)?.ok_or_else(missing);
        let (q, k, v) = (input(0)?, input(1)?, input(2)?);
        let (shape, q) = q.try_extract_tensor::<f32>()?;
        let &[batch, queries, _] = &**shape else {
            return Err(ort::Error::new(format!("attention got queries {shape:?}")));
        };
        let [batch, queries] = [batch, queries].map(|length| length.unsigned_abs() as usize);
        let ((k_shape, k), (v_shape, v)) = (k.try_extract_tensor::<f32>()?, v.try_extract_tensor::<f32>()?);
        let ((keys, count), (values, _)) = (self.laid(k_shape, k)?, self.laid(v_shape, v)?);
        let given = Given { of: self.0, lengths: [batch, queries, count], q, keys, values, mask: None };
        computed(context, given, 3)
    }
}

impl FlashAttention {
    /// Keys or values, and how many there are.
    fn laid<'a>(&self, shape: &[i64], numbers: &'a [f32]) -> ort::Result<(Laid<'a>, usize)> {
        let heads = self.0.kv_heads;
        let lengths: Vec<usize> = shape.iter().map(|length| length.unsigned_abs() as usize).collect();
        match *lengths {
            [batch, count, width] => {
                Ok((Laid::by_text(numbers, [batch, heads, count, width / heads]), count))
            }
            [batch, of, count, size] if of == heads => {
                Ok((Laid::by_head(numbers, [batch, heads, count, size]), count))
            }
            _ => Err(ort::Error::new(format!("attention of {heads} heads of keys got {shape:?}"))),
        }
    }
}

#[cfg(test)]
mod tests;
