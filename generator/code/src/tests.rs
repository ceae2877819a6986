//! What is kept, imported and printed.

use crate::{Code, parse};

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
