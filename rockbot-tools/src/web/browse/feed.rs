//! Feeds in RSS, RDF and Atom, as Markdown.

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use rockbot_pages::html_to_markdown;
use url::Url;

/// Maximum number of entries that are shown.
const MAX_ENTRIES: usize = 100;

/// Maximum length of an entry's text, in characters.
const MAX_SUMMARY: usize = 2_000;

/// Maximum length of a feed's title, of an entry's title and of a link, in bytes.
const MAX_FIELD: usize = 1_000;

/// A feed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Feed {
    pub(super) title: String,
    pub(super) markdown: String,
}

/// An entry, or the feed itself before its first entry.
#[derive(Debug, Default)]
struct Entry {
    title: String,
    link: String,
    date: String,
    summary: String,
}

/// Returns `true` if a text begins like a feed.
pub(super) fn is_feed(text: &str) -> bool {
    let start = &text[..text.floor_char_boundary(1024.min(text.len()))];
    ["<rss", "<feed", "<rdf:RDF"].iter().any(|root| start.contains(root))
}

/// Reads a feed, as far as it is well-formed.
pub(super) fn read(text: &str, url: &Url) -> Feed {
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_end_names = false;
    let mut state = State::default();
    loop {
        match reader.read_event() {
            Ok(Event::Start(start)) => state.start(&start),
            Ok(Event::Empty(start)) => take_link(state.entry(), &name_of(&start), &start),
            Ok(Event::Text(text)) => state.value.push_str(&text.xml10_content()),
            Ok(Event::CData(text)) => state.value.push_str(&text.xml10_content()),
            Ok(Event::GeneralRef(reference)) => match reference.resolve_char_ref() {
                Ok(Some(character)) => state.value.push(character),
                _ => state.value.push_str(named(&reference).unwrap_or("\u{fffd}")),
            },
            Ok(Event::End(end)) => state.end(end.local_name().as_ref()),
            Ok(Event::Eof) | Err(_) => break,
            Ok(_) => {}
        }
        if state.entries.len() > MAX_ENTRIES {
            break;
        }
    }
    let shown = state.entries.iter().take(MAX_ENTRIES).map(|entry| entry.markdown(url));
    Feed {
        markdown: shown.collect(),
        title: state.feed.title,
    }
}

/// A feed while it is read.
#[derive(Debug, Default)]
struct State {
    feed: Entry,
    entries: Vec<Entry>,
    /// The name of the open field, and its text so far.
    field: String,
    value: String,
}

impl State {
    /// Returns the entry that is read, or the feed itself before the first entry.
    fn entry(&mut self) -> &mut Entry {
        self.entries.last_mut().unwrap_or(&mut self.feed)
    }

    fn start(&mut self, start: &BytesStart<'_>) {
        let name = name_of(start);
        if matches!(&*name, "item" | "entry") {
            self.entries.push(Entry::default());
        }
        take_link(self.entry(), &name, start);
        if is_field(&name) {
            self.field = name;
            self.value.clear();
        }
    }

    fn end(&mut self, name: &str) {
        if name.eq_ignore_ascii_case(&self.field) {
            let field = std::mem::take(&mut self.field);
            let value = std::mem::take(&mut self.value);
            set(self.entry(), &field, &value);
        }
    }
}

impl Entry {
    fn markdown(&self, url: &Url) -> String {
        let title = if self.title.is_empty() { "Untitled" } else { &self.title };
        let mut text = format!("## {title}\n\n");
        if let Ok(link) = url.join(&self.link)
            && !self.link.is_empty()
        {
            text.push_str(&format!("<{link}>\n"));
        }
        if !self.date.is_empty() {
            text.push_str(&format!("{}\n", self.date));
        }
        let summary = html_to_markdown(&self.summary, Some(url));
        if !summary.is_empty() {
            let shown: String = summary.trim_end().chars().take(MAX_SUMMARY).collect();
            text.push_str(&format!("\n{shown}\n"));
        }
        text.push('\n');
        text
    }
}

fn name_of(start: &BytesStart<'_>) -> String {
    start.local_name().as_ref().to_ascii_lowercase()
}

fn is_field(name: &str) -> bool {
    matches!(
        name,
        "title"
            | "link"
            | "pubdate"
            | "date"
            | "updated"
            | "published"
            | "description"
            | "summary"
            | "content"
            | "encoded"
    )
}

