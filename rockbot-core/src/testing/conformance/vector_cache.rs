//! The conformance suite of [`VectorCache`].

use crate::embedding::Embedding;
use crate::store::VectorCache;
use crate::{Digest, Principal};

/// Checks that the values that `make` creates keep the contract of [`VectorCache`].
///
/// # Panics
///
/// Panics if a part of the contract is broken, with the part that is.
pub async fn vector_cache<C: VectorCache>(make: impl AsyncFn() -> C) {
    vectors_come_back(&make().await).await;
    principals_are_apart(&make().await).await;
    what_is_not_retained_goes(&make().await).await;
}

fn text(number: u8) -> Digest {
    Digest::of([[number]])
}

fn vector(number: u8) -> (Digest, Embedding) {
    let embedding = Embedding::new(vec![f32::from(number), 1.0, -0.5]);
    (text(number), embedding.expect("the numbers are finite"))
}

async fn load(cache: &impl VectorCache, principal: &Principal, texts: &[Digest]) -> Vec<(Digest, Embedding)> {
    let loaded = cache.load(principal, texts).await;
    let mut loaded = loaded.expect("the cache can be read");
    loaded.sort_by_key(|(text, _)| text.to_string());
    loaded
}

async fn add(cache: &impl VectorCache, principal: &Principal, numbers: &[u8]) -> usize {
    let vectors: Vec<_> = numbers.iter().map(|&number| vector(number)).collect();
    let added = cache.add(principal, &vectors).await;
    added.expect("the cache can be written")
}

fn sorted(numbers: &[u8]) -> Vec<(Digest, Embedding)> {
    let mut vectors: Vec<_> = numbers.iter().map(|&number| vector(number)).collect();
    vectors.sort_by_key(|(text, _)| text.to_string());
    vectors
}

async fn vectors_come_back(cache: &impl VectorCache) {
    let me = Principal::default();
    assert_eq!(add(cache, &me, &[]).await, 0, "there are no vectors at first");
    assert_eq!(add(cache, &me, &[1, 2]).await, 2, "the vectors are counted");
    assert!(add(cache, &me, &[2, 3]).await >= 3, "the vectors are counted");
    assert_eq!(
        load(cache, &me, &[text(1), text(3), text(4)]).await,
        sorted(&[1, 3]),
        "the vectors of the texts come back, and no other"
    );
    assert_eq!(
        load(cache, &me, &[text(1), text(2)]).await,
        sorted(&[1, 2]),
        "the vectors come back as often as they are asked for"
    );
    add(cache, &me, &[4]).await;
    assert_eq!(
        load(cache, &me, &[text(4)]).await,
        sorted(&[4]),
        "a new vector comes back"
    );
    let other = (text(4), vector(9).1);
    let added = cache.add(&me, std::slice::from_ref(&other)).await;
    added.expect("the cache can be written");
    assert_eq!(
        load(cache, &me, &[text(4)]).await,
        [other],
        "the newest vector of a text counts"
    );
}

async fn principals_are_apart(cache: &impl VectorCache) {
    let (me, other) = (Principal::default(), Principal::from("other"));
    add(cache, &me, &[1]).await;
    add(cache, &other, &[2]).await;
    let retained = cache.retain(&other, &[text(2)]).await;
    retained.expect("the cache can be written");
    assert_eq!(load(cache, &me, &[text(1), text(2)]).await, sorted(&[1]));
    assert_eq!(load(cache, &other, &[text(1), text(2)]).await, sorted(&[2]));
}

async fn what_is_not_retained_goes(cache: &impl VectorCache) {
    let me = Principal::default();
    add(cache, &me, &[1, 2, 3]).await;
    let retained = cache.retain(&me, &[text(2), text(4)]).await;
    retained.expect("the cache can be written");
    assert_eq!(add(cache, &me, &[5]).await, 2, "what is not retained counts no more");
    assert_eq!(load(cache, &me, &[1, 2, 3, 5].map(text)).await, sorted(&[2, 5]));
}
