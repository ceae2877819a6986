//! The numbers of what stands for operations where there is little more than arithmetic.

use crate::dims;
use crate::graph::dims::BATCH;
use crate::graph::{Binary, Constant, Dim, Dtype, Graph, Input, PadMode, Tensor, Unary};
use crate::lower::passes::{Rule, arithmetic, norm, select};
use crate::lower::{Target, lower};
use crate::nn::testing::expect;
use crate::nn::{gather_rows, l2_normalize};
use crate::{Hardware, Precision, Result};

fn row(g: &mut Graph, numbers: &[f32]) -> Tensor {
    g.filled(Dtype::F32, dims![numbers.len()], Constant::F32(numbers.to_vec()))
}

/// What stands for a value, and for what it is made of.
fn rewritten(g: &mut Graph, x: &Tensor, rule: Rule) -> Result<Tensor> {
    g.output("x", x)?;
    g.rewrite(rule)?;
    let (_, id) = g.outputs.pop().unwrap();
    Ok(g.tensor(id).clone())
}

#[test]
fn logarithms_are_found_by_steps() {
    let numbers = [1e-30, 1e-10, 1e-5, 0.25, 0.999, 1.0, 2.0, 1000.0, 1e30_f32];
    expect(
        &[],
        |g| {
            let x = row(g, &numbers);
            let log = g.unary(Unary::Log, &x);
            rewritten(g, &log, arithmetic::logarithm_by_steps)
        },
        &[9],
        &numbers.map(f32::ln),
    );
}

#[test]
fn fractions_are_compared() {
    let (tiny, half) = (f32::MIN_POSITIVE, 0.5);
    let (a, b) = ([0.5, 0.5, -3.0, tiny, f32::MIN], [0.5, 0.501, -3.5, 0.0, half]);
    let cases = [
        (Binary::Less, [0.0, 1.0, 0.0, 0.0, 1.0]),
        (Binary::LessOrEqual, [1.0, 1.0, 0.0, 0.0, 1.0]),
        (Binary::Greater, [0.0, 0.0, 1.0, 1.0, 0.0]),
        (Binary::GreaterOrEqual, [1.0, 0.0, 1.0, 1.0, 0.0]),
        (Binary::Equal, [1.0, 0.0, 0.0, 0.0, 0.0]),
    ];
    for (op, want) in cases {
        let compared = |g: &mut Graph| {
            let (a, b) = (row(g, &a), row(g, &b));
            arithmetic::compared(g, op, &a, &b)
        };
        expect(&[], compared, &[5], &want);
    }
}

#[test]
fn what_is_left_over_is_whole() {
    expect(
        &[],
        |g| {
            let (a, b) =
                (row(g, &[0.0, 1.0, 6.0, 7.0, 20.0, 99_999.0]), row(g, &[7.0, 7.0, 7.0, 7.0, 3.0, 10.0]));
            arithmetic::remainder(g, &a, &b)
        },
        &[6],
        &[0.0, 1.0, 6.0, 0.0, 2.0, 9.0],
    );
}

#[test]
fn rows_are_gathered_and_edges_put_around() {
    let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let rows = |g: &mut Graph| {
        let x = g.filled(Dtype::F32, dims![1, 3, 2], Constant::F32(x.to_vec()));
        let indices = g.filled(Dtype::I64, dims![1, 4], Constant::I64(vec![2, 0, 2, 1]));
        let rows = gather_rows(g, &x, &indices)?;
        rewritten(g, &rows, select::rows_by_product)
    };
    expect(&[], rows, &[1, 4, 2], &[5.0, 6.0, 1.0, 2.0, 5.0, 6.0, 3.0, 4.0]);
    let padded = |g: &mut Graph| {
        let x = g.filled(Dtype::F32, dims![1, 3, 2], Constant::F32(x.to_vec()));
        let padded = g.pad(&x, &[(1, 1, 0), (2, 0, 2)], PadMode::Edge)?;
        rewritten(g, &padded, arithmetic::pad_by_concat)
    };
    let want = [1.0, 2.0, 2.0, 2.0, 1.0, 2.0, 2.0, 2.0, 3.0, 4.0, 4.0, 4.0, 5.0, 6.0, 6.0, 6.0];
    expect(&[], padded, &[1, 4, 4], &want);
}

