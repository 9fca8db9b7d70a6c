//! Import circles between modules: siblings do not import each other in a ring.
//!
//! A parent and its child may import each other; every other circle means that a thing stands in
//! the wrong place. The sources are read as text: `use` trees and paths that begin with `crate`
//! or `super`, followed through `pub use`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::source::{LIBRARIES, root, rust_files};

/// A module, as the names from its crate's root.
type Module = Vec<String>;

/// For each module, the siblings that it or a child of it imports.
type Imports = BTreeMap<Module, BTreeSet<Module>>;

#[test]
fn no_modules_import_each_other_in_a_circle() {
    for library in LIBRARIES {
        let sources = Sources::read(&root().join(library).join("src"));
        assert!(sources.modules.len() > 3, "the modules of {library} were found");
        let circles: Vec<_> = circles(&sources.imports());
        assert_eq!(circles, Vec::<String>::new(), "circles in {library}");
    }
}

#[test]
fn a_circle_is_found() {
    let sources = Sources::of([
        ("", "mod a; mod b; mod c;"),
        ("a", "use crate::b::B;"),
        ("b", "pub use inner::B; mod inner;"),
        ("b::inner", "use crate::{c::{C, D}, E};"),
        ("c", "fn f() { super::a::g() }"),
    ]);
    assert_eq!(circles(&sources.imports()), ["a -> b -> c -> a"]);
}

#[test]
fn a_parent_and_its_child_are_no_circle() {
    let sources = Sources::of([
        ("", "mod a; mod b; pub use a::child::C;"),
        ("a", "mod child; use child::C; use crate::b::B;"),
        ("a::child", "use super::A; use crate::C;"),
        ("b", "// use crate::a::A;\n#[cfg(test)]\nmod tests { use crate::a::A; }"),
    ]);
    assert_eq!(circles(&sources.imports()), Vec::<String>::new());
}

/// The text of each module of a library, without comments, strings and tests.
struct Sources {
    modules: BTreeMap<Module, String>,
}

impl Sources {
    fn read(folder: &Path) -> Self {
        let files = rust_files(folder).into_iter().filter_map(|file| {
            let path = file.strip_prefix(folder).ok()?.with_extension("");
            let mut module: Module = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            if module.iter().any(|part| part == "tests") {
                return None;
            }
            module.pop_if(|last| last == "mod" || last == "lib");
            let text = std::fs::read_to_string(&file).expect("a source file");
            Some((module, without_noise(&text)))
        });
        Self {
            modules: files.collect(),
        }
    }

    fn of<const N: usize>(modules: [(&str, &str); N]) -> Self {
        let modules = modules.map(|(path, text)| (segments(path), without_noise(text)));
        Self {
            modules: modules.into(),
        }
    }

    fn imports(&self) -> Imports {
        let mut imports = Imports::new();
        for (module, text) in &self.modules {
            for path in paths(text) {
                let target = self.resolve(module, &path, 0);
                let shared = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
                if shared < module.len() && shared < target.len() {
                    let from = module[..=shared].to_vec();
                    imports.entry(from).or_default().insert(target[..=shared].to_vec());
                }
            }
        }
        imports
    }

    /// Returns the module in which the item lives that `path` names inside `module`.
    fn resolve(&self, module: &[String], path: &[String], depth: usize) -> Module {
        let mut here = module.to_vec();
        let mut path = path;
        while let Some((first, rest)) = path.split_first() {
            match first.as_str() {
                "crate" => here.clear(),
                "super" => drop(here.pop()),
                "self" => {}
                name => {
                    let child: Module = here.iter().cloned().chain([name.to_owned()]).collect();
                    if self.modules.contains_key(&child) {
                        here = child;
                    } else if let Some(export) = self.export(&here, name).filter(|_| depth < 8) {
                        let whole: Vec<_> = export.into_iter().chain(rest.iter().cloned()).collect();
                        return self.resolve(&here, &whole, depth + 1);
                    } else {
                        break;
                    }
                }
            }
            path = rest;
        }
        here
    }

