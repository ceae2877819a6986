//! Codebooks: the values that codes of 4 bits stand for where these are not evenly spaced.

/// The 16 values that codes of 4 bits stand for, in the order of the codes: whole numbers of 8 bits, times a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Codebook {
    /// FP4 E2M1 (OCP Microscaling Formats 1.0, the elements of MXFP4): 0, ½, 1, 1½, 2, 3, 4, 6, and the same below zero.
    E2m1,
    /// The values of ggml's IQ4_NL and IQ4_XS (`kvalues_iq4nl`).
    Iq4Nl,
}

impl Codebook {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::E2m1, Self::Iq4Nl];

    /// The values in units.
    pub const fn values(self) -> &'static [i8; 16] {
        match self {
            Self::E2m1 => &[0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12],
            Self::Iq4Nl => &[-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113],
        }
    }

    /// What the values are multiplied with, a power of two.
    pub const fn unit(self) -> f32 {
        match self {
            Self::E2m1 => 0.5,
            Self::Iq4Nl => 1.0,
        }
    }

    /// What it is called in graphs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::E2m1 => "e2m1",
            Self::Iq4Nl => "iq4_nl",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|book| book.name() == name)
    }

    /// What a code stands for.
    pub fn value(self, code: u8) -> f32 {
        f32::from(self.values()[usize::from(code & 15)]) * self.unit()
    }

    /// The values in units with the least one taken off, so that none is negative; and how much that is.
    pub(crate) fn above_zero(self) -> ([u8; 16], u8) {
        let least = self.values().iter().min().copied().unwrap_or_default().unsigned_abs();
        (self.values().map(|value| value.wrapping_add_unsigned(least) as u8), least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_formats() {
        let values: Vec<f32> = (0..16).map(|code| Codebook::E2m1.value(code)).collect();
        assert_eq!(values[..8], [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]);
        assert!(values[..8].iter().zip(&values[8..]).all(|(above, below)| *below == -above));
        assert_eq!([0, 7, 8, 15].map(|code| Codebook::Iq4Nl.value(code)), [-127.0, -10.0, 1.0, 113.0]);
    }

    #[test]
    fn all_have_a_name_and_a_form_without_negative_values() {
        for book in Codebook::ALL {
            assert_eq!(Codebook::named(book.name()), Some(book));
            let (values, least) = book.above_zero();
            assert!(values.contains(&0));
            for (above, value) in values.into_iter().zip(book.values()) {
                assert_eq!(i32::from(above) - i32::from(least), i32::from(*value));
            }
        }
        assert_eq!(Codebook::named("nf4"), None);
        assert_eq!((Codebook::E2m1.above_zero().1, Codebook::Iq4Nl.above_zero().1), (12, 127));
    }
}
