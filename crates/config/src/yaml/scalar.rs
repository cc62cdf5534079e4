//! Plain scalars by the core schema of YAML 1.2.
//!
//! `on`, `no` and `yes` are texts there, `012` is twelve and `0o14` is octal. An integer beyond 64 bits is kept as a
//! fraction, so that a rule about ranges can reject it with its value.

use crate::value_tree::Value;

pub(super) fn resolve(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Flag(true),
        "false" | "False" | "FALSE" => Value::Flag(false),
        _ => integer(text).or_else(|| number(text)).unwrap_or_else(|| Value::Text(text.to_owned())),
    }
}

fn integer(text: &str) -> Option<Value> {
    let (digits, radix) = match (text.strip_prefix("0x"), text.strip_prefix("0o")) {
        (Some(digits), _) => (digits, 16),
        (_, Some(digits)) => (digits, 8),
        (None, None) => return text.parse().ok().map(Value::Integer),
    };
    // `from_str_radix` would take a sign after the prefix.
    digits.starts_with(|c: char| c.is_ascii_hexdigit()).then_some(())?;
    i64::from_str_radix(digits, radix).ok().map(Value::Integer)
}

fn number(text: &str) -> Option<Value> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
        return Some(Value::Number(f64::INFINITY * sign));
    }
    if matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Some(Value::Number(f64::NAN));
    }
    // Rust also reads words such as `inf` and `nan`, which are texts in YAML.
    let looks_numeric = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && unsigned.bytes().any(|byte| byte.is_ascii_digit());
    looks_numeric.then(|| text.parse().ok().map(Value::Number))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_resolve_by_the_core_rules() {
        let text = |text: &str| Value::Text(text.to_owned());
        for (plain, value) in [
            ("", Value::Null),
            ("~", Value::Null),
            ("null", Value::Null),
            ("true", Value::Flag(true)),
            ("FALSE", Value::Flag(false)),
            ("on", text("on")),
            ("no", text("no")),
            ("yes", text("yes")),
            ("tRue", text("tRue")),
            ("0", Value::Integer(0)),
            ("-19", Value::Integer(-19)),
            ("+12", Value::Integer(12)),
            ("012", Value::Integer(12)),
            ("0o14", Value::Integer(12)),
            ("0xC", Value::Integer(12)),
            ("0x", text("0x")),
            ("0x-1", text("0x-1")),
            ("0b1", text("0b1")),
            ("1_000", text("1_000")),
            ("1.5", Value::Number(1.5)),
            (".5", Value::Number(0.5)),
            ("2e3", Value::Number(2000.0)),
            ("-.inf", Value::Number(f64::NEG_INFINITY)),
            ("inf", text("inf")),
            ("nan", text("nan")),
            (".", text(".")),
            (".e1", text(".e1")),
            ("1.2.3", text("1.2.3")),
            ("2026-01-01", text("2026-01-01")),
            ("12:30", text("12:30")),
        ] {
            assert_eq!(resolve(plain), value, "{plain:?}");
        }
    }

    #[test]
    fn a_number_beyond_the_integers_is_kept_as_a_fraction() {
        assert_eq!(resolve("99999999999999999999"), Value::Number(1e20));
    }
}
