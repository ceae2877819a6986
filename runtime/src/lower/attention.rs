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
            AttentionForm::MultiHead if self.is_multi_head(node, op) => {
                self.multi_head(node, op, [q, k, v], mask)
            }
            AttentionForm::MultiHead | AttentionForm::Plain => {
                self.plain_attention(node, op, [q, k, v], mask)
            }
        }
    }

    /// Whether the fused operator has this kind: it knows no soft cap, takes keys and values by head only where these are
    /// of one width, and its kernels differ in which of fewer queries than keys come last.
    fn is_multi_head(&self, node: &Node, op: AttentionOp) -> bool {
        let [queries, keys, values] = [0, 1, 2].map(|operand| self.shape(node.inputs[operand]));
        let one_width = head_size(&keys, op.kv_heads) == head_size(&values, op.kv_heads);
        let fits = one_width || !is_by_head(&keys, &values, op);
        op.softcap == 0.0 && fits && (!op.causal || queries[1] == *key_count(&keys))
    }

    /// The fused operator of ONNX Runtime; heads that are shared are written out.
    fn multi_head(
        &mut self,
        node: &Node,
        op: AttentionOp,
        [q, k, v]: [&str; 3],
        mask: Option<&str>,
    ) -> Result<String> {
        let mut attributes =
            vec![Attribute::int("num_heads", op.heads as i64), Attribute::float("scale", op.scale as f32)];
        if op.causal {
            attributes.push(Attribute::int("unidirectional", 1));
        }
        let additive = self.additive(node, mask);
        let bias = additive.clone().map(|bias| self.full_bias(node, bias)).transpose()?;
        let bias = bias.map(|bias| self.four_axes(node, bias)).transpose()?;
        let [ks, vs] = [1, 2].map(|operand| self.shape(node.inputs[operand]));
        let (mut k, mut v) = (k.to_owned(), v.to_owned());
        if is_by_head(&ks, &vs, op) {
            k = self.split_heads(&k, &ks, op.kv_heads, &[0, 2, 1, 3])?;
            v = self.split_heads(&v, &vs, op.kv_heads, &[0, 2, 1, 3])?;
        }
        if op.heads != op.kv_heads {
            let groups = op.heads / op.kv_heads;
            let [size, v_size] = [&ks, &vs].map(|s| Dim::Fixed(head_size(s, op.kv_heads)));
            let [b, t] = [ks[0].clone(), key_count(&ks).clone()];
            k = self.repeat_heads(&k, [b.clone(), t.clone(), size], op.kv_heads, groups)?;
            v = self.repeat_heads(&v, [b, t, v_size], op.kv_heads, groups)?;
        }
        // Layers with other numbers of queries may share the mask as it was.
        let q = match &additive {
            Some(bias) => self.seeing(node, op, q, bias)?,
            None => q.to_owned(),
        };
        let mut operands = vec![q.as_str(), &k, &v];
        if let Some(bias) = &bias {
            operands.extend(["", "", bias.as_str()]);
        }
        let result = self.last_in("com.microsoft", "MultiHeadAttention", &operands, attributes);
        self.declare(&result, &self.shape(node.output));
        Ok(result)
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

    /// Whether scores are not lost in what masked ones get added, as there is no number so low.
    fn hides_too_little(&self) -> bool {
        self.rules.float == Dtype::F16
    }

    /// Queries `[batch, q, heads·size]` where they see something and zeros where they do not, so that these score all
    /// keys alike.
    fn seeing(&mut self, node: &Node, op: AttentionOp, q: &str, bias: &str) -> Result<String> {
        if !self.hides_too_little() {
            return Ok(q.to_owned());
        }
        let shape = self.shape(node.inputs[0]);
        let apart = dims![&shape[0], &shape[1], op.heads, width(&shape) / op.heads];
        let sight = self.sight(node, bias)?;
        let key = (node.inputs[3], "sight by query");
        let sight = match self.derived.get(&key) {
            Some(name) => name.clone(),
            None => {
                let order = vec![Attribute::ints("perm", vec![0, 2, 1, 3])];
                let name = self.part("Transpose", &[&sight], order);
                self.derived.insert(key, name.clone());
                name
            }
        };
        let q = self.reshape_part(q, &shape, &apart)?;
        let q = self.part("Mul", &[&q, &sight], vec![]);
        self.reshape_part(&q, &apart, &shape)
    }

    /// 1 for queries that see something and 0 for those that do not: a bias `[…, k]` to four axes, the last of length 1.
    fn sight(&mut self, node: &Node, bias: &str) -> Result<String> {
        let id = node.inputs[3];
        if let Some(name) = self.derived.get(&(id, "sight")) {
            return Ok(name.clone());
        }
        let shape = self.shape(id);
        let last = self.integers(&[-1]);
        let most = self.part("ReduceMax", &[bias, &last], vec![Attribute::int("keepdims", 1)]);
        let lowest = self.number(-masked(self.rules.float));
        let above = self.part("Add", &[&most, &lowest], vec![]);
        let (zero, one) = (self.number(0.0), self.number(1.0));
        let mut name = self.part("Clip", &[&above, &zero, &one], vec![]);
        if shape.len() < 4 {
            let mut from = shape.clone();
            from.pop();
            from.push(Dim::Fixed(1));
            let to: Vec<Dim> =
                std::iter::repeat_n(Dim::Fixed(1), 4 - from.len()).chain(from.iter().cloned()).collect();
            name = self.reshape_part(&name, &from, &to)?;
        }
        self.derived.insert((id, "sight"), name.clone());
        Ok(name)
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

    /// A bias with axes for batch and heads, whichever of them it had.
    fn four_axes(&mut self, node: &Node, bias: String) -> Result<String> {
        let mut from = self.shape(node.inputs[3]);
        let rank = from.len();
        if rank == 4 {
            return Ok(bias);
        }
        let [queries, keys] = [0, 1].map(|operand| self.shape(node.inputs[operand]));
        let whole = dims![1, 1, &queries[1], key_count(&keys)];
        if rank < 2 {
            return self.expand_part(&bias, &from, &whole);
        }
        from[rank - 2] = queries[1].clone();
        let mut to = vec![Dim::Fixed(1); 4 - rank];
        to.extend_from_slice(&from);
        self.reshape_part(&bias, &from, &to)
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

/// Whether the fused operator is given keys and values with heads as an axis of their own.
fn is_by_head(keys: &[Dim], values: &[Dim], op: AttentionOp) -> bool {
    keys.len() == 4 || values.len() == 4 || op.heads != op.kv_heads
}

/// The width of one head.
fn head_size(shape: &[Dim], heads: usize) -> usize {
    if shape.len() == 4 { width(shape) } else { width(shape) / heads }
}
