//! The services of all sources, ranked.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use rockbot_core::Principal;
use rockbot_core::search::{Analyzer as _, Bm25Index, UnicodeAnalyzer};
use rockbot_core::service::{KnownService, ServiceSource};

use super::everyday::is_everyday;
use super::summaries::Summaries;

/// Maximum length of a service's text that is searched, in bytes.
const MAX_TEXT: usize = 16 * 1024;

/// Maximum number of a query's terms whose part in a service is counted.
const MAX_TERMS: usize = 64;

/// The services of all sources. Each search sees them as they are; the index is built anew when
/// they have changed. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct ServiceIndex(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    sources: Vec<Arc<dyn ServiceSource>>,
    summaries: Option<Arc<Summaries>>,
    built: Mutex<Option<Arc<Built>>>,
}

/// The index of the services at one moment.
#[derive(Debug)]
struct Built {
    /// The hash of all services.
    of: u64,
    services: Vec<(KnownService, String)>,
    words: Bm25Index<usize>,
}

/// A service that a search has found.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) service: KnownService,
    /// The score, where the best hit of the search has 1.
    pub(super) score: f64,
    /// The part of the query's terms that the service has, from 0 to 1: how well it fits, whatever
    /// else there is.
    pub(super) relevance: f64,
    /// The fit of the query's rare terms.
    pub(super) rare: RareTerms,
}

/// The fit of a query's rare terms, which are its terms without everyday words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RareTerms {
    /// The number of rare terms that the service has.
    found: usize,
    /// The number of rare terms of the query.
    all: usize,
    /// `true` if the names of the service have a rare term.
    is_named: bool,
}

impl RareTerms {
    /// Returns `true` if the query is about the service: its names have a rare term and its
    /// description a quarter of them, or its description has two and half of them.
    pub(super) fn fit(self) -> bool {
        let least = if self.is_named {
            self.all.div_ceil(4)
        } else {
            self.all.div_ceil(2).max(2)
        };
        self.found >= least
    }
}

impl ServiceIndex {
    pub(super) fn new(sources: Vec<Arc<dyn ServiceSource>>, summaries: Option<Arc<Summaries>>) -> Self {
        Self(Arc::new(Inner {
            sources,
            summaries,
            built: Mutex::default(),
        }))
    }

    /// Returns the services that fit best, the best first.
    pub(super) async fn search(&self, principal: &Principal, query: &str, limit: usize) -> Vec<Found> {
        let built = self.built(principal).await;
        let hits = built.words.search(query, limit);
        let best = hits.first().map_or(1.0, |hit| hit.score);
        let terms = terms_of(query);
        let found = hits.into_iter().map(|hit| {
            let (service, text) = &built.services[hit.item];
            Found {
                service: service.clone(),
                score: hit.score / best,
                relevance: found_in(&terms, text).len() as f64 / terms.len().max(1) as f64,
                rare: rare_terms(&terms, service, text),
            }
        });
        found.collect()
    }

    /// Returns the services of all sources as they are now. A source that fails is left out.
    pub(super) async fn services(&self, principal: &Principal) -> Vec<KnownService> {
        let mut services = Vec::new();
        for source in &self.0.sources {
            match source.services(principal).await {
                Ok(found) => services.extend(found),
                Err(error) => {
                    let source = source.name();
                    tracing::warn!(source, %error, "services cannot be listed; the search goes on without them");
                }
            }
        }
        services
    }

    async fn built(&self, principal: &Principal) -> Arc<Built> {
        let mut services = self.services(principal).await;
        if let Some(summaries) = &self.0.summaries {
            summaries.apply(&mut services);
        }
        let services: Vec<_> = services.into_iter().map(with_text).collect();
        let mut hasher = DefaultHasher::new();
        for (service, text) in &services {
            let described = (&service.provenance.source, &service.activates);
            (service.kind, &service.id, text, described).hash(&mut hasher);
        }
        let of = hasher.finish();
        let mut built = self.0.built.lock().unwrap_or_else(PoisonError::into_inner);
        match &*built {
            Some(known) if known.of == of => known.clone(),
            _ => built.insert(Arc::new(Built::new(of, services))).clone(),
        }
    }
}

impl Built {
    fn new(of: u64, services: Vec<(KnownService, String)>) -> Self {
        let mut words = Bm25Index::default();
        for (number, (_, text)) in services.iter().enumerate() {
            words.insert(number, text);
        }
        Self { of, services, words }
    }
}

fn with_text(service: KnownService) -> (KnownService, String) {
    let mut text = service.text();
    text.truncate(text.floor_char_boundary(MAX_TEXT));
    (service, text)
}

/// Returns the terms that a query is searched by, each once.
fn terms_of(query: &str) -> HashSet<String> {
    let mut terms = HashSet::new();
    UnicodeAnalyzer.query_words(query, &mut |term, _| {
        if terms.len() < MAX_TERMS {
            terms.insert(term.to_owned());
        }
    });
    terms
}

/// Returns the terms that a text has.
fn found_in<'a>(terms: &'a HashSet<String>, text: &str) -> HashSet<&'a str> {
    let mut found = HashSet::new();
    UnicodeAnalyzer.words(text, &mut |word, _| {
        if let Some(term) = terms.get(word) {
            found.insert(term.as_str());
        }
    });
    found
}

fn rare_terms(terms: &HashSet<String>, service: &KnownService, text: &str) -> RareTerms {
    let is_rare = |term: &&str| !is_everyday(term);
    RareTerms {
        found: found_in(terms, text).into_iter().filter(is_rare).count(),
        all: terms.iter().map(String::as_str).filter(is_rare).count(),
        is_named: found_in(terms, &names(service)).into_iter().any(|term| is_rare(&term)),
    }
}

/// Returns the name of a service and the names of its items, with their parts as words.
fn names(service: &KnownService) -> String {
    let items = service.items.join(" ");
    format!("{} {items}", service.id).replace(['_', '-', '.'], " ")
}
