//! The symbols of a source in every language, with their paths, lines and signatures.

use carrel_code::{FileSymbols, Language, SyntaxTree, signature};
use pretty_assertions::assert_eq;

fn symbols(language: Language, source: &str) -> FileSymbols {
    let tree = SyntaxTree::parse(language, source).unwrap();
    FileSymbols::of(&tree, source)
}

/// Returns `first-last kind path` for each symbol.
pub(crate) fn outline(language: Language, source: &str) -> Vec<String> {
    let found = symbols(language, source);
    let line = |index: usize| {
        let symbol = &found.symbols[index];
        let (first, last) = symbol.lines;
        format!("{first}-{last} {} {}", symbol.kind, found.path(index).join("::"))
    };
    (0..found.symbols.len()).map(line).collect()
}

#[test]
fn rust() {
    let source = "\
//! The module.

/// A point.
#[derive(Debug)]
pub struct Point<T> {
    /// Across.
    x: T,
}

impl<T: Copy> std::fmt::Display for Point<T> {
    fn fmt(&self) -> Result {
        const LOCAL: u8 = 1;
        fn inner() {}
    }
}

mod tests {
    const LIMIT: u8 = 3; // trailing
    fn check();
}
macro_rules! m { () => {} }
enum E { A, B(u8) }
trait T { type Item; fn required(&self); }
";
    assert_eq!(
        outline(Language::Rust, source),
        [
            "3-8 struct Point",
            "6-7 field Point::x",
            "10-15 impl Point",
            "11-14 method Point::fmt",
            "13-13 function Point::fmt::inner",
            "17-20 module tests",
            "18-18 constant tests::LIMIT",
            "19-19 function tests::check",
            "21-21 macro m",
            "22-22 enum E",
            "22-22 variant E::A",
            "22-22 variant E::B",
            "23-23 trait T",
            "23-23 type T::Item",
            "23-23 method T::required",
        ]
    );
}

#[test]
fn go() {
    let source = "\
package a

// T is a thing.
type T struct {
\tX, y int // trailing
}

type (
\tA = int
\tB interface{ M(a int) error }
)

const C, D = 1, 2

// Run runs.
func (t *T[K]) Run(x int) error { var local int; return nil }

func asm()
";
    assert_eq!(
        outline(Language::Go, source),
        [
            "3-6 struct T",
            "5-5 field T::X",
            "5-5 field T::y",
            "9-9 type A",
            "10-10 interface B",
            "10-10 method B::M",
            "13-13 constant C",
            "13-13 constant D",
            "15-16 method T::Run",
            "18-18 function asm",
        ]
    );
}

#[test]
fn python() {
    let source = "\
LIMIT = 3
name: str = 'x'
a, b = 1, 2

# About f.
@decorated(
    1,
)
def f(x: int) -> int:
    \"\"\"Doc.\"\"\"
    local = 1
    def inner(): pass
    return x


class C(Base):
    field = 1
    async def m(self): ...
";
    assert_eq!(
        outline(Language::Python, source),
        [
            "1-1 constant LIMIT",
            "2-2 variable name",
            "5-13 function f",
            "12-12 function f::inner",
            "16-18 class C",
            "17-17 field C::field",
            "18-18 method C::m",
        ]
    );
    let found = symbols(Language::Python, source);
    assert_eq!(signature(&found.symbols[2], source), "def f(x: int) -> int");
}

#[test]
fn javascript_and_typescript() {
    let source = "\
/** Doc. */
export class A<T> extends B {
  private x = 1;
  constructor(readonly y: string) { super(); }
  @dec() get z(): number { return 1 }
}
export interface I { m(): void; p: string }
export const f = async (a: number) => { const inner = 1; return a };
let k = 1, l = 2;
export default function main() { function nested() {} }
enum E { A, B = 2 }
namespace N { export type T = string }
module.exports.zip = function (a) {};
Foo.prototype.bar = function () {};
const table = { run() {}, stop: () => {}, count: 1 };
";
    let typescript = outline(Language::TypeScript, source);
    assert_eq!(
        typescript,
        [
            "1-6 class A",
            "3-3 field A::x",
            "4-4 method A::constructor",
            "5-5 method A::z",
            "7-7 interface I",
            "7-7 method I::m",
            "7-7 field I::p",
            "8-8 function f",
            "9-9 variable k",
            "9-9 variable l",
            "10-10 function main",
            "10-10 function main::nested",
            "11-11 enum E",
            "11-11 variant E::A",
            "11-11 variant E::B",
            "12-12 module N",
            "12-12 type N::T",
            "13-13 function zip",
            "14-14 method Foo::bar",
            "15-15 variable table",
            "15-15 method table::run",
            "15-15 function table::stop",
        ]
    );
    assert_eq!(outline(Language::Tsx, source), typescript);
    let plain = "class A { #x = 1; m() {} }\nvar f = function () {};\nexports.g = () => 1;\n";
    assert_eq!(
        outline(Language::JavaScript, plain),
        ["1-1 class A", "1-1 field A::#x", "1-1 method A::m", "2-2 function f", "3-3 function g"]
    );
}

