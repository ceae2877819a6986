use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer, PreTokenizerWrapper};

use super::*;

/// The pieces of a text, with a bar between them.
fn pieces(name: &str, text: &str) -> String {
    let read: PreTokenizerWrapper = serde_json::from_value(of(name).unwrap().json()).unwrap();
    let mut split = PreTokenizedString::from(text);
    read.pre_tokenize(&mut split).unwrap();
    let splits = split.get_splits(OffsetReferential::Original, OffsetType::Byte);
    splits.into_iter().map(|(_, (begin, end), _)| &text[begin..end]).collect::<Vec<_>>().join("|")
}

#[test]
fn names_are_of_one_split_whose_expressions_are_read() {
    for (index, split) in SPLITS.iter().enumerate() {
        for name in split.names {
            assert!(SPLITS[..index].iter().all(|other| !other.names.contains(name)), "{name}");
        }
        let read = serde_json::from_value::<PreTokenizerWrapper>(split.json());
        assert!(read.is_ok(), "{:?}: {read:?}", split.names);
    }
    assert!(of("qwen2").is_some() && of("unheard-of").is_none());
}

/// What `tokenizers` gives by the same steps with Oniguruma's expressions.
#[test]
fn texts_are_split_as_by_the_published_tokenizers() {
    let splits = [
        ("gpt-2", "I'VE 1234", "I|'|VE| 1234"),
        ("mellum2", "I've 1234", "I|'ve| |1|2|3|4"),
        ("llama3", "I'VE 1234", "I|'VE| |123|4"),
        ("jais-2", "a    b     c", "a|  | | b|    | c"),
        ("minicpm5", "1234567 12", "123|456|7| |12"),
        ("qwen2", "x=12!\n\ny", "x|=|1|2|!\n\n|y"),
        ("qwen35", "हिन्दी e\u{301}", "हिन्दी| e\u{301}"),
        ("laguna", "a\r\nb.\n\nc\rd", "a|\r\n|b|.|\n\n|c|\r|d"),
        ("bailingmoe2", "I'VE 12\n\n", "I|'VE| |1|2|\n\n"),
        ("seed-coder", "x();\n\n12", "x|();|\n\n|1|2"),
        ("exaone-moe", "by the way, it 's 12!//\n", "by the way|,| it| '|s| |1|2|!//\n"),
        ("tekken", "CamelCase it's 12/\n", "Camel|Case| it|'s| |1|2|/\n"),
        ("gpt-4o", "CamelCase it's 1234/\n", "Camel|Case| it's| |123|4|/\n"),
        ("cohere2moe", "1234567 1234a CamelCase", "1|234|567| |123|4|a| Camel|Case"),
        ("youtu", "한국어text中文，123", "한국어|text|中文|，|1|2|3"),
        ("kimi-k2", "中文English混合kana かな", "中文|English|混合|kana| かな"),
        ("deepseek-v3", "中文かなabc 1234!", "中文かな|abc| |123|4|!"),
        ("afmoe", "1234567 ไทยລາວ中文abc", "1|234|567| |ไทย|ລາວ|中文|abc"),
        ("deepseek-llm", "it's 12中文한국！\n x ", "it|'|s| |1|2|中文한국|！|\n| x| "),
        ("superbpe", "by the way 1234567", "by the way |1|234|567"),
        ("viking", "a, b 12.", "a|,| b| |1|2|."),
        ("falcon", "a-b 12345", "a|-|b| |123|45"),
    ];
    for (name, text, wanted) in splits {
        assert_eq!(pieces(name, text), wanted, "{name}");
    }
    // As of a number of any length: from the right.
    let long = "7".repeat(2_000);
    assert_eq!(pieces("afmoe", &long), format!("77{}", "|777".repeat(666)));
}
