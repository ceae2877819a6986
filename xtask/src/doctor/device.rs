//! Finds the device of each backend without loading any engine.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use weft_generator::spec::hardware::{EvidenceLevel, Hardware};

use super::graphics::{webgpu, webnn};
use super::machine::Machine;

/// Something a backend can run on.
#[derive(Debug, PartialEq, Serialize)]
pub struct Device {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u64>,
    /// What a result from it is worth.
    pub evidence: EvidenceLevel,
}

impl Device {
    pub fn new(name: impl Into<String>, evidence: EvidenceLevel) -> Self {
        Self { name: name.into(), driver: None, memory_mb: None, evidence }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(driver) = &self.driver {
            write!(f, ", driver {driver}")?;
        }
        if let Some(memory) = self.memory_mb {
            write!(f, ", {:.1} GB", memory as f64 / 1000.0)?;
        }
        Ok(())
    }
}

/// What was found for a backend.
#[derive(Debug, Default, PartialEq)]
pub struct Finding {
    pub devices: Vec<Device>,
    /// What keeps the backend from running, with the way out.
    pub missing: Vec<String>,
    pub notes: Vec<String>,
}

impl Finding {
    pub fn device(device: Device) -> Self {
        Self { devices: vec![device], ..Self::default() }
    }

    pub fn missing(what: impl Into<String>) -> Self {
        Self { missing: vec![what.into()], ..Self::default() }
    }
}

/// Finds the devices of a backend. `package` gives what a package of the backend is for, if it is set up.
pub fn find(machine: &Machine, hardware: Hardware, package: &dyn Fn(&str) -> Option<PathBuf>) -> Finding {
    match hardware {
        Hardware::Cpu => Finding::device(processor(machine)),
        Hardware::Cuda => cuda(machine),
        Hardware::Rocm => rocm(machine),
        Hardware::Metal => metal(machine),
        Hardware::Openvino => openvino(machine),
        Hardware::Qnn => qnn(machine),
        Hardware::Webgpu => webgpu(machine),
        Hardware::Webnn => webnn(machine, package("@sparticuz/chromium")),
    }
}

fn processor(machine: &Machine) -> Device {
    Device { memory_mb: machine.memory_mb(), ..Device::new(machine.processor(), EvidenceLevel::Device) }
}

fn cuda(machine: &Machine) -> Finding {
    let query =
        ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader,nounits"];
    let mut finding =
        Finding { devices: gpus(&machine.ask(&query).unwrap_or_default()), ..Finding::default() };
    if finding.devices.is_empty() {
        let present = machine.pci("0x10de", "03");
        let what = match (present.first(), machine.has("/proc/driver/nvidia/version")) {
            (_, true) => "nvidia-smi: the NVIDIA driver is loaded, but shows no GPU".to_owned(),
            (Some(slot), false) => {
                format!("the NVIDIA driver: a GPU is at PCI slot {slot}, but no driver has it")
            }
            (None, false) => {
                "an NVIDIA GPU and its driver: nvidia-smi is not there, and no NVIDIA GPU is on the \
                              PCI bus"
                    .to_owned()
            }
        };
        return Finding::missing(what);
    }
    if machine.os == "linux" {
        let needed =
            ["libcudart.so.13", "libcublas.so.13", "libcufft.so.12", "libcurand.so.10", "libcudnn.so.9"];
        let absent: Vec<_> = needed.into_iter().filter(|name| !machine.library(name)).collect();
        if !absent.is_empty() {
            finding.missing.push(format!(
                "{}: install CUDA 13 and cuDNN 9, or put their folders in LD_LIBRARY_PATH",
                absent.join(", ")
            ));
        }
    }
    finding
}

/// GPUs as nvidia-smi lists them: name, driver, memory in MiB.
fn gpus(listed: &str) -> Vec<Device> {
    let gpu = |line: &str| {
        let fields: Vec<_> = line.split(',').map(str::trim).collect();
        let [name, driver, memory] = fields[..] else { return None };
        let memory_mb = memory.parse::<u64>().ok().map(|mib| mib * 1_048_576 / 1_000_000);
        Some(Device {
            driver: Some(driver.to_owned()),
            memory_mb,
            ..Device::new(name, EvidenceLevel::Device)
        })
    };
    listed.lines().filter_map(gpu).collect()
}

fn rocm(machine: &Machine) -> Finding {
    if machine.os != "linux" {
        return Finding::missing("Linux with an AMD GPU: the MIGraphX package is for Linux only");
    }
    if !machine.has("/dev/kfd") {
        let what = match machine.pci("0x1002", "03").first() {
            Some(slot) => {
                format!("/dev/kfd: an AMD GPU is at PCI slot {slot}; load the amdgpu driver with ROCm")
            }
            None => "an AMD GPU and its driver: /dev/kfd is not there".to_owned(),
        };
        return Finding::missing(what);
    }
    let nodes = machine.list("/sys/class/kfd/kfd/topology/nodes");
    let devices: Vec<_> = nodes.iter().filter_map(|node| kfd_gpu(node)).collect();
    let mut finding = Finding { devices, ..Finding::default() };
    if finding.devices.is_empty() {
        finding.missing.push("an AMD GPU: /dev/kfd lists none".to_owned());
    }
    if std::fs::File::open(machine.path("/dev/kfd")).is_err() {
        finding.missing.push(
            "the right to open /dev/kfd: add this account to the groups `render` and `video`".to_owned(),
        );
    }
    if !machine.library("libmigraphx_c.so") && !machine.has("/opt/rocm/lib/libmigraphx_c.so") {
        finding.missing.push("libmigraphx_c.so: install ROCm 7 with MIGraphX".to_owned());
    }
    finding
}

