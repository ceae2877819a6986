//! Against `BertTokenizer` of transformers 5.23.0 with the same vocabulary.

use ndarray::array;

use super::*;

const VOCAB: [&str; 22] = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "quick", "brown", "fox", "##es", "jump", "##ed",
    "over", "lazy", "dog", ".", ",", "ca", "##fe", "cafe", "你", "好",
];

/// The tokenizer of a folder that holds these files.
fn tokenizer(files: &[(&str, String)]) -> Result<Tokenizer> {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    Tokenizer::from_checkpoint(&Checkpoint::open(folder.path().to_str().unwrap())?)
}

fn vocab() -> (&'static str, String) {
    ("vocab.txt", VOCAB.join("\n"))
}

fn with_config(config: &str) -> Tokenizer {
    tokenizer(&[vocab(), ("tokenizer_config.json", config.into())]).unwrap()
}

fn plain() -> Tokenizer {
    with_config(r#"{"model_max_length": 512}"#)
}

fn rows(tokenizer: &Tokenizer, text: Text<'_>, options: EncodeOptions) -> Vec<Encoding> {
    tokenizer.encode(&[text], &options).unwrap()
}

fn ids(rows: &[Encoding]) -> Vec<Vec<i64>> {
    rows.iter().map(|row| row.ids.clone()).collect()
}

#[test]
fn a_damaged_file_is_refused_where_the_library_would_panic() {
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens/generation/word-piece/tokenizer.json");
    let text = std::fs::read_to_string(source).unwrap();
    for (from, to) in
        [("\"decoder\":", "\"decoder\": {\"type\" \"x\"}, \"other\":"), ("\"WordPiece\"", "\"Word")]
    {
        let folder = tempfile::tempdir().unwrap();
        let spoilt = text.replace(from, to);
        assert_ne!(spoilt, text);
        std::fs::write(folder.path().join("tokenizer.json"), spoilt).unwrap();
        let checkpoint = Checkpoint::open(folder.path().to_str().unwrap()).unwrap();
        let said = Tokenizer::from_checkpoint(&checkpoint).unwrap_err().to_string();
        assert!(
            said.contains("tokenizer.json: not a tokenizer") && said.contains("fetch it again"),
            "{said}"
        );
    }
}

#[test]
fn encodes_and_decodes_as_the_reference() {
    let t = plain();
    let row = &rows(&t, "The quick brown foxes jumped.".into(), EncodeOptions::default())[0];
    assert_eq!(row.ids, [2, 5, 6, 7, 8, 9, 10, 11, 15, 3]);
    assert_eq!(row.offsets[4..7], [(16, 19), (19, 21), (22, 26)]);
    assert_eq!(row.words[3..6], [Some(2), Some(3), Some(3)]);
    assert_eq!(row.special.iter().filter(|s| **s).count(), 2);
    assert_eq!(t.decode(&row.ids, false).unwrap(), "[CLS] the quick brown foxes jumped. [SEP]");
    assert_eq!(t.decode(&row.ids, true).unwrap(), "the quick brown foxes jumped.");
    assert_eq!(t.tokens_to_string(&["jump".into(), "##ed".into(), ".".into()]).unwrap(), "jumped.");
}

#[test]
fn offsets_count_characters() {
    let t = plain();
    let row = &rows(&t, "Café 你好, zzz dog".into(), EncodeOptions::default())[0];
    assert_eq!(row.ids, [2, 19, 20, 21, 16, 1, 14, 3]);
    assert_eq!(row.offsets, [(0, 0), (0, 4), (5, 6), (6, 7), (7, 8), (9, 12), (13, 16), (0, 0)]);
    let row = &rows(&t, "[MASK] dog😀 fox".into(), EncodeOptions::default())[0];
    assert_eq!(row.ids, [2, 4, 1, 8, 3]);
    assert_eq!(row.offsets[3], (12, 15));
    assert_eq!(t.decode(&row.ids, true).unwrap(), "fox");
}

#[test]
fn windows_of_a_long_second_text_are_all_there() {
    let options = EncodeOptions {
        truncation: Truncation::OnlySecond,
        max_length: Some(10),
        stride: 2,
        overflow: true,
        ..EncodeOptions::default()
    };
    let t = plain();
    let windows = rows(&t, ("the quick fox", "the lazy dog jumped over the fox").into(), options);
    assert_eq!(
        ids(&windows),
        [
            [2, 5, 6, 8, 3, 5, 13, 14, 10, 3],
            [2, 5, 6, 8, 3, 14, 10, 11, 12, 3],
            [2, 5, 6, 8, 3, 11, 12, 5, 8, 3],
        ]
    );
    assert_eq!(windows[1].type_ids, [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]);
    assert_eq!(windows[1].offsets[5..9], [(9, 12), (13, 17), (17, 19), (20, 24)]);
    assert_eq!(windows[1].sequences[3..7], [Some(0), None, Some(1), Some(1)]);
    assert_eq!(windows[1].word_span(3, 1), Some((13, 19)));
}

#[test]
fn windows_of_one_long_text_are_all_there() {
    let options = EncodeOptions { stride: 2, overflow: true, ..EncodeOptions::truncated(Some(6)) };
    let windows = rows(&plain(), "the quick brown fox jumped over the lazy dog".into(), options);
    let want = [[2, 5, 6, 7, 8, 3], [2, 7, 8, 10, 11, 3], [2, 10, 11, 12, 5, 3], [2, 12, 5, 13, 14, 3]];
    assert_eq!(ids(&windows), want);
}

#[test]
fn truncates_pairs_by_each_strategy() {
    let pair = ("the quick brown fox jumped over", "the lazy dog jumped over the fox").into();
    let cases = [
        (Truncation::LongestFirst, vec![2, 5, 6, 7, 8, 10, 3, 5, 13, 14, 10, 11, 3]),
        (Truncation::OnlyFirst, vec![2, 5, 6, 3, 5, 13, 14, 10, 11, 12, 5, 8, 3]),
        (Truncation::OnlySecond, vec![2, 5, 6, 7, 8, 10, 11, 12, 3, 5, 13, 14, 3]),
    ];
    for (truncation, want) in cases {
        let options = EncodeOptions { truncation, max_length: Some(13), ..EncodeOptions::default() };
        assert_eq!(ids(&rows(&plain(), pair, options)), [want], "{truncation:?}");
    }
}

#[test]
fn sides_come_from_the_configuration() {
    let t = with_config(r#"{"padding_side": "left", "truncation_side": "left"}"#);
    let long =
        rows(&t, "the quick brown fox jumped over the lazy dog".into(), EncodeOptions::truncated(Some(6)));
    assert_eq!(ids(&long), [[2, 12, 5, 13, 14, 3]]);
    let two = t.encode(&["the".into(), "the fox".into()], &EncodeOptions::default()).unwrap();
    let batch = t.pad(&two, &Padding { multiple_of: Some(3), ..Padding::default() }).unwrap();
    assert_eq!(batch.input_ids, array![[0, 0, 0, 2, 5, 3], [0, 0, 2, 5, 8, 3]]);
    assert_eq!(batch.attention_mask, array![[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1]]);
    assert_eq!(batch.starts, [3, 2]);
}

#[test]
fn the_configuration_wins_over_the_normalizer_stored() {
    let cased = with_config(r#"{"do_lower_case": false}"#);
    assert_eq!(ids(&rows(&cased, "The fox".into(), EncodeOptions::default())), [[2, 1, 8, 3]]);
    let lowercased = cased.lowercased().unwrap();
    assert_eq!(ids(&rows(&lowercased, "The fox".into(), EncodeOptions::default())), [[2, 5, 8, 3]]);
}

#[test]
fn generic_classes_take_the_normalizer_stored() {
    let stored = r#"{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
        "lowercase": false}"#;
    let vocab: Vec<String> =
        VOCAB.iter().enumerate().map(|(id, token)| format!("\"{token}\": {id}")).collect();
    let file = format!(
        r###"{{"version": "1.0", "added_tokens": [], "normalizer": {stored}, "pre_tokenizer": {{"type": "BertPreTokenizer"}},
        "post_processor": null, "decoder": null, "model": {{"type": "WordPiece", "unk_token": "[UNK]",
        "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {{{}}}}}}}"###,
        vocab.join(", ")
    );
    for (class, want) in [("TokenizersBackend", 1), ("PreTrainedTokenizerFast", 1), ("BertTokenizer", 5)] {
        let config = format!("{{\"tokenizer_class\": \"{class}\"}}");
        let t = tokenizer(&[("tokenizer.json", file.clone()), ("tokenizer_config.json", config)]).unwrap();
        assert_eq!(ids(&rows(&t, "The fox".into(), EncodeOptions::default())), [[want, 8]], "{class}");
    }
}

#[test]
fn lengths_and_strides_that_cannot_be_are_errors() {
    let t = plain();
    let message =
        |text: Text<'_>, options: EncodeOptions| t.encode(&[text], &options).unwrap_err().to_string();
    let text = message("the fox".into(), EncodeOptions::truncated(Some(2)));
    assert!(text.contains("leave no room"), "{text}");
    let stride = EncodeOptions { stride: 4, ..EncodeOptions::truncated(Some(6)) };
    assert!(message("the quick brown fox dog".into(), stride).contains("cannot overlap by 4"));
    let second = EncodeOptions { truncation: Truncation::OnlySecond, ..EncodeOptions::truncated(Some(6)) };
    assert!(message("the quick brown fox dog".into(), second).contains("only_second"));
    assert!(
        message(("the quick brown fox dog", "fox").into(), second).contains("the first text alone has 5")
    );
}

#[test]
fn a_missing_or_broken_tokenizer_says_what_to_do() {
    let text = tokenizer(&[]).unwrap_err().to_string();
    assert!(text.contains("no tokenizer.json and no vocab.txt"), "{text}");
    let text = tokenizer(&[("merges.txt", String::new())]).unwrap_err().to_string();
    assert!(text.contains("merges.txt alone cannot be read") && text.contains("save_pretrained"), "{text}");
    let text = tokenizer(&[("tokenizer.json", "{\"model\":".into())]).unwrap_err().to_string();
    assert!(text.contains("tokenizer.json: not a tokenizer"), "{text}");
}

#[test]
fn a_token_beyond_the_model_names_both_sizes() {
    let t = with_config(r#"{"mask_token": "<extra>"}"#);
    let row = &rows(&t, "the <extra> fox".into(), EncodeOptions::default())[0];
    let text = t.check_vocabulary(row, VOCAB.len()).unwrap_err().to_string();
    assert!(
        text.contains("`<extra>` has id 22") && text.contains("has 22 tokens") && text.contains("23"),
        "{text}"
    );
    assert!(t.check_vocabulary(row, 23).is_ok());
}

#[test]
fn words_given_apart_keep_their_numbers() {
    let row = &rows(&plain(), Text::Words(&["foxes", "jumped"]), EncodeOptions::default())[0];
    assert_eq!(row.ids, [2, 8, 9, 10, 11, 3]);
    assert_eq!(row.words, [None, Some(0), Some(0), Some(1), Some(1), None]);
    assert_eq!(row.offsets[3..5], [(0, 4), (4, 6)]);
}

#[test]
fn blank_texts_are_told() {
    for text in ["", "  \n"] {
        assert!(rows(&plain(), text.into(), EncodeOptions::default())[0].is_blank());
    }
    assert!(!rows(&plain(), "[MASK]".into(), EncodeOptions::default())[0].is_blank());
}

proptest::proptest! {
    #[test]
    fn every_offset_lies_in_its_text(text in "\\PC{0,40}") {
        let count = text.chars().count();
        let row = &rows(&plain(), text.as_str().into(), EncodeOptions::default())[0];
        for (start, end) in &row.offsets {
            proptest::prop_assert!(start <= end && *end <= count);
        }
    }
}
