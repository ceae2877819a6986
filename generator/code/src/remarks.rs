//! Comments and documentation, which are the model's own where code is not: numbers stand for them while it is parsed and
//! printed.

use std::fmt::Write as _;
use std::rc::Rc;

/// What stands for a comment line while the code is parsed and printed.
pub(crate) const COMMENT: &str = "__comment";

/// What a line of documentation holds meanwhile, before its number.
const DOC: char = '\u{E002}';

/// The comments and the documentation of a piece of text, a line each, by the numbers that stand for them.
pub(crate) type Remarks = Rc<[String]>;

/// A text with numbers in place of its remarks.
pub(crate) fn marked(text: &str) -> (String, Vec<String>) {
    let mut marked = String::with_capacity(text.len());
    let mut remarks = vec![];
    for line in text.lines() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("//") {
            marked.push_str(&line[..line.len() - trimmed.len()]);
            let number = remarks.len();
            let doc = ["///", "//!"].into_iter().find(|doc| trimmed.starts_with(doc));
            let _ = match doc {
                Some(doc) => write!(marked, "{doc}{DOC}{number}"),
                None => write!(marked, "{COMMENT}!({number});"),
            };
            remarks.push(trimmed.trim_end().to_owned());
        } else {
            marked.push_str(line);
        }
        marked.push('\n');
    }
    (marked, remarks)
}

/// Adds a text to another with its remarks in place of their numbers.
pub(crate) fn restore(output: &mut String, text: &str, remarks: &[String]) {
    if remarks.is_empty() {
        output.push_str(text);
        return;
    }
    for line in text.lines() {
        let trimmed = line.trim_start();
        match number(trimmed).and_then(|number| remarks.get(number)) {
            Some(remark) => {
                output.push_str(&line[..line.len() - trimmed.len()]);
                output.push_str(remark);
            }
            None => output.push_str(line),
        }
        output.push('\n');
    }
}

/// The number of the remark that a line stands for.
fn number(line: &str) -> Option<usize> {
    let number = match line.strip_prefix("//") {
        Some(doc) => doc.strip_prefix(['/', '!'])?.strip_prefix(DOC)?,
        None => line.strip_prefix(COMMENT)?.strip_prefix("!(")?.strip_suffix(");")?,
    };
    number.parse().ok()
}
