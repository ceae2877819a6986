#!/usr/bin/env bash
# Type-checks the runtime and one generated crate for other platforms, from Linux, without their toolchains.
#
#   bash tests/portability/check.sh                       # all of them
#   bash tests/portability/check.sh aarch64-apple-darwin  # one
#
# A target that rustup has is checked with it. For any other, Debian's rustc-web, cargo-web and rust-web-src build the
# standard library from its source; they are installed where that is possible. Downloads from the hub stay out: their
# TLS library has C code, which only the platform's own compiler builds. What only tests need stays out of pages; all
# other crates are checked for them by `cargo xtask web`.
set -euo pipefail
cd "$(dirname "$0")/../.."

all=(aarch64-apple-darwin aarch64-linux-android x86_64-pc-windows-msvc wasm32-unknown-unknown)
if [ $# -gt 0 ]; then targets=("$@"); else targets=("${all[@]}"); fi

debian() {
  [ -x /usr/bin/cargo ] && [ -x /usr/bin/rustc ] && [ -d "$(/usr/bin/rustc --print sysroot)/lib/rustlib/src/rust/library" ]
}
install_debian() {
  debian && return
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends rustc-web cargo-web rust-web-src >/dev/null
  fi
  debian && return
  echo "error: neither rustup's target $1 nor Debian's rustc-web is there" >&2
  echo "  help: rustup target add $1, or on Debian: apt install rustc-web cargo-web rust-web-src" >&2
  exit 2
}

# The workspace without what cannot be checked here; its sources are the repository's own.
house=target/portability/house
mkdir -p "$house/generated/text-encoders"
ln -sfn "$PWD/runtime" "$house/runtime"
ln -sfn "$PWD/generated/text-encoders/bert" "$house/generated/text-encoders/bert"
ln -sfn "$PWD/tests" "$house/tests"
cp Cargo.lock "$house/Cargo.lock"
sed -e '/^members = \[/,/\]$/c members = ["runtime", "generated/text-encoders/bert"]' -e '/^default-members/d' \
    -e '/^weft-code = /d' -e '/^weft-generator = /d' -e '/^\[profile/,$d' Cargo.toml > "$house/Cargo.toml"

# Those of one toolchain go together: while one target waits for its last crate, another is being checked.
check() {
  (cd "$house" && "$@" --quiet --target-dir ../build --package weft --package weft-bert)
}
installed=$(rustup target list --installed 2>/dev/null || true)
declare -A alike=()
for target in "${targets[@]}"; do
  case $target in wasm32-*) features=weft/text,weft/image,weft/audio,weft/chat ;; *) features=weft/conformance ;; esac
  if grep -qx "$target" <<< "$installed"; then kind=here; else kind=foreign; fi
  alike[$kind $features]+=" --target $target"
done
for group in "${!alike[@]}"; do
  read -r kind features <<< "$group"
  read -ra of_group <<< "${alike[$group]}"
  if [ "$kind" = here ]; then
    check cargo check --features "$features" "${of_group[@]}"
  else
    install_debian "${of_group[1]}"
    check env PATH=/usr/bin:/bin RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 \
      /usr/bin/cargo check -Zbuild-std=std,panic_abort --features "$features" "${of_group[@]}"
  fi
done
echo "type-checked for ${targets[*]} ($SECONDS s)"
