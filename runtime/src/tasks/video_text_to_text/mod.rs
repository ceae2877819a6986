//! Texts about videos: prompts and chats with videos in them, and images, that a model continues.
//!
//! Reference: `AnyToAnyPipeline` on texts with videos; `Qwen2VLProcessor`, `Qwen3VLProcessor`,
//! `Ernie4_5_VLMoeProcessor`.

mod prompt;

use super::builder::opened;
use super::text_generation::answered;
use super::{GeneratedChat, GeneratedText, GenerationOptions, ImageTextToText, Pipeline, Task};
use crate::Result;
use crate::any_model::AnyModel;
use crate::image::{FrameSampling, Image, VideoProcessor};
use crate::text::chat::{ChatOptions, Message};
use crate::video::Video;
use prompt::VideoTokens;

/// Continues texts and chats with videos in them.
///
/// As the reference's pipeline, it gives 256 tokens at most where neither the caller nor the checkpoint says otherwise.
///
/// ```no_run
/// # fn example<A: weft::Architecture>() -> weft::Result<()> {
/// use weft::tasks::VideoTextToText;
/// use weft::video::Video;
///
/// let model = VideoTextToText::<A>::open("Qwen/Qwen2-VL-2B-Instruct")?.load()?;
/// let clip = Video::open("clip.gif")?;
/// let text = "<|vision_start|><|video_pad|><|vision_end|>What happens?";
/// let answers = model.run(&[clip], text)?;
/// println!("{}", answers[0].new_text());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct VideoTextToText<A> {
    images: ImageTextToText<A>,
    videos: VideoProcessor,
    tokens: VideoTokens,
}

/// Which frames are looked at, and how a text is continued.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VideoTextOptions {
    /// Which frames of each video are looked at.
    pub frames: FrameSampling,
    /// How the text is encoded and continued.
    pub generation: GenerationOptions,
}

impl<A: AnyModel> Pipeline<A> for VideoTextToText<A> {
    const TASK: Task = Task::VideoTextToText;

    fn from_model(model: A) -> Result<Self> {
        let images = ImageTextToText::from_model(model)?;
        let checkpoint = images.text.model.checkpoint();
        let videos = VideoProcessor::from_checkpoint(checkpoint)?;
        let tokens = VideoTokens::read(checkpoint, &images.text.tokenizer, &videos)?;
        Ok(Self { images, videos, tokens })
    }
}

opened!(VideoTextToText: images.text.model);

impl<A: AnyModel> VideoTextToText<A> {
    /// The token that stands for a video in a text, such as `<|video_pad|>`.
    pub fn video_token(&self) -> &str {
        &self.tokens.video
    }

    /// Continues a text in which the video token stands for each video.
    ///
    /// # Errors
    /// When there are more or fewer of them than videos, the text is longer than the model's positions, or the model
    /// fails.
    pub fn run(&self, videos: &[Video], text: &str) -> Result<Vec<GeneratedText>> {
        self.run_with(videos, &[], text, &VideoTextOptions::default())
    }

    /// The same with other than the default options, and with images in the places of the image token; as many answers as
    /// `num_return_sequences` says.
    ///
    /// # Errors
    /// As [`VideoTextToText::run`], and when options contradict each other.
    pub fn run_with(
        &self,
        videos: &[Video],
        images: &[Image],
        text: &str,
        options: &VideoTextOptions,
    ) -> Result<Vec<GeneratedText>> {
        let special = options.generation.add_special_tokens;
        let news = self.generate(videos, images, text, options, special)?;
        let full = |new: String| GeneratedText { generated_text: format!("{text}{new}"), start: text.len() };
        Ok(news.into_iter().map(full).collect())
    }

    /// Answers a chat whose messages have videos among their parts: `{"type": "video"}`.
    ///
    /// # Errors
    /// As [`VideoTextToText::run`], and when the checkpoint has no chat template or it refuses the chat.
    pub fn chat(&self, videos: &[Video], messages: &[Message]) -> Result<Vec<GeneratedChat>> {
        self.chat_with(videos, &[], messages, &ChatOptions::answering(messages), &VideoTextOptions::default())
    }

    /// The same with other than the default options, and with images.
    ///
    /// # Errors
    /// As [`VideoTextToText::chat`].
    pub fn chat_with(
        &self,
        videos: &[Video],
        images: &[Image],
        messages: &[Message],
        chat: &ChatOptions,
        options: &VideoTextOptions,
    ) -> Result<Vec<GeneratedChat>> {
        let (prompt, begun) = self.images.rendered(messages, chat)?;
        let replies = self.generate(videos, images, &prompt, options, !begun)?;
        Ok(replies.into_iter().map(|reply| answered(messages, chat, reply)).collect())
    }

    fn generate(
        &self,
        videos: &[Video],
        images: &[Image],
        text: &str,
        options: &VideoTextOptions,
        special: bool,
    ) -> Result<Vec<String>> {
        let of_videos = videos.iter().map(|video| self.videos.process(video.frames(), &options.frames));
        let of_videos = of_videos.collect::<Result<Vec<_>>>()?;
        let of_images = images.iter().map(|image| self.images.processor.process(std::slice::from_ref(image)));
        let of_images = of_images.collect::<Result<Vec<_>>>()?;
        let (text_of_all, processed) = self.tokens.expand(text, of_videos, of_images, &self.videos)?;
        let prompt = self.images.prompt(text_of_all);
        self.images.write(processed, &prompt, text, &options.generation, special)
    }
}
