//! Memory that weights need, against what is free, before anything is loaded.

use std::process::{Command, Stdio};

use crate::engine::Options;
use crate::weights::{Bytes, WeightData};
use crate::{Dtype, Error, Hardware, Precision, Result};

/// What is free on this machine for a process; none where the system does not tell.
pub(crate) fn free() -> Option<u64> {
    if cfg!(target_family = "wasm") {
        return None;
    }
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").and_then(|text| available(&text))?;
    let limit = limited(
        &read("/sys/fs/cgroup/memory.max").unwrap_or_default(),
        &read("/sys/fs/cgroup/memory.current").unwrap_or_default(),
        &read("/sys/fs/cgroup/memory.stat").unwrap_or_default(),
    );
    Some(limit.map_or(machine, |limit| limit.min(machine)))
}

/// What `/proc/meminfo` says: pages of files that could be dropped are free.
fn available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// What a container's limit leaves; none where there is no limit.
fn limited(most: &str, current: &str, stat: &str) -> Option<u64> {
    let (most, current): (u64, u64) = (most.trim().parse().ok()?, current.trim().parse().ok()?);
    let pages = stat.lines().find_map(|line| line.strip_prefix("inactive_file "));
    let pages: u64 = pages.and_then(|pages| pages.trim().parse().ok()).unwrap_or_default();
    Some(most.saturating_sub(current.saturating_sub(pages)))
}

/// What is free on the GPU that a backend runs on; none where nothing tells.
pub(crate) fn free_on(hardware: Hardware) -> Option<u64> {
    if hardware != Hardware::Cuda {
        return None;
    }
    let query = ["--query-gpu=memory.free", "--format=csv,noheader,nounits"];
    let asked =
        Command::new("nvidia-smi").args(query).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let said = String::from_utf8_lossy(&asked.stdout).into_owned();
    Some(said.lines().next()?.trim().parse::<u64>().ok()? << 20)
}

/// Bytes of a GPU's memory that so many parameters take, with a fifth for what is computed.
pub(crate) fn needed_on_gpu(elements: u64, precision: Precision) -> u64 {
    // Scales take half a bit of a weight, and heads and embeddings have 8.
    let bits = match precision {
        Precision::F32 => 32,
        Precision::F16 | Precision::Bf16 => 16,
        Precision::Int8 => 9,
        Precision::Int4 | Precision::Int4Mixed | Precision::Int3 => 6,
        Precision::Int2 => 4,
    };
    elements.saturating_mul(bits).saturating_mul(6) / 40
}

/// Bytes of the machine's memory that weights take besides the pages of their files, which can be dropped.
fn needed(hardware: Hardware, weights: &[WeightData], mapped: bool) -> u64 {
    let cpu = matches!(hardware, Hardware::Cpu | Hardware::Auto);
    let by_codes = |weight: &&WeightData| match &weight.bytes {
        // Only the CPU runs a batch of matrices by its codes.
        Bytes::Quantized(blocks) => cpu || blocks.batch.is_none(),
        _ => false,
    };
    let blocks: u64 = weights.iter().filter(by_codes).map(|weight| codes(cpu, weight)).sum();
    let weights: Vec<_> = weights.iter().filter(|weight| !by_codes(weight)).collect();
    let count = |weight: &&WeightData| weight.shape.iter().product::<usize>() as u64;
    let single = weights.iter().filter(|weight| stored_in(weight) == Dtype::F32).map(count).sum::<u64>();
    let all = weights.iter().map(count).sum::<u64>();
    match hardware {
        Hardware::Cpu | Hardware::Auto if mapped => 0,
        // Copies in the order in which they are multiplied; those of 16 bits stay as they are stored.
        Hardware::Cpu | Hardware::Auto => 4 * single + blocks,
        // Copies in single precision, and while those of 16 bits are converted 0.4 times as much again.
        Hardware::Openvino => 4 * single + (all - single) * 28 / 5 + blocks,
        _ => 0,
    }
}

/// The type of a weight's values as they are handed over.
fn stored_in(weight: &WeightData) -> Dtype {
    match &weight.bytes {
        Bytes::Quantized(blocks) => blocks.exact_dtype(),
        _ => weight.dtype,
    }
}

/// Bytes of memory that a weight takes by its codes.
fn codes(cpu: bool, weight: &WeightData) -> u64 {
    match &weight.bytes {
        // The CPU reads places in a codebook where they lie; elsewhere they become codes of 8 bits.
        Bytes::Quantized(blocks) if blocks.codebook().is_some() => match cpu {
            true => [&blocks.codes, &blocks.scales]
                .into_iter()
                .chain(&blocks.outer)
                .filter(|bytes| !matches!(bytes, Bytes::File { .. }))
                .map(Bytes::length)
                .sum(),
            false => 2 * blocks.size(),
        },
        bytes => bytes.length(),
    }
}

