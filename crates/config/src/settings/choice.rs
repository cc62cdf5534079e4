//! Enums whose variants are written as one word in settings.

/// Defines an enum with `NAMES`, `as_str` and `parse` for the words of its variants.
macro_rules! choices {
    (
        $(#[$attribute:meta])*
        $name:ident { $($(#[$variant_attribute:meta])* $variant:ident = $word:literal,)+ }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$variant_attribute])* $variant,)+ }

        impl $name {
            /// Every word, in the order of the variants.
            pub const NAMES: &[&str] = &[$($word),+];

            /// Returns the word that settings use.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Reads the word that settings use.
            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

pub(super) use choices;
