//! The public items of a crate, each with its members, as lines of text.

use std::collections::{BTreeMap, BTreeSet};

use quote::ToTokens;
use syn::{Attribute, Fields, Generics, ImplItem, Item, ItemImpl, Signature, TraitItem, Type};

use super::crates::{Crates, Definition, ModulePath, Resolved, is_listed, is_public, name_of};
use super::tokens::{text, without_docs};

/// The exports and implementations of all crates, resolved once.
pub(super) struct Api<'a> {
    crates: &'a Crates,
    exports: BTreeMap<&'a str, Exports>,
    members: BTreeMap<Definition, BTreeSet<String>>,
}

impl<'a> Api<'a> {
    pub(super) fn of(crates: &'a Crates) -> Self {
        let roots = crates.modules.keys().filter(|path| path.len() == 1);
        let names = roots.map(|path| &*path[0]);
        Self {
            crates,
            exports: names.map(|name| (name, Exports::of(crates, name))).collect(),
            members: members(crates),
        }
    }

    /// Returns the listing of a crate: an entry for each public item, sorted by path.
    pub(super) fn listing(&self, name: &str) -> String {
        let own = &self.exports[name];
        let calls = macro_calls(self.crates, name);
        let mut entries: BTreeSet<String> = own.others.iter().cloned().chain(calls).collect();
        for (definition, paths) in &own.paths {
            let canonical = self.canonical(definition);
            if definition.0[0] == name {
                entries.insert(self.entry(definition, &canonical));
            }
            let others = paths.iter().filter(|path| **path != canonical);
            entries.extend(others.map(|path| format!("use {path} = {canonical}\n")));
        }
        spaced(&entries)
    }

    /// Returns the path of an item in its own crate.
    fn canonical(&self, definition: &Definition) -> String {
        let paths = self.exports[&*definition.0[0]].paths.get(definition);
        paths.map_or_else(|| format!("{definition:?}"), |paths| shortest(paths).clone())
    }

    fn is_exported(&self, definition: &Definition) -> bool {
        self.exports[&*definition.0[0]].paths.contains_key(definition)
    }

    /// Returns an item with what is implemented for it. An alias of a type that is not exported has
    /// that one's methods.
    fn entry(&self, definition: &Definition, path: &str) -> String {
        let item = self.crates.modules[&definition.0].item(&definition.1);
        let item = item.expect("a definition is in its module");
        let (head, lines) = described(item, path);
        let unexported = aliased(self.crates, definition, item).filter(|of| !self.is_exported(of));
        let implemented = [Some(definition.clone()), unexported].into_iter().flatten();
        let implemented: BTreeSet<_> = implemented
            .filter_map(|of| self.members.get(&of))
            .flatten()
            .cloned()
            .collect();
        let lines = lines.into_iter().chain(implemented).map(|line| format!("  {line}\n"));
        format!("{head}\n{}", lines.collect::<String>())
    }
}

/// Joins entries, with an empty line around those of several lines.
fn spaced(entries: &BTreeSet<String>) -> String {
    let mut text = String::new();
    let mut was_long = false;
    for entry in entries {
        let is_long = entry.lines().count() > 1;
        if (is_long || was_long) && !text.is_empty() {
            text.push('\n');
        }
        text.push_str(entry);
        was_long = is_long;
    }
    text
}

/// Returns the type of ours that `item` is another name for.
fn aliased(crates: &Crates, (module, _): &Definition, item: &Item) -> Option<Definition> {
    match item {
        Item::Type(alias) => match &*alias.ty {
            Type::Path(path) => resolved(crates, module, &path.path),
            _ => None,
        },
        _ => None,
    }
}

fn resolved(crates: &Crates, module: &[String], path: &syn::Path) -> Option<Definition> {
    let names: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    match crates.resolve(module, &names) {
        Resolved::Item(definition) => Some(definition),
        Resolved::Module(_) | Resolved::Foreign(_) => None,
    }
}

