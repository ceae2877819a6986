//! KV cache of a decoder's graph: past keys and values as inputs, present ones as outputs, by ONNX exporters' names.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use ndarray::Array1;

use super::quantized_cache;
use crate::GraphKind;
use crate::graph::dims::{BATCH, LOGITS_TO_KEEP, PAST, PAST_BATCH, SEQUENCE};
use crate::graph::{Attention, CacheCodes, Dim, Graph, Input, InputDefault, Tensor};
use crate::{Error, Result, Value, dims};

/// KV cache of a decoder (`DynamicCache`): nothing in [`GraphKind::Forward`], inputs `past_key_values.{layer}.key` and `.value` and outputs
/// `present.{layer}.key` and `.value`, `[batch, kv_heads, past, size]`, in the graphs that continue it.
#[derive(Clone, Debug)]
pub struct Cache {
    kind: GraphKind,
    within: &'static str,
    rows: Option<Tensor>,
    rows_per_item: usize,
    shared: Option<SharedKv>,
}

/// Keys and values `[batch, kv_heads, length, size]` of each layer of a stack, which another stack of the same graph goes on from.
#[derive(Clone, Debug)]
struct SharedKv {
    layers: Rc<RefCell<BTreeMap<usize, [Tensor; 2]>>>,
    /// How many there are, for the stack that goes on from them.
    past: Option<Dim>,
}

impl Cache {
    /// The cache of a graph kind; [`GraphKind::BeamDecode`] takes `beam_idx` `[batch]`, the row that each beam continues.
    pub fn new(g: &mut Graph, kind: GraphKind) -> Self {
        let rows = (kind == GraphKind::BeamDecode).then(|| g.input(Input::i64("beam_idx", dims![BATCH])));
        Self { kind, within: "", rows, rows_per_item: 1, shared: None }
    }

    /// The cache of a stack of layers from whose keys and values another stack of the same graph goes on
    /// (`past_key_values` of `PI0Model`).
    pub fn kept() -> Self {
        let shared = SharedKv { layers: Rc::default(), past: None };
        Self { kind: GraphKind::Forward, within: "", rows: None, rows_per_item: 1, shared: Some(shared) }
    }

    /// The cache of the stack that goes on from the `past` keys and values of this one, layer by layer.
    #[must_use]
    pub fn continued(&self, past: Dim) -> Self {
        let layers = self.shared.iter().map(|shared| shared.layers.clone()).next().unwrap_or_default();
        Self { shared: Some(SharedKv { layers, past: Some(past) }), ..self.clone() }
    }

    /// The same with names one level down, `past_key_values.{layer}.decoder.key`, as encoder-decoders have them.
    #[must_use]
    pub fn within(mut self, level: &'static str) -> Self {
        self.within = level;
        self
    }

    /// The same of `n` rows for each item of the batch, which beams reorder together (`_reorder_stacked` of
    /// `RagTokenForGeneration`): inputs are `[batch · n, …]`.
    ///
    /// # Errors
    /// As [`Graph::reshape`].
    pub fn rows_per_item(mut self, g: &mut Graph, n: usize) -> Result<Self> {
        if let Some(items) = self.rows.take() {
            let first = g.integer(n as i64);
            let first = g.mul(&items, &first)?;
            let first = g.unsqueeze(&first, 1)?;
            let each = g.arange(&Dim::from(n));
            let rows = g.add(&first, &each)?;
            self.rows = Some(g.flatten(&rows, 0..2)?);
        }
        self.rows_per_item = n;
        Ok(self)
    }

    /// The kind of graph that it is the cache of.
    pub(crate) fn kind(&self) -> GraphKind {
        self.kind
    }

    /// The number of cached positions.
    pub fn past(&self) -> Dim {
        let shared = self.shared.as_ref().and_then(|shared| shared.past.clone());
        shared.unwrap_or(if self.kind.is_cached() { PAST } else { Dim::Fixed(0) })
    }

    /// The number of key positions: cached and new.
    pub fn keys(&self) -> Dim {
        self.past() + SEQUENCE
    }

    /// Places of the new tokens, counted with the cached ones and with padding (`cache_position`): int64 `[sequence]`. In graphs that
    /// continue a cache they are an input, since a backend of fixed shapes has more room than there are tokens.
    pub fn positions(&self, g: &mut Graph) -> Tensor {
        match self.kind.is_cached() {
            true => g.input(Input::i64("cache_position", dims![SEQUENCE]).or(InputDefault::Positions)),
            false => g.arange(&SEQUENCE),
        }
    }

