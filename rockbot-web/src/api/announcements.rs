//! Announcements: messages that the agent says unasked. They stay until the user dismisses them.

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;

use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::response::sse::Event;
use futures_util::stream::unfold;
use rockbot_core::TurnId;
use rockbot_core::turn::{Announcement, AnnouncementInbox};
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;

use crate::door::{Caller, UrlPath, check_id, text_of};
use crate::error::WebError;
use crate::sse::{json, respond};

/// An announcement, with the id under which it is dismissed.
#[derive(Serialize)]
struct Waiting {
    id: TurnId,
    #[serde(flatten)]
    announcement: Announcement,
}

#[derive(Serialize)]
pub(super) struct Announcements {
    announcements: Vec<Waiting>,
}

/// A change of the announcements: the data of one server-sent event.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Change<'a> {
    Announced { announcement: &'a Waiting },
    Dismissed { id: &'a TurnId },
}

/// Lists the announcements that wait for the user, oldest first.
pub(super) async fn list(caller: Caller) -> Result<Json<Announcements>, WebError> {
    let inbox = caller.door.turns.inbox(&caller.principal)?;
    let mut announcements = Vec::new();
    for id in inbox.ids() {
        if let Some(announcement) = inbox.read(&id).await? {
            announcements.push(Waiting { id, announcement });
        }
    }
    Ok(Json(Announcements { announcements }))
}

/// Dismisses an announcement: the user has read it.
pub(super) async fn dismiss(caller: Caller, UrlPath(id): UrlPath<String>) -> Result<StatusCode, WebError> {
    check_id("the id of the announcement", &id)?;
    let inbox = caller.door.turns.inbox(&caller.principal)?;
    if inbox.dismiss(&TurnId::from(id)).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(WebError::not_found("no such announcement waits"))
    }
}

/// Tells the waiting and the coming announcements, and which were dismissed, until the client
/// leaves. With `Last-Event-ID` the announcements up to it are left out, as long as it waits.
pub(super) async fn events(caller: Caller, headers: HeaderMap) -> Result<Response, WebError> {
    let permit = caller.take_stream()?;
    let inbox = caller.door.turns.inbox(&caller.principal)?;
    let ids = inbox.ids();
    let last = text_of(&headers, "last-event-id");
    let read = last.and_then(|last| ids.iter().position(|id| id.as_str() == last));
    let reading = Reading {
        caller,
        inbox,
        told: ids.into_iter().take(read.map_or(0, |at| at + 1)).collect(),
        untold: VecDeque::new(),
        waiting: VecDeque::new(),
        is_first: true,
        _permit: permit,
    };
    Ok(respond(unfold(reading, async |mut reading| {
        let event = reading.next().await?;
        Some((Ok::<_, Infallible>(event), reading))
    })))
}

/// A client that reads the announcements of a user.
struct Reading {
    caller: Caller,
    inbox: Box<dyn AnnouncementInbox>,
    /// Announcements that the client has been told and that waited then. At most 1 000 wait.
    told: BTreeSet<TurnId>,
    /// Announcements that wait and are not told yet.
    untold: VecDeque<TurnId>,
    waiting: VecDeque<Event>,
    is_first: bool,
    _permit: OwnedSemaphorePermit,
}

impl Reading {
    /// Returns the next event; `None` once the host stops.
    async fn next(&mut self) -> Option<Event> {
        let stop = self.caller.door.stop.clone();
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            if let Some(id) = self.untold.pop_front() {
                self.tell(id).await?;
                continue;
            }
            if !std::mem::take(&mut self.is_first) {
                stop.run_until_cancelled(self.inbox.changed()).await?;
            }
            self.compare();
        }
    }

    /// Compares the announcements that wait with the announcements that were told.
    fn compare(&mut self) {
        let now: BTreeSet<_> = self.inbox.ids().into_iter().collect();
        for id in self.told.extract_if(.., |id| !now.contains(id)) {
            self.waiting.push_back(json(&Change::Dismissed { id: &id }));
        }
        self.untold = self.inbox.ids().into();
        self.untold.retain(|id| !self.told.contains(id));
    }

    /// Appends the event of an announcement, one at a time, once the client has taken the one before.
    /// Returns `None` if it cannot be read: the client connects again.
    async fn tell(&mut self, id: TurnId) -> Option<()> {
        if let Some(announcement) = self.inbox.read(&id).await.ok()? {
            let announcement = &Waiting { id, announcement };
            let event = json(&Change::Announced { announcement });
            self.waiting.push_back(event.id(announcement.id.as_str()));
            self.told.insert(announcement.id.clone());
        }
        Some(())
    }
}
