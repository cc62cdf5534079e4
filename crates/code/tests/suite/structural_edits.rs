//! Structural edits in every language: each case compares whole texts.

use carrel_code::{
    EditError, EditedSource, Language, LeadingComments, ParsedSource, Side, SymbolKind,
    SymbolTarget, TargetError,
};
use pretty_assertions::assert_eq;

/// One operation of a case.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Body(&'static str, &'static str),
    Signature(&'static str, &'static str),
    AfterMethod(&'static str, &'static str, &'static str),
    Before(&'static str, &'static str),
    After(&'static str, &'static str),
    Replace(&'static str, &'static str),
    ReplaceAll(&'static str, &'static str),
    Delete(&'static str),
}

use Operation::{After, AfterMethod, Before, Body, Delete, Replace, ReplaceAll, Signature};

fn target(text: &str) -> SymbolTarget {
    let (path, line) = text.split_once('@').unwrap_or((text, ""));
    let target = SymbolTarget::parse(path).unwrap();
    match line.parse() {
        Ok(line) => target.at_line(line),
        Err(_) => target,
    }
}

pub(crate) fn edit(
    language: Language,
    source: &str,
    operation: Operation,
) -> Result<EditedSource, EditError> {
    let parsed = ParsedSource::parse(language, source).unwrap();
    match operation {
        Body(name, body) => parsed.replace_body(&target(name), body),
        Signature(name, signature) => parsed.replace_signature(&target(name), signature),
        AfterMethod(receiver, method, text) => {
            let (method, line) = method.split_once('@').unwrap_or((method, ""));
            parsed.insert_after_method(receiver, method, line.parse().ok(), text)
        }
        Before(name, text) => parsed.insert(&target(name), Side::Before, text),
        After(name, text) => parsed.insert(&target(name), Side::After, text),
        Replace(name, text) => parsed.replace_symbol(&target(name), text, LeadingComments::Keep),
        ReplaceAll(name, text) => {
            parsed.replace_symbol(&target(name), text, LeadingComments::Replace)
        }
        Delete(name) => parsed.delete_symbol(&target(name)),
    }
}

/// Makes each edit on the same source, and compares the whole result with the source in which the first text, which
/// occurs once, is replaced by the second.
pub(crate) fn check(language: Language, source: &str, cases: &[(Operation, &str, &str)]) {
    for (operation, old, new) in cases {
        assert_eq!(source.matches(old).count(), 1, "{old:?}");
        let expected = source.replace(old, new);
        match edit(language, source, *operation) {
            Ok(edited) => {
                assert_eq!(edited.text, expected, "{language}: {operation:?}");
                let (old, new) = (&edited.change.old, &edited.change.new);
                assert_eq!(source[..old.start], edited.text[..new.start]);
                assert_eq!(source[old.end..], edited.text[new.end..]);
                assert!(!edited.symbols.is_empty());
            }
            Err(error) => panic!("{language}: {operation:?}: {error}"),
        }
    }
}

fn refusal(language: Language, source: &str, operation: Operation) -> String {
    edit(language, source, operation).unwrap_err().to_string()
}

const GO: &str = "\
package a

// Run runs.
func (t *T[K]) Run(x int) error {
\treturn nil
}

// Close closes.
func (t *T[K]) Close() {}

func Add(a, b int) int {
\treturn a + b
}

func asm(x int) int
";

#[test]
fn go() {
    check(
        Language::Go,
        GO,
        &[
            (Body("Add", "\n\treturn b + a\n"), "a + b", "b + a"),
            (Body("(*T).Run", "\n\treturn t.err\n"), "return nil", "return t.err"),
            (Body("(T).Close", " t.x = 1 "), "Close() {}", "Close() { t.x = 1 }"),
            (
                AfterMethod("T", "Run", "// New is new.\nfunc (t *T[K]) New() {\n\tt.x()\n}\n"),
                "// Close closes",
                "// New is new.\nfunc (t *T[K]) New() {\n\tt.x()\n}\n\n// Close closes",
            ),
            (
                Signature("Add", "func Add(a, b, c int) (int, error)"),
                "func Add(a, b int) int {",
                "func Add(a, b, c int) (int, error) {",
            ),
            (
                Signature("asm", "func asm(x, y int) int"),
                "func asm(x int) int",
                "func asm(x, y int) int",
            ),
            (
                After("asm", "func asm2() int"),
                "asm(x int) int\n",
                "asm(x int) int\n\nfunc asm2() int\n",
            ),
            (
                Before("Run", "func first() {\n}\n"),
                "// Run runs",
                "func first() {\n}\n\n// Run runs",
            ),
            (Replace("Close", "func (t *T[K]) Shut() {}"), "Close() {}", "Shut() {}"),
            (
                ReplaceAll("Close", "// Shut shuts.\nfunc (t *T[K]) Shut() {}"),
                "Close closes.\nfunc (t *T[K]) Close() {}",
                "Shut shuts.\nfunc (t *T[K]) Shut() {}",
            ),
            (Delete("Close"), "// Close closes.\nfunc (t *T[K]) Close() {}\n\n", ""),
            (Delete("asm"), "\nfunc asm(x int) int\n", ""),
        ],
    );
}

#[test]
fn a_function_without_a_body_is_refused_and_survives_as_an_anchor() {
    for (language, source, name) in [
        (Language::Go, "package a\n\nfunc F()\n", "F"),
        (Language::C, "int f(void);\n", "f"),
        (Language::Rust, "trait T {\n    fn f(&self);\n}\n", "f"),
        (Language::Java, "abstract class A {\n    abstract void f();\n}\n", "f"),
        (Language::TypeScript, "declare function f(a: string): void;\n", "f"),
        (Language::Php, "<?php\ninterface I {\n    function f();\n}\n", "f"),
    ] {
        let error = edit(language, source, Body(name, "\n1\n")).unwrap_err();
        assert!(matches!(error, EditError::NoBody { .. }), "{language}: {error}");
    }
    let java = "abstract class A {\n    abstract void f();\n}\n";
    check(
        Language::Java,
        java,
        &[(AfterMethod("A", "f", "void g() {}"), "f();\n", "f();\n\n    void g() {}\n")],
    );
    assert_eq!(
        refusal(Language::Go, GO, Body("asm", "\n")),
        "asm at line 15 is a declaration without a body; replace the whole symbol to give it one"
    );
}

#[test]
fn names_are_found_in_every_form_or_refused_with_what_is_there() {
    for name in ["Add", " Add ", "Add()"] {
        assert!(edit(Language::Go, GO, Body(name, "return 1")).is_ok(), "{name}");
    }
    for name in ["Run", "T.Run", "(T).Run", "(*T).Run", "T::Run", "T/Run", "(*T[K]).Run"] {
        assert!(edit(Language::Go, GO, Body(name, "return nil")).is_ok(), "{name}");
    }
    for name in ["(T).", "(T)Foo", "T.Foo", "Foo", "."] {
        assert!(edit(Language::Go, GO, Body(name, "")).is_err(), "{name}");
    }
    for name in ["(", "()", "", " "] {
        let error = SymbolTarget::parse(name).unwrap_err();
        assert!(matches!(error, TargetError::NoName { .. }), "{name}");
    }
    assert_eq!(
        refusal(Language::Go, GO, Body("Clse", "")),
        "symbol Clse not found; near it: T::Close"
    );
    assert_eq!(
        refusal(Language::Go, GO, AfterMethod("*T", "Open", "func (t *T) X() {}")),
        "method Open not found on T (available: Run, Close)"
    );
    assert_eq!(
        refusal(Language::Go, GO, AfterMethod("U", "Open", "func (t *U) X() {}")),
        "method Open not found on U (no methods found on that receiver)"
    );
}

#[test]
fn several_symbols_of_one_name_are_told_apart_by_line_and_kind() {
    let source = "struct A;\nimpl A {\n    fn f() {}\n}\nmod m {\n    fn f() {}\n}\n";
    assert_eq!(
        refusal(Language::Rust, source, Body("f", "1")),
        "ambiguous: f matches 2 declarations at line 3 (method A::f), line 6 (function m::f); add a \
         line or a longer path"
    );
    check(
        Language::Rust,
        source,
        &[
            (Body("m::f", "1"), "mod m {\n    fn f() {}", "mod m {\n    fn f() {1}"),
            (Body("f@3", "1"), "impl A {\n    fn f() {}", "impl A {\n    fn f() {1}"),
        ],
    );
    let parsed = ParsedSource::parse(Language::Rust, source).unwrap();
    let structs = target("A").of_kind(SymbolKind::Struct);
    let edited = parsed.replace_symbol(&structs, "struct A(u8);", LeadingComments::Keep).unwrap();
    assert_eq!(edited.text, source.replace("struct A;", "struct A(u8);"));
    let overloads = "function f(a: string): void;\nfunction f(a: any) {\n  a();\n}\n";
    check(
        Language::TypeScript,
        overloads,
        &[
            (Body("f", "\n  b();\n"), "a();", "b();"),
            (Signature("f@2", "function f(a: unknown)"), "any", "unknown"),
        ],
    );
}

#[test]
fn text_that_does_not_parse_or_leaves_its_place_is_refused() {
    for (operation, expected) in [
        (
            Body("Add", "\n\treturn a +\n"),
            "replacement did not parse: line 12 of the result: `return a +`",
        ),
        (
            Body("Add", " return 1 }\n\nfunc Other() int { return 2 "),
            "replacement does not stay in its place: it would change function Add at line 11 as well",
        ),
        (
            Signature("Add", "func Add(a int) int { return a }\n\nfunc Sub(b int) int"),
            "replacement does not stay in its place: it would change function Add at line 11 as well",
        ),
        (
            Replace("Add", "/* func Add() {}"),
            "replacement did not parse: line 11 of the result: `/* func Add() {}`",
        ),
        (
            AfterMethod("T", "Run", "var x = 1"),
            "the new text defines no method of T; insert it beside a symbol instead",
        ),
        (
            AfterMethod("T", "Run", "func (u *U) New() {}"),
            "the new text defines no method of T; insert it beside a symbol instead",
        ),
        (After("Add", " \n"), "the new text is empty; delete the symbol instead"),
        (
            Body("Add", "\n\treturn a + b\n"),
            "nothing would change: the new text is the same as the old",
        ),
    ] {
        assert_eq!(refusal(Language::Go, GO, operation), expected, "{operation:?}");
    }
    assert_eq!(
        refusal(Language::Go, "package a\n\nfunc F(a int {\n\treturn\n}\n", Body("F", "\n")),
        "parse error: the file has a syntax error at line 3, inside F; correct it by a text edit first"
    );
    assert_eq!(
        refusal(Language::Python, "class A:\n    def f(self):\n        pass\n", Delete("f")),
        "replacement did not parse: line 1 of the result: `class A:`"
    );
    assert_eq!(
        refusal(Language::Go, "package a\n\nconst A, B = 1, 2\n", Delete("A")),
        "replacement does not stay in its place: it would change constant B at line 3 as well"
    );
    assert_eq!(
        refusal(Language::Json, "{\"a\": 1}", Body("a", "2")),
        "json has no functions; replace, insert or delete whole symbols instead"
    );
    assert_eq!(
        refusal(Language::Rust, "struct A;\n", Body("A", "2")),
        "A is a struct, not a function or method; replace the whole symbol instead"
    );
}

#[test]
fn python() {
    let source = "\
import os


# About f.
@decorated(
    1,
)
def f(x: int) -> int:  # comment
    \"\"\"Doc.\"\"\"
    return x


class C(Base):
    field = 1

    async def m(self): ...

    def n(self):
        pass  # trailing


def last():
    pass
";
    let f = &source[source.find("# About").unwrap()..source.find("\n\nclass").unwrap()];
    check(
        Language::Python,
        source,
        &[
            (
                Body("f", "if x:\n    return 1\nreturn 2"),
                "    \"\"\"Doc.\"\"\"\n    return x\n",
                "    if x:\n        return 1\n    return 2\n",
            ),
            (
                Body("f", "\n            if x:\n                return 1\n            return 2\n"),
                "    \"\"\"Doc.\"\"\"\n    return x\n",
                "    if x:\n        return 1\n    return 2\n",
            ),
            (
                Body("f", "\"\"\"Doc.\n\nMore.\n\"\"\"\nreturn '''a\nb'''"),
                "    \"\"\"Doc.\"\"\"\n    return x\n",
                "    \"\"\"Doc.\n\n    More.\n    \"\"\"\n    return '''a\nb'''\n",
            ),
            (Body("C.m", "await x()"), "m(self): ...", "m(self):\n        await x()"),
            (Body("C.n", "return 1"), "pass  # trailing", "return 1"),
            (Signature("f", "def f(x: str, y=1):"), "def f(x: int) -> int:", "def f(x: str, y=1):"),
            (
                AfterMethod("C", "n", "def o(self):\n    return 1\n"),
                "pass  # trailing\n",
                "pass  # trailing\n\n    def o(self):\n        return 1\n",
            ),
            (
                AfterMethod("C", "m", "def o(self):\n    return 1\n"),
                "m(self): ...\n",
                "m(self): ...\n\n    def o(self):\n        return 1\n",
            ),
            (
                After("f", "def g():\n    pass"),
                "    return x\n",
                "    return x\n\n\ndef g():\n    pass\n",
            ),
            (Before("f", "def g():\n    pass"), "# About f", "def g():\n    pass\n\n\n# About f"),
            (
                After("last", "def g():\n    pass"),
                "last():\n    pass\n",
                "last():\n    pass\n\n\ndef g():\n    pass\n",
            ),
            (Replace("n", "def n(self):\n    return 1"), "pass  # trailing", "return 1"),
            (ReplaceAll("f", "def f():\n    pass"), f, "def f():\n    pass\n"),
            (Delete("f"), &format!("{f}\n\n"), ""),
            (Delete("n"), "\n    def n(self):\n        pass  # trailing\n", ""),
            (Delete("last"), "\n\ndef last():\n    pass\n", ""),
            (Delete("field"), "    field = 1\n\n", ""),
        ],
    );
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
    y: T,
}

pub enum E { A, B }

impl<T: Copy> Point<T> {
    /// Makes one.
    #[must_use]
    pub fn new(x: T) -> Self {
        Self { x, y: x }
    }

    fn show(&self)
    where
        T: Debug,
    {
        println!(\"a
  b\");
    }
}

mod tests {
    const LIMIT: u8 = 3; // trailing
    const OTHER: u8 = 4;
}
";
    let point = &source[source.find("/// A point").unwrap()..source.find("pub enum").unwrap()];
    check(
        Language::Rust,
        source,
        &[
            (Body("new", "\n        todo!()\n"), "Self { x, y: x }", "todo!()"),
            (
                Body("new", "\nif x {\n    y()\n}\n"),
                "Self { x, y: x }",
                "if x {\n            y()\n        }",
            ),
            (Body("show", " self.x "), "\n        println!(\"a\n  b\");\n    ", " self.x "),
            (
                Body("new", "\nlet a = \"x\n  y\";\na\n"),
                "Self { x, y: x }",
                "let a = \"x\n  y\";\n        a",
            ),
            (
                Signature("show", "pub async fn show<W>(&self, w: W) -> u8"),
                "fn show(&self)\n    where\n        T: Debug,",
                "pub async fn show<W>(&self, w: W) -> u8",
            ),
            (
                Signature("new", "fn of(x: T) -> Self"),
                "pub fn new(x: T) -> Self",
                "fn of(x: T) -> Self",
            ),
            (
                AfterMethod("Point", "new", "/// Origin.\nfn zero() -> Self {\n    todo!()\n}"),
                "y: x }\n    }\n",
                "y: x }\n    }\n\n    /// Origin.\n    fn zero() -> Self {\n        todo!()\n    }\n",
            ),
            (After("Point::x", "z: T,"), "x: T,\n", "x: T,\n    z: T,\n"),
            (After("Point::y", "/// Up.\nz: T"), "y: T,\n", "y: T,\n    /// Up.\n    z: T,\n"),
            (Before("Point::x", "z: T"), "    /// Across", "    z: T,\n    /// Across"),
            (After("E::A", "C(u8)"), "A, B", "A, C(u8), B"),
            (After("E::B", "C(u8)"), "A, B", "A, B, C(u8)"),
            (Before("E::B", "C"), "A, B", "A, C, B"),
            (
                After("tests::LIMIT", "const MORE: u8 = 5;"),
                "trailing\n",
                "trailing\n    const MORE: u8 = 5;\n",
            ),
            (Replace("Point::x", "x: [T; 2],"), "x: T,", "x: [T; 2],"),
            (ReplaceAll("Point::x", "x: u8"), "/// Across.\n    x: T", "x: u8"),
            (Delete("Point::x"), "    /// Across.\n    x: T,\n", ""),
            (Delete("E::A"), "A, B", "B"),
            (Delete("E::B"), "A, B", "A"),
            (
                Delete("show"),
                "\n    fn show(&self)\n    where\n        T: Debug,\n    {\n        println!(\"a\n  b\");\n    }\n",
                "",
            ),
            (Delete("tests::LIMIT"), "    const LIMIT: u8 = 3; // trailing\n", ""),
        ],
    );
    let parsed = ParsedSource::parse(Language::Rust, source).unwrap();
    let structs = target("Point").of_kind(SymbolKind::Struct);
    let deleted = parsed.delete_symbol(&structs).unwrap();
    assert_eq!(deleted.text, source.replace(point, ""));
    assert_eq!(deleted.change.old_lines, (2, 9));
    assert_eq!(deleted.symbols[0].path, ["Point"]);
}

#[test]
fn javascript_and_typescript() {
    let source = "\
/** Doc. */
export class A extends B {
  #x = 1;

  constructor(y) {
    super();
  }

  get z() { return 1 }
}

export const f = async (a) => {
  return a;
};
const g = (a) => a + 1;
function* h() {
  yield `a
b`;
}
module.exports.zip = function (a) {};
const table = { run() {}, stop: () => {}, count: 1 };
";
    for language in [Language::JavaScript, Language::TypeScript, Language::Tsx] {
        check(
            language,
            source,
            &[
                (Body("f", "\n  return b;\n"), "return a;", "return b;"),
                (Body("f", "\nreturn b;\n"), "return a;", "return b;"),
                (Body("g", "a + 2"), "a + 1", "a + 2"),
                (
                    Body("g", "const b = a;\nreturn b;"),
                    "=> a + 1",
                    "=> {\n  const b = a;\n  return b;\n}",
                ),
                (Body("constructor", "\n    super(y);\n"), "super();", "super(y);"),
                (Body("h", "\n  yield 1;\n"), "yield `a\nb`;", "yield 1;"),
                (Body("zip", "\n  return a;\n"), "(a) {}", "(a) {\n  return a;\n}"),
                (Body("run", " go(); "), "run() {}", "run() { go(); }"),
                (Signature("f", "export const f = (a, b)"), "f = async (a)", "f = (a, b)"),
                (Signature("A.z", "static get z()"), "get z()", "static get z()"),
                (
                    AfterMethod("A", "constructor", "m() {\n  return 1;\n}"),
                    "super();\n  }\n",
                    "super();\n  }\n\n  m() {\n    return 1;\n  }\n",
                ),
                (After("A", "class C {}"), "return 1 }\n}\n", "return 1 }\n}\n\nclass C {}\n"),
                (After("#x", "y = 2;"), "#x = 1;\n", "#x = 1;\n  y = 2;\n"),
                (After("table::run", "more() {}"), "run() {}, ", "run() {}, more() {}, "),
                (Replace("g", "const g = 1;"), "const g = (a) => a + 1;", "const g = 1;"),
                (Delete("g"), "const g = (a) => a + 1;\n", ""),
                (Delete("A::z"), "\n  get z() { return 1 }\n", ""),
                (Delete("table::run"), "run() {}, ", ""),
            ],
        );
    }
    let typescript = "\
interface I {
  m(): void;
  p: string;
}
enum E { A, B = 2 }
class C {
  @Input()
  name: string;

  @dec()
  get z(): number {
    return 1;
  }

  w() {}
}
abstract class D {
  abstract run(): void;
}
";
    check(
        Language::TypeScript,
        typescript,
        &[
            (
                Signature("D.run", "protected abstract run(): string;"),
                "abstract run(): void",
                "protected abstract run(): string",
            ),
            (Signature("C.z", "get z(): string"), "get z(): number", "get z(): string"),
            (After("I::m", "n(): void;"), "m(): void;\n", "m(): void;\n  n(): void;\n"),
            (Replace("I::m", "m(): string;"), "m(): void", "m(): string"),
            (Delete("I::p"), "  p: string;\n", ""),
            (After("E::B", "C = 3"), "B = 2 ", "B = 2, C = 3 "),
            (Delete("C::z"), "  @dec()\n  get z(): number {\n    return 1;\n  }\n\n", ""),
            (
                AfterMethod("D", "run", "abstract stop(): void;"),
                "run(): void;\n",
                "run(): void;\n\n  abstract stop(): void;\n",
            ),
        ],
    );
}

