//! Which backend to run on: the one asked for, or the first of the model's route that `Auto` takes.

use super::BackendVerdict;
use crate::Architecture;
use crate::auto::memory::{self, gigabytes};
use crate::auto::{Found, Vendor, Workload, device, verdict};
use crate::hardware::{Declared, Support};
use crate::{Error, Hardware, Precision, Result, engine};

/// A backend and the reason for it.
pub(super) struct Chosen {
    pub hardware: Hardware,
    /// The engine's device, where it has several.
    pub device: Option<String>,
    pub explanation: String,
}

/// What is loaded.
pub(super) struct Request<'a> {
    pub asked: Hardware,
    /// The engine's device that the caller named.
    pub device: Option<&'a str>,
    pub precision: Precision,
    pub workload: Workload,
    /// The checkpoint's parameters.
    pub elements: u64,
}

/// What `Auto` asks of a machine.
trait Machine {
    fn find(&self, hardware: Hardware, device: Option<&str>) -> Result<Found>;
    fn vendor(&self) -> Vendor;
    /// What is free on a GPU, where something tells.
    fn free_on(&self, hardware: Hardware) -> Option<u64>;
    /// The engine, by name and version.
    fn engine(&self, hardware: Hardware) -> Result<String>;
}

struct ThisMachine;

impl Machine for ThisMachine {
    fn find(&self, hardware: Hardware, device: Option<&str>) -> Result<Found> {
        device::find(hardware, device)
    }

    fn vendor(&self) -> Vendor {
        device::vendor()
    }

    fn free_on(&self, hardware: Hardware) -> Option<u64> {
        memory::free_on(hardware)
    }

    fn engine(&self, hardware: Hardware) -> Result<String> {
        engine::available(hardware)
    }
}

pub(super) fn choose<A: Architecture>(request: &Request<'_>) -> Result<Chosen> {
    // A page is not told what its backends run on: what a route could choose by is not there.
    if request.asked != Hardware::Auto || cfg!(target_family = "wasm") {
        let hardware = if request.asked == Hardware::Auto { Hardware::Cpu } else { request.asked };
        let explanation = format!("{hardware}, as asked: {}", engine::available(hardware)?);
        return Ok(Chosen { hardware, device: None, explanation });
    }
    walk(&ThisMachine, A::ROUTE, A::DECLARED, request).map_err(|passed| {
        let problem = format!("no backend of {}'s route is available: {}", A::NAME, passed.join("; "));
        Error::unavailable(
            Hardware::Auto,
            problem,
            format!("{}, then `weft doctor`", engine::library::set_up("cpu")),
        )
    })
}

/// Each backend: whether `Auto` takes it, and why or why not.
pub(super) fn survey<A: Architecture>(request: &Request<'_>) -> Vec<BackendVerdict> {
    let examined = |hardware| examine(&ThisMachine, hardware, A::DECLARED, request);
    let chosen = A::ROUTE.iter().copied().find(|hardware| examined(*hardware).is_ok());
    let of = |hardware: Hardware| {
        let (here, reason) = match examined(hardware) {
            Ok((_, reason)) => (true, reason),
            Err(reason) => (engine::set_up(hardware).is_ok(), reason),
        };
        let declared = A::DECLARED.iter().find(|declared| declared.hardware == hardware);
        let supported = declared.is_some_and(|declared| declared.support != Support::No);
        BackendVerdict { hardware, chosen: chosen == Some(hardware), available: here && supported, reason }
    };
    Hardware::ALL.into_iter().map(of).collect()
}

/// The first backend of a route that is taken; why each was not, where there is none.
fn walk(
    machine: &dyn Machine,
    route: &[Hardware],
    declared: &[Declared],
    request: &Request<'_>,
) -> std::result::Result<Chosen, Vec<String>> {
    let mut passed = vec![];
    for &hardware in route {
        match examine(machine, hardware, declared, request) {
            Ok((device, reason)) => {
                let passed: String = passed.iter().map(|passed| format!("\n  not {passed}")).collect();
                let explanation = format!("{hardware}, {reason}{passed}");
                return Ok(Chosen { hardware, device, explanation });
            }
            Err(reason) => passed.push(format!("{hardware}: {reason}")),
        }
    }
    Err(passed)
}

