//! Against the goldens in `tests/goldens/chat`, rendered by the reference.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Golden {
    now: u64,
    calls: Vec<Call>,
}

#[derive(Deserialize)]
struct Call {
    messages: Vec<Message>,
    #[serde(default)]
    tools: Option<Vec<Json>>,
    #[serde(default)]
    template: Option<String>,
    #[serde(default)]
    variables: Map<String, Json>,
    #[serde(default)]
    add_generation_prompt: bool,
    #[serde(default)]
    continue_final_message: bool,
    text: Option<String>,
}

/// Renders every chat of a folder; gives how many there were, and how many the template refused.
fn check(name: &str) -> (usize, usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens/chat").join(name);
    let checkpoint = Checkpoint::open(folder.to_str().unwrap()).unwrap();
    let tokenizer = Tokenizer::from_checkpoint(&checkpoint).unwrap();
    let template = ChatTemplate::from_checkpoint(&checkpoint, &tokenizer).unwrap().unwrap();
    let golden: Golden = serde_json::from_slice(&std::fs::read(folder.join("chats.json")).unwrap()).unwrap();
    let mut refused = 0;
    for (index, call) in golden.calls.iter().enumerate() {
        let options = ChatOptions {
            template: call.template.clone(),
            tools: call.tools.clone(),
            documents: None,
            add_generation_prompt: call.add_generation_prompt,
            continue_final_message: call.continue_final_message,
            variables: call.variables.clone(),
            now: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(golden.now)),
        };
        match (template.render(&call.messages, &options), &call.text) {
            (Ok(text), Some(want)) => assert_eq!(text, *want, "{name} {index}"),
            (Err(error), None) => {
                refused += 1;
                assert!(error.to_string().contains("template"), "{error}");
            }
            (Ok(text), None) => panic!("{name} {index}: the reference refuses what gave {text}"),
            (Err(error), Some(_)) => panic!("{name} {index}: {error}"),
        }
    }
    (golden.calls.len(), refused)
}

#[test]
fn headers_with_tools_and_dates() {
    assert_eq!(check("headers"), (14, 2));
}

#[test]
fn chatml_with_tools_and_reasoning() {
    assert_eq!(check("chatml"), (16, 0));
}

#[test]
fn instructions_that_alternate() {
    assert_eq!(check("instructions"), (12, 3));
}

#[test]
fn contents_of_several_parts() {
    assert_eq!(check("parts"), (13, 2));
}

#[test]
fn values_as_python_writes_them() {
    assert_eq!(check("values"), (2, 0));
}

#[test]
fn several_templates_in_files_or_listed() {
    assert_eq!(check("several"), (4, 0));
    assert_eq!(check("listed"), (4, 0));
}

#[test]
fn wrong_templates_and_options_are_named() {
    assert!(
        ChatTemplate::from_source("{%}").is_err()
            && ChatTemplate::from_source("{% raw %}{%}{% endraw %}").is_ok()
    );
    let text = ChatTemplate::from_source("{% if %}").unwrap_err().to_string();
    assert!(text.contains("not Jinja") && text.contains("default"), "{text}");
    let template = ChatTemplate::from_source("{{ raise_exception('no ' ~ messages[0].role) }}").unwrap();
    let messages = [Message::user("Hello")];
    let text = template.render(&messages, &ChatOptions::default()).unwrap_err().to_string();
    assert!(text.contains("refuses them") && text.contains("no user"), "{text}");
    let named = ChatOptions { template: Some("rag".into()), ..ChatOptions::default() };
    let text = template.render(&messages, &named).unwrap_err().to_string();
    assert!(text.contains("no template `rag`") && text.contains("default"), "{text}");
    let both =
        ChatOptions { add_generation_prompt: true, continue_final_message: true, ..ChatOptions::default() };
    assert!(template.render(&messages, &both).is_err());
    assert!(template.render(&[], &ChatOptions::default()).is_err());
}

/// What becomes of a template.
fn rendered(source: &str) -> Result<String> {
    ChatTemplate::from_source(source)?.render(&[Message::user("Hello")], &ChatOptions::default())
}