#[test]
fn c_and_cpp() {
    let source = "\
#define MAX(a,b) ((a)>(b)?(a):(b))
struct node { struct node *next; };
static int *find(struct node *n, int k);
int count = 0;
/* Finds. */
static int *
find(struct node *n, int k)
{
    return 0;
}
enum color { RED, GREEN };
";
    for language in [Language::C, Language::Cpp] {
        check(
            language,
            source,
            &[
                (Body("find", "\n    return n->x;\n"), "return 0;", "return n->x;"),
                (
                    Signature("find@7", "int *find(void)"),
                    "static int *\nfind(struct node *n, int k)",
                    "int *find(void)",
                ),
                (
                    Signature("find@3", "int *find(void);"),
                    "static int *find(struct node *n, int k)",
                    "int *find(void)",
                ),
                (
                    After("find@7", "int g(void)\n{\n}\n"),
                    "    return 0;\n}\n",
                    "    return 0;\n}\n\nint g(void)\n{\n}\n",
                ),
                (
                    After("node", "struct leaf { int x; };"),
                    "*next; };\n",
                    "*next; };\nstruct leaf { int x; };\n",
                ),
                (Delete("node"), "struct node { struct node *next; };\n", ""),
                (
                    Delete("find@7"),
                    "/* Finds. */\nstatic int *\nfind(struct node *n, int k)\n{\n    return 0;\n}\n",
                    "",
                ),
                (Delete("GREEN"), "RED, GREEN", "RED"),
                (After("MAX", "#define MIN 1"), "(b))\n", "(b))\n#define MIN 1\n"),
                (Replace("count", "int count = 1;"), "count = 0", "count = 1"),
            ],
        );
    }
    let cpp = "\
namespace ns {
template <typename T>
class Box : public Base {
 public:
  Box() : v(1) {}
  ~Box();
  T get() const { return v; }
};
}
int ns::Box::get(int a) {
  return 1;
}
";
    check(
        Language::Cpp,
        cpp,
        &[
            (Body("Box::get@7", " return 2; "), "return v;", "return 2;"),
            (Body("Box::Box", " go(); "), "v(1) {}", "v(1) { go(); }"),
            (
                Signature("Box::Box", "explicit Box(int a) : v(a)"),
                "Box() : v(1)",
                "explicit Box(int a) : v(a)",
            ),
            (
                Signature("ns::Box::get@10", "long ns::Box::get()"),
                "int ns::Box::get(int a)",
                "long ns::Box::get()",
            ),
            (AfterMethod("Box", "~Box", "int size();"), "~Box();\n", "~Box();\n\n  int size();\n"),
            (Delete("~Box"), "  ~Box();\n", ""),
            (
                AfterMethod("Box", "get@10", "int ns::Box::put(int a) {\n  return 1;\n}"),
                "return 1;\n}\n",
                "return 1;\n}\n\nint ns::Box::put(int a) {\n  return 1;\n}\n",
            ),
        ],
    );
}