/// A backend's device and why it is taken, or why it is not.
fn examine(
    machine: &dyn Machine,
    hardware: Hardware,
    declared: &[Declared],
    request: &Request<'_>,
) -> std::result::Result<(Option<String>, String), String> {
    let missing = |error: Error| match error {
        Error::Unavailable { problem, .. } => problem,
        other => other.to_string(),
    };
    let declared = declared.iter().find(|declared| declared.hardware == hardware);
    if let Some(declared) = declared.filter(|declared| declared.support == Support::No) {
        return Err(format!("not supported ({})", declared.reason));
    }
    let found = machine.find(hardware, request.device).map_err(missing)?;
    let verdict = verdict(hardware, found.device, machine.vendor(), request.workload);
    if !verdict.taken {
        return Err(verdict.reason.to_owned());
    }
    let need = memory::needed_on_gpu(request.elements, request.precision);
    if let Some(free) = machine.free_on(hardware).filter(|free| need > *free) {
        return Err(format!(
            "the model needs {} of its memory, and {} is free",
            gigabytes(need),
            gigabytes(free)
        ));
    }
    let engine = machine.engine(hardware).map_err(missing)?;
    Ok((found.name, format!("{}: {engine}", verdict.reason)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auto::Device;

    /// A machine with these devices.
    struct Has(Vec<(Hardware, Device)>, Option<u64>);

    impl Machine for Has {
        fn find(&self, hardware: Hardware, _: Option<&str>) -> Result<Found> {
            let found = self.0.iter().find(|(named, _)| *named == hardware);
            let missing = || Error::unavailable(hardware, "its library is missing", "set it up");
            found.map(|(_, device)| Found::a(*device)).ok_or_else(missing)
        }

        fn vendor(&self) -> Vendor {
            Vendor::Amd
        }

        fn free_on(&self, hardware: Hardware) -> Option<u64> {
            self.1.filter(|_| hardware == Hardware::Cuda)
        }

        fn engine(&self, hardware: Hardware) -> Result<String> {
            Ok(format!("the engine of {hardware}"))
        }
    }

    const ROUTE: [Hardware; 5] =
        [Hardware::Cuda, Hardware::Openvino, Hardware::Qnn, Hardware::Webgpu, Hardware::Cpu];

    fn choose(devices: &[(Hardware, Device)], free: Option<u64>) -> Chosen {
        let devices = devices.iter().copied().chain([(Hardware::Cpu, Device::Processor)]).collect();
        let request = Request {
            asked: Hardware::Auto,
            device: None,
            precision: Precision::F32,
            workload: Workload::Encoder,
            elements: 1_000_000_000,
        };
        walk(&Has(devices, free), &ROUTE, &[], &request).unwrap_or_else(|passed| panic!("{passed:?}"))
    }

    #[test]
    fn stand_ins_are_passed_over_with_the_reason() {
        let stand_ins = [
            (Hardware::Openvino, Device::Processor),
            (Hardware::Qnn, Device::Emulator),
            (Hardware::Webgpu, Device::Software),
        ];
        let chosen = choose(&stand_ins, None);
        assert_eq!(chosen.hardware, Hardware::Cpu);
        let lines: Vec<_> = chosen.explanation.lines().collect();
        assert_eq!(lines[0], "cpu, every machine has one: the engine of cpu");
        assert_eq!(lines[1], "  not cuda: its library is missing");
        assert!(lines[2].starts_with("  not openvino: on AMD's processors"), "{lines:?}");
        assert!(lines[3].contains("emulator") && lines[4].contains("in software"), "{lines:?}");
    }

    #[test]
    fn real_devices_keep_their_place_in_the_route() {
        let both = [(Hardware::Cuda, Device::Gpu), (Hardware::Openvino, Device::Gpu)];
        assert_eq!(choose(&both, None).hardware, Hardware::Cuda);
        assert_eq!(choose(&both[1..], None).hardware, Hardware::Openvino);
        assert_eq!(choose(&[(Hardware::Qnn, Device::Npu)], None).hardware, Hardware::Qnn);
        assert_eq!(choose(&[(Hardware::Webgpu, Device::Gpu)], None).hardware, Hardware::Webgpu);
    }

    #[test]
    fn a_gpu_that_is_too_small_is_passed_over_with_the_figures() {
        let gpu = [(Hardware::Cuda, Device::Gpu)];
        assert_eq!(choose(&gpu, Some(5_000_000_000)).hardware, Hardware::Cuda);
        let chosen = choose(&gpu, Some(4_000_000_000));
        assert_eq!(chosen.hardware, Hardware::Cpu);
        assert!(chosen.explanation.contains("needs 4.8 GB of its memory, and 4.0 GB is free"));
    }

    #[test]
    fn what_a_model_is_declared_not_to_run_on_is_not_looked_for() {
        let no = Declared {
            hardware: Hardware::Cpu,
            support: Support::No,
            reason: "too large",
            performance: "",
            memory: "",
            notes: "",
        };
        let request = Request {
            asked: Hardware::Auto,
            device: None,
            precision: Precision::F32,
            workload: Workload::Decoder,
            elements: 1,
        };
        let passed = walk(&Has(vec![], None), &[Hardware::Cpu], &[no], &request).err().unwrap();
        assert_eq!(passed, ["cpu: not supported (too large)"]);
    }
}