#[test]
fn templates_that_never_end_are_stopped() {
    let start = std::time::Instant::now();
    let nested = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
    let endless = "{% macro m(n) %}{% for a in range(9) %}{{ m(n) }}{% endfor %}{% endmacro %}{{ m(1) }}";
    let text = rendered(nested).unwrap_err().to_string();
    assert!(text.contains("does not end within the instructions") && text.contains("default"), "{text}");
    assert!(rendered(endless).is_err());
    let writes = "{% for a in range(99999) %}{{ 'long' * 9999 }}{% endfor %}";
    let text = rendered(writes).unwrap_err().to_string();
    assert!(text.contains("writes more than 16777216 bytes"), "{text}");
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
}

#[test]
fn chats_get_instructions_by_their_length() {
    let each = "{% for m in messages %}{% for a in range(300) %}{% endfor %}{% endfor %}";
    let template = ChatTemplate::from_source(each).unwrap();
    let chat = vec![Message::user("Hello"); 2000];
    template.render(&chat, &ChatOptions::default()).unwrap();
}

#[test]
fn deep_nesting_is_refused() {
    for (open, close) in [("(", ")"), ("[", "]"), ("{% if 1 %}", "{% endif %}")] {
        let block = open.starts_with("{%");
        let source =
            [open.repeat(9_000).as_str(), if block { "" } else { "1" }, &close.repeat(9_000)].concat();
        let source = if block { source } else { format!("{{{{ {source} }}}}") };
        let text = rendered(&source).unwrap_err().to_string();
        assert!(text.contains("not Jinja") && text.contains("default"), "{text}");
    }
    // Chains are read without nesting, and nest only once they are read.
    assert_eq!(rendered(&format!("{{{{ 1{} }}}}", "+1".repeat(60_000))).unwrap(), "60001");
    assert_eq!(rendered(&format!("{{{{ {}1 }}}}", "not ".repeat(30_000))).unwrap(), "True");
    let long = rendered(&"{{ 1 }}".repeat(60_000)).unwrap_err().to_string();
    assert!(long.contains("420000 bytes; at most 131072"), "{long}");
    let grown = |end: &str| {
        let grow =
            "{% set ns = namespace(x=[]) %}{% for a in range(99999) %}{% set ns.x = [ns.x] %}{% endfor %}";
        rendered(&format!("{grow}{end}"))
    };
    assert_eq!(grown("done").unwrap(), "done");
    for end in ["{{ ns.x }}", "{{ ns.x | tojson }}", "{{ ns.x | string }}"] {
        let text = grown(end).unwrap_err().to_string();
        assert!(text.contains("nests more than 200 deep"), "{text}");
    }
    assert!(grown("{{ ns.x ~ '' }}").is_ok_and(|text| text.len() == 200_000));
}

#[test]
fn widths_are_bounded() {
    let wide = "99999999999999";
    for call in [
        format!("[1] | tojson(indent={wide})"),
        format!("'a' | indent({wide})"),
        format!("'a' | indent(width={wide})"),
        format!("[1] | batch({wide}, 0)"),
        format!("[1] | slice({wide}, 0)"),
        format!("'%{wide}d' | format(1)"),
        format!("'%-*d' | format({wide}, 1)"),
        format!("'{{:>{wide}}}'.format(1)"),
    ] {
        let text = rendered(&format!("{{{{ {call} }}}}")).unwrap_err().to_string();
        assert!(text.contains(&format!("of {wide}; at most 1000")), "{call}: {text}");
    }
    let fine = "{{ [1] | tojson(indent=2) }} {{ '%d, **%s**' | format(5000, 20250101) }} {{ '{}: {:>4}'.format(7777, 2) }}";
    assert_eq!(rendered(fine).unwrap(), "[\n  1\n] 5000, **20250101** 7777:    2");
}

#[test]
fn an_answer_is_begun_or_gone_on_with() {
    let options = ChatOptions::answering(&[Message::user("a")]);
    assert!(options.add_generation_prompt && !options.continue_final_message);
    let options = ChatOptions::answering(&[Message::user("a"), Message::assistant("b")]);
    assert!(!options.add_generation_prompt && options.continue_final_message);
}

