//! What expressions become, and what is said of those that are wrong.

use serde_json::{Value as Json, json};

use super::{CLOSE, Expression, Item, Kind, Name, Names, OPEN, Wrong, bind, unbound};
use crate::spec::document::nearest_name;

/// A configuration and the variable `layer`.
struct Fields;

const FIELDS: [(&str, Kind, bool, &str); 18] = [
    ("hidden_size", Kind::Usize, false, "c.hidden_size"),
    ("num_hidden_layers", Kind::Usize, false, "c.num_hidden_layers"),
    ("num_attention_heads", Kind::Usize, false, "c.num_attention_heads"),
    ("head_dim", Kind::Usize, false, "c.head_dim()"),
    ("first_dense", Kind::I64, false, "c.first_dense"),
    ("every", Kind::Usize, false, "c.every"),
    ("scale", Kind::F64, false, "c.scale"),
    ("clip", Kind::F64, true, "c.clip"),
    ("window", Kind::Usize, true, "c.window"),
    ("n_group", Kind::Usize, true, "c.n_group"),
    ("use_window", Kind::Bool, false, "c.use_window"),
    ("scaled", Kind::Bool, true, "c.scaled"),
    ("method", Kind::Text, false, "c.method"),
    ("layer_types", Kind::List(Item::Text), true, "c.layer_types"),
    ("no_rope_layers", Kind::List(Item::Usize), true, "c.no_rope_layers"),
    ("thetas", Kind::List(Item::F64), false, "c.thetas"),
    ("text_config.width", Kind::Usize, false, "c.text_config.width"),
    ("rope_parameters", Kind::Other("rotary position embeddings"), false, "c.rope_parameters"),
];

impl Names for Fields {
    fn name(&self, path: &str) -> Result<Name, Wrong> {
        if path == "layer" {
            let rust = format!("{OPEN}layer{CLOSE}");
            return Ok(Name { kind: Kind::Usize, optional: false, rust, min: 0, of: vec![] });
        }
        let Some((_, kind, optional, rust)) = FIELDS.iter().find(|(name, ..)| *name == path) else {
            let nearest = nearest_name(path, FIELDS.map(|(name, ..)| name)).map(str::to_owned);
            return Err(Wrong { message: format!("`{path}` is not a field of config"), nearest });
        };
        let of = match path {
            "layer_types" => vec!["full_attention".to_owned(), "sliding_attention".to_owned()],
            "method" => vec!["greedy".to_owned(), "grouped".to_owned()],
            _ => vec![],
        };
        let min = i64::from(matches!(path, "num_attention_heads" | "num_hidden_layers" | "hidden_size"));
        Ok(Name { kind: *kind, optional: *optional, rust: (*rust).to_owned(), min, of })
    }
}

fn rust(text: &str, kind: Kind, nullable: bool) -> Result<String, Wrong> {
    let checked = Expression::parse(text)?.check(text, &Fields, kind, nullable)?;
    Ok(bind(&checked.rust(kind, nullable), [("layer", "index")]))
}

fn count(text: &str) -> String {
    rust(text, Kind::Usize, false).unwrap()
}

fn number(text: &str) -> String {
    rust(text, Kind::F64, false).unwrap()
}

fn flag(text: &str) -> String {
    rust(text, Kind::Bool, false).unwrap()
}

fn wrong(text: &str, kind: Kind) -> String {
    let Wrong { message, nearest } = rust(text, kind, false).unwrap_err();
    nearest.map_or_else(|| message.clone(), |nearest| format!("{message}; did you mean `{nearest}`?"))
}

