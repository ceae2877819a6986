//! What stands on the command line as the inputs of a pipeline.

use serde_json::{Value as Json, json};

use super::arguments::Arguments;
use crate::tasks::Task;
use crate::{Error, Result};

/// Each input as it is shown and as the task takes it.
pub(super) fn of(task: Task, words: &[String], arguments: &Arguments) -> Result<Vec<(String, Json)>> {
    let context = arguments.context.as_deref();
    if task != Task::QuestionAnswering {
        let message = |text: Json| match arguments.chat && text.is_string() {
            true => json!([{ "role": "user", "content": text }]),
            false => text,
        };
        return Ok(words.iter().map(|word| (word.clone(), message(parsed(word)))).collect());
    }
    let question = |question: &str, context: &str| {
        (question.to_owned(), json!({ "question": question, "context": context }))
    };
    match (context, words) {
        (Some(context), words) => Ok(words.iter().map(|word| question(word, context)).collect()),
        (None, [one, context]) if !is_json(one) => Ok(vec![question(one, context)]),
        (None, words) if words.iter().all(|word| is_json(word)) => {
            Ok(words.iter().map(|word| (word.clone(), parsed(word))).collect())
        }
        _ => Err(Error::input(
            "INPUT",
            "a question needs a text with its answer",
            "write QUESTION CONTEXT, or `--context TEXT` and any number of questions",
        )),
    }
}

fn is_json(word: &str) -> bool {
    !parsed(word).is_string()
}

/// Objects and lists are JSON, all else is a text or a path.
fn parsed(word: &str) -> Json {
    let json = word.starts_with(['{', '[']).then(|| serde_json::from_str(word).ok()).flatten();
    json.unwrap_or_else(|| word.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_words(task: Task, words: &[&str], option: &str) -> Result<Vec<Json>> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let line: Vec<String> = ["dir", option].iter().map(|&word| word.to_owned()).collect();
        let arguments = Arguments::parse(&line).unwrap();
        Ok(of(task, &words, &arguments)?.into_iter().map(|(_, input)| input).collect())
    }

    #[test]
    fn texts_objects_and_questions() {
        let texts = of_words(Task::FillMask, &["A [MASK].", "[MASK]", r#"{"a": 1}"#], "--json").unwrap();
        assert_eq!(texts, [json!("A [MASK]."), json!("[MASK]"), json!({"a": 1})]);
        let chat = of_words(Task::TextGeneration, &["Hi.", "[1]"], "--chat").unwrap();
        assert_eq!(chat, [json!([{"role": "user", "content": "Hi."}]), json!([1])]);
        let asked = json!({"question": "Who?", "context": "Ada."});
        let qa = Task::QuestionAnswering;
        let json = asked.to_string();
        for (words, option) in
            [(&["Who?", "Ada."][..], "--json"), (&["Who?"], "--context=Ada."), (&[&json], "--json")]
        {
            assert_eq!(of_words(qa, words, option).unwrap()[0], asked);
        }
        assert!(of_words(qa, &["Who?"], "--json").unwrap_err().to_string().contains("--context TEXT"));
    }
}
