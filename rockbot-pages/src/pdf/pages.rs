//! The pages of a document, in their order.

use std::collections::HashSet;

use super::file::File;
use super::object::{Dict, Object};

/// Maximum number of pages that are found.
pub(super) const MAX_PAGES: usize = 2_000;

/// Maximum number of nodes of the page tree, and of nodes that wait to be visited.
const MAX_NODES: usize = 2 * MAX_PAGES;

/// A page. Its content is read when it is asked for: documents may name large objects on every
/// page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page {
    id: u32,
    /// The number of the object that states the resources: of the page itself, or of a node of the
    /// tree above it.
    resources: Option<u32>,
}

impl Page {
    /// Returns the names of the fonts and forms.
    pub(super) fn resources(self, file: &File<'_>) -> Dict {
        let holder = self.resources.and_then(|id| file.get(id));
        let holder = holder.as_ref().and_then(Object::dict);
        let resources = holder.and_then(|holder| file.entry(holder, "Resources"));
        resources.and_then(|own| own.dict().cloned()).unwrap_or_default()
    }

    /// Returns the annotations.
    pub(super) fn annotations(self, file: &File<'_>) -> Vec<Object> {
        let page = file.get(self.id);
        let listed = page
            .as_ref()
            .and_then(Object::dict)
            .and_then(|page| file.entry(page, "Annots"));
        listed.as_deref().and_then(Object::array).unwrap_or_default().to_vec()
    }

    /// Returns the content: all its streams, one behind the other.
    pub(super) fn content(self, file: &File<'_>) -> Vec<u8> {
        let page = file.get(self.id);
        let contents = page
            .as_ref()
            .and_then(Object::dict)
            .and_then(|page| page.get("Contents"));
        let Some(contents) = contents else { return Vec::new() };
        let listed = file.resolve(contents);
        let parts = match listed.as_deref() {
            Some(Object::Array(parts)) => parts.as_slice(),
            _ => std::slice::from_ref(contents),
        };
        let mut content = Vec::new();
        for part in parts {
            if content.len() > file.budget.room() {
                file.budget.exceed();
                break;
            }
            content.extend(file.stream(part).unwrap_or_default().1);
            content.push(b'\n');
        }
        content
    }
}

/// Returns the pages: the pages of the page tree or, where a damaged document has none, all pages
/// that are found.
pub(super) fn pages(file: &File<'_>) -> Vec<Page> {
    let stated = file.trailer.get("Root").and_then(Object::reference);
    let catalog = stated.or_else(|| file.of_type("Catalog").last().copied());
    let catalog = catalog.and_then(|catalog| file.get(catalog));
    let root = catalog
        .as_ref()
        .and_then(Object::dict)
        .and_then(|catalog| catalog.get("Pages")?.reference());
    let pages = root.map(|root| tree(file, root)).unwrap_or_default();
    if !pages.is_empty() {
        return pages;
    }
    let found = file.of_type("Page").into_iter().take(MAX_PAGES);
    let alone = |id| Page {
        id,
        resources: Some(id),
    };
    found.map(alone).collect()
}

/// Walks the page tree. A node counts once, so circles end.
fn tree(file: &File<'_>, root: u32) -> Vec<Page> {
    let mut pages = Vec::new();
    let mut seen = HashSet::new();
    let mut open = vec![(root, None)];
    while let Some((id, inherited)) = open.pop() {
        if seen.len() == MAX_NODES || pages.len() == MAX_PAGES {
            break;
        }
        let node = seen.insert(id).then(|| file.get(id)).flatten();
        let Some(node) = node.as_ref().and_then(Object::dict) else {
            continue;
        };
        let resources = if node.contains_key("Resources") {
            Some(id)
        } else {
            inherited
        };
        match file.entry(node, "Kids").as_deref().and_then(Object::array) {
            Some(kids) => {
                let kids = kids.iter().take(MAX_NODES).filter_map(Object::reference);
                let kids: Vec<_> = kids.map(|kid| (kid, resources)).collect();
                open.extend(kids.into_iter().rev());
                // The first to go are the last pages.
                open.drain(..open.len().saturating_sub(MAX_NODES));
            }
            None => pages.push(Page { id, resources }),
        }
    }
    pages
}
