//! What `Hardware::Auto` takes: one table of devices and kinds of models, with what each line stands on.

pub(crate) mod device;
pub(crate) mod memory;

use serde::Serialize;

use crate::{GraphKind, Hardware};
pub(crate) use device::{Device, Found, Vendor};

/// How a model is run, which decides whether a device is worth opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Workload {
    /// One pass: encoders of text, images and audio.
    Encoder,
    /// Tokens one by one, from a KV cache.
    Decoder,
    /// An encoder's pass, then tokens one by one.
    EncoderDecoder,
}

impl Workload {
    pub(crate) const ALL: [Self; 3] = [Self::Encoder, Self::Decoder, Self::EncoderDecoder];

    /// By the graphs that a head is run by.
    pub(crate) fn of(graphs: &[GraphKind]) -> Self {
        if graphs.contains(&GraphKind::Encoder) {
            Self::EncoderDecoder
        } else if graphs.iter().any(|kind| kind.is_cached()) {
            Self::Decoder
        } else {
            Self::Encoder
        }
    }
}

/// A line of the table; what is not said fits anything.
struct Rule {
    device: Device,
    hardware: Option<Hardware>,
    vendor: Option<Vendor>,
    workload: Option<Workload>,
    taken: bool,
    reason: &'static str,
}

const ANY: Rule = Rule {
    device: Device::Processor,
    hardware: None,
    vendor: None,
    workload: None,
    taken: false,
    reason: "not measured to be faster than the CPU",
};

const OPENVINO: Rule = Rule { hardware: Some(Hardware::Openvino), ..ANY };

/// The first line that fits stands. Times are of two cores of an AMD EPYC; encoders on AMD's processors rest on MiniLM alone.
/// `docs/auto.md` has what comes of the table, not these times.
const RULES: [Rule; 9] = [
    Rule { device: Device::Gpu, taken: true, reason: "a GPU", ..ANY },
    Rule { device: Device::Npu, taken: true, reason: "a neural processor", ..ANY },
    Rule {
        device: Device::Emulator,
        reason: "only the vendor's emulator is here: 532 ms for what takes the CPU 2.7 ms (MiniLM)",
        ..ANY
    },
    Rule {
        device: Device::Software,
        reason: "only a driver in software is here, which runs on the CPU",
        ..ANY
    },
    Rule {
        device: Device::Page,
        reason: "a page is not told what it runs on, and opening it takes seconds",
        ..ANY
    },
    Rule { hardware: Some(Hardware::Cpu), taken: true, reason: "every machine has one", ..ANY },
    Rule {
        vendor: Some(Vendor::Amd),
        workload: Some(Workload::Decoder),
        reason: "on AMD's processors it takes 10 s and 6 GB to open a Llama of 1.1 billion parameters in bfloat16, and the \
                 CPU 0.2 s and 20 MB",
        ..OPENVINO
    },
    Rule {
        vendor: Some(Vendor::Amd),
        reason: "on AMD's processors it opens models more slowly than the CPU",
        ..OPENVINO
    },
    Rule {
        reason: "on processors of this vendor it was not measured to be faster, loading included",
        ..OPENVINO
    },
];

/// What the table says of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Verdict {
    pub taken: bool,
    pub reason: &'static str,
}

/// Whether `Auto` takes a backend that would run on this device, on a machine with a processor of this vendor.
pub(crate) fn verdict(hardware: Hardware, device: Device, vendor: Vendor, workload: Workload) -> Verdict {
    let fits = |rule: &&Rule| {
        rule.device == device
            && rule.hardware.is_none_or(|wanted| wanted == hardware)
            && rule.vendor.is_none_or(|wanted| wanted == vendor)
            && rule.workload.is_none_or(|wanted| wanted == workload)
    };
    let rule = RULES.iter().find(fits).unwrap_or(&ANY);
    Verdict { taken: rule.taken, reason: rule.reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the table takes it for every workload, or for none.
    fn taken(hardware: Hardware, device: Device, vendor: Vendor) -> bool {
        let each = Workload::ALL.map(|workload| verdict(hardware, device, vendor, workload).taken);
        assert!(each.iter().all(|taken| *taken == each[0]), "{each:?}");
        each[0]
    }

    #[test]
    fn real_devices_are_taken_and_stand_ins_never() {
        for vendor in [Vendor::Amd, Vendor::Intel, Vendor::Other] {
            for hardware in Hardware::ALL {
                assert!(taken(hardware, Device::Gpu, vendor) && taken(hardware, Device::Npu, vendor));
                for stand_in in [Device::Emulator, Device::Software, Device::Page] {
                    assert!(!taken(hardware, stand_in, vendor), "{hardware} {stand_in:?}");
                }
                assert_eq!(
                    taken(hardware, Device::Processor, vendor),
                    hardware == Hardware::Cpu,
                    "{hardware}"
                );
            }
        }
    }

    #[test]
    fn a_reason_is_of_what_was_measured_on_such_a_processor() {
        let of = |vendor, workload| verdict(Hardware::Openvino, Device::Processor, vendor, workload).reason;
        assert!(of(Vendor::Amd, Workload::Decoder).contains("6 GB to open"));
        assert!(of(Vendor::Amd, Workload::Encoder).contains("more slowly"));
        assert!(of(Vendor::Intel, Workload::Decoder).contains("was not measured"));
    }

    #[test]
    fn how_a_model_is_run_is_told_by_its_graphs() {
        assert_eq!(Workload::of(&[GraphKind::Forward, GraphKind::TextOnly]), Workload::Encoder);
        assert_eq!(Workload::of(&[GraphKind::Forward, GraphKind::Decode]), Workload::Decoder);
        let all = [GraphKind::Forward, GraphKind::Encoder, GraphKind::Decode, GraphKind::CrossAttentions];
        assert_eq!(Workload::of(&all), Workload::EncoderDecoder);
    }
}
