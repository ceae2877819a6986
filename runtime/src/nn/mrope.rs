//! Multimodal rotary position embeddings (M-RoPE; Qwen2-VL, arXiv:2409.12191): pairs rotate by time, height or width.

use super::{RopeParameters, Rotary};
use crate::Result;
use crate::graph::{Graph, Tensor};

/// How the pairs of a head are shared among time, height and width.
#[derive(Clone, Copy, Debug)]
pub struct MropeSections {
    /// The pairs of each where `mrope_section` is not given.
    pub default: [usize; 3],
    /// In which order they stand.
    pub order: MropeOrder,
}

/// In which order the pairs of a head rotate by time, height and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MropeOrder {
    /// Those of each stand together.
    Sections,
    /// They take turns, as long as height and width have pairs left.
    Interleaved,
    /// Height and width take turns, and time stands behind them; `mrope_section` counts the pairs in this order.
    SpatialFirst,
}

impl MropeSections {
    /// `Qwen2VLRotaryEmbedding`.
    pub const QWEN2_VL: Self = Self { default: [16, 24, 24], order: MropeOrder::Sections };
    /// `Qwen3VLTextRotaryEmbedding`.
    pub const QWEN3_VL: Self = Self { default: [24, 20, 20], order: MropeOrder::Interleaved };
    /// `Qwen3_5TextRotaryEmbedding`.
    pub const QWEN3_5: Self = Self { default: [11, 11, 10], order: MropeOrder::Interleaved };
    /// `Glm4vTextRotaryEmbedding`.
    pub const GLM4V: Self = Self { default: [8, 12, 12], order: MropeOrder::Sections };
    /// `Ernie4_5_VLMoeTextRotaryEmbedding`.
    pub const ERNIE4_5_VL: Self = Self { default: [22, 22, 20], order: MropeOrder::SpatialFirst };
}

impl RopeParameters {
    /// Rotary embedding of positions along time, height and width `[3, batch, sequence]` (`Qwen2VLRotaryEmbedding`) for heads of
    /// `head_size`, whose pairs are shared by `mrope_section`.
    ///
    /// # Errors
    /// When the ids have not three axes, or the sections are no split of the pairs.
    pub fn mrope(
        &self,
        g: &mut Graph,
        position_ids: &Tensor,
        head_size: usize,
        max_position_embeddings: usize,
        sections: MropeSections,
    ) -> Result<Rotary> {
        self.check(head_size).map_err(|problem| g.error("RotaryEmbedding", problem))?;
        let rope = self.frequencies(head_size, max_position_embeddings, None);
        let counts = self.mrope_section.as_deref().unwrap_or(&sections.default);
        let axes = mrope_axes(counts, rope.inverse.len(), sections.order);
        let axes = axes.map_err(|problem| g.error("RotaryEmbedding", problem))?;
        Rotary::by_axes(g, position_ids, &rope.inverse, &axes, rope.attention_factor)
    }

    /// Rotary embedding of positions along as many axes as `mrope_section` has, `[axes, batch, sequence]`, for heads of `head_size`
    /// (`HunYuanVLRotaryEmbedding`): the elements of a head are shared by twice as many of each as it says, whichever pairs they are of.
    ///
    /// # Errors
    /// When the ids have not three axes, there are no sections, or they are no split of the pairs.
    pub fn mrope_of_elements(
        &self,
        g: &mut Graph,
        position_ids: &Tensor,
        head_size: usize,
        max_position_embeddings: usize,
    ) -> Result<Rotary> {
        self.check(head_size).map_err(|problem| g.error("RotaryEmbedding", problem))?;
        let rope = self.frequencies(head_size, max_position_embeddings, None);
        let counts = self.mrope_section.as_deref().unwrap_or_default();
        let section = |(axis, count): (usize, &usize)| std::iter::repeat_n(axis, 2 * *count);
        let axes: Vec<usize> = counts.iter().enumerate().flat_map(section).collect();
        if axes.len() != 2 * rope.inverse.len() {
            let problem = format!("`mrope_section` {counts:?} is no split of {} pairs", rope.inverse.len());
            return Err(g.error("RotaryEmbedding", problem));
        }
        Rotary::by_axes_of_elements(g, position_ids, &rope.inverse, &axes, rope.attention_factor)
    }

