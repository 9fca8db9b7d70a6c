//! Pages: from HTML to Markdown, whole or the main content alone.

mod blocks;
mod dom;
mod lead;
mod main_content;
mod markdown;
mod metadata;
mod noise;
#[cfg(test)]
mod oracle;
mod parse;
mod promotion;
#[cfg(test)]
mod tests;
mod weight;

use url::Url;

/// The main content of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MainContent {
    /// The title of the page. Empty if it has none.
    pub title: String,
    /// The content, as Markdown.
    pub markdown: String,
    /// `true` if the page exceeds the bounds of the parser, or its Markdown those of the writer, and
    /// its end is missing.
    pub is_cut: bool,
}

/// Converts a whole page to Markdown: headings, links, lists, tables, fenced code with its
/// language, images with their text.
///
/// Only what no reader sees is left out: scripts, styles, embedded documents. Relative links are
/// resolved against `base`; links to scripts become text. Nesting of any depth and markup of any
/// kind are converted in bounded time and without recursion; a page with more than 500 000 nodes
/// is cut, and so is Markdown that is longer than 64 KiB and 8 times the page. Of a link that is
/// longer than 2 KiB, the text alone stays.
///
/// ```
/// use rockbot_pages::html_to_markdown;
///
/// let base = "https://example.org/docs/".parse().ok();
/// let html = "<h1>Ports</h1><p>See <a href='tcp.html'>TCP</a>.</p><pre class='language-sh'>nc -l 80</pre>";
/// assert_eq!(
///     html_to_markdown(html, base.as_ref()),
///     "# Ports\n\nSee [TCP](https://example.org/docs/tcp.html).\n\n```sh\nnc -l 80\n```\n",
/// );
/// ```
pub fn html_to_markdown(html: &str, base: Option<&Url>) -> String {
    let dom = parse::parse(html);
    let base = metadata::base_of(&dom, base);
    markdown::markdown(&dom, dom::DOCUMENT, base.as_ref(), max_markdown(html)).0
}

/// Finds the main content of a page, and converts it to Markdown as [`html_to_markdown`] does.
///
/// Navigation, banners, sidebars, hidden text and lists of other articles are left out. A page
/// without a recognisable main content is converted whole.
///
/// ```
/// use rockbot_pages::main_content;
///
/// let html = "<title>Cats</title><nav><a href='/'>Home</a></nav><article><h1>Cats</h1>\
///     <p>A cat sleeps for most of the day, and for most of the night as well.</p></article><footer>© 2026</footer>";
/// let content = main_content(html, None);
/// assert_eq!(content.title, "Cats");
/// assert_eq!(content.markdown, "# Cats\n\nA cat sleeps for most of the day, and for most of the night as well.\n");
/// ```
pub fn main_content(html: &str, base: Option<&Url>) -> MainContent {
    content_of(parse::parse(html), base, max_markdown(html))
}

fn content_of(mut dom: dom::Dom, base: Option<&Url>, max: usize) -> MainContent {
    let title = metadata::title_of(&dom);
    let base = metadata::base_of(&dom, base);
    let root = main_content::find(&mut dom);
    let (markdown, is_cut) = markdown::markdown(&dom, root, base.as_ref(), max);
    MainContent {
        title,
        markdown,
        is_cut: is_cut || dom.is_cut,
    }
}

/// Returns the maximum size of the Markdown of a page, in bytes. Links become absolute, and lines
/// have the prefixes of lists.
fn max_markdown(html: &str) -> usize {
    8 * html.len() + (64 << 10)
}

/// Returns the text of a fragment of HTML, on one line.
///
/// ```
/// assert_eq!(rockbot_pages::plain_text("<b>Cats</b> &amp;\n dogs"), "Cats & dogs");
/// ```
pub fn plain_text(html: &str) -> String {
    if !html.contains(['<', '&']) {
        return one_line(html);
    }
    let dom = parse::parse(html);
    one_line(&dom.text(dom::DOCUMENT))
}

/// Returns the text on one line, with one space between words.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
