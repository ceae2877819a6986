//! The forms of attention.

use super::AttentionForm;
use super::emitter::Emitter;
use super::shapes::width;
use crate::Result;
use crate::dims;
use crate::graph::{AttentionOp, Dim, Dtype, Node};
use crate::onnx::Attribute;

/// What a masked score gets added: so low that every score is lost in it, and a position that sees nothing gets
/// the mean of all values, as in the reference. Just above the lowest number, which engines take for minus
/// infinity.
fn masked(float: Dtype) -> f32 {
    match float {
        Dtype::F16 => -65504.0,
        _ => -3e38,
    }
}

/// Lower than all scores that are seen in half precision, and higher than those that a mask was added to.
const LEAST_SEEN: f32 = -60000.0;

impl Emitter<'_> {
    /// Scaled dot-product attention.
    pub(super) fn attention(&mut self, node: &Node, op: AttentionOp, operands: &[&str]) -> Result<String> {
        let [q, k, v] = [operands[0], operands[1], operands[2]];
        let mask = operands.get(3).copied();
        let by_head = [1, 2].map(|operand| self.shape(node.inputs[operand]).len() == 4);
        match self.rules.attention {
            AttentionForm::Standard => {
                let mut attributes = vec![Attribute::float("scale", op.scale as f32)];
                if by_head == [false; 2] {
                    attributes.push(Attribute::int("q_num_heads", op.heads as i64));
                    attributes.push(Attribute::int("kv_num_heads", op.kv_heads as i64));
                }
                if op.causal {
                    attributes.push(Attribute::int("is_causal", 1));
                }
                if op.softcap != 0.0 {
                    attributes.push(Attribute::float("softcap", op.softcap as f32));
                }
                // A truth-valued mask would leave a position that sees nothing without a value.
                let bias = self.additive(node, mask).map(|bias| self.full_bias(node, bias)).transpose()?;
                if by_head != [false; 2] {
                    return self.attention_by_head(node, op, [q, k, v], bias.as_deref(), attributes);
                }
                let operands: Vec<_> = [q, k, v].into_iter().chain(bias.as_deref()).collect();
                Ok(self.last("Attention", &operands, attributes))
            }
            AttentionForm::MultiHead
                if by_head == [false; 2] && op.softcap == 0.0 && op.heads == op.kv_heads =>
            {
                let mut attributes = vec![
                    Attribute::int("num_heads", op.heads as i64),
                    Attribute::float("scale", op.scale as f32),
                ];
                if op.causal {
                    attributes.push(Attribute::int("unidirectional", 1));
                }
                let bias = self.additive(node, mask).map(|bias| self.full_bias(node, bias)).transpose()?;
                let mut operands = vec![q, k, v];
                if let Some(bias) = &bias {
                    operands.extend(["", "", bias.as_str()]);
                }
                Ok(self.last_in("com.microsoft", "MultiHeadAttention", &operands, attributes))
            }
            AttentionForm::MultiHead | AttentionForm::Plain => {
                self.plain_attention(node, op, [q, k, v], mask)
            }
        }
    }

    /// ONNX's attention with heads as an axis of their own.
    fn attention_by_head(
        &mut self,
        node: &Node,
        op: AttentionOp,
        [q, k, v]: [&str; 3],
        bias: Option<&str>,
        attributes: Vec<Attribute>,
    ) -> Result<String> {
        let [qs, ks, vs] = [0, 1, 2].map(|operand| self.shape(node.inputs[operand]));
        let q = self.split_heads(q, &qs, op.heads, &[0, 2, 1, 3])?;
        let k = self.split_heads(k, &ks, op.kv_heads, &[0, 2, 1, 3])?;
        let v = self.split_heads(v, &vs, op.kv_heads, &[0, 2, 1, 3])?;
        let operands: Vec<_> = [q.as_str(), &k, &v].into_iter().chain(bias).collect();
        let mixed = self.part("Attention", &operands, attributes);
        let back = self.part("Transpose", &[&mixed], vec![Attribute::ints("perm", vec![0, 2, 1, 3])]);
        let from = dims![&qs[0], &qs[1], op.heads, head_size(&vs, op.kv_heads)];
        self.reshape(&back, &from, &self.shape(node.output))
    }

    fn plain_attention(
        &mut self,
        node: &Node,
        op: AttentionOp,
        [q, k, v]: [&str; 3],
        mask: Option<&str>,
    ) -> Result<String> {
        let [qs, ks, vs] = [0, 1, 2].map(|operand| self.shape(node.inputs[operand]));
        let q = self.split_heads(q, &qs, op.heads, &[0, 2, 1, 3])?;
        let k = self.split_heads(k, &ks, op.kv_heads, &[0, 2, 3, 1])?;
        let v = self.split_heads(v, &vs, op.kv_heads, &[0, 2, 1, 3])?;
        let (k, v) = match op.heads / op.kv_heads {
            1 => (k, v),
            groups => {
                let [size, v_size] = [&ks, &vs].map(|s| Dim::Fixed(head_size(s, op.kv_heads)));
                let [b, t] = [ks[0].clone(), key_count(&ks).clone()];
                let k = self.repeat_heads(&k, [b.clone(), size, t.clone()], op.kv_heads, groups)?;
                (k, self.repeat_heads(&v, [b, t, v_size], op.kv_heads, groups)?)
            }
        };
        // Scaling the queries, not the scores, keeps half precision in range.
        let scale = self.number(op.scale as f32);
        let q = self.part("Mul", &[&q, &scale], vec![]);
        let mut scores = self.part("MatMul", &[&q, &k], vec![]);
        if op.softcap != 0.0 {
            let cap = self.number(op.softcap as f32);
            scores = self.part("Div", &[&scores, &cap], vec![]);
            scores = self.part("Tanh", &[&scores], vec![]);
            scores = self.part("Mul", &[&scores, &cap], vec![]);
        }
        if let Some(mask) = mask {
            scores = self.masked_scores(node, scores, mask);
        }
        if op.causal {
            let bias = self.causal_bias(&qs[1], key_count(&ks))?;
            scores = self.part("Add", &[&scores, &bias], vec![]);
        }
        let weights = self.part("Softmax", &[&scores], vec![Attribute::int("axis", -1)]);
        let mixed = self.part("MatMul", &[&weights, &v], vec![]);
        let back = self.part("Transpose", &[&mixed], vec![Attribute::ints("perm", vec![0, 2, 1, 3])]);
        let from = dims![&qs[0], &qs[1], op.heads, head_size(&vs, op.kv_heads)];
        self.reshape(&back, &from, &self.shape(node.output))
    }

    /// `[batch, length, heads·size]` with its heads as an axis, in the order asked for; what has them already is put
    /// in the same order.
    fn split_heads(&mut self, x: &str, shape: &[Dim], heads: usize, order: &[i64]) -> Result<String> {
        if shape.len() == 4 {
            return Ok(match order {
                [0, 2, 1, 3] => x.to_owned(),
                _ => self.part("Transpose", &[x], vec![Attribute::ints("perm", vec![0, 1, 3, 2])]),
            });
        }
        let split = dims![&shape[0], &shape[1], heads, width(shape) / heads];
        let x = self.reshape_part(x, shape, &split)?;
        Ok(self.part("Transpose", &[&x], vec![Attribute::ints("perm", order.to_vec())]))
    }

    /// Each key/value head once for every query head that shares it.
    fn repeat_heads(&mut self, x: &str, [b, r, c]: [Dim; 3], heads: usize, groups: usize) -> Result<String> {
        let apart = dims![&b, heads, 1, &r, &c];
        let together = dims![&b, heads, &r, &c];
        let x = self.reshape_part(x, &together, &apart)?;
        let times = self.integers(&[1, 1, groups as i64, 1, 1]);
        let x = self.part("Tile", &[&x, &times], vec![]);
        let (repeated, joined) = (dims![&b, heads, groups, &r, &c], dims![&b, heads * groups, &r, &c]);
        self.reshape_part(&x, &repeated, &joined)
    }

    /// Scores where a mask lets them be seen. Half precision has no number that every score is lost in: masked scores
    /// are one and the same number instead, so that a position that sees nothing still gets the mean of all values.
    fn masked_scores(&mut self, node: &Node, scores: String, mask: &str) -> String {
        let half = self.rules.float == Dtype::F16;
        if half && node.inputs.get(3).is_some_and(|id| self.graph.values[*id].tensor.dtype() == Dtype::Bool) {
            let masked = self.number(masked(Dtype::F16));
            return self.part("Where", &[mask, &scores, &masked], vec![]);
        }
        let Some(bias) = self.additive(node, Some(mask)) else { return scores };
        let scores = self.part("Add", &[&scores, &bias], vec![]);
        if !half {
            return scores;
        }
        let least = self.number(LEAST_SEEN);
        self.part("Clip", &[&scores, &least], vec![])
    }

    /// The mask as numbers to add; written once however many layers use it.
    fn additive(&mut self, node: &Node, mask: Option<&str>) -> Option<String> {
        let (mask, id) = (mask?, *node.inputs.get(3)?);
        if self.graph.values[id].tensor.dtype() != Dtype::Bool {
            return Some(mask.to_owned());
        }
        if let Some(name) = self.derived.get(&(id, "additive")) {
            return Some(name.clone());
        }
        let (seen, masked) = (self.number(0.0), self.number(masked(self.rules.float)));
        let name = self.named("Where", &[mask, &seen, &masked], vec![], &format!("{mask}/additive"));
        self.derived.insert((id, "additive"), name.clone());
        Some(name)
    }

    /// The fused operators broadcast a mask over batch and heads, but want it for every query: `[…, q, k]`.
    fn full_bias(&mut self, node: &Node, bias: String) -> Result<String> {
        let id = node.inputs[3];
        let [queries, keys] = [0, 1].map(|operand| self.shape(node.inputs[operand]));
        let (queries, keys) = (queries[1].clone(), key_count(&keys).clone());
        let mut shape = self.shape(id);
        let rank = shape.len();
        if rank < 2 || shape[rank - 2] == queries {
            return Ok(bias);
        }
        // Queries of several lengths may share a mask.
        let full = format!("{bias}/full/{queries}");
        if let Some(name) = self.symbols.get(&full) {
            return Ok(name.clone());
        }
        let from = shape.clone();
        shape[rank - 2] = queries;
        shape[rank - 1] = keys;
        let name = self.expand_named(&bias, &from, &shape, &full)?;
        self.symbols.insert(full, name.clone());
        Ok(name)
    }

    /// `[q, k]`: 0 where a query sees a key, far below elsewhere; queries are the last positions of the keys.
    fn causal_bias(&mut self, queries: &Dim, keys: &Dim) -> Result<String> {
        let key = format!("/causal/{queries}/{keys}");
        if let Some(name) = self.symbols.get(&key) {
            return Ok(name.clone());
        }
        let shape = self.shape_operand(&[queries.clone(), keys.clone()])?;
        let masked = self.number(masked(self.rules.float));
        let full = self.part("Expand", &[&masked, &shape], vec![]);
        let [query_count, key_count] =
            [queries, keys].map(|dim| self.shape_operand(std::slice::from_ref(dim)));
        let offset = self.part("Sub", &[&key_count?, &query_count?], vec![]);
        let one = self.integers(&[1]);
        let diagonal = self.part("Add", &[&offset, &one], vec![]);
        let scalar = self.integers(&[]);
        let diagonal = self.part("Reshape", &[&diagonal, &scalar], vec![]);
        let name = self.part("Trilu", &[&full, &diagonal], vec![Attribute::int("upper", 1)]);
        self.symbols.insert(key, name.clone());
        Ok(name)
    }
}

/// How many keys there are, with or without an axis for heads.
fn key_count(shape: &[Dim]) -> &Dim {
    &shape[shape.len() - 2]
}

/// The width of one head.
fn head_size(shape: &[Dim], heads: usize) -> usize {
    if shape.len() == 4 { width(shape) } else { width(shape) / heads }
}