    /// Returns the path that `module` re-exports as `name`, if it does so from a module.
    fn export(&self, module: &[String], name: &str) -> Option<Vec<String>> {
        let text = self.modules.get(module)?;
        uses(text)
            .filter(|(is_public, _)| *is_public)
            .flat_map(|(_, tree)| expand(tree))
            .find(|path| path.len() > 1 && path.last().is_some_and(|last| last == name))
    }
}

/// Returns the circles as `a -> b -> a`, each once.
fn circles(imports: &Imports) -> Vec<String> {
    let mut found = BTreeMap::new();
    for start in imports.keys() {
        if let Some(circle) = path_back(imports, start) {
            let members: BTreeSet<_> = circle.iter().cloned().collect();
            found.entry(members).or_insert(circle);
        }
    }
    let line = |circle: &Vec<Module>| {
        let names = circle.iter().map(|module| module.join("::"));
        names.chain([circle[0].join("::")]).collect::<Vec<_>>().join(" -> ")
    };
    found.values().map(line).collect()
}

/// Returns a shortest way from `start` along its imports back to it.
fn path_back(imports: &Imports, start: &Module) -> Option<Vec<Module>> {
    let mut ways = vec![vec![start.clone()]];
    let mut seen = BTreeSet::new();
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            for next in way.last().and_then(|last| imports.get(last)).into_iter().flatten() {
                if next == start {
                    return Some(way);
                }
                if seen.insert(next.clone()) {
                    longer.push(way.iter().cloned().chain([next.clone()]).collect());
                }
            }
        }
        ways = longer;
    }
    None
}

/// Returns every path that the text of a module imports or names.
fn paths(text: &str) -> Vec<Vec<String>> {
    let mut paths: Vec<_> = uses(text).flat_map(|(_, tree)| expand(tree)).collect();
    for keyword in ["crate::", "super::"] {
        for (at, _) in text.match_indices(keyword) {
            let is_whole = !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
            let end = text[at..].find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
            let path = &text[at..at + end.unwrap_or(text.len() - at)];
            if is_whole {
                paths.push(segments(path.trim_end_matches(':')));
            }
        }
    }
    paths
}

/// Returns each `use` tree of the text, and whether it is a re-export.
fn uses(text: &str) -> impl Iterator<Item = (bool, &str)> {
    text.match_indices("use ").filter_map(|(at, _)| {
        let before = text[..at].trim_end();
        let line = before.rsplit(['\n', ';', '}', '{']).next().unwrap_or_default().trim();
        let is_statement = line.is_empty() || line.starts_with("pub") || line.ends_with(']');
        let tree = text[at + 4..].split(';').next()?;
        is_statement.then(|| (line.starts_with("pub") || line.contains(" pub"), tree))
    })
}

/// Returns the paths of a `use` tree.
fn expand(tree: &str) -> Vec<Vec<String>> {
    let tree = tree.trim();
    let Some((prefix, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        return vec![segments(path)];
    };
    let inner = rest.strip_suffix('}').unwrap_or(rest);
    let mut depth = 0;
    let mut from = 0;
    let mut branches = Vec::new();
    for (at, character) in inner.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                branches.push(&inner[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    branches.push(&inner[from..]);
    let branches = branches.into_iter().filter(|branch| !branch.trim().is_empty());
    branches
        .flat_map(expand)
        .map(|path| segments(prefix).into_iter().chain(path).collect())
        .collect()
}

fn segments(path: &str) -> Vec<String> {
    let parts = path.split("::").map(str::trim).filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

/// Removes comments, the contents of strings, and the tests at the end of a file.
fn without_noise(text: &str) -> String {
    let code: Vec<_> = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect();
    let code = code.join("\n");
    let end = code.find("#[cfg(test)]\nmod tests {").unwrap_or(code.len());
    let parts = code[..end].split('"');
    parts.step_by(2).collect::<Vec<_>>().join("\"\"")
}
