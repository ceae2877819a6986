//! The execution providers that come as plugins: which library, which device, which options.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use ort::device::Device;
use ort::environment::Environment;
use ort::memory::DeviceType;
use ort::session::builder::SessionBuilder;

use super::{coreml, placement};
use crate::engine::library;
use crate::{Error, Hardware, Precision, Result};

/// A provider that is registered with the environment.
#[derive(Clone, Debug)]
pub(super) struct Provider {
    hardware: Hardware,
    /// The name it is registered under, which its devices and options carry.
    name: &'static str,
    /// The kind of device, where a provider offers several.
    device: Option<DeviceType>,
    /// Its options, without the name.
    options: Vec<(&'static str, String)>,
}

impl Provider {
    /// The provider of a backend; its library is loaded once per process.
    pub(super) fn of(environment: &Environment, hardware: Hardware) -> Result<Self> {
        let (name, package, library) = match hardware {
            Hardware::Cpu | Hardware::Auto => {
                return Ok(Self {
                    hardware,
                    name: placement::CPU,
                    device: Some(DeviceType::CPU),
                    options: vec![],
                });
            }
            Hardware::Cuda => {
                ("CUDAExecutionProvider", "onnxruntime-gpu", "onnxruntime/capi/onnxruntime_providers_cuda")
            }
            Hardware::Rocm => (
                "MIGraphXExecutionProvider",
                "onnxruntime-migraphx",
                "onnxruntime/capi/onnxruntime_providers_migraphx",
            ),
            Hardware::Metal if !wants_mlx() => return core_ml(),
            Hardware::Metal => {
                ("MLXExecutionProvider", "onnxruntime-ep-mlx", "onnxruntime_ep_mlx/onnxruntime_mlx_ep")
            }
            Hardware::Qnn => {
                ("QNNExecutionProvider", "onnxruntime-qnn", "onnxruntime_qnn/onnxruntime_providers_qnn")
            }
            Hardware::Webgpu => (
                "WebGpuExecutionProvider",
                "onnxruntime-ep-webgpu",
                "onnxruntime_ep_webgpu/onnxruntime_providers_webgpu",
            ),
            Hardware::Openvino | Hardware::Webnn => return Err(library::missing(hardware)),
        };
        let file = library::package(package).map(|folder| folder.join(library));
        let path = file
            .and_then(|path| library::within(path.parent()?, path.file_name()?.to_str()?))
            .ok_or_else(|| library::missing(hardware))?;
        let options = match hardware {
            Hardware::Qnn => qnn(&path),
            // TensorFloat-32 has 11 bits of mantissa: single precision is asked for, so it is given.
            Hardware::Cuda => vec![("use_tf32", "0".to_owned())],
            // Without it, 64-bit integers would be sent to the CPU.
            Hardware::Webgpu => vec![("enableInt64", "1".to_owned())],
            _ => vec![],
        };
        let device = (hardware == Hardware::Qnn).then_some(DeviceType::NPU);
        register(environment, hardware, name, &path)?;
        let provider = Self { hardware, name, device, options };
        if provider.devices(environment).next().is_none() {
            let kinds: Vec<_> =
                environment.devices().filter_map(|d| d.ep().ok().map(str::to_owned)).collect();
            let problem = format!("{name} finds no device here (there is {})", kinds.join(", "));
            return Err(Error::unavailable(hardware, problem, device_help(hardware)));
        }
        Ok(provider)
    }

    /// The devices to place a session on.
    fn devices<'e>(&self, environment: &'e Environment) -> impl Iterator<Item = Device<'e>> {
        let (name, wanted) = (self.name, self.device);
        let mut found: Vec<_> =
            environment.devices().filter(|device| device.ep().is_ok_and(|ep| ep == name)).collect();
        let fits = |device: &Device<'_>| wanted.is_none_or(|wanted| device.hardware_device().ty() == wanted);
        if found.iter().any(fits) {
            found.retain(fits);
        }
        // One device: a session over several would spread the graph.
        found.truncate(1);
        found.into_iter()
    }

    /// The devices to place a session on, in words: `GPU by NVIDIA`.
    pub(super) fn described(&self, environment: &Environment) -> Vec<String> {
        let described = self.devices(environment).map(|device| {
            let device = device.hardware_device();
            let kind = match device.ty() {
                DeviceType::GPU => "GPU",
                DeviceType::NPU => "NPU",
                _ => "CPU",
            };
            match device.vendor().unwrap_or_default() {
                "" => kind.to_owned(),
                vendor => format!("{kind} by {vendor}"),
            }
        });
        described.collect()
    }

    /// Puts a session there.
    pub(super) fn place(
        &self,
        environment: &Environment,
        builder: SessionBuilder,
        precision: Precision,
    ) -> ort::Result<SessionBuilder> {
        if self.name == coreml::NAME {
            return coreml::place(builder, precision);
        }
        // Without explicit devices a session would prefer any plugin that happens to be registered.
        Ok(builder.with_devices(self.devices(environment), Some(&self.options()))?)
    }

    /// The tensor processor computes in half precision whatever a graph says, and says nothing of it: its option
    /// `enable_htp_fp16_precision` changes no number.
    pub(super) fn check_precision(&self, wanted: Precision) -> Result<()> {
        if self.hardware != Hardware::Qnn || wanted == Precision::F16 {
            return Ok(());
        }
        let problem = format!("the tensor processor would compute in f16 where {wanted} is asked for");
        Err(Error::unavailable(self.hardware, problem, "ask for f16, or for other hardware"))
    }

    /// The options as ONNX Runtime reads them.
    fn options(&self) -> Vec<(String, String)> {
        self.options.iter().map(|(key, value)| (format!("{}.{key}", self.name), value.clone())).collect()
    }

    /// Whether nodes may only run there.
    pub(super) fn is_exclusive(&self) -> bool {
        !matches!(self.hardware, Hardware::Cpu | Hardware::Auto)
    }

    /// Operators that only read a shape, which the host knows: they run there without touching any data.
    pub(super) fn host_operators(&self) -> &'static [&'static str] {
        match self.hardware {
            Hardware::Webgpu | Hardware::Cuda | Hardware::Rocm => &["Shape"],
            _ => &[],
        }
    }
}

