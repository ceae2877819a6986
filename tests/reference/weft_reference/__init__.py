"""Makes the golden cases that Weft's generated crates are proven against, with the pinned reference releases."""
