//! Enums whose variants have names in settings, commands and replies.

/// Defines an enum with the name of each variant, the list of all variants, and `as_str`.
macro_rules! named_enum {
    ($(#[$meta:meta])* pub enum $type:ident {
        $($(#[$doc:meta])* $variant:ident = $name:literal,)*
    }) => {
        $(#[$meta])*
        pub enum $type { $($(#[$doc])* $variant,)* }

        impl $type {
            /// All variants, in the order of their definition.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the name in settings, commands and replies.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

pub(crate) use named_enum;
