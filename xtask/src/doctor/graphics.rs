//! Finds what WebGPU and WebNN run on: Vulkan drivers, Metal, Direct3D, browsers.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use weft_generator::spec::hardware::EvidenceLevel;

use super::device::{Device, Finding};
use super::machine::Machine;

/// What the names of devices found by their driver begin with.
const VULKAN_DRIVER: &str = "Vulkan driver ";

/// Vulkan drivers that compute on the processor.
const SOFTWARE: [&str; 3] = ["lvp", "lavapipe", "swiftshader"];

/// WebGPU outside browsers, and whether there is a browser for it.
pub fn webgpu(machine: &Machine) -> Finding {
    let mut finding = match machine.os.as_str() {
        "macos" => Finding::device(Device::new("Metal", EvidenceLevel::Device)),
        "windows" => Finding::device(Device::new("Direct3D 12", EvidenceLevel::Device)),
        _ => vulkan(machine),
    };
    match browser(machine) {
        Some(path) => finding.notes.push(format!("browser: {}", path.display())),
        None => finding
            .notes
            .push("browser: none found; name one in WEFT_BROWSER to run there as well".to_owned()),
    }
    finding
}

fn vulkan(machine: &Machine) -> Finding {
    let mut drivers = Vec::new();
    match machine.variable("VK_DRIVER_FILES").or_else(|| machine.variable("VK_ICD_FILENAMES")) {
        Some(named) => drivers.extend(named.split(':').map(PathBuf::from)),
        None => {
            for folder in ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d"] {
                drivers.extend(machine.list(folder));
            }
            // Debian's Chromium brings a software driver that the loader does not look for.
            drivers.extend(["/usr/lib/chromium/vk_swiftshader_icd.json"].map(|file| machine.path(file)));
        }
    }
    drivers.retain(|file| file.is_file() && file.extension().is_some_and(|end| end == "json"));
    let mut finding = Finding::default();
    // Distributions install every vendor's driver together: without a GPU, only software ones have a device.
    let gpu = has_gpu(machine);
    for file in drivers {
        let device = vulkan_device(&file);
        if device.evidence == EvidenceLevel::Device && !gpu {
            continue;
        }
        if is_old_lavapipe(&file) {
            finding.notes.push(format!("{}: too old, WebGPU needs lavapipe 25 or newer", file.display()));
        } else {
            finding.devices.push(device);
        }
    }
    if finding.devices.is_empty() {
        finding.missing.push(
            "a Vulkan driver: install the GPU's, or a software one (Debian, Ubuntu: `apt install mesa-vulkan-drivers`)"
                .to_owned(),
        );
    } else if !machine.library("libvulkan.so.1") {
        finding.missing.push(
            "libvulkan.so.1: install the Vulkan loader (Debian, Ubuntu: `apt install libvulkan1`)".to_owned(),
        );
    }
    if !finding.devices.is_empty()
        && finding.devices.iter().all(|device| device.evidence == EvidenceLevel::Emulator)
    {
        finding.notes.push("software device only: set ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER=1".to_owned());
        finding.notes.push("a driver outside the Vulkan folders is named in VK_ICD_FILENAMES".to_owned());
    }
    finding
}

/// What a process needs in its environment to run WebGPU here: nothing where there is a GPU; where there is only
/// a software driver, the leave to use it and its place, unless the caller's own environment says either.
pub fn environment(machine: &Machine) -> Vec<(&'static str, OsString)> {
    const ALLOW: &str = "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER";
    let devices = if machine.os == "linux" { vulkan(machine).devices } else { vec![] };
    let software = devices.iter().all(|device| device.evidence == EvidenceLevel::Emulator);
    let driver = devices.first().and_then(|device| device.name.strip_prefix(VULKAN_DRIVER));
    let Some(driver) = driver.filter(|_| software && machine.variable(ALLOW).is_none()) else {
        return vec![];
    };
    let mut needed = vec![(ALLOW, OsString::from("1"))];
    if ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"].iter().all(|name| machine.variable(name).is_none()) {
        needed.push(("VK_ICD_FILENAMES", driver.into()));
    }
    needed
}

