//! Dreams of a model that is right help, and so do dreams of a model a fifth of whose answers is
//! nonsense: a small form of what `dreams` measures.

use std::sync::Arc;

use rockbot_benches::dreams::{Library, MEASURED, Scripted, week};

#[tokio::test(start_paused = true)]
async fn a_week_of_dreams_helps() {
    let library = Library::new(15, 1);
    let model = |nonsense| Arc::new(Scripted::new(&library, nonsense));
    let none = week(&library, model(0), &[]).await.unwrap();
    for nonsense in [0, 20] {
        let all = week(&library, model(nonsense), &MEASURED).await.unwrap();
        assert!(
            all.right() > none.right(),
            "{nonsense}: {} and {}",
            all.row(),
            none.row()
        );
        assert!(
            all.recall() >= none.recall(),
            "{nonsense}: {} and {}",
            all.row(),
            none.row()
        );
        assert_eq!(all.injected(), 0, "{nonsense}: {}", all.row());
    }
}
