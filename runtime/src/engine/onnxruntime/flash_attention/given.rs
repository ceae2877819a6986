//! What attention is given: queries, keys and values as they lie, masks.

use super::Attention;

/// What is added to a score, `[batch, heads, queries, keys]` or 1 of each.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Mask<'a> {
    numbers: &'a [f32],
    lengths: [usize; 4],
}

impl<'a> Mask<'a> {
    /// Of up to four axes, the last ones.
    pub(in super::super) fn new(shape: &[i64], numbers: &'a [f32]) -> Result<Self, String> {
        let mut lengths = [1; 4];
        let first = 4_usize.checked_sub(shape.len());
        let first = first.ok_or_else(|| format!("attention got a mask {shape:?} of more than four axes"))?;
        for (length, given) in lengths[first..].iter_mut().zip(shape) {
            *length = given.unsigned_abs() as usize;
        }
        Ok(Self { numbers, lengths })
    }

    /// What is added to the scores of a query: one number for all keys, or one for each.
    pub(super) fn row(&self, places: [usize; 3]) -> &'a [f32] {
        let places = places.iter().zip(self.lengths);
        let row = places.fold(0, |row, (&place, length)| row * length + if length == 1 { 0 } else { place });
        &self.numbers[row * self.lengths[3]..][..self.lengths[3]]
    }
}

/// Keys or values, and how they lie.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Laid<'a> {
    numbers: &'a [f32],
    /// Numbers of each.
    pub(super) size: usize,
    /// From those of one text, head and position to those of the next one.
    pub(super) apart: [usize; 3],
}

impl Laid<'_> {
    /// `[positions, batch, heads, size]`.
    pub(in super::super) fn by_position<'n>(
        numbers: &'n [f32],
        [batch, heads, _, size]: [usize; 4],
    ) -> Laid<'n> {
        Laid { numbers, size, apart: [heads * size, size, batch * heads * size] }
    }

    /// `[batch, positions, heads·size]`.
    pub(super) fn by_text<'n>(numbers: &'n [f32], [_, heads, positions, size]: [usize; 4]) -> Laid<'n> {
        Laid { numbers, size, apart: [positions * heads * size, size, heads * size] }
    }

    /// `[batch, heads, positions, size]`.
    pub(super) fn by_head<'n>(numbers: &'n [f32], [_, heads, positions, size]: [usize; 4]) -> Laid<'n> {
        Laid { numbers, size, apart: [heads * positions * size, positions * size, size] }
    }
}

impl<'a> Laid<'a> {
    /// From the first of a text and head on.
    pub(super) fn of(&self, text: usize, head: usize) -> &'a [f32] {
        &self.numbers[text * self.apart[0] + head * self.apart[1]..]
    }
}

/// What attention is given.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Given<'a> {
    pub of: Attention,
    /// Batch, queries and keys.
    pub lengths: [usize; 3],
    /// `[batch, queries, heads·size]`.
    pub q: &'a [f32],
    pub keys: Laid<'a>,
    pub values: Laid<'a>,
    pub mask: Option<Mask<'a>>,
}

impl Given<'_> {
    /// The width of the result, where all lengths fit.
    ///
    /// # Errors
    /// When they do not.
    pub(in super::super) fn check(&self) -> Result<usize, String> {
        let ([batch, queries, keys], [key, value]) = (self.lengths, [self.keys.size, self.values.size]);
        let most = [batch, self.of.heads, queries, keys];
        let seen = |mask: &Mask<'_>| {
            let lengths = mask.lengths.iter().zip(most);
            let fits = lengths.clone().all(|(&length, most)| [1, most].contains(&length));
            fits && mask.numbers.len() == mask.lengths.iter().product::<usize>()
        };
        let fits = key * value > 0
            && self.q.len() == batch * queries * self.of.heads * key
            && self.keys.numbers.len() == keys * batch * self.of.kv_heads * key
            && self.values.numbers.len() == keys * batch * self.of.kv_heads * value
            && self.mask.as_ref().is_none_or(seen);
        let misfit = || {
            format!(
                "attention got lengths that do not fit {most:?}, mask {:?}",
                self.mask.map(|mask| mask.lengths)
            )
        };
        if fits { Ok(self.of.heads * value) } else { Err(misfit()) }
    }
}