#[test]
fn elements_of_any_axis_are_gathered() {
    let (x, indices) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 1, 0, 0, 1, 2, 2, 0]);
    let elements = |dtype: Dtype, axis: usize, rule: Option<Rule>| {
        move |g: &mut Graph| {
            let x = g.filled(Dtype::F32, dims![1, 3, 2], Constant::F32(x.to_vec()));
            let x = g.cast(&x, dtype);
            let shape = if axis == 1 { dims![1, 4, 2] } else { dims![1, 3, 2] };
            let count = if axis == 1 { 8 } else { 6 };
            let most = if axis == 1 { 2 } else { 1 };
            let indices = indices[..count].iter().map(|index| (*index).min(most)).collect();
            let indices = g.filled(Dtype::I64, shape, Constant::I64(indices));
            let found = g.gather_elements(&x, &indices, axis)?;
            let found = match rule {
                Some(rule) => rewritten(g, &found, rule)?,
                None => found,
            };
            Ok(g.cast(&found, Dtype::F32))
        }
    };
    let rows = [5.0, 4.0, 1.0, 2.0, 3.0, 6.0, 5.0, 2.0];
    let columns = [2.0, 2.0, 3.0, 3.0, 6.0, 6.0];
    for dtype in [Dtype::F32, Dtype::I64] {
        for rule in [None, Some(select::elements_by_product as Rule)] {
            expect(&[], elements(dtype, 1, rule), &[1, 4, 2], &rows);
            expect(&[], elements(dtype, 2, rule), &[1, 3, 2], &columns);
        }
    }
}

#[test]
fn elements_are_scattered_along_the_last_axis() {
    let scattered = |dtype: Dtype, rule: Option<Rule>| {
        move |g: &mut Graph| {
            let number = |g: &mut Graph, shape: Vec<Dim>, values: &[f32]| {
                let x = g.filled(Dtype::F32, shape, Constant::F32(values.to_vec()));
                g.cast(&x, dtype)
            };
            let x = number(g, dims![1, 2, 4], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
            let updates = number(g, dims![1, 2, 2], &[-9.0, 10.0, -11.0, 12.0]);
            let ids = g.filled(Dtype::I64, dims![1, 2, 2], Constant::I64(vec![3, 0, 1, 2]));
            let found = g.scatter_elements(&x, &ids, &updates)?;
            let found = match rule {
                Some(rule) => rewritten(g, &found, rule)?,
                None => found,
            };
            Ok(g.cast(&found, Dtype::F32))
        }
    };
    let want = [10.0, 2.0, 3.0, -9.0, 5.0, -11.0, 12.0, 8.0];
    for rule in [None, Some(select::scatter_by_comparison as Rule)] {
        expect(&[], scattered(Dtype::F32, rule), &[1, 2, 4], &want);
    }
    expect(&[], scattered(Dtype::I64, None), &[1, 2, 4], &want);
}

#[test]
fn numbers_in_the_middle_are_rounded_to_even_ones() {
    let numbers = [-2.5, -1.5, -0.5, -0.4, 0.0, 0.5, 0.6, 1.5, 2.5, 2.51];
    let rounded = |g: &mut Graph| {
        let x = row(g, &numbers);
        let whole = g.unary(Unary::Round, &x);
        rewritten(g, &whole, arithmetic::round_by_floor)
    };
    expect(&[], rounded, &[10], &numbers.map(f32::round_ties_even));
}

#[test]
fn signs_quotients_and_logarithms_of_softmax() {
    let (tiny, numbers) = (f32::MIN_POSITIVE, [-7.5, -0.001, 0.0, 0.25, f32::MAX]);
    let signs = |g: &mut Graph| {
        let x = row(g, &[numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], tiny, -tiny]);
        let sign = g.unary(Unary::Sign, &x);
        rewritten(g, &sign, arithmetic::sign_by_comparison)
    };
    expect(&[], signs, &[7], &[-1.0, -1.0, 0.0, 1.0, 1.0, 1.0, -1.0]);
    let quotients = |g: &mut Graph| {
        let (a, b) = (row(g, &[0.0, 6.0, 7.0, 20.0, 99_999.0]), row(g, &[7.0, 7.0, 7.0, 3.0, 10.0]));
        arithmetic::quotient(g, &a, &b)
    };
    expect(&[], quotients, &[5], &[0.0, 0.0, 1.0, 6.0, 9999.0]);
    // ln(e^1 + e^2 + e^3) is 3.407606; of numbers a thousand apart the least counts for nothing.
    let logarithms = |g: &mut Graph| {
        let x = g.filled(Dtype::F32, dims![2, 3], Constant::F32(vec![1.0, 2.0, 3.0, 0.0, 1000.0, 0.0]));
        let logarithms = g.log_softmax(&x)?;
        rewritten(g, &logarithms, arithmetic::log_softmax_by_sum)
    };
    expect(&[], logarithms, &[2, 3], &[-2.407_606, -1.407_606, -0.407_606, -1000.0, 0.0, -1000.0]);
}

