//! Attention and rotary embeddings.

use super::shape::broadcast;
use super::{AttentionOp, Dim, Dtype, Graph, Op, RotaryOp, Tensor, Unary, show};
use crate::Result;

/// What a masked score gets added in single precision: so low that every score is lost in it, and a position that sees
/// nothing gets the mean of all values, as in the reference. Just above the lowest number, which engines take for minus
/// infinity.
pub(crate) const MASKED_SCORE: f32 = -3e38;

/// The options of [`Graph::attention`].
#[derive(Clone, Copy, Debug)]
pub struct Attention<'a> {
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; fewer than `heads` where heads share them.
    pub kv_heads: usize,
    /// Multiplies the scores; `1/√size` of a head where not given.
    pub scale: Option<f64>,
    /// Which positions are seen (bool) or what is added to the scores (f32); broadcasts to
    /// `[batch, heads, q, k]`.
    pub mask: Option<&'a Tensor>,
    /// Whether a position sees none after it. With a mask that leaves some position nothing at all to see, engines
    /// differ: [`causal_padding_mask`](crate::nn::causal_padding_mask) says both in one.
    pub causal: bool,
    /// `c · tanh(score / c)` before the mask, where not zero.
    pub softcap: f64,
}

impl Default for Attention<'_> {
    fn default() -> Self {
        Self { heads: 1, kv_heads: 1, scale: None, mask: None, causal: false, softcap: 0.0 }
    }
}

impl Graph {
    /// Scaled dot-product attention: q `[batch, q, heads·size]`, k `[batch, k, kv_heads·size]` and v
    /// `[batch, k, kv_heads·v_size]` to `[batch, q, heads·v_size]`.
    ///
    /// Keys and values may also have their heads as an axis, as caches do: `[batch, kv_heads, k, size]`.
    ///
    /// # Errors
    /// When the widths are not multiples of the heads, or the shapes do not go together.
    pub fn attention(
        &mut self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        options: &Attention<'_>,
    ) -> Result<Tensor> {
        let Attention { heads, kv_heads, .. } = *options;
        for x in [q, k, v] {
            self.float("Attention", x)?;
        }
        let shapes = || format!("q {}, k {}, v {}", show(q.shape()), show(k.shape()), show(v.shape()));
        let [b, s, qw] = q.shape() else {
            return Err(self.error("Attention", format!("q must have three axes: {}", shapes())));
        };
        let (Some((b2, t, kw)), Some((b3, t2, vw))) = (keyed(k, kv_heads), keyed(v, kv_heads)) else {
            let problem = "k and v must be [batch, k, kv_heads·size] or [batch, kv_heads, k, size]";
            return Err(self.error("Attention", format!("{problem}: {}", shapes())));
        };
        if b != b2 || b != b3 || t != t2 {
            return Err(self.error("Attention", format!("batch or length differ: {}", shapes())));
        }
        let Some(qw) = qw.fixed() else {
            return Err(self.error("Attention", format!("widths must be fixed: {}", shapes())));
        };
        let even = heads > 0 && kv_heads > 0 && heads % kv_heads == 0;
        if !even || qw % heads != 0 || kw % kv_heads != 0 || vw % kv_heads != 0 || qw / heads != kw / kv_heads
        {
            let problem = format!("{heads} heads and {kv_heads} key/value heads do not divide {}", shapes());
            return Err(self.error("Attention", problem));
        }
        if let Some(mask) = options.mask {
            if mask.dtype() != Dtype::Bool && mask.dtype() != q.dtype() {
                let problem = format!("a mask is bool or {}, not {}", q.dtype(), mask.dtype());
                return Err(self.error("Attention", problem));
            }
            let scores = [b.clone(), heads.into(), s.clone(), t.clone()];
            if broadcast(mask.shape(), &scores).as_deref() != Some(&scores) {
                let problem = format!("mask {} does not fit scores {}", show(mask.shape()), show(&scores));
                return Err(self.error("Attention", problem));
            }
        }
        let op = AttentionOp {
            heads,
            kv_heads,
            scale: options.scale.unwrap_or(((qw / heads) as f64).powf(-0.5)),
            causal: options.causal,
            softcap: options.softcap,
        };
        let shape = vec![b.clone(), s.clone(), (vw / kv_heads * heads).into()];
        let operands: Vec<_> = [q, k, v].into_iter().chain(options.mask).collect();
        Ok(self.node(Op::Attention(op), &operands, q.dtype(), shape))
    }

    /// Cosines or sines of positions `[…]` i64 or f32 times frequencies: `[…, frequencies]`, multiplied by `scaling`.
    ///
    /// # Errors
    /// When the positions are of another type.
    pub fn angles(
        &mut self,
        positions: &Tensor,
        of: Unary,
        frequencies: &[f32],
        scaling: f64,
    ) -> Result<Tensor> {
        if !matches!(positions.dtype(), Dtype::I64 | Dtype::F32) {
            return Err(self.error(of.onnx(), format!("positions are i64 or f32, not {}", positions.dtype())));
        }
        let mut shape = positions.shape().to_vec();
        shape.push(frequencies.len().into());
        let op = Op::Angles { of, frequencies: frequencies.to_vec(), scaling };
        Ok(self.node(op, &[positions], Dtype::F32, shape))
    }

    /// Rotary position embedding: x `[batch, sequence, heads·size]`, cos and sin `[batch, sequence, width/2]`; the
    /// first `width` of each head are rotated.
    ///
    /// # Errors
    /// When the shapes do not go together.
    pub fn rotary(&mut self, x: &Tensor, cos: &Tensor, sin: &Tensor, op: RotaryOp) -> Result<Tensor> {
        self.float("RotaryEmbedding", x)?;
        let shapes =
            || format!("x {}, cos {}, sin {}", show(x.shape()), show(cos.shape()), show(sin.shape()));
        let fits = match (x.shape(), cos.shape()) {
            ([b, s, width], [b2, s2, half]) => {
                let size = width.fixed().filter(|w| op.heads > 0 && w % op.heads == 0).map(|w| w / op.heads);
                let even =
                    op.width > 0 && op.width.is_multiple_of(2) && size.is_some_and(|size| op.width <= size);
                even && b == b2 && s == s2 && half.fixed() == Some(op.width / 2) && cos.shape() == sin.shape()
            }
            _ => false,
        };
        if !fits {
            let problem = format!("{} heads rotated over {} do not fit {}", op.heads, op.width, shapes());
            return Err(self.error("RotaryEmbedding", problem));
        }
        Ok(self.node(Op::Rotary(op), &[x, cos, sin], x.dtype(), x.shape().to_vec()))
    }
}

/// Batch, length and width of keys or values.
fn keyed(x: &Tensor, heads: usize) -> Option<(&Dim, &Dim, usize)> {
    match x.shape() {
        [b, t, width] => Some((b, t, width.fixed()?)),
        [b, h, t, size] if h.fixed() == Some(heads) => Some((b, t, size.fixed()? * heads)),
        _ => None,
    }
}
