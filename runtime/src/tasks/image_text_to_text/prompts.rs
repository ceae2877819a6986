//! The prompts that names of tasks stand for (`Florence2Processor._construct_prompts`).

use std::borrow::Cow;

use crate::{Error, Result};

/// Tasks that are the whole text.
const ALONE: [(&str, &str); 8] = [
    ("<OCR>", "What is the text in the image?"),
    ("<OCR_WITH_REGION>", "What is the text in the image, with regions?"),
    ("<CAPTION>", "What does the image describe?"),
    ("<DETAILED_CAPTION>", "Describe in detail what is shown in the image."),
    ("<MORE_DETAILED_CAPTION>", "Describe with a paragraph what is shown in the image."),
    ("<OD>", "Locate the objects with category name in the image."),
    ("<DENSE_REGION_CAPTION>", "Locate the objects in the image, with their descriptions."),
    ("<REGION_PROPOSAL>", "Locate the region proposals in the image."),
];

/// Tasks of what the text says besides, which stands between two texts.
const OF_TEXT: [(&str, [&str; 2]); 7] = [
    ("<CAPTION_TO_PHRASE_GROUNDING>", ["Locate the phrases in the caption: ", ""]),
    ("<REFERRING_EXPRESSION_SEGMENTATION>", ["Locate ", " in the image with mask"]),
    ("<REGION_TO_SEGMENTATION>", ["What is the polygon mask of region ", ""]),
    ("<OPEN_VOCABULARY_DETECTION>", ["Locate ", " in the image."]),
    ("<REGION_TO_CATEGORY>", ["What is the region ", "?"]),
    ("<REGION_TO_DESCRIPTION>", ["What does the region ", " describe?"]),
    ("<REGION_TO_OCR>", ["What text is in the region ", "?"]),
];

/// A text, or what it stands for where it names a task.
///
/// # Errors
/// When a task that is the whole text has more beside it.
pub(super) fn task_prompt(text: &str) -> Result<Cow<'_, str>> {
    if let Some((task, prompt)) = ALONE.iter().find(|(task, _)| text.contains(task)) {
        if text != *task {
            let problem = format!("has more than {task}, which stands alone");
            return Err(Error::input("text", problem, "leave out the rest, or choose a task of a text"));
        }
        return Ok(Cow::Borrowed(prompt));
    }
    let Some((task, [before, after])) = OF_TEXT.iter().find(|(task, _)| text.contains(task)) else {
        return Ok(Cow::Borrowed(text));
    };
    Ok(Cow::Owned(format!("{before}{}{after}", text.replace(task, "").trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tasks_stand_for_prompts() {
        assert_eq!(task_prompt("<OCR>").unwrap(), "What is the text in the image?");
        assert_eq!(task_prompt("<REGION_TO_OCR> <loc_1>").unwrap(), "What text is in the region <loc_1>?");
        assert_eq!(task_prompt("a cat").unwrap(), "a cat");
        let error = task_prompt("<OCR> of it").unwrap_err().to_string();
        assert!(error.contains("text: has more than <OCR>"), "{error}");
    }
}