#[test]
fn unit_vectors_of_small_numbers_are_unit_vectors() {
    let small = |dtype| {
        move |g: &mut Graph| {
            let x = row(g, &[3e-5, 4e-5]);
            let x = g.cast(&x, dtype);
            let unit = l2_normalize(g, &x)?;
            let lines = g.nodes.len();
            let unit = rewritten(g, &unit, norm::l2_by_largest)?;
            assert!(g.nodes.len() > lines);
            let wide = g.cast(&unit, Dtype::F32);
            let hundred = g.scalar(100.0);
            let hundredths = g.mul(&wide, &hundred)?;
            Ok(g.unary(Unary::Round, &hundredths))
        }
    };
    expect(&[], small(Dtype::F16), &[2], &[60.0, 80.0]);
    expect(&[], small(Dtype::F32), &[2], &[60.0, 80.0]);
}

#[test]
fn whole_quotients_are_those_of_multiples() {
    let quotients = |g: &mut Graph| {
        let a = g.filled(Dtype::I64, dims![6], Constant::I64(vec![7, 6, 3, 1, 0, -1]));
        let two = g.integer(2);
        let quotients = g.div(&a, &two)?;
        rewritten(g, &quotients, arithmetic::quotients_of_multiples)
    };
    expect(&[], quotients, &[6], &[3.0, 3.0, 1.0, 0.0, 0.0, -1.0]);
    let numbers = |g: &mut Graph| {
        let (a, b) = (row(g, &[7.0]), row(g, &[2.0]));
        let quotient = g.div(&a, &b)?;
        rewritten(g, &quotient, arithmetic::quotients_of_multiples)
    };
    expect(&[], numbers, &[1], &[3.5]);
}

#[test]
fn whole_quotients_and_remainders_are_exact() {
    let by_numbers = |op: Binary| {
        move |g: &mut Graph| {
            // The last of them are no numbers of single precision.
            let a = vec![0, 6, 7, 20, 99_999, 141_492_097, 16_777_217, 33_554_431];
            let b = vec![7, 7, 7, 3, 10, 16_384, 16_777_217, 16];
            let [a, b] = [a, b].map(|x| g.filled(Dtype::I64, dims![8], Constant::I64(x)));
            let whole = g.binary(op, &a, &b)?;
            let lines = g.nodes.len();
            let whole = rewritten(g, &whole, arithmetic::integer_division)?;
            assert!(g.nodes.len() > lines);
            Ok(whole)
        }
    };
    let quotients = [0.0, 0.0, 1.0, 6.0, 9999.0, 8635.0, 1.0, 2_097_151.0];
    expect(&[], by_numbers(Binary::Div), &[8], &quotients);
    expect(&[], by_numbers(Binary::Mod), &[8], &[0.0, 6.0, 0.0, 2.0, 9.0, 16_257.0, 0.0, 15.0]);
}

#[test]
fn integers_are_given_as_they_came_by_conversions() {
    let mut g = Graph::new();
    let ids = g.input(Input::i64("ids", dims![BATCH]));
    let x = g.input(Input::f32("x", dims![BATCH]));
    for (name, tensor) in [("first", &ids), ("second", &x)] {
        g.output(name, tensor).unwrap();
    }
    let counted = |hardware| {
        let operators = lower(&g, &[], &Target::of(hardware, Precision::F32)).unwrap().operators;
        ["Identity", "Cast"].map(|name| operators.get(name).copied().unwrap_or_default())
    };
    assert_eq!(counted(Hardware::Cpu), [2, 0]);
    assert_eq!(counted(Hardware::Webgpu), [1, 2]);
}
