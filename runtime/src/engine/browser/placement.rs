//! Where the nodes went, read from ONNX Runtime Web's log: it has no other way to tell.

use std::collections::BTreeMap;

use crate::engine::Placement;

/// The name of ONNX Runtime's CPU provider, which also takes what a backend refuses.
pub(super) const CPU: &str = "CPUExecutionProvider";

/// What the log of a session's making says.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Report {
    /// Nodes by provider and operator.
    pub placement: Placement,
    /// Nodes that the backend has no form for, as `Operator (name)`.
    pub refused: Vec<String>,
}

impl Report {
    /// Reads the log; `device` is added to the backend's name.
    pub(super) fn read(log: &[&str], device: &str) -> Self {
        let mut report = Self::default();
        // WebNN takes its nodes together and shows them as one: each was named before, when it was considered.
        let mut considered = Considered::default();
        let mut taken = Considered::default();
        let mut providers: BTreeMap<&str, BTreeMap<String, usize>> = BTreeMap::new();
        let mut provider: Option<&str> = None;
        for line in log {
            if let Some(rest) = after(line, "Operator type: [") {
                considered.add(rest);
            } else if line.contains("WebNNExecutionProvider::GetCapability") {
                taken = std::mem::take(&mut considered);
            } else if let Some(rest) = after(line, "kernel not found in registries for Op type: ") {
                let (operator, name) = rest.split_once(" node name: ").unwrap_or((rest, ""));
                report.refused.push(described(operator, name));
            } else if let Some(rest) = after(line, "placed on [") {
                let (name, count) = rest.split_once(']').unwrap_or((rest, ""));
                let count =
                    count.rsplit(' ').next().and_then(|n| n.trim_end_matches('.').parse().ok()).unwrap_or(0);
                // Nodes are only named where more than one provider has some.
                let all = line.contains("All nodes");
                let operators = providers.entry(name).or_default();
                if all {
                    operators.insert("node".to_owned(), count);
                }
                provider = (!all).then_some(name);
            } else if let (Some(name), Some(operator)) = (provider, listed(line)) {
                *providers.entry(name).or_default().entry(operator.to_owned()).or_default() += 1;
            }
        }
        report.refused.extend(taken.refused);
        report.refused.sort();
        report.refused.dedup();
        for (name, operators) in providers {
            let operators = if name.starts_with("WebNN") { taken.operators.clone() } else { operators };
            let name = match name {
                CPU => name.to_owned(),
                backend if device.is_empty() => backend.to_owned(),
                backend => format!("{backend} ({device})"),
            };
            report.placement.devices.insert(name, operators);
        }
        report
    }
}

#[derive(Default)]
struct Considered {
    operators: BTreeMap<String, usize>,
    refused: Vec<String>,
}

impl Considered {
    /// `MatMul] index: [5] name: [/layer.0/MatMul] supported: [1]`
    fn add(&mut self, line: &str) {
        let operator = line.split(']').next().unwrap_or_default();
        let name =
            after(line, "name: [").and_then(|rest| rest.split("] supported").next()).unwrap_or_default();
        if line.contains("supported: [1]") {
            *self.operators.entry(operator.to_owned()).or_default() += 1;
        } else {
            self.refused.push(described(operator, name));
        }
    }
}

fn after<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    line.find(mark).map(|at| &line[at + mark.len()..])
}

/// The operator of `…]   MatMul (/layer.0/MatMul)`.
fn listed(line: &str) -> Option<&str> {
    let listed = after(line, "VerifyEachNodeIsAssignedToAnEp]").unwrap_or(line).trim();
    let (operator, rest) = listed.split_once(" (")?;
    (rest.ends_with(')') && !operator.contains(' ')).then_some(operator)
}

fn described(operator: &str, name: &str) -> String {
    match name.trim() {
        "" => operator.to_owned(),
        name => format!("{operator} ({name})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webnn_names_what_it_takes() {
        let log = [
            "helper.cc:216 GetSupportedNodes] Operator type: [Gather] index: [0] name: [/Gather] supported: [1]",
            "webnn_execution_provider.cc:158 GetCapability] WebNNExecutionProvider::GetCapability, number of …",
            "helper.cc:216 GetSupportedNodes] Operator type: [Gather] index: [0] name: [/Gather] supported: [1]",
            "helper.cc:216 GetSupportedNodes] Operator type: [MatMul] index: [1] name: [/a[0]] supported: [1]",
            "helper.cc:216 GetSupportedNodes] Operator type: [MatMul] index: [2] name: [] supported: [1]",
            "webnn_execution_provider.cc:158 GetCapability] WebNNExecutionProvider::GetCapability, number of …",
            "session_state.cc:1380 VerifyEachNodeIsAssignedToAnEp]  All nodes placed on [WebNNExecutionProvider]. \
             Number of nodes: 1",
        ];
        let report = Report::read(&log, "cpu");
        let webnn = &report.placement.devices["WebNNExecutionProvider (cpu)"];
        assert_eq!(*webnn, BTreeMap::from([("Gather".to_owned(), 1), ("MatMul".to_owned(), 2)]));
        assert_eq!(report.refused, Vec::<String>::new());
    }

    #[test]
    fn webgpu_counts_and_names_what_it_refuses() {
        let all = "session_state.cc:1380 VerifyEachNodeIsAssignedToAnEp]  All nodes placed on \
                   [WebGpuExecutionProvider]. Number of nodes: 7";
        let report = Report::read(&[all], "google swiftshader");
        assert_eq!(report.placement.counts()["WebGpuExecutionProvider (google swiftshader)"], 7);
        let refused = "webgpu_execution_provider.cc:665 GetCapability] webgpu kernel not found in registries for \
                       Op type: Equal node name: equal";
        let report = Report::read(&[refused, refused], "");
        assert_eq!(report.refused, ["Equal (equal)"]);
    }

    #[test]
    fn nodes_on_the_cpu_are_named() {
        let log = [
            "VerifyEachNodeIsAssignedToAnEp]  Node(s) placed on [CPUExecutionProvider]. Number of nodes: 2",
            "VerifyEachNodeIsAssignedToAnEp]   Equal (equal)",
            "VerifyEachNodeIsAssignedToAnEp]   Cast (/mask/Cast)",
            "VerifyEachNodeIsAssignedToAnEp]  Node(s) placed on [WebGpuExecutionProvider]. Number of nodes: 1",
            "VerifyEachNodeIsAssignedToAnEp]   Gather (gather)",
        ];
        let report = Report::read(&log, "");
        let cpu = BTreeMap::from([("Cast".to_owned(), 1), ("Equal".to_owned(), 1)]);
        assert_eq!(report.placement.devices[CPU], cpu);
        assert_eq!(report.placement.counts()["WebGpuExecutionProvider"], 1);
    }
}
