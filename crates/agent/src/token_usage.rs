//! Token counts in the spellings of different agents, and their arithmetic.

use serde_json::Value;

use crate::event::Tokens;

const INPUT: [&str; 4] = ["input_tokens", "prompt_tokens", "inputTokens", "promptTokens"];
const OUTPUT: [&str; 4] =
    ["output_tokens", "completion_tokens", "outputTokens", "completionTokens"];
const TOTAL: [&str; 3] = ["total_tokens", "total", "totalTokens"];

/// Reads token counts from an object; `None` if it has none. A missing total is the sum of input and output.
pub(crate) fn tokens(value: &Value) -> Option<Tokens> {
    let read = |names: &[&str]| names.iter().find_map(|name| number(value.get(name)?));
    let (input, output, total) = (read(&INPUT), read(&OUTPUT), read(&TOTAL));
    if input.is_none() && output.is_none() && total.is_none() {
        return None;
    }
    let (input, output) = (input.unwrap_or_default(), output.unwrap_or_default());
    Some(Tokens { input, output, total: total.unwrap_or(input.saturating_add(output)) })
}

/// Reads a non-negative integer, also as the leading digits of a string.
fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => {
            let text = text.trim_start();
            let digits = text.bytes().take_while(u8::is_ascii_digit).count();
            text[..digits].parse().ok()
        }
        _ => None,
    }
}

impl Tokens {
    /// Returns the sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    /// Returns the difference, at least 0.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_sub)
    }

    /// Returns the greater of each count, so that a total that is repeated or out of order never falls.
    #[must_use]
    pub fn at_least(self, other: Self) -> Self {
        self.zip(other, u64::max)
    }

    fn zip(self, other: Self, combine: fn(u64, u64) -> u64) -> Self {
        Self {
            input: combine(self.input, other.input),
            output: combine(self.output, other.output),
            total: combine(self.total, other.total),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    #[test]
    fn tokens_are_read_in_every_spelling() {
        let expected = Some(Tokens { input: 10, output: 4, total: 15 });
        for value in [
            json!({"input_tokens": 10, "output_tokens": 4, "total_tokens": 15}),
            json!({"prompt_tokens": 10, "completion_tokens": 4, "total": 15}),
            json!({"inputTokens": 10, "outputTokens": 4, "totalTokens": 15}),
            json!({"promptTokens": "10", "completionTokens": "4 tokens", "total": "15"}),
        ] {
            assert_eq!(tokens(&value), expected, "{value}");
        }
        let sum = Some(Tokens { input: 1, output: 2, total: 3 });
        assert_eq!(tokens(&json!({"input_tokens": 1, "output_tokens": 2})), sum);
        for value in [json!({}), json!({"total": -1}), json!({"total": "x"}), json!([1])] {
            assert_eq!(tokens(&value), None, "{value}");
        }
    }
}
