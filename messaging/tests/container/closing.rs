//! Constructors that fail, and hooks that close.

use crate::*;

struct Good;
struct FailsNow;
struct FailsLater;
struct Behind;

#[tokio::test(start_paused = true)]
async fn failing_constructors_are_all_told_by_name_and_what_was_built_is_closed() {
    let log = log();
    let builder = Application::builder()
        .shared(Arc::clone(&log))
        .factory(|log: Arc<Log>| {
            log.note("built Good");
            Good
        })
        .try_factory(|| Err::<FailsNow, _>(std::io::Error::other("no such file")))
        .try_factory_async(|| async {
            sleep(SECOND).await;
            Err::<FailsLater, _>("no answer")
        })
        .factory(|_: Arc<FailsNow>, _: Arc<FailsLater>| Behind)
        .on_close({
            let log = Arc::clone(&log);
            move |_: Arc<Good>| {
                log.note("closed Good");
                async {}
            }
        })
        .plugin(Needs::default().of::<Good>().of::<Behind>());
    assert_eq!(
        refused(builder).await,
        ["FailsNow: cannot be built: no such file", "FailsLater: cannot be built: no answer"],
    );
    assert_eq!(log.lines(), ["built Good", "closed Good"]);
}

#[tokio::test]
async fn a_constructor_that_fails_later_on_is_named_and_asked_again() {
    let tries = AtomicUsize::new(0);
    let app = Application::builder()
        .try_factory(move || match tries.fetch_add(1, Ordering::Relaxed) {
            0 => Err("not yet"),
            _ => Ok(Good),
        })
        .create()
        .await
        .unwrap();
    assert_eq!(problems(&app.get::<Good>().await.err().unwrap()), ["Good: cannot be built: not yet"]);
    assert!(app.get::<Good>().await.is_ok());
}

fn note_on_close<T: Send + Sync + 'static>(
    log: &Arc<Log>,
    text: &'static str,
) -> impl Fn(Arc<T>) -> std::future::Ready<()> + Send + Sync + 'static {
    let log = Arc::clone(log);
    move |_| {
        log.note(text);
        std::future::ready(())
    }
}

#[tokio::test(start_paused = true)]
async fn close_hooks_run_once_the_last_built_first_and_only_for_what_was_built() {
    struct Unused;
    let log = log();
    let app = Application::builder()
        .provide::<Tree>()
        .provide::<Leaf>()
        .provide::<Branch>()
        .value(Unused)
        .on_close(note_on_close::<Leaf>(&log, "Leaf"))
        .on_close(note_on_close::<Tree>(&log, "Tree"))
        .on_close(note_on_close::<Unused>(&log, "Unused"))
        .on_close(note_on_close::<Branch>(&log, "Branch"))
        .create()
        .await
        .unwrap();
    app.get::<Tree>().await.unwrap();
    tokio::join!(app.stop(), app.stop());
    app.stop().await;
    assert_eq!(log.lines(), ["Tree", "Branch", "Leaf"]);
}

#[tokio::test(start_paused = true)]
async fn a_close_hook_that_panics_or_hangs_stops_nothing() {
    let log = log();
    let app = Application::builder()
        .provide::<Tree>()
        .provide::<Leaf>()
        .provide::<Branch>()
        .value(Pool)
        .on_close(note_on_close::<Leaf>(&log, "Leaf"))
        .on_close(|_: Arc<Branch>| std::future::pending::<()>())
        .on_close(|_: Arc<Tree>| async { panic!("in its future") })
        .on_close(|_: Arc<Pool>| -> std::future::Ready<()> { panic!("before its future") })
        .close_timeout(3 * SECOND)
        .plugin(Needs::default().of::<Tree>().of::<Pool>())
        .create()
        .await
        .unwrap();
    let stopping = Instant::now();
    app.stop().await;
    assert_eq!(stopping.elapsed(), 3 * SECOND);
    assert_eq!(log.lines(), ["Leaf"]);
}

#[tokio::test]
async fn a_close_hook_of_a_view_closes_what_is_behind_it() {
    let log = log();
    let names = Arc::clone(&log);
    let app = Application::builder()
        .shared(Arc::clone(&log))
        .factory(pool)
        .bind(|repo: Arc<PgRepo>| repo as Arc<dyn Repo>)
        .on_close(move |repo: Arc<dyn Repo>| {
            names.note(format!("closed {}", repo.name()));
            std::future::ready(())
        })
        .create()
        .await
        .unwrap();
    app.get::<dyn Repo>().await.unwrap();
    app.stop().await;
    assert_eq!(log.lines(), ["built Pool", "built PgRepo", "closed pg"]);
}