#[test]
fn counts() {
    assert_eq!(count("hidden_size"), "c.hidden_size");
    assert_eq!(count("hidden_size / num_attention_heads"), "c.hidden_size / c.num_attention_heads");
    assert_eq!(count("(hidden_size + 2) * text_config.width"), "(c.hidden_size + 2) * c.text_config.width");
    assert_eq!(
        count("hidden_size - (4 - every) - 1"),
        "c.hidden_size.saturating_sub(4_usize.saturating_sub(c.every)).saturating_sub(1)"
    );
    assert_eq!(count("n_group ?? 1"), "c.n_group.unwrap_or(1)");
    assert_eq!(count("n_group ?? head_dim"), "c.n_group.unwrap_or_else(|| c.head_dim())");
    assert_eq!(count("max(every, 1)"), "c.every.max(1)");
    assert_eq!(
        count("n_group ?? 1 if method == \"grouped\" else 1"),
        "if c.method == \"grouped\" { c.n_group.unwrap_or(1) } else { 1 }"
    );
    assert_eq!(
        count("head_dim if use_window else 1 if scale > 0 else num_attention_heads"),
        "if c.use_window { c.head_dim() } else if c.scale > 0.0 { 1 } else { c.num_attention_heads }"
    );
}

#[test]
fn numbers() {
    assert_eq!(number("1"), "1.0");
    assert_eq!(number("1e6"), "1e6");
    assert_eq!(number("sqrt(hidden_size)"), "(c.hidden_size as f64).sqrt()");
    assert_eq!(number("hidden_size ** -0.5"), "(c.hidden_size as f64).powf(-0.5)");
    assert_eq!(number("2 ** -3"), "2.0_f64.powf(-3.0)");
    assert_eq!(number("1 / scale"), "1.0 / c.scale");
    assert_eq!(
        number("hidden_size / num_attention_heads"),
        "c.hidden_size as f64 / c.num_attention_heads as f64"
    );
    assert_eq!(
        number("(window ?? hidden_size) / hidden_size"),
        "c.window.unwrap_or(c.hidden_size) as f64 / c.hidden_size as f64"
    );
    assert_eq!(
        number("clip / sqrt(num_hidden_layers) ?? 1"),
        "c.clip.map_or(1.0, |clip| clip / (c.num_hidden_layers as f64).sqrt())"
    );
    assert_eq!(
        number("(scale if use_window else 1) / (layer + 1)"),
        "(if c.use_window { c.scale } else { 1.0 }) / (index as f64 + 1.0)"
    );
    assert_eq!(number("-scale * -2"), "-c.scale * -2.0");
}

#[test]
fn truths() {
    assert_eq!(flag("true"), "true");
    assert_eq!(flag("use_window and not (scaled ?? false)"), "c.use_window && !c.scaled.unwrap_or(false)");
    assert_eq!(flag("(layer + 1) % 4 != 0"), "!(index + 1).is_multiple_of(4)");
    assert_eq!(flag("(layer + 1) % 4 == 0"), "(index + 1).is_multiple_of(4)");
    assert_eq!(flag("layer > 0 and (layer + 1) % 6 != 0"), "index > 0 && !(index + 1).is_multiple_of(6)");
    assert_eq!(
        flag("(layer + 1) % num_hidden_layers == 0"),
        "(index + 1).is_multiple_of(c.num_hidden_layers)"
    );
    assert_eq!(flag("window is null or window is not null"), "c.window.is_none() || c.window.is_some()");
    assert_eq!(
        flag("not (use_window or every > 1) and use_window"),
        "!(c.use_window || c.every > 1) && c.use_window"
    );
    assert_eq!(flag("layer < first_dense"), "(index as i64) < c.first_dense");
    assert_eq!(
        flag("first_dense < 0 or layer <= first_dense"),
        "c.first_dense < 0 || index as i64 <= c.first_dense"
    );
    assert_eq!(
        flag("layer not in no_rope_layers"),
        "!c.no_rope_layers.as_ref().is_some_and(|list| list.contains(&index))"
    );
    assert_eq!(
        flag("\"full_attention\" in layer_types"),
        "c.layer_types.as_ref().is_some_and(|list| list.iter().any(|value| value == \"full_attention\"))"
    );
    assert_eq!(
        flag("layer_types[layer] == \"sliding_attention\" ?? layer % 2 == 0"),
        "nn::is_layer_kind(&c.layer_types, index, \"sliding_attention\").unwrap_or(index.is_multiple_of(2))"
    );
    assert_eq!(
        flag("no_rope_layers[layer] == 1 ?? (layer + 1) % 4 != 0"),
        "nn::of_layer(&c.no_rope_layers, index).map_or(!(index + 1).is_multiple_of(4), |value| value == 1)"
    );
    assert_eq!(flag("window > 2 ?? false"), "c.window.is_some_and(|window| window > 2)");
}