#[test]
fn c_and_cpp() {
    let source = "\
#define MAX(a,b) ((a)>(b)?(a):(b))
typedef struct { int x; char *y; } point_t;
struct node { struct node *next; int (*cb)(void); };
static int *find(struct node *n, int k);
int count = 0, total;
/* Finds. */
static int *
find(struct node *n, int k) {
    int local;
    return 0;
}
enum color { RED, GREEN };
";
    let c = outline(Language::C, source);
    assert_eq!(
        c,
        [
            "1-1 macro MAX",
            "2-2 type point_t",
            "2-2 field point_t::x",
            "2-2 field point_t::y",
            "3-3 struct node",
            "3-3 field node::next",
            "3-3 field node::cb",
            "4-4 function find",
            "5-5 variable count",
            "5-5 variable total",
            "6-11 function find",
            "12-12 enum color",
            "12-12 variant color::RED",
            "12-12 variant color::GREEN",
        ]
    );
    assert_eq!(outline(Language::Cpp, source), c);
    let cpp = "\
namespace ns {
template <typename T> class Box : public Base { public: Box(); ~Box(); T get() const { return v; } private: T v; };
}
int ns::Box::get(int a) { return 1; }
using Alias = int;
";
    assert_eq!(
        outline(Language::Cpp, cpp),
        [
            "1-3 module ns",
            "2-2 class ns::Box",
            "2-2 method ns::Box::Box",
            "2-2 method ns::Box::~Box",
            "2-2 method ns::Box::get",
            "2-2 field ns::Box::v",
            "4-4 method ns::Box::get",
            "5-5 type Alias",
        ]
    );
}