/// Holds what the weights of a graph need against what is free. On the CPU, weights that nobody asked to be copied stay in
/// their mapped pages where copies do not fit; what is said of it is the result.
///
/// # Errors
/// When they do not fit: the figures and the way out.
pub(crate) fn fit(
    hardware: Hardware,
    weights: &[WeightData],
    options: &mut Options,
    free: Option<u64>,
) -> Result<Option<String>> {
    let need = needed(hardware, weights, options.map_weights == Some(true));
    let Some(free) = free.filter(|free| need > *free) else { return Ok(None) };
    let figures = format!("weights need {} of memory, and {} is free", gigabytes(need), gigabytes(free));
    if hardware == Hardware::Cpu && options.map_weights.is_none() {
        options.map_weights = Some(true);
        return Ok(Some(format!("{figures}: they stay in their mapped pages, and encoders are slower")));
    }
    let help = match hardware {
        Hardware::Cpu => "leave `map_weights` to the loader, or free memory",
        _ => "run it on cpu, which leaves weights in their files (`.map_weights(true)`), or free memory",
    };
    Err(Error::unavailable(hardware, figures, help))
}

/// `6.1 GB`.
pub(crate) fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::weights::BlockQuantized;

    /// A weight of a million elements times `millions`.
    fn weight(dtype: Dtype, millions: usize) -> WeightData {
        let bytes = Bytes::File { path: "m".into(), offset: 0, length: 0 };
        WeightData { dtype, shape: vec![millions, 1_000_000], stored_as: "w".to_owned(), bytes }
    }

    #[test]
    fn free_memory_is_what_the_machine_and_its_limits_leave() {
        assert_eq!(available("MemTotal: 9 kB\nMemFree: 1 kB\nMemAvailable:   3 kB\n"), Some(3072));
        assert_eq!(limited("max\n", "5\n", ""), None);
        assert_eq!(limited("1000\n", "700\n", "anon 1\ninactive_file 200\n"), Some(500));
        assert_eq!(limited("1000", "1200", ""), Some(0));
    }

    #[test]
    fn copies_that_do_not_fit_are_mapped_or_refused_with_the_figures() {
        let weights = [weight(Dtype::F32, 500), weight(Dtype::Bf16, 1000)];
        let fit = |hardware, map, free| {
            let mut options = Options { map_weights: map, ..Options::default() };
            fit(hardware, &weights, &mut options, free).map(|said| (said, options.map_weights))
        };
        assert_eq!(fit(Hardware::Cpu, None, Some(3_000_000_000)).unwrap(), (None, None));
        assert_eq!(fit(Hardware::Cpu, None, None).unwrap(), (None, None));
        let (said, map) = fit(Hardware::Cpu, None, Some(1_000_000_000)).unwrap();
        assert_eq!(map, Some(true));
        assert!(said.unwrap().contains("need 2.0 GB of memory, and 1.0 GB is free"));
        assert_eq!(fit(Hardware::Cpu, Some(true), Some(0)).unwrap(), (None, Some(true)));
        let refused = fit(Hardware::Cpu, Some(false), Some(1_000_000_000)).unwrap_err().to_string();
        assert!(refused.contains("2.0 GB") && refused.contains("map_weights"), "{refused}");
        // 500 M in single precision, 1000 M converted from 16 bits: 2 + 5.6 GB.
        let refused = fit(Hardware::Openvino, None, Some(7_000_000_000)).unwrap_err().to_string();
        assert!(refused.contains("need 7.6 GB") && refused.contains("run it on cpu"), "{refused}");
        assert_eq!(fit(Hardware::Openvino, None, Some(8_000_000_000)).unwrap(), (None, None));
    }

    #[test]
    fn codes_in_files_take_no_memory_of_the_cpu() {
        let experts = |codes: Bytes| {
            let blocks = BlockQuantized {
                batch: Some(4),
                codes,
                ..crate::weights::testing::sample([64, 1024], 4, 32, "e2m1")
            };
            let (dtype, shape, stored_as) = (Dtype::F32, vec![4, 1024, 16], "w".to_owned());
            [WeightData { dtype, shape, stored_as, bytes: Bytes::Quantized(Arc::new(blocks)) }]
        };
        let mapped = experts(Bytes::File { path: "m".into(), offset: 0, length: 1 << 15 });
        // Scales of one byte for each 32.
        assert_eq!(needed(Hardware::Cpu, &mapped, false), 1 << 11);
        assert_eq!(
            needed(Hardware::Cpu, &experts(Bytes::memory(vec![0; 1 << 15])), false),
            (1 << 15) + (1 << 11)
        );
        assert_eq!(needed(Hardware::Openvino, &mapped, false), (1 << 16) * 28 / 5);
    }

    #[test]
    fn half_the_bytes_need_half_the_memory_of_a_gpu() {
        assert_eq!(needed_on_gpu(1_000_000_000, Precision::F32), 4_800_000_000);
        assert_eq!(needed_on_gpu(1_000_000_000, Precision::F16), 2_400_000_000);
    }
}
