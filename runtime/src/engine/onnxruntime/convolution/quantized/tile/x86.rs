//! Products of x86-64 processors: AVX2, AVX-VNNI, AVX-512 VNNI, and tiles of AMX.

use std::arch::x86_64::*;

use super::{
    CHANNELS, Kernel, PORTABLE, ROW, ROWS, Range, Scales, Steps, Sums, plain_range, plain_rounded, plain_silu,
};

/// All ways that this processor has, the fastest last.
pub(super) fn kernels() -> Vec<Kernel> {
    use std::arch::is_x86_feature_detected as has;
    let mut kernels = vec![];
    if has!("avx2") && has!("fma") {
        let kernel = Kernel {
            products: avx2::products,
            rounded: avx2::rounded,
            range: avx2::range,
            silu: avx2::silu,
            ..PORTABLE
        };
        kernels.push(kernel);
        if has!("avxvnni") {
            kernels.push(Kernel { products: avxvnni::products, ..kernel });
        }
    }
    if has!("avx512f") && has!("avx512bw") && has!("avx512vnni") {
        let kernel = Kernel {
            products: avx512::products,
            scaled: avx512::scaled,
            rounded: avx512::rounded,
            range: avx512::range,
            silu: avx512::silu,
        };
        kernels.push(kernel);
        if amx::is_there() {
            kernels.push(Kernel { products: amx::products, ..kernel });
        }
    }
    kernels
}

/// The plain loops, compiled for wider registers.
macro_rules! compiled {
    ($features:literal) => {
        pub(super) fn rounded(
            x: &[f32],
            plane: usize,
            channels: usize,
            steps: Steps,
            to: &mut [u8],
            pixel: usize,
        ) {
            #[target_feature(enable = $features)]
            fn compiled(x: &[f32], plane: usize, channels: usize, steps: Steps, to: &mut [u8], pixel: usize) {
                plain_rounded(x, plane, channels, steps, to, pixel);
            }
            // SAFETY: only handed out where the processor has the instructions.
            unsafe { compiled(x, plane, channels, steps, to, pixel) }
        }

        pub(super) fn range(x: &[f32]) -> Range {
            #[target_feature(enable = $features)]
            fn compiled(x: &[f32]) -> Range {
                plain_range(x)
            }
            // SAFETY: only handed out where the processor has the instructions.
            unsafe { compiled(x) }
        }

        pub(super) fn silu(numbers: &mut [f32]) {
            #[target_feature(enable = $features)]
            fn compiled(numbers: &mut [f32]) {
                plain_silu::<true>(numbers);
            }
            // SAFETY: only handed out where the processor has the instructions.
            unsafe { compiled(numbers) }
        }
    };
}

mod avx2 {
    use super::*;

    compiled!("avx2,fma");

    pub(super) fn products(
        windows: &[u8],
        stride: usize,
        depth: usize,
        panels: &[u8],
        sums: &mut [[Sums; ROWS]],
    ) {
        assert!(windows.len() >= (ROWS - 1) * stride + depth && depth.is_multiple_of(4));
        for (panel, sums) in panels.chunks_exact((depth * CHANNELS).max(1)).zip(sums) {
            for (two, sums) in sums.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                // SAFETY: only handed out where the processor has the instructions; both windows and the panel have the depth.
                unsafe { two_windows(&windows[2 * two * stride..], stride, depth, panel, sums) };
            }
        }
    }

    /// The sums of two windows: bytes are widened to 16 bits, of which sums of two products are no more than 32 bits hold.
    #[target_feature(enable = "avx2")]
    unsafe fn two_windows(windows: &[u8], stride: usize, depth: usize, panel: &[u8], sums: &mut [Sums; 2]) {
        // SAFETY: the caller's.
        unsafe {
            // Of each window registers of four channels, of which each has two sums beside each other.
            let mut halves = [[_mm256_setzero_si256(); 4]; 2];
            for place in (0..depth).step_by(4) {
                let weights: [__m256i; 4] = std::array::from_fn(|at| {
                    let from = panel.as_ptr().add(place * CHANNELS + at * 16);
                    _mm256_cvtepi8_epi16(_mm_loadu_si128(from.cast()))
                });
                for (row, halves) in halves.iter_mut().enumerate() {
                    let four = windows.as_ptr().add(row * stride + place).cast::<i32>().read_unaligned();
                    let x = _mm256_cvtepu8_epi16(_mm_set1_epi32(four));
                    for (halves, weights) in halves.iter_mut().zip(weights) {
                        *halves = _mm256_add_epi32(*halves, _mm256_madd_epi16(x, weights));
                    }
                }
            }
            for (sums, halves) in sums.iter_mut().zip(halves) {
                for (sums, halves) in sums.as_chunks_mut::<4>().0.iter_mut().zip(halves) {
                    let mut both = [0; 8];
                    _mm256_storeu_si256(both.as_mut_ptr().cast(), halves);
                    sums.iter_mut().zip(both.as_chunks::<2>().0).for_each(|(sum, [a, b])| *sum = a + b);
                }
            }
        }
    }
}

