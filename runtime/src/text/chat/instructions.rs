//! Templates as instructions, with a check before each that can make more than it reads. The library folds constants and makes
//! texts without asking how long they are; its own functions are asked first.

use std::collections::BTreeMap;

use minijinja::machinery::{
    CodeGenerator, Instruction, Instructions, Token, WhitespaceConfig, parse, tokenize,
};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Error, Value};

use super::memory;

/// The whitespace options of the reference's environment.
const WHITESPACE: WhitespaceConfig =
    WhitespaceConfig { keep_trailing_newline: false, lstrip_blocks: true, trim_blocks: true };

/// The filter that gives what it takes.
pub(super) const SAME: &str = "_same";

/// A template, and the blocks in it.
pub(super) struct Code<'source> {
    pub instructions: Instructions<'source>,
    pub blocks: BTreeMap<&'source str, Instructions<'source>>,
}

impl<'source> Code<'source> {
    pub(super) fn of(name: &'source str, source: &'source str) -> Result<Self, Error> {
        let template = parse(source, name, SyntaxConfig, WHITESPACE)?;
        let mut code = CodeGenerator::new(name, source);
        code.compile_stmt(&template);
        let (instructions, blocks) = code.finish();
        let blocks = blocks.into_iter().map(|(name, block)| (name, checked(&block))).collect();
        Ok(Self { instructions: checked(&instructions), blocks })
    }
}

/// A source in which no product is of constants alone: those the library multiplies while it reads them.
pub(super) fn without_constant_products(source: &str) -> Result<String, Error> {
    let (mut out, mut copied, mut is_operand) = (String::with_capacity(source.len()), 0, false);
    for token in tokenize(source, false, SyntaxConfig, WHITESPACE) {
        let (token, span) = token?;
        if matches!(token, Token::Mul) && is_operand {
            let at = span.start_offset as usize;
            out.push_str(&source[copied..at]);
            out.push('|');
            out.push_str(SAME);
            out.push(' ');
            copied = at;
        }
        is_operand = !matches!(
            token,
            Token::ParenOpen
                | Token::BracketOpen
                | Token::BraceOpen
                | Token::Comma
                | Token::Assign
                | Token::Colon
        );
    }
    out.push_str(&source[copied..]);
    Ok(out)
}

/// The same instructions with the checks between them.
fn checked<'source>(code: &Instructions<'source>) -> Instructions<'source> {
    let all: Vec<_> = (0..).map_while(|index| code.get(index)).collect();
    let mut places = vec![0];
    places.extend(all.iter().scan(0, |place, instruction| {
        *place += 1 + before(instruction).len() as u32;
        Some(*place)
    }));
    let at = |index: &u32| places[*index as usize];
    let mut out = Instructions::new(code.name(), code.source());
    for (index, instruction) in all.into_iter().enumerate() {
        let line = code.get_line(index as u32).unwrap_or_default() as u16;
        for check in before(instruction) {
            out.add_with_line(check, line);
        }
        let moved = match instruction {
            Instruction::EmitRaw(_) => Instruction::Emit,
            Instruction::Iterate(to) => Instruction::Iterate(at(to)),
            Instruction::Jump(to) => Instruction::Jump(at(to)),
            Instruction::JumpIfFalse(to) => Instruction::JumpIfFalse(at(to)),
            Instruction::JumpIfFalseOrPop(to) => Instruction::JumpIfFalseOrPop(at(to)),
            Instruction::JumpIfTrueOrPop(to) => Instruction::JumpIfTrueOrPop(at(to)),
            Instruction::BuildMacro(name, to, flags) => Instruction::BuildMacro(name, at(to), *flags),
            other => other.clone(),
        };
        out.add_with_line(moved, line);
    }
    out
}

/// What comes before an instruction: a call with its operands, which gives them back.
fn before<'source>(instruction: &Instruction<'source>) -> Vec<Instruction<'source>> {
    let call = |name, operands: usize| {
        vec![Instruction::CallFunction(name, Some(operands as u16)), Instruction::UnpackList(operands)]
    };
    let name = match instruction {
        Instruction::EmitRaw(text) => return vec![Instruction::LoadConst(Value::from(*text))],
        Instruction::Slice => return call(memory::SLICE, 4),
        Instruction::PerformTest(_, Some(operands), _) => return call(memory::TEST, usize::from(*operands)),
        Instruction::Add => "+",
        Instruction::Mul => "*",
        Instruction::StringConcat => "~",
        Instruction::Eq
        | Instruction::Ne
        | Instruction::Lt
        | Instruction::Lte
        | Instruction::Gt
        | Instruction::Gte
        | Instruction::In
        | Instruction::CompareAndPreserve(_) => "==",
        _ => return vec![],
    };
    call(name, 2)
}
