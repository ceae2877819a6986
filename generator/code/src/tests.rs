//! What is kept, imported and printed.

use crate::{Choice, Code, parse};

fn imported(text: &str, uses: &[(&str, &str)]) -> Code {
    let mut code = parse(text).unwrap();
    code.prune();
    code.import(&uses.iter().map(|&(name, path)| (name.to_owned(), path.to_owned())).collect());
    code
}

fn print(text: &str, uses: &[(&str, &str)]) -> String {
    imported(text, uses).print()
}

/// The lines that import, but for those of `own`.
fn uses(text: &str, uses: &[(&str, &str)]) -> Vec<String> {
    print(text, uses)
        .lines()
        .filter(|line| line.starts_with("use ") && !line.starts_with("use own"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn what_nobody_calls_is_left_out() {
    let text = "pub fn a() { b(); T::new(); } fn b() {} fn c() { d() } fn d() { c() }
        struct T; impl T { fn new() -> T { T } fn other() {} } struct U; impl U { fn x() {} }";
    insta::assert_snapshot!(print(text, &[]), @r"
        pub fn a() {
            b();
            T::new();
        }

        fn b() {}

        struct T;

        impl T {
            fn new() -> T {
                T
            }
        }
        ");
}

#[test]
fn imports_are_what_the_code_names() {
    let text = "//! A module.\n\n/// Builds.\npub fn a(g: &mut Graph) { nn::mask(g); }";
    let uses = [
        ("Config", "crate::Config"),
        ("Graph", "weft::graph::Graph"),
        ("Scope", "weft::graph::Scope"),
        ("nn", "weft::nn::self"),
    ];
    insta::assert_snapshot!(print(text, &uses), @r"
        //! A module.

        use weft::graph::Graph;
        use weft::nn;

        /// Builds.
        pub fn a(g: &mut Graph) {
            nn::mask(g);
        }
        ");
}

#[test]
fn names_that_something_else_stands_for_are_not_imported() {
    let paths = [("Input", "weft::graph::Input"), ("dims", "weft::dims"), ("ends", "weft::text::ends")];
    let uses = |text: &str| uses(text, &paths);
    for text in [
        "pub fn a(x: Kind) { Kind::Input(x.Input); x.ends(1); text::ends(2); let dims = x; }",
        "pub struct Input; pub fn ends(x: Input) { ends(x); }",
        "use own::{Input, ends}; pub fn a(x: Input) { ends(x); }",
        "pub fn a(x: usize) { let ends = |x| x; ends(x); }",
        "pub fn a() { let x = ends; x != dims }",
    ] {
        assert!(uses(text).is_empty(), "{text}: {:?}", uses(text));
    }
    assert_eq!(uses("pub fn a() { let Input { x, .. } = y; }"), ["use weft::graph::Input;"]);
    assert_eq!(uses("pub fn a() { x(0..Input); b(..Input::new(dims![1])) }").len(), 2);
    assert_eq!(uses("impl X for Y { type Input = Input; }"), ["use weft::graph::Input;"]);
    assert_eq!(uses("pub fn a<T: X>(i: B<T>) { vec![ends(i)] }"), ["use weft::text::ends;"]);
}

#[test]
fn a_name_of_another_path_is_renamed() {
    let paths = [("Config", "crate::TextConfig as Config"), ("nn", "weft::nn::self"), ("A", "weft::nn::A")];
    let text = "pub fn a(c: &Config) { nn::mask(A) }";
    assert_eq!(uses(text, &paths), ["use weft::nn::{self, A};", "use crate::TextConfig as Config;"]);
}

#[test]
fn names_that_nothing_stands_for_are_found() {
    let unknown = |text: &str| {
        let code = imported(text, &[("Graph", "weft::graph::Graph")]);
        code.unknown().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(unknown("pub fn a(g: &Grid, t: Tensor) -> Vec<X::Y> { Self::B }"), ["Grid", "Tensor", "X"]);
    let known = "use own::A; pub enum B { C, D } pub struct E<F, G>(F, G); impl<H: Copy> I for E<H, H> {
        const J: usize = 0; fn k<L>(l: L) -> Result<L> where A: M { const N: usize = 1; Some(N); C; l }
        }";
    assert_eq!(unknown(known), ["I", "M"]);
    assert!(unknown("#[derive(Clone, Debug)] pub struct A(weft::Graph, Graph);").is_empty());
}

#[test]
fn comments_stay() {
    let text = "// Before.\npub fn a() {\n    // [batch, 1]\n    let x = 1;\n    x\n}\n";
    insta::assert_snapshot!(print(text, &[]), @r"
        // Before.
        pub fn a() {
            // [batch, 1]
            let x = 1;
            x
        }
        ");
}

#[test]
fn errors_show_the_line() {
    let error = parse("fn a() {\n    let x = ;\n}\n").err().unwrap();
    assert_eq!((error.message.as_str(), error.line.as_str()), ("expected an expression", "let x = ;"));
}

#[test]
fn names_of_children_are_not_those_of_siblings() {
    let code =
        parse("fn a(i: text::Inputs) { super::text::encoder(text::Inputs::new()); if x { super::mask() } }")
            .unwrap();
    let names = |path: &[&str]| code.names_of(path).into_iter().collect::<Vec<_>>();
    assert_eq!(names(&["text"]), ["Inputs", "new"]);
    assert_eq!(names(&["super", "text"]), ["encoder"]);
    assert_eq!(names(&["super"]), ["encoder", "mask", "text"]);
    assert!(names(&["vision"]).is_empty());
}

#[test]
fn modules_show_what_is_named_and_its_types_and_inner_ones_to_the_whole_graph() {
    let enclosed = |depth| {
        let text = "struct Inputs { ids: Ids }\nstruct Ids { all: Vec<Id> }\nstruct Id;\nstruct Other;\nfn other() {}";
        let mut code = parse(text).unwrap();
        code.enclose(&["A module.".to_owned()], &["Inputs".to_owned()].into(), depth);
        code.prune();
        code.print()
    };
    insta::assert_snapshot!(enclosed(1), @r"
        //! A module.

        pub(super) struct Inputs {
            pub(super) ids: Ids,
        }

        pub(super) struct Ids {
            pub(super) all: Vec<Id>,
        }

        pub(super) struct Id;
        ");
    assert_eq!(enclosed(2), enclosed(1).replace("pub(super)", "pub(in crate::graph)"));
}

/// The module that stands for two, as source with the names of the types that they share; or why there is none.
fn dispatched(first: &str, second: &str, named: &[&str]) -> Result<(String, Vec<String>), String> {
    let (first, second) = (parse(first).unwrap(), parse(second).unwrap());
    let choices = [
        Choice { module: "bert", variant: "Bert", code: &first },
        Choice { module: "gpt2", variant: "Gpt2", code: &second },
    ];
    let named = named.iter().map(|&name| name.to_owned()).collect();
    let (code, types) = Code::dispatch(&choices, &named)
        .map_err(|differs| format!("{} {}", differs.module, differs.problem))?;
    Ok((code.print(), types.into_iter().collect()))
}

#[test]
fn a_module_that_is_one_of_several_calls_the_chosen_one() {
    let bert = "/// What it reads.\nstruct Inputs { ids: Tensor, cache: Cache }

        struct Cache;

        impl Inputs { fn new(g: &mut Graph, c: &Config) -> Self { Self { ids: g.ids(c.size), cache: Cache } } }

        /// Hidden states.
        fn encoder(g: &mut Graph, c: &Config, mut x: Tensor, inputs: &Inputs) -> Tensor { layer(x) }

        fn layer(x: Tensor) -> Tensor { x }

        /// Nothing.
        fn unused(_: &mut Graph, _: &Config, _: &Scope) {}"
        .replace("\n        ", "\n");
    let gpt2 = bert
        .replace("layer(x)", "x")
        .replace("Nothing.", "The norm.")
        .replace("_: &mut Graph, _: &Config, _: &Scope", "g: &mut Graph, _: &Config, w: &Scope");
    let (text, types) = dispatched(&bert, &gpt2, &["Inputs", "new", "encoder", "unused"]).unwrap();
    assert_eq!(types, ["Cache", "Inputs"]);
    insta::assert_snapshot!(text, @r"
        /// What it reads.
        struct Inputs {
            ids: Tensor,
            cache: Cache,
        }

        struct Cache;

        impl Inputs {
            fn new(g: &mut Graph, c: &Config) -> Self {
                Self { ids: g.ids(c.size), cache: Cache }
            }
        }

        /// Hidden states.
        fn encoder(g: &mut Graph, c: &Config, x: Tensor, inputs: &Inputs) -> Tensor {
            match c {
                Config::Bert(c) => bert::encoder(g, c, x, inputs),
                Config::Gpt2(c) => gpt2::encoder(g, c, x, inputs),
            }
        }

        /// `unused` of the model that `c` is of.
        fn unused(g: &mut Graph, c: &Config, w: &Scope) {
            match c {
                Config::Bert(c) => bert::unused(g, c, w),
                Config::Gpt2(c) => gpt2::unused(g, c, w),
            }
        }
        ");
    let mut rest = parse(&bert).unwrap();
    rest.without(&types.into_iter().collect());
    assert!(!rest.print().contains("Inputs {"));
}

#[test]
fn modules_that_differ_cannot_stand_for_each_other() {
    let plain = "fn a(g: &mut Graph, c: &Config) -> Tensor { g.a(c) }";
    let wrong = |other: &str| dispatched(plain, other, &["a"]).unwrap_err();
    insta::assert_snapshot!(wrong("fn b(g: &mut Graph, c: &Config) -> Tensor { g.a(c) }"), @"gpt2 has no `a`, which `bert` has");
    insta::assert_snapshot!(wrong("fn a(g: &mut Graph, c: &Config, x: &Tensor) -> Tensor { g.a(c) }"), @"gpt2 has `fn a(g: &mut Graph, c: &Config, x: &Tensor) -> Tensor`, where `bert` has `fn a(g: &mut Graph, c: &Config) -> Tensor`");
    insta::assert_snapshot!(wrong("fn a(g: &mut Graph, c: &Config) -> Result<Tensor> { g.a(c) }"), @"gpt2 has `fn a(g: &mut Graph, c: &Config) -> Result<Tensor>`, where `bert` has `fn a(g: &mut Graph, c: &Config) -> Tensor`");
    let more = dispatched(plain, &format!("{plain} fn b(c: &Config) {{}}"), &["a", "b"]);
    insta::assert_snapshot!(more.unwrap_err(), @"bert has no `b`, which `gpt2` has");
    let free = "fn a(g: &mut Graph, x: &Tensor) -> Tensor { x.clone() }";
    insta::assert_snapshot!(dispatched(free, free, &["a"]).unwrap_err(), @"bert has `fn a(g: &mut Graph, x: &Tensor) -> Tensor`, which takes no `c: &Config` that could choose it");
    let shape = "struct Size { rows: usize } fn a(c: &Config) -> Size { c.size() }";
    let other = shape.replace("rows", "columns");
    insta::assert_snapshot!(dispatched(shape, &other, &["a"]).unwrap_err(), @"gpt2 has another `Size` than `bert`, and others see it");
}
