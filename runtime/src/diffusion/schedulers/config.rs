//! `scheduler_config.json`: the fields of all schedulers, each of which reads its own.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

use super::combine;
use crate::{Error, Result};

/// What the model predicts (`prediction_type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PredictionType {
    /// The noise.
    #[default]
    Epsilon,
    /// The sample without noise.
    Sample,
    /// The velocity (arXiv:2202.00512).
    VPrediction,
    /// The velocity of flow matching, from the sample to the noise.
    FlowPrediction,
}

/// How timesteps are spaced (`timestep_spacing`; arXiv:2305.08891, table 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimestepSpacing {
    /// From the last to the first, both among them.
    Linspace,
    /// Multiples of a whole step, from 0.
    Leading,
    /// Multiples of a step, from the last.
    Trailing,
}

/// How betas grow (`beta_schedule`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BetaSchedule {
    /// Linearly.
    #[default]
    Linear,
    /// Linearly in their roots.
    ScaledLinear,
    /// By a cosine (arXiv:2102.09672).
    SquaredcosCapV2,
}

/// The algorithm of DPM-Solver (`algorithm_type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum AlgorithmType {
    /// DPM-Solver++ (arXiv:2211.01095).
    #[default]
    #[serde(rename = "dpmsolver++", alias = "deis")]
    DpmSolverPlusPlus,
    /// DPM-Solver++ of the stochastic equation.
    #[serde(rename = "sde-dpmsolver++")]
    SdeDpmSolverPlusPlus,
}

/// How a multistep solver estimates the slope (`solver_type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SolverType {
    /// By the midpoint.
    #[default]
    #[serde(alias = "logrho", alias = "bh2")]
    Midpoint,
    /// By Heun's method.
    Heun,
    /// As the midpoint's, but of UniPC, which then divides by the step itself (its section 3.3).
    Bh1,
}

/// The last sigma (`final_sigmas_type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinalSigmas {
    /// None.
    #[default]
    Zero,
    /// That of the first timestep.
    SigmaMin,
}

/// `scheduler_config.json`; where it has not a field, a scheduler takes its own default, and a field of another scheduler is
/// passed over, as the reference does.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields of the reference's schedulers, by their names")]
pub struct SchedulerConfig {
    pub num_train_timesteps: Option<usize>,
    pub beta_start: Option<f64>,
    pub beta_end: Option<f64>,
    pub beta_schedule: BetaSchedule,
    pub trained_betas: Option<Vec<f32>>,
    pub rescale_betas_zero_snr: bool,
    pub prediction_type: PredictionType,
    pub timestep_spacing: Option<TimestepSpacing>,
    pub steps_offset: usize,
    pub set_alpha_to_one: Option<bool>,
    pub skip_prk_steps: bool,
    pub clip_sample: Option<bool>,
    pub clip_sample_range: Option<f64>,
    pub use_karras_sigmas: Option<bool>,
    pub sigma_min: Option<f64>,
    pub sigma_max: Option<f64>,
    pub final_sigmas_type: FinalSigmas,
    pub solver_order: Option<usize>,
    pub algorithm_type: AlgorithmType,
    pub solver_type: SolverType,
    pub lower_order_final: Option<bool>,
    pub euler_at_final: bool,
    pub original_inference_steps: Option<usize>,
    pub timestep_scaling: Option<f64>,
    pub predict_x0: Option<bool>,
    pub disable_corrector: Vec<usize>,
    pub shift: Option<f64>,
    pub use_dynamic_shifting: Option<bool>,
    pub base_shift: Option<f64>,
    pub max_shift: Option<f64>,
    pub base_image_seq_len: Option<usize>,
    pub max_image_seq_len: Option<usize>,
    pub time_shift_type: Option<String>,
    pub shift_terminal: Option<f64>,
    pub invert_sigmas: bool,
    pub stochastic_sampling: bool,
    pub sigma_data: Option<f64>,
    // What has one supported value is refused otherwise, in `check`.
    pub(super) thresholding: bool,
    pub(super) interpolation_type: Option<String>,
    pub(super) timestep_type: Option<String>,
    pub(super) use_exponential_sigmas: Option<bool>,
    pub(super) use_beta_sigmas: Option<bool>,
    pub(super) use_lu_lambdas: Option<bool>,
    pub(super) use_flow_sigmas: Option<bool>,
    pub(super) variance_type: Option<String>,
    pub(super) solver_p: Option<Json>,
    pub(super) lambda_min_clipped: Option<Json>,
    // What the fields above leave without effect.
    pub(super) dynamic_thresholding_ratio: Option<f64>,
    pub(super) sample_max_value: Option<f64>,
    pub(super) flow_shift: Option<f64>,
    #[serde(skip)]
    pub(super) path: PathBuf,
}

