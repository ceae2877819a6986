"""Small picture files of every kind that must be read: formats, colour types, depths, orientations, frames.

What they show is computed (a gradient, a disc, bars, grain), so that every channel has edges, slopes and noise.
"""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from weft_reference import inputs

ORIENTATION = 0x0112


def scene(height: int, width: int, key: str = "scene") -> np.ndarray:
    """A picture, uint8 `[height, width, 3]`."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    picture = np.stack([255 * x / width, 255 * y / height, 128 + 100 * np.sin((x + y) / 5)], axis=-1)
    disc = (x - 0.6 * width) ** 2 + (y - 0.4 * height) ** 2 < (0.25 * min(height, width)) ** 2
    picture[disc] = [230, 40, 60]
    picture[(x % 11 < 2) & (y > 0.7 * height)] = [20, 90, 200]
    grain = inputs.integers(f"picture.{key}", (height, width, 3), -12, 13)
    return np.clip(picture + grain, 0, 255).astype(np.uint8)


def encoded(image: Image.Image, form: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def png_16(samples: np.ndarray, colour: int) -> bytes:
    """A PNG of 16 bits a sample `[height, width, channels]`, which the library writes for grey only."""
    height, width, _ = samples.shape
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in samples)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 16, colour, 0, 0, 0)
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows, 9)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def oriented(image: Image.Image, orientation: int, form: str = "JPEG") -> bytes:
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    return encoded(image, form, exif=exif, **({"quality": 95, "subsampling": 0} if form == "JPEG" else {}))


def frames(count: int, height: int, width: int) -> list[np.ndarray]:
    """A square that crosses a scene, which fades from one frame to the next."""
    still = scene(height, width, "frames")
    made = []
    for index in range(count):
        frame = (still * (1 - 0.06 * index)).astype(np.uint8)
        left = 2 + index * (width - 12) // max(count - 1, 1)
        frame[4:12, left : left + 8] = [250, 240, 30]
        made.append(frame)
    return made


def trimap(height: int, width: int) -> np.ndarray:
    """Of the scene's disc, uint8 `[height, width]`: white within it, grey around its edge, black beyond."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    distance = np.hypot(x - 0.6 * width, y - 0.4 * height) / min(height, width)
    return np.select([distance < 0.18, distance < 0.32], [255, 128], 0).astype(np.uint8)


def printed(lines: list[str], height: int, width: int) -> Image.Image:
    """Lines of text, dark on light paper with grain."""
    paper = 235 + inputs.integers(f"picture.{lines[0]}", (height, width, 3), -6, 7)
    image = Image.fromarray(paper.astype(np.uint8))
    draw = ImageDraw.Draw(image)
    for index, line in enumerate(lines):
        draw.text((5, 4 + 17 * index), line, (40, 30, 60), ImageFont.load_default_imagefont())
    return image


def files() -> dict[str, bytes]:
    """Every kind of picture by file name."""
    rgb = scene(34, 46)
    image = Image.fromarray(rgb)
    alpha = Image.fromarray(np.linspace(0, 255, 34 * 46).reshape(34, 46).astype(np.uint8))
    with_alpha = Image.merge("RGBA", [*image.split(), alpha])
    small = Image.fromarray(scene(12, 18, "small"))
    wide = rgb.astype(np.uint16) * 257
    palette = image.quantize(24)
    moving = [Image.fromarray(frame).quantize(48) for frame in frames(6, 28, 40)]
    transparent = [with_alpha.resize((20, 16)), with_alpha.transpose(Image.Transpose.ROTATE_180).resize((20, 16))]
    made = {
        "rgb.png": encoded(image, "PNG"),
        "tall.png": encoded(Image.fromarray(scene(61, 23, "tall")), "PNG"),
        "tiny.png": encoded(Image.fromarray(scene(5, 7, "tiny")), "PNG"),
        "wide.png": encoded(Image.fromarray(scene(20, 90, "wide")), "PNG"),
        "rgba.png": encoded(with_alpha, "PNG"),
        "grey.png": encoded(image.convert("L"), "PNG"),
        "grey-alpha.png": encoded(Image.merge("LA", [image.convert("L"), alpha]), "PNG"),
        "grey-transparent.png": encoded(image.convert("L"), "PNG", transparency=100),
        "one-bit.png": encoded(image.convert("1"), "PNG"),
        "palette.png": encoded(palette, "PNG"),
        "palette-transparent.png": encoded(palette, "PNG", transparency=3),
        "palette-4-bit.png": encoded(image.quantize(9), "PNG", bits=4),
        "grey-16-bit.png": png_16(wide[..., :1], 0),
        "grey-16-bit-dark.png": png_16((wide[..., :1] // 300), 0),
        "rgb-16-bit.png": png_16(wide, 2),
        "rgba-16-bit.png": png_16(np.concatenate([wide, wide[..., 1:2]], axis=-1), 6),
        "grey-alpha-16-bit.png": png_16(wide[..., :2], 4),
        "oriented.png": oriented(small, 6, "PNG"),
        "colour.jpg": encoded(image, "JPEG", quality=90, subsampling=0),
        "subsampled.jpg": encoded(image, "JPEG", quality=90, subsampling=2),
        "progressive.jpg": encoded(image, "JPEG", quality=85, progressive=True),
        "grey.jpg": encoded(image.convert("L"), "JPEG", quality=90),
        "cmyk.jpg": encoded(image.convert("CMYK"), "JPEG", quality=95),
        "lossless.webp": encoded(image, "WEBP", lossless=True),
        "lossless-alpha.webp": encoded(with_alpha, "WEBP", lossless=True, exact=True),
        "lossy.webp": encoded(image, "WEBP", quality=90),
        "oriented.webp": oriented(small, 8, "WEBP"),
        "still.gif": encoded(palette, "GIF"),
        "animated.gif": encoded(moving[0], "GIF", save_all=True, append_images=moving[1:], duration=40),
        "transparent.gif": encoded(transparent[0], "GIF", save_all=True, append_images=transparent[1:], disposal=2),
    }
    made["trimap.png"] = encoded(Image.fromarray(trimap(34, 46)), "PNG")
    made["line.png"] = encoded(printed(["Warp & weft 42"], 18, 96), "PNG")
    made["page.png"] = encoded(printed(["Anni wove", "a cloth of", "two threads"], 60, 84), "PNG")
    made |= {f"oriented-{n}.jpg": oriented(small, n) for n in range(1, 9)}
    return made