    /// Appends a layer's new keys and values `[batch, sequence, kv_heads·size]` to the cache (`Cache.update`): all of them,
    /// cached ones first.
    ///
    /// # Errors
    /// When the widths are not multiples of the heads.
    pub fn update(
        &self,
        g: &mut Graph,
        layer: usize,
        k: Tensor,
        v: Tensor,
        kv_heads: usize,
    ) -> Result<(Tensor, Tensor)> {
        if let Some(shared) = &self.shared {
            let new = [heads_first(g, &k, kv_heads)?, heads_first(g, &v, kv_heads)?];
            let [k, v] = shared.update(g, layer, new)?;
            return Ok((k, v));
        }
        if !self.kind.is_cached() {
            return Ok((k, v));
        }
        let k = self.concat_past(g, layer, "key", &k, kv_heads)?;
        Ok((k, self.concat_past(g, layer, "value", &v, kv_heads)?))
    }

    /// Self-attention of a layer over cached and new keys: q `[batch, sequence, heads·size]` and what [`Cache::update`] makes
    /// of k and v, to `[batch, sequence, heads·size]`.
    ///
    /// # Errors
    /// As [`Cache::update`] and [`Graph::attention`].
    pub fn attention(
        &self,
        g: &mut Graph,
        layer: usize,
        [q, k, v]: [Tensor; 3],
        options: &Attention<'_>,
    ) -> Result<Tensor> {
        let (k, v) = self.update(g, layer, k, v, options.kv_heads)?;
        g.attention(&q, &k, &v, options)
    }

    /// Appends what a layer keeps of each position beside keys and values `[batch, sequence, size]` (`update_indexer`), to all of it,
    /// cached ones first: `[batch, 1, past + sequence, size]`.
    ///
    /// # Errors
    /// When it has not three axes.
    pub fn append(&self, g: &mut Graph, layer: usize, what: &str, new: &Tensor) -> Result<Tensor> {
        match self.kind.is_cached() {
            true => self.concat_past(g, layer, what, new, 1),
            false => g.unsqueeze(new, 1),
        }
    }

    fn concat_past(
        &self,
        g: &mut Graph,
        layer: usize,
        what: &str,
        new: &Tensor,
        heads: usize,
    ) -> Result<Tensor> {
        let new = heads_first(g, new, heads)?;
        let size = new.shape()[3].clone();
        let name = self.name(layer, what);
        let fits = |codes: &CacheCodes| {
            matches!(what, "key" | "value") && codes.bits.takes(size.fixed().unwrap_or_default())
        };
        if let Some(codes) = g.cache_codes.filter(fits) {
            return self.concat_quantized(g, &name, &new, codes);
        }
        let shape = dims![self.cached(), heads, PAST, size];
        let past = self.past_rows(g, Input::f32(&format!("past_key_values.{name}"), shape))?;
        let all = g.concat(&[&past, &new], 2)?;
        g.output(&format!("present.{name}"), &all)?;
        Ok(all)
    }

    /// The same of a cache that holds codes and scales: new positions are as they are, until they are cached.
    fn concat_quantized(
        &self,
        g: &mut Graph,
        name: &str,
        new: &Tensor,
        stored: CacheCodes,
    ) -> Result<Tensor> {
        let [_, heads, _, size] = new.shape() else { return Ok(new.clone()) };
        let size = size.fixed().unwrap_or_default();
        let of = |last: usize| dims![self.cached(), heads, PAST, last];
        let key = format!("past_key_values.{name}");
        let shape = of(stored.stored(size));
        let codes = if stored.as_floats { Input::f32(&key, shape) } else { Input::u8(&key, shape) };
        // Whole numbers beyond half precision.
        let codes = g.in_single(|g| self.past_rows(g, codes))?;
        let scale =
            self.past_rows(g, Input::f32(&format!("{key}_scale"), of(quantized_cache::groups(size))))?;
        let (new_codes, new_scale) = quantized_cache::quantize(g, new, stored)?;
        let kept = g.in_single(|g| g.concat(&[&codes, &new_codes], 2))?;
        g.output(&format!("present.{name}"), &kept)?;
        let kept = g.concat(&[&scale, &new_scale], 2)?;
        g.output(&format!("present.{name}_scale"), &kept)?;
        let past = quantized_cache::dequantize(g, &codes, &scale, stored, size)?;
        g.concat(&[&past, new], 2)
    }

    /// What is cached, nothing at first, with the rows that beams go on from.
    fn past_rows(&self, g: &mut Graph, input: Input) -> Result<Tensor> {
        let past = g.input(input.or(InputDefault::Past));
        match &self.rows {
            Some(rows) => g.gather(&past, rows, 0),
            None => Ok(past),
        }
    }

