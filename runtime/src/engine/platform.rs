//! The platforms that a backend exists on at all.

use std::env::consts::{ARCH, OS};

use crate::{Error, Hardware, Result};

/// Refuses backends that no library could bring to this platform.
pub(super) fn check(hardware: Hardware) -> Result<()> {
    check_on(hardware, OS, ARCH)
}

fn check_on(hardware: Hardware, os: &str, arch: &str) -> Result<()> {
    let (there, problem, help) = match hardware {
        Hardware::Metal => (
            os == "macos" && arch == "aarch64",
            "Metal is on Apple silicon only",
            "run this on a Mac with Apple silicon and macOS 14 or newer",
        ),
        Hardware::Rocm => (
            os == "linux" && arch == "x86_64",
            "ROCm with MIGraphX is published for Linux on x86-64 only",
            "run this on Linux on x86-64 with an AMD GPU",
        ),
        Hardware::Cuda => (
            os == "linux" || os == "windows",
            "CUDA is on Linux and Windows only",
            "run this on Linux or Windows with an NVIDIA GPU",
        ),
        _ => (true, "", ""),
    };
    if there {
        Ok(())
    } else {
        Err(Error::unavailable(hardware, format!("{problem}, and this is {os} on {arch}"), help))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn platforms_that_a_backend_cannot_be_on_are_named() {
        let error = check_on(Hardware::Metal, "linux", "x86_64").unwrap_err().to_string();
        assert!(error.contains("Apple silicon only, and this is linux on x86_64"), "{error}");
        assert!(check_on(Hardware::Metal, "macos", "aarch64").is_ok());
        assert!(check_on(Hardware::Rocm, "linux", "aarch64").is_err());
        assert!(check_on(Hardware::Cuda, "macos", "aarch64").is_err());
        for hardware in [Hardware::Cpu, Hardware::Qnn, Hardware::Webgpu, Hardware::Webnn, Hardware::Openvino]
        {
            assert!(check_on(hardware, "linux", "aarch64").is_ok());
        }
    }
}
