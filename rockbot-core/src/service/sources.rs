//! The sources of services, which subsystems add.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::KnownService;
use crate::shared::share;
use crate::{BoxError, Principal};

/// A source of services, such as the MCP servers of a host.
#[async_trait]
pub trait ServiceSource: fmt::Debug + Send + Sync + 'static {
    /// Returns the name of the source, for logs.
    fn name(&self) -> &str;

    /// Returns the services as they are now, for this principal. Every search calls this method, so
    /// it must answer from known data and not ask the services.
    ///
    /// # Errors
    ///
    /// Returns an error if the services cannot be read. The search logs the error and goes on
    /// without them.
    async fn services(&self, principal: &Principal) -> Result<Vec<KnownService>, BoxError>;
}

share! {
    ServiceSource {
        async services<'a>(principal: &'a Principal) -> Result<Vec<KnownService>, BoxError>;
        fn name() -> &str;
    }
}

/// The sources of services of a host. Cheap to clone.
///
/// A host provides it as a part before its subsystems declare, so that each subsystem can add the
/// services that it knows:
///
/// ```
/// use rockbot_core::service::{KnownService, ServiceSource, ServiceSources};
/// use rockbot_core::{BoxError, Principal};
///
/// /// The machines of a laboratory.
/// #[derive(Debug)]
/// struct Machines;
///
/// #[async_trait::async_trait]
/// impl ServiceSource for Machines {
///     fn name(&self) -> &str {
///         "machines"
///     }
///
///     async fn services(&self, _: &Principal) -> Result<Vec<KnownService>, BoxError> {
///         Ok(Vec::new())
///     }
/// }
///
/// let sources = ServiceSources::default(); // `declarations.parts().get::<ServiceSources>()` of a host
/// sources.add(Machines);
/// assert_eq!(sources.all().len(), 1);
/// ```
#[derive(Debug, Clone, Default)]
pub struct ServiceSources(Arc<Mutex<Vec<Arc<dyn ServiceSource>>>>);

impl ServiceSources {
    /// Adds a source.
    pub fn add(&self, source: impl ServiceSource) {
        self.lock().push(Arc::new(source));
    }

    /// Returns all sources, in the order of their addition.
    pub fn all(&self) -> Vec<Arc<dyn ServiceSource>> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<dyn ServiceSource>>> {
        // The lock guards a list of pointers: no code that can panic runs under it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
