//! The title of a page, and the URL that its links are relative to.

use url::Url;

use super::dom::Dom;
use super::markdown::MAX_LINK;
use super::one_line;

/// Maximum length of a title, in characters.
const MAX_TITLE: usize = 300;

/// Returns the title of a page: of its `title` element, or else its first heading. Empty if there
/// is neither.
pub(super) fn title_of(dom: &Dom) -> String {
    let in_svg = |id| dom.ancestors(id).any(|parent| dom.name(parent) == "svg");
    let titles = dom.ids().filter(|id| dom.name(*id) == "title" && !in_svg(*id));
    let headings = dom.ids().filter(|id| dom.name(*id) == "h1");
    let mut texts = titles.chain(headings).map(|id| one_line(&dom.text(id)));
    let title = texts.find(|text| !text.is_empty()).unwrap_or_default();
    title.chars().take(MAX_TITLE).collect()
}

/// Returns the URL that links are relative to: the page's `base` element counts within the origin
/// of `page` only, since it could make links that look like the page's own lead anywhere.
pub(super) fn base_of(dom: &Dom, page: Option<&Url>) -> Option<Url> {
    let page = page?;
    let stated = dom.find("base").and_then(|id| dom.element(id)?.attribute("href"));
    let stated = stated.and_then(|href| page.join(href.trim()).ok());
    Some(
        stated
            .filter(|base| base.origin() == page.origin() && base.as_str().len() <= MAX_LINK)
            .unwrap_or_else(|| page.clone()),
    )
}
