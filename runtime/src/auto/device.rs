//! What a backend would run on here, found without loading an engine where files of the system tell.

use std::path::Path;

use serde::Serialize;

use crate::engine::{self, library};
use crate::{Error, Hardware, Result};

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Device {
    /// The processor that programs run on.
    Processor,
    /// A GPU.
    Gpu,
    /// A neural processor.
    Npu,
    /// A vendor's emulator of a device.
    Emulator,
    /// A GPU's driver that computes on the processor: SwiftShader, llvmpipe, WARP.
    Software,
    /// A browser's page, which is not told what it runs on.
    Page,
}

/// The vendor of the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Vendor {
    Amd,
    Intel,
    Other,
}

/// The device of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub device: Device,
    /// What the engine calls it, where one engine has several: OpenVINO's `GPU`.
    pub name: Option<String>,
}

impl Found {
    pub(crate) fn a(device: Device) -> Self {
        Self { device, name: None }
    }
}

/// The vendor of this machine's processor.
pub(crate) fn vendor() -> Vendor {
    let told =
        std::fs::read_to_string("/proc/cpuinfo").ok().or_else(|| std::env::var("PROCESSOR_IDENTIFIER").ok());
    vendor_in(&told.unwrap_or_default())
}

fn vendor_in(told: &str) -> Vendor {
    match told {
        _ if told.contains("AuthenticAMD") => Vendor::Amd,
        _ if told.contains("GenuineIntel") => Vendor::Intel,
        _ => Vendor::Other,
    }
}

/// What a backend would run on; `wanted` is the engine's device that the caller named.
///
/// # Errors
/// When its library or its device is missing.
pub(crate) fn find(hardware: Hardware, wanted: Option<&str>) -> Result<Found> {
    let root = Path::new("/");
    if cfg!(target_os = "linux") && !has_node(root, hardware) {
        let problem =
            format!("no driver has a device for it: there is none of {}", nodes(hardware).join(", "));
        return Err(Error::unavailable(hardware, problem, "install the device's driver"));
    }
    match hardware {
        Hardware::Cpu | Hardware::Auto => Ok(Found::a(Device::Processor)),
        // The emulator is known without loading it, which takes longer than a small model.
        Hardware::Qnn if cfg!(not(target_arch = "aarch64")) => library::package("onnxruntime-qnn")
            .map(|_| Found::a(Device::Emulator))
            .ok_or_else(|| library::missing(hardware)),
        Hardware::Openvino if wanted.is_none() && cfg!(target_os = "linux") && !has_intel_device(root) => {
            engine::set_up(hardware).map(|()| Found::a(Device::Processor))
        }
        Hardware::Openvino => {
            engine::available(hardware)?;
            Ok(of_openvino(&engine::devices(hardware)?, wanted))
        }
        hardware if engine::in_browser(hardware) => {
            engine::available(hardware).map(|_| Found::a(Device::Page))
        }
        hardware => {
            engine::available(hardware)?;
            Ok(Found::a(of_onnxruntime(
                hardware,
                &engine::devices(hardware)?,
                !cfg!(target_os = "linux") || has_gpu(root),
            )))
        }
    }
}

/// OpenVINO's device: the one that was named, else a GPU. Its NPU takes numbers for lengths only, so it must be named.
fn of_openvino(devices: &[String], wanted: Option<&str>) -> Found {
    let names = || devices.iter().filter_map(|device| device.split(':').next());
    let name = wanted.or_else(|| names().find(|name| name.starts_with("GPU")));
    let device = match name.map(str::to_ascii_uppercase) {
        Some(name) if name.starts_with("GPU") => Device::Gpu,
        Some(name) if name.starts_with("NPU") => Device::Npu,
        _ => Device::Processor,
    };
    Found { device, name: name.map(str::to_owned) }
}

/// What ONNX Runtime's words for a device tell: `GPU by NVIDIA`.
fn of_onnxruntime(hardware: Hardware, devices: &[String], gpu: bool) -> Device {
    let is = |kind: &str| devices.iter().any(|device| device.starts_with(kind));
    match hardware {
        Hardware::Cuda | Hardware::Rocm | Hardware::Metal => Device::Gpu,
        Hardware::Qnn if is("NPU") => Device::Npu,
        Hardware::Qnn => Device::Emulator,
        _ if is("GPU") && gpu && !devices.iter().any(|device| is_software(device)) => Device::Gpu,
        _ => Device::Software,
    }
}

