//! What each task takes and gives in a page, in terms of the runtime's types.

/// One task.
pub struct Row {
    pub task: &'static str,
    /// The pipeline's type in the runtime.
    pub pipeline: &'static str,
    /// One input and its answer; a list of inputs is answered by a list.
    pub input: &'static str,
    pub answer: &'static str,
    /// The answer to a list, where it is another.
    pub answers: Option<&'static str>,
    /// Parameters that must be given.
    pub required: &'static [&'static str],
    /// Whether text is told as it is generated.
    pub streams: bool,
}

const fn row(task: &'static str, pipeline: &'static str, input: &'static str, answer: &'static str) -> Row {
    Row { task, pipeline, input, answer, answers: None, required: &[], streams: false }
}

const LABELS: &[&str] = &["candidate_labels"];

/// All tasks that have types.
pub const ROWS: &[Row] = &[
    row("feature-extraction", "FeatureExtraction", "string", "number[][][]"),
    row("sentence-embedding", "SentenceEmbedding", "string", "number[]"),
    Row {
        answers: Some("Candidate[] | Candidate[][] | (Candidate[] | Candidate[][])[]"),
        ..row("fill-mask", "FillMask", "string", "Candidate[] | Candidate[][]")
    },
    Row {
        answers: Some("Label[] | Label[][]"),
        ..row("text-classification", "TextClassification", "string | TextPair", "Label | Label[]")
    },
    Row {
        required: LABELS,
        ..row("zero-shot-classification", "ZeroShotClassification", "string", "ZeroShot")
    },
    row("token-classification", "TokenClassification", "string", "Entity[]"),
    Row {
        answers: Some("Answer | Answer[] | (Answer | Answer[])[]"),
        ..row("question-answering", "QuestionAnswering", "QuestionContext", "Answer | Answer[]")
    },
    row("document-question-answering", "DocumentQuestionAnswering", "QuestionPage", "DocumentAnswer[]"),
    row("time-series-forecasting", "TimeSeriesForecasting", "Series", "Forecast"),
    Row { streams: true, ..row("text-generation", "TextGeneration", "string", "GeneratedText[]") },
    row("text2text-generation", "Text2TextGeneration", "string", "Rewritten[]"),
    row("summarization", "Summarization", "string", "Summary[]"),
    row("translation", "Translation", "string", "Translated[]"),
    row("image-classification", "ImageClassification", "ImageInput", "Label[]"),
    row("image-feature-extraction", "ImageFeatureExtraction", "ImageInput", "number[][][] | number[][]"),
    row("object-detection", "ObjectDetection", "ImageInput", "Detection[]"),
    row("image-segmentation", "ImageSegmentation", "ImageInput", "Segment[]"),
    row("mask-generation", "MaskGeneration", "ImageInput", "GeneratedMask[]"),
    row("depth-estimation", "DepthEstimation", "ImageInput", "Depth"),
    row("pose-estimation", "PoseEstimation", "ImageInput", "Pose[]"),
    row("text-detection", "TextDetection", "ImageInput", "DetectedText[]"),
    row("text-recognition", "TextRecognition", "ImageInput", "RecognizedText"),
    row("image-text-to-text", "ImageTextToText", "ImagesText", "AnsweredText[]"),
    row("video-text-to-text", "VideoTextToText", "VideosText", "AnsweredText[]"),
    row("image-to-text", "ImageToText", "ImageInput", "Caption[]"),
    row("image-text-matching", "ImageTextMatching", "ImageTexts", "TextMatch[]"),
    row("visual-question-answering", "VisualQuestionAnswering", "QuestionImage", "VisualAnswer[]"),
    Row {
        required: LABELS,
        ..row("zero-shot-image-classification", "ZeroShotImageClassification", "ImageInput", "Label[]")
    },
    Row {
        required: LABELS,
        ..row("zero-shot-object-detection", "ZeroShotObjectDetection", "ImageInput", "Detection[]")
    },
    row("video-classification", "VideoClassification", "VideoInput", "Label[]"),
    Row {
        required: &["prompts"],
        ..row("object-tracking", "ObjectTracking", "VideoInput", "TrackedFrame[]")
    },
    Row {
        required: LABELS,
        ..row("zero-shot-object-tracking", "ZeroShotObjectTracking", "VideoInput", "ConceptFrame[]")
    },
    Row {
        required: LABELS,
        ..row("zero-shot-video-classification", "ZeroShotVideoClassification", "VideoInput", "Label[]")
    },
    row("audio-classification", "AudioClassification", "AudioInput", "Label[]"),
    Row {
        required: LABELS,
        ..row("zero-shot-audio-classification", "ZeroShotAudioClassification", "AudioInput", "Label[]")
    },
    row("automatic-speech-recognition", "SpeechRecognition", "AudioInput", "Transcript"),
    row("text-to-audio", "TextToAudio", "string", "Speech"),
];

