//! Images of replies over a bus, as a program reads them that has no store of the agent's media.

use std::sync::Arc;

use rockbot_core::chat::ChatResponse;
use rockbot_core::config::Config;
use rockbot_core::content::{Content, ContentPart, MediaPart, MediaSource};
use rockbot_core::messaging::Bus;
use rockbot_core::store::InMemoryMediaStore;
use rockbot_core::testing::ScriptedModel;
use rockbot_core::user::UserProxy;
use rockbot_host::bus::{InProcessBus, InProcessBusOptions};
use rockbot_host::settings::HostSettings;
use rockbot_host::{AgentHost, AgentHostBuilder, MessageOptions, Stores, UserOptions};

/// Returns the images of a reply to a message, from a host whose model draws three images of 300,
/// 500 and 200 bytes.
async fn drawn(bus: InProcessBus, with: impl FnOnce(AgentHostBuilder) -> AgentHostBuilder) -> Content {
    let images = [300, 500, 200].map(|size| ContentPart::image(MediaPart::bytes("image/png", vec![7; size])));
    let model = ScriptedModel::new().answers(ChatResponse::text("Look.").with_media(images.to_vec()));
    let host = AgentHost::builder("painter").chat(model).bus(bus.clone()).serve_users();
    let host = with(host).build().unwrap();
    host.start().await.unwrap();
    let bus: Arc<dyn Bus> = Arc::new(bus);
    let reply = UserProxy::new(bus, "terminal").send("s", "Draw.").await.unwrap();
    assert!(reply.content.text().starts_with("Look."), "{}", reply.content);
    reply.content
}

/// Returns the sizes of the images: of bytes, or of references, which know their type, too.
fn sizes(content: &Content) -> Vec<Result<u64, u64>> {
    let size = |media: &MediaPart| match &media.source {
        MediaSource::Bytes(bytes) => Ok(bytes.len() as u64),
        MediaSource::Stored(stored) if media.media_type == "image/png" => Err(stored.size),
        other => panic!("{other:?} in a reply"),
    };
    content.media().map(size).collect()
}

fn at_most(bytes: u64) -> impl FnOnce(AgentHostBuilder) -> AgentHostBuilder {
    let users = UserOptions::default().with_max_reply_media_bytes(bytes);
    move |host| host.message_options(MessageOptions::new().with_users(users))
}

#[tokio::test]
async fn a_reply_carries_the_bytes_of_its_images() {
    let content = drawn(InProcessBus::new(), |host| host).await;
    assert_eq!(sizes(&content), [Ok(300), Ok(500), Ok(200)]);
}

#[tokio::test]
async fn images_beyond_the_limit_stay_references_with_type_and_size() {
    let content = drawn(InProcessBus::new(), at_most(600)).await;
    assert_eq!(sizes(&content), [Ok(300), Err(500), Ok(200)]);
    assert!(content.words().contains("image/png, 500 bytes"), "{content}");
    let content = drawn(InProcessBus::new(), at_most(0)).await;
    assert_eq!(sizes(&content), [Err(300), Err(500), Err(200)]);
}

#[tokio::test]
async fn a_setting_is_the_limit_of_replies() {
    let config = Config::new()
        .with_text("a.toml", "[AgentHost]\nMaxReplyMediaBytes = 300")
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let settings = HostSettings::read(&config, folder.path()).unwrap();
    let content = drawn(InProcessBus::new(), |host| {
        host.settings(&settings).data_dir(folder.path())
    })
    .await;
    assert_eq!(sizes(&content), [Ok(300), Err(500), Err(200)]);
}

#[tokio::test]
async fn a_bus_for_small_messages_gets_references() {
    let mut options = InProcessBusOptions::default();
    options.max_message_bytes = 1200;
    let content = drawn(InProcessBus::with_options(options), |host| host).await;
    assert_eq!(sizes(&content), [Err(300), Err(500), Err(200)]);
}

#[tokio::test]
async fn an_image_that_is_gone_is_described() {
    // It holds one image, so the first two are gone when the reply leaves.
    let store = InMemoryMediaStore::new().with_max_bytes(500);
    let content = drawn(InProcessBus::new(), |host| host.stores(Stores::new().with_media(store))).await;
    assert_eq!(sizes(&content), [Ok(200)]);
    assert!(content.words().contains("it is not stored any more"), "{content}");
}