    /// Rotary embedding of rows and columns `[2, 1, patches]` for heads of `head_size`: the frequencies of a head rotate by rows and
    /// by columns in turns, those by rows stand first (`PixtralVisionRotaryEmbedding`).
    ///
    /// # Errors
    /// When the ids have not three axes, or these parameters are none for heads of the size.
    pub fn axial_in_turns(&self, g: &mut Graph, position_ids: &Tensor, head_size: usize) -> Result<Rotary> {
        let all = self.frequencies(head_size, usize::MAX, None).inverse;
        let axis = |first: usize| all.iter().skip(first).step_by(2).copied().collect::<Vec<_>>();
        let (rows, columns) = (axis(0), axis(1));
        let axes = [vec![0; rows.len()], vec![1; columns.len()]].concat();
        Rotary::by_axes(g, position_ids, &[rows, columns].concat(), &axes, 1.0)
    }

    /// Rotary embedding of rows and columns `[2, 1, patches]` for heads of `head_size`: the first half of the pairs rotates by
    /// rows, the second by columns, of the same frequencies (`Qwen2VLVisionRotaryEmbedding`).
    ///
    /// # Errors
    /// When the ids have not three axes, or these parameters are none for heads of the size.
    pub fn axial(&self, g: &mut Graph, position_ids: &Tensor, head_size: usize) -> Result<Rotary> {
        let half = self.frequencies(head_size / 2, usize::MAX, None).inverse;
        let axes = [vec![0; half.len()], vec![1; half.len()]].concat();
        Rotary::by_axes(g, position_ids, &[half.clone(), half].concat(), &axes, 1.0)
    }
}

/// The axis that each pair rotates by: time, height or width.
fn mrope_axes(sections: &[usize], pairs: usize, order: MropeOrder) -> Result<Vec<usize>, String> {
    if sections.len() != 3 || sections.iter().sum::<usize>() != pairs {
        return Err(format!(
            "`mrope_section` {sections:?} is no split of {pairs} pairs among time, height and width"
        ));
    }
    if order == MropeOrder::SpatialFirst && sections[0] != sections[1] {
        return Err(format!("`mrope_section` {sections:?} has other numbers of pairs for height and width"));
    }
    Ok(match order {
        MropeOrder::Sections => {
            let section = |(axis, count): (usize, &usize)| std::iter::repeat_n(axis, *count);
            sections.iter().enumerate().flat_map(section).collect()
        }
        MropeOrder::Interleaved => {
            let axis = |pair: usize| if pair < 3 * sections[pair % 3] { pair % 3 } else { 0 };
            (0..pairs).map(axis).collect()
        }
        MropeOrder::SpatialFirst => {
            let axis = |pair: usize| if pair < 2 * sections[0] { 1 + pair % 2 } else { 0 };
            (0..pairs).map(axis).collect()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_stand_one_after_the_other_or_take_turns() {
        let axes = |sections: &[usize; 3], order| mrope_axes(sections, sections.iter().sum(), order);
        assert_eq!(axes(&[1, 2, 2], MropeOrder::Sections), Ok(vec![0, 1, 1, 2, 2]));
        assert_eq!(axes(&[4, 2, 2], MropeOrder::Interleaved), Ok(vec![0, 1, 2, 0, 1, 2, 0, 0]));
        assert_eq!(axes(&[2, 2, 3], MropeOrder::SpatialFirst), Ok(vec![1, 2, 1, 2, 0, 0, 0]));
        let error = mrope_axes(&[16, 24, 24], 4, MropeOrder::Sections).unwrap_err();
        assert!(error.contains("[16, 24, 24] is no split of 4 pairs"), "{error}");
        let error = axes(&[2, 1, 3], MropeOrder::SpatialFirst).unwrap_err();
        assert!(error.contains("[2, 1, 3] has other numbers of pairs for height and width"), "{error}");
    }
}