/// CoreML, which comes with ONNX Runtime itself.
fn core_ml() -> Result<Provider> {
    if coreml::is_available() {
        let hardware = Hardware::Metal;
        return Ok(Provider { hardware, name: coreml::NAME, device: None, options: vec![] });
    }
    let problem = "this ONNX Runtime was built without CoreML";
    let help = format!("unset ORT_DYLIB_PATH, or set WEFT_METAL=mlx and {}", library::set_up("metal"));
    Err(Error::unavailable(Hardware::Metal, problem, help))
}

/// Whether `WEFT_METAL` asks for MLX in place of CoreML.
fn wants_mlx() -> bool {
    std::env::var("WEFT_METAL").is_ok_and(|asked| asked == "mlx")
}

/// The Hexagon processor; where there is none, the vendor's emulator of it, for a named part.
fn qnn(library: &std::path::Path) -> Vec<(&'static str, String)> {
    let backend = library.with_file_name(match std::env::consts::OS {
        "windows" => "QnnHtp.dll",
        _ => "libQnnHtp.so",
    });
    let mut options = vec![("backend_path", backend.display().to_string())];
    if cfg!(not(target_arch = "aarch64")) {
        // Snapdragon 8 Gen 3: the emulator cannot finalize a graph without knowing the part.
        options.push(("soc_model", "60".to_owned()));
    }
    options
}

fn register(environment: &Environment, hardware: Hardware, name: &'static str, path: &PathBuf) -> Result<()> {
    static REGISTERED: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    // ONNX Runtime builds some providers in; their devices are there from the start.
    let known =
        registered.contains(&name) || environment.devices().any(|d| d.ep().is_ok_and(|ep| ep == name));
    if !known {
        environment.register_ep_library(name, path).map_err(|e| {
            // It names the library once more, before what the system says.
            let (said, tells) = (e.to_string(), " with error: ");
            let reason = said.split_once(tells).map_or(said.as_str(), |(_, reason)| reason);
            let problem = format!("{} cannot be loaded: {reason}", path.display());
            Error::unavailable(hardware, problem, device_help(hardware))
        })?;
        registered.push(name);
    }
    Ok(())
}

fn device_help(hardware: Hardware) -> String {
    match hardware {
        Hardware::Cuda => "an NVIDIA GPU with its driver, CUDA 13 and cuDNN 9 on LD_LIBRARY_PATH are needed",
        Hardware::Rocm => "an AMD GPU with its driver, and ROCm 7 with MIGraphX, are needed",
        Hardware::Metal => "a Mac with Apple silicon is needed",
        Hardware::Webgpu => {
            "a Vulkan, Metal or Direct3D 12 driver is needed; for a software one set \
             ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER=1 and VK_ICD_FILENAMES"
        }
        _ => "run `cargo xtask doctor`",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tensor_processor_refuses_what_it_would_round() {
        let of = |hardware, wanted| {
            let provider = Provider { hardware, name: "", device: None, options: vec![] };
            provider.check_precision(wanted).map_err(|error| error.to_string())
        };
        assert_eq!(of(Hardware::Qnn, Hardware::Qnn.default_precision()), Ok(()));
        assert_eq!(of(Hardware::Webgpu, Hardware::Webgpu.default_precision()), Ok(()));
        let refused = of(Hardware::Qnn, Precision::F32).unwrap_err();
        assert!(refused.contains("would compute in f16 where f32 is asked for"), "{refused}");
    }
}