fn shortest(paths: &BTreeSet<String>) -> &String {
    let by_length = |path: &&String| path.matches("::").count();
    paths.iter().min_by_key(by_length).expect("a public item has a path")
}

/// The names that a crate exports.
#[derive(Default)]
struct Exports {
    /// The public paths of each item.
    paths: BTreeMap<Definition, BTreeSet<String>>,
    /// Lines of what is exported from elsewhere.
    others: BTreeSet<String>,
    seen: BTreeSet<(ModulePath, String)>,
}

impl Exports {
    fn of(crates: &Crates, name: &str) -> Self {
        let mut exports = Self::default();
        exports.visit(crates, &[name.to_owned()], name);
        exports
    }

    /// Adds what `module` exports under the public path `prefix`.
    fn visit(&mut self, crates: &Crates, module: &[String], prefix: &str) {
        if !self.seen.insert((module.to_vec(), prefix.to_owned())) {
            return;
        }
        let contents = &crates.modules[module];
        for item in contents.items.iter().filter(|item| is_exported(item)) {
            if let Some(name) = name_of(item) {
                self.add((module.to_vec(), name.clone()), format!("{prefix}::{name}"));
            }
        }
        for (child, _) in contents.children.iter().filter(|(_, is_public)| **is_public) {
            let path = [module, std::slice::from_ref(child)].concat();
            self.visit(crates, &path, &format!("{prefix}::{child}"));
        }
        for import in contents.imports.iter().filter(|import| import.is_public) {
            let path = match &*import.name {
                "*" => prefix.to_owned(),
                name => format!("{prefix}::{name}"),
            };
            match crates.resolve(module, &import.path) {
                Resolved::Item(definition) => self.add(definition, path),
                Resolved::Module(module) => self.visit(crates, &module, &path),
                Resolved::Foreign(origin) => {
                    self.others.insert(format!("use {path} = {origin}\n"));
                }
            }
        }
    }

    fn add(&mut self, definition: Definition, path: String) {
        self.paths.entry(definition).or_default().insert(path);
    }
}

fn is_exported(item: &Item) -> bool {
    let (visibility, attributes) = match item {
        Item::Const(item) => (&item.vis, &item.attrs),
        Item::Enum(item) => (&item.vis, &item.attrs),
        Item::Fn(item) => (&item.vis, &item.attrs),
        Item::Static(item) => (&item.vis, &item.attrs),
        Item::Struct(item) => (&item.vis, &item.attrs),
        Item::Trait(item) => (&item.vis, &item.attrs),
        Item::Type(item) => (&item.vis, &item.attrs),
        _ => return false,
    };
    is_public(visibility) && is_listed(attributes)
}

/// Returns the calls of our macros at the places of items: what they create is public if it is
/// exported.
fn macro_calls(crates: &Crates, name: &str) -> impl Iterator<Item = String> {
    let own = crates.modules.iter().filter(move |(path, _)| path[0] == name);
    own.flat_map(|(path, module)| {
        let calls = module.items.iter().filter_map(|item| match item {
            Item::Macro(call) if call.ident.is_none() && is_listed(&call.attrs) => Some(&call.mac),
            _ => None,
        });
        let ours = calls.filter(|call| !text(&call.path).ends_with("_local"));
        ours.map(|call| {
            let module = path.join("::");
            match shared_trait(call) {
                Some(name) => format!("impl {module}::{name} for Arc<T>\n"),
                None => format!("macro {module}: {}\n", text(without_docs(call.to_token_stream()))),
            }
        })
    })
}

/// Returns the trait that a call of `share!` implements for `Arc<T>`.
fn shared_trait(call: &syn::Macro) -> Option<String> {
    let first = call.tokens.clone().into_iter().next()?;
    call.path.is_ident("share").then(|| first.to_string())
}

