//! The formats of pictures that renderers write.

use carrel_domain::Failure;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PictureFormat {
    Svg,
    Png,
    Pdf,
}

impl PictureFormat {
    const ALL: [Self; 3] = [Self::Svg, Self::Png, Self::Pdf];

    /// Returns the format by the extension of a path.
    pub(super) fn of(path: &str) -> Result<Self, Failure> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let extension = name.rfind('.').map_or("", |dot| &name[dot..]);
        let is_it =
            |format: &Self| extension.to_lowercase().strip_prefix('.') == Some(format.as_str());
        Self::ALL.into_iter().find(is_it).ok_or_else(|| {
            let message = format!(
                "unsupported output extension \"{extension}\"; supported: .svg, .png, .pdf"
            );
            Failure::argument("output_path", message)
        })
    }

    /// Returns the extension, which is also the name that renderers know.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Png => "png",
            Self::Pdf => "pdf",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_decides_in_either_case() {
        for (path, format) in [
            ("a.svg", PictureFormat::Svg),
            ("a.b/c.d.PNG", PictureFormat::Png),
            (".Pdf", PictureFormat::Pdf),
        ] {
            assert_eq!(PictureFormat::of(path).unwrap(), format, "{path}");
        }
        for (path, extension) in [("a.svg/b", ""), ("a.jpg", ".jpg"), ("svg", ""), ("a.", ".")] {
            let refused = PictureFormat::of(path).unwrap_err().message;
            let expected = format!(
                "unsupported output extension \"{extension}\"; supported: .svg, .png, .pdf"
            );
            assert_eq!(refused, expected, "{path}");
        }
    }
}
