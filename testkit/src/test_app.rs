use std::ops::Deref;

use messaging::{Application, ApplicationBuilder, BootError};

/// A started application; derefs to it.
///
/// Give it the builder that `main` uses, with `replace` for what the test wants otherwise: then the test boots the real
/// graph. Dropped without [`stop`](Application::stop), it lets go of the driver, and running handlers are cut off.
#[derive(Debug)]
pub struct TestApp(Application);

impl TestApp {
    /// Creates and starts the application.
    ///
    /// # Panics
    /// When it refuses to boot, with the whole report.
    #[track_caller]
    pub fn start(builder: ApplicationBuilder) -> impl Future<Output = Self> {
        let caller = std::panic::Location::caller();
        async move {
            match Self::try_start(builder).await {
                Ok(app) => app,
                Err(error) => panic!("{error}\n  at {caller}"),
            }
        }
    }

    /// Creates and starts the application, or says what refuses the boot.
    ///
    /// # Errors
    /// Everything that refuses the boot.
    pub async fn try_start(builder: ApplicationBuilder) -> Result<Self, BootError> {
        let app = builder.create().await?;
        app.start().await?;
        Ok(Self(app))
    }
}

impl Deref for TestApp {
    type Target = Application;

    fn deref(&self) -> &Application {
        &self.0
    }
}
