//! Files that programs name, while an editor has some of them open. In: names. Out: texts as the editor has them, else as they
//! are on the disk; and paths for URIs, and back. Never: a text on the disk where a newer one is open.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use lsp_types::Uri;
use pipec_compiler::source::{Loader, search};

use crate::files::{self, Files};

/// Texts that are open, by the paths of their files.
pub struct Overlay(pub BTreeMap<String, String>);

impl Loader for Overlay {
    fn find(&self, from: &str, path: &str) -> Result<String, String> {
        let is_open = |place: &Path| place.to_str().is_some_and(|place| self.0.contains_key(place));
        search(from, path, files::folders(), |place| is_open(place) || place.is_file())
    }

    fn read(&self, name: &str) -> Result<String, String> {
        self.0.get(name).map_or_else(|| Files.read(name), |text| Ok(text.clone()))
    }

    fn identity(&self, name: &str) -> String {
        Files.identity(name)
    }
}

/// The path of a file's URI; of others, the URI itself.
pub fn path(uri: &Uri) -> String {
    let text = uri.as_str();
    let Some(encoded) = text.strip_prefix("file://") else { return text.to_string() };
    let mut bytes = vec![];
    let mut rest = encoded.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let hex = |range| encoded_byte(rest.get(range)?);
        match hex(1..3).filter(|_| byte == b'%') {
            Some(decoded) => {
                bytes.push(decoded);
                rest = &rest[3..];
            }
            None => {
                bytes.push(byte);
                rest = behind;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| encoded.to_string())
}

fn encoded_byte(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The URI of a path, if it has one.
pub fn uri(path: &str) -> Option<Uri> {
    let whole = std::path::absolute(path).ok()?;
    let mut text = String::from("file://");
    for byte in whole.to_str()?.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => text.push(byte as char),
            _ => text += &format!("%{byte:02X}"),
        }
    }
    Uri::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uris_and_back() {
        for (place, text) in [("/a/b.pipe", "file:///a/b.pipe"), ("/a ä%/b", "file:///a%20%C3%A4%25/b")] {
            let made = uri(place).expect("a URI");
            assert_eq!(made.as_str(), text);
            assert_eq!(path(&made), place);
        }
        let other = Uri::from_str("untitled:1").expect("a URI");
        assert_eq!(path(&other), "untitled:1");
    }
}
