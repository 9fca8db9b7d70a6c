//! A RabbitMQ node of a test's own, which it can stop without disturbing others.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::time;

use crate::rabbitmq::{RabbitMqBus, RabbitMqSettings};

/// The program that starts a node as any user: the one on the path changes the user and the
/// folders.
const SERVER: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";

/// Maximum time in which a node starts or stops.
const START_TIME: Duration = Duration::from_secs(180);

/// A running node. It ends with this value.
pub(super) struct Node {
    folder: TempDir,
    ports: [u16; 3],
    process: Child,
    /// The user with all rights.
    user: String,
}

impl Node {
    /// Starts a node. Without RabbitMQ on this machine the test is skipped, or fails if nothing may
    /// be skipped.
    pub(super) async fn start() -> Option<Self> {
        Self::start_as("guest", "").await
    }

    /// Starts a node with these definitions, such as users and their rights. `user` is a user whose
    /// password is its name and who has all rights: a node with definitions has no other users.
    pub(super) async fn start_with(definitions: &Value, user: &str) -> Option<Self> {
        Self::start_as(user, &definitions.to_string()).await
    }

    async fn start_as(user: &str, definitions: &str) -> Option<Self> {
        if !Path::new(SERVER).exists() {
            let why = "RabbitMQ is not installed on this machine";
            assert!(
                !std::env::var("ROCKBOT_TEST_REQUIRE").is_ok_and(|require| require == "all"),
                "{why}"
            );
            println!("SKIPPED: {why}");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("plugins"), "[].").unwrap();
        if !definitions.is_empty() {
            std::fs::write(folder.path().join("definitions"), definitions).unwrap();
        }
        // Bound together, so that they differ.
        let bound = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let ports = bound.each_ref().map(|listener| listener.local_addr().unwrap().port());
        drop(bound);
        let process = spawn(&folder, ports);
        let user = user.to_owned();
        let node = Self {
            folder,
            ports,
            process,
            user,
        };
        node.until_ready().await;
        Some(node)
    }

    /// Returns the URL of the node for the user with all rights.
    pub(super) fn url(&self) -> String {
        self.url_of(&self.user)
    }

    /// Returns the URL of the node for a user whose password is the user's name.
    pub(super) fn url_of(&self, user: &str) -> String {
        format!("amqp://{user}:{user}@127.0.0.1:{}", self.ports[0])
    }

    /// Stops the node in good order, and starts it again with its data.
    pub(super) async fn restart(&mut self) {
        let pid = std::fs::read_to_string(self.folder.path().join("pid")).unwrap();
        let signal = |name| {
            Command::new("kill")
                .args([name, pid.trim()])
                .stderr(Stdio::null())
                .status()
        };
        assert!(signal("-TERM").unwrap().success());
        let stopped = async {
            while signal("-0").unwrap().success() {
                time::sleep(Duration::from_millis(50)).await;
            }
        };
        time::timeout(START_TIME, stopped).await.expect("the node stops");
        self.end();
        self.process = spawn(&self.folder, self.ports);
        self.until_ready().await;
    }

    fn end(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }

    async fn until_ready(&self) {
        let ready = async {
            let settings = RabbitMqSettings::from_url(&self.url()).unwrap();
            while RabbitMqBus::connect(settings.clone()).await.is_err() {
                time::sleep(Duration::from_millis(500)).await;
            }
        };
        if time::timeout(START_TIME, ready).await.is_err() {
            let log = std::fs::read_to_string(self.folder.path().join("out"));
            panic!("the node does not start: {}", log.unwrap_or_default());
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.end();
    }
}

fn spawn(folder: &TempDir, [port, peers, names]: [u16; 3]) -> Child {
    let at = |name: &str| folder.path().join(name);
    // A file of its own, since the machine may have one for its node.
    let mut conf = format!("listeners.tcp.local = 127.0.0.1:{port}\n");
    let definitions = at("definitions");
    if definitions.exists() {
        conf += &format!("load_definitions = {}\n", definitions.display());
    }
    std::fs::write(at("rabbitmq.conf"), conf).unwrap();
    let out = std::fs::File::create(at("out")).unwrap();
    // The shell ends the node and its name server when its input ends, also when the test is killed.
    let script = r#""$0" </dev/null & cat >/dev/null
        kill -9 $! "$(cat "$RABBITMQ_PID_FILE")"; wait; epmd -port "$ERL_EPMD_PORT" -kill"#;
    Command::new("sh")
        .args(["-c", script, SERVER])
        .env("ERL_EPMD_RELAXED_COMMAND_CHECK", "1")
        .env("HOME", folder.path())
        .env("RABBITMQ_NODENAME", format!("test{port}@localhost"))
        .env("RABBITMQ_CONFIG_FILE", at("rabbitmq.conf"))
        .env("RABBITMQ_DIST_PORT", peers.to_string())
        .env("ERL_EPMD_PORT", names.to_string())
        .env("ERL_EPMD_ADDRESS", "127.0.0.1")
        .env("RABBITMQ_MNESIA_BASE", at("data"))
        .env("RABBITMQ_LOG_BASE", at("log"))
        .env("RABBITMQ_CONF_ENV_FILE", "/dev/null")
        .env("RABBITMQ_PID_FILE", at("pid"))
        .env("RABBITMQ_ENABLED_PLUGINS_FILE", at("plugins"))
        .env(
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
            "-kernel inet_dist_use_interface {127,0,0,1}",
        )
        .stdin(Stdio::piped())
        .stdout(out.try_clone().unwrap())
        .stderr(out)
        .spawn()
        .unwrap()
}
