//! Audio as the bytes of a WAV file.

use super::Audio;

/// A mono WAV file of 32-bit floating-point samples (`WAVE_FORMAT_IEEE_FLOAT`), which loses nothing.
pub(super) fn encode(audio: &Audio) -> Vec<u8> {
    const WIDTH: u32 = 4;
    let data = u32::try_from(audio.samples.len()).unwrap_or(u32::MAX / WIDTH).saturating_mul(WIDTH);
    let frames = data / WIDTH;
    let mut bytes = Vec::with_capacity(58 + data as usize);
    let mut put = |part: &[u8]| bytes.extend_from_slice(part);
    put(b"RIFF");
    put(&data.saturating_add(50).to_le_bytes());
    put(b"WAVEfmt ");
    put(&18_u32.to_le_bytes());
    put(&3_u16.to_le_bytes());
    put(&1_u16.to_le_bytes());
    put(&audio.sampling_rate.to_le_bytes());
    put(&audio.sampling_rate.saturating_mul(WIDTH).to_le_bytes());
    put(&(WIDTH as u16).to_le_bytes());
    put(&(8 * WIDTH as u16).to_le_bytes());
    put(&0_u16.to_le_bytes());
    // Other codings than whole numbers say how many samples there are.
    put(b"fact");
    put(&4_u32.to_le_bytes());
    put(&frames.to_le_bytes());
    put(b"data");
    put(&data.to_le_bytes());
    for sample in &audio.samples[..frames as usize] {
        put(&sample.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let audio = Audio { samples: vec![0.5, -1.0, 0.125], sampling_rate: 22_050 };
        let bytes = encode(&audio);
        assert_eq!(bytes.len(), 58 + 12);
        assert_eq!(Audio::decode(bytes).unwrap(), audio);
    }
}
