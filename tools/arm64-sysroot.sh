#!/bin/sh
# Puts the arm64 libraries that a cross build links with into a directory, as Debian packages have them; nothing is
# installed, and no root is needed.
#   tools/arm64-sysroot.sh DIRECTORY
# Does nothing where the directory is complete.
set -eu

[ $# = 1 ] || { echo "usage: $0 DIRECTORY" >&2; exit 2; }
case "$1" in /*) root=$1 ;; *) root=$(pwd)/$1 ;; esac
[ -e "$root/complete" ] && exit 0
command -v apt-get >/dev/null 2>&1 || { echo "$0: takes a Debian system, for its packages" >&2; exit 1; }

packages="nlohmann-json3-dev libfmt-dev libcli11-dev liburing-dev libxxhash-dev nettle-dev libzstd-dev liblz4-dev \
libpcre2-dev libutf8proc-dev libedit-dev libboost-dev libgtest-dev libgmock-dev libstdc++6"

# apt with a state of its own, in which nothing is installed yet: it finds everything that these need.
state="$root.apt"
rm -rf "$root" "$state"
mkdir -p "$root" "$state/state/lists/partial" "$state/cache/archives/partial"
: >"$state/state/status"
apt() {
  apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o Dir::State="$state/state" \
    -o Dir::State::status="$state/state/status" -o Dir::Cache="$state/cache" -o Debug::NoLocking=1 "$@"
}
apt update || echo "$0: apt-get update failed in part; trying with what came" >&2
# shellcheck disable=SC2086  # a list
apt install -y --no-install-recommends --download-only $packages
for package in "$state"/cache/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
rm -rf "$state"
: >"$root/complete"