/// The products by `vpdpbusd`, so many windows and registers of channels at a time.
macro_rules! products {
    ($features:literal, $rows:literal, $register:ty, $zero:ident, $load:ident, $same:ident, $dot:ident, $store:ident) => {
        pub(super) fn products(
            windows: &[u8],
            stride: usize,
            depth: usize,
            panels: &[u8],
            sums: &mut [[Sums; ROWS]],
        ) {
            assert!(windows.len() >= (ROWS - 1) * stride + depth && depth.is_multiple_of(4));
            let whole = depth * CHANNELS;
            for (panels, sums) in panels.chunks((2 * whole).max(1)).zip(sums.chunks_mut(2)) {
                for row in (0..ROWS).step_by($rows) {
                    let windows = &windows[row * stride..];
                    // SAFETY: only handed out where the processor has the instructions; all windows and panels have the depth.
                    unsafe {
                        match panels.len() / whole {
                            1 => tile::<1>(windows, stride, depth, panels, sums, row),
                            _ => tile::<2>(windows, stride, depth, panels, sums, row),
                        }
                    }
                }
            }
        }

        /// The sums of some windows, from this row on, for some panels.
        #[target_feature(enable = $features)]
        unsafe fn tile<const PANELS: usize>(
            windows: &[u8],
            stride: usize,
            depth: usize,
            panels: &[u8],
            to: &mut [[Sums; ROWS]],
            row: usize,
        ) {
            const LANES: usize = size_of::<$register>() / 4;
            const REGISTERS: usize = CHANNELS / LANES;
            // SAFETY: the caller's.
            unsafe {
                let mut sums = [[[$zero(); REGISTERS]; PANELS]; $rows];
                let (windows, panels) = (windows.as_ptr(), panels.as_ptr());
                for place in (0..depth).step_by(4) {
                    let mut weights = [[$zero(); REGISTERS]; PANELS];
                    for (panel, weights) in weights.iter_mut().enumerate() {
                        let from = panels.add((panel * depth + place) * CHANNELS);
                        for (at, weights) in weights.iter_mut().enumerate() {
                            *weights = $load(from.add(at * LANES * 4).cast());
                        }
                    }
                    for (row, sums) in sums.iter_mut().enumerate() {
                        let x = $same(windows.add(row * stride + place).cast::<i32>().read_unaligned());
                        for (sums, weights) in sums.iter_mut().zip(weights) {
                            for (sum, weights) in sums.iter_mut().zip(weights) {
                                *sum = $dot(*sum, x, weights);
                            }
                        }
                    }
                }
                for (row, sums) in (row..).zip(sums) {
                    for (to, sums) in to.iter_mut().zip(sums) {
                        for (to, sum) in to[row].chunks_exact_mut(LANES).zip(sums) {
                            $store(to.as_mut_ptr().cast(), sum);
                        }
                    }
                }
            }
        }
    };
}

mod avxvnni {
    use super::*;

    products!(
        "avx2,avxvnni",
        2,
        __m256i,
        _mm256_setzero_si256,
        _mm256_loadu_si256,
        _mm256_set1_epi32,
        _mm256_dpbusd_avx_epi32,
        _mm256_storeu_si256
    );
}

mod avx512 {
    use super::super::super::super::super::panel::square_avx512;
    use super::*;

    compiled!("avx512f,avx512bw,avx2,fma");

    products!(
        "avx512f,avx512bw,avx512vnni",
        8,
        __m512i,
        _mm512_setzero_si512,
        _mm512_loadu_si512,
        _mm512_set1_epi32,
        _mm512_dpbusd_epi32,
        _mm512_storeu_si512
    );

    pub(super) fn scaled(sums: &[Sums; 16], scales: &Scales, rows: &mut [[f32; ROW]; CHANNELS], at: usize) {
        #[target_feature(enable = "avx512f")]
        fn compiled(sums: &[Sums; 16], scales: &Scales, rows: &mut [[f32; ROW]; CHANNELS], at: usize) {
            assert!(at + 16 <= ROW);
            let mut numbers = [[0.0_f32; CHANNELS]; 16];
            // SAFETY: all of them are sixteen numbers, and the squares sixteen by sixteen.
            unsafe {
                let zeros = _mm512_loadu_si512(scales.zeros.as_ptr().cast());
                let factors = _mm512_loadu_ps(scales.factors.as_ptr());
                let summands = _mm512_loadu_ps(scales.summands.as_ptr());
                for (numbers, sums) in numbers.iter_mut().zip(sums) {
                    let sums = _mm512_sub_epi32(_mm512_loadu_si512(sums.as_ptr().cast()), zeros);
                    let scaled = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums), factors, summands);
                    _mm512_storeu_ps(numbers.as_mut_ptr(), scaled);
                }
                let to = rows.as_flattened_mut().as_mut_ptr().add(at);
                square_avx512(numbers.as_flattened().as_ptr(), CHANNELS, to, ROW);
            }
        }
        // SAFETY: only handed out where the processor has the instructions.
        unsafe { compiled(sums, scales, rows, at) }
    }
}

