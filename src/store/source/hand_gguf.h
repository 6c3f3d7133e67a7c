// GGUF files written by hand from docs/formats.md, with anything between and behind their tensors: the
// writer of the program (gguf_writer.h) puts zeros there. For tests.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "store/source/gguf_types.h"

namespace sluice::store::testing {

template <class Number>
std::string gguf_number(Number value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}
inline std::string gguf_u32(std::uint32_t value) { return gguf_number(value); }
inline std::string gguf_u64(std::uint64_t value) { return gguf_number(value); }
inline std::string gguf_text(std::string_view text) { return gguf_u64(text.size()) + std::string(text); }
inline std::string gguf_number_key(std::string_view name, std::uint32_t value) {
  return gguf_text(name) + gguf_u32(4) + gguf_u32(value);
}

struct HandTensor {
  std::string name;
  std::uint32_t type = 0;
  std::vector<std::uint64_t> shape;  // the last dimension lies in sequence
  Bytes bytes() const {
    const GgufType& kind = *gguf_type(type);
    Bytes product = shape.back() / kind.elements * kind.bytes;
    for (std::size_t i = 0; i + 1 < shape.size(); ++i) product *= shape[i];
    return product;
  }
};

struct HandFile {
  std::vector<HandTensor> tensors;
  std::vector<std::string> keys{};
  Bytes alignment = 32, trailing = 0;
  std::uint64_t seed = 1;

  // Tensors are random, and so is whatever belongs to none.
  std::string bytes() const {
    std::string file = "GGUF" + gguf_u32(3) + gguf_u64(tensors.size()) + gguf_u64(keys.size() + 1) +
                       gguf_number_key("general.alignment", static_cast<std::uint32_t>(alignment));
    for (const std::string& key : keys) file += key;
    Bytes place = 0;
    for (const HandTensor& tensor : tensors) {
      file += gguf_text(tensor.name) + gguf_u32(static_cast<std::uint32_t>(tensor.shape.size()));
      for (auto one = tensor.shape.rbegin(); one != tensor.shape.rend(); ++one) file += gguf_u64(*one);
      file += gguf_u32(tensor.type) + gguf_u64(place);
      place = round_up(place + tensor.bytes(), alignment);
    }
    const Bytes data = round_up(file.size(), alignment);
    std::mt19937_64 random(seed);
    for (Bytes left = data - file.size() + place + trailing; left > 0; --left)
      file += static_cast<char>(random());
    return file;
  }
};

}  // namespace sluice::store::testing
