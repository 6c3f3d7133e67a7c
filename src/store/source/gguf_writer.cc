#include "store/source/gguf_writer.h"

#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/error.h"

namespace sluice::store {
namespace {

constexpr Bytes kAlignment = 32;  // what readers take without the key general.alignment
constexpr std::uint32_t kVersion = 3;

// The numbers of types of values.
template <class Value>
constexpr std::uint32_t kType = 0;
template <>
constexpr std::uint32_t kType<std::uint32_t> = 4;
template <>
constexpr std::uint32_t kType<std::int32_t> = 5;
template <>
constexpr std::uint32_t kType<float> = 6;
template <>
constexpr std::uint32_t kType<bool> = 7;
template <>
constexpr std::uint32_t kType<std::string> = 8;
constexpr std::uint32_t kArrayType = 9;

class Writer {
 public:
  template <class Number>
  void number(Number value) {
    char bytes[sizeof(Number)];
    std::memcpy(bytes, &value, sizeof(Number));
    out_.append(bytes, sizeof(Number));
  }
  void string(std::string_view text) {
    number<std::uint64_t>(text.size());
    out_.append(text);
  }

  void value(bool flag) { number(static_cast<std::uint8_t>(flag)); }
  void value(std::uint32_t whole) { number(whole); }
  void value(std::int32_t whole) { number(whole); }
  void value(float real) { number(real); }
  void value(const std::string& text) { string(text); }

  template <class Value>
  void typed(const Value& one) {
    number(kType<Value>);
    value(one);
  }
  template <class Entry>
  void typed(const std::vector<Entry>& entries) {
    number(kArrayType);
    number(kType<Entry>);
    number<std::uint64_t>(entries.size());
    for (const Entry& entry : entries) value(entry);
  }

  void pad() { out_.resize(round_up(out_.size(), kAlignment), '\0'); }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

void write_tensor(Writer& writer, const GgufPlannedTensor& tensor, Bytes place) {
  writer.string(tensor.name);
  writer.number(static_cast<std::uint32_t>(tensor.shape.size()));
  for (auto dimension = tensor.shape.rbegin(); dimension != tensor.shape.rend(); ++dimension)
    writer.number(*dimension);
  writer.number(tensor.type->number);
  writer.number(place);
}

}  // namespace

Bytes GgufPlannedTensor::length() const {
  SLUICE_CHECK(!shape.empty() && shape.back() % type->elements == 0, name);
  Bytes bytes = shape.back() / type->elements * type->bytes;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) bytes *= shape[i];
  return bytes;
}

GgufLayout lay_out_gguf(const GgufPlan& plan) {
  Writer writer;
  for (const char letter : std::string_view("GGUF")) writer.number(letter);
  writer.number(kVersion);
  writer.number<std::uint64_t>(plan.tensors.size());
  writer.number<std::uint64_t>(plan.keys.size());
  for (const auto& [name, value] : plan.keys) {
    writer.string(name);
    std::visit([&](const auto& one) { writer.typed(one); }, value);
  }
  GgufLayout layout;
  Bytes place = 0;
  for (const GgufPlannedTensor& tensor : plan.tensors) {
    write_tensor(writer, tensor, place);
    layout.offsets.push_back(place);
    place = round_up(place + tensor.length(), kAlignment);
  }
  writer.pad();
  layout.header = writer.take();
  for (Bytes& offset : layout.offsets) offset += layout.header.size();
  layout.file_bytes = layout.header.size() + place;
  return layout;
}

}  // namespace sluice::store
