//! The modules of our crates, and the resolution of paths between them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, Item, Meta, UseTree, Visibility};

use super::tokens::text;

/// A module: the name of its crate, then the names from the root.
pub(super) type ModulePath = Vec<String>;

/// The place of a definition: its module and its name.
pub(super) type Definition = (ModulePath, String);

/// A path that ends at a definition, at a module of ours, or outside of our crates.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Resolved {
    Item(Definition),
    Module(ModulePath),
    Foreign(String),
}

/// A name that a module imports.
pub(super) struct Import {
    /// The name; `*` for all names of the path.
    pub(super) name: String,
    pub(super) path: Vec<String>,
    pub(super) is_public: bool,
}

#[derive(Default)]
pub(super) struct Module {
    pub(super) items: Vec<Item>,
    /// The places of the named items.
    names: BTreeMap<String, usize>,
    pub(super) imports: Vec<Import>,
    /// The child modules, and `true` for public ones.
    pub(super) children: BTreeMap<String, bool>,
}

impl Module {
    fn add(&mut self, item: Item) {
        if let Some(name) = name_of(&item) {
            self.names.entry(name).or_insert(self.items.len());
        }
        self.items.push(item);
    }

    /// Returns the item that is defined under `name`.
    pub(super) fn item(&self, name: &str) -> Option<&Item> {
        self.names.get(name).map(|place| &self.items[*place])
    }
}

/// The modules of all crates, without tests.
#[derive(Default)]
pub(super) struct Crates {
    pub(super) modules: BTreeMap<ModulePath, Module>,
}

impl Crates {
    /// Reads the libraries in these folders of `root`, and the one in `root` itself.
    pub(super) fn read(root: &Path, libraries: &[&str]) -> Self {
        let mut crates = Self::default();
        let folders = libraries.iter().map(|name| (*name, root.join(name)));
        for (name, folder) in folders.chain([("rockbot", root.to_owned())]) {
            let source = fs::read_to_string(folder.join("src/lib.rs")).expect("a library has a lib.rs");
            crates.add(vec![name.replace('-', "_")], parsed(&source), &folder.join("src"));
        }
        crates
    }

