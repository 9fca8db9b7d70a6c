//! Settings, from configuration and from a URL.

use std::path::Path;

use rockbot_core::ExposeSecret as _;
use rockbot_core::config::Config;
use rockbot_core::context::Trust;

use crate::rabbitmq::RabbitMqSettings;

fn read(text: &str) -> Result<Option<RabbitMqSettings>, String> {
    let config = Config::new().with_text("agent.json", text).unwrap();
    RabbitMqSettings::read(&config, Path::new("/base")).map_err(|error| error.to_string())
}

#[test]
fn without_its_section_there_is_no_broker() {
    assert!(read("{}").unwrap().is_none());
}

#[test]
fn the_settings_of_the_original_are_read() {
    let settings = read(
        r#"{ "RabbitMq": { "HostName": "rabbitmq.cluster.local", "Port": 5672, "UserName": "rockbot",
            "Password": "s3cret", "VirtualHost": "team", "ExchangeName": "x", "DeadLetterExchangeName": "x.dlx",
            "Durable": false, "PrefetchCount": 3 } }"#,
    );
    let settings = settings.unwrap().unwrap();
    assert_eq!(settings.password.expose_secret(), "s3cret");
    assert!(!format!("{settings:?}").contains("s3cret"));
    assert_eq!(settings.address(), "rabbitmq.cluster.local:5672/team");
    assert_eq!(
        (&*settings.exchange_name, &*settings.dead_letter_exchange_name),
        ("x", "x.dlx")
    );
    assert_eq!((settings.durable, settings.prefetch_count), (false, 3));
}

#[test]
fn tls_has_its_own_port_and_certificates_below_the_base() {
    let settings = read(r#"{ "RabbitMq": { "Tls": true, "CaFile": "ca.pem", "Trust": "untrusted" } }"#);
    let settings = settings.unwrap().unwrap();
    assert_eq!(
        (settings.port, settings.tls, settings.trust),
        (5671, true, Trust::Untrusted)
    );
    assert_eq!(settings.ca_file.as_deref(), Some(Path::new("/base/ca.pem")));
}

#[test]
fn an_invalid_setting_is_named_without_its_value() {
    let error = read(r#"{ "RabbitMq": { "Trust": "s3cret" } }"#).unwrap_err();
    assert!(
        error.contains("`RabbitMq.Trust`") && !error.contains("s3cret"),
        "{error}"
    );
}

#[test]
fn a_url_without_a_virtual_host_means_the_default_one() {
    for url in [
        "amqp://127.0.0.1",
        "amqp://127.0.0.1/",
        "amqp://guest:guest@127.0.0.1:5672/%2f",
    ] {
        let settings = RabbitMqSettings::from_url(url).unwrap();
        assert_eq!(settings.address(), "127.0.0.1:5672", "{url}");
    }
}

#[test]
fn a_url_that_is_none_is_not_quoted() {
    let error = RabbitMqSettings::from_url("http://user:s3cret@host").unwrap_err();
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
}
