//! C#, Kotlin, Scala and Swift, whose grammars are in a build with the feature `all-grammars`: symbols, patterns and edits.

use carrel_code::Language;
use pretty_assertions::assert_eq;

use crate::structural_edits::Operation::{After, AfterMethod, Body, Delete, Signature};
use crate::structural_edits::check;
use crate::structural_search::{compile, found_with};
use crate::symbols::outline;

const CSHARP: &str = "\
using System;

namespace Shapes
{
    /// <summary>A square.</summary>
    [Serializable]
    public sealed class Square : IShape
    {
        private readonly int side, unit;

        public Square(int side) { this.side = side; }

        public int Side => side;

        /// <summary>The area.</summary>
        public int Area(int times)
        {
            return Math.Abs(side * side * times);
        }

        enum Kind { Small, Large }
    }

    public interface IShape { int Area(int times); }
    record Pair(int A, int B);
    delegate void Done(int x);
}
";

const KOTLIN: &str = "\
package shapes

typealias Name = String

/** A shape. */
interface Shape {
    fun area(times: Int): Int
}

data class Square(val side: Int) : Shape {
    val unit: Int = 1

    /** The area. */
    override fun area(times: Int): Int {
        return maxOf(side * side * times, 0)
    }

    companion object {
        fun of(side: Int) = Square(side)
    }
}

enum class Kind { SMALL, LARGE }

object Registry {
    fun clear() {}
}

fun total(all: List<Shape>) = all.sumOf { it.area(1) }
";

const SCALA: &str = "\
package shapes

/** A shape. */
trait Shape {
  type Unit
  def area(times: Int): Int
}

final case class Square(side: Int) extends Shape {
  val unit = 1

  /** The area. */
  override def area(times: Int): Int = {
    math.abs(side * side * times)
  }
}

object Square {
  def of(side: Int): Square = new Square(side)
}
";

const SWIFT: &str = "\
import Foundation

/// A shape.
protocol Shape {
  func area(times: Int) -> Int
}

public struct Square: Shape {
  private let side: Int

  init(side: Int) {
    self.side = side
  }

  /// The area.
  public func area(times: Int) -> Int {
    return abs(side * side * times)
  }
}

enum Kind {
  case small
  case large
}

typealias Name = String

func total(_ all: [Shape]) -> Int {
  return all.reduce(0) { $0 + $1.area(times: 1) }
}

extension Square {}
";

#[test]
fn symbols_have_their_kinds_paths_and_lines() {
    assert_eq!(
        outline(Language::CSharp, CSHARP),
        [
            "3-27 module Shapes",
            "5-22 class Shapes::Square",
            "9-9 field Shapes::Square::side",
            "9-9 field Shapes::Square::unit",
            "11-11 method Shapes::Square::Square",
            "13-13 field Shapes::Square::Side",
            "15-19 method Shapes::Square::Area",
            "21-21 enum Shapes::Square::Kind",
            "21-21 variant Shapes::Square::Kind::Small",
            "21-21 variant Shapes::Square::Kind::Large",
            "24-24 interface Shapes::IShape",
            "24-24 method Shapes::IShape::Area",
            "25-25 class Shapes::Pair",
            "26-26 type Shapes::Done",
        ]
    );
    assert_eq!(
        outline(Language::Kotlin, KOTLIN),
        [
            "3-3 type Name",
            "5-8 interface Shape",
            "7-7 method Shape::area",
            "10-21 class Square",
            "11-11 field Square::unit",
            "13-16 method Square::area",
            "19-19 method Square::of",
            "23-23 enum Kind",
            "23-23 variant Kind::SMALL",
            "23-23 variant Kind::LARGE",
            "25-27 class Registry",
            "26-26 method Registry::clear",
            "29-29 function total",
        ]
    );
    assert_eq!(
        outline(Language::Scala, SCALA),
        [
            "3-7 trait Shape",
            "5-5 type Shape::Unit",
            "6-6 method Shape::area",
            "9-16 class Square",
            "10-10 field Square::unit",
            "12-15 method Square::area",
            "18-20 class Square",
            "19-19 method Square::of",
        ]
    );
    assert_eq!(
        outline(Language::Swift, SWIFT),
        [
            "3-6 interface Shape",
            "5-5 method Shape::area",
            "8-19 struct Square",
            "9-9 field Square::side",
            "11-13 method Square::init",
            "15-18 method Square::area",
            "21-24 enum Kind",
            "22-22 variant Kind::small",
            "23-23 variant Kind::large",
            "26-26 type Name",
            "28-30 function total",
            "32-32 impl Square",
        ]
    );
}