/// Whether a name is a software driver's.
fn is_software(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["swiftshader", "llvmpipe", "lavapipe", "microsoft basic render", "warp"]
        .iter()
        .any(|word| name.contains(word))
}

/// The files of which Linux has one where a driver has a device of the backend.
fn nodes(hardware: Hardware) -> &'static [&'static str] {
    match hardware {
        // `dxg` is that of Windows' subsystem, `nvmap` that of Jetson.
        Hardware::Cuda => &["/dev/nvidiactl", "/dev/dxg", "/dev/nvmap"],
        Hardware::Rocm => &["/dev/kfd", "/dev/dxg"],
        _ => &[],
    }
}

fn has_node(root: &Path, hardware: Hardware) -> bool {
    let nodes = nodes(hardware);
    nodes.is_empty() || nodes.iter().any(|node| root.join(node.trim_start_matches('/')).exists())
}

/// Whether the kernel gives a GPU to programs.
fn has_gpu(root: &Path) -> bool {
    let others = ["dev/nvidiactl", "dev/dxg", "dev/kgsl-3d0", "dev/mali0"];
    others.iter().any(|node| root.join(node).exists()) || !listed(&root.join("dev/dri"), "renderD").is_empty()
}

/// Whether there may be a GPU or a neural processor of Intel's.
fn has_intel_device(root: &Path) -> bool {
    let drivers = listed(&root.join("sys/class/drm"), "renderD");
    let vendor =
        |name: &String| std::fs::read_to_string(root.join("sys/class/drm").join(name).join("device/vendor"));
    root.join("dev/dxg").exists()
        || drivers.iter().any(|name| vendor(name).is_ok_and(|vendor| vendor.trim() == "0x8086"))
}

fn listed(folder: &Path, start: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(start))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let file = root.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    #[test]
    fn files_of_the_system_tell_what_is_not_worth_loading() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        assert!(!has_node(root, Hardware::Cuda) && has_node(root, Hardware::Webgpu));
        assert!(!has_gpu(root) && !has_intel_device(root));
        write(root, "dev/nvidiactl", "");
        assert!(has_node(root, Hardware::Cuda) && !has_node(root, Hardware::Rocm) && has_gpu(root));
        write(root, "sys/class/drm/renderD128/device/vendor", "0x1002\n");
        assert!(!has_intel_device(root), "that is AMD's");
        write(root, "sys/class/drm/renderD129/device/vendor", "0x8086\n");
        assert!(has_intel_device(root));
    }

    #[test]
    fn openvino_runs_on_the_named_device_or_on_a_gpu() {
        let all = ["CPU: AMD EPYC", "GPU.0: Intel Arc", "NPU: Intel AI Boost"].map(str::to_owned);
        let of = |devices: &[String], wanted| {
            let found = of_openvino(devices, wanted);
            (found.device, found.name)
        };
        assert_eq!(of(&all, None), (Device::Gpu, Some("GPU.0".to_owned())));
        assert_eq!(of(&all, Some("NPU")), (Device::Npu, Some("NPU".to_owned())));
        assert_eq!(of(&all, Some("cpu")), (Device::Processor, Some("cpu".to_owned())));
        assert_eq!(of(&all[..1], None), (Device::Processor, None));
    }

    #[test]
    fn software_drivers_and_emulators_are_told_from_devices() {
        let of = |hardware, device: &str, gpu| of_onnxruntime(hardware, &[device.to_owned()], gpu);
        assert_eq!(of(Hardware::Webgpu, "GPU by NVIDIA", true), Device::Gpu);
        assert_eq!(of(Hardware::Webgpu, "GPU", false), Device::Software, "the kernel has no GPU");
        assert_eq!(of(Hardware::Webgpu, "GPU by Google SwiftShader", true), Device::Software);
        assert_eq!(of(Hardware::Webgpu, "CPU by AMD", true), Device::Software);
        assert_eq!(of(Hardware::Qnn, "NPU by Qualcomm", false), Device::Npu);
        assert_eq!(of(Hardware::Qnn, "CPU by AMD", false), Device::Emulator);
        assert_eq!(of(Hardware::Cuda, "GPU by NVIDIA", true), Device::Gpu);
    }

    #[test]
    fn processors_tell_their_vendor() {
        assert_eq!(vendor_in("vendor_id\t: AuthenticAMD\n"), Vendor::Amd);
        assert_eq!(vendor_in("Intel64 Family 6 Model 158 Stepping 10, GenuineIntel"), Vendor::Intel);
        assert_eq!(vendor_in("CPU implementer : 0x41"), Vendor::Other);
    }
}
