//! Clients that hold on to more than their share. They speak to the router as a program mounts it,
//! without connections.

use std::convert::Infallible;
use std::future::poll_fn;

use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Body, Bytes, Frame};
use hyper::{Request, Response};
use rockbot::tools::a2a_server::{A2aEndpoint, A2aRouter, A2aServer};
use rockbot_core::testing::ScriptedModel;
use rockbot_host::AgentHost;
use serde_json::{Value, json};
use tower::Service;

use super::{message, request};

async fn mounted(model: &ScriptedModel) -> (AgentHost, A2aRouter) {
    let partner = rockbot::tools::a2a_server::A2aCaller::new("partner", "sesame".to_owned());
    let server = A2aServer::new().url("https://agent.example.com/a2a").caller(partner);
    let host = AgentHost::in_memory().chat(model.clone()).add(server).build().unwrap();
    let endpoint = host.parts().require::<A2aEndpoint>().unwrap();
    let router = endpoint.router();
    let early = call(&router, Full::from("{}")).await;
    assert_eq!(
        (early.status().as_u16(), endpoint.address(), endpoint.card()),
        (503, None, None)
    );
    host.start().await.unwrap();
    (host, router)
}

async fn call<B>(router: &A2aRouter, body: B) -> Response<impl Body<Data = Bytes, Error = Infallible> + use<B>>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<rockbot_core::BoxError>,
{
    let request = Request::post("/")
        .header("Host", "agent.example.com")
        .header("Content-Type", "application/json")
        .header("A2A-Version", "1.0")
        .header("X-API-Key", "sesame");
    let mut router = router.clone();
    poll_fn(|cx| Service::<Request<B>>::poll_ready(&mut router, cx))
        .await
        .unwrap();
    router.call(request.body(body).unwrap()).await.unwrap()
}

async fn rpc(router: &A2aRouter, method: &str, params: &Value) -> Value {
    let answer = call(router, Full::from(request(method, params))).await;
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap()
}

fn at_once(id: &str) -> Value {
    let mut message = message(id, "Work.");
    message["configuration"] = json!({"returnImmediately": true});
    message
}

#[tokio::test]
async fn of_ten_thousand_streams_as_many_are_open_as_there_are_places() {
    let model = ScriptedModel::new().hangs();
    let (host, router) = mounted(&model).await;
    let task = rpc(&router, "SendMessage", &at_once("m1")).await["result"]["task"]["id"].clone();
    let subscribe = request("SubscribeToTask", &json!({"id": task}));
    let mut streams = Vec::new();
    let mut refused = 0;
    for _ in 0..10_000 {
        let answer = call(&router, Full::from(subscribe.clone())).await;
        if answer.headers()["content-type"] == "text/event-stream" {
            streams.push(answer)
        } else {
            refused += 1
        }
    }
    assert_eq!((streams.len(), refused), (256, 10_000 - 256));
    let busy = rpc(&router, "SendMessage", &message("m2", "Work.")).await;
    assert_eq!(busy["error"]["data"][0]["reason"], "BUSY");
    // What needs no place is answered all the same, and a reader that gives up leaves its place.
    let state = rpc(&router, "GetTask", &json!({"id": task})).await;
    assert_eq!(state["result"]["status"]["state"], "TASK_STATE_WORKING");
    streams.pop();
    let answer = call(&router, Full::from(subscribe)).await;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    host.shutdown(std::time::Duration::ZERO).await;
    // The streams end with the host.
    let rest = answer.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(rest.windows(6).filter(|window| window == b"data: ").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn slow_and_endless_bodies_are_given_up() {
    let (host, router) = mounted(&ScriptedModel::new()).await;
    let slow = || StreamBody::new(futures_util::stream::pending::<Result<Frame<Bytes>, Infallible>>());
    let mut waiting: Vec<_> = (0..16).map(|_| Box::pin(call(&router, slow()))).collect();
    for one in &mut waiting {
        assert!(futures_util::poll!(one).is_pending());
    }
    assert_eq!(call(&router, slow()).await.status(), 429);
    for one in waiting {
        assert_eq!(one.await.status(), 408);
    }
    let frame = || Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[b' '; 64 << 10])));
    let endless = StreamBody::new(futures_util::stream::repeat_with(frame));
    assert_eq!(call(&router, endless).await.status(), 413);
    host.shutdown(std::time::Duration::ZERO).await;
}

#[tokio::test]
async fn a_caller_has_sixty_four_open_tasks() {
    let mut model = ScriptedModel::new();
    for _ in 0..64 {
        model = model.hangs();
    }
    let (host, router) = mounted(&model).await;
    for number in 0..64 {
        let begun = rpc(&router, "SendMessage", &at_once(&format!("m{number}"))).await;
        assert_eq!(
            begun["result"]["task"]["status"]["state"], "TASK_STATE_WORKING",
            "{begun}"
        );
    }
    let refused = rpc(&router, "SendMessage", &at_once("more")).await;
    assert_eq!(refused["error"]["data"][0]["reason"], "BUSY");
    let open = rpc(&router, "ListTasks", &json!({"pageSize": 100})).await["result"]["tasks"].clone();
    let cancelled = rpc(&router, "CancelTask", &json!({"id": open[0]["id"]})).await;
    assert_eq!(cancelled["result"]["status"]["state"], "TASK_STATE_CANCELED");
    let begun = rpc(&router, "SendMessage", &at_once("more")).await;
    assert_eq!(begun["error"], Value::Null);
    host.shutdown(std::time::Duration::ZERO).await;
}
