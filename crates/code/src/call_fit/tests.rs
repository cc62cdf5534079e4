//! Calls of each language that fit, that do not, and of which that cannot be told.

use super::*;
use pretty_assertions::assert_eq;

/// Returns the lines of calls that fit, that do not, and the others.
fn lines(
    language: Language,
    source: &str,
    (name, line, container): (&str, usize, Option<&str>),
) -> [Vec<usize>; 3] {
    let tree = SyntaxTree::parse(language, source).unwrap();
    assert!(!tree.has_error(), "{language}: {:?}", tree.errors());
    let parameters = Parameters::of_function(&tree, source, name, line).expect("it is a function");
    let sites = call_sites(&tree, source, (name, container), &parameters);
    let of = |fit: CallFit| {
        sites.iter().filter(|site| site.fit == fit).map(|site| site.line).collect::<Vec<_>>()
    };
    [of(CallFit::Fits), of(CallFit::Misfits), of(CallFit::Unknown)]
}

#[test]
fn python() {
    let source = "\
def f(a, b=1, *, c=2): pass
f(1)
f(1, 2)
f()
f(1, 2, 3)
f(1, c=3)
f(*all)
map(f, [])
module.f(1)
from m import f
";
    let expected = [vec![2, 3, 9], vec![4, 5], vec![6, 7, 8]];
    assert_eq!(lines(Language::Python, source, ("f", 1, None)), expected);
    let source = "\
class A:
    def f(self, a): pass
    @staticmethod
    def g(a): pass
x.f(1)
x.f()
A.f(x, 1)
A.f(1)
f(1, 2)
A.g(1)
x.g(1, 2)
";
    let expected = [vec![5, 7], vec![6, 8], vec![]];
    assert_eq!(lines(Language::Python, source, ("f", 2, Some("A"))), expected);
    assert_eq!(lines(Language::Python, source, ("g", 4, Some("A"))), [vec![10], vec![11], vec![]]);
    let required = "def f(a, *, b): pass\nf(1)\nf(1, b=2)\n";
    assert_eq!(lines(Language::Python, required, ("f", 1, None)), [vec![], vec![2], vec![3]]);
    let tree = SyntaxTree::parse(Language::Python, "@click.command\ndef f(a): pass\n").unwrap();
    let source = "@click.command\ndef f(a): pass\n";
    assert_eq!(Parameters::of_function(&tree, source, "f", 2), None, "a decorator may change it");
}

#[test]
fn rust() {
    let source = "\
impl A {
    fn f(&self, a: u8) {}
    fn new(a: u8, b: u8) {}
}
fn main() {
    x.f(1);
    x.f(1, 2);
    A::f(&x, 1);
    A::f(&x);
    A::new(1, 2);
    A::new(1 /* one */);
    A::new::<u8>(1, 2);
    let g = A::new;
}
";
    let expected = [vec![6, 8], vec![7, 9], vec![]];
    assert_eq!(lines(Language::Rust, source, ("f", 2, Some("A"))), expected);
    let expected = [vec![10, 12], vec![11], vec![13]];
    assert_eq!(lines(Language::Rust, source, ("new", 3, Some("A"))), expected);
}

#[test]
fn go() {
    let source = "\
package p
func f(a, b int, c ...int) {}
func (s S) g(a int) {}
func main() {
\tf(1, 2)
\tf(1)
\tf(1, 2, 3, 4)
\tf(all...)
\tf(two())
\ts.g(1)
\ts.g()
}
";
    assert_eq!(lines(Language::Go, source, ("f", 2, None)), [vec![5, 7], vec![6], vec![8, 9]]);
    assert_eq!(lines(Language::Go, source, ("g", 3, Some("S"))), [vec![10], vec![11], vec![]]);
}

#[test]
fn javascript_and_typescript() {
    let source = "\
function f(a, b = 1) {}
f(1);
f();
f(1, 2, 3);
f(...all);
const g = (a, ...rest) => a;
g();
g(1, 2, 3);
";
    for language in [Language::JavaScript, Language::TypeScript, Language::Tsx] {
        assert_eq!(lines(language, source, ("f", 1, None)), [vec![2], vec![3, 4], vec![5]]);
        assert_eq!(lines(language, source, ("g", 6, None)), [vec![8], vec![7], vec![]]);
    }
    let source = "\
class A { f(this: A, a: number, b?: string, c = 1): void {} }
x.f(1);
x.f();
x.f(1, 'b', 3, 4);
";
    let expected = [vec![2], vec![3, 4], vec![]];
    assert_eq!(lines(Language::TypeScript, source, ("f", 1, Some("A"))), expected);
}

#[test]
fn java_c_and_others() {
    let source = "\
class A {
    void f(int a, int... b) {}
    void g(int a) {
        f(1, 2, 3);
        f();
        this.g(1);
        a.g(1, 2);
    }
}
";
    assert_eq!(lines(Language::Java, source, ("f", 2, Some("A"))), [vec![4], vec![5], vec![]]);
    assert_eq!(lines(Language::Java, source, ("g", 3, Some("A"))), [vec![6], vec![7], vec![]]);
    let source = "\
static int *f(int a, char *b) { return 0; }
int g(void) { return 0; }
int h(void) {
    f(1, 0);
    f(1);
    g();
    g(1);
    register_callback(f);
    return 0;
}
";
    assert_eq!(lines(Language::C, source, ("f", 1, None)), [vec![4], vec![5], vec![8]]);
    assert_eq!(lines(Language::C, source, ("g", 2, None)), [vec![6], vec![7], vec![]]);
    let source = "\
struct A { int f(int a, int b = 1); };
int A::f(int a, int b) { return 0; }
int main() {
    x.f(1);
    x->f();
    x.f(1, 2, 3);
}
";
    let expected = [vec![4], vec![5, 6], vec![]];
    assert_eq!(lines(Language::Cpp, source, ("f", 1, Some("A"))), expected);
    let source = "\
<?php
function f($a, $b = 1) {}
f(1);
f();
f(1, b: 2);
f(...$all);
";
    assert_eq!(lines(Language::Php, source, ("f", 2, None)), [vec![3], vec![4], vec![5, 6]]);
}
