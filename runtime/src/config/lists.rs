//! What lists must hold, and how many of it.

/// Refuses a list, where it is given, with an entry that is none of these words.
///
/// # Errors
/// Names the field, the entry and the words.
pub fn words(name: &str, list: Option<&[String]>, known: &[&str]) -> Result<(), String> {
    let unknown =
        list.iter().copied().flatten().enumerate().find(|(_, word)| !known.contains(&word.as_str()));
    match unknown {
        None => Ok(()),
        Some((index, word)) => {
            Err(format!("{name}: entry {index} is `{word}`, expected one of {}", known.join(", ")))
        }
    }
}

/// Refuses a list, where it is given and not empty, of another length than a field says.
///
/// # Errors
/// Names both fields and both lengths.
pub fn length<T>(name: &str, list: Option<&[T]>, of: &str, expected: usize) -> Result<(), String> {
    match list.map_or(0, <[T]>::len) {
        0 => Ok(()),
        found if found == expected => Ok(()),
        found => Err(format!("{name}: has {found} entries, expected one for each of {of}, {expected}")),
    }
}

/// Refuses a list, where it is given, that is shorter than a field says.
///
/// # Errors
/// Names both fields and both lengths.
pub fn min_length<T>(name: &str, list: Option<&[T]>, of: &str, least: usize) -> Result<(), String> {
    match list.map(<[T]>::len) {
        Some(found) if found < least => {
            Err(format!("{name}: has {found} entries, expected one for each of {of}, {least}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_hold_known_words_one_for_each_layer() {
        let list = ["full_attention", "chunked"].map(str::to_owned);
        let known = ["sliding_attention", "full_attention"];
        assert_eq!(words("layer_types", Some(&list[..1]), &known), Ok(()));
        assert_eq!(words("layer_types", None, &known), Ok(()));
        let problem = words("layer_types", Some(&list), &known).unwrap_err();
        assert_eq!(
            problem,
            "layer_types: entry 1 is `chunked`, expected one of sliding_attention, full_attention"
        );
        let count = |list: Option<&[String]>| length("layer_types", list, "num_hidden_layers", 2);
        assert_eq!([count(Some(&list)), count(None), count(Some(&[]))], [Ok(()), Ok(()), Ok(())]);
        let problem = count(Some(&list[1..])).unwrap_err();
        assert_eq!(problem, "layer_types: has 1 entries, expected one for each of num_hidden_layers, 2");
        let least = |list: Option<&[String]>| min_length("depths", list, "num_encoder_blocks", 1);
        assert_eq!([least(Some(&list)), least(Some(&list[1..])), least(None)], [Ok(()), Ok(()), Ok(())]);
        let problem = least(Some(&[])).unwrap_err();
        assert_eq!(problem, "depths: has 0 entries, expected one for each of num_encoder_blocks, 1");
    }
}
