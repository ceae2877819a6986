//! Tensors of the checkpoint that files hold in several, or the other way: put together again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::blocks::unpack;
use super::rows::{RowOrder, Rows, Run, turned};
use super::{Entry, Place, Tensors, Undo, refused};
use crate::gguf::architectures::{Arrangement, Layout, Split};
use crate::gguf::file::Tensor;
use crate::gguf::types::{Form, Kind};
use crate::gguf::{Gguf, config};
use crate::weights::{BlockQuantized, Bytes};
use crate::{Dtype, Result};

/// A part in a file.
type Held<'a> = (Place, &'a Tensor);

/// The parts that were found, by what was split and the number of the layer.
#[derive(Default)]
pub(super) struct Found<'a>(BTreeMap<(usize, String), Vec<Option<Held<'a>>>>);

/// How tensors of a file become one of the checkpoint.
#[derive(Debug)]
pub(super) struct Joined {
    parts: Vec<Piece>,
    /// Elements of a row, the same in all parts.
    columns: usize,
    items: usize,
    order: RowOrder,
    /// Whether the result is `[items, columns, rows]`.
    turned: bool,
    /// The type of all parts, whose blocks the result is made of; else it is of numbers.
    blocks: Option<&'static Kind>,
}

/// A part of a split tensor.
#[derive(Debug)]
struct Piece {
    place: Place,
    kind: &'static Kind,
    /// `[columns, rows]` of an item in the file, where it lies the other way.
    turned: Option<[usize; 2]>,
}

impl<'a> Found<'a> {
    /// Takes note of a tensor that is a part of a split one.
    pub fn take(&mut self, splits: &[Split], place: Place, tensor: &'a Tensor) -> bool {
        let (layer, name) = layered(&tensor.name);
        let mut parts = splits.iter().enumerate().flat_map(|(index, split)| {
            split.parts.iter().enumerate().map(move |(part, of)| (index, part, of.name))
        });
        let Some((index, part, _)) = parts.find(|(_, _, part)| *part == name) else { return false };
        let found = self.0.entry((index, layer.to_owned())).or_default();
        found.resize(found.len().max(part + 1), None);
        found[part] = Some((place, tensor));
        true
    }

    /// What the parts become, by the checkpoint's names.
    pub fn entries(self, gguf: &Gguf) -> Result<Vec<(String, Entry)>> {
        let entry =
            |((index, layer), found): ((usize, String), Vec<Option<Held<'_>>>)| -> Result<(String, Entry)> {
                let split = &gguf.architecture.splits[index];
                let mut parts = vec![];
                for (place, part) in split.parts.iter().enumerate() {
                    let name = part.name.replacen("{}", &layer, 1);
                    let held = found.get(place).copied().flatten();
                    parts.push(held.ok_or_else(|| {
                        let rest: Vec<_> =
                            found.iter().flatten().map(|(_, rest)| rest.name.as_str()).collect();
                        gguf.wrong(format!(
                            "has tensor `{}` but not `{name}`, which belong together",
                            rest.join("`, `")
                        ))
                    })?);
                }
                let entry = joined(gguf, split, &parts)?.ok_or_else(|| {
                    let shown: Vec<_> =
                        parts.iter().map(|(_, it)| format!("`{}` {:?}", it.name, it.shape)).collect();
                    gguf.wrong(format!("has tensors {}, which do not go together", shown.join(" and ")))
                })?;
                Ok((split.name.replacen("{}", &layer, 1), entry))
            };
        self.0.into_iter().map(entry).collect()
    }
}

/// The number of the layer that a tensor is of, and its name with a place for that.
fn layered(name: &str) -> (&str, Cow<'_, str>) {
    match name.strip_prefix("blk.").and_then(|rest| rest.split_once('.')) {
        Some((layer, rest)) => (layer, Cow::Owned(format!("blk.{{}}.{rest}"))),
        None => ("", Cow::Borrowed(name)),
    }
}

