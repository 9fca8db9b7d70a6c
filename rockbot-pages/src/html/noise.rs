//! The parts of a page that are no content: scripts, hidden text, navigation, banners.

use super::dom::{DOCUMENT, Dom, Element, NodeId};

/// Returns `true` for elements whose text a reader never sees.
pub(crate) fn is_never_text(name: &str) -> bool {
    matches!(
        name,
        "script"
            | "style"
            | "template"
            | "head"
            | "svg"
            | "iframe"
            | "object"
            | "embed"
            | "canvas"
            | "audio"
            | "video"
            | "map"
            | "select"
            | "textarea"
            | "noembed"
            | "noframes"
            | "datalist"
            | "rp"
            | "title"
            | "applet"
    )
}

/// Drops elements that a reader does not see: scripts, styles and everything hidden. A page that
/// hides its whole content, until a script shows it, keeps it.
pub(super) fn drop_hidden(dom: &mut Dom) {
    for id in dom.ids().collect::<Vec<_>>() {
        let Some(element) = dom.element(id) else { continue };
        let is_main = matches!(&*element.name, "html" | "body" | "main" | "article");
        if is_never_text(&element.name) && &*element.name != "head" || !is_main && is_hidden(element) {
            dom[id].is_dropped = true;
        }
    }
}

/// Returns `true` for an element that its attributes hide.
fn is_hidden(element: &Element) -> bool {
    let style = element.text_of("style");
    let hides = |property: &str, value: &str| {
        let mut declarations = style.split(';').filter_map(|declaration| declaration.split_once(':'));
        declarations.any(|(name, set)| {
            name.trim().eq_ignore_ascii_case(property) && set.trim().to_ascii_lowercase().starts_with(value)
        })
    };
    let is_tiny = || {
        let mut declarations = style.split(';').filter_map(|declaration| declaration.split_once(':'));
        declarations.any(|(name, set)| {
            let name = name.trim();
            let set = set.trim();
            matches!(name, "font-size" | "opacity") && matches!(set, "0" | "0px" | "0em" | "0pt" | "0%" | "0.0")
        })
    };
    let is_shown_later = element.attribute("hidden") == Some("until-found");
    element.attribute("hidden").is_some() && !is_shown_later
        || element.text_of("aria-hidden").eq_ignore_ascii_case("true") && &*element.name != "img"
        || !style.is_empty() && (hides("display", "none") || hides("visibility", "hidden") || is_tiny())
}

/// The kind of an element by its name, role, classes and id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Certainly no content: navigation, page headers and footers.
    Frame,
    /// Probably no content, by a word in its classes or id.
    Suspect,
    /// Probably the content.
    Content,
    Plain,
}

/// Words of classes and ids of parts around the content. A word counts between other characters
/// than letters.
const SUSPECT: [&str; 146] = [
    "ad",
    "adbox",
    "ads",
    "adsense",
    "advert",
    "advertisement",
    "affiliate",
    "also-read",
    "article-footer",
    "audio-player",
    "author",
    "author-bio",
    "authorbio",
    "authorbox",
    "autor",
    "banner",
    "bottom-bar",
    "breadcrumb",
    "breadcrumbs",
    "byline",
    "captcha",
    "carousel",
    "cc-window",
    "comentarios",
    "comment",
    "commentaire",
    "commentaires",
    "commentlist",
    "comments",
    "community-notice",
    "consent",
    "cookie",
    "cookies",
    "copyright",
    "cptch",
    "credit",
    "credito",
    "credits",
    "cta",
    "disclaimer",
    "disqus",
    "donate",
    "dropdown",
    "entry-date",
    "entry-footer",
    "entry-meta",
    "eu-cookie",
    "footer",
    "fotocredit",
    "further-reading",
    "gdpr",
    "hidden",
    "infobar",
    "interesting-articles",
    "kommentar",
    "kommentare",
    "legal",
    "license-area",
    "lizenz",
    "login",
    "masthead",
    "menu",
    "meta",
    "metadata",
    "modal",
    "more-stories",
    "most-read",
    "most-viewed",
    "nav",
    "nav-links",
    "navbar",
    "navbox",
    "navigation",
    "newsletter",
    "nocomments",
    "noprint",
    "notice-after",
    "offscreen",
    "outbrain",
    "pagenav",
    "pager",
    "pagination",
    "paywall",
    "popular",
    "popup",
    "post-footer",
    "post-meta",
    "post-navigation",
    "post-ratings",
    "posted-on",
    "postmeta",
    "print-only",
    "printfooter",
    "promo",
    "promobox",
    "promoted",
    "rating",
    "ratings",
    "reacties",
    "read-more",
    "readmore",
    "recent-posts",
    "recirc",
    "recirculation",
    "recommend",
    "recommended",
    "related",
    "related-articles",
    "related-posts",
    "relatedposts",
    "respond",
    "rss",
    "saboxplugin",
    "screen-reader-text",
    "search",
    "share",
    "shareblock",
    "sharedaddy",
    "sharing",
    "shoutbox",
    "sidebar",
    "sidemenu",
    "similar",
    "skip",
    "skip-link",
    "snippet",
    "social",
    "sponsor",
    "sponsored",
    "sr-only",
    "subscribe",
    "subvert",
    "taboola",
    "tagcloud",
    "tags",
    "teaser",
    "teaserlist",
    "teasers",
    "timestamp",
    "toolbar",
    "topics",
    "trending",
    "upsell",
    "upvote",
    "widget",
    "yarpp",
];

