// XXH3-64 guards parts and chunks of a store; SHA-256 identifies source files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace sluice {

std::uint64_t xxh3(std::span<const std::byte> data);
std::string hex64(std::uint64_t value);  // 16 lower-case digits
bool parse_hex64(std::string_view text, std::uint64_t& value);

class Xxh3Stream {
 public:
  Xxh3Stream();
  ~Xxh3Stream();
  void update(std::span<const std::byte> data);
  std::uint64_t digest() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class Sha256Stream {
 public:
  Sha256Stream();
  ~Sha256Stream();
  void update(std::span<const std::byte> data);
  std::string hex_digest();  // call once; 64 lower-case digits
 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::string sha256_hex(std::span<const std::byte> data);

}  // namespace sluice
