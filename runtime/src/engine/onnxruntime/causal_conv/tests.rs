//! Against its definition, number by number.

use super::*;
use crate::engine::onnxruntime::lanes::tests::drawn;

#[test]
fn it_is_what_its_definition_says() {
    let cases = [
        (1, 3, 5, 4, 1, true),
        (2, 1, 40, 4, 1, false),
        (1, 1, 37, 3, 1, true),
        (2, 2, 5, 2, 3, true),
        (2, 7, 17, 3, 2, true),
        (1, 2, 3, 1, 1, false),
    ];
    for (batch, positions, channels, kernel, dilation, silu) in cases {
        let before = (kernel - 1) * dilation;
        let (x, past) = (drawn(batch * positions * channels, 1), drawn(batch * before * channels, 2));
        let (weight, bias) = (drawn(channels * kernel, 3), drawn(channels, 4));
        let given = Given {
            of: CausalConv { silu, dilation },
            lengths: [batch, positions, channels, kernel],
            x: &x,
            weight: &weight,
            bias: silu.then_some(&bias),
            past: &past,
        };
        given.check().unwrap();
        let whole = |text: usize, position: usize, channel: usize| match position.checked_sub(before) {
            None => past[(text * before + position) * channels + channel],
            Some(new) => x[(text * positions + new) * channels + channel],
        };
        let mut state = vec![9.0; past.len()];
        given.tail(&mut state);
        for (index, found) in state.iter().enumerate() {
            let (row, channel) = (index / channels, index % channels);
            assert_eq!(*found, whole(row / before, positions + row % before, channel));
        }
        for kernel_of in [fastest(), compute::<true>, compute::<false>] {
            let mut result = vec![9.0; x.len()];
            // Two blocks, of which the last is the shorter one.
            for (block, rows) in
                slices(result.as_mut_slice(), channels, channels.div_ceil(2)).into_iter().enumerate()
            {
                kernel_of(&given, block * channels.div_ceil(2), &mut rows.into_inner().unwrap());
            }
            for (index, found) in result.iter().enumerate() {
                let (row, channel) = (index / channels, index % channels);
                let mut sum = given.bias.map_or(0.0, |bias| f64::from(bias[channel]));
                for element in 0..kernel {
                    let seen = whole(row / positions, row % positions + element * dilation, channel);
                    sum += f64::from(seen) * f64::from(weight[channel * kernel + element]);
                }
                let wanted = if silu { sum / (1.0 + (-sum).exp()) } else { sum };
                assert!((f64::from(*found) - wanted).abs() < 1e-6, "{index}");
            }
        }
    }
}

#[test]
fn lengths_that_do_not_fit_are_refused() {
    let (two, four) = ([0.0; 2], [0.0; 4]);
    let of = CausalConv { silu: false, dilation: 1 };
    let given = Given { of, lengths: [1, 1, 2, 2], x: &two, weight: &four, bias: Some(&two), past: &two };
    assert!(given.check().is_ok());
    assert!(Given { weight: &two, ..given }.check().is_err());
    assert!(Given { past: &four, ..given }.check().is_err());
    assert!(Given { bias: Some(&four), ..given }.check().is_err());
    assert!(Given { lengths: [1, 1, 2, 0], weight: &[], ..given }.check().is_err());
}