/// Returns the methods that each implementation for `Arc<T>` forwards, and those of its trait.
pub(super) fn forwarded(crates: &Crates) -> Vec<(String, BTreeSet<String>, BTreeSet<String>)> {
    let mut found = Vec::new();
    for module in crates.modules.values() {
        let traits = module.items.iter().filter_map(|item| match item {
            Item::Trait(item) => Some(item),
            _ => None,
        });
        for item in traits {
            let name = item.ident.to_string();
            let methods = item.items.iter().filter_map(|item| match item {
                TraitItem::Fn(method) => Some(method.sig.ident.to_string()),
                _ => None,
            });
            let given = module.items.iter().find_map(|other| shared_methods(other, &name));
            found.extend(given.map(|given| (name, methods.collect(), given)));
        }
    }
    found
}

/// Returns the methods of the implementation of `name` for `Arc<T>`, if `item` is that.
fn shared_methods(item: &Item, name: &str) -> Option<BTreeSet<String>> {
    match item {
        Item::Macro(call) => {
            let tokens: Vec<_> = text(&call.mac.tokens)
                .split([' ', '<', '('])
                .map(str::to_owned)
                .collect();
            let methods = tokens.windows(2).filter(|pair| matches!(&*pair[0], "async" | "fn"));
            (shared_trait(&call.mac)? == name).then(|| methods.map(|pair| pair[1].clone()).collect())
        }
        Item::Impl(item) => {
            let (_, of, _) = item.trait_.as_ref()?;
            let is_it = of.segments.last()?.ident == name && text(&item.self_ty).contains("Arc<");
            let methods = item.items.iter().filter_map(|item| match item {
                ImplItem::Fn(method) => Some(method.sig.ident.to_string()),
                _ => None,
            });
            is_it.then(|| methods.collect())
        }
        _ => None,
    }
}

/// Returns the lines of all implementations, by the type or the trait under which they are listed.
fn members(crates: &Crates) -> BTreeMap<Definition, BTreeSet<String>> {
    let mut members: BTreeMap<Definition, BTreeSet<String>> = BTreeMap::new();
    for (path, module) in &crates.modules {
        for item in &module.items {
            let Item::Impl(implementation) = item else { continue };
            if let Some(owner) = owner(crates, path, implementation).filter(|_| is_listed(&implementation.attrs)) {
                members.entry(owner).or_default().extend(implemented(implementation));
            }
        }
    }
    members
}

/// Returns the type of an implementation if it is ours, else the trait.
fn owner(crates: &Crates, module: &[String], implementation: &ItemImpl) -> Option<Definition> {
    let of_type = match &*implementation.self_ty {
        Type::Path(path) => Some(&path.path),
        Type::TraitObject(object) => object.bounds.iter().find_map(|bound| match bound {
            syn::TypeParamBound::Trait(bound) => Some(&bound.path),
            _ => None,
        }),
        _ => None,
    };
    let of_trait = implementation.trait_.as_ref().map(|(_, path, _)| path);
    let mut paths = [of_type, of_trait].into_iter().flatten();
    paths.find_map(|path| resolved(crates, module, path))
}

fn implemented(implementation: &ItemImpl) -> Vec<String> {
    let ItemImpl {
        generics,
        self_ty,
        trait_,
        ..
    } = implementation;
    if let Some((_, of, _)) = trait_ {
        let of = text(of);
        let of_type = text(self_ty);
        return vec![format!("impl{} {of} for {of_type}{}", text(generics), bounds(generics))];
    }
    let own = match text(generics.where_clause.as_ref()) {
        bounds if bounds.is_empty() => String::new(),
        bounds => format!(" ({bounds})"),
    };
    let public = implementation.items.iter().filter_map(|item| match item {
        ImplItem::Fn(item) if is_public(&item.vis) && is_listed(&item.attrs) => Some(signature(&item.sig)),
        ImplItem::Const(item) if is_public(&item.vis) => Some(format!("const {}: {}", item.ident, text(&item.ty))),
        _ => None,
    });
    public.map(|line| format!("{line}{own}")).collect()
}

