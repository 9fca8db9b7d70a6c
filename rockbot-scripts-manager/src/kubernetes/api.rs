//! Calls of the Kubernetes API: bounded in time, with errors that say what to do.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::DeleteParams;
use rockbot_core::BoxError;
use rockbot_core::support::loggable;
use rockbot_tools::scripts::ScriptError;
use tokio::time::{sleep, timeout};

/// Maximum time of a call.
const CALL_TIME: Duration = Duration::from_secs(10);

/// Pauses between attempts to delete a pod.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_secs(1),
    Duration::from_secs(3),
];

/// Makes a call, up to its maximum time.
pub(super) async fn call<T>(calling: impl Future<Output = Result<T, kube::Error>>) -> Result<T, kube::Error> {
    match timeout(CALL_TIME, calling).await {
        Ok(answered) => answered,
        Err(elapsed) => Err(kube::Error::Service(elapsed.into())),
    }
}

pub(super) fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Returns the error of a script whose pod the API did not serve.
pub(super) fn unavailable(error: &kube::Error) -> ScriptError {
    ScriptError::Unavailable(match error {
        kube::Error::Api(status) if status.code == 403 => {
            let refused = loggable(&status.message);
            format!(
                "Kubernetes forbids it: {refused}; apply the role in `deploy/` to the service account of the manager"
            )
        }
        kube::Error::Api(status) => format!("Kubernetes refuses it: {}", loggable(&status.message)),
        error => {
            let cause = BoxError::from(error.to_string());
            format!("the Kubernetes API cannot be reached: {}", loggable(&cause.to_string()))
        }
    })
}

/// A pod that was created, or may have been. Dropping it deletes the pod in the background.
pub(super) struct CreatedPod {
    pods: Api<Pod>,
    name: Option<String>,
}

impl CreatedPod {
    /// Takes care of the pod of this name. Call it before the pod is created: the answer to the
    /// creation may be lost.
    pub(super) fn new(pods: Api<Pod>, name: String) -> Self {
        Self { pods, name: Some(name) }
    }

    /// Deletes the pod.
    pub(super) async fn delete(mut self) {
        if let Some(name) = self.name.take() {
            delete(&self.pods, &name).await;
        }
    }
}

impl Drop for CreatedPod {
    fn drop(&mut self) {
        let (Some(name), Ok(runtime)) = (self.name.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let pods = self.pods.clone();
        // A pod whose deletion does not come to its end is swept later, or ends at its deadline.
        runtime.spawn(async move { delete(&pods, &name).await });
    }
}

/// Deletes a pod at once, with up to four attempts.
pub(super) async fn delete(pods: &Api<Pod>, name: &str) {
    let at_once = DeleteParams {
        grace_period_seconds: Some(0),
        ..DeleteParams::default()
    };
    let mut pauses = PAUSES.into_iter();
    loop {
        let error = match call(pods.delete(name, &at_once)).await {
            Ok(_) => return,
            Err(error) if is_not_found(&error) => return,
            Err(error) => error,
        };
        match pauses.next() {
            Some(pause) => sleep(pause).await,
            None => {
                tracing::warn!(pod = name, %error, "a pod could not be deleted; it is swept later");
                return;
            }
        }
    }
}