    /// A state of fixed size that a layer leaves behind (`get_conv_state`, `get_recurrent_state`): the input
    /// `past_key_values.{layer}.{what}` `[batch, shape…]`, zeros at first; zeros too in graphs without a cache.
    ///
    /// # Errors
    /// Never; as [`Graph::full`].
    pub fn past_state(&self, g: &mut Graph, layer: usize, what: &str, shape: &[usize]) -> Result<Tensor> {
        let of =
            |batch: Dim| [batch].into_iter().chain(shape.iter().map(|&n| n.into())).collect::<Vec<Dim>>();
        if !self.kind.is_cached() {
            return g.full(of(BATCH * Dim::from(self.rows_per_item)), 0.0);
        }
        let name = format!("past_key_values.{}", self.name(layer, what));
        let past = g.input(Input::f32(&name, of(self.cached())).or(InputDefault::Past));
        match &self.rows {
            Some(rows) => g.gather(&past, rows, 0),
            None => Ok(past),
        }
    }

    /// Leaves a state for the next step: the output `present.{layer}.{what}`.
    ///
    /// # Errors
    /// When a layer leaves it twice.
    pub fn keep_state(&self, g: &mut Graph, layer: usize, what: &str, state: &Tensor) -> Result<()> {
        if !self.kind.is_cached() {
            return Ok(());
        }
        g.output(&format!("present.{}", self.name(layer, what)), state)
    }

    /// Keys and values that [`GraphKind::Encoder`] gave for cross-attention, `[batch, heads, keys, size]`;
    /// [`GraphKind::BeamDecode`] takes and leaves them by row, as it does the others.
    ///
    /// # Errors
    /// When a layer is asked for twice.
    pub fn cross_kv(
        &self,
        g: &mut Graph,
        layer: usize,
        heads: usize,
        size: usize,
        keys: &Dim,
    ) -> Result<(Tensor, Tensor)> {
        let mut kept = |what| {
            let name = format!("{layer}.encoder.{what}");
            let shape = dims![self.cached(), heads, keys, size];
            let x = g.input(Input::f32(&format!("past_key_values.{name}"), shape));
            let Some(rows) = &self.rows else { return Ok(x) };
            let x = g.gather(&x, rows, 0)?;
            g.output(&format!("present.{name}"), &x)?;
            Ok(x)
        };
        Ok((kept("key")?, kept("value")?))
    }

    /// Leaves keys and values `[batch, keys, heads·size]` for the cross-attention of a layer.
    ///
    /// # Errors
    /// When the widths are not multiples of the heads.
    pub fn cache_cross_kv(
        &self,
        g: &mut Graph,
        layer: usize,
        k: &Tensor,
        v: &Tensor,
        heads: usize,
    ) -> Result<()> {
        for (what, x) in [("key", k), ("value", v)] {
            let x = heads_first(g, x, heads)?;
            g.output(&format!("present.{layer}.encoder.{what}"), &x)?;
        }
        Ok(())
    }

    /// The items that are cached: others than those that are run, where these choose among them.
    fn cached(&self) -> Dim {
        let items = if self.rows.is_some() { PAST_BATCH } else { BATCH };
        if self.rows_per_item == 1 { items } else { items * Dim::from(self.rows_per_item) }
    }

    fn name(&self, layer: usize, what: &str) -> String {
        match self.within {
            "" => format!("{layer}.{what}"),
            level => format!("{layer}.{level}.{what}"),
        }
    }
}

/// Hidden states `[batch, sequence, width]` at the positions in the input `logits_to_keep` `[logits_to_keep]` (`forward`'s argument of
/// this name), all where it is not given: of a prompt only the last logits are read.
///
/// `ids` is the input of new tokens. Graphs without a cache keep all positions.
///
/// # Errors
/// When there are no positions.
pub fn logits_to_keep(g: &mut Graph, kind: GraphKind, hidden: &Tensor, ids: &'static str) -> Result<Tensor> {
    if !kind.is_cached() {
        return Ok(hidden.clone());
    }
    let all = Input::i64("logits_to_keep", dims![LOGITS_TO_KEEP]).computed(move |values| {
        let length = values.get(ids).and_then(|ids| ids.shape().get(1)).copied();
        let none = || Error::input(ids, "is required and was not given", "give the new tokens");
        Ok(Value::I64(Array1::from_iter(0..length.ok_or_else(none)? as i64).into_dyn()))
    });
    let asked = g.input(all);
    g.gather(hidden, &asked, 1)
}

impl SharedKv {
    /// Keeps a layer's keys and values `[batch, kv_heads, length, size]`, or appends them to those that are kept.
    fn update(&self, g: &mut Graph, layer: usize, new: [Tensor; 2]) -> Result<[Tensor; 2]> {
        if self.past.is_none() {
            self.layers.borrow_mut().insert(layer, new.clone());
            return Ok(new);
        }
        let layers = self.layers.borrow();
        let Some([k, v]) = layers.get(&layer) else {
            return Err(g.error("Cache", format!("there is no layer {layer} whose keys and values go on")));
        };
        Ok([g.concat(&[k, &new[0]], 2)?, g.concat(&[v, &new[1]], 2)?])
    }
}

