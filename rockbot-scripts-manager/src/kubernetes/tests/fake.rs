//! A stand-in for the Kubernetes API and the kubelet behind it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use kube::Client;
use kube::client::Body;
use rockbot_core::{Clock as _, SystemClock, Timestamp};
use serde_json::{Value, json};
use tokio::sync::watch;

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// Decides about the states of a pod that is created: each after a time.
type Kubelet = dyn Fn(&Value) -> Vec<(Duration, Value)> + Send + Sync;

/// Decides about a request, by its method and the last part of its path: an error in its place.
type Fault = dyn Fn(&str, &str) -> Option<(u16, &'static str)> + Send + Sync;

/// A cluster with one namespace. Copies share it.
#[derive(Clone)]
pub(super) struct Cluster(Arc<Parts>);

struct Parts {
    pods: Mutex<BTreeMap<String, Value>>,
    /// The pods that were ever created.
    created: Mutex<Vec<Value>>,
    requests: Mutex<Vec<String>>,
    changed: watch::Sender<u64>,
    kubelet: Box<Kubelet>,
    fault: Mutex<Box<Fault>>,
    log: Mutex<String>,
    /// Number of events after which each watch is cut.
    events: usize,
}

impl Cluster {
    /// Creates a cluster whose pods run through these states, and whose logs have this text.
    pub(super) fn new(log: &str, kubelet: impl Fn(&Value) -> Vec<(Duration, Value)> + Send + Sync + 'static) -> Self {
        Self::cutting(usize::MAX, log, kubelet)
    }

    /// Creates such a cluster that cuts each watch after a number of events.
    pub(super) fn cutting(
        events: usize,
        log: &str,
        kubelet: impl Fn(&Value) -> Vec<(Duration, Value)> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Parts {
            pods: Mutex::default(),
            created: Mutex::default(),
            requests: Mutex::default(),
            changed: watch::Sender::new(1),
            kubelet: Box::new(kubelet),
            fault: Mutex::new(Box::new(|_, _| None)),
            log: Mutex::new(log.to_owned()),
            events,
        }))
    }

    pub(super) fn client(&self) -> Client {
        let cluster = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let cluster = cluster.clone();
            async move { cluster.answer(request).await }
        });
        Client::new(service, "rockbot-scripts")
    }

    pub(super) fn set_fault(&self, fault: impl Fn(&str, &str) -> Option<(u16, &'static str)> + Send + Sync + 'static) {
        *self.0.fault.lock().unwrap() = Box::new(fault);
    }

    /// Returns the names of the pods that are there.
    pub(super) fn pods(&self) -> Vec<String> {
        self.0.pods.lock().unwrap().keys().cloned().collect()
    }

    /// Returns the pods that were ever created.
    pub(super) fn created(&self) -> Vec<Value> {
        self.0.created.lock().unwrap().clone()
    }

    /// Returns the requests, such as `GET log`.
    pub(super) fn requests(&self) -> Vec<String> {
        self.0.requests.lock().unwrap().clone()
    }

    /// Adds a pod that another process has created.
    pub(super) fn add(&self, name: &str, labels: &Value, created: Timestamp) {
        let created = written(created);
        let pod = json!({
            "metadata": {"name": name, "labels": labels, "creationTimestamp": created},
            "spec": {"containers": [], "activeDeadlineSeconds": 60},
        });
        self.0.pods.lock().unwrap().insert(name.to_owned(), pod);
    }

    /// Removes a pod, as an administrator does.
    pub(super) fn remove(&self, name: &str) {
        self.0.pods.lock().unwrap().remove(name);
        self.0.changed.send_modify(|version| *version += 1);
    }

    async fn answer(&self, request: Request<Body>) -> Result<Answer, std::io::Error> {
        let (parts, body) = request.into_parts();
        let path = parts
            .uri
            .path()
            .strip_prefix("/api/v1/namespaces/rockbot-scripts/pods")
            .unwrap()
            .to_owned();
        let query = parts.uri.query().unwrap_or_default().to_owned();
        let is_watch = query.contains("watch=true");
        let last = match path.rsplit_once('/') {
            Some((_, "log")) => "log",
            Some(_) => "pod",
            None if is_watch => "watch",
            None => "pods",
        };
        self.0.requests.lock().unwrap().push(format!("{} {last}", parts.method));
        let fault = (self.0.fault.lock().unwrap())(parts.method.as_str(), last);
        if let Some((code, message)) = fault {
            if code == 0 {
                return Err(std::io::Error::other(message));
            }
            return Ok(refusal(code, message));
        }
        let name = path.trim_matches('/').trim_end_matches("/log").to_owned();
        Ok(match (parts.method, last) {
            (Method::POST, "pods") => self.create(&body.collect_bytes().await.unwrap()),
            (Method::GET, "pods") => json_answer(&json!({"metadata": {}, "items": self.items(&query)})),
            (Method::GET, "watch") => self.watch(&query),
            (Method::GET, "log") => text_answer(self.0.log.lock().unwrap().clone()),
            (Method::GET, "pod") => match self.0.pods.lock().unwrap().get(&name) {
                Some(pod) => json_answer(pod),
                None => refusal(404, "there is no such pod"),
            },
            (Method::DELETE, "pod") => match self.0.pods.lock().unwrap().remove(&name) {
                Some(pod) => json_answer(&pod),
                None => refusal(404, "there is no such pod"),
            },
            other => panic!("{other:?}"),
        })
    }

    fn create(&self, body: &[u8]) -> Answer {
        let mut pod: Value = serde_json::from_slice(body).unwrap();
        self.0.created.lock().unwrap().push(pod.clone());
        let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
        pod["metadata"]["resourceVersion"] = json!("1");
        pod["metadata"]["creationTimestamp"] = json!(written(SystemClock.now()));
        self.0.pods.lock().unwrap().insert(name.clone(), pod.clone());
        let states = (self.0.kubelet)(&pod);
        let cluster = self.clone();
        tokio::spawn(async move {
            for (after, status) in states {
                tokio::time::sleep(after).await;
                let version = *cluster.0.changed.borrow() + 1;
                if let Some(pod) = cluster.0.pods.lock().unwrap().get_mut(&name) {
                    pod["status"] = status;
                    pod["metadata"]["resourceVersion"] = json!(version.to_string());
                }
                cluster.0.changed.send_replace(version);
            }
        });
        json_answer(&pod)
    }

    fn items(&self, query: &str) -> Vec<Value> {
        assert!(query.contains("labelSelector=app%3Drockbot-script"), "{query}");
        let pods = self.0.pods.lock().unwrap();
        pods.values()
            .filter(|pod| pod["metadata"]["labels"]["app"] == "rockbot-script")
            .cloned()
            .collect()
    }

    /// Answers with a line for each change of a pod, until the pod is deleted or the watch is cut.
    fn watch(&self, query: &str) -> Answer {
        let (_, name) = query.split_once("fieldSelector=metadata.name%3D").unwrap();
        let name = name.split('&').next().unwrap().to_owned();
        let cluster = self.clone();
        let mut changes = self.0.changed.subscribe();
        changes.mark_unchanged();
        let events = stream::unfold((changes, name), move |(mut changes, name)| {
            let cluster = cluster.clone();
            async move {
                changes.changed().await.ok()?;
                let pod = cluster.0.pods.lock().unwrap().get(&name).cloned();
                let event = match pod {
                    Some(pod) => json!({"type": "MODIFIED", "object": pod}),
                    None => json!({"type": "DELETED", "object": {"metadata": {"name": name}}}),
                };
                let frame = http_body::Frame::data(Bytes::from(format!("{event}\n")));
                Some((Ok::<_, Infallible>(frame), (changes, name)))
            }
        });
        Response::new(StreamBody::new(events.take(self.0.events)).boxed_unsync())
    }
}

