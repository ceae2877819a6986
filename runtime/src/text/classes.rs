//! Which of the texts of all images are an image's own.

use ndarray::Array2;

use crate::{Error, Result, Value, Values};

/// The row of each image's classes among those of all images, `[batch, classes]` i64, from `classes_structure` `[batch]`, how many each
/// has; an image with fewer than others has the row behind the last of `classes_input_ids` `[total, sequence]` in their place
/// (`OmDetTurboPreTrainedModel.get_language_embedding`).
///
/// # Errors
/// When an input is missing, a count negative, or there are fewer texts than classes.
pub fn class_rows(values: &Values) -> Result<Value> {
    let given = |name: &'static str, form: &str| {
        let missing =
            || Error::input(name, "is required and was not given", format!("give it as i64 {form}"));
        values.get(name).ok_or_else(missing)?.i64(name)
    };
    let texts = given("classes_input_ids", "[total, sequence]")?.shape()[0];
    let structure = given("classes_structure", "[batch]")?;
    let counts: Vec<usize> =
        structure.iter().map(|&count| usize::try_from(count).unwrap_or(usize::MAX)).collect();
    let total = counts.iter().try_fold(0_usize, |sum, &count| sum.checked_add(count));
    if total.is_none_or(|total| total > texts) {
        let problem = format!(
            "{:?} asks for other classes than the {texts} texts",
            structure.iter().collect::<Vec<_>>()
        );
        return Err(Error::input(
            "classes_structure",
            problem,
            "say how many of the texts, in turn, are each image's",
        ));
    }
    let mut rows =
        Array2::from_elem((counts.len(), counts.iter().copied().max().unwrap_or_default()), texts as i64);
    let mut first = 0;
    for (mut row, count) in rows.rows_mut().into_iter().zip(counts) {
        for (place, class) in row.iter_mut().take(count).enumerate() {
            *class = (first + place) as i64;
        }
        first += count;
    }
    Ok(Value::I64(rows.into_dyn()))
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    fn rows(structure: [i64; 2]) -> Result<Value> {
        let ids = Array2::<i64>::zeros((5, 3)).into_dyn();
        class_rows(&Values::from([
            ("classes_input_ids".into(), ids.into()),
            ("classes_structure".into(), array![structure[0], structure[1]].into_dyn().into()),
        ]))
    }

    #[test]
    fn images_with_fewer_classes_have_the_row_behind_the_last() {
        assert_eq!(rows([3, 2]).unwrap(), Value::I64(array![[0, 1, 2], [3, 4, 5]].into_dyn()));
        assert_eq!(rows([1, 2]).unwrap(), Value::I64(array![[0, 5], [1, 2]].into_dyn()));
    }

    #[test]
    fn more_classes_than_texts_are_refused() {
        for structure in [[3, 3], [-1, 2], [i64::MAX, i64::MAX]] {
            let text = rows(structure).unwrap_err().to_string();
            assert!(text.contains("classes_structure") && text.contains("5 texts"), "{text}");
        }
        let none = class_rows(&Values::new()).unwrap_err().to_string();
        assert!(none.contains("classes_input_ids"), "{none}");
    }
}
