//! What compiles, and what the macros say about what does not.

#[test]
fn what_the_design_allows_compiles_and_means_what_it_says() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/*/pass/*.rs");
}

#[test]
fn every_mistake_is_reported_at_its_place() {
    let cases = trybuild::TestCases::new();
    for topic in ["consumer", "handlers", "retry", "injectable"] {
        cases.compile_fail(format!("tests/ui/{topic}/fail/*.rs"));
    }
}

/// The compiler's own words around ours: they change with the compiler.
#[test]
fn a_missing_implementation_is_reported_at_its_place() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/types/fail/*.rs");
}