/// Returns the first line of an item, and its own members.
fn described(item: &Item, path: &str) -> (String, Vec<String>) {
    match item {
        Item::Struct(item) => {
            let head = format!("struct {path}{}{}", text(&item.generics), bounds(&item.generics));
            (head, marks(&item.attrs).chain(fields(&item.fields)).collect())
        }
        Item::Enum(item) => {
            let head = format!("enum {path}{}{}", text(&item.generics), bounds(&item.generics));
            let variants = item.variants.iter().map(|variant| {
                let marks: String = marks(&variant.attrs).map(|mark| mark + " ").collect();
                marks + &text(&variant.ident) + &variant_fields(&variant.fields)
            });
            (head, marks(&item.attrs).chain(variants).collect())
        }
        Item::Trait(item) => {
            let parents = match text(&item.supertraits) {
                parents if parents.is_empty() => parents,
                parents => format!(": {parents}"),
            };
            let head = format!(
                "trait {path}{}{parents}{}",
                text(&item.generics),
                bounds(&item.generics)
            );
            (head, item.items.iter().map(trait_item).collect())
        }
        Item::Fn(item) => (format!("fn {path}"), vec![text(&item.sig)]),
        Item::Const(item) => (format!("const {path}: {}", text(&item.ty)), Vec::new()),
        Item::Static(item) => (format!("static {path}: {}", text(&item.ty)), Vec::new()),
        Item::Type(item) => (
            format!("type {path}{} = {}", text(&item.generics), text(&item.ty)),
            Vec::new(),
        ),
        other => (format!("item {path}"), vec![text(other)]),
    }
}

/// Returns a signature without the `mut` of its receiver, which is no part of the API.
fn signature(signature: &Signature) -> String {
    text(signature).replacen("(mut self", "(self", 1)
}

fn bounds(generics: &Generics) -> String {
    match text(generics.where_clause.as_ref()) {
        bounds if bounds.is_empty() => bounds,
        bounds => format!(" {bounds}"),
    }
}

/// Returns the attributes that are part of the API.
fn marks(attributes: &[Attribute]) -> impl Iterator<Item = String> {
    let is_mark = |mark: &&Attribute| {
        let path = mark.path();
        path.is_ident("derive") || path.is_ident("non_exhaustive") || path.is_ident("must_use")
    };
    attributes
        .iter()
        .filter(is_mark)
        .map(|mark| text(mark.to_token_stream()))
}

fn fields(fields: &Fields) -> Vec<String> {
    let public = fields.iter().enumerate().filter(|(_, field)| is_public(&field.vis));
    let mut lines: Vec<_> = public
        .map(|(at, field)| {
            let name = field.ident.as_ref().map_or_else(|| at.to_string(), ToString::to_string);
            format!("{name}: {}", text(&field.ty))
        })
        .collect();
    if fields.iter().any(|field| !is_public(&field.vis)) {
        lines.push("(private fields)".to_owned());
    }
    lines
}

fn variant_fields(fields: &Fields) -> String {
    let types = fields.iter().map(|field| match &field.ident {
        Some(name) => format!("{name}: {}", text(&field.ty)),
        None => text(&field.ty),
    });
    let types = types.collect::<Vec<_>>().join(", ");
    match fields {
        Fields::Named(_) => format!(" {{ {types} }}"),
        Fields::Unnamed(_) => format!("({types})"),
        Fields::Unit => String::new(),
    }
}

fn trait_item(item: &TraitItem) -> String {
    match item {
        TraitItem::Fn(item) => match item.default {
            Some(_) => format!("{} (provided)", signature(&item.sig)),
            None => signature(&item.sig),
        },
        TraitItem::Const(item) => format!("const {}: {}", item.ident, text(&item.ty)),
        TraitItem::Type(item) => format!("type {}", item.ident),
        other => text(other),
    }
}