/// Returns the time as Kubernetes writes it.
fn written(time: Timestamp) -> String {
    let millis = i64::try_from(time.as_millis()).unwrap();
    k8s_openapi::jiff::Timestamp::from_millisecond(millis)
        .unwrap()
        .to_string()
}

fn json_answer(value: &Value) -> Answer {
    text_answer(value.to_string())
}

fn text_answer(text: String) -> Answer {
    Response::new(Full::new(Bytes::from(text)).boxed_unsync())
}

fn refusal(code: u16, message: &str) -> Answer {
    let status = json!({"kind": "Status", "status": "Failure", "message": message, "reason": "Refused", "code": code});
    let mut answer = json_answer(&status);
    *answer.status_mut() = StatusCode::from_u16(code).unwrap();
    answer
}

/// Returns the status of a pod with one container in this state.
pub(super) fn status(phase: &str, state: &Value) -> Value {
    let container =
        json!({"name": "script", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state});
    json!({"phase": phase, "containerStatuses": [container]})
}

/// Returns the status of a pod whose script runs.
pub(super) fn running() -> Value {
    status("Running", &json!({"running": {}}))
}

/// Returns the status of a pod whose script has ended.
pub(super) fn ended(code: i32, stderr: &str) -> Value {
    let phase = if code == 0 { "Succeeded" } else { "Failed" };
    status(phase, &json!({"terminated": {"exitCode": code, "message": stderr}}))
}
