//! Settings in JSON and TOML files.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use super::setting::Origin;
use super::{Config, ConfigError, Setting, Value};

/// Maximum size of a file, in bytes: 1 MiB. The bound keeps a wrong path, such as a device, from
/// filling the memory.
const MAX_BYTES: u64 = 1 << 20;

/// A node of a parsed file, in either format.
enum Node {
    /// A section: names and their nodes.
    Names(Vec<(String, Self)>),
    /// A value; `None` for `null`.
    Value(Option<Value>),
}

/// Reads the file, which may be up to 1 MiB long.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut text));
    let read = read.and_then(|length| {
        if length as u64 > MAX_BYTES {
            Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is longer than 1 MiB"))
        } else {
            Ok(text)
        }
    });
    read.map_err(|cause| ConfigError::Unreadable {
        path: path.to_owned(),
        cause,
    })
}

/// Adds the settings of a file with this text.
pub(super) fn add(config: &mut Config, path: &Path, text: &[u8]) -> Result<(), ConfigError> {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
    let root = match ending.to_str() {
        Some("json") => json(path, text)?,
        Some("toml") => toml(path, text)?,
        _ => return Err(ConfigError::UnknownFormat { path: path.to_owned() }),
    };
    config.layers += 1;
    let layer = Layer {
        path: path.into(),
        number: config.layers,
    };
    match root {
        Node::Names(names) => layer.add_all(config, &[], names),
        Node::Value(value) => Err(ConfigError::Invalid {
            setting: format!("the whole of `{}`", path.display()),
            expected: "an object of sections".into(),
            found: value.as_ref().map_or("nothing", Value::kind),
        }),
    }
}

/// The layer of one file.
struct Layer {
    path: Arc<Path>,
    number: u32,
}

impl Layer {
    /// Adds the settings below `parents`.
    fn add_all(&self, config: &mut Config, parents: &[String], names: Vec<(String, Node)>) -> Result<(), ConfigError> {
        for (name, node) in names {
            let names = [parents, &[name]].concat();
            match node {
                Node::Names(below) => {
                    self.add(config, &names, Value::Section)?;
                    self.add_all(config, &names, below)?;
                }
                Node::Value(Some(value)) if value.as_text() != Some("") => self.add(config, &names, value)?,
                Node::Value(_) => {}
            }
        }
        Ok(())
    }

    fn add(&self, config: &mut Config, names: &[String], value: Value) -> Result<(), ConfigError> {
        let route = names.iter().map(|name| name.to_ascii_lowercase()).collect();
        let setting = Setting {
            value,
            origin: Origin::File {
                key: names.join("."),
                path: self.path.clone(),
            },
            layer: self.number,
        };
        match config.settings.insert(route, setting) {
            Some(earlier) if earlier.layer == self.number => Err(ConfigError::Duplicate {
                setting: earlier.to_string(),
            }),
            _ => Ok(()),
        }
    }
}

fn json(path: &Path, text: &[u8]) -> Result<Node, ConfigError> {
    // Only the position of the error is kept: its message may quote the file.
    let json: serde_json::Value = serde_json::from_slice(text).map_err(|error| ConfigError::Syntax {
        path: path.to_owned(),
        format: "JSON",
        line: error.line(),
        column: error.column(),
    })?;
    Ok(from_json(json))
}

fn from_json(json: serde_json::Value) -> Node {
    use serde_json::Value as Json;
    Node::Value(Some(match json {
        Json::Object(members) => {
            let members = members.into_iter().map(|(name, value)| (name, from_json(value)));
            return Node::Names(members.collect());
        }
        Json::Null => return Node::Value(None),
        Json::Bool(flag) => Value::Flag(flag),
        Json::Number(number) => Value::Number(number.to_string()),
        Json::String(text) => Value::Text(text.into()),
        Json::Array(values) => return list(values.into_iter().map(from_json).collect()),
    }))
}

fn toml(path: &Path, text: &[u8]) -> Result<Node, ConfigError> {
    let syntax = |end: usize| {
        let before = &text[..end.min(text.len())];
        let line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        ConfigError::Syntax {
            path: path.to_owned(),
            format: "TOML",
            line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
            column: String::from_utf8_lossy(line).chars().count() + 1,
        }
    };
    let utf8 = std::str::from_utf8(text).map_err(|error| syntax(error.valid_up_to()))?;
    // Only the position here as well: the message of this error quotes the file.
    let table: toml::Table = toml::from_str(utf8).map_err(|error| syntax(error.span().unwrap_or_default().start))?;
    Ok(from_toml(table.into()))
}

fn from_toml(toml: toml::Value) -> Node {
    use toml::Value as Toml;
    Node::Value(Some(match toml {
        Toml::Table(members) => {
            let members = members.into_iter().map(|(name, value)| (name, from_toml(value)));
            return Node::Names(members.collect());
        }
        Toml::Boolean(flag) => Value::Flag(flag),
        Toml::Integer(number) => Value::Number(number.to_string()),
        Toml::Float(number) => Value::Number(number.to_string()),
        Toml::String(text) => Value::Text(text.into()),
        // A bare `04:00:00` is a time of day in TOML, and a time span here.
        Toml::Datetime(time) => Value::Text(time.to_string().into()),
        Toml::Array(values) => return list(values.into_iter().map(from_toml).collect()),
    }))
}

/// Converts a list. A list of sections is a section whose names are their positions:
/// `Servers.0.Name`.
fn list(nodes: Vec<Node>) -> Node {
    let are_sections = !nodes.is_empty() && nodes.iter().all(|node| matches!(node, Node::Names(_)));
    if are_sections {
        Node::Names((0..).map(|position: usize| position.to_string()).zip(nodes).collect())
    } else {
        Node::Value(Some(Value::List(nodes.into_iter().map(Node::into_item).collect())))
    }
}

impl Node {
    /// Converts the node into an element of a list. A section beside other values is not supported;
    /// reading it is an error.
    fn into_item(self) -> Value {
        match self {
            Self::Value(Some(value)) => value,
            Self::Value(None) | Self::Names(_) => Value::Section,
        }
    }
}
