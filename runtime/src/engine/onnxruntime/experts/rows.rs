//! Rows of x gathered by the expert that they selected, and results put back in their order.

use ort::operator::ComputeContext;
use ort::value::{ValueRef, ValueRefMut};

/// What is given, by expert.
pub(super) struct Rows {
    x: Vec<f32>,
    pub width: usize,
    /// Rows of x that each position has: 1, or as many as experts are selected.
    of_row: usize,
    positions: usize,
    selected: usize,
    /// The experts that some position selected.
    pub groups: Vec<Group>,
}

/// The rows of one expert.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub expert: usize,
    /// Its first row among those of all groups.
    pub first: usize,
    /// Their places `position · selected + choice`.
    pub rows: Vec<usize>,
}

impl Rows {
    /// Of the first two operands.
    pub(super) fn of(context: &ComputeContext) -> ort::Result<Self> {
        let missing = || ort::Error::new("an operand of selected experts is missing");
        let (x, indices): (ValueRef<'_>, ValueRef<'_>) =
            (context.input(0)?.ok_or_else(missing)?, context.input(1)?.ok_or_else(missing)?);
        let (shape, x) = x.try_extract_tensor::<f32>()?;
        let (chosen, indices) = indices.try_extract_tensor::<i64>()?;
        let (&[rows, of_row, width], &[positions, selected]) = (&shape[..], &chosen[..]) else {
            return Err(ort::Error::new("selected experts take rows of three axes and indices of two"));
        };
        if rows != positions || (of_row != 1 && of_row != selected) {
            let problem = format!("selected experts got rows {shape:?} and indices {chosen:?}");
            return Err(ort::Error::new(problem));
        }
        let [of_row, width, positions, selected] =
            [of_row, width, positions, selected].map(|length| length.unsigned_abs() as usize);
        let groups = groups(indices).ok_or_else(|| ort::Error::new("an index of an expert is below 0"))?;
        Ok(Self { x: x.to_vec(), width, of_row, positions, selected, groups })
    }

    /// How many rows all groups have.
    pub(super) fn count(&self) -> usize {
        self.positions * self.selected
    }

    /// The rows of x, those of an expert one after the other.
    pub(super) fn gathered(&self) -> Vec<f32> {
        let mut gathered = Vec::with_capacity(self.count() * self.width);
        for row in self.groups.iter().flat_map(|group| &group.rows) {
            let row = if self.of_row == 1 { row / self.selected } else { *row };
            gathered.extend_from_slice(&self.x[row * self.width..(row + 1) * self.width]);
        }
        gathered
    }

    /// The result of a layer, `[positions, selected, out]`.
    pub(super) fn result<'a>(
        &self,
        context: &'a ComputeContext,
        place: usize,
        out: usize,
    ) -> ort::Result<ValueRefMut<'a>> {
        let shape = [self.positions, self.selected, out].map(|length| length as i64).to_vec();
        context.output(place, shape)?.ok_or_else(|| ort::Error::new("selected experts have no result"))
    }

    /// Gives the result `[positions, selected, out]`, whose rows lie as those that were gathered.
    pub(super) fn scatter(&self, context: &ComputeContext, rows: &[f32], out: usize) -> ort::Result<()> {
        let mut result = self.result(context, 0, out)?;
        let (_, result) = result.try_extract_tensor_mut::<f32>()?;
        let places = self.groups.iter().flat_map(|group| &group.rows);
        for (place, row) in places.zip(rows.chunks_exact(out.max(1))) {
            result[place * out..(place + 1) * out].copy_from_slice(row);
        }
        Ok(())
    }
}

/// The places of indices by what they are, in ascending order; none where one is below 0.
pub(super) fn groups(indices: &[i64]) -> Option<Vec<Group>> {
    let mut places: Vec<(usize, usize)> = vec![];
    for (place, index) in indices.iter().enumerate() {
        places.push((usize::try_from(*index).ok()?, place));
    }
    places.sort_unstable();
    let mut groups: Vec<Group> = vec![];
    for (first, (expert, place)) in places.into_iter().enumerate() {
        match groups.last_mut().filter(|group| group.expert == expert) {
            Some(group) => group.rows.push(place),
            None => groups.push(Group { expert, first, rows: vec![place] }),
        }
    }
    Some(groups)
}
