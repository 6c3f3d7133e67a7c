#include "base/hash.h"

#include <nettle/sha2.h>
#include <xxhash.h>

#include "base/error.h"

namespace sluice {

std::uint64_t xxh3(std::span<const std::byte> data) { return XXH3_64bits(data.data(), data.size()); }

std::string hex64(std::uint64_t value) {
  std::string text(16, '0');
  for (std::size_t i = 16; i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return text;
}

bool parse_hex64(std::string_view text, std::uint64_t& value) {
  if (text.size() != 16) return false;
  std::uint64_t result = 0;
  for (const char c : text) {
    unsigned digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<unsigned>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<unsigned>(c - 'a') + 10;
    } else {
      return false;
    }
    result = result << 4 | digit;
  }
  value = result;
  return true;
}

struct Xxh3Stream::Impl {
  XXH3_state_t* state = nullptr;
  ~Impl() { XXH3_freeState(state); }
};

Xxh3Stream::Xxh3Stream() : impl_(std::make_unique<Impl>()) {
  impl_->state = XXH3_createState();  // aligned to 64 bytes, which operator new does not promise
  SLUICE_CHECK(impl_->state != nullptr);
  XXH3_64bits_reset(impl_->state);
}

Xxh3Stream::~Xxh3Stream() = default;

void Xxh3Stream::update(std::span<const std::byte> data) {
  if (!data.empty()) XXH3_64bits_update(impl_->state, data.data(), data.size());
}

std::uint64_t Xxh3Stream::digest() const { return XXH3_64bits_digest(impl_->state); }

struct Sha256Stream::Impl {
  sha256_ctx context;
  bool finished = false;
};

Sha256Stream::Sha256Stream() : impl_(std::make_unique<Impl>()) { sha256_init(&impl_->context); }

Sha256Stream::~Sha256Stream() = default;

void Sha256Stream::update(std::span<const std::byte> data) {
  SLUICE_CHECK(!impl_->finished);
  if (data.empty()) return;
  sha256_update(&impl_->context, data.size(), reinterpret_cast<const std::uint8_t*>(data.data()));
}

std::string Sha256Stream::hex_digest() {
  SLUICE_CHECK(!impl_->finished);
  impl_->finished = true;
  std::array<std::uint8_t, SHA256_DIGEST_SIZE> digest{};
  sha256_digest(&impl_->context, digest.size(), digest.data());
  std::string text;
  text.reserve(64);
  for (const std::uint8_t byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::string sha256_hex(std::span<const std::byte> data) {
  Sha256Stream stream;
  stream.update(data);
  return stream.hex_digest();
}

}  // namespace sluice
