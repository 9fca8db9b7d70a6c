//! The first scan of a folder: all documents are read, on several threads.

use std::num::NonZero;
use std::slice::Chunks;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use rockbot_core::Principal;
use rockbot_core::files::FileEntry;
use rockbot_core::store::StoreError;

use super::document::Document;
use super::store::{DocumentStore, PrincipalDocuments, Unreadable};
use super::stored_document::StoredDocument;

/// Number of files that a thread reads at a time.
const BATCH: usize = 128;

/// Maximum number of threads that read files. More do not help, since one thread puts all
/// documents into the index.
const MAX_READERS: usize = 8;

/// Files with the documents that were read from them.
type Parsed<'a, D> = Vec<(&'a FileEntry, Result<Option<StoredDocument<D>>, Unreadable>)>;

impl<D: Document> DocumentStore<D> {
    /// Reads the files `found`. Nothing else reads or writes documents of `principal` before the
    /// first scan has ended.
    ///
    /// Reading and parsing takes several times as long as indexing, and the first message waits for
    /// both.
    pub(super) fn first_scan(
        &self,
        principal: &Principal,
        owned: &PrincipalDocuments<D>,
        mut found: Vec<FileEntry>,
    ) -> Result<(), StoreError> {
        // Measured: in this order, inserting into the sorted maps takes a fraction of the time.
        found.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let _files = owned.lock_files();
        let readers = thread::available_parallelism().map_or(1, NonZero::get).min(MAX_READERS);
        let readers = readers.min(found.len().div_ceil(BATCH));
        let batches = Mutex::new(found.chunks(BATCH));
        let (parsed, received) = sync_channel(2 * MAX_READERS);
        thread::scope(|scope| {
            for _ in 0..readers {
                let parsed = parsed.clone();
                let batches = &batches;
                scope.spawn(move || self.parse_batches(principal, batches, &parsed));
            }
            drop(parsed);
            for batch in received {
                for (found, parsed) in batch {
                    // At the first scan there is no earlier valid version of a damaged file that could come back.
                    self.apply(owned, &found.name, parsed)?;
                }
            }
            Ok(())
        })
    }

    /// Parses batches until there are no more, or until the receiver is gone after an error.
    fn parse_batches<'a>(
        &self,
        principal: &Principal,
        batches: &Mutex<Chunks<'a, FileEntry>>,
        parsed: &SyncSender<Parsed<'a, D>>,
    ) {
        let next = || batches.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some(batch) = next() {
            let batch = batch.iter().map(|found| (found, self.parse(principal, found)));
            if parsed.send(batch.collect()).is_err() {
                return;
            }
        }
    }
}
