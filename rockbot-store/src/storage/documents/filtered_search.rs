//! Top-k search with a filter that the index does not know.

use rockbot_core::search::Ranked;

/// Returns the first `limit` hits that `find` resolves to an item.
///
/// The index ranks all documents, but `find` drops documents that are filtered out or gone. So
/// `search` is repeated with eight times as many hits until `limit` are left or there are no
/// more: most queries need one pass, and a filter that drops nearly everything costs a few.
pub(crate) fn search_filtered<K, T, E>(
    limit: usize,
    search: impl Fn(usize) -> Vec<Ranked<K>>,
    find: impl Fn(&K) -> Result<Option<T>, E>,
) -> Result<Vec<Ranked<T>>, E> {
    let mut requested = limit;
    loop {
        let hits = search(requested);
        let is_all = hits.len() < requested;
        let matches = hits.iter().filter_map(|hit| {
            let item = find(&hit.item).transpose()?;
            Some(item.map(|item| Ranked::new(item, hit.score)))
        });
        let matches: Vec<_> = matches.take(limit).collect::<Result<_, E>>()?;
        if is_all || matches.len() == limit {
            return Ok(matches);
        }
        requested = requested.saturating_mul(8);
    }
}