#[test]
fn java_and_php() {
    let java = "\
package p;

/** Doc. */
@Deprecated
public class A<T> {
    private int x;

    A() {}

    @Override
    public void m(int a) throws E {
        go();
    }

    enum E { ONE, TWO }
}
";
    check(
        Language::Java,
        java,
        &[
            (Body("m", "\n        stop();\n"), "go();", "stop();"),
            (Body("m", "\nstop();\n"), "go();", "stop();"),
            (Signature("m", "public int m()"), "public void m(int a) throws E", "public int m()"),
            (
                AfterMethod("A", "m", "void n() {\n}"),
                "go();\n    }\n",
                "go();\n    }\n\n    void n() {\n    }\n",
            ),
            (After("E::ONE", "MORE"), "ONE, TWO", "ONE, MORE, TWO"),
            (
                Delete("m"),
                "    @Override\n    public void m(int a) throws E {\n        go();\n    }\n\n",
                "",
            ),
            (After("x", "int y;"), "int x;\n", "int x;\n    int y;\n"),
        ],
    );
    let two = "class A {\n    int x, y;\n}\n";
    let refused = refusal(Language::Java, two, Delete("x"));
    assert!(refused.contains("A::y"), "{refused}");
    let php = "\
<?php
namespace N;

class A
{
    const K = 1;
    private $x = 1;

    #[Pure]
    public function m($a): int
    {
        return 1;
    }
}

function f() {}
";
    check(
        Language::Php,
        php,
        &[
            (Body("m", "\n        return 2;\n    "), "return 1;", "return 2;"),
            (Body("f", "\nreturn 2;\n"), "f() {}", "f() {\n    return 2;\n}"),
            (
                Signature("m", "private function m()"),
                "public function m($a): int",
                "private function m()",
            ),
            (
                AfterMethod("A", "m", "function n()\n{\n}"),
                "return 1;\n    }\n",
                "return 1;\n    }\n\n    function n()\n    {\n    }\n",
            ),
            (Delete("$x"), "    private $x = 1;\n", ""),
            (After("f", "function g() {}"), "f() {}\n", "f() {}\n\nfunction g() {}\n"),
        ],
    );
}

