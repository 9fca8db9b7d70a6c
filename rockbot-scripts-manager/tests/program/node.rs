//! Scripts in pods of a real Kubernetes node, with the rights that `deploy/` gives their manager.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client};
use rockbot_core::messaging::{Message as _, MessageEnvelope, MessagePublisher as _};
use rockbot_core::{IdSource as _, RandomIds};
use rockbot_tools::scripts::wire::{ScriptCancelled, ScriptFailure, ScriptInvokeResponse};
use rockbot_tools::scripts::{Guarantees, Script};
use serde_json::json;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::agent::{Agent, PATIENCE, ended, ready, signal};

const NAMESPACE: &str = "rockbot-scripts";

/// A node that `.ci/kubernetes` started.
struct Node {
    folder: PathBuf,
    pods: Api<Pod>,
    /// Name of the manager of a test, which its pods have as a label.
    manager: String,
}

impl Node {
    /// Returns the node, or `None` if none is started: the test is skipped, also where no other
    /// test may be, since the node takes minutes to build.
    async fn open(agent: &Agent) -> Option<Self> {
        let Some(folder) = std::env::var_os("ROCKBOT_TEST_KUBERNETES").map(PathBuf::from) else {
            println!("SKIPPED: ROCKBOT_TEST_KUBERNETES is not set: start a node with `.ci/kubernetes start`");
            return None;
        };
        let client = client(&folder, "admin").await;
        Some(Self {
            pods: Api::namespaced(client, NAMESPACE),
            folder,
            manager: agent.settings.queue_prefix.clone(),
        })
    }

    /// Returns the program as a deployment runs it.
    fn command(&self, agent: &Agent) -> Command {
        let mut command = agent.command();
        command
            .env_remove("ROCKBOT_SCRIPTS__MEMORYMEGABYTES")
            // Tests run beside each other on two CPUs.
            .env("ROCKBOT_KUBERNETES__CPUMILLIS", "200")
            .env("HOSTNAME", &self.manager)
            .env("KUBECONFIG", self.folder.join("manager.kubeconfig"))
            .env("ROCKBOT_SCRIPTSMANAGER__BACKEND", "kubernetes")
            .env("ROCKBOT_KUBERNETES__IMAGE", "docker.io/local/python:1");
        command
    }

    async fn start(&self, agent: &Agent) -> Child {
        let (program, ready) = ready(&mut self.command(agent)).await.unwrap();
        assert!(ready.starts_with("ready: kubernetes: no network, "), "{ready}");
        program
    }

    /// Returns the phases of the pods of this test.
    async fn phases(&self) -> Vec<String> {
        let own = ListParams::default().labels(&format!("rockbot.dev/manager={}", self.manager));
        let pods = self.pods.list(&own).await.unwrap();
        let phases = pods.items.into_iter().filter_map(|pod| pod.status?.phase);
        phases.collect()
    }