#[test]
fn symbols_survive_macros_that_the_parser_does_not_understand() {
    let source = "\
REDIS_NO_SANITIZE(\"bounds\")
clusterNode *first(int a) { return 0; }
#if X
int second(void) {
#else
int second(int b) {
#endif
    return 1;
}
void third(void) { FOREACH(x, y) { z(); } }
";
    let names = outline(Language::C, source);
    for name in ["first", "second", "third"] {
        assert!(names.iter().any(|line| line.ends_with(name)), "{name} in {names:?}");
    }
}

#[test]
fn java_php_ruby() {
    let java = "package p;\n/** Doc. */\n@Deprecated\npublic class A<T> {\n  private int x, y;\n  A() {}\n  \
                @Override public void m(int a) {}\n  enum E { ONE }\n  interface I { void n(); }\n  \
                record R(int q) {}\n}\n";
    assert_eq!(
        outline(Language::Java, java),
        [
            "2-11 class A",
            "5-5 field A::x",
            "5-5 field A::y",
            "6-6 method A::A",
            "7-7 method A::m",
            "8-8 enum A::E",
            "8-8 variant A::E::ONE",
            "9-9 interface A::I",
            "9-9 method A::I::n",
            "10-10 class A::R",
        ]
    );
    let php = "<?php\nnamespace N;\nclass A { const K = 1; private $x = 1; public function m($a) {} }\n\
               function f() {}\n";
    assert_eq!(
        outline(Language::Php, php),
        [
            "2-2 module N",
            "3-3 class A",
            "3-3 constant A::K",
            "3-3 field A::$x",
            "3-3 method A::m",
            "4-4 function f",
        ]
    );
    let ruby = "module M\n  LIMIT = 1\n  # Doc.\n  class A < B\n    def m(a) = a\n    def self.n\n    end\n  \
                end\nend\n";
    assert_eq!(
        outline(Language::Ruby, ruby),
        [
            "1-9 module M",
            "2-2 constant M::LIMIT",
            "3-8 class M::A",
            "5-5 method M::A::m",
            "6-7 method M::A::n",
        ]
    );
}

#[test]
fn scripts_and_data() {
    let lua = "local M = {}\nfunction M.f(a) end\nfunction M:g() end\nlocal function h() end\nM.k = function() \
               end\nreturn M\n";
    assert_eq!(
        outline(Language::Lua, lua),
        [
            "1-1 variable M",
            "2-2 method M::f",
            "3-3 method M::g",
            "4-4 function h",
            "5-5 method M::k"
        ]
    );
    let bash = "NAME=1\n# Doc.\nrun() {\n  local x=1\n}\nfunction stop { :; }\n";
    assert_eq!(
        outline(Language::Bash, bash),
        ["1-1 constant NAME", "2-5 function run", "6-6 function stop"]
    );
    let markdown = "# One\n\ntext\n\n## Two words\n\nmore\n\nThree\n=====\n";
    assert_eq!(
        outline(Language::Markdown, markdown),
        ["1-10 heading One", "5-10 heading One::Two words", "9-10 heading One::Two words::Three"]
    );
    let toml = "top = 1\n[a.b]\nc = 2\n[[d]]\ne = 3\n";
    assert_eq!(
        outline(Language::Toml, toml),
        ["1-1 key top", "2-3 key a.b", "3-3 key a.b::c", "4-5 key d", "5-5 key d::e"]
    );
    let json = "{\"a\": {\"b\": [1, {\"c\": 2}]}, \"d\": 3}\n";
    assert_eq!(
        outline(Language::Json, json),
        ["1-1 key a", "1-1 key a::b", "1-1 key a::b::c", "1-1 key d"]
    );
    let yaml = "a:\n  b: 1\n  c:\n    - d: 2\ne: 3\n";
    assert_eq!(
        outline(Language::Yaml, yaml),
        ["1-4 key a", "2-2 key a::b", "3-4 key a::c", "4-4 key a::c::d", "5-5 key e"]
    );
    let css = ".a, .b > p {\n  color: red;\n}\n@keyframes spin { from { top: 0 } }\n";
    assert_eq!(outline(Language::Css, css), ["1-3 selector .a, .b > p", "4-4 selector spin"]);
    let html = "<div id=\"top\"><p>x</p><span id=low>y</span></div>\n";
    assert_eq!(outline(Language::Html, html), ["1-1 element top", "1-1 element top::low"]);
}

#[test]
fn a_line_is_in_the_innermost_symbol_around_it() {
    let source = "fn a() {\n    fn b() {\n        1;\n    }\n}\n\nfn c() {}\n";
    let found = symbols(Language::Rust, source);
    let at = |line| found.enclosing(line).map(|index| found.path(index).join("::"));
    assert_eq!(at(3).as_deref(), Some("a::b"));
    assert_eq!(at(5).as_deref(), Some("a"));
    assert_eq!(at(6), None);
}

#[test]
fn a_declaration_has_no_body_and_a_definition_has_its_braces() {
    let source = "package a\nfunc asm()\nfunc F() int { return 1 }\n";
    let found = symbols(Language::Go, source);
    assert_eq!(found.symbols[0].body, None);
    let body = found.symbols[1].body.clone().unwrap();
    assert_eq!(&source[body], "{ return 1 }");
}

#[test]
fn symbols_of_a_long_module_take_time_by_its_length_whether_or_not_it_exports() {
    let functions: String =
        (0..12_000).fold(String::new(), |text, n| text + &format!("function f{n}() {{}}\n"));
    let variables = (0..12_000).map(|n| format!("v{n} = 1")).collect::<Vec<_>>().join(", ");
    let time = |source: &str| {
        let tree = SyntaxTree::parse(Language::JavaScript, source).unwrap();
        let begun = std::time::Instant::now();
        assert!(FileSymbols::of(&tree, source).symbols.len() >= 12_000);
        begun.elapsed()
    };
    // The word stands at the very start or nowhere; a search for it in each symbol would take a hundred times as long.
    let fastest = |source: &str| (0..3).map(|_| time(source)).min().unwrap();
    let (with, without) = (fastest(&format!("// exports\n{functions}")), fastest(&functions));
    assert!(without < 4 * with, "{without:?} against {with:?}");
    let list = fastest(&format!("var {variables};\n// exports\n"));
    assert!(list < 8 * with, "{list:?} against {with:?}");
}