#[test]
fn ruby() {
    let ruby = "\
module M
  LIMIT = 1
  # Doc.
  class A < B
    def m(a) # note
      go
    end

    def short(a) = a

    def self.n; end

    def o
      1
    rescue E
      2
    end
  end
end
";
    check(
        Language::Ruby,
        ruby,
        &[
            (Body("m", "stop"), "go", "stop"),
            (Body("m", "if a\n  b\nend"), "go", "if a\n        b\n      end"),
            (Body("m", ""), "\n      go\n", "\n"),
            (Body("o", "3"), "1\n    rescue E\n      2", "3"),
            (Body("n", "1"), "self.n; end", "self.n\n      1\n    end"),
            (Body("short", "b"), "= a", "= b"),
            (Signature("m", "def m(a, b = 1)"), "def m(a)", "def m(a, b = 1)"),
            (Signature("o", "def o(x)"), "def o", "def o(x)"),
            (
                AfterMethod("A", "short", "def p\n  1\nend"),
                "(a) = a\n",
                "(a) = a\n\n    def p\n      1\n    end\n",
            ),
            (Delete("m"), "    def m(a) # note\n      go\n    end\n\n", ""),
            (Delete("o"), "\n    def o\n      1\n    rescue E\n      2\n    end\n", ""),
            (After("LIMIT", "MORE = 2"), "LIMIT = 1\n", "LIMIT = 1\n  MORE = 2\n"),
        ],
    );
}