#[test]
fn values_take_bounded_memory() {
    let start = std::time::Instant::now();
    let doubled = |operator: &str| {
        format!(
            "{{% set ns = namespace(x='12345678') %}}{{% for a in range(60) %}}{{% set ns.x = ns.x {operator} ns.x %}}{{% endfor %}}"
        )
    };
    let lists =
        "{% set ns = namespace(x=[1]) %}{% for a in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}";
    let kept = |value: &str| {
        format!(
            "{{% set ns = namespace(x=[]) %}}{{% for a in range(9999) %}}{{% set ns.x = ns.x + [{value}] %}}{{% endfor %}}"
        )
    };
    for (source, problem) in [
        (doubled("~"), "take more than 256 MB"),
        (doubled("+"), "take more than 256 MB"),
        (lists.to_owned(), "more than 1048576 elements"),
        ("{{ [1] * 99999999999 }}".to_owned(), "more than 1048576 elements"),
        ("{{ 99999999999 * [1] }}".to_owned(), "more than 1048576 elements"),
        (format!("{{% set x = {} %}}", "'x' * 99999999 ~ ".repeat(900) + "1"), "take more than 256 MB"),
        (
            format!("{{% if {} %}}a{{% endif %}}", ["('x') * 99999999"; 900].join(" ~ ")),
            "take more than 256 MB",
        ),
        (kept("'x' * 1000000"), "take more than 256 MB"),
        (kept("('x' * 1000000) | upper"), "take more than 256 MB"),
        ("{{ range(99999) | join('x' * 9999) }}".to_owned(), "take more than 256 MB"),
        ("{{ ('x' * 99999).join(range(99999)) }}".to_owned(), "take more than 256 MB"),
        ("{{ ('x' * 99999) | replace('x', 'y' * 99999) }}".to_owned(), "take more than 256 MB"),
        ("{{ ('x' * 99999).replace('', 'y' * 99999) }}".to_owned(), "take more than 256 MB"),
        ("{{ ('x' * 9999999) | list | length }}".to_owned(), "take more than 256 MB"),
        ("{{ (' ' * 9999999).split(' ') | length }}".to_owned(), "take more than 256 MB"),
        ("{{ (['x' * 9999] * 99999) | map('upper') | list | length }}".to_owned(), "take more than 256 MB"),
        ("{{ ('\n' * 999999) | indent(1000, true, true) }}".to_owned(), "take more than 256 MB"),
        ("{{ ('{0}' * 9999).format('x' * 99999) }}".to_owned(), "take more than 256 MB"),
        (
            "{% set x %}{% for a in range(99999) %}<raw>{% endfor %}{% endset %}"
                .replace("raw", &"x".repeat(9999)),
            "writes more than 16777216 bytes",
        ),
    ] {
        let text = rendered(&source).err().map_or_else(String::new, |error| error.to_string());
        assert!(text.contains(problem), "{source:.200}: {text}");
    }
    // Lists within lists, each twice: texts and comparisons that double with each.
    let twice = "{% set ns = namespace(x=[1], y=[1]) %}{% for a in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}";
    for end in ["{{ ns.x ~ '' }}", "{{ ns.x == ns.y }}", "{{ [ns.x] | join }}"] {
        let text = rendered(&format!("{twice}{end}")).unwrap_err().to_string();
        assert!(text.contains("a value takes more than 16777216 bytes"), "{end}: {text}");
    }
    assert!(start.elapsed().as_secs() < 120, "{:?}", start.elapsed());
}