/// A language, a source, a pattern and the first match.
const PATTERNS: &[(Language, &str, &str, &str)] = &[
    (
        Language::CSharp,
        CSHARP,
        "Math.Abs($A)",
        "18 Math.Abs(side * side * times) {$A=side * side * times}",
    ),
    (
        Language::CSharp,
        CSHARP,
        "return $A;",
        "18 return Math.Abs(side * side * times); {$A=Math.Abs(side * side * times)}",
    ),
    (
        Language::CSharp,
        CSHARP,
        "public int $F($$$P) { $$$B }",
        "16 public int Area(int times) {$$$B=return Math.Abs(side * side * times);, $F=Area, $$$P=int times}",
    ),
    (Language::CSharp, CSHARP, "this.$A = $B;", "11 this.side = side; {$A=side, $B=side}"),
    (
        Language::Kotlin,
        KOTLIN,
        "maxOf($$$A)",
        "15 maxOf(side * side * times, 0) {$$$A=side * side * times, 0}",
    ),
    (
        Language::Kotlin,
        KOTLIN,
        "return $A",
        "15 return maxOf(side * side * times, 0) {$A=maxOf(side * side * times, 0)}",
    ),
    (Language::Kotlin, KOTLIN, "val $A: Int = $B", "11 val unit: Int = 1 {$A=unit, $B=1}"),
    (
        Language::Kotlin,
        KOTLIN,
        "fun $F($$$P) = $B",
        "19 fun of(side: Int) = Square(side) {$B=Square(side), $F=of, $$$P=side: Int}",
    ),
    (
        Language::Scala,
        SCALA,
        "math.abs($A)",
        "14 math.abs(side * side * times) {$A=side * side * times}",
    ),
    (Language::Scala, SCALA, "new $T($$$A)", "19 new Square(side) {$$$A=side, $T=Square}"),
    (Language::Scala, SCALA, "val $A = $B", "10 val unit = 1 {$A=unit, $B=1}"),
    (
        Language::Scala,
        SCALA,
        "def $F($$$P): $R = $B",
        "19 def of(side: Int): Square = new Square(side) {$B=new Square(side), $F=of, $$$P=side: Int, $R=Square}",
    ),
    (Language::Swift, SWIFT, "abs($A)", "17 abs(side * side * times) {$A=side * side * times}"),
    (Language::Swift, SWIFT, "self.$A = $B", "12 self.side = side {$A=side, $B=side}"),
    (
        Language::Swift,
        SWIFT,
        "return $A",
        "17 return abs(side * side * times) {$A=abs(side * side * times)}",
    ),
    (
        Language::Swift,
        SWIFT,
        "func $F($$$P) -> Int { return $B }",
        "28 func total(_ all: [Shape]) -> Int { {$B=all.reduce(0) { $0 + $1.area(times: 1) }, $F=total, $$$P=_ all: [Shape]}",
    ),
];

#[test]
fn patterns_match_by_structure() {
    for (language, source, pattern, expected) in PATTERNS {
        let search = compile(*language, pattern).unwrap();
        let found = found_with(&search, source);
        assert_eq!(found.first().map(String::as_str), Some(*expected), "{language}: {pattern}");
    }
}

#[test]
fn edits_change_what_they_name() {
    check(
        Language::CSharp,
        CSHARP,
        &[
            (
                Body("Square::Area", "\nreturn 0;\n"),
                "return Math.Abs(side * side * times);",
                "return 0;",
            ),
            (
                Signature("Square::Area", "public long Area()"),
                "public int Area(int times)",
                "public long Area()",
            ),
            (
                AfterMethod("Square", "Area", "public int Twice()\n{\n    return 2;\n}"),
                "times);\n        }\n",
                "times);\n        }\n\n        public int Twice()\n        {\n            return 2;\n        }\n",
            ),
            (Delete("Kind::Large"), ", Large", ""),
            (Delete("Kind::Small"), "Small, ", ""),
        ],
    );
    check(
        Language::Kotlin,
        KOTLIN,
        &[
            (
                Body("Square::area", "\nreturn 0\n"),
                "return maxOf(side * side * times, 0)",
                "return 0",
            ),
            (
                Signature("total", "fun total(all: Set<Shape>)"),
                "fun total(all: List<Shape>)",
                "fun total(all: Set<Shape>)",
            ),
            (Delete("unit"), "    val unit: Int = 1\n\n", ""),
            (Delete("LARGE"), ", LARGE", ""),
            (
                After("Registry", "object Other {\n}"),
                "    fun clear() {}\n}\n",
                "    fun clear() {}\n}\n\nobject Other {\n}\n",
            ),
        ],
    );
    check(
        Language::Scala,
        SCALA,
        &[
            (Body("Square::area", "\n0\n"), "math.abs(side * side * times)", "0"),
            (
                Signature("of", "def of(side: Long): Square"),
                "def of(side: Int): Square",
                "def of(side: Long): Square",
            ),
            (Delete("unit"), "  val unit = 1\n\n", ""),
        ],
    );
    check(
        Language::Swift,
        SWIFT,
        &[
            (Body("Square::area", "\nreturn 0\n"), "return abs(side * side * times)", "return 0"),
            (
                Signature("total", "func total(all: [Shape]) -> Int"),
                "func total(_ all: [Shape]) -> Int",
                "func total(all: [Shape]) -> Int",
            ),
            (Delete("Kind::small"), "  case small\n", ""),
        ],
    );
}