/// A node of the kernel's list of compute devices, if it is a GPU.
fn kfd_gpu(node: &Path) -> Option<Device> {
    let properties = std::fs::read_to_string(node.join("properties")).ok()?;
    let value = |key: &str| -> Option<u64> {
        properties.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok())
    };
    let version = value("gfx_target_version").filter(|version| *version > 0)?;
    let gfx = format!("gfx{}{:x}{:x}", version / 10_000, version / 100 % 100, version % 100);
    let name = std::fs::read_to_string(node.join("name")).unwrap_or_default();
    let name = if name.trim().is_empty() { gfx } else { format!("{} ({gfx})", name.trim()) };
    Some(Device::new(name, EvidenceLevel::Device))
}

fn metal(machine: &Machine) -> Finding {
    match (machine.os.as_str(), machine.arch.as_str()) {
        ("macos", "aarch64") => Finding::device(processor(machine)),
        (os, arch) => {
            Finding::missing(format!("Apple silicon with macOS 14 or newer: this is {os} on {arch}"))
        }
    }
}

fn openvino(machine: &Machine) -> Finding {
    let mut finding =
        Finding::device(Device { name: format!("CPU: {}", machine.processor()), ..processor(machine) });
    if !machine.pci("0x8086", "03").is_empty() && !machine.list("/dev/dri").is_empty() {
        finding.devices.push(Device::new("GPU: Intel graphics", EvidenceLevel::Device));
    }
    if !machine.list("/dev/accel").is_empty() && !machine.pci("0x8086", "12").is_empty() {
        finding.devices.push(Device::new("NPU: Intel accelerator", EvidenceLevel::Device));
    }
    finding
}

fn qnn(machine: &Machine) -> Finding {
    let links = ["/dev/fastrpc-cdsp", "/dev/fastrpc-cdsp-secure", "/dev/adsprpc-smd"];
    match machine.arch.as_str() {
        "x86_64" if machine.os != "macos" => {
            Finding::device(Device::new("Hexagon HTP emulator", EvidenceLevel::Emulator))
        }
        "aarch64" if machine.os == "windows" || links.iter().any(|link| machine.has(link)) => {
            Finding::device(Device::new("Hexagon tensor processor", EvidenceLevel::Device))
        }
        "aarch64" => Finding::missing(format!(
            "a Hexagon tensor processor: none of {} is there, and the emulator is for x86-64",
            links.join(", ")
        )),
        arch => Finding::missing(format!(
            "a Snapdragon, or Linux or Windows on x86-64: this is {} on {arch}",
            machine.os
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing(_: &str) -> Option<PathBuf> {
        None
    }

    fn write(root: &Path, path: &str, text: &str) {
        let file = root.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    #[test]
    fn gpus_are_read_from_nvidia_smi() {
        let found = gpus("NVIDIA H200, 580.95.05, 143771\n");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].to_string(), "NVIDIA H200, driver 580.95.05, 150.8 GB");
        assert!(gpus("No devices were found").is_empty());
    }

    #[test]
    fn a_gpu_without_its_driver_is_told_apart_from_no_gpu() {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine::at(dir.path(), "linux", "x86_64");
        assert!(find(&machine, Hardware::Cuda, &nothing).missing[0].starts_with("an NVIDIA GPU"));
        write(dir.path(), "sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
        write(dir.path(), "sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
        let missing = find(&machine, Hardware::Cuda, &nothing).missing;
        assert!(missing[0].contains("PCI slot 0000:01:00.0"), "{missing:?}");
    }

    #[test]
    fn amd_gpus_are_named_by_their_target() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "dev/kfd", "");
        let node = "sys/class/kfd/kfd/topology/nodes/1";
        write(dir.path(), &format!("{node}/properties"), "simd_count 304\ngfx_target_version 90402\n");
        let machine = Machine::at(dir.path(), "linux", "x86_64");
        let found = find(&machine, Hardware::Rocm, &nothing);
        assert_eq!(found.devices[0].name, "gfx942");
        assert!(found.missing[0].contains("MIGraphX"));
    }

    #[test]
    fn each_platform_has_its_own_answer() {
        let dir = tempfile::tempdir().unwrap();
        let mac = Machine::at(dir.path(), "macos", "aarch64");
        assert!(find(&mac, Hardware::Metal, &nothing).missing.is_empty());
        assert!(!find(&mac, Hardware::Qnn, &nothing).missing.is_empty());
        let linux = Machine::at(dir.path(), "linux", "x86_64");
        assert_eq!(find(&linux, Hardware::Qnn, &nothing).devices[0].evidence, EvidenceLevel::Emulator);
        assert!(find(&linux, Hardware::Metal, &nothing).missing[0].contains("this is linux on x86_64"));
    }
}