#[test]
fn sorting_and_looking_up_take_bounded_time() {
    let start = std::time::Instant::now();
    let long = "(['x' * 999999] * 99999)";
    let deep =
        "{% set ns = namespace(x=[1]) %}{% for a in range(30) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}";
    let compared = "compares, sorts or looks up more than 256 MB";
    let taken = "values take more than 256 MB";
    let written = "a value takes more than 16777216 bytes";
    for (end, problem) in [
        (format!("{long} | sort"), compared),
        (format!("{long} | unique"), compared),
        (format!("{long} | max"), compared),
        (format!("{long} | min"), compared),
        (format!("{long} | map('string')"), taken),
        (format!("{long} | map('tojson')"), taken),
        (format!("{long} | map('escape')"), taken),
        (format!("{long} | map('length')"), taken),
        ("([{'a': 'x' * 9999}] * 99999) | sort(attribute='a')".to_owned(), compared),
        (format!("('x' * 999999) in {long}"), compared),
        (format!("{long} | select('equalto', 'x' * 999999)"), compared),
        (format!("{long} | select('upper')"), compared),
        ("range(99999) | list | select('in', range(99999) | list)".to_owned(), compared),
        ("([[ns.x]] * 9999) | sort".to_owned(), written),
        ("([[ns.x]] * 9999) | unique".to_owned(), written),
        ("{'a': [ns.x], 'b': [ns.x]} | dictsort(by='value')".to_owned(), written),
    ] {
        let problem_met = rendered(&format!("{deep}{{{{ ({end}) | list }}}}")).map(|text| text.len());
        let text = problem_met.unwrap_err().to_string();
        assert!(text.contains(problem), "{end}: {text}");
    }
    let again = |expression: &str| {
        let text = "{% set x = 'x' * 9999999 %}{% set ns = namespace(x=[]) %}{% for a in range(9999) %}";
        rendered(&format!("{text}{expression}{{% endfor %}}")).unwrap_err().to_string()
    };
    assert!(again("{% set ns.x = ns.x + [x[1:]] %}").contains(taken));
    assert!(again("{{ x is upper }}").contains(compared));
    assert!(again("{{ x | length }}").contains(taken));
    assert!(start.elapsed().as_secs() < 120, "{:?}", start.elapsed());
    let usual = "{{ ['b', 'a', 'B'] | sort }} {{ ['b', 'a', 'b'] | unique | list }} {{ [3, 1] | max }} {{ [3, 1] | min }} \
                 {{ [{'n': 2}, {'n': 1}] | sort(attribute='n') }} {{ {'b': 1, 'a': 2} | dictsort }} \
                 {{ [1, 2, 3] | select('in', [1, 3]) | list }} {{ [{'r': 'u'}, {'r': 'a'}] | selectattr('r', 'equalto', 'u') | list }} \
                 {{ (range(20000) | list | sort(reverse=true))[0] }}";
    let want =
        "['a', 'b', 'B'] ['b', 'a'] 3 1 [{'n': 1}, {'n': 2}] [['a', 2], ['b', 1]] [1, 3] [{'r': 'u'}] 19999";
    assert_eq!(rendered(usual).unwrap(), want);
}

#[test]
fn bounded_operators_are_those_of_jinja() {
    let source = "{{ 2 * 3 }} {{ 'ab' * 2 }} {{ 2 * 'ab' ~ 'c' }} {{ [1] * 2 + [3] }} {{ -2 * 3 }} {{ 2 ** 3 * 2 }} \
                  {{ (1 + 2) * 3 * 'x' }} {{ 1 + 2.5 }} {{ [1, 2] == [1, 2] }} {{ 1 < 2 < 3 }} {{ 'a' in ['a'] }} \
                  {{ 'aXbX'.replace('X', '-') | upper }} {{ 'a b'.split() | join('+') }} {{ 'abc'.count('') }} {{ none ~ 1 }}\
                  {% macro m(a, b=2 * 3) %}{{ a * b }}{% endmacro %} {{ m(2) }} {{ m(*[2, 5]) }}\
                  {% for x in [1, 2, 3] if x * 2 > 2 %} {{ x ~ loop.index }}{% else %}none{% endfor %}\
                  {% for x in [] %}{% else %} none{% endfor %} {{ 'y' if 1 * 1 == 1 and not 0 else 'n' }}\
                  {% set c %}raw{{ 1 + 1 }}{% endset %} {{ c * 2 }}\n";
    let want = "6 abab ababc [1, 1, 3] -6 16 xxxxxxxxx 3.5 True True True A-B- a+b 4 None1 12 10 21 32 none y raw2raw2";
    assert_eq!(rendered(source).unwrap(), want);
}

#[test]
fn long_chats_get_memory_by_their_length() {
    let source = "{% set ns = namespace(t='') %}{% for m in messages %}{% set c = m.content | trim | upper %}{% set ns.t = c ~ ns.t[:0] %}{{ (c ~ ns.t)[:1] }}{% endfor %}";
    let template = ChatTemplate::from_source(source).unwrap();
    let chat = vec![Message::user(&"x".repeat(1 << 20)); 64];
    assert_eq!(template.render(&chat, &ChatOptions::default()).unwrap().len(), 64);
}

#[test]
fn a_template_mentions_whole_names() {
    let template =
        ChatTemplate::from_source("{% if enable_thinking is defined %}{{ date_string }}{% endif %}").unwrap();
    assert!(template.mentions("enable_thinking") && template.mentions("date_string"));
    assert!(!template.mentions("thinking") && !template.mentions("date") && !template.mentions(""));
}
