#!/bin/sh
# Installs the Debian packages that a make target needs, and only those that are missing.
#   tools/install-packages.sh GROUP...      groups: build bench test cross fuzz format lint
# Needs root or sudo only if something is missing. On other systems it says what is wanted and lets the build go on.
set -eu

packages_of() {
  case "$1" in
    build) echo g++ cmake ninja-build pkg-config nlohmann-json3-dev libfmt-dev libcli11-dev liburing-dev \
                libxxhash-dev nettle-dev libzstd-dev liblz4-dev libpcre2-dev libutf8proc-dev libedit-dev libboost-dev ;;
    bench) echo python3 ;;
    test) echo libgtest-dev libgmock-dev libsentencepiece-dev python3 zstd ;;  # python3, zstd: the second decoder
    cross) echo g++-aarch64-linux-gnu qemu-user ;;  # libraries: tools/arm64-sysroot.sh
    fuzz) echo clang-16 libclang-rt-16-dev llvm-16 python3 ;;  # llvm-16: symbols in reports
    format) echo clang-format ;;
    lint) echo clang-tidy-16 ;;
    *) echo "$0: unknown group '$1'; there are: build bench test cross fuzz format lint" >&2; return 2 ;;
  esac
}

wanted=""
for group in "$@"; do
  packages=$(packages_of "$group")
  wanted="$wanted $packages"
done

if ! command -v dpkg-query >/dev/null 2>&1; then
  echo "$0: not a Debian system; these packages, or what corresponds to them, must be there:$wanted" >&2
  exit 0
fi

# shellcheck disable=SC2086  # $wanted is a list
installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' $wanted 2>/dev/null || true)
missing=""
for package in $wanted; do
  printf '%s\n' "$installed" | grep -qx "$package installed" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
  as_root="env"
elif command -v sudo >/dev/null 2>&1; then
  as_root="sudo"
else
  as_root=""
fi
command_line="apt-get update && apt-get install --no-install-recommends$missing"
if [ -z "$as_root" ]; then
  echo "$0: some packages are missing, and installing them takes root or sudo. Run this as root:" >&2
  echo "  $command_line" >&2
  exit 1
fi

echo "Installing:$missing"
apt="$as_root DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300"
$apt update -qq || echo "$0: apt-get update failed; trying with the package lists that are there" >&2
# shellcheck disable=SC2086
if ! $apt install -y -qq --no-install-recommends $missing; then
  echo "$0: installing failed. By hand, as root:" >&2
  echo "  $command_line" >&2
  exit 1
fi
