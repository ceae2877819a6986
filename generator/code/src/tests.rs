//! What is kept, imported and printed.

use crate::parse;

fn print(text: &str, uses: &[&str]) -> String {
    let mut code = parse(text).unwrap();
    code.prune();
    code.import(&uses.iter().map(|&path| path.to_owned()).collect::<Vec<_>>());
    code.print()
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
    let uses = ["weft::graph::Graph", "weft::graph::Scope", "weft::nn::self", "crate::Config"];
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