/// Takes the link of Atom, which is an attribute.
fn take_link(entry: &mut Entry, name: &str, start: &BytesStart<'_>) {
    if name != "link" || !entry.link.is_empty() {
        return;
    }
    let attribute = |wanted: &str| {
        let found = start.try_get_attribute(wanted).ok().flatten()?;
        Some(found.normalized_value(XmlVersion::Implicit1_0).ok()?.into_owned())
    };
    if attribute("rel").is_none_or(|rel| rel == "alternate")
        && let Some(link) = attribute("href")
    {
        entry.link = bounded(&link);
    }
}

fn set(entry: &mut Entry, field: &str, value: &str) {
    let value = value.trim();
    let place = match field {
        "title" => &mut entry.title,
        "link" => &mut entry.link,
        "description" | "summary" | "content" | "encoded" => {
            // The longest one: a description is often the beginning of the content.
            if value.len() > entry.summary.len() {
                value.clone_into(&mut entry.summary);
            }
            return;
        }
        _ => &mut entry.date,
    };
    if place.is_empty() {
        *place = bounded(&value.split_whitespace().collect::<Vec<_>>().join(" "));
    }
}

/// Returns the character of a reference that XML knows by name; there are five.
fn named(name: &str) -> Option<&'static str> {
    let known = [("amp", "&"), ("lt", "<"), ("gt", ">"), ("quot", "\""), ("apos", "'")];
    known.into_iter().find(|(own, _)| *own == name).map(|(_, text)| text)
}

fn bounded(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_FIELD.min(text.len()))].to_owned()
}

#[cfg(test)]
mod tests {
    use rockbot_core::testing::Mutations;

    use super::*;

    #[test]
    fn mutated_feeds_are_read() {
        let corpus = [
            "<?xml version='1.0'?><rss><channel><title>News</title><item><title>A &amp; &#66;</title><link>/a</link>\
                <pubDate>Mon</pubDate><description><![CDATA[<p>Some <b>text</b></p>]]></description></item></channel></rss>",
            "<feed><title>Log</title><entry><link rel='alternate' href='https://example.org/1'/><updated>2026</updated>\
                <summary type='html'>&lt;i&gt;short&lt;/i&gt;</summary></entry></feed>",
        ];
        let url = "https://example.org/feed".parse().unwrap();
        Mutations::of(corpus).check_text(|text| {
            let feed = read(text, &url);
            let entries = feed.markdown.matches("## ").count();
            assert!(feed.title.len() <= MAX_FIELD && entries <= text.len());
            // A link may become absolute and is percent-encoded.
            assert!(
                feed.markdown.len() <= 64 * text.len() + 1_000,
                "{}",
                feed.markdown.len()
            );
        });
    }

    #[test]
    fn rss_and_atom() {
        let url = "https://example.org/feed".parse().unwrap();
        let rss = "<?xml version='1.0'?><rss><channel><title>News</title><link>https://example.org</link>\
            <item><title>A &amp; B</title><link>/a</link><pubDate>Mon, 23 Nov 2026</pubDate>\
            <description><![CDATA[<p>Some <b>text</b></p>]]></description></item>\
            <item><title>C</title></item></channel></rss>";
        assert!(is_feed(rss));
        let expected = "## A & B\n\n<https://example.org/a>\nMon, 23 Nov 2026\n\nSome **text**\n\n## C\n\n\n";
        let feed = Feed {
            title: "News".into(),
            markdown: expected.into(),
        };
        assert_eq!(read(rss, &url), feed);
        let atom = "<feed xmlns='http://www.w3.org/2005/Atom'><title>Log</title><link rel='self' href='/self'/>\
            <entry><title>One</title><link href='https://example.org/1'/><updated>2026-11-23</updated>\
            <summary type='html'>&lt;i&gt;short&lt;/i&gt;</summary></entry></feed>";
        let expected = "## One\n\n<https://example.org/1>\n2026-11-23\n\n*short*\n\n";
        assert_eq!(
            read(atom, &url),
            Feed {
                title: "Log".into(),
                markdown: expected.into()
            }
        );
        assert_eq!(read("<rss><item><title>torn", &url).markdown, "## Untitled\n\n\n");
        assert!(!is_feed("<html><p>x"));
    }
}
