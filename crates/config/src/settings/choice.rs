//! Enums whose variants are written as one word in settings.

/// Defines an enum with `NAMES`, `as_str` and `parse` for the words of its variants.
macro_rules! choices {
    (
        $(#[$attribute:meta])*
        $name:ident { $($(#[$variant_attribute:meta])* $variant:ident = $word:literal,)+ }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "most words say it all")]
        pub enum $name { $($(#[$variant_attribute])* $variant,)+ }

        impl $name {
            /// The words of settings, in the order of the variants.
            pub const NAMES: &[&str] = &[$($word),+];

            /// Returns the word of a variant, as settings and messages write it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Returns the variant of a word; `None` if there is none. Case matters.
            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

pub(crate) use choices;
