//! The clock: the system's, or in a page the browser's.

use std::time::SystemTime;

#[cfg(not(target_family = "wasm"))]
pub(crate) use std::time::Instant;
#[cfg(target_family = "wasm")]
pub(crate) use web_time::Instant;

/// What time it is.
pub(crate) fn now() -> SystemTime {
    #[cfg(not(target_family = "wasm"))]
    return SystemTime::now();
    #[cfg(target_family = "wasm")]
    return web_time::web::SystemTimeExt::to_std(web_time::SystemTime::now());
}