/// What a page gives in place of files, and answers that pipelines put together themselves.
pub const BESIDE: &str = "\
/** An image: a URL, a file, or what a page draws on. */
export type ImageInput =
  | string
  | Blob
  | ImageData
  | ImageBitmap
  | OffscreenCanvas
  | HTMLCanvasElement
  | HTMLImageElement
  | HTMLVideoElement
  | VideoFrame;

/** A video: the URL or the file of an animated GIF or WebP image, or frames, in order. */
export type VideoInput = string | Blob | { frames: ImageInput[] };

/** Audio: a URL, a file, or samples; a `Float32Array` alone has 16,000 of them a second. */
export type AudioInput =
  | string
  | Blob
  | AudioBuffer
  | Float32Array
  | { array: Float32Array | number[]; sampling_rate: number };

/** Two texts that belong together. */
export interface TextPair {
  text: string;
  text_pair?: string;
}

/** A question, and the text that answers it. */
export interface QuestionContext {
  question: string;
  context: string;
}

/** A question about an image. */
export interface QuestionImage {
  question: string;
  image: ImageInput;
}

/** A question about a page, whose words are given with their places, left, upper, right and lower, of 1000. */
export interface QuestionPage {
  question: string;
  word_boxes: [string, [number, number, number, number]][];
}

/** A text about images. */
export interface ImagesText {
  text: string;
  images: ImageInput | ImageInput[];
}

/** A text about videos. */
export interface VideosText {
  text: string;
  videos: VideoInput | VideoInput[];
  images?: ImageInput | ImageInput[];
}

/** An image, and what texts say of it. */
export interface ImageTexts {
  image: ImageInput;
  text: string | string[];
}

/** Values of one channel, or of several at each time; null where one is missing. */
export type Series = (number | null)[] | (number | null)[][];

/** A message of a chat; its content is a text, or parts: `{ type: 'image', image: canvas }`. */
export interface Message {
  role: string;
  content: string | ContentPart[];
}

/** A part of a message. */
export type ContentPart =
  | { type: 'text'; text: string }
  | { type: 'image'; image: ImageInput }
  | { type: 'video'; video: VideoInput }
  | { type: 'audio'; audio: AudioInput };

/** Labels of the caller's own, best first, with their probabilities. */
export interface ZeroShot {
  sequence: string;
  labels: string[];
  scores: number[];
}

/** A labelled part of a text: a token, or with `entity_group` a group of them. */
export interface Entity {
  entity?: string;
  entity_group?: string;
  score: number;
  index?: number;
  word: string;
  start: number;
  end: number;
}

/** A binary mask as COCO's run-length encoding: down one column after the other, outside of the mask first. */
export interface Mask {
  size: [number, number];
  counts: number[];
}

/** What stands for objects in a frame of a video: of each points with labels, a box, or a mask. */
export interface TrackingInputs {
  frame_idx: number;
  obj_ids: number | number[];
  input_points?: [number, number][][];
  input_labels?: number[][];
  input_boxes?: [number, number, number, number][];
  input_masks?: Mask[];
  clear_old_inputs?: boolean;
}

/** How far away each pixel is, `[height, width]`. */
export interface Depth {
  predicted_depth: number[][];
}

/** A text that answers one with images. */
export interface AnsweredText {
  input_text: string | Message[];
  generated_text: string | Message[];
}

/** What follows a series, by its mean and by quantiles. */
export interface Forecast {
  mean: number[] | number[][];
  quantiles?: Record<string, number[] | number[][]>;
}

/** Samples; of a model without a vocoder, frames of a spectrogram. */
export type Speech = { audio: number[]; sampling_rate: number } | { spectrogram: number[][] };

/** Limits of the texts that a model is given. */
export interface TokenizerParameters {
  truncation?: boolean | 'longest_first' | 'do_not_truncate';
  padding?: boolean | 'longest' | 'max_length' | 'do_not_pad';
  max_length?: number;
}

/** How many texts are computed together, and whether empty ones are answered. */
export interface TextParameters {
  batch_size?: number;
  allow_empty?: boolean;
}

/** When beam search ends. */
export type EarlyStopping = boolean | 'never';
";

/// The names that are defined there.
pub fn beside() -> impl Iterator<Item = &'static str> {
    let lines = BESIDE.lines().filter_map(|line| {
        line.strip_prefix("export interface ").or_else(|| line.strip_prefix("export type "))
    });
    lines.filter_map(|rest| rest.split([' ', '{', '=']).next())
}