/// Tiles of 16 rows of 64 bytes. Rust has no names for their instructions, but those of the assembler.
mod amx {
    use std::sync::OnceLock;

    use super::*;

    /// Whether the processor has them, and Linux lets this process use them: they are a large state that threads save.
    pub(super) fn is_there() -> bool {
        static THERE: OnceLock<bool> = OnceLock::new();
        *THERE.get_or_init(|| cfg!(target_os = "linux") && has_instructions() && is_permitted())
    }

    fn has_instructions() -> bool {
        /// Bits of the leaf of extended features: AMX-TILE and AMX-INT8.
        const TILE_AND_INT8: u32 = 1 << 24 | 1 << 25;
        __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & TILE_AND_INT8 == TILE_AND_INT8
    }

    /// Asks for the permission: `arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)`.
    fn is_permitted() -> bool {
        const ARCH_PRCTL: i64 = 158;
        const REQUEST: i64 = 0x1023;
        const TILE_DATA: i64 = 18;
        let mut result = ARCH_PRCTL;
        // SAFETY: a system call, which overwrites these two registers and no memory.
        unsafe {
            std::arch::asm!(
                "syscall",
                inlateout("rax") result,
                in("rdi") REQUEST,
                in("rsi") TILE_DATA,
                lateout("rcx") _,
                lateout("r11") _,
                options(nostack)
            );
        }
        result == 0
    }

    /// The shapes of all tiles: 16 rows of 64 bytes (palette 1).
    #[repr(C, align(64))]
    struct Shapes {
        palette: u8,
        start: u8,
        reserved: [u8; 14],
        bytes: [u16; 16],
        rows: [u8; 16],
    }

    static SHAPES: Shapes = Shapes {
        palette: 1,
        start: 0,
        reserved: [0; 14],
        bytes: [64, 64, 64, 64, 64, 64, 64, 64, 0, 0, 0, 0, 0, 0, 0, 0],
        rows: [16, 16, 16, 16, 16, 16, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0],
    };

    pub(super) fn products(
        windows: &[u8],
        stride: usize,
        depth: usize,
        panels: &[u8],
        sums: &mut [[Sums; ROWS]],
    ) {
        let whole = depth * CHANNELS;
        let count = panels.len() / whole.max(1);
        assert!(windows.len() >= (ROWS - 1) * stride + depth && depth.is_multiple_of(64) && depth > 0);
        assert!(sums.len() >= count.next_multiple_of(2));
        // SAFETY: only handed out where the processor has the instructions. Two times 16 windows have `depth` bytes each, every panel
        // `depth` times 16, and there is room for the sums of two panels; of the last one alone, those of itself come twice.
        unsafe {
            std::arch::asm!("ldtilecfg [{shapes}]", shapes = in(reg) &SHAPES, options(nostack, readonly));
            for panel in (0..count).step_by(2) {
                let first = panels.as_ptr().add(panel * whole);
                let second = if panel + 1 < count { first.add(whole) } else { first };
                std::arch::asm!(
                    "tilezero tmm0",
                    "tilezero tmm1",
                    "tilezero tmm2",
                    "tilezero tmm3",
                    "2:",
                    "tileloadd tmm4, [{upper} + {stride}]",
                    "tileloadd tmm6, [{first} + {row}]",
                    "tdpbusd tmm0, tmm4, tmm6",
                    "tileloadd tmm5, [{lower} + {stride}]",
                    "tdpbusd tmm1, tmm5, tmm6",
                    "tileloadd tmm7, [{second} + {row}]",
                    "tdpbusd tmm2, tmm4, tmm7",
                    "tdpbusd tmm3, tmm5, tmm7",
                    "add {upper}, 64",
                    "add {lower}, 64",
                    "add {first}, 1024",
                    "add {second}, 1024",
                    "dec {steps}",
                    "jnz 2b",
                    "tilestored [{sums} + {row}], tmm0",
                    "tilestored [{sums} + {row} + 1024], tmm1",
                    "tilestored [{sums} + {row} + 2048], tmm2",
                    "tilestored [{sums} + {row} + 3072], tmm3",
                    upper = inout(reg) windows.as_ptr() => _,
                    lower = inout(reg) windows.as_ptr().add(16 * stride) => _,
                    first = inout(reg) first => _,
                    second = inout(reg) second => _,
                    steps = inout(reg) depth / 64 => _,
                    stride = in(reg) stride,
                    row = in(reg) 64_usize,
                    sums = in(reg) sums.as_mut_ptr().add(panel),
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack)
                );
            }
            std::arch::asm!("tilerelease", options(nostack, nomem));
        }
    }
}