/// Whether the kernel gives a GPU to programs.
fn has_gpu(machine: &Machine) -> bool {
    let render =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("renderD"));
    let nodes = ["/dev/nvidiactl", "/dev/dxg", "/dev/kgsl-3d0", "/dev/mali0"];
    machine.list("/dev/dri").iter().any(render) || nodes.iter().any(|node| machine.has(node))
}

/// Lavapipe before release 25, which was built against Vulkan headers before the 300th.
fn is_old_lavapipe(file: &Path) -> bool {
    let lavapipe = file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("lvp"));
    let manifest = std::fs::read(file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let version =
        manifest.and_then(|json: serde_json::Value| Some(json["ICD"]["api_version"].as_str()?.to_owned()));
    let header = version.and_then(|version| version.split('.').nth(2)?.parse::<u32>().ok());
    lavapipe && header.is_some_and(|header| header < 300)
}

fn vulkan_device(file: &Path) -> Device {
    let name = file.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let software = SOFTWARE.iter().any(|word| name.contains(word));
    let evidence = if software { EvidenceLevel::Emulator } else { EvidenceLevel::Device };
    Device::new(format!("{VULKAN_DRIVER}{}", file.display()), evidence)
}

/// WebNN needs no device of its own: browsers that have it compute on the processor as well.
pub fn webnn(machine: &Machine, package: Option<PathBuf>) -> Finding {
    let named = machine.variable("WEFT_BROWSER").map(PathBuf::from);
    let chosen = named.or(package);
    let packaged = machine.os == "linux" && machine.arch == "x86_64";
    match chosen {
        Some(path) => Finding::device(Device::new(
            format!("WebNN's CPU device in {}", path.display()),
            EvidenceLevel::Device,
        )),
        None if packaged => Finding::device(Device::new(
            "WebNN's CPU device, in the packaged Chromium",
            EvidenceLevel::Device,
        )),
        None => Finding::missing("a browser with WebNN: install Chrome or Edge and name it in WEFT_BROWSER"),
    }
}

fn browser(machine: &Machine) -> Option<PathBuf> {
    let named = machine.variable("WEFT_BROWSER").map(PathBuf::from);
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge"];
    named.or_else(|| machine.program(&names)).or_else(|| {
        let app = machine.path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome");
        app.is_file().then_some(app)
    })
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
    fn software_drivers_are_emulators() {
        let dir = tempfile::tempdir().unwrap();
        let driver = |version: &str| format!(r#"{{"ICD": {{"api_version": "{version}"}}}}"#);
        write(dir.path(), "usr/share/vulkan/icd.d/lvp_icd.x86_64.json", &driver("1.4.305"));
        write(dir.path(), "usr/share/vulkan/icd.d/radeon_icd.x86_64.json", &driver("1.4.305"));
        let machine = Machine::at(dir.path(), "linux", "x86_64");
        let found = webgpu(&machine);
        let evidence: Vec<_> = found.devices.iter().map(|device| device.evidence).collect();
        assert_eq!(evidence, [EvidenceLevel::Emulator], "no GPU is there for the other driver");
        assert!(found.notes.iter().any(|note| note.contains("ALLOW_SOFTWARE_ADAPTER")));
    }

    #[test]
    fn an_old_lavapipe_is_no_device() {
        let dir = tempfile::tempdir().unwrap();
        let manifest = r#"{"ICD": {"api_version": "1.1.230"}}"#;
        write(dir.path(), "usr/share/vulkan/icd.d/lvp_icd.x86_64.json", manifest);
        let machine = Machine::at(dir.path(), "linux", "x86_64");
        let found = webgpu(&machine);
        assert!(found.devices.is_empty() && found.notes[0].contains("too old"), "{found:?}");
        write(dir.path(), "dev/dri/renderD128", "");
        write(dir.path(), "usr/share/vulkan/icd.d/radeon_icd.x86_64.json", manifest);
        assert_eq!(webgpu(&machine).devices[0].evidence, EvidenceLevel::Device);
    }
}