#[test]
fn lua_and_bash() {
    let lua = "\
local M = {}

function M.f(a) -- note
  return a
end

function M:g() end

M.k = function(x)
  return x
end

return M
";
    check(
        Language::Lua,
        lua,
        &[
            (Body("M.f", "return 1"), "return a", "return 1"),
            (Body("M.g", "go()"), "g() end", "g()\n  go()\nend"),
            (Body("M.k", "\n  go()\n  return 1\n"), "return x", "go()\n  return 1"),
            (Signature("M.f", "function M.f(a, b)"), "M.f(a)", "M.f(a, b)"),
            (
                AfterMethod("M", "g", "function M:h()\nend"),
                "g() end\n",
                "g() end\n\nfunction M:h()\nend\n",
            ),
            (Delete("M.g"), "function M:g() end\n\n", ""),
        ],
    );
    let bash = "\
#!/bin/sh
NAME=1
# Doc.
run() {
  local x=1
}
function stop { :; }
";
    check(
        Language::Bash,
        bash,
        &[
            (Body("run", "echo 1\necho 2"), "local x=1", "echo 1\n  echo 2"),
            (Body("stop", "echo 1"), "{ :; }", "{\n  echo 1\n}"),
            (Signature("stop", "stop()"), "function stop {", "stop() {"),
            (After("run", "again() {\n  :\n}"), "x=1\n}\n", "x=1\n}\n\nagain() {\n  :\n}\n"),
            (Delete("run"), "# Doc.\nrun() {\n  local x=1\n}\n", ""),
            (Replace("NAME", "NAME=2"), "NAME=1", "NAME=2"),
        ],
    );
}

