//! Conditions on the arguments of a system call.
//!
//! A condition can be evaluated here ([`Condition::holds`]) and assembled into instructions; tests run
//! both on the same arguments and compare. Arguments that are pointers cannot be tested: the filter does
//! not see the memory, and the caller could change it after the check.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One of the six argument registers of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Argument {
    /// The first.
    First,
    /// The second.
    Second,
    /// The third.
    Third,
    /// The fourth.
    Fourth,
    /// The fifth.
    Fifth,
    /// The sixth.
    Sixth,
}

impl Argument {
    /// Returns the position, counted from zero as the kernel does.
    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

/// The part of a register that the kernel uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Width {
    /// The low half: the kernel declares the argument as an `int` or shorter and drops the rest. A
    /// comparison of all 64 bits could be evaded by setting a high bit.
    Low32,
    /// All 64 bits.
    Full64,
}

/// A test of one argument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// The argument that is tested.
    pub argument: Argument,
    /// The part of it that counts.
    pub width: Width,
    /// The test.
    pub test: Test,
}

/// A test of a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// At least one of these bits is set.
    AnyBit(u64),
    /// The bits under the mask are one of the values.
    OneOf {
        /// The bits that count.
        mask: u64,
        /// The values, which have no bit outside the mask.
        values: Vec<u64>,
    },
    /// The bits under the mask are none of the values.
    NoneOf {
        /// The bits that count.
        mask: u64,
        /// The values, which have no bit outside the mask.
        values: Vec<u64>,
    },
}

impl Condition {
    /// Tests whether one of the bits is set in a 32-bit argument.
    pub(super) fn any_bit(argument: Argument, bits: u64) -> Self {
        Self { argument, width: Width::Low32, test: Test::AnyBit(bits) }
    }

    /// Tests whether a 32-bit argument is one of the values.
    pub(super) fn one_of(argument: Argument, values: &[u64]) -> Self {
        let test = Test::OneOf { mask: u64::from(u32::MAX), values: values.to_vec() };
        Self { argument, width: Width::Low32, test }
    }

    /// Tests whether a 32-bit argument is none of the values.
    pub(super) fn none_of(argument: Argument, values: &[u64]) -> Self {
        let test = Test::NoneOf { mask: u64::from(u32::MAX), values: values.to_vec() };
        Self { argument, width: Width::Low32, test }
    }

    /// Narrows a comparison to some bits. A test of single bits is its own mask already.
    pub(super) fn under(mut self, bits: u64) -> Self {
        match &mut self.test {
            Test::AnyBit(_) => {}
            Test::OneOf { mask, .. } | Test::NoneOf { mask, .. } => *mask = bits,
        }
        self
    }

    /// Tests another part of the register than its low half.
    pub(super) fn of(self, width: Width) -> Self {
        Self { width, ..self }
    }

    /// Returns whether the arguments satisfy the condition. The assembled program computes the same.
    pub(super) fn holds(&self, arguments: &[u64; 6]) -> bool {
        let cut = match self.width {
            Width::Low32 => u64::from(u32::MAX),
            Width::Full64 => u64::MAX,
        };
        let argument = arguments[self.argument.index()];
        let is_any = |mask: u64, values: &[u64]| {
            values.iter().any(|value| (argument & mask & cut) == (value & cut))
        };
        match &self.test {
            Test::AnyBit(bits) => argument & bits & cut != 0,
            Test::OneOf { mask, values } => is_any(*mask, values),
            Test::NoneOf { mask, values } => !is_any(*mask, values),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "argument {}", self.argument.index())?;
        match &self.test {
            Test::AnyBit(bits) => write!(f, " has a bit of {bits:#x}"),
            Test::OneOf { mask, values } => write_set(f, *mask, "is one of", values),
            Test::NoneOf { mask, values } => write_set(f, *mask, "is none of", values),
        }
    }
}

fn write_set(f: &mut fmt::Formatter<'_>, mask: u64, verb: &str, values: &[u64]) -> fmt::Result {
    if mask < u64::from(u32::MAX) {
        write!(f, " under {mask:#x}")?;
    }
    write!(f, " {verb}")?;
    values.iter().try_for_each(|value| write!(f, " {value:#x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_that_the_kernel_drops_do_not_count() {
        let condition = Condition::one_of(Argument::Second, &[0x5412]);
        assert!(condition.holds(&[0, 0xffff_ffff_0000_5412, 0, 0, 0, 0]));
        assert!(!condition.holds(&[0x5412, 0, 0, 0, 0, 0]));
    }

    #[test]
    fn all_bits_of_a_full_argument_count() {
        let test = Test::OneOf { mask: u64::MAX, values: vec![7] };
        let condition = Condition { argument: Argument::First, width: Width::Full64, test };
        assert!(condition.holds(&[7, 0, 0, 0, 0, 0]));
        assert!(!condition.holds(&[0x1_0000_0007, 0, 0, 0, 0, 0]));
    }
}
