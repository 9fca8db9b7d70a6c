//! The page for people, a client of `/api`: hand-written files, which need no build step.
//!
//! It is no client of AG-UI: it goes on with turns that another window or a schedule began, decides
//! about calls of any turn, and shows retractions, all of which `/api` says by itself and AG-UI by
//! extensions alone.
//!
//! The page trusts no text that it shows. Scripts, styles and connections come from this server
//! alone, which the policy of each answer says to the browser; texts become nodes of text, never
//! markup; and images are shown only from the host's own store. It keeps the user's token in the
//! storage of the tab.

use axum::Router;
use axum::http::HeaderName;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

/// What a browser may do for the page. Trusted types make each use of markup from text fail.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// A file of the page.
#[derive(Clone, Copy)]
struct PageFile {
    kind: &'static str,
    text: &'static str,
}

/// Returns the file of this name.
macro_rules! file {
    ($kind:expr, $name:literal) => {
        PageFile {
            kind: $kind,
            text: include_str!(concat!("../page/", $name)),
        }
    };
}

/// Returns the routes: the page, and its files.
pub(crate) fn routes() -> Router {
    let files = [
        ("/", file!(HTML, "index.html")),
        ("/page/page.css", file!(CSS, "page.css")),
        ("/page/icon.svg", file!(SVG, "icon.svg")),
        ("/page/app.js", file!(SCRIPT, "app.js")),
        ("/page/api.js", file!(SCRIPT, "api.js")),
        ("/page/approvals.js", file!(SCRIPT, "approvals.js")),
        ("/page/browse.js", file!(SCRIPT, "browse.js")),
        ("/page/chat.js", file!(SCRIPT, "chat.js")),
        ("/page/dom.js", file!(SCRIPT, "dom.js")),
        ("/page/markdown.js", file!(SCRIPT, "markdown.js")),
        ("/page/news.js", file!(SCRIPT, "news.js")),
        ("/page/turn.js", file!(SCRIPT, "turn.js")),
    ];
    files.into_iter().fold(Router::new(), |routes, (path, file)| {
        routes.route(path, get(move || std::future::ready(file)))
    })
}

impl IntoResponse for PageFile {
    fn into_response(self) -> Response {
        let headers = [
            (CONTENT_TYPE, self.kind),
            (CONTENT_SECURITY_POLICY, POLICY),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (REFERRER_POLICY, "no-referrer"),
            (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
            (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
            // The files of the page belong to one version of the program.
            (CACHE_CONTROL, "no-cache"),
        ];
        (headers, self.text).into_response()
    }
}