    /// Reads crates of one file each.
    pub(super) fn of<'a>(sources: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut crates = Self::default();
        for (name, source) in sources {
            crates.add(vec![name.to_owned()], parsed(source), Path::new(""));
        }
        crates
    }

    /// Adds a module whose children are in `folder`.
    fn add(&mut self, path: ModulePath, items: Vec<Item>, folder: &Path) {
        let mut module = Module::default();
        for item in items {
            match item {
                Item::Mod(child) if is_listed(&child.attrs) => {
                    let name = child.ident.to_string();
                    module.children.insert(name.clone(), is_public(&child.vis));
                    let below = folder.join(&name);
                    let items = child.content.map_or_else(|| of_file(&below), |(_, items)| items);
                    self.add([&path[..], &[name]].concat(), items, &below);
                }
                Item::Mod(_) => {}
                Item::Use(import) => imports(
                    &import.tree,
                    &mut Vec::new(),
                    is_public(&import.vis),
                    &mut module.imports,
                ),
                item => module.add(item),
            }
        }
        self.modules.insert(path, module);
    }

    /// Resolves a path that stands in `module`.
    pub(super) fn resolve(&self, module: &[String], path: &[String]) -> Resolved {
        self.resolve_within(module, path, 0)
    }

    fn resolve_within(&self, module: &[String], path: &[String], depth: usize) -> Resolved {
        let foreign = || Resolved::Foreign(path.join("::"));
        let Some((first, mut rest)) = path.split_first() else {
            return Resolved::Module(module.to_vec());
        };
        let mut place = match first.as_str() {
            "crate" => Resolved::Module(module[..1].to_vec()),
            "self" => Resolved::Module(module.to_vec()),
            "super" => Resolved::Module(module[..module.len() - 1].to_vec()),
            // Before the names of the module: each glob import in it would be searched for the name of a
            // crate, by way of that same name.
            _ if self.modules.contains_key(&path[..1]) => Resolved::Module(path[..1].to_vec()),
            name => match self.find(module, name, depth) {
                Some(found) => found,
                None => return foreign(),
            },
        };
        while let Some((name, further)) = rest.split_first() {
            place = match place {
                Resolved::Module(at) if name == "super" => Resolved::Module(at[..at.len() - 1].to_vec()),
                Resolved::Module(at) => match self.find(&at, name, depth) {
                    Some(found) => found,
                    None => return Resolved::Foreign([&at[..], rest].concat().join("::")),
                },
                Resolved::Item(_) => return place,
                Resolved::Foreign(base) => return Resolved::Foreign(format!("{base}::{}", rest.join("::"))),
            };
            rest = further;
        }
        place
    }

    /// Finds a name in a module: defined there, a child, or imported.
    fn find(&self, at: &[String], name: &str, depth: usize) -> Option<Resolved> {
        let module = self.modules.get(at).filter(|_| depth < 16)?;
        if module.item(name).is_some() {
            return Some(Resolved::Item((at.to_vec(), name.to_owned())));
        }
        if module.children.contains_key(name) {
            return Some(Resolved::Module([at, &[name.to_owned()]].concat()));
        }
        if let Some(import) = module.imports.iter().find(|import| import.name == name) {
            // `use name::name` means the crate, which is not ours.
            return Some(match import.path.first() {
                Some(first) if first == name => Resolved::Foreign(name.to_owned()),
                _ => self.resolve_within(at, &import.path, depth + 1),
            });
        }
        let globs = module.imports.iter().filter(|import| import.name == "*");
        globs
            .into_iter()
            .find_map(|glob| match self.resolve_within(at, &glob.path, depth + 1) {
                Resolved::Module(from) if from != at => self.find(&from, name, depth + 1),
                _ => None,
            })
    }
}

/// Returns the name of a definition; `None` for an implementation or the call of a macro.
pub(super) fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// Returns `true` if `visibility` is `pub`, without a restriction.
pub(super) fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Returns `false` for tests and hidden items.
pub(super) fn is_listed(attributes: &[Attribute]) -> bool {
    let unlisted = |attribute: &Attribute| {
        !matches!(attribute.meta, Meta::NameValue(_)) && matches!(&*text(attribute), "#[cfg(test)]" | "#[doc(hidden)]")
    };
    !attributes.iter().any(unlisted)
}

fn parsed(source: &str) -> Vec<Item> {
    syn::parse_file(source).expect("our sources are Rust").items
}

/// Reads the module `path.rs` or `path/mod.rs`.
fn of_file(path: &Path) -> Vec<Item> {
    let files: [PathBuf; 2] = [path.with_extension("rs"), path.join("mod.rs")];
    let source = files.iter().find_map(|file| fs::read_to_string(file).ok());
    parsed(&source.unwrap_or_else(|| panic!("no source of {}", path.display())))
}

fn imports(tree: &UseTree, path: &mut Vec<String>, is_public: bool, found: &mut Vec<Import>) {
    let mut add = |name: String, path: Vec<String>| {
        found.push(Import { name, path, is_public });
    };
    match tree {
        UseTree::Path(step) => {
            path.push(step.ident.to_string());
            imports(&step.tree, path, is_public, found);
            path.pop();
        }
        UseTree::Name(last) if last.ident == "self" => add(path.last().cloned().unwrap_or_default(), path.clone()),
        UseTree::Name(last) => add(last.ident.to_string(), [&path[..], &[last.ident.to_string()]].concat()),
        UseTree::Rename(last) => add(last.rename.to_string(), [&path[..], &[last.ident.to_string()]].concat()),
        UseTree::Glob(_) => add("*".to_owned(), path.clone()),
        UseTree::Group(group) => {
            for tree in &group.items {
                imports(tree, path, is_public, found);
            }
        }
    }
}
