//! The languages that have a grammar here, and how a file's name tells them.
//!
//! Every language is always a variant, whether or not its grammar is compiled in: a file of a language
//! without its grammar is an error that names the feature, never a panic and never an empty answer.

use std::fmt;
use std::path::Path;

use tree_sitter::Language as Grammar;

/// A language of source files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the language of its name")]
pub enum Language {
    Bash,
    C,
    Cpp,
    CSharp,
    Css,
    Go,
    Html,
    Java,
    JavaScript,
    Json,
    Kotlin,
    Lua,
    Markdown,
    Php,
    Python,
    Ruby,
    Rust,
    Scala,
    Swift,
    Toml,
    Tsx,
    TypeScript,
    Yaml,
}

/// A language whose grammar this build leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this build has no grammar for {language}; build with --features {}", .language.feature())]
pub struct MissingGrammar {
    /// The language.
    pub language: Language,
}

/// The names by which a language is recognised and asked for.
struct Names {
    /// In replies and arguments.
    name: &'static str,
    /// Further spellings in arguments.
    aliases: &'static [&'static str],
    extensions: &'static [&'static str],
    /// Whole names of files that have no extension.
    files: &'static [&'static str],
}

const fn names(
    name: &'static str,
    aliases: &'static [&'static str],
    extensions: &'static [&'static str],
    files: &'static [&'static str],
) -> Names {
    Names { name, aliases, extensions, files }
}

impl Language {
    /// Every language, in the order of lists.
    pub const ALL: [Self; 23] = [
        Self::Bash,
        Self::C,
        Self::Cpp,
        Self::CSharp,
        Self::Css,
        Self::Go,
        Self::Html,
        Self::Java,
        Self::JavaScript,
        Self::Json,
        Self::Kotlin,
        Self::Lua,
        Self::Markdown,
        Self::Php,
        Self::Python,
        Self::Ruby,
        Self::Rust,
        Self::Scala,
        Self::Swift,
        Self::Toml,
        Self::Tsx,
        Self::TypeScript,
        Self::Yaml,
    ];

    const fn names(self) -> Names {
        match self {
            Self::Bash => names(
                "bash",
                &["sh", "shell"],
                &["sh", "bash", "ksh"],
                &[".bashrc", ".bash_profile", ".profile", "PKGBUILD"],
            ),
            Self::C => names("c", &[], &["c", "h"], &[]),
            Self::Cpp => names(
                "cpp",
                &["c++"],
                &["cc", "cpp", "cxx", "c++", "hh", "hpp", "hxx", "h++", "ipp", "inl", "tpp"],
                &[],
            ),
            Self::CSharp => names("csharp", &["c#", "cs"], &["cs", "csx"], &[]),
            Self::Css => names("css", &[], &["css"], &[]),
            Self::Go => names("go", &["golang"], &["go"], &[]),
            Self::Html => names("html", &[], &["html", "htm", "xhtml"], &[]),
            Self::Java => names("java", &[], &["java"], &[]),
            Self::JavaScript => {
                names("javascript", &["js", "jsx"], &["js", "jsx", "mjs", "cjs"], &[])
            }
            Self::Json => names("json", &[], &["json", "jsonc", "webmanifest"], &[]),
            Self::Kotlin => names("kotlin", &["kt"], &["kt", "kts"], &[]),
            Self::Lua => names("lua", &[], &["lua"], &[]),
            Self::Markdown => names("markdown", &["md"], &["md", "markdown"], &[]),
            Self::Php => names("php", &[], &["php", "phtml", "php5", "php7"], &[]),
            Self::Python => names("python", &["py"], &["py", "pyi", "pyw"], &[]),
            Self::Ruby => {
                names("ruby", &["rb"], &["rb", "rake", "gemspec"], &["Rakefile", "Gemfile"])
            }
            Self::Rust => names("rust", &["rs"], &["rs"], &[]),
            Self::Scala => names("scala", &[], &["scala", "sc", "sbt"], &[]),
            Self::Swift => names("swift", &[], &["swift"], &[]),
            Self::Toml => names("toml", &[], &["toml"], &["Cargo.lock", "poetry.lock", "uv.lock"]),
            Self::Tsx => names("tsx", &[], &["tsx"], &[]),
            Self::TypeScript => names("typescript", &["ts"], &["ts", "mts", "cts"], &[]),
            Self::Yaml => names("yaml", &["yml"], &["yaml", "yml"], &[]),
        }
    }

    /// Returns the language of a file, by its name.
    pub fn of_path(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
        let lower = extension.map(str::to_ascii_lowercase);
        Self::ALL.into_iter().find(|language| {
            let names = language.names();
            names.files.contains(&name)
                || lower.as_deref().is_some_and(|lower| names.extensions.contains(&lower))
        })
    }

    /// Returns the language of a name, such as `rust` or `py`.
    pub fn of_name(name: &str) -> Option<Self> {
        let lower = name.trim().to_ascii_lowercase();
        Self::ALL.into_iter().find(|language| {
            let names = language.names();
            names.name == lower || names.aliases.contains(&lower.as_str())
        })
    }