#[test]
fn data_and_documents() {
    let json = "{\n  \"a\": {\n    \"b\": [1, {\"c\": 2}]\n  },\n  \"d\": 3\n}\n";
    check(
        Language::Json,
        json,
        &[
            (After("d", "\"e\": 4"), "\"d\": 3\n", "\"d\": 3,\n  \"e\": 4\n"),
            (After("a", "\"e\": 4,"), "  },\n", "  },\n  \"e\": 4,\n"),
            (Before("a", "\"e\": 4"), "  \"a\"", "  \"e\": 4,\n  \"a\""),
            (After("c", "\"e\": 4"), "\"c\": 2", "\"c\": 2, \"e\": 4"),
            (Replace("d", "\"d\": [4],"), "3", "[4]"),
            (Delete("d"), ",\n  \"d\": 3\n", "\n"),
            (Delete("a"), "  \"a\": {\n    \"b\": [1, {\"c\": 2}]\n  },\n", ""),
            (Delete("c"), "\"c\": 2", ""),
        ],
    );
    let yaml = "a:\n  b: 1\n  c:\n    - d: 2\n      e: 3\nf: 4\n";
    check(
        Language::Yaml,
        yaml,
        &[
            (After("a::b", "x: 1"), "b: 1\n", "b: 1\n  x: 1\n"),
            (After("d", "x: 1"), "d: 2\n", "d: 2\n      x: 1\n"),
            (Before("d", "x: 1"), "d: 2\n", "x: 1\n      d: 2\n"),
            (After("a", "x:\n  - 1"), "e: 3\n", "e: 3\nx:\n  - 1\n"),
            (Replace("e", "e:\n  - 5"), "e: 3", "e:\n        - 5"),
            (Delete("e"), "      e: 3\n", ""),
            (Delete("a"), "a:\n  b: 1\n  c:\n    - d: 2\n      e: 3\n", ""),
        ],
    );
    let toml = "top = 1\n\n[a.b]\nc = 2\n\n[[d]]\ne = { f = 1, g = 2 }\n";
    check(
        Language::Toml,
        toml,
        &[
            (After("top", "next = 2"), "top = 1\n", "top = 1\nnext = 2\n"),
            (After("a.b", "[x]\ny = 1"), "c = 2\n", "c = 2\n\n[x]\ny = 1\n"),
            (After("c", "y = 1"), "c = 2\n", "c = 2\ny = 1\n"),
            (Delete("a.b"), "[a.b]\nc = 2\n\n", ""),
            (Replace("a.b::c", "c = 3"), "c = 2", "c = 3"),
            (Delete("g"), "f = 1, g = 2", "f = 1"),
        ],
    );
    let css = ".a, .b > p {\n  color: red;\n}\n\n@keyframes spin { from { top: 0 } }\n";
    check(
        Language::Css,
        css,
        &[
            (
                After(".a, .b > p", ".c {\n  top: 0;\n}"),
                "red;\n}\n",
                "red;\n}\n\n.c {\n  top: 0;\n}\n",
            ),
            (Delete(".a, .b > p"), ".a, .b > p {\n  color: red;\n}\n\n", ""),
            (
                Replace("spin", "@keyframes turn {}"),
                "@keyframes spin { from { top: 0 } }",
                "@keyframes turn {}",
            ),
        ],
    );
    let html =
        "<body>\n  <div id=\"top\">\n    <p>x</p>\n  </div>\n  <span id=low>y</span>\n</body>\n";
    check(
        Language::Html,
        html,
        &[
            (After("top", "<hr>"), "  </div>\n", "  </div>\n  <hr>\n"),
            (Replace("low", "<b id=\"low\">z</b>"), "<span id=low>y</span>", "<b id=\"low\">z</b>"),
            (Delete("top"), "  <div id=\"top\">\n    <p>x</p>\n  </div>\n", ""),
        ],
    );
    let markdown = "# One\n\ntext\n\n## Two words\n\nmore\n\n## 1.0 [x]\n\nend\n";
    check(
        Language::Markdown,
        markdown,
        &[
            (After("Two words", "## New\n\nnew"), "more\n", "more\n\n## New\n\nnew\n"),
            (Before("1.0 [x]", "## New\n\nnew"), "## 1.0", "## New\n\nnew\n\n## 1.0"),
            (Replace("Two words", "## Two\n\nless\n"), "## Two words\n\nmore", "## Two\n\nless"),
            (Delete("Two words"), "## Two words\n\nmore\n\n", ""),
            (Delete("1.0 [x]"), "\n## 1.0 [x]\n\nend\n", ""),
        ],
    );
    assert_eq!(
        refusal(Language::Markdown, markdown, After("Two words", "# Top")),
        "replacement does not stay in its place: it would change heading One at line 1 as well"
    );
}

