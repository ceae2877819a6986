//! Lines as rustfmt would break them at the workspace's width: prettyplease breaks earlier, and chains before calls.

/// The width of the workspace's `rustfmt.toml`.
const WIDTH: usize = 110;

/// Joins what prettyplease broke and fits on a line, from the inside out.
pub(crate) fn relax(text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(references).collect();
    // What is between the lines of a text that has several is left as it is.
    if lines.iter().any(|line| !whole_texts(line) && !line.trim_start().starts_with("//")) {
        return text.to_owned();
    }
    loop {
        let before = lines.len();
        join_receivers(&mut lines);
        join_lists(&mut lines);
        join_chains(&mut lines);
        join_only_arguments(&mut lines);
        if lines.len() == before {
            return lines.join("\n") + "\n";
        }
    }
}

/// References in the arguments of macros, which are printed as any other tokens: `dims![& batch, 1]`.
fn references(line: &str) -> String {
    if !line.contains("& ") || line.contains("//") {
        return line.to_owned();
    }
    let joined = |(index, part): (usize, &str)| match index % 2 {
        0 => part.replace("[& ", "[&").replace("(& ", "(&").replace(", & ", ", &"),
        _ => part.to_owned(),
    };
    line.split('"').enumerate().map(joined).collect::<Vec<_>>().join("\"")
}

/// `Err(`, `format!(` … `),` and `);` become `Err(format!(` … `));`.
fn join_only_arguments(lines: &mut Vec<String>) {
    let mut index = 0;
    while index + 1 < lines.len() {
        if let Some(close) = only_argument(lines, index) {
            let end = lines.remove(close + 1);
            lines[close] = format!("{}{}", lines[close].trim_end_matches(','), end.trim_start());
            let call = lines.remove(index + 1);
            lines[index].push_str(call.trim_start());
            for line in &mut lines[index + 1..close] {
                *line = line.strip_prefix("    ").unwrap_or(line).to_owned();
            }
        }
        index += 1;
    }
}

