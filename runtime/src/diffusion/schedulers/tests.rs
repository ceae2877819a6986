use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use super::*;
use crate::Value;
use crate::diffusion::Generator;

const COUNT: usize = 2 * 4 * 4 * 6;

fn goldens() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens/schedulers")
}

fn file(path: &Path) -> Json {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The model of the goldens: 0.3 of the sample and a pattern that the timestep scales.
fn model(sample: &[f32], timestep: f64) -> Vec<f32> {
    let scale = (1.0 + timestep / 1000.0) as f32;
    let pattern = |index: usize| (index % 7) as f32 / 7.0 - 0.4;
    sample.iter().enumerate().map(|(index, x)| 0.3 * x + scale * pattern(index)).collect()
}

#[track_caller]
fn near(got: &[f32], want: &[f32], bar: f32, what: &str) {
    let most = want.iter().fold(1.0_f32, |most, x| most.max(x.abs()));
    let error = got.iter().zip(want).fold(0.0_f32, |error, (a, b)| error.max((a - b).abs()));
    assert!(got.len() == want.len() && error <= bar * most, "{what}: off by {error:e} of {most}");
}

#[test]
fn timesteps_sigmas_and_samples_are_the_references() {
    let mut folders: Vec<_> = fs::read_dir(goldens()).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    assert!(folders.len() >= 50);
    for folder in folders {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let tensors = crate::golden::tensors(&folder.join("io.safetensors")).unwrap();
        let floats = |key: &str| match &tensors[key] {
            Value::F32(array) => array.iter().copied().collect::<Vec<_>>(),
            other => panic!("{name}: {key} is {other:?}"),
        };
        let case = file(&folder.join("case.json"));
        let path = folder.join("scheduler_config.json");
        let mut scheduler = read(&file(&path), &path).unwrap();
        match case["spacing"].as_str() {
            Some("whole") => scheduler.set_sigmas(SigmaSpacing::Whole),
            Some("original") => scheduler.set_sigmas(SigmaSpacing::Original),
            Some("remaining") => scheduler.set_sigmas(SigmaSpacing::Remaining),
            Some(other) => panic!("{name}: {other}"),
            None if case["tokens"].is_null() => {}
            None => scheduler.set_sigmas(SigmaSpacing::Even),
        }
        if let Some(tokens) = case["tokens"].as_u64() {
            scheduler.set_image_tokens(tokens as usize);
        }
        scheduler.set_timesteps(case["steps"].as_u64().unwrap() as usize).unwrap();
        let timesteps: Vec<f32> = scheduler.timesteps().iter().map(|&t| t as f32).collect();
        match name.as_str() {
            // Between two of the training's, by logarithms of single precision.
            "euler-karras" | "heun-karras" | "kdpm2" | "kdpm2-karras" | "lms-karras" => {
                near(&timesteps, &floats("timesteps"), 1e-7, &name);
            }
            _ => assert_eq!(timesteps, floats("timesteps"), "{name}"),
        }
        if tensors.contains_key("sigmas") && !scheduler.sigmas().is_empty() {
            // PyTorch's roots are MKL's, which round the last place otherwise here and there.
            let units = |(a, b): (&f32, &f32)| a.to_bits().abs_diff(b.to_bits());
            let off = scheduler.sigmas().iter().zip(&floats("sigmas")).map(units).max();
            assert!(off <= Some(1), "{name}: sigmas are off by {off:?} units in the last place");
        }
        assert_eq!(scheduler.init_noise_sigma(), case["init_noise_sigma"].as_f64().unwrap() as f32, "{name}");
        let mut generator = Generator::new(case["seed"].as_u64().unwrap());
        let (mut sample, noise) = (generator.randn(COUNT), generator.randn(COUNT));
        let (kept, added) = scheduler.noise_scales(timesteps.len() / 2);
        if tensors.contains_key("noised") {
            near(&combine(&[(kept, &sample), (added, &noise)]), &floats("noised"), 1e-6, &name);
        }
        sample.iter_mut().for_each(|x| *x *= scheduler.init_noise_sigma());
        for index in 0..timesteps.len() {
            let seen = scheduler.scale_model_input(index, &sample);
            let output = model(&seen, scheduler.timesteps()[index]);
            sample = scheduler.step(index, &output, &sample, &mut |count| generator.randn(count));
            near(&sample, &floats(&format!("sample.{index:02}")), 1e-5, &format!("{name}, step {index}"));
        }
    }
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    let problem = |json: Json| read(&json, Path::new("scheduler_config.json")).unwrap_err().to_string();
    for (json, named) in [
        (json!([]), "no JSON object"),
        (json!({"num_train_timesteps": 1000}), "_class_name"),
        (json!({"_class_name": "RePaintScheduler"}), "`RePaintScheduler`"),
        (json!({"_class_name": "DDIMScheduler", "thresholding": true}), "thresholding"),
        (json!({"_class_name": "DDIMScheduler", "eta_noise_seed_delta": 1}), "eta_noise_seed_delta"),
        (json!({"_class_name": "DDIMScheduler", "num_train_timesteps": 0}), "num_train_timesteps"),
        (json!({"_class_name": "EulerDiscreteScheduler", "use_beta_sigmas": true}), "use_beta_sigmas"),
        (json!({"_class_name": "EulerDiscreteScheduler", "prediction_type": "sample"}), "prediction_type"),
        (
            json!({"_class_name": "EulerDiscreteScheduler", "rescale_betas_zero_snr": true}),
            "rescale_betas_zero_snr",
        ),
        (json!({"_class_name": "PNDMScheduler", "timestep_spacing": "even"}), "timestep_spacing"),
        (json!({"_class_name": "DPMSolverMultistepScheduler", "solver_order": 3}), "solver_order"),
        (
            json!({"_class_name": "DPMSolverMultistepScheduler", "algorithm_type": "dpmsolver"}),
            "algorithm_type",
        ),
        (
            json!({"_class_name": "DPMSolverMultistepScheduler", "lambda_min_clipped": -5.1}),
            "lambda_min_clipped",
        ),
    ] {
        let problem = problem(json);
        assert!(problem.contains(named) && problem.contains("help"), "{problem}");
    }
    let infinite =
        json!({"_class_name": "DPMSolverMultistepScheduler", "lambda_min_clipped": "-Infinity", "_name": 1});
    assert!(read(&infinite, Path::new("scheduler_config.json")).is_ok());
}
