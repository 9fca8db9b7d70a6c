//! The texts of errors: a cause is in the text of its error or is its source, never both.

use quote::ToTokens as _;
use syn::{Attribute, Fields, Item};

use super::source::{LIBRARIES, root, rust_files};

#[test]
fn no_error_prints_its_source() {
    let mut files = Vec::new();
    for library in LIBRARIES {
        files.extend(rust_files(&root().join(library).join("src")));
    }
    assert!(files.len() > 100, "the sources were found");
    let printed: Vec<_> = files
        .iter()
        .flat_map(|file| {
            let code = std::fs::read_to_string(file).expect("a source file");
            let name = file.strip_prefix(root()).unwrap_or(file).display().to_string();
            printed_sources(&code)
                .into_iter()
                .map(move |text| format!("{name}: {text}"))
        })
        .collect();
    assert_eq!(
        printed,
        Vec::<String>::new(),
        "name a printed field `cause`, without #[source] and #[from]"
    );
}

#[test]
fn a_printed_source_is_found() {
    let code = r#"
        enum Bad {
            #[error("cannot read `{path}`: {source}")]
            Read { path: String, source: io::Error },
            #[error("a layer failed: {0}")]
            Layer(#[source] BoxError),
            #[error("it is broken: {0:?}")]
            Broken(#[from] io::Error),
            #[error("it is broken: {why}")]
            Named { #[from] why: io::Error },
            #[error("it is broken: {}", describe(source))]
            Described { source: io::Error },
            #[error(transparent)]
            Transparent(#[from] io::Error),
            #[error("no {0}: {cause}")]
            Good { cause: io::Error },
            #[error("`{0}` cannot be used")]
            Kept(String, #[source] io::Error),
        }
        mod inner {
            #[error("it is broken: {source}")]
            struct Inner { source: io::Error }
        }
    "#;
    let found = printed_sources(code);
    assert_eq!(found.len(), 6, "{found:#?}");
}

/// Returns the `error` attributes that print the source of their error.
fn printed_sources(code: &str) -> Vec<String> {
    let file = syn::parse_file(code).expect("a source file is Rust");
    let mut found = Vec::new();
    of_items(&file.items, &mut found);
    found
}

fn of_items(items: &[Item], found: &mut Vec<String>) {
    for item in items {
        match item {
            Item::Enum(item) => {
                for variant in &item.variants {
                    found.extend(printed(&variant.attrs, &variant.fields));
                }
            }
            Item::Struct(item) => found.extend(printed(&item.attrs, &item.fields)),
            Item::Mod(module) => {
                if let Some((_, items)) = &module.content {
                    of_items(items, found);
                }
            }
            _ => {}
        }
    }
}

/// Returns the text of the `error` attribute if it mentions the field that is the source.
fn printed(attributes: &[Attribute], fields: &Fields) -> Option<String> {
    let attribute = attributes.iter().find(|attribute| attribute.path().is_ident("error"))?;
    let text = attribute.meta.to_token_stream().to_string();
    let mut sources = fields.iter().enumerate().filter_map(|(index, field)| {
        let name = field
            .ident
            .as_ref()
            .map_or_else(|| index.to_string(), ToString::to_string);
        let is_marked = |attribute: &Attribute| ["source", "from"].iter().any(|mark| attribute.path().is_ident(mark));
        (name == "source" || field.attrs.iter().any(is_marked)).then_some(name)
    });
    sources.any(|name| mentions(&text, &name)).then_some(text)
}

/// Returns `true` if the attribute has `{name}`, `{name:…}`, or `name` or `.0` among the
/// arguments behind its text.
fn mentions(attribute: &str, name: &str) -> bool {
    let is_placed = [format!("{{{name}}}"), format!("{{{name}:")];
    let arguments = attribute.rsplit_once('"').map_or("", |(_, arguments)| arguments);
    let mut words = arguments.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    is_placed.iter().any(|place| attribute.contains(place)) || words.any(|word| word == name)
}
