//! Settings of a Pulsar bus.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rockbot_core::ExposeSecret as _;
use rockbot_core::config::Config;
use rockbot_core::context::Trust;

use crate::pulsar::{PulsarBus, PulsarSettings, TopicLayout};

#[test]
fn all_settings_are_read() {
    let json = r#"{"Pulsar": {"HostName": "broker", "Port": 6652, "Tls": true, "CaFile": "ca.pem", "Token": "t0ken",
        "Tenant": "acme", "Namespace": "agents", "TopicLayout": "TrustGraph", "PrefetchCount": 20, "PublishWait": "00:00:05",
        "MaxMessageBytes": 1000, "Trust": "untrusted"}}"#;
    let config = Config::new().with_text("agent.json", json).unwrap();
    let settings = PulsarSettings::read(&config, Path::new("/data")).unwrap().unwrap();
    assert_eq!(
        (&*settings.host_name, settings.port, settings.tls),
        ("broker", 6652, true)
    );
    assert_eq!(settings.ca_file, Some(PathBuf::from("/data/ca.pem")));
    assert_eq!(settings.token.as_ref().unwrap().expose_secret(), "t0ken");
    assert_eq!((&*settings.tenant, &*settings.namespace), ("acme", "agents"));
    assert_eq!(
        (settings.topic_layout, settings.prefetch_count),
        (TopicLayout::TrustGraph, 20)
    );
    assert_eq!(
        (settings.publish_wait, settings.max_message_bytes, settings.trust),
        (Duration::from_secs(5), 1000, Trust::Untrusted)
    );
    assert!(!format!("{settings:?}").contains("t0ken"));
}

#[test]
fn without_the_section_there_is_no_broker() {
    assert!(PulsarSettings::read(&Config::new(), Path::new(".")).unwrap().is_none());
}

#[test]
fn a_url_of_another_form_is_refused_without_quoting_it() {
    for url in [
        "",
        "amqp://broker",
        "pulsar://",
        "pulsar://agent:s3cret@broker",
        "pulsar://broker/s3cret",
        "pulsar://broker?token=s3cret",
    ] {
        let error = PulsarSettings::from_url(url).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
    }
}

#[tokio::test]
async fn an_unreachable_broker_is_an_error_without_the_token() {
    let mut settings = PulsarSettings::from_url("pulsar://127.0.0.1:9").unwrap();
    settings.token = Some("s3cret".into());
    let error = PulsarBus::connect(settings).await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    let shown = format!("{error} {cause} {error:?}");
    assert!(shown.contains("127.0.0.1:9") && !shown.contains("s3cret"), "{shown}");
}