impl SchedulerConfig {
    /// The file as it is, with the class that it names.
    ///
    /// # Errors
    /// When a field is unknown, has another type, or a value that no scheduler here supports.
    pub fn read(json: &Json, path: &Path) -> Result<(String, Self)> {
        let help = "compare the file with the published one; schedulers that are not here are refused";
        let Some(fields) = json.as_object() else {
            return Err(Error::config(path, "is no JSON object", help));
        };
        let class = fields.get("_class_name").and_then(Json::as_str);
        let class = class.ok_or_else(|| Error::config(path, "has no `_class_name`", help))?.to_owned();
        // `_diffusers_version` and such say nothing of the numbers; nulls are defaults.
        let own = fields.iter().filter(|(name, value)| !name.starts_with('_') && !value.is_null());
        let mut own: Map<String, Json> = own.map(|(name, value)| (name.clone(), value.clone())).collect();
        let defaults: &[(&str, Json)] = match class.as_str() {
            "LCMScheduler" | "TCDScheduler" => &[
                ("beta_start", json!(0.00085)),
                ("beta_end", json!(0.012)),
                ("beta_schedule", json!("scaled_linear")),
            ],
            "HeunDiscreteScheduler" | "KDPM2DiscreteScheduler" => {
                &[("beta_start", json!(0.00085)), ("beta_end", json!(0.012))]
            }
            _ => &[],
        };
        for (name, default) in defaults {
            own.entry(*name).or_insert_with(|| default.clone());
        }
        if class == "SCMScheduler" && own.get("prediction_type").is_some_and(|kind| kind == "trigflow") {
            own.remove("prediction_type");
        }
        let config: Self = serde_path_to_error::deserialize(&Json::Object(own))
            .map_err(|e| Error::config(path, format!("{}: {}", e.path(), e.inner()), help))?;
        let config = Self { path: path.to_owned(), ..config };
        config.check(&class)?;
        Ok((class, config))
    }

    fn check(&self, class: &str) -> Result<()> {
        let flow = class == "FlowMatchEulerDiscreteScheduler";
        let set = |flag: Option<bool>| flag == Some(true);
        let other = |text: &Option<String>, known: &str| text.as_ref().is_some_and(|text| text != known);
        // Flow matching by a solver of noise: what is predicted and the sigmas belong together.
        let solved = class == "DPMSolverMultistepScheduler" && set(self.use_flow_sigmas);
        let predicts_flow = self.prediction_type == PredictionType::FlowPrediction;
        let minus_infinity = |json: &Json| {
            json.as_str() == Some("-Infinity")
                || json["__float__"] == "-Infinity"
                || json.as_f64() == Some(f64::MIN)
        };
        let refused = [
            ("thresholding", self.thresholding),
            ("interpolation_type", other(&self.interpolation_type, "linear")),
            ("timestep_type", other(&self.timestep_type, "discrete")),
            ("use_exponential_sigmas", set(self.use_exponential_sigmas)),
            ("use_beta_sigmas", set(self.use_beta_sigmas)),
            ("use_lu_lambdas", set(self.use_lu_lambdas)),
            ("use_flow_sigmas", set(self.use_flow_sigmas) && !(solved && predicts_flow)),
            ("prediction_type", predicts_flow && !solved),
            ("use_dynamic_shifting", set(self.use_dynamic_shifting) && !flow),
            ("variance_type", self.variance_type.as_ref().is_some_and(|kind| kind.starts_with("learned"))),
            (
                "lambda_min_clipped",
                self.lambda_min_clipped.as_ref().is_some_and(|json| !minus_infinity(json)),
            ),
        ];
        match refused.iter().find(|(_, refused)| *refused) {
            Some((name, _)) => Err(self.refuse(name, "is not supported")),
            None if self.steps() == 0 => Err(self.refuse("num_train_timesteps", "must be at least 1")),
            None if self.steps() > 1_000_000 => {
                Err(self.refuse("num_train_timesteps", "is more than a million"))
            }
            None => Ok(()),
        }
    }

    /// How many timesteps the model was trained with.
    pub fn steps(&self) -> usize {
        self.num_train_timesteps.unwrap_or(1000)
    }

    /// The kind of variance that DDPM's noise has.
    pub(super) fn variance_type(&self) -> &str {
        self.variance_type.as_deref().unwrap_or("fixed_small")
    }

    /// The sample without noise that an output stands for, where sample and noise have these shares.
    pub(super) fn original(&self, [alpha, noise]: [f32; 2], output: &[f32], sample: &[f32]) -> Vec<f32> {
        match self.prediction_type {
            PredictionType::Epsilon => combine(&[(1.0 / alpha, sample), (-noise / alpha, output)]),
            PredictionType::Sample => output.to_vec(),
            PredictionType::VPrediction => combine(&[(alpha, sample), (-noise, output)]),
            PredictionType::FlowPrediction => combine(&[(1.0, sample), (-noise, output)]),
        }
    }

    /// The noise that an output stands for, where sample and noise have these shares.
    pub(super) fn epsilon(&self, [alpha, noise]: [f32; 2], output: &[f32], sample: &[f32]) -> Vec<f32> {
        match self.prediction_type {
            PredictionType::Epsilon => output.to_vec(),
            PredictionType::Sample => combine(&[(1.0 / noise, sample), (-alpha / noise, output)]),
            PredictionType::VPrediction => combine(&[(alpha, output), (noise, sample)]),
            PredictionType::FlowPrediction => combine(&[(1.0, sample), (alpha, output)]),
        }
    }

    /// The sample without noise that an output stands for, where the sample has all of itself and `sigma` noise.
    pub(super) fn original_of_sigma(&self, sigma: f32, output: &[f32], sample: &[f32]) -> Vec<f32> {
        let square = sigma * sigma + 1.0;
        match self.prediction_type {
            PredictionType::Epsilon | PredictionType::FlowPrediction => {
                combine(&[(1.0, sample), (-sigma, output)])
            }
            PredictionType::Sample => output.to_vec(),
            PredictionType::VPrediction => {
                combine(&[(-sigma / square.sqrt(), output), (1.0 / square, sample)])
            }
        }
    }

    /// An error about a field.
    pub(super) fn refuse(&self, field: &str, problem: &str) -> Error {
        let help = "choose another scheduler, or a value of the field that is supported";
        Error::config(&self.path, format!("{field}: {problem}"), help)
    }
}
