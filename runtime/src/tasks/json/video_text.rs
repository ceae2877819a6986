//! Texts about videos: `{"videos": …, "text": …}`, or chats whose messages name videos.

use serde_json::{Value as Json, json};

use super::JsonPipeline;
use super::generation::{chats, options};
use super::image_text::{named, pictured};
use super::images::{images, paths};
use super::parameters::Parameters;
use super::shapes::{start_of, to_json};
use crate::any_model::AnyModel;
use crate::image::{FrameSampling, Image};
use crate::tasks::{VideoTextOptions, VideoTextToText};
use crate::text::chat::ChatOptions;
use crate::video::Video;
use crate::{Error, Result};

impl<A: AnyModel> JsonPipeline for VideoTextToText<A> {
    fn run_json(&self, inputs: &Json, parameters: &Json) -> Result<Json> {
        let parameters = Parameters::new(parameters)?;
        let mut generation = options(&parameters)?;
        let inner = parameters.inner("generate_kwargs")?;
        generation.generation = generation.generation.or(inner.generation()?);
        inner.finish()?;
        let full = parameters.get("return_full_text")?.unwrap_or(true);
        let open: Option<bool> = parameters.get("continue_final_message")?;
        // The names of the reference's `videos_kwargs`.
        let metadata = parameters.inner("video_metadata")?;
        let frames = FrameSampling {
            num_frames: parameters.get("num_frames")?,
            fps: parameters.get("fps")?,
            video_fps: metadata.get("fps")?,
        };
        metadata.finish()?;
        parameters.finish()?;
        let options = VideoTextOptions { frames, generation };
        let answer =
            |input: &Json, generated: Json| json!({ "input_text": input, "generated_text": generated });
        let message = if inputs[0].is_array() { &inputs[0][0] } else { &inputs[0] };
        let chats = if message["role"].is_string() { chats(inputs)? } else { None };
        if let Some(chats) = chats {
            let mut all = vec![];
            for messages in &chats {
                let mut chat = ChatOptions::answering(messages);
                if let Some(open) = open {
                    (chat.continue_final_message, chat.add_generation_prompt) = (open, !open);
                }
                let videos = opened(named(messages, "video")?)?;
                let input = to_json(messages)?;
                for answered in self.chat_with(&videos, &pictured(messages)?, messages, &chat, &options)? {
                    let generated =
                        if full { to_json(&answered.generated_text)? } else { answered.reply.into() };
                    all.push(answer(&input, generated));
                }
            }
            return Ok(Json::Array(all));
        }
        let one = |input: &Json| -> Result<Vec<Json>> {
            let (videos, images, text) = asked(input)?;
            let generated = self.run_with(&videos, &images, text, &options)?;
            let shown = |text: &crate::tasks::GeneratedText| {
                if full { text.generated_text.clone() } else { text.new_text().to_owned() }
            };
            Ok(generated.iter().map(|generated| answer(&text.into(), shown(generated).into())).collect())
        };
        match inputs {
            Json::Array(list) => list.iter().map(|input| Ok(json!(one(input)?))).collect(),
            input => Ok(json!(one(input)?)),
        }
    }
}

/// The videos, the images and the text of one input.
fn asked(input: &Json) -> Result<(Vec<Video>, Vec<Image>, &str)> {
    if let Some(text) = input.as_str() {
        return Ok((vec![], vec![], text));
    }
    let Some(text) = input["text"].as_str() else {
        let problem = format!("{} is no text with videos", start_of(input));
        let help = "give {\"videos\": \"path\", \"text\": \"…\"}, a chat, or a list of those";
        return Err(Error::input("inputs", problem, help));
    };
    let given = |names: [&str; 2]| names.iter().find_map(|name| input.get(*name));
    let videos = given(["videos", "video"]).map(paths).transpose()?.unwrap_or_default();
    let shown = given(["images", "image"]).map(images).transpose()?.unwrap_or_default();
    Ok((opened(videos)?, shown, text))
}

fn opened(paths: Vec<&str>) -> Result<Vec<Video>> {
    paths.into_iter().map(Video::open).collect()
}