/// The tensor that parts become; none where their shapes do not go together.
fn joined(gguf: &Gguf, split: &Split, held: &[Held<'_>]) -> Result<Option<Entry>> {
    let Some(&(place, first)) = held.first() else { return Ok(None) };
    // Biases are columns of one element.
    let is_bias = first.shape.len() == 2 && split.layout != Layout::Rows;
    let (mut rows, mut sizes, mut parts) = (vec![], vec![], vec![]);
    for ((place, tensor), part) in held.iter().zip(split.parts) {
        let [items, before, columns] = match tensor.shape[..] {
            [items, rows] if is_bias => [items, rows, 1],
            [rows, columns] if split.layout == Layout::Rows => [1, rows, columns],
            [items, rows, columns] if !is_bias => [items, rows, columns],
            _ => return Ok(None),
        };
        let turned = part.turned.then_some([before, columns]);
        rows.push(if part.turned { columns } else { before });
        sizes.push([items, if part.turned { before } else { columns }]);
        parts.push(Piece { place: *place, kind: tensor.kind, turned });
    }
    let [items, columns] = sizes[0];
    let Some(order) = ordered(gguf, split.rows, &rows)? else { return Ok(None) };
    if sizes.iter().any(|size| *size != [items, columns]) {
        return Ok(None);
    }
    let kind = first.kind;
    let stay = parts.iter().all(|part| part.kind.id == kind.id && part.turned.is_none());
    let blocks = (stay && !is_bias && matches!(kind.form, Form::Blocks { .. })).then_some(kind);
    let of_item: usize = rows.iter().sum();
    let turned = split.layout == Layout::Turned || split.layout == Layout::Stacked && blocks.is_some();
    let shape = match split.layout {
        Layout::Flat | Layout::Rows => vec![items * of_item, columns],
        _ if is_bias => vec![items, of_item],
        _ if turned => vec![items, columns, of_item],
        _ => vec![items, of_item, columns],
    };
    let joined = Joined { parts, columns, items, order, turned, blocks };
    Ok(Some(Entry { place, shape, undo: Some(Undo::Join(Arc::new(joined))) }))
}

/// How the rows of parts follow each other, of which each has so many of an item.
fn ordered(gguf: &Gguf, by: Arrangement, rows: &[usize]) -> Result<Option<RowOrder>> {
    Ok(match (by, rows) {
        (Arrangement::Behind, rows) => Some(RowOrder::behind(rows)),
        (Arrangement::InTurn, rows) => {
            rows.iter().all(|of_part| *of_part == rows[0]).then(|| RowOrder::in_turn(rows.len()))
        }
        (Arrangement::KeyHeads, &[all, gates]) => {
            let [heads, width] = config::delta_rule_keys(gguf)?;
            let run = |part, start, rows| Run { part, start, rows };
            let keys = heads.saturating_mul(width);
            let fits = keys.checked_mul(2).and_then(|keys| keys.checked_add(gates)) == Some(all);
            let runs = || {
                let shared = gates / heads;
                vec![run(0, 0, width), run(0, keys, width), run(0, 2 * keys, shared), run(1, 0, shared)]
            };
            (fits && gates.is_multiple_of(heads)).then(|| RowOrder::Items(runs()))
        }
        (Arrangement::KeyHeads, _) => None,
    })
}

impl Tensors {
    /// The tensor that parts become: blocks where all are of one type and their rows stay rows, else numbers.
    pub(super) fn join(&self, place: Place, joined: &Joined) -> Result<(Dtype, Bytes), String> {
        if let Some(part) = joined.parts.iter().find(|part| matches!(part.kind.form, Form::Refused)) {
            return Err(refused(part.kind));
        }
        if let Some(kind) = joined.blocks {
            let blocks = self.shared(place, || self.joined_blocks(kind, joined))?;
            return Ok((Dtype::F32, Bytes::Quantized(blocks)));
        }
        let kind = joined.parts[0].kind;
        let dtype = match kind.form {
            Form::Plain(dtype) if joined.parts.iter().all(|part| part.kind.id == kind.id) => dtype,
            _ => Dtype::F32,
        };
        if let ([Piece { turned: None, .. }], false, Form::Plain(_)) =
            (&joined.parts[..], joined.turned, &kind.form)
        {
            return Ok((dtype, self.mapped(place, dtype)));
        }
        let parts =
            joined.parts.iter().map(|part| self.numbers(part, dtype)).collect::<Result<Vec<_>, _>>()?;
        let parts = parts.iter().map(|part| &**part).collect();
        let rows = Rows { parts, length: joined.columns * dtype.size(), order: &joined.order };
        let mut bytes = rows.bytes();
        if joined.turned {
            let of_item = bytes.len() / (joined.items * joined.columns * dtype.size()).max(1);
            bytes = turned(&bytes, [of_item, joined.columns], dtype.size());
        }
        Ok((dtype, Bytes::memory(bytes)))
    }

    fn joined_blocks(&self, kind: &Kind, joined: &Joined) -> Result<BlockQuantized, String> {
        let parts: Vec<_> = joined.parts.iter().map(|part| self.bytes(part.place)).collect();
        let length = joined.columns / kind.elements * kind.bytes;
        let rows = parts.iter().map(|part| part.len()).sum::<usize>() / length.max(1);
        let blocks = unpack(kind, &Rows { parts, length, order: &joined.order }, [rows, joined.columns])?;
        Ok(BlockQuantized { batch: joined.turned.then_some(joined.items), ..blocks })
    }

    /// A part's numbers of a type, with its rows as the checkpoint has them.
    fn numbers(&self, part: &Piece, dtype: Dtype) -> Result<Cow<'_, [u8]>, String> {
        let bytes = match part.kind.form {
            Form::Plain(stored) if stored == dtype => Cow::Borrowed(self.bytes(part.place)),
            _ => {
                let entry = Entry { place: part.place, shape: vec![], undo: None };
                Cow::Owned(dtype.encoded(&self.values(&entry)?))
            }
        };
        Ok(match part.turned {
            Some(matrix) => Cow::Owned(turned(&bytes, matrix, dtype.size())),
            None => bytes,
        })
    }
}
