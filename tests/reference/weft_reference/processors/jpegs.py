"""JPEG files of every kind that is read: sizes, qualities, resolutions of colour, scans, restarts, colour spaces."""

from __future__ import annotations

import struct

import numpy as np
from PIL import Image

from weft_reference import inputs
from weft_reference.processors.pictures import encoded, scene

SIZES = ((1, 1), (2, 3), (8, 9), (17, 33), (31, 4))
SUBSAMPLINGS = {"444": 0, "422": 1, "420": 2}
SCANS = {
    "baseline": {},
    "progressive": {"progressive": True},
    "optimised": {"optimize": True},
    "restarts": {"restart_marker_blocks": 1},
    "progressive-restarts": {"progressive": True, "restart_marker_rows": 1},
}
FRAMES = (0xC0, 0xC1, 0xC2)


def resampled(data: bytes, height: int, width: int, factors: int) -> bytes:
    """The same MCUs under another size and other sampling factors of the first component, which Pillow cannot write."""
    made = bytearray(data)
    at = 2
    while made[at + 1] not in FRAMES:
        at += 2 + struct.unpack(">H", made[at + 2 : at + 4])[0]
    made[at + 5 : at + 9] = struct.pack(">HH", height, width)
    made[at + 11] = factors
    return bytes(made)


def without(data: bytes, *tables: int) -> bytes:
    """The file without these Huffman tables (16 more for those of AC coefficients), as frames of Motion JPEG come."""
    made, at = bytearray(data[:2]), 2
    while data[at + 1] != 0xDA:
        length = struct.unpack(">H", data[at + 2 : at + 4])[0]
        segment, after = data[at : at + 2 + length], at + 2 + length
        if data[at + 1] == 0xC4:
            assert len(segment) == 21 + sum(segment[5:21]), "one table a segment"
            segment = b"" if segment[4] in tables else segment
        made += segment
        at = after
    return bytes(made + data[at:])


def files() -> dict[str, bytes]:
    made = {}
    for height, width in SIZES:
        image = Image.fromarray(scene(height, width, f"jpeg-{height}x{width}"))
        for name, subsampling in SUBSAMPLINGS.items():
            for scans, options in SCANS.items():
                key = f"{height}x{width}-{name}-{scans}"
                made[key] = encoded(image, "JPEG", quality=85, subsampling=subsampling, **options)
    image = Image.fromarray(scene(17, 33, "jpeg-17x33"))
    noise = Image.fromarray(inputs.integers("jpeg.noise", (17, 33, 3), 0, 256).astype(np.uint8))
    for quality in (1, 30, 100):
        made[f"quality-{quality}"] = encoded(image, "JPEG", quality=quality, subsampling=2)
        made[f"noise-{quality}"] = encoded(noise, "JPEG", quality=quality, subsampling=1)
    for name, options in {"baseline": {}, "progressive": {"progressive": True}}.items():
        made[f"grey-{name}"] = encoded(noise.convert("L"), "JPEG", **options)
        made[f"cmyk-{name}"] = encoded(noise.convert("CMYK"), "JPEG", **options)
        made[f"rgb-{name}"] = encoded(noise, "JPEG", keep_rgb=True, **options)
    tables = (0x00, 0x10, 0x01, 0x11)
    for name, options in (("420", {"subsampling": 2}), ("444-restarts", {"subsampling": 0, "restart_marker_blocks": 1})):
        made[f"no-tables-{name}"] = without(encoded(image, "JPEG", quality=85, **options), *tables)
    made["no-tables-grey"] = without(encoded(noise.convert("L"), "JPEG"), *tables)
    made["no-chrominance-tables"] = without(encoded(noise, "JPEG", quality=50), 0x01, 0x11)
    # 2 x 2 MCUs of two, then of four blocks of the first component.
    image = Image.fromarray(scene(16, 32, "jpeg-mcu"))
    half = encoded(image, "JPEG", quality=85, subsampling=1)
    made["440"] = resampled(half, 32, 16, 0x12)
    made["440-odd"] = resampled(half, 27, 11, 0x12)
    quarter = encoded(Image.fromarray(scene(32, 32, "jpeg-mcu")), "JPEG", quality=85, subsampling=2)
    made["411"] = resampled(quarter, 13, 61, 0x41)
    made["411-down"] = resampled(quarter, 61, 13, 0x14)
    return made
