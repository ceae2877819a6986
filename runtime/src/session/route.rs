//! Which backend to run on: the one asked for, or the first available one of the model's route.

use crate::Architecture;
use crate::hardware::Support;
use crate::{Error, Hardware, Result, engine};

/// A backend and the reason for it.
pub(super) struct Chosen {
    pub hardware: Hardware,
    pub explanation: String,
}

pub(super) fn choose<A: Architecture>(asked: Hardware) -> Result<Chosen> {
    if asked != Hardware::Auto {
        let version = engine::available(asked)?;
        return Ok(Chosen { hardware: asked, explanation: format!("{asked}, as asked: {version}") });
    }
    let mut passed = vec![];
    for &hardware in A::ROUTE {
        let declared = A::DECLARED.iter().find(|declared| declared.hardware == hardware);
        if let Some(declared) = declared.filter(|declared| declared.support == Support::No) {
            passed.push(format!("{hardware}: not supported ({})", declared.reason));
            continue;
        }
        match engine::available(hardware) {
            Ok(version) => {
                let passed: String = passed.iter().map(|passed| format!("\n  not {passed}")).collect();
                let explanation = format!("{hardware}, the first available of the route: {version}{passed}");
                return Ok(Chosen { hardware, explanation });
            }
            Err(Error::Unavailable { problem, .. }) => passed.push(format!("{hardware}: {problem}")),
            Err(other) => return Err(other),
        }
    }
    let problem = format!("no backend of {}'s route is available: {}", A::NAME, passed.join("; "));
    Err(Error::unavailable(
        Hardware::Auto,
        problem,
        "run `cargo xtask setup --hw cpu`, then `cargo xtask doctor`",
    ))
}