/// Words of classes and ids of the content.
const CONTENT: [&str; 22] = [
    "articlebody",
    "article-body",
    "article-content",
    "article-text",
    "articletext",
    "article__body",
    "content-body",
    "entry-content",
    "entrytext",
    "markdown-body",
    "mw-content-text",
    "mw-parser-output",
    "post-body",
    "post-content",
    "postbody",
    "rst-content",
    "story-body",
    "storytext",
    "body-content",
    "bodytext",
    "td-post-content",
    "page-content",
];

/// Words of classes and ids of an article's introduction.
const LEAD: [&str; 16] = [
    "abstract",
    "dek",
    "excerpt",
    "intro",
    "introduction",
    "lead",
    "leader",
    "lede",
    "standfirst",
    "subheadline",
    "subline",
    "subtitle",
    "summary",
    "teaser-intro",
    "teaser-text",
    "vorspann",
];

/// Returns `true` if a class or id says that the element is the introduction of an article.
pub(super) fn is_lead(element: &Element) -> bool {
    let names = [element.text_of("id"), element.text_of("class")];
    let mut words = names.iter().flat_map(|names| names.split_ascii_whitespace());
    words.any(|name| has_word(name, &LEAD))
}

/// Returns the kind of an element.
pub(super) fn kind_of(dom: &Dom, id: NodeId) -> Kind {
    let Some(element) = dom.element(id) else {
        return Kind::Plain;
    };
    let role = element.text_of("role");
    if matches!(
        role,
        "navigation"
            | "banner"
            | "contentinfo"
            | "search"
            | "dialog"
            | "alertdialog"
            | "menu"
            | "menubar"
            | "toolbar"
            | "complementary"
    ) {
        return Kind::Frame;
    }
    match &*element.name {
        "nav" | "button" | "dialog" => return Kind::Frame,
        "footer" | "aside" => return Kind::Frame,
        "header" if !is_in_content(dom, id) => return Kind::Frame,
        "html" | "body" | "main" | "h1" | "pre" | "code" | "td" | "th" | "tr" | "tbody" => {
            return Kind::Plain;
        }
        _ => {}
    }
    if element.text_of("itemprop") == "articleBody" || role == "main" {
        return Kind::Content;
    }
    let names = [element.text_of("id"), element.text_of("class")];
    let words = || names.iter().flat_map(|names| names.split_ascii_whitespace());
    if words().any(|word| CONTENT.contains(&&*word.to_ascii_lowercase())) {
        return Kind::Content;
    }
    if words().any(is_suspect) && !is_lead(element) {
        Kind::Suspect
    } else {
        Kind::Plain
    }
}

/// Returns `true` if an article, a section or the main element contains the node: its header is a
/// heading.
fn is_in_content(dom: &Dom, id: NodeId) -> bool {
    dom.ancestors(id)
        .any(|parent| matches!(dom.name(parent), "article" | "main" | "section"))
}

/// Returns `true` if a class or id contains a suspect word.
fn is_suspect(name: &str) -> bool {
    // Utility classes describe the look of an element, and not its purpose.
    let is_utility = name.contains(':') || ["has-", "no-", "with-"].iter().any(|start| name.starts_with(start));
    !is_utility && has_word(name, &SUSPECT)
}

/// Returns `true` if a class or id contains a word of `words`, whole or as a part between signs.
/// The words are sorted.
fn has_word(name: &str, words: &[&str]) -> bool {
    let lower = name.to_ascii_lowercase();
    let is_word = |word: &str| words.binary_search(&word).is_ok();
    if is_word(&lower) || words.iter().any(|word| word.contains('-') && lower.contains(word)) {
        return true;
    }
    if lower.split(|c: char| !c.is_ascii_alphabetic()).any(is_word) {
        return true;
    }
    // `relatedPosts` and `SideBar`.
    let mut start = 0;
    let mut parts = Vec::new();
    for (at, _) in name.match_indices(|c: char| c.is_ascii_uppercase()) {
        parts.push(&name[start..at]);
        start = at;
    }
    parts.push(&name[start..]);
    parts.len() > 1 && parts.iter().any(|part| is_word(&part.to_ascii_lowercase()))
}

/// Returns `true` if the node is the document.
pub(super) fn is_document(id: NodeId) -> bool {
    id == DOCUMENT
}