/// The line that closes the only argument of the call that this line opens, if that argument is a call.
fn only_argument(lines: &[String], index: usize) -> Option<usize> {
    let depth = indent(&lines[index]);
    let opens = |line: &String| line.ends_with('(') && plain(line) && !line.trim_start().starts_with('#');
    if !opens(&lines[index]) || !opens(&lines[index + 1]) || indent(&lines[index + 1]) != depth + 4 {
        return None;
    }
    let inner = index + 2..lines.len();
    let close = inner.clone().find(|&at| indent(&lines[at]) <= depth + 4)?;
    let whole = lines[index + 2..close].iter().all(|line| plain(line));
    let ends = matches!(lines[close].trim_start(), ")" | "),")
        && lines.get(close + 1)?.trim_start().starts_with(')');
    (whole && ends && indent(&lines[close + 1]) == depth).then_some(close)
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Whether a line is code that may be joined, and no comment.
fn plain(line: &str) -> bool {
    let code = line.trim_start();
    !code.is_empty() && !code.starts_with("//") && !code.starts_with("__comment!")
}

/// Whether every text that starts in a line ends in it.
fn whole_texts(line: &str) -> bool {
    if !line.contains('"') {
        return true;
    }
    let quotes = line.replace("\\\\", "").replace("\\\"", "").replace("'\"'", "").matches('"').count();
    quotes.is_multiple_of(2)
}

/// `let x = g` and `    .embedding(` become `let x = g.embedding(`, and what follows moves to the left.
fn join_receivers(lines: &mut Vec<String>) {
    let mut index = 0;
    while index + 1 < lines.len() {
        if let Some(end) = receiver(lines, index) {
            let call = lines.remove(index + 1);
            lines[index].push_str(call.trim_start());
            for line in &mut lines[index + 1..end - 1] {
                *line = line.strip_prefix("    ").unwrap_or(line).to_owned();
            }
        }
        index += 1;
    }
}

/// Where the only call of a chain ends (one past its last line), if the chain starts in this line.
fn receiver(lines: &[String], index: usize) -> Option<usize> {
    let (line, call) = (&lines[index], &lines[index + 1]);
    let depth = indent(line) + 4;
    let name = line.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
    let short = !name.is_empty() && name.len() <= 4 && plain(line) && plain(call);
    if !short || indent(call) != depth || !call.trim_start().starts_with('.') || !call.ends_with('(') {
        return None;
    }
    let close = (index + 2..lines.len()).find(|&at| indent(&lines[at]) <= depth && !lines[at].is_empty())?;
    let ends = indent(&lines[close]) == depth && lines[close].trim_start().starts_with(')');
    let alone = lines
        .get(close + 1)
        .is_none_or(|next| !(indent(next) == depth && next.trim_start().starts_with('.')));
    (ends && alone).then_some(close + 1)
}

/// `f(`, arguments and `)` become one line where they fit; so do lists in brackets.
fn join_lists(lines: &mut Vec<String>) {
    let mut index = 0;
    while index < lines.len() {
        if let Some((end, joined)) = list(lines, index) {
            lines.splice(index..=end, [joined]);
        } else {
            index += 1;
        }
    }
}

fn list(lines: &[String], index: usize) -> Option<(usize, String)> {
    let line = &lines[index];
    let close = match line.chars().last()? {
        '(' => ')',
        '[' => ']',
        '{' if is_literal(lines, index) => '}',
        _ => return None,
    };
    // Attributes keep a line for each of their parts.
    if !plain(line) || line.trim_start().starts_with('#') {
        return None;
    }
    let depth = indent(line);
    let end = (index + 1..lines.len()).find(|&at| indent(&lines[at]) <= depth)?;
    if end == index + 1 || !lines[end].trim_start().starts_with(close) {
        return None;
    }
    let inner = &lines[index + 1..end];
    // Only elements that are one line each: a block or a nested list stays as it is.
    if inner
        .iter()
        .any(|line| indent(line) != depth + 4 || !plain(line) || line.contains('{') && !balanced(line))
    {
        return None;
    }
    let elements: Vec<_> = inner.iter().map(|line| line.trim()).collect();
    let mut text = String::new();
    for element in &elements {
        // A method call that the printer moved to a line of its own.
        let space =
            if text.is_empty() || element.starts_with('.') && !element.starts_with("..") { "" } else { " " };
        text.push_str(space);
        text.push_str(element);
    }
    let elements = text;
    let elements = elements.strip_suffix(',').unwrap_or(&elements);
    let space = if close == '}' { " " } else { "" };
    let joined = format!("{line}{space}{elements}{space}{}", lines[end].trim_start());
    (joined.chars().count() <= WIDTH).then_some((end, joined))
}

/// Whether the brace that ends this line opens the fields of a value.
fn is_literal(lines: &[String], index: usize) -> bool {
    let line = lines[index].trim_start();
    let first = line.split(' ').next().unwrap_or_default();
    let keyword = [
        "pub", "struct", "enum", "union", "impl", "trait", "mod", "fn", "match", "if", "for", "while", "loop",
    ];
    let depth = indent(&lines[index]) + 4;
    let field = |line: &str| {
        let name: String =
            line.chars().take_while(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '_').collect();
        let rest = &line[name.len()..];
        line.starts_with("..")
            || !name.is_empty() && (rest == "," || rest.starts_with(": ") && rest.ends_with(','))
    };
    let inner: Vec<_> = lines[index + 1..].iter().take_while(|line| indent(line) >= depth).collect();
    !keyword.contains(&first)
        && !line.contains("=>")
        && !inner.is_empty()
        && inner.iter().all(|line| field(line.trim_start()))
}

fn balanced(line: &str) -> bool {
    line.matches('{').count() == line.matches('}').count()
}

/// A chain of calls becomes one line where it fits and ends a statement.
fn join_chains(lines: &mut Vec<String>) {
    let mut index = 0;
    while index + 1 < lines.len() {
        let depth = indent(&lines[index]) + 4;
        let links = lines[index + 1..]
            .iter()
            .take_while(|line| indent(line) == depth && line.trim_start().starts_with('.') && plain(line))
            .count();
        let end = index + links;
        let last = &lines[end];
        let whole = links > 0 && plain(&lines[index]) && !last.ends_with(['(', '{', '[', '|']);
        let next = lines.get(end + 1).map_or(0, |next| indent(next));
        if whole && next < depth {
            let rest: String = lines[index + 1..=end].iter().map(|line| line.trim()).collect();
            let joined = format!("{}{rest}", lines[index]);
            if joined.chars().count() <= WIDTH {
                lines.splice(index..=end, [joined]);
                continue;
            }
        }
        index += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_fit_are_one_line() {
        let text = "fn a(\n    g: &mut Graph,\n    c: &Config,\n) -> Result<()> {\n    let words = g\n        .embedding(\n            \
                    &w,\n            c.size,\n        )?;\n    g.x(1)\n}\n";
        insta::assert_snapshot!(relax(text), @r"
            fn a(g: &mut Graph, c: &Config) -> Result<()> {
                let words = g.embedding(&w, c.size)?;
                g.x(1)
            }
            ");
    }

    #[test]
    fn calls_that_do_not_fit_stay_apart() {
        let long = "x".repeat(60);
        let text = format!(
            "fn a() {{\n    let words = g\n        .embedding(\n            {long},\n            {long},\n        )?;\n}}\n"
        );
        insta::assert_snapshot!(relax(&text), @r"
            fn a() {
                let words = g.embedding(
                    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx,
                    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx,
                )?;
            }
            ");
    }

    #[test]
    fn references_in_macros_stand_by_what_they_name() {
        let text = "let x = g.input(\"a, & b\", dims![& batch, 1, & tiles]) & y;\n";
        assert_eq!(relax(text), "let x = g.input(\"a, & b\", dims![&batch, 1, &tiles]) & y;\n");
    }

    #[test]
    fn texts_and_comments_are_left_alone() {
        let text =
            "const A: &[&str] = &[\n    // One.\n    \"one\",\n];\nconst B: &str = \"a(\n    b\n)\";\n";
        assert_eq!(relax(text), text);
    }
}