#[test]
fn what_may_be_null_is_an_option() {
    let option = |text| rust(text, Kind::F64, true).unwrap();
    assert_eq!(option("clip"), "c.clip");
    assert_eq!(option("scale"), "Some(c.scale)");
    assert_eq!(option("window"), "c.window.map(|window| window as f64)");
    assert_eq!(option("null if use_window else 1"), "if c.use_window { None } else { Some(1.0) }");
    assert_eq!(option("thetas[layer]"), "nn::of_layer([&c.thetas], index)");
    assert_eq!(option("clip ?? window"), "c.clip.or(c.window.map(|window| window as f64))");
    assert_eq!(rust("window / 2", Kind::Usize, true).unwrap(), "c.window.map(|window| window / 2)");
}

#[test]
fn wrong_names_are_named_with_the_nearest() {
    assert_eq!(
        wrong("hiden_size * 2", Kind::Usize),
        "`hiden_size` is not a field of config; did you mean `hidden_size`?"
    );
    assert_eq!(
        wrong("sqrd(2)", Kind::F64),
        "`sqrd` is not a function; expected one of min, max, sqrt; did you mean `sqrt`?"
    );
    assert_eq!(
        wrong("layer_types[layer] == \"sliding_atention\" ?? true", Kind::Bool),
        "`layer_types[layer]` is never \"sliding_atention\"; it is one of full_attention, sliding_attention; did you mean `sliding_attention`?"
    );
    assert_eq!(
        wrong("method == 'gready'", Kind::Bool),
        "`method` is never \"gready\"; it is one of greedy, grouped; did you mean `greedy`?"
    );
}

#[test]
fn wrong_types_are_told() {
    assert_eq!(wrong("scale", Kind::Usize), "`scale` is a number; expected a count");
    assert_eq!(wrong("use_window + 1", Kind::Usize), "`use_window` is true or false, and `+` takes numbers");
    assert_eq!(wrong("hidden_size", Kind::Bool), "`hidden_size` is a count; expected true or false");
    assert_eq!(
        wrong("window", Kind::Usize),
        "`window` may be null; say what stands for it then: `window ?? …`"
    );
    assert_eq!(
        wrong("window + n_group ?? 1", Kind::Usize),
        "both `window` and `n_group` may be null; say with `??` what stands for one of them"
    );
    assert_eq!(wrong("scale ?? 1", Kind::F64), "`scale` is never null; `??` has nothing to stand for");
    assert_eq!(wrong("scale is null", Kind::Bool), "`scale` is never null; `is null` is always false");
    assert_eq!(
        wrong("layer % every == 0", Kind::Bool),
        "`every` may be 0, and is divided by; give it `min: 1` in config"
    );
    assert_eq!(wrong("method == 1", Kind::Bool), "`method == 1` puts a text beside a count");
    assert_eq!(
        wrong("method in no_rope_layers", Kind::Bool),
        "`method` is a text, and an element of `no_rope_layers` a count"
    );
    assert_eq!(
        wrong("rope_parameters == 1", Kind::Bool),
        "`rope_parameters` is rotary position embeddings, which cannot be compared"
    );
    assert_eq!(wrong("hidden_size[1]", Kind::Usize), "`hidden_size` is a count; expected a list");
    assert_eq!(wrong("min(1)", Kind::Usize), "`min` takes 2 numbers, found 1");
    assert_eq!(wrong("1 if every else 2", Kind::Usize), "`every` is a count; expected true or false");
}