#[test]
fn functions_with_macros_that_the_parser_does_not_understand_are_edited() {
    let source = "\
INLINE uint32_t first(uint32_t w, uint32_t c) {
  return w;
}

REDIS_NO_SANITIZE(\"bounds\")
int second(int a) { FOREACH(x, y) { z(); } }
";
    check(
        Language::C,
        source,
        &[
            (Body("first", "\n  return c;\n"), "return w;", "return c;"),
            (Body("second", " return a; "), "FOREACH(x, y) { z(); }", "return a;"),
            (
                Signature("first", "INLINE int first(void)"),
                "uint32_t first(uint32_t w, uint32_t c)",
                "int first(void)",
            ),
            (
                After("first", "INLINE int other(void) {\n  return 1;\n}"),
                "return w;\n}\n",
                "return w;\n}\n\nINLINE int other(void) {\n  return 1;\n}\n",
            ),
        ],
    );
    assert_eq!(
        refusal(Language::C, "int f(void);\n", After("f", "UNKNOWN int other(void) {\n}")),
        "replacement did not parse: line 3 of the result: `UNKNOWN int other(void) {`"
    );
}

#[test]
fn line_endings_byte_order_marks_and_missing_final_newlines_stay() {
    let crlf = GO.replace('\n', "\r\n");
    for operation in [
        Body("Add", "\n\treturn b\n"),
        Signature("Add", "func Add(\n\ta int,\n)"),
        AfterMethod("T", "Run", "func (t *T[K]) New() {\n}\n"),
        Before("Run", "func first() {\n}"),
        After("asm", "func g()"),
        Replace("Add", "func Add() {\n}"),
        Delete("Close"),
        Delete("asm"),
    ] {
        let plain = edit(Language::Go, GO, operation).unwrap().text;
        let edited = edit(Language::Go, &crlf, operation).unwrap().text;
        assert_eq!(edited, plain.replace('\n', "\r\n"), "{operation:?}");
        let marked = format!("\u{feff}{GO}");
        assert_eq!(
            edit(Language::Go, &marked, operation).unwrap().text,
            format!("\u{feff}{plain}")
        );
        let open = GO.trim_end();
        assert_eq!(
            edit(Language::Go, open, operation).unwrap().text,
            plain.trim_end(),
            "{operation:?}"
        );
    }
    let body = edit(Language::Python, "def f():\r\n    pass\r\n", Body("f", "a()\nb()")).unwrap();
    assert_eq!(body.text, "def f():\r\n    a()\r\n    b()\r\n");
}

#[test]
fn a_body_with_one_end_of_a_conditional_is_refused() {
    let text =
        "#ifdef X\nint dual(int a) {\n#else\nint dual(long a) {\n#endif\n  return (int)a;\n}\n";
    let source = ParsedSource::parse(Language::C, text).unwrap();
    let target = SymbolTarget::parse("dual").unwrap();
    if let Ok(edited) = source.replace_body(&target, "\n  return 2;\n") {
        assert_eq!(edited.text.matches("#endif").count(), 1, "{}", edited.text);
    }
    let whole = "int f(int a) {\n#ifdef X\n  a++;\n#endif\n  return a;\n}\n";
    let source = ParsedSource::parse(Language::C, whole).unwrap();
    let target = SymbolTarget::parse("f").unwrap();
    let edited = source.replace_body(&target, "\n  return 2;\n").unwrap();
    assert_eq!(edited.text, "int f(int a) {\n  return 2;\n}\n");
}
