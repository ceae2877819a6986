use sha2::{Digest, Sha256};

use super::*;

/// The first half of the SHA-256 of the numbers' bytes.
fn digest(values: &[f32]) -> String {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Sha256::digest(bytes).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_noise_of_a_seed_is_the_references() {
    let noise = Generator::new(42).randn(4 * 64 * 64);
    assert_eq!(noise[..4], [1.926_915_3, 1.487_284_1, 0.900_717_2, -2.105_521]);
    assert_eq!(digest(&noise), "e97f3de04c7c6ba86354db4402b91d44");
}

/// What PyTorch 2.15 gives on x86-64, of one generator one draw after another.
#[test]
fn every_length_is_drawn_as_the_reference_does() {
    let draws: [(u64, &[(usize, &str)]); 4] = [
        (
            0,
            &[
                (5, "210d4d6ce714b81456f146a6465cfc9d"),
                (3, "6de28baa14e7c6b6ba141080a3768b6f"),
                (40, "f6a4aca5fa6c4011b2052c155c5f755c"),
                (7, "76dd77c4b0ffe822fe7af3841cee65f9"),
            ],
        ),
        // Of the seed 32 bits count.
        (
            (1 << 33) + 5,
            &[
                (16, "f7a0c6f8193b0c2e81ca38d76d75bfcd"),
                (17, "1716589d5a3f60f3b643e6cc0e36e1f1"),
                (31, "03e011b7121be4ad6efba5f15736982e"),
                (1000, "79cbdb5e93e1a38d485b26435be2046d"),
            ],
        ),
        // The second number of a pair is kept from call to call.
        (
            7,
            &[
                (15, "e8fe4bd30d2a1e6707f201ce1953551c"),
                (1, "4abdba2c28ac83404085afe7171262ae"),
                (1, "300991ff6576460ecf9fea15b3bd95fe"),
            ],
        ),
        (123_456_789, &[(1_000_003, "613d4bd9c7f6fde9356b19f8f41acac7")]),
    ];
    for (seed, counts) in draws {
        let mut generator = Generator::new(seed);
        for (count, want) in counts {
            assert_eq!(digest(&generator.randn(*count)), *want, "{count} numbers of seed {seed}");
        }
    }
}
