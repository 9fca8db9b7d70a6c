//! The spans of the framework, as a subscriber sees them.

use std::collections::HashSet;
use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

use super::callsites::keep_undecided;

/// Notes every span of our crates: its place, its name and its fields.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spans(Arc<Mutex<Vec<Noted>>>);

#[derive(Debug)]
struct Noted {
    depth: usize,
    name: &'static str,
    fields: Vec<(&'static str, String)>,
}

/// The index of a span in the list.
struct Place(usize);

impl Spans {
    /// Notes spans of this thread until the guard is dropped.
    pub(crate) fn listen() -> (Self, tracing::subscriber::DefaultGuard) {
        keep_undecided();
        let spans = Self::default();
        let subscriber = tracing_subscriber::registry().with(spans.clone());
        (spans, tracing::subscriber::set_default(subscriber))
    }

    /// All spans in the order in which they began, each further in than the one that it is within.
    pub(crate) fn tree(&self) -> String {
        let mut tree = String::new();
        for span in self.0.lock().unwrap().iter() {
            let indent = "    ".repeat(span.depth);
            writeln!(tree, "{indent}{}", span.name).unwrap();
            for (field, value) in &span.fields {
                writeln!(tree, "{indent}  {field} = {value}").unwrap();
            }
        }
        self.numbered(tree)
    }

    /// Replaces the random ids of traces and spans by their numbers, in the order of the spans.
    fn numbered(&self, mut tree: String) -> String {
        for field in ["trace_id", "span_id"] {
            let mut ids = self.values(field);
            let mut seen = HashSet::new();
            ids.retain(|id| seen.insert(id.clone()));
            for (number, id) in ids.iter().enumerate() {
                tree = tree.replace(id, &format!("{field}-{}", number + 1));
            }
        }
        tree
    }

    /// The fields of each span, as `name.field`.
    pub(crate) fn fields(&self) -> Vec<String> {
        let spans = self.0.lock().unwrap();
        let all = spans
            .iter()
            .flat_map(|span| span.fields.iter().map(|(field, _)| format!("{} {field}", span.name)));
        all.collect()
    }

    /// Returns the value of `field` on each span that has it.
    pub(crate) fn values(&self, field: &str) -> Vec<String> {
        let spans = self.0.lock().unwrap();
        let all = spans.iter().flat_map(|span| &span.fields);
        all.filter(|(name, _)| *name == field)
            .map(|(_, value)| value.clone())
            .collect()
    }
}

impl Visit for Noted {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let name = field.name();
        let value = format!("{value:?}");
        match self.fields.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = value,
            None => self.fields.push((name, value)),
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        metadata.is_span() && metadata.target().starts_with("rockbot")
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        let mut noted = Noted {
            depth: span.scope().count() - 1,
            name: span.name(),
            fields: Vec::new(),
        };
        attributes.record(&mut noted);
        let mut spans = self.0.lock().unwrap();
        span.extensions_mut().insert(Place(spans.len()));
        spans.push(noted);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        let place = span.extensions().get::<Place>().unwrap().0;
        values.record(&mut self.0.lock().unwrap()[place]);
    }
}
