//! What `Hardware::Auto` takes here, as a table: the runtime's own verdicts, which its loaded engines tell.

use super::Backend;
use super::loading::Auto;
use crate::table::Table;

/// The table of all backends that were loaded; how to get it, where none was.
pub fn text(backends: &[Backend]) -> String {
    let found = |backend: &Backend| Some((backend.hardware.name(), backend.loaded.as_ref()?.auto.clone()));
    let found: Vec<_> = backends.iter().filter_map(found).collect();
    if found.is_empty() {
        return "auto      `cargo xtask doctor --load` tells what `Hardware::Auto` takes here".to_owned();
    }
    format!(
        "what `Hardware::Auto` takes here: the first of a model's route that is taken, where the model fits in memory\n\n{}",
        table(&found).text()
    )
}

fn table(found: &[(&str, Option<Auto>)]) -> Table {
    let mut table = Table::new(["backend", "would run on", "taken for", "because"]);
    for (name, auto) in found {
        let Some(auto) = auto else {
            table.row([*name, "-", "nothing", "it is not available"].map(str::to_owned));
            continue;
        };
        // Workloads of one verdict stand on one line.
        let mut lines: Vec<(bool, &str, Vec<&str>)> = vec![];
        for verdict in &auto.verdicts {
            match lines
                .iter_mut()
                .find(|(taken, reason, _)| (*taken, *reason) == (verdict.taken, &*verdict.reason))
            {
                Some((_, _, workloads)) => workloads.push(&verdict.workload),
                None => lines.push((verdict.taken, &verdict.reason, vec![&verdict.workload])),
            }
        }
        for (taken, reason, workloads) in lines {
            let all = workloads.len() == auto.verdicts.len();
            let models = if all { "all models".to_owned() } else { workloads.join("s, ") + "s" };
            let models = if taken { models } else { format!("not for {models}") };
            table.row([(*name).to_owned(), auto.device.clone(), models, reason.to_owned()]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::loading::Verdict;
    use super::*;

    #[test]
    fn verdicts_that_agree_stand_on_one_line() {
        let verdict = |workload: &str, taken, reason: &str| Verdict {
            workload: workload.to_owned(),
            taken,
            reason: reason.to_owned(),
        };
        let auto = |device: &str, verdicts| Some(Auto { device: device.to_owned(), verdicts });
        let slow =
            [("encoder", "opens slowly"), ("decoder", "takes 6 GB"), ("encoder-decoder", "opens slowly")];
        let found = [
            ("cpu", auto("processor", vec![verdict("encoder", true, "every machine has one")])),
            ("cuda", None),
            (
                "openvino",
                auto("processor", slow.map(|(workload, reason)| verdict(workload, false, reason)).to_vec()),
            ),
        ];
        insta::assert_snapshot!(table(&found).text());
    }
}
