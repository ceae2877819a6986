//! Answers as people read them.

use serde_json::Value as Json;

/// An answer, one result a line.
pub(super) fn show(answer: &Json) -> String {
    if let Some((shape, numbers)) = numbers(answer) {
        let mut first: Vec<_> = numbers.iter().take(6).map(|number| format!("{number:.4}")).collect();
        if numbers.len() > first.len() {
            first.push("…".to_owned());
        }
        return format!("{shape:?}: {}\n", first.join(", "));
    }
    match answer {
        Json::Array(list) => list.iter().map(show).collect(),
        Json::Object(_) => result(answer),
        Json::String(text) => format!("{text}\n"),
        other => format!("{other}\n"),
    }
}

/// A result by what it holds.
fn result(answer: &Json) -> String {
    let text = |name: &str| answer[name].as_str();
    let score = answer["score"].as_f64().map(|score| format!("{score:.4}  ")).unwrap_or_default();
    if let Some(label) = text("label") {
        let corners = ["xmin", "ymin", "xmax", "ymax"].map(|name| answer["box"][name].as_f64());
        let place = match corners {
            [Some(left), Some(top), Some(right), Some(bottom)] => {
                format!("  ({left}, {top}) to ({right}, {bottom})")
            }
            _ => String::new(),
        };
        return format!("{score}{label}{place}\n");
    }
    if let (Some(labels), Some(scores)) = (answer["labels"].as_array(), answer["scores"].as_array()) {
        let each =
            labels.iter().zip(scores).filter_map(|(label, score)| Some((label.as_str()?, score.as_f64()?)));
        return each.map(|(label, score)| format!("{score:.4}  {label}\n")).collect();
    }
    if let (Some(token), Some(sequence)) = (text("token_str"), text("sequence")) {
        return format!("{score}{token:<16}{sequence}\n");
    }
    if let (Some(kind), Some(word)) = (text("entity_group").or_else(|| text("entity")), text("word")) {
        return format!("{score}{kind:<8}{word}\n");
    }
    if let Some(answer) = text("answer") {
        return format!("{score}{answer}\n");
    }
    let message = || answer["generated_text"].as_array()?.last()?["content"].as_str();
    let written = ["generated_text", "translation_text", "summary_text", "text"].into_iter().find_map(text);
    if let Some(text) = written.or_else(message) {
        let chunks = answer["chunks"].as_array().into_iter().flatten();
        return chunks.fold(format!("{text}\n"), |all, chunk| {
            let second = |index: usize| {
                chunk["timestamp"][index].as_f64().map(|at| format!("{at:.2}")).unwrap_or_default()
            };
            format!(
                "{all}  {} – {}  {}\n",
                second(0),
                second(1),
                chunk["text"].as_str().unwrap_or_default().trim()
            )
        });
    }
    format!("{answer:#}\n")
}

/// The shape and the elements of nested lists of numbers.
fn numbers(answer: &Json) -> Option<(Vec<usize>, Vec<f64>)> {
    let list = answer.as_array().filter(|list| !list.is_empty())?;
    if list.iter().all(Json::is_number) {
        return Some((vec![list.len()], list.iter().filter_map(Json::as_f64).collect()));
    }
    let inner: Option<Vec<_>> = list.iter().map(numbers).collect();
    let inner = inner?;
    let shape = inner[0].0.clone();
    let same = inner.iter().all(|(other, _)| *other == shape);
    same.then(|| {
        ([vec![list.len()], shape].concat(), inner.into_iter().flat_map(|(_, numbers)| numbers).collect())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_of_answer() {
        let answers = [
            json!([{"label": "POSITIVE", "score": 0.98765}]),
            json!([{"label": "cat", "score": 0.9, "box": {"xmin": 1, "ymin": 2, "xmax": 30, "ymax": 40}}]),
            json!([{"score": 0.5, "token": 7, "token_str": "cat", "sequence": "a cat."}]),
            json!([{"entity_group": "PER", "score": 0.99, "word": "Ada", "start": 0, "end": 3}]),
            json!({"sequence": "A loom.", "labels": ["craft", "sport"], "scores": [0.75, 0.25]}),
            json!({"answer": "London", "score": 0.7, "start": 0, "end": 6}),
            json!([[[0.125, -1.0], [2.0, 3.0]]]),
            json!([1, 2, 3, 4, 5, 6, 7]),
            json!([{"generated_text": "Once upon a time"}, {"translation_text": "Guten Tag."}, {"summary_text": "Short."}]),
            json!([{"generated_text": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]}]),
            json!({"text": "Good day.", "chunks": [{"timestamp": [0.0, 1.5], "text": " Good day."}]}),
            json!({"other": true}),
        ];
        insta::assert_snapshot!(answers.iter().map(show).collect::<String>(), @r#"
        0.9877  POSITIVE
        0.9000  cat  (1, 2) to (30, 40)
        0.5000  cat             a cat.
        0.9900  PER     Ada
        0.7500  craft
        0.2500  sport
        0.7000  London
        [1, 2, 2]: 0.1250, -1.0000, 2.0000, 3.0000
        [7]: 1.0000, 2.0000, 3.0000, 4.0000, 5.0000, 6.0000, …
        Once upon a time
        Guten Tag.
        Short.
        Hello.
        Good day.
          0.00 – 1.50  Good day.
        {
          "other": true
        }
        "#);
    }
}
