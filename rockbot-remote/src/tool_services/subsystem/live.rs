//! The descriptors of a running agent.

use std::io;
use std::path::PathBuf;

use rockbot_core::BoxError;
use tokio::time::Instant;

use crate::tool_services::announcement::Announcement;
use crate::tool_services::catalog::{self, Announcements, Derived, DescriptorFiles};
use crate::tool_services::descriptor::{DescriptorFile, read_folder};

/// The files of an agent's descriptors.
#[derive(Debug, Clone, Default)]
pub(super) struct Sources {
    pub(super) folder: Option<PathBuf>,
    pub(super) files: Vec<PathBuf>,
}

impl Sources {
    /// Returns `true` if there is nothing to watch.
    pub(super) fn is_empty(&self) -> bool {
        self.folder.is_none() && self.files.is_empty()
    }

    /// Reads all files, which blocks.
    pub(super) fn read(&self) -> io::Result<Vec<DescriptorFile>> {
        let mut files = match &self.folder {
            Some(folder) => read_folder(folder)?,
            None => Vec::new(),
        };
        files.extend(self.files.iter().map(|file| DescriptorFile::read(file, None)));
        Ok(files)
    }
}

/// The descriptors of all sources, as they are now.
#[derive(Debug)]
pub(super) struct LiveTools {
    pub(super) sources: Sources,
    files: DescriptorFiles,
    announcements: Announcements,
}

impl LiveTools {
    pub(super) fn new(sources: Sources) -> Self {
        Self {
            sources,
            files: DescriptorFiles::default(),
            announcements: Announcements::default(),
        }
    }

    /// Reads the files for the first time.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be listed.
    pub(super) fn read(&mut self) -> Result<(), BoxError> {
        let files = self.sources.read().map_err(|error| {
            let folder = self.sources.folder.clone().unwrap_or_default();
            let folder = folder.display();
            format!("the folder of descriptors `{folder}` cannot be used: {error}; create it or correct its path")
        })?;
        self.files.update(files);
        Ok(())
    }

    /// Takes in the files as they are now. Returns `true` if something has changed.
    pub(super) fn update_files(&mut self, files: Vec<DescriptorFile>) -> bool {
        self.files.update(files)
    }

    /// Takes in an announcement. Returns `true` if something has changed.
    pub(super) fn take(&mut self, announcement: Announcement) -> bool {
        self.announcements.take(announcement, Instant::now())
    }

    /// Removes the services and tools that are no longer announced. Returns `true` if something has
    /// changed.
    pub(super) fn expire(&mut self) -> bool {
        self.announcements.expire(Instant::now())
    }

    /// Returns the end of the first lease.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.announcements.next_expiry()
    }

    /// Returns the tools that follow from all descriptors.
    pub(super) fn derive(&self) -> Derived {
        catalog::derive(self.files.layer(), &self.announcements.layers())
    }
}