    /// Returns the name in replies and arguments.
    pub const fn as_str(self) -> &'static str {
        self.names().name
    }

    /// Returns the extensions of its files, without the dot.
    pub const fn extensions(self) -> &'static [&'static str] {
        self.names().extensions
    }

    const fn feature(self) -> &'static str {
        match self {
            Self::Tsx => "typescript",
            Self::CSharp | Self::Kotlin | Self::Scala | Self::Swift => "all-grammars",
            _ => self.names().name,
        }
    }

    /// Returns true for languages of programs, and false for those of data and documents, whose symbols are
    /// keys and headings.
    pub const fn is_program(self) -> bool {
        !matches!(
            self,
            Self::Css | Self::Html | Self::Json | Self::Markdown | Self::Toml | Self::Yaml
        )
    }

    /// Tells whether files of two languages use each other's names.
    pub fn is_related(self, other: Self) -> bool {
        let family = |language| match language {
            Self::C | Self::Cpp => Self::C,
            Self::JavaScript | Self::TypeScript | Self::Tsx => Self::JavaScript,
            Self::Java | Self::Kotlin | Self::Scala => Self::Java,
            language => language,
        };
        family(self) == family(other)
    }

    /// Returns the grammar.
    #[cfg_attr(
        not(feature = "all-grammars"),
        expect(clippy::match_same_arms, reason = "grammars that are left out share their error")
    )]
    pub fn grammar(self) -> Result<Grammar, MissingGrammar> {
        /// The grammar of a crate, if its feature is on.
        macro_rules! of {
            ($feature:literal, $crate_:ident :: $constant:ident) => {{
                #[cfg(feature = $feature)]
                let grammar = Ok($crate_::$constant.into());
                #[cfg(not(feature = $feature))]
                let grammar = Err(MissingGrammar { language: self });
                grammar
            }};
        }
        match self {
            Self::Bash => of!("bash", tree_sitter_bash::LANGUAGE),
            Self::C => of!("c", tree_sitter_c::LANGUAGE),
            Self::Cpp => of!("cpp", tree_sitter_cpp::LANGUAGE),
            Self::CSharp => of!("csharp", tree_sitter_c_sharp::LANGUAGE),
            Self::Css => of!("css", tree_sitter_css::LANGUAGE),
            Self::Go => of!("go", tree_sitter_go::LANGUAGE),
            Self::Html => of!("html", tree_sitter_html::LANGUAGE),
            Self::Java => of!("java", tree_sitter_java::LANGUAGE),
            Self::JavaScript => of!("javascript", tree_sitter_javascript::LANGUAGE),
            Self::Json => of!("json", tree_sitter_json::LANGUAGE),
            Self::Kotlin => of!("kotlin", tree_sitter_kotlin_ng::LANGUAGE),
            Self::Lua => of!("lua", tree_sitter_lua::LANGUAGE),
            Self::Markdown => of!("markdown", tree_sitter_md::LANGUAGE),
            Self::Php => of!("php", tree_sitter_php::LANGUAGE_PHP),
            Self::Python => of!("python", tree_sitter_python::LANGUAGE),
            Self::Ruby => of!("ruby", tree_sitter_ruby::LANGUAGE),
            Self::Rust => of!("rust", tree_sitter_rust::LANGUAGE),
            Self::Scala => of!("scala", tree_sitter_scala::LANGUAGE),
            Self::Swift => of!("swift", tree_sitter_swift::LANGUAGE),
            Self::Toml => of!("toml", tree_sitter_toml_ng::LANGUAGE),
            Self::Tsx => of!("typescript", tree_sitter_typescript::LANGUAGE_TSX),
            Self::TypeScript => of!("typescript", tree_sitter_typescript::LANGUAGE_TYPESCRIPT),
            Self::Yaml => of!("yaml", tree_sitter_yaml::LANGUAGE),
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_file_name_tells_its_language() {
        for (name, language) in [
            ("src/a.rs", Some(Language::Rust)),
            ("a.test.tsx", Some(Language::Tsx)),
            ("A.PY", Some(Language::Python)),
            ("Gemfile", Some(Language::Ruby)),
            (".bashrc", Some(Language::Bash)),
            ("x.h", Some(Language::C)),
            ("Makefile", None),
            (".rs", None),
        ] {
            assert_eq!(Language::of_path(Path::new(name)), language, "{name}");
        }
    }

    #[test]
    fn names_and_aliases_are_unambiguous() {
        for language in Language::ALL {
            assert_eq!(Language::of_name(language.as_str()), Some(language));
            for alias in language.names().aliases {
                assert_eq!(Language::of_name(alias), Some(language), "{alias}");
            }
        }
    }

    #[test]
    fn a_language_without_its_grammar_is_an_error_that_names_the_feature() {
        for language in Language::ALL {
            match language.grammar() {
                Ok(grammar) => assert!(grammar.node_kind_count() > 0),
                Err(missing) => assert!(missing.to_string().contains("--features all-grammars")),
            }
        }
    }
}
