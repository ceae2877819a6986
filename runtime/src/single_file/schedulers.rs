//! `scheduler_config.json` as each kind of file is published with.

use serde_json::{Value as Json, json};

use super::layout::Layout;

pub(super) fn config(layout: Layout) -> Json {
    let mut config = match layout {
        Layout::V1 | Layout::Inpainting => json!({"_class_name": "PNDMScheduler", "skip_prk_steps": true}),
        // The first of Stable Diffusion 2 that is not for inpainting predicts noise; nothing in a file says so.
        Layout::V2 => {
            json!({"_class_name": "DDIMScheduler", "prediction_type": "v_prediction", "clip_sample": false})
        }
        Layout::InpaintingV2 => json!({"_class_name": "DDIMScheduler", "clip_sample": false}),
        Layout::Xl | Layout::XlInpainting => {
            json!({"_class_name": "EulerDiscreteScheduler", "timestep_spacing": "leading"})
        }
        Layout::Sd3 | Layout::Sd35Medium | Layout::Sd35Large | Layout::ZImage => {
            return json!({"_class_name": "FlowMatchEulerDiscreteScheduler", "num_train_timesteps": 1000, "shift": 3.0});
        }
        Layout::FluxSchnell => {
            return json!({"_class_name": "FlowMatchEulerDiscreteScheduler", "num_train_timesteps": 1000, "shift": 1.0});
        }
        Layout::FluxDev => {
            return json!({
                "_class_name": "FlowMatchEulerDiscreteScheduler", "num_train_timesteps": 1000, "shift": 3.0,
                "use_dynamic_shifting": true, "base_shift": 0.5, "max_shift": 1.15,
                "base_image_seq_len": 256, "max_image_seq_len": 4096,
            });
        }
        Layout::QwenImage => {
            return json!({
                "_class_name": "FlowMatchEulerDiscreteScheduler", "num_train_timesteps": 1000, "shift": 1.0,
                "use_dynamic_shifting": true, "base_shift": 0.5, "max_shift": 0.9, "shift_terminal": 0.02,
                "base_image_seq_len": 256, "max_image_seq_len": 8192, "time_shift_type": "exponential",
            });
        }
    };
    config["num_train_timesteps"] = 1000.into();
    config["beta_start"] = 0.00085.into();
    config["beta_end"] = 0.012.into();
    config["beta_schedule"] = "scaled_linear".into();
    config["steps_offset"] = 1.into();
    if !matches!(layout, Layout::Xl | Layout::XlInpainting) {
        config["set_alpha_to_one"] = false.into();
    }
    config
}