    async fn until(&self, is_so: impl Fn(&[String]) -> bool) {
        let waiting = async {
            while !is_so(&self.phases().await) {
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(PATIENCE, waiting).await.unwrap();
    }

    async fn until_one_runs(&self) {
        self.until(|phases| phases.iter().any(|phase| phase == "Running")).await;
    }
}

/// Connects as a user of the node.
async fn client(folder: &Path, user: &str) -> Client {
    let file = Kubeconfig::read_from(folder.join(format!("{user}.kubeconfig"))).unwrap();
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    Client::try_from(config.unwrap()).unwrap()
}

async fn end(agent: Agent, node: &Node, mut program: Child) {
    signal(&program, "TERM");
    assert_eq!(ended(&mut program).await.code(), Some(0));
    assert_eq!(node.phases().await, Vec::<String>::new(), "no pod is left");
    agent.close().await;
}

async fn run(agent: &mut Agent, source: &str, seconds: u64) -> ScriptInvokeResponse {
    let script = Script::new(source)
        .with_input("from outside")
        .with_timeout(Duration::from_secs(seconds));
    agent.request(&RandomIds.next_id(), &script, Guarantees::ALL).await;
    agent.answer().await
}

const PROBE: &str = "
import errno, os, socket, sys
def fails(act):
    try:
        act()
        return None
    except OSError as error:
        return errno.errorcode[error.errno]
status = dict(line.split(':\\t', 1) for line in open('/proc/self/status') if ':\\t' in line)
print(sys.stdin.read(), os.environ['ROCKBOT_INPUT'])
print('user', 10_000 <= os.getuid() < 60_000, os.getgid())
print('root', fails(lambda: open('/file', 'w')))
print('process', os.getpid())
print('capabilities', status['CapEff'].strip(), status['NoNewPrivs'].strip(), status['Seccomp'].strip())
print('token', os.path.exists('/var/run/secrets'))
print('network', fails(lambda: socket.create_connection(('192.0.2.1', 80), timeout=3)))
print('services', sorted(name for name in os.environ if 'SERVICE' in name))
print('written', open('/tmp/file', 'w').write('kept for a moment'))
print('to nowhere', file=sys.stderr)
sys.exit(3)
";

#[tokio::test]
async fn a_script_has_a_pod_of_its_own_and_nothing_else() {
    let Some(mut agent) = Agent::open().await else { return };
    let Some(node) = Node::open(&agent).await else { return };
    let program = node.start(&agent).await;
    let answer = run(&mut agent, PROBE, 20).await;
    let expected = [
        "from outside from outside",
        "user True 65534",
        "root EROFS",
        "process 1",
        "capabilities 0000000000000000 1 2",
        "token False",
        "network ENETUNREACH",
        "services []",
        "written 17",
        "",
    ];
    assert_eq!(
        answer.output.unwrap_or_default(),
        expected.join("\n"),
        "{:?}",
        answer.stderr
    );
    assert_eq!((answer.exit_code, answer.stderr.as_deref()), (3, Some("to nowhere\n")));
    end(agent, &node, program).await;
}

#[tokio::test]
async fn a_script_that_takes_too_much_ends_with_its_reason() {
    let Some(mut agent) = Agent::open().await else { return };
    let Some(node) = Node::open(&agent).await else { return };
    let program = node.start(&agent).await;
    let late = run(&mut agent, "import time\nprint('begun')\ntime.sleep(60)", 2).await;
    assert_eq!(late.failure, Some(ScriptFailure::TimedOut), "{late:?}");
    let deaf = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(60)";
    let deaf = run(&mut agent, deaf, 2).await;
    assert_eq!(deaf.failure, Some(ScriptFailure::TimedOut), "{deaf:?}");
    // 400 MiB of the 256 that a pod has: within the address space, so that the cluster ends it.
    let hungry = run(&mut agent, "data = bytearray(b'x') * (400 << 20)\nprint(len(data))", 20).await;
    assert_eq!((hungry.exit_code, hungry.output), (137, None), "{:?}", hungry.stderr);
    let greedy = run(&mut agent, "data = bytearray(4 << 30)", 20).await;
    assert!(greedy.stderr.unwrap().ends_with("MemoryError\n"));
    let forks = "import os\ncount = 0\ntry:\n    while os.fork():\n        count += 1\nexcept BlockingIOError:\n    print(count < 64)";
    let forks = run(&mut agent, forks, 20).await;
    assert!(forks.output.unwrap_or_default().contains("True"), "{:?}", forks.stderr);
    let noisy = run(
        &mut agent,
        "line = 'x' * 1023\nfor _ in range(1 << 20): print(line)",
        60,
    )
    .await;
    // The log counts as the script's files: the cluster looks at them every ten seconds.
    let output = noisy.output.unwrap_or_default();
    let is_cut = output.len() < 300 << 10 && output.ends_with("[cut off after 256 KiB: print less]");
    let errors = noisy.stderr.unwrap_or_default();
    let is_evicted = noisy.exit_code == 137 && errors.starts_with("Pod ephemeral local storage usage exceeds");
    assert!(
        is_cut || is_evicted,
        "{} bytes, {}: {errors}",
        output.len(),
        noisy.exit_code
    );
    end(agent, &node, program).await;
}

#[tokio::test]
async fn a_manager_that_is_killed_leaves_no_pod_and_each_request_one_answer() {
    let Some(mut agent) = Agent::open().await else { return };
    let Some(node) = Node::open(&agent).await else { return };
    let mut program = node.start(&agent).await;
    for id in 0..3 {
        agent
            .send(&id.to_string(), &format!("import time\ntime.sleep(3)\nprint({id})"))
            .await;
    }
    node.until_one_runs().await;
    program.kill().await.unwrap();
    let before = node.phases().await;
    assert!(!before.is_empty(), "a killed manager deletes nothing");
    let program = node.start(&agent).await;
    let mut outputs = BTreeMap::new();
    for _ in 0..3 {
        let answer = agent.answer().await;
        assert!(
            outputs
                .insert(answer.tool_call_id, answer.output.unwrap_or_default())
                .is_none()
        );
    }
    let expected = (0..3).map(|id| (id.to_string(), format!("{id}\n")));
    assert_eq!(outputs, expected.collect());
    end(agent, &node, program).await;
}

#[tokio::test]
async fn a_cancelled_script_loses_its_pod() {
    let Some(mut agent) = Agent::open().await else { return };
    let Some(node) = Node::open(&agent).await else { return };
    let program = node.start(&agent).await;
    agent.send("long", "import time\ntime.sleep(250)").await;
    node.until_one_runs().await;
    let cancelled = MessageEnvelope::of(&ScriptCancelled::new("long"))
        .unwrap()
        .with_source("clerk");
    let topic = ScriptCancelled::TOPIC.unwrap();
    agent.bus.publish(topic, Arc::new(cancelled)).await.unwrap();
    node.until(<[String]>::is_empty).await;
    // The manager goes on.
    agent.send("next", "print('next')").await;
    assert_eq!(agent.answer().await.into_output().unwrap().stdout, "next\n");
    end(agent, &node, program).await;
}

#[tokio::test]
async fn an_agent_has_no_right_and_the_manager_those_of_its_pods_alone() {
    let Some(agent) = Agent::open().await else { return };
    let Some(node) = Node::open(&agent).await else { return };
    let pod = json!({"metadata": {"name": "forged"}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
    let pod: Pod = serde_json::from_value(pod).unwrap();
    for (user, namespace) in [
        ("agent", NAMESPACE),
        ("agent", "default"),
        ("manager", "default"),
        ("manager", "rockbot"),
    ] {
        let pods: Api<Pod> = Api::namespaced(client(&node.folder, user).await, namespace);
        refused(&pods.create(&PostParams::default(), &pod).await);
        refused(&pods.list(&ListParams::default()).await);
    }
    for user in ["agent", "manager"] {
        let secrets: Api<Secret> = Api::namespaced(client(&node.folder, user).await, NAMESPACE);
        refused(&secrets.list(&ListParams::default()).await);
    }
    agent.listening.close().await;
    agent.bus.delete_topology().await.unwrap();
}

fn refused<T: std::fmt::Debug>(answer: &Result<T, kube::Error>) {
    let is_refused = matches!(answer, Err(kube::Error::Api(status)) if status.code == 403);
    assert!(is_refused, "{answer:?}");
}
