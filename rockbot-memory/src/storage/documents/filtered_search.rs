//! The best of what a search finds, when not all of it is wanted.

use rockbot_core::search::Ranked;

/// The first `limit` of what `find` makes of the hits. `search` is asked for more hits as long as that is too little.
pub(crate) fn search_filtered<K, T, E>(
    limit: usize,
    search: impl Fn(usize) -> Vec<Ranked<K>>,
    find: impl Fn(&K) -> Result<Option<T>, E>,
) -> Result<Vec<Ranked<T>>, E> {
    let mut asked = limit;
    loop {
        let hits = search(asked);
        let is_all = hits.len() < asked;
        let found = hits.iter().filter_map(|hit| {
            let item = find(&hit.item).transpose()?;
            Some(item.map(|item| Ranked { item, score: hit.score }))
        });
        let found: Vec<_> = found.take(limit).collect::<Result<_, E>>()?;
        if is_all || found.len() == limit {
            return Ok(found);
        }
        asked = asked.saturating_mul(8);
    }
}