/// `[batch, length, heads·size]` as `[batch, heads, length, size]`.
fn heads_first(g: &mut Graph, x: &Tensor, heads: usize) -> Result<Tensor> {
    let [batch, length, width] = x.shape() else {
        return Err(g.error("Cache", "keys and values are [batch, length, heads·size]"));
    };
    let size = width.fixed().unwrap_or_default() / heads.max(1);
    let apart = dims![batch, length, heads, size];
    let x = g.reshape(x, apart)?;
    g.transpose(&x, &[0, 2, 1, 3])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{expect, refusal};

    fn attend(g: &mut Graph, kind: GraphKind, kv_heads: usize, qkv: [Tensor; 3]) -> Result<Tensor> {
        let cache = Cache::new(g, kind).within("decoder");
        let options = Attention { heads: 2, kv_heads, ..Attention::default() };
        cache.attention(g, 3, qkv, &options)
    }

    fn inputs(g: &mut Graph) -> [Tensor; 3] {
        ["q", "k", "v"].map(|name| g.input(Input::f32(name, dims![BATCH, SEQUENCE, 2])))
    }

    #[test]
    fn without_a_cache_only_new_positions_are_attended_to() {
        let build = |g: &mut Graph| {
            let qkv =
                [[1.0, 1.0], [3.0, 5.0], [7.0, 9.0]].map(|of| g.constant(&[1, 1, 2], of.to_vec()).unwrap());
            attend(g, GraphKind::Forward, 2, qkv)
        };
        expect(&[], build, &[1, 1, 2], &[7.0, 9.0]);
    }

    #[test]
    fn a_cached_layer_takes_past_and_gives_present() {
        let mut g = Graph::new();
        let qkv = inputs(&mut g);
        attend(&mut g, GraphKind::BeamDecode, 2, qkv).unwrap();
        let names: Vec<_> = g.inputs()[3..].iter().map(|input| input.name.as_str()).collect();
        assert_eq!(names, ["beam_idx", "past_key_values.3.decoder.key", "past_key_values.3.decoder.value"]);
        assert_eq!(g.inputs()[4].shape, dims![PAST_BATCH, 2, PAST, 1]);
        let outputs: Vec<_> = g.outputs().map(|(name, _)| name).collect();
        assert_eq!(outputs, ["present.3.decoder.key", "present.3.decoder.value"]);
    }

    #[test]
    fn rows_of_an_item_are_cached_together() {
        let mut g = Graph::new();
        let cache = Cache::new(&mut g, GraphKind::BeamDecode).rows_per_item(&mut g, 3).unwrap();
        let state = cache.past_state(&mut g, 0, "state", &[2]).unwrap();
        assert_eq!(g.inputs()[1].shape, dims![PAST_BATCH * Dim::from(3), 2]);
        assert_eq!(state.shape(), dims![BATCH * Dim::from(3), 2]);
    }

    #[test]
    fn another_stack_goes_on_from_keys_and_values_that_are_kept() {
        let build = |g: &mut Graph| {
            let of = |g: &mut Graph, values: &[f32]| g.constant(&[1, 1, 2], values.to_vec());
            let (q, k, v) = (of(g, &[1.0, 1.0])?, of(g, &[0.0, 0.0])?, of(g, &[3.0, 5.0])?);
            let cache = Cache::kept();
            let options = Attention { heads: 2, kv_heads: 2, ..Attention::default() };
            cache.attention(g, 0, [q.clone(), k.clone(), v], &options)?;
            let v = of(g, &[7.0, 9.0])?;
            cache.continued(1.into()).attention(g, 0, [q, k, v], &options)
        };
        expect(&[], build, &[1, 1, 2], &[5.0, 7.0]);
        let problem = refusal(|g| {
            let [q, k, v] = inputs(g);
            let options = Attention { heads: 2, kv_heads: 2, ..Attention::default() };
            Cache::kept().continued(1.into()).attention(g, 4, [q, k, v], &options)
        });
        insta::assert_snapshot!(problem, @"Cache in the root: there is no layer 4 whose keys and values go on");
    }

    #[test]
    fn widths_that_are_no_multiple_of_the_heads_are_refused() {
        let problem = refusal(|g| {
            let qkv = inputs(g);
            attend(g, GraphKind::Decode, 3, qkv)
        });
        insta::assert_snapshot!(problem, @"Reshape in the root: [batch, sequence, 2] does not hold as many elements as [batch, sequence, 3, 0]");
    }
}
