#include "codec/exponents/bf16_split.h"

#include <cstdint>
#include <string>

#include "base/error.h"
#include "codec/exponents/bf16_split_impl.h"

namespace sluice::codec {
namespace {

void split_scalar(const std::byte* words, std::size_t count, std::byte* exponents,
                  std::byte* sign_mantissas) {
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned low = std::to_integer<unsigned>(words[2 * i]);
    const unsigned high = std::to_integer<unsigned>(words[2 * i + 1]);
    exponents[i] = static_cast<std::byte>((high << 1 | low >> 7) & 0xff);
    sign_mantissas[i] = static_cast<std::byte>((high & 0x80) | (low & 0x7f));
  }
}

void merge_scalar(const std::byte* exponents, const std::byte* sign_mantissas, std::size_t count,
                  std::byte* words) {
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned e = std::to_integer<unsigned>(exponents[i]);
    const unsigned sm = std::to_integer<unsigned>(sign_mantissas[i]);
    words[2 * i] = static_cast<std::byte>((e << 7 & 0x80) | (sm & 0x7f));
    words[2 * i + 1] = static_cast<std::byte>((sm & 0x80) | e >> 1);
  }
}

void check_sizes(std::size_t words_bytes, std::size_t exponents, std::size_t sign_mantissas) {
  SLUICE_CHECK(
      words_bytes == 2 * exponents && exponents == sign_mantissas,
      std::to_string(words_bytes) + ", " + std::to_string(exponents) + ", " + std::to_string(sign_mantissas));
}

}  // namespace

constinit const Bf16SplitKernels kBf16SplitScalar = {split_scalar, merge_scalar};

const Bf16SplitKernels& bf16_split_kernels(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::kAvx2:
      return kBf16SplitAvx2;
    case Isa::kAvx512:
    case Isa::kAvx512Vbmi2:
    case Isa::kAvx512Bf16:
    case Isa::kAmx:
      return kBf16SplitAvx512;
#endif
    default:
      return kBf16SplitScalar;
  }
}

void split_bf16(std::span<const std::byte> words, std::span<std::byte> exponents,
                std::span<std::byte> sign_mantissas, Isa isa) {
  check_sizes(words.size(), exponents.size(), sign_mantissas.size());
  bf16_split_kernels(isa).split(words.data(), exponents.size(), exponents.data(), sign_mantissas.data());
}

void merge_bf16(std::span<const std::byte> exponents, std::span<const std::byte> sign_mantissas,
                std::span<std::byte> words, Isa isa) {
  check_sizes(words.size(), exponents.size(), sign_mantissas.size());
  bf16_split_kernels(isa).merge(exponents.data(), sign_mantissas.data(), exponents.size(), words.data());
}

}  // namespace sluice::codec