#[test]
fn rust_is_no_expression() {
    assert_eq!(
        wrong("c.hidden_size", Kind::Usize),
        "`c.hidden_size` is not a field of config; did you mean `hidden_size`?"
    );
    assert_eq!(
        wrong("nn::is_sliding(&c.layer_types, index)", Kind::Bool),
        "`:` is not a sign of expressions; expressions are no Rust"
    );
    assert_eq!(
        wrong("use_window && scaled", Kind::Bool),
        "`&` is not a sign of expressions; `and` joins conditions"
    );
    assert_eq!(
        wrong("!use_window", Kind::Bool),
        "`!` is not a sign of expressions; `not` turns a condition round"
    );
    assert_eq!(
        wrong("clip.unwrap_or(0.0)", Kind::F64),
        "`clip.unwrap_or` is a method; expressions have none"
    );
    assert_eq!(
        wrong("hidden_size as f64", Kind::F64),
        "`as` stands behind what is already an expression, `hidden_size`"
    );
    assert_eq!(wrong("index >= 1", Kind::Bool), "`index` is not a field of config");
}

#[test]
fn broken_syntax_is_told() {
    assert_eq!(wrong("", Kind::Bool), "is empty");
    assert_eq!(wrong("1 +", Kind::Usize), "`1 +` ends where a name or a number is expected");
    assert_eq!(wrong("(1", Kind::Usize), "expected `)`, found the end in `(1`");
    assert_eq!(
        wrong("1 < layer < 3", Kind::Bool),
        "`1 < layer < 3` has two comparisons; join them with `and`"
    );
    assert_eq!(wrong("method == 'x", Kind::Bool), "opens a text with ' and never closes it");
    assert_eq!(wrong("1 if use_window", Kind::Usize), "expected `else`, found the end in `1 if use_window`");
    assert_eq!(wrong("or 1", Kind::Bool), "expected a name or a number, found `or`");
    assert_eq!(wrong(&"(".repeat(500), Kind::Bool), "is nested too deeply");
}

#[test]
fn variables_are_bound_by_the_template() {
    let text = "layer == 0";
    let rust = Expression::parse(text)
        .unwrap()
        .check(text, &Fields, Kind::Bool, false)
        .unwrap()
        .rust(Kind::Bool, false);
    assert_eq!(unbound(&rust), Some("layer"));
    let bound = bind(&rust, [("layer", "view.index")]);
    assert_eq!((bound.as_str(), unbound(&bound)), ("view.index == 0", None));
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Nothing that is typed makes the parser panic, and what it takes has Rust that could be parsed.
        #[test]
        fn any_text_is_parsed_or_refused(text in "[a-z0-9_ .+*/%<>=!?()\\[\\]\"'é-]{0,40}") {
            if let Ok(rust) = rust(&text, Kind::Bool, true) {
                prop_assert!(syn::parse_str::<syn::Expr>(&rust).is_ok(), "{text} gave {rust}");
            }
        }

        /// Numbers of fields and operators keep their order in Rust.
        #[test]
        fn sums_and_products_parse(signs in proptest::collection::vec("[-+*/]", 1..6)) {
            let text = signs.iter().fold("scale".to_owned(), |text, sign| format!("({text}) {sign} clip ?? 2"))
                .replace("clip ?? 2", "hidden_size");
            let rust = rust(&text, Kind::F64, false).unwrap();
            prop_assert!(syn::parse_str::<syn::Expr>(&rust).is_ok(), "{text} gave {rust}");
        }
    }
}

#[test]
fn values_follow_the_fields() {
    let field = |name: &str| match name {
        "hidden_size" => Some(json!(64)),
        "heads" => Some(json!(4)),
        "kinds" => Some(json!(["a", "b"])),
        "absent" => Some(Json::Null),
        _ => None,
    };
    let value = |text: &str| Expression::parse(text).unwrap().value(&field);
    assert_eq!(value("hidden_size / heads - 1"), Some(json!(15.0)));
    assert_eq!(value("min(heads, 3) ** 2 % 5"), Some(json!(4.0)));
    assert_eq!(value("absent ?? heads"), Some(json!(4)));
    assert_eq!(value("absent * 2 ?? 7"), Some(json!(7.0)));
    assert_eq!(value("1 if heads > 3 and absent is null else 2"), Some(json!(1.0)));
    assert_eq!(value("kinds[1] == \"b\""), Some(json!(true)));
    assert_eq!(value("kinds[2]"), Some(Json::Null));
    assert_eq!(value("\"a\" in kinds"), Some(json!(true)));
    assert_eq!(value("other + 1"), None);
}
