//! Languages as tokens: multilingual models read which one a text is in, and begin to write with another.
//!
//! Reference: `_build_translation_inputs` of the tokenizers of mBART, PLBART, M2M100 and NLLB.

use crate::text::{Encoding, Tokenizer};
use crate::{Error, Result};

/// The tokens of a pair of languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    from: i64,
    /// What an answer begins with.
    pub(super) to: i64,
}

impl Pair {
    /// Of two languages; none where the tokenizer knows of none.
    pub(super) fn of(tokenizer: &Tokenizer, told: Option<&(String, String)>) -> Result<Option<Self>> {
        if !tokenizer.settings().marks_languages {
            return Ok(None);
        }
        let Some((from, to)) = told else {
            let problem = "goes with `tgt_lang`, and not both were given: the checkpoint translates between many languages";
            return Err(Error::input("src_lang", problem, "give both, as its card names them"));
        };
        Ok(Some(Self { from: id(tokenizer, "src_lang", from)?, to: id(tokenizer, "tgt_lang", to)? }))
    }

    /// Puts the language in the place of the one that `tokenizer.json` adds to every text.
    pub(super) fn mark(self, row: &mut Encoding, tokenizer: &Tokenizer) -> Result<()> {
        let settings = tokenizer.settings();
        let usual = [
            &settings.bos_token,
            &settings.eos_token,
            &settings.sep_token,
            &settings.cls_token,
            &settings.pad_token,
            &settings.unk_token,
        ];
        let usual: Vec<_> = usual.into_iter().flatten().filter_map(|token| tokenizer.id(token)).collect();
        let added =
            row.ids.iter_mut().zip(&row.special).filter(|(id, special)| **special && !usual.contains(*id));
        let mut marks: Vec<_> = added.map(|(id, _)| id).collect();
        let [mark] = marks.as_mut_slice() else {
            return Err(Error::config(
                tokenizer.file(),
                format!("adds {} languages to a text, not one", marks.len()),
                "take the published file, or save the tokenizer again with its `src_lang`",
            ));
        };
        **mark = self.from;
        Ok(())
    }
}

/// The token of a language: named as it is, or between underlines as PLBART's and M2M100's are.
fn id(tokenizer: &Tokenizer, parameter: &str, language: &str) -> Result<i64> {
    let token = [language.to_owned(), format!("__{language}__")].iter().find_map(|name| tokenizer.id(name));
    token.filter(|id| tokenizer.special_ids().contains(id)).ok_or_else(|| {
        let file = tokenizer.file().display();
        let help = format!("take one of the special tokens of {file}, such as `en_XX`, `eng_Latn` or `en`");
        Error::input(parameter, format!("`{language}` is no language of this checkpoint"), help)
    })
}
