//! The prelude beside the names of other crates that a program imports.

use rockbot::prelude::*;
use web::*;

/// Names of extractors and responses, as web frameworks export them.
mod web {
    pub(super) struct State<S>(pub(super) S);
    pub(super) struct Json<T>(pub(super) T);
    pub(super) struct Path<T>(pub(super) T);
    pub(super) struct Query<T>(pub(super) T);
    pub(super) struct Extension<T>(pub(super) T);
}

#[test]
fn the_prelude_takes_no_name_of_a_web_framework() {
    let State(state) = State("state");
    let Json(body) = Json(1);
    let Path(path) = Path("id");
    let Query(query) = Query("q");
    let Extension(user) = Extension("ann");
    assert_eq!((state, body, path, query, user), ("state", 1, "id", "q", "ann"));

    /// Counts.
    #[derive(Deserialize, JsonSchema)]
    #[schemars(crate = "schemars")]
    struct Count {}
    let count = stateful_tool("count", 1, |start: ToolState<u32>, _: Count| async move {
        JsonOutput([*start])
    });
    assert_eq!(count.registration.name.as_str(), "count");
}
