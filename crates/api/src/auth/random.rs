//! Random bytes for tokens and ids.

pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the kernel has random bytes");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_draws_are_alike() {
        assert_ne!(random::<16>(), random::<16>());
    }
}
